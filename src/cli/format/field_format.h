// SPDX-License-Identifier: Apache-2.0
// --format: prints chosen fields of each item on a line, separated by tabs, for scripts. The fields
// have the names that --json prints; "labels.KEY" is one entry of a map.
#pragma once

#include <google/protobuf/message.h>

#include <CLI/CLI.hpp>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace agbox::cli {

class FieldFormat {
 public:
  // "sandbox_id,state". nullopt if `text` is empty; the error is the message of the usage error.
  static std::expected<std::optional<FieldFormat>, std::string> parse(
      std::string_view text, const google::protobuf::Descriptor& item);

  // Values as in JSON, but texts without quotes; control characters are escaped.
  std::string line(const google::protobuf::Message& item) const;

 private:
  struct Field {
    const google::protobuf::FieldDescriptor* descriptor;
    std::optional<std::string> key;  // of a map
  };
  std::vector<Field> fields_;
};

CLI::Option* add_format_flag(CLI::App& command, std::string& format);

}  // namespace agbox::cli
