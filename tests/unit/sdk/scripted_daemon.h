// SPDX-License-Identifier: Apache-2.0
// A real gRPC server on a Unix socket in a directory of its own, which answers every call with what
// the test put into it and remembers what it was asked.
#pragma once

#include <agbox/v1/service.grpc.pb.h>
#include <grpcpp/server.h>

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace agbox::test {

// A directory under /tmp, so that a socket in it stays within the 107 bytes; removed at the end.
class ShortDirectory {
 public:
  ShortDirectory();
  ~ShortDirectory();
  ShortDirectory(const ShortDirectory&) = delete;
  ShortDirectory& operator=(const ShortDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The bytes of grpc-status-details-bin, encoded by hand.
struct ErrorInfoBytes {
  int code = 0;
  std::string message = {};
  std::string reason = {};
  std::vector<std::pair<std::string, std::string>> metadata = {};
  std::string domain = "agents-sandbox";
  std::string type_url = "type.googleapis.com/google.rpc.ErrorInfo";

  std::string wire() const;
  // The whole status: code, message and the details.
  grpc::Status status() const;
};

using AttachStream = grpc::ServerReaderWriter<v1::AttachExecResponse, v1::AttachExecRequest>;
// What the daemon does in one connection of a session; see attach_script.h.
using AttachConnection = std::function<grpc::Status(AttachStream&, const v1::AttachStart&)>;
using CopyInStream = grpc::ServerReader<v1::CopyInRequest>;
using CopyOutStream = grpc::ServerWriter<v1::CopyOutResponse>;

class ScriptedDaemon final : private v1::SandboxService::Service {
 public:
  // `prepare` is for a daemon that a client may find as soon as it listens.
  explicit ScriptedDaemon(const std::filesystem::path& socket,
                          const std::function<void(ScriptedDaemon&)>& prepare = {});
  ~ScriptedDaemon() override;

  // What the next calls are answered with. Responses are taken where their type fits the call.
  grpc::Status status;
  // Of the next calls but pings, by which clients wait for a daemon, one each; then `status` again.
  std::deque<grpc::Status> next_statuses;
  v1::PingResponse ping_response;
  v1::DiagnoseResponse diagnosis;
  v1::SandboxHandle sandbox;
  v1::ExecStatus exec;
  // Of GetSandbox, where the test has several; any other id is answered with `sandbox`.
  std::map<std::string, v1::SandboxHandle> sandboxes;
  // Of ListSandboxes and DeleteSandboxes, where `sandbox` alone is not the answer. Each page but
  // the last names the next one.
  std::vector<v1::ListSandboxesResponse> pages;
  std::optional<v1::DeleteSandboxesResponse> deleted;
  // Each subscriber gets those behind the sequence that it names.
  std::vector<v1::SandboxEvent> events;
  // Of SubscribeEvents: each subscriber gets those behind the cursor that it names.
  std::vector<v1::SubscribeEventsResponse> all_events;
  // Such a stream ends behind so many; 0: none does.
  std::size_t break_all_events_after = 0;
  // Of ListExecs: each page but the last names the next one. Without pages it is `exec` alone.
  std::vector<v1::ListExecsResponse> exec_pages;
  // What the exec wrote. Sent a few bytes at a time.
  std::string exec_stdout;
  std::string exec_stderr;
  // Breaks every stream of output off once behind so many bytes; 0: none.
  std::size_t break_output_after = 0;
  // What a container printed, a line per response; its cursor is the number of lines so far.
  std::vector<v1::ReadContainerLogsResponse> log;
  // Breaks the stream of the log off once behind so many lines; 0: never.
  std::size_t break_log_after = 0;
  // Of GetStats and, one response each, of WatchStats.
  std::vector<v1::SandboxStats> stats;
  // One per AttachExec, in their order; a call without one is refused.
  std::deque<AttachConnection> attach_connections;
  // The tar streams of CopyIn, without their end, and of CopyOut.
  std::string copied_in;
  std::string copy_out;
  // Streams of output stay open until an exec was cancelled, which then is what `exec` becomes.
  bool run_until_cancelled = false;
  // Of HoldSandbox alone: streams stay open behind their confirmation until the client leaves, or
  // until end_holds(). A stream takes the first of these instead, if there is one.
  std::deque<grpc::Status> hold_statuses;
  // Of CancelExec alone.
  grpc::Status cancel_status;
  // How a stream ends, where it is not as every call does.
  grpc::Status stream_status;
  // Calls and streams stay unanswered until the client gives up.
  bool silent = false;
  // A stream stays open behind its last event until the client gives up.
  bool keep_streams_open = false;

  // How many holds are open.
  int holds() const;
  // Blocks until there are so many; false where that takes longer than ten seconds.
  bool wait_for_holds(int count);
  // As a daemon that ends.
  void end_holds();

  // "<method> <short text of the request>", in the order of arrival.
  std::vector<std::string> calls() const;
  // Blocks until a call of this method has come; false where none does within ten seconds.
  bool wait_for_call(const std::string& method);

 private:
  template <class Response>
  using Fill = void (*)(ScriptedDaemon&, Response&);
  template <class Response>
  grpc::Status answer(grpc::ServerContext* context, const char* method,
                      const google::protobuf::Message& request, Response* response,
                      Fill<Response> fill);
  void remember(const char* method, const google::protobuf::Message& request);
  void wait_until_cancelled(grpc::ServerContext* context);

  grpc::Status Ping(grpc::ServerContext*, const v1::PingRequest*, v1::PingResponse*) override;
  grpc::Status CreateSandbox(grpc::ServerContext*, const v1::CreateSandboxRequest*,
                             v1::CreateSandboxResponse*) override;
  grpc::Status GetSandbox(grpc::ServerContext*, const v1::GetSandboxRequest*,
                          v1::GetSandboxResponse*) override;
  grpc::Status ListSandboxes(grpc::ServerContext*, const v1::ListSandboxesRequest*,
                             v1::ListSandboxesResponse*) override;
  grpc::Status ResumeSandbox(grpc::ServerContext*, const v1::ResumeSandboxRequest*,
                             v1::AcceptedResponse*) override;
  grpc::Status StopSandbox(grpc::ServerContext*, const v1::StopSandboxRequest*,
                           v1::AcceptedResponse*) override;
  grpc::Status DeleteSandbox(grpc::ServerContext*, const v1::DeleteSandboxRequest*,
                             v1::AcceptedResponse*) override;
  grpc::Status DeleteSandboxes(grpc::ServerContext*, const v1::DeleteSandboxesRequest*,
                               v1::DeleteSandboxesResponse*) override;
  grpc::Status SubscribeSandboxEvents(grpc::ServerContext*,
                                      const v1::SubscribeSandboxEventsRequest*,
                                      grpc::ServerWriter<v1::SandboxEvent>*) override;
  grpc::Status SubscribeEvents(grpc::ServerContext*, const v1::SubscribeEventsRequest*,
                               grpc::ServerWriter<v1::SubscribeEventsResponse>*) override;
  grpc::Status CreateExec(grpc::ServerContext*, const v1::CreateExecRequest*,
                          v1::CreateExecResponse*) override;
  grpc::Status CancelExec(grpc::ServerContext*, const v1::CancelExecRequest*,
                          v1::AcceptedResponse*) override;
  grpc::Status GetExec(grpc::ServerContext*, const v1::GetExecRequest*,
                       v1::GetExecResponse*) override;
  grpc::Status ListActiveExecs(grpc::ServerContext*, const v1::ListActiveExecsRequest*,
                               v1::ListActiveExecsResponse*) override;
  grpc::Status ListExecs(grpc::ServerContext*, const v1::ListExecsRequest*,
                         v1::ListExecsResponse*) override;
  grpc::Status Diagnose(grpc::ServerContext*, const v1::DiagnoseRequest*,
                        v1::DiagnoseResponse*) override;
  grpc::Status ReadExecOutput(grpc::ServerContext*, const v1::ReadExecOutputRequest*,
                              grpc::ServerWriter<v1::ReadExecOutputResponse>*) override;
  grpc::Status ReadContainerLogs(grpc::ServerContext*, const v1::ReadContainerLogsRequest*,
                                 grpc::ServerWriter<v1::ReadContainerLogsResponse>*) override;
  grpc::Status GetStats(grpc::ServerContext*, const v1::GetStatsRequest*,
                        v1::GetStatsResponse*) override;
  grpc::Status WatchStats(grpc::ServerContext*, const v1::WatchStatsRequest*,
                          grpc::ServerWriter<v1::WatchStatsResponse>*) override;
  grpc::Status HoldSandbox(grpc::ServerContext*, const v1::HoldSandboxRequest*,
                           grpc::ServerWriter<v1::HoldSandboxResponse>*) override;
  grpc::Status AttachExec(grpc::ServerContext*, AttachStream*) override;
  grpc::Status CopyIn(grpc::ServerContext*, CopyInStream*, v1::CopyInResponse*) override;
  grpc::Status CopyOut(grpc::ServerContext*, const v1::CopyOutRequest*, CopyOutStream*) override;
  // Whether this is the first time for that stream.
  bool breaks_off(v1::OutputStream stream);
  // False where the client gave up.
  bool wait_until_exec_ends(grpc::ServerContext* context);

  mutable std::mutex mutex_;
  std::condition_variable called_;
  std::vector<std::string> calls_;
  std::set<v1::OutputStream> broken_off_;
  bool is_cancelled_ = false;
  int holds_ = 0;
  int ended_holds_ = 0;  // how often all of them were ended
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace agbox::test
