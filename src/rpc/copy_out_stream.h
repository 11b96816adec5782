// SPDX-License-Identifier: Apache-2.0
// One CopyOut call: what comes out of the pipe of the sandbox goes to the client, one chunk at a
// time. The daemon does not read the tar stream, which is untrusted: the client does.
#pragma once

#include <grpcpp/grpcpp.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "agbox/v1/service.grpc.pb.h"
#include "rpc/file_copies.h"
#include "rpc/open_streams.h"

namespace agbox {

class CopyOutStream final : public grpc::ServerWriteReactor<v1::CopyOutResponse>,
                            public OpenStream,
                            public std::enable_shared_from_this<CopyOutStream> {
 public:
  // Lives until gRPC calls OnDone().
  static CopyOutStream* open(FileCopies& copies, BeginFileCopy begin,
                             const v1::CopyOutRequest& request);

  // On the thread of the copies.
  void end(const grpc::Status& status) override;

  // On gRPC's threads, OnCancel() possibly concurrently with the others.
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  explicit CopyOutStream(FileCopies& copies);
  // On the thread of the copies.
  void begin(const BeginFileCopy& begin, const v1::CopyOutRequest& request);
  void opened(FilePipe pipe);
  void read();
  void received(boost::system::error_code problem, std::size_t size);
  void send(v1::CopyOutResponse message);
  void reported(Result<FilesReport> report);
  // Ends the copy unless something comes in time.
  void limit_wait(std::chrono::milliseconds limit, const char* problem);
  // After the report: ends the reading once everything that the guest's process wrote was read.
  void end_with_what_is_left();
  // Takes the next step, unless a read or a write is in progress.
  void go_on();
  void finish(const grpc::Status& status);

  FileCopies& copies_;
  std::shared_ptr<OpenStreams> streams_;
  std::shared_ptr<FileCopyHandle> handle_;
  std::optional<boost::asio::posix::stream_descriptor> pipe_;
  boost::asio::steady_timer wait_limit_;
  std::vector<char> buffer_;
  v1::CopyOutResponse message_;
  std::optional<grpc::Status> ends_with_;
  std::optional<Result<FilesReport>> report_;
  // What was in the pipe at the first opportunity after the report, without what was read since.
  std::optional<std::size_t> left_;
  bool is_at_end_ = false;  // of the pipe
  bool is_reading_ = false;
  bool is_writing_ = false;
  bool has_sent_summary_ = false;
  bool has_finished_ = false;
  std::shared_ptr<CopyOutStream> until_done_;  // gRPC holds only our address
};

}  // namespace agbox
