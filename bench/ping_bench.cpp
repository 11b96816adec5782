// SPDX-License-Identifier: Apache-2.0
// One client, two servers: every round sends one Ping to each, in random order, so that what else
// happens on the machine meets both arms alike.
//
//   ping_bench ROUNDS ARM=SOCKET...
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "agbox/v1/service.grpc.pb.h"

namespace {

constexpr int kWarmUpCalls = 50;
constexpr auto kDeadline = std::chrono::seconds(10);

struct Arm {
  std::string name;
  std::unique_ptr<agbox::v1::SandboxService::Stub> stub;
};

// Milliseconds of one Ping. An arm that errs ends the whole run: a partial table would lie.
double ping(const Arm& arm) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kDeadline);
  context.set_wait_for_ready(true);
  agbox::v1::PingResponse response;
  const auto started = std::chrono::steady_clock::now();
  const grpc::Status status = arm.stub->Ping(&context, {}, &response);
  const std::chrono::duration<double, std::milli> taken =
      std::chrono::steady_clock::now() - started;
  if (!status.ok()) {
    std::cerr << "ping_bench: " << arm.name << ": " << status.error_message() << "\n";
    std::exit(1);
  }
  return taken.count();
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 0;
  const std::string_view count = argc > 1 ? argv[1] : "";
  const auto parsed = std::from_chars(count.data(), count.data() + count.size(), rounds);
  if (argc < 3 || parsed.ec != std::errc() || rounds < 1) {
    std::cerr << "usage: ping_bench ROUNDS ARM=SOCKET...\n";
    return 2;
  }
  std::vector<Arm> arms;
  for (int i = 2; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const auto equals = argument.find('=');
    if (equals == std::string_view::npos) {
      std::cerr << "ping_bench: " << argument << " is not ARM=SOCKET\n";
      return 2;
    }
    const auto channel = grpc::CreateChannel("unix:" + std::string(argument.substr(equals + 1)),
                                             grpc::InsecureChannelCredentials());
    arms.push_back(
        {std::string(argument.substr(0, equals)), agbox::v1::SandboxService::NewStub(channel)});
  }
  for (const Arm& arm : arms) {
    for (int i = 0; i < kWarmUpCalls; ++i) ping(arm);
  }

  std::mt19937 random(std::random_device{}());
  std::cout << R"({"benchmark": "ping", "rounds": [)";
  for (int round = 0; round < rounds; ++round) {
    std::ranges::shuffle(arms, random);
    std::cout << (round == 0 ? "\n{" : ",\n{");
    std::string_view separator;
    for (const Arm& arm : arms) {
      std::cout << separator << '"' << arm.name << R"(": {"ms": )" << ping(arm) << "}";
      separator = ", ";
    }
    std::cout << "}";
  }
  std::cout << "\n]}\n";
  return 0;
}
