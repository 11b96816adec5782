// SPDX-License-Identifier: Apache-2.0
// One CopyIn call: the client's messages go into the pipe of the sandbox, one at a time.
#pragma once

#include <grpcpp/grpcpp.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "agbox/v1/service.grpc.pb.h"
#include "rpc/file_copies.h"
#include "rpc/open_streams.h"

namespace agbox {

class CopyInStream final : public grpc::ServerReadReactor<v1::CopyInRequest>,
                           public OpenStream,
                           public std::enable_shared_from_this<CopyInStream> {
 public:
  // Lives until gRPC calls OnDone().
  static CopyInStream* open(FileCopies& copies, BeginFileCopy begin, v1::CopyInResponse* response);

  // On the thread of the copies.
  void end(const grpc::Status& status) override { finish(status); }

  // On gRPC's threads, OnCancel() possibly concurrently with the others.
  void OnReadDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  CopyInStream(FileCopies& copies, BeginFileCopy begin, v1::CopyInResponse* response);
  // On the thread of the copies.
  void received(bool ok);
  void begin_copy();
  void opened(FilePipe pipe);
  void write();
  void written(bool is_complete);
  void reported(const Result<FilesReport>& report);
  void close_pipe();
  // Ends the copy unless something goes on in time.
  void limit_wait(std::chrono::milliseconds limit, const char* problem);
  void finish(const grpc::Status& status);

  FileCopies& copies_;
  BeginFileCopy begin_;
  v1::CopyInResponse* response_;
  std::shared_ptr<OpenStreams> streams_;
  std::shared_ptr<FileCopyHandle> handle_;
  std::optional<boost::asio::posix::stream_descriptor> pipe_;
  boost::asio::steady_timer wait_limit_;
  v1::CopyInRequest request_;
  bool has_begun_ = false;
  bool has_finished_ = false;
  std::shared_ptr<CopyInStream> until_done_;  // gRPC holds only our address
};

}  // namespace agbox
