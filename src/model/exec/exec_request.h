// SPDX-License-Identifier: Apache-2.0
// What a caller wants to run, checked: an ExecRequest needs no further check. The first
// problem is reported, in the order that existing clients expect; its message names the field.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "agbox/v1/service.pb.h"
#include "base/result.h"
#include "model/exec/terminal_size.h"

namespace agbox {

struct ExecRequest {
  v1::CreateExecRequest request;  // as it is stored; the exec_id may be empty
  std::size_t bytes = 0;          // of the request
};

Result<ExecRequest> parse_exec_request(v1::CreateExecRequest request);

// nullopt: no limit, which more than a hundred years is too.
std::optional<std::chrono::nanoseconds> timeout_of(const v1::CreateExecRequest& request);
// Whether only a current guest can run it; an older one would ignore a part of the request.
bool needs_current_guest(const v1::CreateExecRequest& request);
// Whether clients can write to its stdin or terminal.
bool has_input(const v1::CreateExecRequest& request);
// nullopt: it has no terminal.
std::optional<TerminalSize> terminal_of(const v1::CreateExecRequest& request);
// TERM of its terminal.
std::string term_of(const v1::CreateExecRequest& request);

}  // namespace agbox
