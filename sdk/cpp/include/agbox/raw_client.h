// SPDX-License-Identifier: Apache-2.0
// The thin client: one method per call of the contract, the contract's own messages in and out,
// failures as typed values, events as they come. It does not wait for states and repeats nothing.
//
//   auto client = agbox::sdk::RawClient::open();
//   if (!client) return report(client.error());
//   auto answer = client->ping();
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
  // How long a call may take, unless the call says otherwise; zero is without limit. Streams
  // have no limit of their own.
  std::chrono::milliseconds timeout{5000};
};

struct CallOptions {
  // Absent: the client's timeout for a call, none for a stream. Zero: none.
  std::optional<std::chrono::milliseconds> timeout = {};
};

// Where the daemon of this user listens.
Result<std::filesystem::path> default_socket_path();

class Connection;

// What the daemon sends, pulled message by message. Leaving it ends the call.
template <class Message>
class MessageStream {
 public:
  MessageStream(MessageStream&&) noexcept;
  MessageStream& operator=(MessageStream&&) noexcept;
  ~MessageStream();

  // Blocks until there is a message. No message: the daemon ended the stream in order. After an end
  // or an error every further call says the same.
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
// What one exec wrote to its stdout or its stderr.
using ExecOutputStream = MessageStream<v1::ReadExecOutputResponse>;

// Any number of threads may call at once.
class RawClient {
 public:
  // Does not connect yet: the first call does, and later ones connect again after the daemon was
  // restarted.
  static Result<RawClient> open(const ClientOptions& options = {});

  const std::filesystem::path& socket() const;

  // Comes back as soon as the daemon answers, at a stop, or after `limit`. For whoever lost it:
  // gRPC connects again with vigour only while a call waits for it, else it looks every five
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

  // A refusal (an unknown sandbox, say) is the stream's first next().
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
