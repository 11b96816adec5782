// SPDX-License-Identifier: Apache-2.0
// One sandbox on this machine: its guest's link, the directory that both sides of the link share,
// and the files of its execs that wait to be started.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "async/disk_calls.h"
#include "async/semaphore.h"
#include "async/task_group.h"
#include "base/log.h"
#include "base/thread_checker.h"
#include "execlog/exec_logs.h"
#include "execlog/spare_files.h"
#include "guestlink/guest_link.h"
#include "guestlink/link_directory.h"
#include "ingress/forbidden_sources.h"
#include "ingress/mount_source.h"
#include "isolation/host_isolation.h"
#include "place/local/source_calls.h"
#include "place/local/user_limits.h"
#include "place/place.h"

namespace agbox {

class LocalSandboxPlace;

// What the sandboxes of a LocalPlace share.
struct LocalResources {
  asio::any_io_executor executor;
  asio::any_io_executor blocking;  // for what may block on a disk
  HostIsolation& isolation;
  std::string instance_id;
  std::filesystem::path link_root;  // of new sandboxes
  guestlink::LinkLimits guest_limits;
  std::shared_ptr<const ForbiddenSources> forbidden_sources;
  Logger log;
  SpareFiles spare_files;
  SourceCalls source_calls;                         // for the sources of mounts
  Semaphore copies;                                 // that have begun to pack lately
  DiskCalls copy_calls;                             // for the trees that are packed
  std::set<std::filesystem::path> being_removed{};  // link directories that no sandbox claims
  std::set<LocalSandboxPlace*> sandboxes{};
  ThreadChecker thread{};
  TaskGroup conversations;  // of all links; last, because they use what is above
};

// What tools show, and then the spec's mounts, each in their order.
struct LocalMountPins final : MountPins {
  explicit LocalMountPins(std::vector<PinnedSource> pinned) : sources(std::move(pinned)) {}
  std::vector<PinnedSource> sources;
};

class LocalSandboxPlace final : public SandboxPlace {
 public:
  // `companion` is empty for the primary container.
  LocalSandboxPlace(LocalResources& shared, std::string sandbox_id, std::string companion,
                    GuestListener& listener);
  ~LocalSandboxPlace() override;
  LocalSandboxPlace(const LocalSandboxPlace&) = delete;

  asio::awaitable<GuestResult<Attachments>> prepare(SandboxFacts& facts) override;
  asio::awaitable<GuestResult<>> adopt(const SandboxFacts& facts) override;
  asio::awaitable<GuestResult<>> reconnect(const SandboxFacts& facts) override;
  void rest() override;
  asio::awaitable<Result<>> remove(const SandboxFacts& facts) override;

  void keep(std::unique_ptr<MountPins> pins) override;
  asio::awaitable<Result<>> pin_mounts(const SandboxFacts& facts) override;
  Result<> check_mounts(const SandboxFacts& facts, const GuestHello& hello) override;
  GuestResult<> expect(const SandboxFacts& facts, std::int64_t engine_pid) override;
  void container_may_have_ended() override;
  asio::awaitable<GuestResult<GuestHello>> hello(Deadline deadline) override;
  asio::awaitable<Verification> verify(VerifyFrom from) override;
  asio::awaitable<GuestResult<CopyOutcome>> copy_in(
      PlannedCopy copy, std::function<void(std::string phase)> progress) override;
  std::string new_secret() const override;
  GuestResult<> go(const GoOrder& order) override;
  asio::awaitable<GuestResult<EntrypointOutcome>> entrypoint(Deadline deadline) override;

  bool is_connected() const override;
  Result<> takes_execs() const override;
  bool guest_is_current() const override;
  asio::awaitable<Result<OutputPaths>> create_output(store::v1::CreatedWith created_with,
                                                     std::string exec_id) override;
  asio::awaitable<void> discard_output(std::string exec_id) override;
  asio::awaitable<Result<>> open_output(std::string exec_id, store::v1::Exec record) override;
  void close_output(const std::string& exec_id) override;
  asio::awaitable<std::string> output_tail(store::v1::Exec record) override;
  asio::awaitable<Result<>> explain_output(store::v1::Exec record, std::string reason) override;
  Result<> start_exec(const ExecOrder& order) override;
  Result<> cancel_exec(const std::string& exec_id, std::chrono::milliseconds grace) override;
  asio::awaitable<Result<ExecInput>> attach_input(std::string exec_id) override;
  Result<> end_input(const std::string& exec_id) override;
  Result<> resize_terminal(const std::string& exec_id, TerminalSize size) override;
  Result<> signal_exec(const std::string& exec_id, int number) override;
  Result<> forget_exec(const std::string& exec_id) override;
  asio::awaitable<Result<FilesReport>> transfer_files(
      FileOrder order, std::function<void(FilePipe)> on_open) override;

  // Its pid is 0 if it is not connected, or not visible from here.
  SandboxGuest guest() const;

  // For tests that send reports as a guest.
  GuestListener& listener() { return listener_; }

 private:
  // The root that the sandbox was created with.
  std::filesystem::path link_root(const SandboxFacts& facts) const;
  void close_link();
  void open_link(guestlink::LinkDirectory directory);
  using Link = std::shared_ptr<guestlink::GuestLink>;
  GuestResult<Link> link() const;

  LocalResources& shared_;
  const std::string sandbox_id_;
  const std::string companion_;
  GuestListener& listener_;
  std::unique_ptr<LocalMountPins> pins_;  // of a start that is due or in progress
  Link link_;  // none before prepare() or adopt(); shared with its coroutines
  std::map<std::string, ExecLogs> outputs_;  // open for start_exec(), by exec
};

}  // namespace agbox
