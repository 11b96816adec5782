// SPDX-License-Identifier: Apache-2.0
#include "cli/id_lookup.h"

#include <functional>
#include <vector>

#include "cli/for_each_page.h"

namespace agbox::cli {

namespace {

// More would fill the screen.
constexpr std::size_t kNamedCandidates = 10;

// The daemon knows no such ID, or what was given is too short for one.
bool may_be_prefix(const sdk::Error& error) {
  return error.code == sdk::StatusCode::NotFound || error.code == sdk::StatusCode::InvalidArgument;
}

sdk::Error ambiguous(const std::string& given, const char* what,
                     const std::vector<std::string>& candidates) {
  std::string names;
  for (std::size_t i = 0; i < candidates.size() && i < kNamedCandidates; ++i) {
    names += "\n  " + candidates[i];
  }
  if (candidates.size() > kNamedCandidates) {
    names += "\n  and " + std::to_string(candidates.size() - kNamedCandidates) + " more";
  }
  return {.code = sdk::StatusCode::InvalidArgument,
          .reason = "AMBIGUOUS_ID",
          .message = "\"" + given + "\" is the beginning of " + std::to_string(candidates.size()) +
                     " " + what + " IDs; type more of it:" + names};
}

// The only one of `items` whose ID begins with `given`, else `not_found`.
template <class Item, class Items>
sdk::Result<Item> only_match(const Items& items, const std::string& given, const char* what,
                             const std::string& (Item::*id)() const, const sdk::Error& not_found) {
  std::vector<std::string> candidates;
  const Item* match = nullptr;
  for (const Item& item : items) {
    if (given.empty() || !(item.*id)().starts_with(given)) continue;
    candidates.push_back((item.*id)());
    match = &item;
  }
  if (candidates.empty()) return std::unexpected(not_found);
  if (candidates.size() > 1) return std::unexpected(ambiguous(given, what, candidates));
  return *match;
}

}  // namespace

sdk::Result<v1::SandboxHandle> find_sandbox(const sdk::RawClient& client,
                                            const std::string& given) {
  v1::GetSandboxRequest request;
  request.set_sandbox_id(given);
  auto found = client.get_sandbox(request);
  if (found) return std::move(*found->mutable_sandbox());
  if (!may_be_prefix(found.error())) return std::unexpected(found.error());
  const auto list = list_all_sandboxes(client, {});
  if (!list) return std::unexpected(list.error());
  return only_match<v1::SandboxHandle>(list->sandboxes(), given, "sandbox",
                                       &v1::SandboxHandle::sandbox_id, found.error());
}

sdk::Result<v1::ExecStatus> find_exec(const sdk::RawClient& client, const std::string& given) {
  v1::GetExecRequest request;
  request.set_exec_id(given);
  auto found = client.get_exec(request);
  if (found) return std::move(*found->mutable_exec());
  if (!may_be_prefix(found.error())) return std::unexpected(found.error());
  const auto list = list_all_execs(client);
  if (!list) return std::unexpected(list.error());
  return only_match<v1::ExecStatus>(list->execs(), given, "exec", &v1::ExecStatus::exec_id,
                                    found.error());
}

sdk::Result<v1::ListSandboxesResponse> list_all_sandboxes(const sdk::RawClient& client,
                                                          const v1::ListSandboxesRequest& request) {
  v1::ListSandboxesResponse all;
  const auto read = for_each_page(
      request, [&](const v1::ListSandboxesRequest& page) { return client.list_sandboxes(page); },
      [&all](const v1::ListSandboxesResponse& page) {
        all.mutable_sandboxes()->MergeFrom(page.sandboxes());
      });
  if (!read) return std::unexpected(read.error());
  return all;
}

sdk::Result<v1::ListExecsResponse> list_execs_of(const sdk::RawClient& client,
                                                 const std::string& sandbox_id) {
  v1::ListExecsRequest request;
  request.set_sandbox_id(sandbox_id);
  v1::ListExecsResponse all;
  const auto read = for_each_page(
      request, [&](const v1::ListExecsRequest& page) { return client.list_execs(page); },
      [&all](const v1::ListExecsResponse& page) { all.mutable_execs()->MergeFrom(page.execs()); });
  if (!read) return std::unexpected(read.error());
  return all;
}

sdk::Result<v1::ListExecsResponse> list_all_execs(const sdk::RawClient& client) {
  v1::ListSandboxesRequest request;
  request.set_include_deleted(true);
  const auto sandboxes = list_all_sandboxes(client, request);
  if (!sandboxes) return std::unexpected(sandboxes.error());
  v1::ListExecsResponse all;
  for (const v1::SandboxHandle& sandbox : sandboxes->sandboxes()) {
    const auto execs = list_execs_of(client, sandbox.sandbox_id());
    // Its history was removed since it was listed.
    if (!execs && execs.error().kind == sdk::ErrorKind::SandboxNotFound) continue;
    if (!execs) return std::unexpected(execs.error());
    all.mutable_execs()->MergeFrom(execs->execs());
  }
  return all;
}

}  // namespace agbox::cli
