// SPDX-License-Identifier: Apache-2.0
#include "unit/sdk/scripted_daemon.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "base/check.h"
#include "unit/api/hand_wire.h"

namespace agbox::test {

ShortDirectory::ShortDirectory() {
  std::string name = "/tmp/agbox-sdk-XXXXXX";
  AGBOX_CHECK(::mkdtemp(name.data()) != nullptr, "cannot make a directory under /tmp");
  path_ = name;
}

ShortDirectory::~ShortDirectory() {
  std::filesystem::remove_all(path_);
}

std::string ErrorInfoBytes::wire() const {
  HandEncoder info;
  info.bytes(1, reason).bytes(2, domain);
  for (const auto& [key, value] : metadata) info.entry(3, key, value);
  const HandEncoder any = HandEncoder().bytes(1, type_url).bytes(2, info.wire());
  return HandEncoder()
      .varint(1, static_cast<std::uint64_t>(code))
      .bytes(2, message)
      .message(3, any)
      .wire();
}

grpc::Status ErrorInfoBytes::status() const {
  return {static_cast<grpc::StatusCode>(code), message, wire()};
}

ScriptedDaemon::ScriptedDaemon(const std::filesystem::path& socket,
                               const std::function<void(ScriptedDaemon&)>& prepare) {
  if (prepare) prepare(*this);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket.string(), grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  AGBOX_CHECK(server_ != nullptr, "the test's server cannot listen");
}

ScriptedDaemon::~ScriptedDaemon() {
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

std::vector<std::string> ScriptedDaemon::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

void ScriptedDaemon::remember(const char* method, const google::protobuf::Message& request) {
  const std::lock_guard lock(mutex_);
  const std::string text = request.ShortDebugString();
  calls_.push_back(text.empty() ? method : method + (" " + text));
  called_.notify_all();
}

bool ScriptedDaemon::wait_for_call(const std::string& method) {
  std::unique_lock lock(mutex_);
  return called_.wait_for(lock, std::chrono::seconds(10), [&] {
    return std::ranges::any_of(calls_, [&](const auto& call) { return call.starts_with(method); });
  });
}

void ScriptedDaemon::wait_until_cancelled(grpc::ServerContext* context) {
  // The synchronous server has no other way to learn of it than to ask.
  while (!context->IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

template <class Response>
grpc::Status ScriptedDaemon::answer(grpc::ServerContext* context, const char* method,
                                    const google::protobuf::Message& request, Response* response,
                                    Fill<Response> fill) {
  remember(method, request);
  if (silent) wait_until_cancelled(context);
  fill(*this, *response);
  const std::lock_guard lock(mutex_);
  if (next_statuses.empty() || std::string_view(method) == "Ping") return status;
  grpc::Status next = std::move(next_statuses.front());
  next_statuses.pop_front();
  return next;
}

namespace {
void accept(ScriptedDaemon&, v1::AcceptedResponse& response) {
  response.set_accepted(true);
}
}  // namespace

grpc::Status ScriptedDaemon::Ping(grpc::ServerContext* context, const v1::PingRequest* request,
                                  v1::PingResponse* response) {
  return answer<v1::PingResponse>(
      context, "Ping", *request, response,
      [](ScriptedDaemon& daemon, v1::PingResponse& out) { out = daemon.ping_response; });
}

grpc::Status ScriptedDaemon::Diagnose(grpc::ServerContext* context,
                                      const v1::DiagnoseRequest* request,
                                      v1::DiagnoseResponse* response) {
  return answer<v1::DiagnoseResponse>(
      context, "Diagnose", *request, response,
      [](ScriptedDaemon& daemon, v1::DiagnoseResponse& out) { out = daemon.diagnosis; });
}

grpc::Status ScriptedDaemon::CreateSandbox(grpc::ServerContext* context,
                                           const v1::CreateSandboxRequest* request,
                                           v1::CreateSandboxResponse* response) {
  return answer<v1::CreateSandboxResponse>(
      context, "CreateSandbox", *request, response,
      [](ScriptedDaemon& daemon, v1::CreateSandboxResponse& out) {
        *out.mutable_sandbox() = daemon.sandbox;
      });
}

grpc::Status ScriptedDaemon::GetSandbox(grpc::ServerContext* context,
                                        const v1::GetSandboxRequest* request,
                                        v1::GetSandboxResponse* response) {
  const auto found = sandboxes.find(request->sandbox_id());
  *response->mutable_sandbox() = found == sandboxes.end() ? sandbox : found->second;
  return answer<v1::GetSandboxResponse>(context, "GetSandbox", *request, response,
                                        [](ScriptedDaemon&, v1::GetSandboxResponse&) {});
}

grpc::Status ScriptedDaemon::ListSandboxes(grpc::ServerContext* context,
                                           const v1::ListSandboxesRequest* request,
                                           v1::ListSandboxesResponse* response) {
  if (!pages.empty()) {
    const std::string& token = request->page_token();
    const std::size_t page = token.empty() ? 0 : std::stoul(token);
    *response = pages.at(page);
    if (page + 1 < pages.size()) response->set_next_page_token(std::to_string(page + 1));
    remember("ListSandboxes", *request);
    return status;
  }
  return answer<v1::ListSandboxesResponse>(
      context, "ListSandboxes", *request, response,
      [](ScriptedDaemon& daemon, v1::ListSandboxesResponse& out) {
        *out.add_sandboxes() = daemon.sandbox;
      });
}

grpc::Status ScriptedDaemon::ResumeSandbox(grpc::ServerContext* context,
                                           const v1::ResumeSandboxRequest* request,
                                           v1::AcceptedResponse* response) {
  return answer<v1::AcceptedResponse>(context, "ResumeSandbox", *request, response, accept);
}

grpc::Status ScriptedDaemon::StopSandbox(grpc::ServerContext* context,
                                         const v1::StopSandboxRequest* request,
                                         v1::AcceptedResponse* response) {
  return answer<v1::AcceptedResponse>(context, "StopSandbox", *request, response, accept);
}

grpc::Status ScriptedDaemon::DeleteSandbox(grpc::ServerContext* context,
                                           const v1::DeleteSandboxRequest* request,
                                           v1::AcceptedResponse* response) {
  return answer<v1::AcceptedResponse>(context, "DeleteSandbox", *request, response, accept);
}

grpc::Status ScriptedDaemon::DeleteSandboxes(grpc::ServerContext* context,
                                             const v1::DeleteSandboxesRequest* request,
                                             v1::DeleteSandboxesResponse* response) {
  return answer<v1::DeleteSandboxesResponse>(
      context, "DeleteSandboxes", *request, response,
      [](ScriptedDaemon& daemon, v1::DeleteSandboxesResponse& out) {
        if (daemon.deleted) {
          out = *daemon.deleted;
          return;
        }
        out.add_deleted_sandbox_ids(daemon.sandbox.sandbox_id());
        out.set_deleted_count(1);
      });
}

grpc::Status ScriptedDaemon::SubscribeSandboxEvents(
    grpc::ServerContext* context, const v1::SubscribeSandboxEventsRequest* request,
    grpc::ServerWriter<v1::SandboxEvent>* writer) {
  remember("SubscribeSandboxEvents", *request);
  for (const v1::SandboxEvent& event : events) {
    if (event.sequence() <= request->from_sequence()) continue;
    if (!writer->Write(event)) return grpc::Status::CANCELLED;
  }
  if (silent || keep_streams_open) wait_until_cancelled(context);
  return stream_status.ok() ? status : stream_status;
}

grpc::Status ScriptedDaemon::SubscribeEvents(
    grpc::ServerContext* context, const v1::SubscribeEventsRequest* request,
    grpc::ServerWriter<v1::SubscribeEventsResponse>* writer) {
  remember("SubscribeEvents", *request);
  const auto named = std::ranges::find(all_events, request->cursor(),
                                       [](const auto& message) { return message.cursor(); });
  auto next = named == all_events.end() ? all_events.begin() : named + 1;
  for (std::size_t sent = 0; next != all_events.end(); ++next) {
    if (!writer->Write(*next)) return grpc::Status::CANCELLED;
    if (++sent == break_all_events_after) return stream_status;
  }
  if (silent || keep_streams_open) wait_until_cancelled(context);
  return stream_status.ok() ? status : stream_status;
}

grpc::Status ScriptedDaemon::CreateExec(grpc::ServerContext* context,
                                        const v1::CreateExecRequest* request,
                                        v1::CreateExecResponse* response) {
  return answer<v1::CreateExecResponse>(context, "CreateExec", *request, response,
                                        [](ScriptedDaemon& daemon, v1::CreateExecResponse& out) {
                                          out.set_exec_id(daemon.exec.exec_id());
                                        });
}

grpc::Status ScriptedDaemon::CancelExec(grpc::ServerContext* context,
                                        const v1::CancelExecRequest* request,
                                        v1::AcceptedResponse* response) {
  if (!cancel_status.ok()) {
    remember("CancelExec", *request);
    return cancel_status;
  }
  {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
    if (run_until_cancelled) exec.set_state(v1::EXEC_STATE_CANCELLED);
  }
  return answer<v1::AcceptedResponse>(context, "CancelExec", *request, response, accept);
}

grpc::Status ScriptedDaemon::GetExec(grpc::ServerContext* context,
                                     const v1::GetExecRequest* request,
                                     v1::GetExecResponse* response) {
  return answer<v1::GetExecResponse>(
      context, "GetExec", *request, response,
      [](ScriptedDaemon& daemon, v1::GetExecResponse& out) { *out.mutable_exec() = daemon.exec; });
}

grpc::Status ScriptedDaemon::ListActiveExecs(grpc::ServerContext* context,
                                             const v1::ListActiveExecsRequest* request,
                                             v1::ListActiveExecsResponse* response) {
  return answer<v1::ListActiveExecsResponse>(
      context, "ListActiveExecs", *request, response,
      [](ScriptedDaemon& daemon, v1::ListActiveExecsResponse& out) {
        if (!daemon.exec.exec_id().empty()) *out.add_execs() = daemon.exec;
      });
}

grpc::Status ScriptedDaemon::ListExecs(grpc::ServerContext*, const v1::ListExecsRequest* request,
                                       v1::ListExecsResponse* response) {
  remember("ListExecs", *request);
  if (exec_pages.empty()) {
    *response->add_execs() = exec;
    return status;
  }
  const std::string& token = request->page_token();
  const std::size_t page = token.empty() ? 0 : std::stoul(token);
  *response = exec_pages.at(page);
  if (page + 1 < exec_pages.size()) response->set_next_page_token(std::to_string(page + 1));
  return status;
}

bool ScriptedDaemon::breaks_off(v1::OutputStream stream) {
  const std::lock_guard lock(mutex_);
  return break_output_after > 0 && broken_off_.insert(stream).second;
}

bool ScriptedDaemon::wait_until_exec_ends(grpc::ServerContext* context) {
  std::unique_lock lock(mutex_);
  // The synchronous server has no other way to learn of a client that left than to ask.
  while (!called_.wait_for(lock, std::chrono::milliseconds(1), [&] { return is_cancelled_; })) {
    if (context->IsCancelled()) return false;
  }
  return true;
}

grpc::Status ScriptedDaemon::ReadExecOutput(
    grpc::ServerContext* context, const v1::ReadExecOutputRequest* request,
    grpc::ServerWriter<v1::ReadExecOutputResponse>* writer) {
  remember("ReadExecOutput", *request);
  const bool breaks = breaks_off(request->stream());
  const std::string& all =
      request->stream() == v1::OUTPUT_STREAM_STDOUT ? exec_stdout : exec_stderr;
  constexpr std::size_t kPiece = 3;
  for (std::size_t at = request->offset(); at < all.size(); at += kPiece) {
    v1::ReadExecOutputResponse response;
    response.set_offset(at);
    response.set_data(all.substr(at, kPiece));
    if (!writer->Write(response)) return grpc::Status::CANCELLED;
    if (breaks && at >= break_output_after) return {grpc::UNAVAILABLE, "Socket closed"};
  }
  if (run_until_cancelled && !wait_until_exec_ends(context)) return grpc::Status::CANCELLED;
  if (silent || keep_streams_open) wait_until_cancelled(context);
  return stream_status.ok() ? status : stream_status;
}

grpc::Status ScriptedDaemon::ReadContainerLogs(
    grpc::ServerContext* context, const v1::ReadContainerLogsRequest* request,
    grpc::ServerWriter<v1::ReadContainerLogsResponse>* writer) {
  remember("ReadContainerLogs", *request);
  if (request->follow()) writer->Write({});
  const std::size_t first = request->cursor().empty() ? 0 : std::stoul(request->cursor());
  for (std::size_t at = first; at < log.size(); ++at) {
    v1::ReadContainerLogsResponse response = log[at];
    response.set_cursor(std::to_string(at + 1));
    if (!writer->Write(response)) return grpc::Status::CANCELLED;
    if (at + 1 == break_log_after && first < break_log_after) {
      return {grpc::UNAVAILABLE, "Socket closed"};
    }
  }
  if (silent || keep_streams_open) wait_until_cancelled(context);
  return stream_status.ok() ? status : stream_status;
}

grpc::Status ScriptedDaemon::GetStats(grpc::ServerContext* context,
                                      const v1::GetStatsRequest* request,
                                      v1::GetStatsResponse* response) {
  return answer<v1::GetStatsResponse>(context, "GetStats", *request, response,
                                      [](ScriptedDaemon& daemon, v1::GetStatsResponse& out) {
                                        if (daemon.stats.empty()) return;
                                        *out.mutable_stats() = daemon.stats.front();
                                      });
}

grpc::Status ScriptedDaemon::WatchStats(grpc::ServerContext* context,
                                        const v1::WatchStatsRequest* request,
                                        grpc::ServerWriter<v1::WatchStatsResponse>* writer) {
  remember("WatchStats", *request);
  for (const v1::SandboxStats& one : stats) {
    v1::WatchStatsResponse response;
    *response.mutable_stats() = one;
    if (!writer->Write(response)) return grpc::Status::CANCELLED;
  }
  if (silent || keep_streams_open) wait_until_cancelled(context);
  return stream_status.ok() ? status : stream_status;
}

int ScriptedDaemon::holds() const {
  const std::lock_guard lock(mutex_);
  return holds_;
}

bool ScriptedDaemon::wait_for_holds(int count) {
  std::unique_lock lock(mutex_);
  return called_.wait_for(lock, std::chrono::seconds(10), [&] { return holds_ == count; });
}

void ScriptedDaemon::end_holds() {
  const std::lock_guard lock(mutex_);
  ++ended_holds_;
  called_.notify_all();
}

grpc::Status ScriptedDaemon::HoldSandbox(grpc::ServerContext* context,
                                         const v1::HoldSandboxRequest* request,
                                         grpc::ServerWriter<v1::HoldSandboxResponse>* writer) {
  remember("HoldSandbox", *request);
  std::unique_lock lock(mutex_);
  if (!hold_statuses.empty()) {
    grpc::Status next = std::move(hold_statuses.front());
    hold_statuses.pop_front();
    return next;
  }
  v1::HoldSandboxResponse confirmation;
  *confirmation.mutable_lease_ttl() = sandbox.lease_ttl();
  writer->Write(confirmation);
  ++holds_;
  called_.notify_all();
  const int ended_before = ended_holds_;
  // The synchronous server has no other way to learn of a client that left than to ask.
  while (!context->IsCancelled() && ended_holds_ == ended_before) {
    called_.wait_for(lock, std::chrono::milliseconds(1));
  }
  --holds_;
  called_.notify_all();
  return {grpc::UNAVAILABLE, "agboxd is shutting down"};
}

grpc::Status ScriptedDaemon::AttachExec(grpc::ServerContext*, AttachStream* stream) {
  v1::AttachExecRequest first;
  if (!stream->Read(&first) || !first.has_start()) {
    return {grpc::StatusCode::INVALID_ARGUMENT, "the first message has to be start"};
  }
  remember("AttachExec", first.start());
  AttachConnection connection;
  {
    const std::lock_guard lock(mutex_);
    if (attach_connections.empty()) return {grpc::StatusCode::INVALID_ARGUMENT, "unexpected"};
    connection = std::move(attach_connections.front());
    attach_connections.pop_front();
  }
  return connection(*stream, first.start());
}

grpc::Status ScriptedDaemon::CopyIn(grpc::ServerContext*, CopyInStream* reader,
                                    v1::CopyInResponse* response) {
  v1::CopyInRequest request;
  reader->Read(&request);
  remember("CopyIn", request.target());
  while (reader->Read(&request)) copied_in += request.data();
  response->set_entries(1);
  return status;
}

grpc::Status ScriptedDaemon::CopyOut(grpc::ServerContext*, const v1::CopyOutRequest* request,
                                     CopyOutStream* writer) {
  remember("CopyOut", *request);
  v1::CopyOutResponse response;
  response.set_data(copy_out);
  writer->Write(response);
  response.Clear();
  response.mutable_summary()->set_entries(1);
  writer->Write(response);
  return status;
}

}  // namespace agbox::test
