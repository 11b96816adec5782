// SPDX-License-Identifier: Apache-2.0
#include <agbox/raw_client.h>
#include <agbox/v1/service.grpc.pb.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <utility>

#include "base/percent_encode.h"
#include "paths/fixed_paths.h"
#include "socket_diagnosis.h"
#include "status_error.h"

namespace agbox::sdk {

namespace {

using Stub = v1::SandboxService::Stub;

// Of one message.
constexpr std::size_t kCopyInChunk = std::size_t{256} << 10;

// gRPC parses a target as a URI, and resolves one that it cannot parse with DNS.
std::string target_of(const std::filesystem::path& socket) {
  return "unix:" + percent_encode(socket.string(), "/");
}

grpc::ChannelArguments channel_arguments() {
  grpc::ChannelArguments arguments;
  // The daemon is on this machine: no proxy, no service configuration from DNS.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  // A call that may have reached the daemon is retried by the caller or not at all.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // Clients of one process share neither a connection nor its backoff.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Reconnect to a restarted daemon at once; gRPC's default backoff grows to two minutes. The third
  // setting, the "minimum", stays as it is: it actually limits how long one attempt may take.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 20);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  return arguments;
}

void set_timeout(grpc::ClientContext& context, std::chrono::milliseconds timeout) {
  if (timeout > std::chrono::milliseconds::zero()) {
    context.set_deadline(std::chrono::system_clock::now() + timeout);
  }
}

}  // namespace

class Connection {
 public:
  Connection(std::filesystem::path socket, std::chrono::milliseconds timeout)
      : socket_(std::move(socket)),
        timeout_(timeout),
        stub_(v1::SandboxService::NewStub(grpc::CreateCustomChannel(
            target_of(socket_), grpc::InsecureChannelCredentials(), channel_arguments()))) {}

  const std::filesystem::path& socket() const { return socket_; }
  Stub& stub() const { return *stub_; }

  template <class Request, class Response>
  Result<Response> call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                     Response*),
                        const Request& request, const CallOptions& options) const {
    const std::chrono::milliseconds timeout = options.timeout.value_or(timeout_);
    grpc::ClientContext context;
    set_timeout(context, timeout);
    Response response;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &response);
    if (!status.ok()) return std::unexpected(error_from_status(status, socket_, timeout));
    return response;
  }

 private:
  std::filesystem::path socket_;
  std::chrono::milliseconds timeout_;
  std::unique_ptr<Stub> stub_;
};

Result<std::filesystem::path> default_socket_path() {
  auto path = resolve_socket_path(current_platform(), current_environment());
  if (!path) {
    return std::unexpected(Error{.kind = ErrorKind::NoSocketPath,
                                 .code = StatusCode::FailedPrecondition,
                                 .message = path.error().message()});
  }
  return *path;
}

template <class Message>
struct MessageStream<Message>::Call {
  template <class Request>
  using Method = std::unique_ptr<grpc::ClientReader<Message>> (Stub::*)(grpc::ClientContext*,
                                                                        const Request&);

  template <class Request>
  Call(std::shared_ptr<const Connection> used, Method<Request> method, const Request& request,
       const CallOptions& options)
      : connection(std::move(used)),
        timeout(options.timeout.value_or(std::chrono::milliseconds::zero())) {
    set_timeout(context, timeout);
    reader = (connection->stub().*method)(&context, request);
  }

  ~Call() {
    if (end) return;
    context.TryCancel();
    Message unread;
    while (reader->Read(&unread)) {  // gRPC requires reading a stream to its end before Finish
    }
    // We cancelled the call, so its status does not matter.
    static_cast<void>(reader->Finish());
  }

  std::shared_ptr<const Connection> connection;
  std::chrono::milliseconds timeout;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<Message>> reader;
  std::optional<Result<void>> end;
};

