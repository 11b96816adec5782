// SPDX-License-Identifier: Apache-2.0
// The low-level client: one method per RPC, protobuf messages in and out, typed errors, streams of
// events and output. It does not wait for states and does not retry.
//
//   auto client = agbox::sdk::RawClient::open();
//   if (!client) return report(client.error());
//   auto response = client->ping();
#pragma once

#include <agbox/client_error.h>
#include <agbox/v1/service.pb.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>

namespace agbox::sdk {

struct ClientOptions {
  // Empty: default_socket_path().
  std::filesystem::path socket = {};
  // Default timeout of unary calls; zero means none. Streams have no timeout by default.
  std::chrono::milliseconds timeout{5000};
};

struct CallOptions {
  // If absent, the default of ClientOptions. Zero means none.
  std::optional<std::chrono::milliseconds> timeout = {};
};

// The socket path of this user's daemon.
Result<std::filesystem::path> default_socket_path();

class Connection;

// A server stream, read message by message. Destroying it cancels the call.
template <class Message>
class MessageStream {
 public:
  MessageStream(MessageStream&&) noexcept;
  MessageStream& operator=(MessageStream&&) noexcept;
  ~MessageStream();

  // Blocks until the next message; nullopt if the daemon ended the stream. After an end or an
  // error, every further call returns the same.
  Result<std::optional<Message>> next();

  // May be called from any thread: next() then ends with ErrorKind::Cancelled.
  void cancel();

 private:
  friend class RawClient;
  struct Call;
  explicit MessageStream(std::unique_ptr<Call> call);
  std::unique_ptr<Call> call_;
};
extern template class MessageStream<v1::SandboxEvent>;
extern template class MessageStream<v1::SubscribeEventsResponse>;
extern template class MessageStream<v1::ReadExecOutputResponse>;
extern template class MessageStream<v1::ReadContainerLogsResponse>;
extern template class MessageStream<v1::WatchStatsResponse>;
extern template class MessageStream<v1::HoldSandboxResponse>;
extern template class MessageStream<v1::CopyOutResponse>;

// The events of one sandbox.
using EventStream = MessageStream<v1::SandboxEvent>;
// The events of all sandboxes.
using AllEventsStream = MessageStream<v1::SubscribeEventsResponse>;
// The stdout or stderr of one exec.
using ExecOutputStream = MessageStream<v1::ReadExecOutputResponse>;
// What one container of a sandbox printed.
using ContainerLogStream = MessageStream<v1::ReadContainerLogsResponse>;
// What the containers of one sandbox use.
using StatsStream = MessageStream<v1::WatchStatsResponse>;
// The hold of one sandbox.
using HoldStream = MessageStream<v1::HoldSandboxResponse>;

// An AttachExec call. Destroying it cancels the call. One thread may send while another one reads.
class AttachStream {
 public:
  AttachStream(AttachStream&&) noexcept;
  AttachStream& operator=(AttachStream&&) noexcept;
  ~AttachStream();

  // False if the call has ended: next() says why.
  bool send(const v1::AttachExecRequest& request);
  // As of MessageStream.
  Result<std::optional<v1::AttachExecResponse>> next();
  void cancel();

 private:
  friend class RawClient;
  struct Call;
  explicit AttachStream(std::unique_ptr<Call> call);
  std::unique_ptr<Call> call_;
};

// The tar stream of a file or a directory of a sandbox: hostile input. agbox/file_copy.h unpacks
// it.
using CopyOutStream = MessageStream<v1::CopyOutResponse>;

// A tar stream on its way into a sandbox. Destroying it before finish() cancels the call.
class CopyInStream {
 public:
  CopyInStream(CopyInStream&&) noexcept;
  CopyInStream& operator=(CopyInStream&&) noexcept;
  ~CopyInStream();

  // Blocks while the sandbox takes nothing. False if the daemon has ended the call: finish()
  // returns why.
  bool write(std::string_view bytes);
  // After the last byte; returns once everything is in place. Call once.
  Result<v1::CopyInResponse> finish();

  // May be called from any thread.
  void cancel();

 private:
  friend class RawClient;
  struct Call;
  explicit CopyInStream(std::unique_ptr<Call> call);
  std::unique_ptr<Call> call_;
};

// Thread-safe.
class RawClient {
 public:
  // Does not connect yet: the first call does, and later calls reconnect after the daemon was
  // restarted.
  static Result<RawClient> open(const ClientOptions& options = {});

