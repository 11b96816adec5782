// SPDX-License-Identifier: Apache-2.0
// Converts a gRPC status to an Error.
#pragma once

#include <agbox/client_error.h>
#include <grpcpp/support/status.h>

#include <chrono>
#include <filesystem>

namespace agbox::sdk {

// `status` must not be OK. `timeout` is that of the call; zero means none.
Error error_from_status(const grpc::Status& status, const std::filesystem::path& socket,
                        std::chrono::milliseconds timeout);

}  // namespace agbox::sdk
