// SPDX-License-Identifier: Apache-2.0
// The smallest place: guests are entries of a map, without sockets, directories or descriptors, and
// isolation is always in place. An exec runs until the test ends it, or a cancel.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "place/place.h"
#include "support/memory/memory_machine.h"

namespace agbox {

class MemorySandboxPlace final : public SandboxPlace {
 public:
  MemorySandboxPlace(asio::any_io_executor executor, MemoryMachine& machine, std::string sandbox_id,
                     GuestListener& listener)
      : executor_(std::move(executor)),
        machine_(machine),
        id_(std::move(sandbox_id)),
        listener_(listener) {
    machine_.on_start[id_] = [this] { connect(); };
    machine_.on_end[id_] = [this] {
      is_connected_ = false;
      report([](GuestListener& listener) { listener.guest_lost("its container ended"); });
    };
  }
  ~MemorySandboxPlace() override {
    machine_.on_start.erase(id_);
    machine_.on_end.erase(id_);
  }

  asio::awaitable<GuestResult<Attachments>> prepare(SandboxFacts&) override {
    co_return Attachments{};
  }
  asio::awaitable<GuestResult<>> adopt(const SandboxFacts&) override { co_return GuestResult<>{}; }
  asio::awaitable<GuestResult<>> reconnect(const SandboxFacts&) override {
    if (const MemoryWorkload* workload = machine_.find(id_); workload && workload->is_running) {
      connect();
    }
    co_return GuestResult<>{};
  }
  void rest() override { is_connected_ = false; }
  asio::awaitable<Result<>> remove(const SandboxFacts&) override { co_return Result<>{}; }

  void keep(std::unique_ptr<MountPins>) override {}
  asio::awaitable<Result<>> pin_mounts(const SandboxFacts&) override { co_return Result<>{}; }
  Result<> check_mounts(const SandboxFacts&, const GuestHello&) override { return {}; }
  GuestResult<> expect(const SandboxFacts&, std::int64_t) override { return {}; }
  void container_may_have_ended() override {}
  asio::awaitable<GuestResult<GuestHello>> hello(Deadline) override {
    if (!is_connected_) co_return guest_fail(GuestErrorKind::Silent, "no guest");
    co_return hello_now();
  }
  asio::awaitable<Verification> verify(VerifyFrom) override { co_return Verification{}; }
  asio::awaitable<GuestResult<CopyOutcome>> copy_in(PlannedCopy copy,
                                                    std::function<void(std::string)>) override {
    machine_.workloads.at(id_).copies.push_back(copy.spec.target());
    co_return CopyOutcome{};
  }
  std::string new_secret() const override { return "secret"; }
  GuestResult<> go(const GoOrder&) override {
    machine_.workloads.at(id_).has_passed = true;
    return {};
  }
  asio::awaitable<GuestResult<EntrypointOutcome>> entrypoint(Deadline) override {
    co_return EntrypointOutcome{};
  }

  bool is_connected() const override { return is_connected_; }
  Result<> takes_execs() const override { return {}; }
  bool guest_is_current() const override { return true; }
  asio::awaitable<Result<OutputPaths>> create_output(store::v1::CreatedWith,
                                                     std::string exec_id) override {
    co_return OutputPaths{
        .root = "memory", .stdout_path = exec_id + ".out", .stderr_path = exec_id + ".err"};
  }
  asio::awaitable<void> discard_output(std::string) override { co_return; }
  asio::awaitable<Result<>> open_output(std::string, store::v1::Exec) override {
    co_return Result<>{};
  }
  void close_output(const std::string&) override {}
  asio::awaitable<std::string> output_tail(store::v1::Exec) override { co_return ""; }
  asio::awaitable<Result<>> explain_output(store::v1::Exec, std::string) override {
    co_return Result<>{};
  }
  Result<> start_exec(const ExecOrder& order) override {
    machine_.workloads.at(id_).execs.insert(order.exec_id);
    return {};
  }
  Result<> cancel_exec(const std::string& exec_id, std::chrono::milliseconds) override {
    end_exec({.exec_id = exec_id, .how = ExecEnd::How::Cancelled, .detail = {}});
    return {};
  }
  asio::awaitable<Result<ExecInput>> attach_input(std::string exec_id) override {
    co_return fail(reason::kExecInputClosed, "exec " + exec_id + " reads nothing");
  }
  Result<> end_input(const std::string&) override { return {}; }
  Result<> resize_terminal(const std::string&, TerminalSize) override { return {}; }
  Result<> signal_exec(const std::string&, int) override { return {}; }
  Result<> forget_exec(const std::string& exec_id) override {
    if (MemoryWorkload* workload = machine_.find(id_)) workload->execs.erase(exec_id);
    return {};
  }

