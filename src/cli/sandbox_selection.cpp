// SPDX-License-Identifier: Apache-2.0
#include "cli/sandbox_selection.h"

#include "cli/id_lookup.h"

namespace agbox::cli {

SandboxSelection::SandboxSelection(CLI::App& command, Spelling spelling, const std::string& what)
    : spelling_(spelling) {
  if (spelling == Spelling::Exact) {
    command.add_option("sandbox_id", exact_id_, "Sandbox ID")->required();
    return;
  }
  command.add_option("sandbox_id", given_, "Sandbox IDs, or their beginnings");
  labels_.emplace(command, "-l,--label", what + " all sandboxes with this label (repeatable)");
}

std::optional<std::string> SandboxSelection::refusal(const std::string& command) const {
  if (!labels_) return std::nullopt;
  if (const auto labels = labels_->values(); !labels) return labels.error();
  if (!given_.empty() && labels_->is_given()) {
    return command + " <sandbox_id> and --label are mutually exclusive";
  }
  if (given_.empty() && !labels_->is_given()) {
    return command + " requires <sandbox_id> or at least one --label";
  }
  return std::nullopt;
}

sdk::Result<std::vector<std::string>> SandboxSelection::ids(const sdk::RawClient& client,
                                                            v1::SandboxState state) const {
  if (spelling_ == Spelling::Exact) return std::vector{exact_id_};
  std::vector<std::string> ids;
  for (const std::string& given : given_) {
    auto found = find_sandbox(client, given);
    if (!found) return std::unexpected(found.error());
    ids.push_back(found->sandbox_id());
  }
  if (!labels_->is_given()) return ids;
  v1::ListSandboxesRequest request;
  const auto labels = *labels_->values();  // refusal() has checked them
  request.mutable_label_selector()->insert(labels.begin(), labels.end());
  const auto list = list_all_sandboxes(client, request);
  if (!list) return std::unexpected(list.error());
  for (const v1::SandboxHandle& sandbox : list->sandboxes()) {
    if (sandbox.state() == state) ids.push_back(sandbox.sandbox_id());
  }
  return ids;
}

}  // namespace agbox::cli