template <class Message>
MessageStream<Message>::MessageStream(std::unique_ptr<Call> call) : call_(std::move(call)) {}
template <class Message>
MessageStream<Message>::MessageStream(MessageStream&&) noexcept = default;
template <class Message>
MessageStream<Message>& MessageStream<Message>::operator=(MessageStream&&) noexcept = default;
template <class Message>
MessageStream<Message>::~MessageStream() = default;

template <class Message>
Result<std::optional<Message>> MessageStream<Message>::next() {
  Call& call = *call_;
  if (!call.end) {
    Message message;
    if (call.reader->Read(&message)) return message;
    const grpc::Status status = call.reader->Finish();
    call.end.emplace();
    if (!status.ok()) {
      *call.end =
          std::unexpected(error_from_status(status, call.connection->socket(), call.timeout));
    }
  }
  if (!*call.end) return std::unexpected(call.end->error());
  return std::nullopt;
}

template <class Message>
void MessageStream<Message>::cancel() {
  call_->context.TryCancel();
}

template class MessageStream<v1::SandboxEvent>;
template class MessageStream<v1::SubscribeEventsResponse>;
template class MessageStream<v1::ReadExecOutputResponse>;
template class MessageStream<v1::ReadContainerLogsResponse>;
template class MessageStream<v1::WatchStatsResponse>;
template class MessageStream<v1::HoldSandboxResponse>;
template class MessageStream<v1::CopyOutResponse>;

struct CopyInStream::Call {
  Call(std::shared_ptr<const Connection> used, const v1::CopyInTarget& target,
       const CallOptions& options)
      : connection(std::move(used)),
        timeout(options.timeout.value_or(std::chrono::milliseconds::zero())) {
    set_timeout(context, timeout);
    writer = connection->stub().CopyIn(&context, &response);
    v1::CopyInRequest first;
    *first.mutable_target() = target;
    is_open = writer->Write(first);
  }

  ~Call() {
    if (has_finished) return;
    context.TryCancel();
    // We cancelled the call, so its status does not matter.
    static_cast<void>(writer->Finish());
  }

  std::shared_ptr<const Connection> connection;
  std::chrono::milliseconds timeout;
  grpc::ClientContext context;
  v1::CopyInResponse response;
  std::unique_ptr<grpc::ClientWriter<v1::CopyInRequest>> writer;
  bool is_open = false;
  bool has_finished = false;
};

CopyInStream::CopyInStream(std::unique_ptr<Call> call) : call_(std::move(call)) {}
CopyInStream::CopyInStream(CopyInStream&&) noexcept = default;
CopyInStream& CopyInStream::operator=(CopyInStream&&) noexcept = default;
CopyInStream::~CopyInStream() = default;

bool CopyInStream::write(std::string_view bytes) {
  v1::CopyInRequest request;
  while (call_->is_open && !bytes.empty()) {
    const std::string_view chunk = bytes.substr(0, kCopyInChunk);
    request.set_data(chunk.data(), chunk.size());
    call_->is_open = call_->writer->Write(request);
    bytes.remove_prefix(chunk.size());
  }
  return call_->is_open;
}

Result<v1::CopyInResponse> CopyInStream::finish() {
  Call& call = *call_;
  if (call.is_open) call.writer->WritesDone();
  const grpc::Status status = call.writer->Finish();
  call.has_finished = true;
  if (!status.ok()) {
    return std::unexpected(error_from_status(status, call.connection->socket(), call.timeout));
  }
  return call.response;
}

void CopyInStream::cancel() {
  call_->context.TryCancel();
}

struct AttachStream::Call {
  explicit Call(std::shared_ptr<const Connection> used, const CallOptions& options)
      : connection(std::move(used)),
        timeout(options.timeout.value_or(std::chrono::milliseconds::zero())) {
    set_timeout(context, timeout);
    stream = connection->stub().AttachExec(&context);
  }

  ~Call() {
    if (end) return;
    context.TryCancel();
    v1::AttachExecResponse unread;
    while (stream->Read(&unread)) {  // as of MessageStream
    }
    static_cast<void>(stream->Finish());
  }

