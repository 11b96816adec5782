// SPDX-License-Identifier: Apache-2.0
#include "rpc/server.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <climits>
#include <string>
#include <utility>

#include "agbox/v1/service.grpc.pb.h"
#include "base/check.h"
#include "rpc/reflection_service.h"

namespace agbox {
namespace {

constexpr int kMaxReceivedMessageBytes = 4 << 20;
// A connection without an HTTP/2 preface by then is closed.
constexpr int kHandshakeTimeoutMilliseconds = 5'000;
constexpr int kMaxStreamsPerConnection = 10'000;
// For all connections; above it gRPC throttles and then drops the largest.
constexpr std::size_t kMaxBufferBytes = std::size_t{256} << 20;
// Only gRPC's own reflection (v1alpha) uses blocking threads, one per open stream.
constexpr int kMaxBlockingThreads = 8;

// gRPC's own messages, which would otherwise appear on stderr between our lines.
void log_grpc_message(gpr_log_func_args* message) {
  const Logger log = Logger().with({"daemon", "agboxd"}).with({"library", "grpc"});
  switch (message->severity) {
    case GPR_LOG_SEVERITY_DEBUG:
    case GPR_LOG_SEVERITY_INFO:
      return log.debug(message->message);
    case GPR_LOG_SEVERITY_ERROR:
      return log.warn(message->message);
  }
}

// gRPC shuts itself down with its last object, which waits up to 10 s for lingering connections.
// This reference prevents that; the process ends soon anyway.
void keep_grpc_up() {
  [[maybe_unused]] static const bool is_up = [] {
    grpc_init();
    return true;
  }();
}

}  // namespace

struct RpcServer::Running {
  std::unique_ptr<SandboxService> service;
  ReflectionService reflection{{v1::SandboxService::service_full_name(), "grpc.health.v1.Health",
                                "grpc.reflection.v1.ServerReflection",
                                "grpc.reflection.v1alpha.ServerReflection"}};
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  std::unique_ptr<grpc::Server> server;
};

RpcServer::RpcServer(ControlLoop& loop, std::unique_ptr<Running> running)
    : loop_(loop), running_(std::move(running)) {}

RpcServer::~RpcServer() {
  if (shutdown_.joinable()) shutdown_.join();
  // After shut_down() nothing runs any more; without it, nothing is waited for.
  running_->server->Shutdown(std::chrono::system_clock::now());
}

Result<std::unique_ptr<RpcServer>> RpcServer::start(ControlLoop& loop, ControlPlane& plane,
                                                    DaemonIdentity identity, const Logger& log) {
  keep_grpc_up();
  gpr_set_log_function(log_grpc_message);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();

  auto running = std::make_unique<Running>();
  running->service = make_sandbox_service(std::move(identity), loop, plane, log);
  grpc::ResourceQuota quota("agboxd");
  quota.Resize(kMaxBufferBytes);
  quota.SetMaxThreads(kMaxBlockingThreads);
  grpc::ServerBuilder builder;
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(kMaxReceivedMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  // The kernel reports a client that is gone. One that is suspended, with Ctrl-Z, is still there
  // and holds what it holds; by default gRPC would ask it every two hours and disconnect it.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, INT_MAX);
  // gRPC's reflection needs only one queue and one poller.
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS, 1);
  builder.RegisterService(&running->service->grpc_service());
  builder.RegisterService(&running->reflection);
  running->acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      grpc::InsecureServerCredentials());
  running->server = builder.BuildAndStart();
  if (!running->server) {
    return fail(reason::kHostNotReady,
                "gRPC could not start its server; see the log for gRPC's message");
  }
  running->server->GetHealthCheckService()->SetServingStatus(
      v1::SandboxService::service_full_name(), true);
  log.debug("gRPC server started", {{"grpc_version", grpc::Version()}});
  return std::unique_ptr<RpcServer>(new RpcServer(loop, std::move(running)));
}

void RpcServer::serve(UniqueFd connection) {
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.fd = connection.release();  // gRPC closes it, even if it refuses it
  running_->acceptor->HandleNewConnection(&parameters);
}

void RpcServer::shut_down(std::chrono::milliseconds grace, std::function<void()> done) {
  AGBOX_ON_CONTROL_THREAD(loop_);
  AGBOX_CHECK(!shutdown_.joinable(), "shut_down() is called once");
  running_->service->end_streams();
  shutdown_ = std::jthread([this, grace, done = std::move(done)] {
    running_->server->Shutdown(std::chrono::system_clock::now() + grace);
    loop_.post(done);
  });
}

}  // namespace agbox