  // There are no files.
  asio::awaitable<Result<FilesReport>> transfer_files(FileOrder order,
                                                      std::function<void(FilePipe)>) override {
    co_return fail(reason::kInvalidArgument, order.path + ": does not exist");
  }

  // As its guest would report it.
  void end_exec(ExecEnd end) {
    report([end = std::move(end)](GuestListener& listener) { listener.exec_ended(end); });
  }

 private:
  GuestHello hello_now() const {
    const MemoryWorkload& workload = machine_.workloads.at(id_);
    GuestHello hello;
    hello.phase = workload.has_passed ? GuestPhase::Passed : GuestPhase::Prepared;
    hello.execs = {workload.execs.begin(), workload.execs.end()};
    return hello;
  }
  void connect() {
    is_connected_ = true;
    report([hello = hello_now()](GuestListener& listener) { listener.guest_connected(hello); });
  }
  // Later, as everything that comes over a connection.
  void report(std::function<void(GuestListener&)> what) {
    asio::post(executor_, [this, alive = std::weak_ptr(alive_), what = std::move(what)] {
      if (!alive.expired()) what(listener_);
    });
  }

  asio::any_io_executor executor_;
  MemoryMachine& machine_;
  std::string id_;
  GuestListener& listener_;
  bool is_connected_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class MemoryPlace final : public Place {
 public:
  MemoryPlace(asio::any_io_executor executor, MemoryMachine& machine)
      : executor_(std::move(executor)), machine_(machine) {}

  void describe(store::v1::CreatedWith&) const override {}
  asio::awaitable<Result<std::unique_ptr<MountPins>>> resolve_mounts(v1::CreateSpec&,
                                                                     store::v1::CreatedWith&,
                                                                     std::string) override {
    co_return nullptr;
  }
  asio::awaitable<Result<std::optional<TakenPort>>> find_taken_port(PortMappings) override {
    co_return std::nullopt;
  }
  std::unique_ptr<SandboxPlace> open(const std::string& sandbox_id,
                                     GuestListener& listener) override {
    auto place = std::make_unique<MemorySandboxPlace>(executor_, machine_, sandbox_id, listener);
    opened_[sandbox_id] = place.get();
    return place;
  }
  std::unique_ptr<SandboxPlace> open_companion(const std::string& sandbox_id,
                                               const std::string& companion,
                                               GuestListener& listener) override {
    return std::make_unique<MemorySandboxPlace>(executor_, machine_, sandbox_id + "/" + companion,
                                                listener);
  }
  asio::awaitable<void> disconnect() override { co_return; }

  asio::awaitable<Result<>> start_isolation(std::vector<Ipv4Address>,
                                            std::function<void()>) override {
    co_return Result<>{};
  }
  asio::awaitable<Result<>> set_resolvers(std::vector<Ipv4Address>) override {
    co_return Result<>{};
  }
  asio::awaitable<Result<>> stop_isolation(bool) override { co_return Result<>{}; }
  IsolationHealth isolation_health() const override { return {}; }
  asio::awaitable<void> follow_resolvers(
      std::function<void(const std::vector<Ipv4Address>&)>) override {
    co_return;
  }

  std::string limits_shortcoming() override { return {}; }

  asio::awaitable<Result<std::vector<std::string>>> remove_unclaimed(
      std::function<std::set<std::string>()>) override {
    co_return std::vector<std::string>{};
  }
  asio::awaitable<Result<std::vector<std::string>>> list_outputs() override {
    co_return std::vector<std::string>{};
  }
  asio::awaitable<Result<>> remove_output(std::string, store::v1::CreatedWith) override {
    co_return Result<>{};
  }
  asio::awaitable<v1::DiagnoseResponse> diagnose(PlaceDiagnosisRequest) override {
    co_return v1::DiagnoseResponse{};
  }

  MemorySandboxPlace& of(const std::string& sandbox_id) { return *opened_.at(sandbox_id); }

 private:
  asio::any_io_executor executor_;
  MemoryMachine& machine_;
  std::map<std::string, MemorySandboxPlace*> opened_;
};

}  // namespace agbox
