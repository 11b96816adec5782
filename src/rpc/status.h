// SPDX-License-Identifier: Apache-2.0
// The only place that converts an Error to a gRPC status: code, message, and a google.rpc.Status
// with google.rpc.ErrorInfo in the trailer for clients.
#pragma once

#include <grpcpp/support/status.h>

#include "base/result.h"

namespace agbox {

// Clients reject trailers above 8 KiB and then see none of our error, so long messages and metadata
// are truncated, with an ellipsis; invalid UTF-8 is replaced.
grpc::Status to_status(const Error& error);

}  // namespace agbox