  std::shared_ptr<const Connection> connection;
  std::chrono::milliseconds timeout;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AttachExecRequest, v1::AttachExecResponse>> stream;
  std::optional<Result<void>> end;
};

AttachStream::AttachStream(std::unique_ptr<Call> call) : call_(std::move(call)) {}
AttachStream::AttachStream(AttachStream&&) noexcept = default;
AttachStream& AttachStream::operator=(AttachStream&&) noexcept = default;
AttachStream::~AttachStream() = default;

bool AttachStream::send(const v1::AttachExecRequest& request) {
  return call_->stream->Write(request);
}

Result<std::optional<v1::AttachExecResponse>> AttachStream::next() {
  Call& call = *call_;
  if (!call.end) {
    v1::AttachExecResponse response;
    if (call.stream->Read(&response)) return response;
    const grpc::Status status = call.stream->Finish();
    call.end.emplace();
    if (!status.ok()) {
      *call.end =
          std::unexpected(error_from_status(status, call.connection->socket(), call.timeout));
    }
  }
  if (!*call.end) return std::unexpected(call.end->error());
  return std::nullopt;
}

void AttachStream::cancel() {
  call_->context.TryCancel();
}

RawClient::RawClient(std::shared_ptr<const Connection> connection)
    : connection_(std::move(connection)) {}

Result<RawClient> RawClient::open(const ClientOptions& options) {
  std::filesystem::path socket = options.socket;
  if (socket.empty()) {
    auto found = default_socket_path();
    if (!found) return std::unexpected(found.error());
    socket = *found;
  }
  if (socket.is_relative()) {
    return std::unexpected(
        Error{.kind = ErrorKind::NoSocketPath,
              .code = StatusCode::InvalidArgument,
              .message = "socket path \"" + socket.string() + "\" is not absolute"});
  }
  if (socket.string().size() > kMaxSocketPathSize) {
    return std::unexpected(unreachable_error(socket, ""));
  }
  return RawClient(std::make_shared<const Connection>(std::move(socket), options.timeout));
}

const std::filesystem::path& RawClient::socket() const {
  return connection_->socket();
}

void RawClient::wait_until_reachable(std::chrono::milliseconds limit,
                                     const std::stop_token& stop) const {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  set_timeout(context, limit);
  const std::stop_callback on_stop(stop, [&context] { context.TryCancel(); });
  v1::PingResponse response;
  // The caller's next call reports errors.
  static_cast<void>(connection_->stub().Ping(&context, v1::PingRequest(), &response));
}

Result<v1::PingResponse> RawClient::ping(const v1::PingRequest& request,
                                         const CallOptions& options) const {
  return connection_->call(&Stub::Ping, request, options);
}

Result<v1::CreateSandboxResponse> RawClient::create_sandbox(const v1::CreateSandboxRequest& request,
                                                            const CallOptions& options) const {
  return connection_->call(&Stub::CreateSandbox, request, options);
}

Result<v1::GetSandboxResponse> RawClient::get_sandbox(const v1::GetSandboxRequest& request,
                                                      const CallOptions& options) const {
  return connection_->call(&Stub::GetSandbox, request, options);
}

Result<v1::ListSandboxesResponse> RawClient::list_sandboxes(const v1::ListSandboxesRequest& request,
                                                            const CallOptions& options) const {
  return connection_->call(&Stub::ListSandboxes, request, options);
}

Result<v1::AcceptedResponse> RawClient::resume_sandbox(const v1::ResumeSandboxRequest& request,
                                                       const CallOptions& options) const {
  return connection_->call(&Stub::ResumeSandbox, request, options);
}

Result<v1::AcceptedResponse> RawClient::stop_sandbox(const v1::StopSandboxRequest& request,
                                                     const CallOptions& options) const {
  return connection_->call(&Stub::StopSandbox, request, options);
}

Result<v1::AcceptedResponse> RawClient::delete_sandbox(const v1::DeleteSandboxRequest& request,
                                                       const CallOptions& options) const {
  return connection_->call(&Stub::DeleteSandbox, request, options);
}

