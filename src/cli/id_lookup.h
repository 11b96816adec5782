// SPDX-License-Identifier: Apache-2.0
// Finds a sandbox or an exec by its ID or by the beginning of its ID. An exact ID always wins. Only
// commands without existing clients use it: to the others, an ID that does not exist is an error.
#pragma once

#include <agbox/raw_client.h>

#include <string>

namespace agbox::cli {

// The error names the candidates if several sandboxes begin so. Deleted sandboxes are found by
// their whole ID only.
sdk::Result<v1::SandboxHandle> find_sandbox(const sdk::RawClient& client, const std::string& given);

// Running and ended execs of all sandboxes.
sdk::Result<v1::ExecStatus> find_exec(const sdk::RawClient& client, const std::string& given);

// Running and ended execs of all sandboxes, also of deleted ones whose history is still kept.
sdk::Result<v1::ListExecsResponse> list_all_execs(const sdk::RawClient& client);
sdk::Result<v1::ListExecsResponse> list_execs_of(const sdk::RawClient& client,
                                                 const std::string& sandbox_id);

// All that have these labels.
sdk::Result<v1::ListSandboxesResponse> list_all_sandboxes(const sdk::RawClient& client,
                                                          const v1::ListSandboxesRequest& request);

}  // namespace agbox::cli
