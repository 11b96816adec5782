// SPDX-License-Identifier: Apache-2.0
// The least that a gRPC server can be: one callback method, no store, no listener of its own. What
// the daemon is measured against where no other daemon is at hand.
//
//   echo_server SOCKET     serves Ping on the Unix socket until SIGTERM; prints "listening" once
#include <grpcpp/grpcpp.h>
#include <pthread.h>
#include <signal.h>

#include <iostream>
#include <string>

#include "agbox/v1/service.grpc.pb.h"

namespace {

class EchoService final : public agbox::v1::SandboxService::CallbackService {
  grpc::ServerUnaryReactor* Ping(grpc::CallbackServerContext* context,
                                 const agbox::v1::PingRequest*,
                                 agbox::v1::PingResponse* response) override {
    response->set_version("0.0.0");
    response->set_daemon("echo");
    // As long as a real answer, so that both arms carry the same bytes.
    response->set_instance_id("00000000-0000-0000-0000-000000000000");
    auto* call = context->DefaultReactor();
    call->Finish(grpc::Status::OK);
    return call;
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: echo_server SOCKET\n";
    return 2;
  }
  // Blocked before gRPC makes its threads, so that only sigwait() below sees them.
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);

  EchoService service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(std::string("unix:") + argv[1], grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (server == nullptr) {
    std::cerr << "echo_server: cannot listen on " << argv[1] << "\n";
    return 1;
  }
  std::cout << "listening" << std::endl;
  int signal_number = 0;
  sigwait(&ending, &signal_number);
  server->Shutdown();
  return 0;
}
