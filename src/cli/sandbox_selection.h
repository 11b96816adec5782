// SPDX-License-Identifier: Apache-2.0
// The sandboxes that a command is about. The commands of agbox sandbox take one ID, exactly as
// existing clients know it; those for docker's users take several, their beginnings, or labels.
#pragma once

#include <agbox/raw_client.h>

#include <CLI/CLI.hpp>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/key_value_flag.h"

namespace agbox::cli {

enum class Spelling {
  Exact,  // agbox sandbox stop
  Flat,   // agbox stop
};

class SandboxSelection {
 public:
  // `what` happens to them: "Stop".
  SandboxSelection(CLI::App& command, Spelling spelling, const std::string& what);

  // Why the command line is refused, if it is. `command`: "stop".
  std::optional<std::string> refusal(const std::string& command) const;
  // Their IDs. Of those with the labels, only the ones in this state.
  sdk::Result<std::vector<std::string>> ids(const sdk::RawClient& client,
                                            v1::SandboxState state) const;

 private:
  Spelling spelling_;
  std::string exact_id_;
  std::vector<std::string> given_;
  std::optional<KeyValueFlag> labels_;
};

}  // namespace agbox::cli