  const std::filesystem::path& socket() const;

  // Returns as soon as the daemon is reachable, on a stop request, or after `limit`. Use it after
  // losing the connection: gRPC reconnects quickly only while a call waits for it, else every five
  // seconds.
  void wait_until_reachable(std::chrono::milliseconds limit,
                            const std::stop_token& stop = {}) const;

  Result<v1::PingResponse> ping(const v1::PingRequest& request = {},
                                const CallOptions& options = {}) const;
  Result<v1::CreateSandboxResponse> create_sandbox(const v1::CreateSandboxRequest& request,
                                                   const CallOptions& options = {}) const;
  Result<v1::GetSandboxResponse> get_sandbox(const v1::GetSandboxRequest& request,
                                             const CallOptions& options = {}) const;
  Result<v1::ListSandboxesResponse> list_sandboxes(const v1::ListSandboxesRequest& request,
                                                   const CallOptions& options = {}) const;
  Result<v1::AcceptedResponse> resume_sandbox(const v1::ResumeSandboxRequest& request,
                                              const CallOptions& options = {}) const;
  Result<v1::AcceptedResponse> stop_sandbox(const v1::StopSandboxRequest& request,
                                            const CallOptions& options = {}) const;
  Result<v1::AcceptedResponse> delete_sandbox(const v1::DeleteSandboxRequest& request,
                                              const CallOptions& options = {}) const;
  Result<v1::DeleteSandboxesResponse> delete_sandboxes(const v1::DeleteSandboxesRequest& request,
                                                       const CallOptions& options = {}) const;
  Result<v1::CreateExecResponse> create_exec(const v1::CreateExecRequest& request,
                                             const CallOptions& options = {}) const;
  Result<v1::AcceptedResponse> cancel_exec(const v1::CancelExecRequest& request,
                                           const CallOptions& options = {}) const;
  Result<v1::GetExecResponse> get_exec(const v1::GetExecRequest& request,
                                       const CallOptions& options = {}) const;
  Result<v1::ListActiveExecsResponse> list_active_execs(const v1::ListActiveExecsRequest& request,
                                                        const CallOptions& options = {}) const;
  Result<v1::ListExecsResponse> list_execs(const v1::ListExecsRequest& request,
                                           const CallOptions& options = {}) const;

  Result<v1::GetStatsResponse> get_stats(const v1::GetStatsRequest& request,
                                         const CallOptions& options = {}) const;
  Result<v1::DiagnoseResponse> diagnose(const v1::DiagnoseRequest& request = {},
                                        const CallOptions& options = {}) const;

  // Errors such as an unknown sandbox are returned by the stream's first next().
  EventStream subscribe_sandbox_events(const v1::SubscribeSandboxEventsRequest& request,
                                       const CallOptions& options = {}) const;
  AllEventsStream subscribe_events(const v1::SubscribeEventsRequest& request,
                                   const CallOptions& options = {}) const;
  ExecOutputStream read_exec_output(const v1::ReadExecOutputRequest& request,
                                    const CallOptions& options = {}) const;
  ContainerLogStream read_container_logs(const v1::ReadContainerLogsRequest& request,
                                         const CallOptions& options = {}) const;
  StatsStream watch_stats(const v1::WatchStatsRequest& request,
                          const CallOptions& options = {}) const;

  // The sandbox is held from the first message on, and while the stream exists.
  // agbox/sandbox_hold.h reconnects.
  HoldStream hold_sandbox(const v1::HoldSandboxRequest& request,
                          const CallOptions& options = {}) const;

  // The first message to send is `start`.
  AttachStream attach_exec(const CallOptions& options = {}) const;
  CopyOutStream copy_out(const v1::CopyOutRequest& request, const CallOptions& options = {}) const;
  // Errors such as an unknown sandbox are returned by finish().
  CopyInStream copy_in(const v1::CopyInTarget& target, const CallOptions& options = {}) const;

 private:
  explicit RawClient(std::shared_ptr<const Connection> connection);
  // Shared with the streams, which may outlive the client.
  std::shared_ptr<const Connection> connection_;
};

}  // namespace agbox::sdk
