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
extern template class MessageStream<v1::ReadExecOutputResponse>;

// The events of one sandbox.
using EventStream = MessageStream<v1::SandboxEvent>;
// The stdout or stderr of one exec.
using ExecOutputStream = MessageStream<v1::ReadExecOutputResponse>;

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

  Result<v1::DiagnoseResponse> diagnose(const v1::DiagnoseRequest& request = {},
                                        const CallOptions& options = {}) const;

  // Errors such as an unknown sandbox are returned by the stream's first next().
  EventStream subscribe_sandbox_events(const v1::SubscribeSandboxEventsRequest& request,
                                       const CallOptions& options = {}) const;
  ExecOutputStream read_exec_output(const v1::ReadExecOutputRequest& request,
                                    const CallOptions& options = {}) const;

 private:
  explicit RawClient(std::shared_ptr<const Connection> connection);
  // Shared with the streams, which may outlive the client.
  std::shared_ptr<const Connection> connection_;
};

}  // namespace agbox::sdk
