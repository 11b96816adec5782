// SPDX-License-Identifier: Apache-2.0
// The open streams of one kind, to end them with a status of ours when the daemon shuts down:
// gRPC would cancel them with a text of its own. Used on one thread, the one that its streams write
// on.
#pragma once

#include <grpcpp/support/status.h>

#include <cstddef>
#include <optional>
#include <set>

namespace agbox {

class OpenStream {
 public:
  // Finishes the call, after the write in progress if there is one.
  virtual void end(const grpc::Status& status) = 0;

 protected:
  ~OpenStream() = default;
};

class OpenStreams {
 public:
  // Ends it immediately after end_all().
  void add(OpenStream& stream) {
    streams_.insert(&stream);
    if (ended_with_) stream.end(*ended_with_);
  }
  void remove(OpenStream& stream) { streams_.erase(&stream); }
  std::size_t size() const { return streams_.size(); }

  // Also those that are added later.
  void end_all(const grpc::Status& status) {
    ended_with_ = status;
    for (OpenStream* stream : std::set(streams_)) stream->end(status);
  }

 private:
  std::set<OpenStream*> streams_;
  std::optional<grpc::Status> ended_with_;
};

}  // namespace agbox
