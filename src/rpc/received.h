// SPDX-License-Identifier: Apache-2.0
// A request as received. gRPC answers one that it cannot parse with UNIMPLEMENTED and no message;
// this type accepts any bytes, so that the service can answer with an error of its own.
#pragma once

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>

namespace agbox {

template <class Message>
struct Received {
  Message message;
  bool is_valid = false;
};

}  // namespace agbox

template <class Message>
class grpc::SerializationTraits<agbox::Received<Message>> {
 public:
  static grpc::Status Deserialize(grpc::ByteBuffer* bytes, agbox::Received<Message>* request) {
    request->is_valid = SerializationTraits<Message>::Deserialize(bytes, &request->message).ok();
    return grpc::Status::OK;
  }
};
