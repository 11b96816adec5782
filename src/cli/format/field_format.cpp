// SPDX-License-Identifier: Apache-2.0
#include "cli/format/field_format.h"

#include <google/protobuf/descriptor.h>

#include <ranges>

#include "cli/format/message_json.h"
#include "cli/format/printable.h"

namespace agbox::cli {

namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

std::string names_of(const Descriptor& item) {
  std::string names;
  for (int i = 0; i < item.field_count(); ++i) {
    names += (names.empty() ? "" : ", ") + std::string(item.field(i)->name());
  }
  return names;
}

}  // namespace

std::expected<std::optional<FieldFormat>, std::string> FieldFormat::parse(std::string_view text,
                                                                          const Descriptor& item) {
  if (text.empty()) return std::nullopt;
  FieldFormat format;
  for (const auto part : text | std::views::split(',')) {
    const std::string word(part.begin(), part.end());
    const std::size_t dot = word.find('.');
    const FieldDescriptor* const field = item.FindFieldByName(word.substr(0, dot));
    if (field == nullptr) {
      return std::unexpected("--format: there is no field \"" + word.substr(0, dot) +
                             "\"; use some of " + names_of(item) + ", separated by commas");
    }
    if (dot == std::string::npos) {
      format.fields_.push_back({field, std::nullopt});
    } else if (field->is_map()) {
      format.fields_.push_back({field, word.substr(dot + 1)});
    } else {
      return std::unexpected("--format: " + std::string(field->name()) +
                             " has no keys; use it without \"." + word.substr(dot + 1) + "\"");
    }
  }
  return format;
}

std::string FieldFormat::line(const google::protobuf::Message& item) const {
  std::string out;
  for (const Field& field : fields_) {
    if (&field != &fields_.front()) out += '\t';
    out += printable_line(field_text(item, *field.descriptor, field.key));
  }
  return out + "\n";
}

CLI::Option* add_format_flag(CLI::App& command, std::string& format) {
  return command
      .add_option("--format", format,
                  "Print only these fields of --json, separated by tabs, e.g. sandbox_id,state")
      ->type_name("FIELDS")
      ->take_last();
}

}  // namespace agbox::cli
