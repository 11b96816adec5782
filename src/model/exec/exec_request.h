// SPDX-License-Identifier: Apache-2.0
// What a caller wants to run, checked: an ExecRequest needs no further check. The first
// problem is reported, in the order that existing clients expect; its message names the field.
#pragma once

#include <cstddef>

#include "agbox/v1/service.pb.h"
#include "base/result.h"

namespace agbox {

struct ExecRequest {
  v1::CreateExecRequest request;  // as it is stored; the exec_id may be empty
  std::size_t bytes = 0;          // of the request
};

Result<ExecRequest> parse_exec_request(v1::CreateExecRequest request);

}  // namespace agbox
