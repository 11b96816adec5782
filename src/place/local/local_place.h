// SPDX-License-Identifier: Apache-2.0
// The machine of this process as a place: Unix sockets to guests, log files, the host's firewall.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "guestlink/guest_link.h"
#include "ingress/forbidden_sources.h"
#include "ingress/tool_sources.h"
#include "isolation/host_isolation.h"
#include "place/local/local_sandbox_place.h"
#include "place/local/user_limits.h"
#include "place/place.h"

namespace agbox {

struct LocalPlaceOptions {
  std::string instance_id;
  std::filesystem::path state_root;
  std::filesystem::path guest_program;  // as it was installed; a copy of it goes into containers
  std::filesystem::path output_root;    // of execs
  std::filesystem::path home{};         // of the daemon's user; "~" of a source
  ToolSockets tool_sockets{};
  std::filesystem::path devices = "/dev";
  // Files of this daemon and sockets of the engine, which no sandbox may see.
  std::vector<std::filesystem::path> forbidden_sources{};
  // The files that list the resolvers of this host; none if they are configured.
  std::vector<std::filesystem::path> resolver_files{};
  guestlink::LinkLimits guest_limits{};
  // How long the sources of one create or start may take.
  std::chrono::milliseconds source_limit{15000};
};

class LocalPlace final : public Place {
 public:
  // Copies the guest program. The isolation outlives the place, which starts and stops it; what may
  // block on a disk runs on `blocking`.
  static Result<std::unique_ptr<LocalPlace>> create(const asio::any_io_executor& executor,
                                                    asio::any_io_executor blocking,
                                                    HostIsolation& isolation,
                                                    LocalPlaceOptions options, Logger log);

  void describe(store::v1::CreatedWith& created_with) const override;
  asio::awaitable<Result<std::unique_ptr<MountPins>>> resolve_mounts(
      v1::CreateSpec& spec, store::v1::CreatedWith& created_with,
      std::string engine_directory) override;
  asio::awaitable<Result<std::optional<TakenPort>>> find_taken_port(PortMappings ports) override;
  std::unique_ptr<SandboxPlace> open(const std::string& sandbox_id,
                                     GuestListener& listener) override;
  std::unique_ptr<SandboxPlace> open_companion(const std::string& sandbox_id,
                                               const std::string& companion,
                                               GuestListener& listener) override;
  asio::awaitable<void> disconnect() override;

  asio::awaitable<Result<>> start_isolation(std::vector<Ipv4Address> resolvers,
                                            std::function<void()> on_change) override;
  asio::awaitable<Result<>> set_resolvers(std::vector<Ipv4Address> resolvers) override;
  asio::awaitable<Result<>> stop_isolation(bool remove_rules) override;
  IsolationHealth isolation_health() const override;
  asio::awaitable<void> follow_resolvers(
      std::function<void(const std::vector<Ipv4Address>&)> on_change) override;

  std::string limits_shortcoming() override;

  asio::awaitable<Result<std::vector<std::string>>> remove_unclaimed(
      std::function<std::set<std::string>()> claimed_sandbox_ids) override;
  asio::awaitable<Result<std::vector<std::string>>> list_outputs() override;
  asio::awaitable<Result<>> remove_output(std::string sandbox_id,
                                          store::v1::CreatedWith created_with) override;
  asio::awaitable<v1::DiagnoseResponse> diagnose(PlaceDiagnosisRequest request) override;

  // For tests that block it: where the files of execs are created.
  asio::any_io_executor exec_files() { return shared_.spare_files.executor(); }

 private:
  LocalPlace(const asio::any_io_executor& executor, asio::any_io_executor blocking,
             HostIsolation& isolation, LocalPlaceOptions options, Logger log);

  void log_tools(const ResolvedTools& tools) const;
  std::vector<SandboxGuest> guests() const;
  asio::awaitable<void> search_holders(std::vector<KernelBudget> budgets);

  LocalPlaceOptions options_;  // with the copy of the guest program
  // Of what the kernel refused lately; from the latest search.
  BudgetHolders holders_;
  bool is_searching_ = false;
  std::chrono::steady_clock::time_point next_search_{};
  LocalResources shared_;
};

}  // namespace agbox
