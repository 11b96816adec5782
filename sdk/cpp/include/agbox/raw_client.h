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

namespace agbox::sdk {

struct ClientOptions {
  // Empty: default_socket_path().
  std::filesystem::path socket = {};
  // How long a call may take, unless the call says otherwise; zero is without limit. Event streams
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

// The events of one sandbox, pulled one by one. Leaving it ends the subscription.
class EventStream {
 public:
  EventStream(EventStream&&) noexcept;
  EventStream& operator=(EventStream&&) noexcept;
  ~EventStream();

  // Blocks until there is an event. No event: the daemon ended the stream in order. After an end or
  // an error every further call says the same.
  Result<std::optional<v1::SandboxEvent>> next();

  // May be called from any thread: next() then ends with ErrorKind::Cancelled.
  void cancel();

 private:
  friend class RawClient;
  struct Subscription;
  explicit EventStream(std::unique_ptr<Subscription> subscription);
  std::unique_ptr<Subscription> subscription_;
};

// Any number of threads may call at once.
class RawClient {
 public:
  // Does not connect yet: the first call does, and later ones connect again after the daemon was
  // restarted.
  static Result<RawClient> open(const ClientOptions& options = {});

  const std::filesystem::path& socket() const;

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

  // A refusal (an unknown sandbox, say) is the stream's first next().
  EventStream subscribe_sandbox_events(const v1::SubscribeSandboxEventsRequest& request,
                                       const CallOptions& options = {}) const;

 private:
  explicit RawClient(std::shared_ptr<const Connection> connection);
  // Shared with the streams, which may outlive the client.
  std::shared_ptr<const Connection> connection_;
};

}  // namespace agbox::sdk
