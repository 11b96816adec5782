// SPDX-License-Identifier: Apache-2.0
// grpc.reflection.v1, which current clients ask for first. The gRPC of Debian 12 has only v1alpha,
// which is served next to it. Describes the services that are compiled into this program.
#pragma once

#include <string>
#include <vector>

#include "grpc/reflection/v1/reflection.grpc.pb.h"

namespace agbox {

class ReflectionService final : public grpc::reflection::v1::ServerReflection::CallbackService {
 public:
  // `services` are the full names to list.
  explicit ReflectionService(std::vector<std::string> services) : services_(std::move(services)) {}

  using Request = grpc::reflection::v1::ServerReflectionRequest;
  using Response = grpc::reflection::v1::ServerReflectionResponse;

  grpc::ServerBidiReactor<Request, Response>* ServerReflectionInfo(
      grpc::CallbackServerContext* context) override;

 private:
  std::vector<std::string> services_;
};

}  // namespace agbox