Result<v1::DeleteSandboxesResponse> RawClient::delete_sandboxes(
    const v1::DeleteSandboxesRequest& request, const CallOptions& options) const {
  return connection_->call(&Stub::DeleteSandboxes, request, options);
}

Result<v1::CreateExecResponse> RawClient::create_exec(const v1::CreateExecRequest& request,
                                                      const CallOptions& options) const {
  return connection_->call(&Stub::CreateExec, request, options);
}

Result<v1::AcceptedResponse> RawClient::cancel_exec(const v1::CancelExecRequest& request,
                                                    const CallOptions& options) const {
  return connection_->call(&Stub::CancelExec, request, options);
}

Result<v1::GetExecResponse> RawClient::get_exec(const v1::GetExecRequest& request,
                                                const CallOptions& options) const {
  return connection_->call(&Stub::GetExec, request, options);
}

Result<v1::ListActiveExecsResponse> RawClient::list_active_execs(
    const v1::ListActiveExecsRequest& request, const CallOptions& options) const {
  return connection_->call(&Stub::ListActiveExecs, request, options);
}

Result<v1::ListExecsResponse> RawClient::list_execs(const v1::ListExecsRequest& request,
                                                    const CallOptions& options) const {
  return connection_->call(&Stub::ListExecs, request, options);
}

Result<v1::GetStatsResponse> RawClient::get_stats(const v1::GetStatsRequest& request,
                                                  const CallOptions& options) const {
  return connection_->call(&Stub::GetStats, request, options);
}

Result<v1::DiagnoseResponse> RawClient::diagnose(const v1::DiagnoseRequest& request,
                                                 const CallOptions& options) const {
  return connection_->call(&Stub::Diagnose, request, options);
}

EventStream RawClient::subscribe_sandbox_events(const v1::SubscribeSandboxEventsRequest& request,
                                                const CallOptions& options) const {
  return EventStream(std::make_unique<EventStream::Call>(connection_, &Stub::SubscribeSandboxEvents,
                                                         request, options));
}

AllEventsStream RawClient::subscribe_events(const v1::SubscribeEventsRequest& request,
                                            const CallOptions& options) const {
  return AllEventsStream(std::make_unique<AllEventsStream::Call>(
      connection_, &Stub::SubscribeEvents, request, options));
}

ExecOutputStream RawClient::read_exec_output(const v1::ReadExecOutputRequest& request,
                                             const CallOptions& options) const {
  return ExecOutputStream(std::make_unique<ExecOutputStream::Call>(
      connection_, &Stub::ReadExecOutput, request, options));
}

ContainerLogStream RawClient::read_container_logs(const v1::ReadContainerLogsRequest& request,
                                                  const CallOptions& options) const {
  return ContainerLogStream(std::make_unique<ContainerLogStream::Call>(
      connection_, &Stub::ReadContainerLogs, request, options));
}

StatsStream RawClient::watch_stats(const v1::WatchStatsRequest& request,
                                   const CallOptions& options) const {
  return StatsStream(
      std::make_unique<StatsStream::Call>(connection_, &Stub::WatchStats, request, options));
}

HoldStream RawClient::hold_sandbox(const v1::HoldSandboxRequest& request,
                                   const CallOptions& options) const {
  return HoldStream(
      std::make_unique<HoldStream::Call>(connection_, &Stub::HoldSandbox, request, options));
}

AttachStream RawClient::attach_exec(const CallOptions& options) const {
  return AttachStream(std::make_unique<AttachStream::Call>(connection_, options));
}

CopyOutStream RawClient::copy_out(const v1::CopyOutRequest& request,
                                  const CallOptions& options) const {
  return CopyOutStream(
      std::make_unique<CopyOutStream::Call>(connection_, &Stub::CopyOut, request, options));
}

CopyInStream RawClient::copy_in(const v1::CopyInTarget& target, const CallOptions& options) const {
  return CopyInStream(std::make_unique<CopyInStream::Call>(connection_, target, options));
}

}  // namespace agbox::sdk
