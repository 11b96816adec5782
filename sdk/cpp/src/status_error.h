// SPDX-License-Identifier: Apache-2.0
// The one place where a gRPC status becomes an Error.
#pragma once

#include <agbox/client_error.h>
#include <grpcpp/support/status.h>

#include <chrono>
#include <filesystem>

namespace agbox::sdk {

// `status` is not OK. `timeout` is the one that the call had; zero is none.
Error error_from_status(const grpc::Status& status, const std::filesystem::path& socket,
                        std::chrono::milliseconds timeout);

}  // namespace agbox::sdk
