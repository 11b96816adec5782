// SPDX-License-Identifier: Apache-2.0
// The one place where an Error becomes a gRPC status: the status by its code, its sentence, and a
// google.rpc.Status with google.rpc.ErrorInfo in the trailer, from which clients pick the facts.
#pragma once

#include <grpcpp/support/status.h>

#include "base/result.h"

namespace agbox {

grpc::StatusCode status_code(ErrorCode code);

// Clients refuse trailers above 8 KiB and then see no error of ours at all, so a long sentence or
// long metadata is cut, with an ellipsis; bytes that are not UTF-8 are replaced.
grpc::Status to_status(const Error& error);

}  // namespace agbox
