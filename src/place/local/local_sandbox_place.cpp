// SPDX-License-Identifier: Apache-2.0
#include "place/local/local_sandbox_place.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include "async/run_blocking.h"
#include "base/check.h"
#include "execlog/log_file.h"
#include "guestlink/orders.h"
#include "guestlink/peer.h"
#include "guestwire/place.h"
#include "model/object_names.h"
#include "model/reasons.h"
#include "model/spec/builtin_tools.h"
#include "place/local/copy_in.h"
#include "place/local/file_transfer.h"

namespace agbox {
namespace {

using guestlink::GuestLink;
using guestlink::LinkDirectory;

constexpr const char* kPaused = "the sandbox is paused";
// How long a guest may take to pass on a pipe. It does that at once.
constexpr std::chrono::seconds kLongestAttach{10};
constexpr const char* kOutputInside = "/var/log/agents-sandbox/";

// The stored record of the primary container; empty if the sandbox has none.
store::v1::Container primary_of(const SandboxFacts& facts) {
  const auto primary = facts.containers.find("");
  return primary == facts.containers.end() ? store::v1::Container() : primary->second;
}

// What a container has to see of this machine.
struct Directories {
  LinkDirectory link;
  std::filesystem::path output;
};

// A file, directory or socket of the host that the container shows.
struct HostMount {
  std::string source;
  std::string target;
  bool is_writable = false;
  SourceUse use = SourceUse::Mount;
  const store::v1::MountSource* found = nullptr;  // none if it is not known
};

SourceUse use_of(const v1::BuiltinResource& shown) {
  if (shown.socket()) return SourceUse::ToolSocket;
  const ToolResource* const resource = find_tool_resource(shown.id());
  const bool is_file = resource != nullptr && resource->kind == ToolResource::Kind::File;
  return is_file ? SourceUse::ToolFile : SourceUse::ToolDirectory;
}

// In the order of the pins.
std::vector<HostMount> mounts_of(const SandboxFacts& facts) {
  std::vector<HostMount> mounts;
  for (const store::v1::ToolSource& tool : facts.created_with.tools()) {
    const v1::BuiltinResource& resource = tool.resource();
    if (resource.shadow_copy()) continue;
    mounts.push_back({.source = resource.source(),
                      .target = resource.target(),
                      .is_writable = resource.writable(),
                      .use = use_of(resource),
                      .found = &tool.found()});
  }
  const auto& declared = facts.spec.create_spec.mounts();
  for (int i = 0; i < declared.size(); ++i) {
    const bool is_known = i < facts.created_with.mounts_size();
    mounts.push_back({.source = declared[i].source(),
                      .target = declared[i].target(),
                      .is_writable = declared[i].writable(),
                      .found = is_known ? &facts.created_with.mounts(i) : nullptr});
  }
  return mounts;
}

KnownSource known_source(std::string path, const store::v1::MountSource& found, SourceUse use,
                         uid_t user) {
  return {.path = std::move(path),
          .identity = {.device = found.device(), .inode = found.inode()},
          .birth_time = found.birth_time(),
          .boot_id = found.boot_id(),
          .use = use,
          .user = user};
}

guestlink::Expectation expectation_of(const SandboxFacts& facts) {
  guestlink::Expectation expectation;
  expectation.uid = facts.created_with.host_uid();
  expectation.gid = facts.created_with.host_gid();
  const auto& gpus = facts.created_with.gpu_gids();
  expectation.supplemental_gids.assign(gpus.begin(), gpus.end());
  return expectation;
}

}  // namespace

LocalSandboxPlace::LocalSandboxPlace(LocalResources& shared, std::string sandbox_id,
                                     std::string companion, GuestListener& listener)
    : shared_(shared),
      sandbox_id_(std::move(sandbox_id)),
      companion_(std::move(companion)),
      listener_(listener) {
  AGBOX_ON_ITS_THREAD(shared_.thread);
  shared_.sandboxes.insert(this);
}

LocalSandboxPlace::~LocalSandboxPlace() {
  rest();
  shared_.sandboxes.erase(this);
}

SandboxGuest LocalSandboxPlace::guest() const {
  const bool is_known = link_ && link_->is_connected();
  return {.sandbox_id = sandbox_id_, .pid = is_known ? link_->process().pid : 0};
}

// --- the guest's directory ---

std::filesystem::path LocalSandboxPlace::link_root(const SandboxFacts& facts) const {
  std::filesystem::path kept = facts.link_root();
  return kept.empty() ? shared_.link_root : kept;
}

void LocalSandboxPlace::open_link(LinkDirectory directory) {
  close_link();
  Logger log = shared_.log.with({"sandbox_id", sandbox_id_});
  if (!companion_.empty()) log = log.with({"companion", companion_});
  link_ = std::make_shared<GuestLink>(shared_.executor, std::move(directory), shared_.guest_limits,
                                      listener_, shared_.conversations, std::move(log));
}

asio::awaitable<GuestResult<Attachments>> LocalSandboxPlace::prepare(SandboxFacts& facts) {
  AGBOX_ON_ITS_THREAD(shared_.thread);
  const std::filesystem::path root = link_root(facts);
  if (shared_.being_removed.contains(LinkDirectory::path_of(root, sandbox_id_))) {
    co_return guest_fail(GuestErrorKind::Unavailable,
                         "what another sandbox left in the guest's directory is being removed");
  }
  auto made = co_await run_blocking(shared_.blocking,
                                    [root, created_with = facts.created_with, id = sandbox_id_,
                                     companion = companion_]() -> Result<Directories> {
                                      AGBOX_TRY(link, LinkDirectory::make(root, id, companion));
                                      AGBOX_TRY(output, make_exec_log_directory(created_with, id));
                                      return Directories{.link = std::move(link),
                                                         .output = std::move(output)};
                                    });
  if (!made) co_return guest_fail(GuestErrorKind::Refused, made.error().message());
  const auto identity = made->link.identity();
  store::v1::Container& primary = facts.containers[""];
  primary.set_guest_folder_device(identity.device);
  primary.set_guest_folder_inode(identity.inode);
  Attachments attachments{
      {.source = facts.created_with.guest_program(), .target = guestwire::kProgramInside},
      {.source = made->link.path(), .target = guestwire::kLinkDirectoryInside}};
  // What the primary's commands print is not for companions.
  if (companion_.empty()) {
    attachments.push_back({.source = made->output, .target = kOutputInside});
  }
  for (const HostMount& mount : mounts_of(facts)) {
    attachments.push_back(
        {.source = mount.source, .target = mount.target, .read_only = !mount.is_writable});
  }
  open_link(std::move(made->link));
  co_return attachments;
}

asio::awaitable<GuestResult<>> LocalSandboxPlace::adopt(const SandboxFacts& facts) {
  AGBOX_ON_ITS_THREAD(shared_.thread);
  const store::v1::Container primary = primary_of(facts);
  const guestlink::DirectoryIdentity identity{.device = primary.guest_folder_device(),
                                              .inode = primary.guest_folder_inode()};
  AGBOX_CO_TRY(directory,
               co_await run_blocking(shared_.blocking, [root = link_root(facts), id = sandbox_id_,
                                                        identity, companion = companion_] {
                 return LinkDirectory::adopt(root, id, identity, companion);
               }));
  open_link(std::move(directory));
  co_return GuestResult<>{};
}

asio::awaitable<GuestResult<>> LocalSandboxPlace::reconnect(const SandboxFacts& facts) {
  const store::v1::Container primary = primary_of(facts);
  guestlink::Expectation expectation = expectation_of(facts);
  expectation.secret = primary.secret();
  // What is not alive excludes no process: an earlier daemon may have seen other pids than this
  // one.
  expectation.process =
      guestlink::if_alive({.pid = primary.guest_pid(), .start_time = primary.guest_start_ticks()});
  AGBOX_CO_TRY_VOID(co_await adopt(facts));
  co_return link_->expect(std::move(expectation));
}

void LocalSandboxPlace::rest() {
  close_link();
  pins_.reset();
}

void LocalSandboxPlace::close_link() {
  AGBOX_ON_ITS_THREAD(shared_.thread);
  if (const Link former = std::exchange(link_, nullptr)) former->close();
}

asio::awaitable<Result<>> LocalSandboxPlace::remove(const SandboxFacts& facts) {
  rest();
  co_return co_await run_blocking(shared_.blocking,
                                  [path = LinkDirectory::path_of(link_root(facts), sandbox_id_)] {
                                    return LinkDirectory::remove(path);
                                  });
}

// --- a start of the container ---

GuestResult<LocalSandboxPlace::Link> LocalSandboxPlace::link() const {
  AGBOX_ON_ITS_THREAD(shared_.thread);
  if (link_) return link_;
  return guest_fail(GuestErrorKind::Silent, "sandbox " + sandbox_id_ + " has no link to a guest");
}

void LocalSandboxPlace::keep(std::unique_ptr<MountPins> pins) {
  AGBOX_ON_ITS_THREAD(shared_.thread);
  // The place opens its own kind only.
  pins_.reset(static_cast<LocalMountPins*>(pins.release()));
}

// The pins so far are kept until their successors exist.
asio::awaitable<Result<>> LocalSandboxPlace::pin_mounts(const SandboxFacts& facts) {
  AGBOX_ON_ITS_THREAD(shared_.thread);
  const std::vector<HostMount> mounts = mounts_of(facts);
  if (mounts.empty()) co_return Result<>{};
  std::vector<KnownSource> known;
  std::vector<std::string> names;
  for (const HostMount& mount : mounts) {
    if (mount.found == nullptr) {
      co_return fail(reason::kMountChanged, "mount source " + mount.source +
                                                ": what it was when the sandbox was created is not "
                                                "known; create the sandbox again");
    }
    known.push_back(
        known_source(mount.source, *mount.found, mount.use, facts.created_with.host_uid()));
    names.push_back(name_of(known.back()));
  }
  AGBOX_CO_TRY(pinned, co_await shared_.source_calls.run(
                           std::move(names),
                           [known, forbidden = shared_.forbidden_sources](InspectedNow& inspected) {
                             return reopen_mount_sources(known, *forbidden, &inspected);
                           }));
  pins_ = std::make_unique<LocalMountPins>(std::move(pinned));
  co_return Result<>{};
}

// expect() put them first.
Result<> LocalSandboxPlace::check_mounts(const SandboxFacts& facts, const GuestHello& hello) {
  AGBOX_ON_ITS_THREAD(shared_.thread);
  const std::vector<HostMount> mounts = mounts_of(facts);
  if (mounts.empty()) return {};
  const auto pins = std::exchange(pins_, nullptr);
  AGBOX_CHECK(pins && pins->sources.size() == mounts.size(), "mounts are pinned before a start");
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    const HostMount& mount = mounts[i];
    const GuestMount seen =
        i < hello.mounts.size()
            ? hello.mounts[i]
            : GuestMount{.target = {}, .failure = "its guest did not report it"};
    const FileIdentity found{.device = seen.device, .inode = seen.inode};
    if (seen.failure.empty() && found == pins->sources[i].identity) continue;
    const std::string why = seen.failure.empty()
                                ? "another file or directory was put there while it started"
                                : seen.failure;
    return fail(reason::kMountChanged, "mount target " + mount.target + " does not show " +
                                           mount.source + ": " + why +
                                           "; create the sandbox again");
  }
  return {};
}

GuestResult<> LocalSandboxPlace::expect(const SandboxFacts& facts, std::int64_t engine_pid) {
  AGBOX_TRY(guest, link());
  guestlink::Expectation expectation = expectation_of(facts);
  const store::v1::Container primary = primary_of(facts);
  expectation.engine_pid = engine_pid;
  expectation.started_by = guestlink::start_time_now();
  expectation.image_user = primary.image().user();
  std::set<std::filesystem::path> targets;
  for (const HostMount& mount : mounts_of(facts)) {
    expectation.mounts.push_back({.target = mount.target});
    targets.insert(mount.target);
  }
  for (const std::string& volume : primary.image().volumes()) {
    // A mount takes the place of the image's volume, and its owner is never changed.
    if (targets.contains((std::filesystem::path(volume) / ".").lexically_normal().parent_path()))
      continue;
    expectation.mounts.push_back({.target = volume, .anonymous_volume = true});
  }
  return guest->expect(std::move(expectation));
}

void LocalSandboxPlace::container_may_have_ended() {
  if (const auto guest = link()) (*guest)->container_may_have_ended();
}

asio::awaitable<GuestResult<GuestHello>> LocalSandboxPlace::hello(Deadline deadline) {
  AGBOX_CO_TRY(guest, link());
  co_return co_await guest->hello(deadline);
}

// Uses no member after the first suspension: the sandbox may be purged while the kernel is queried.
asio::awaitable<Verification> LocalSandboxPlace::verify(VerifyFrom from) {
  // A paused guest may still be connected, and would not respond.
  const bool skips_guest = from == VerifyFrom::Outside && is_connected();
  const GuestResult<Link> guest =
      skips_guest ? guest_fail(GuestErrorKind::Silent, kPaused) : GuestResult<Link>(link());
  std::optional<Error> silence;
  const auto probe = [&guest,
                      &silence](ProbeTarget target) -> asio::awaitable<Result<ProbeReport>> {
    Result<ProbeReport> report;
    if (guest) {
      report = co_await (*guest)->probe(target);
    } else {
      report = std::unexpected<Error>(guest.error());
    }
    silence = report ? std::nullopt : std::optional(report.error());
    co_return report;
  };
  Verification verification{.outcome = co_await shared_.isolation.verify(
                                bridge_name(shared_.instance_id, sandbox_id_), probe)};
  verification.is_unknown = !verification.outcome && silence == verification.outcome.error();
  co_return verification;
}

asio::awaitable<GuestResult<CopyOutcome>> LocalSandboxPlace::copy_in(
    PlannedCopy copy, std::function<void(std::string phase)> progress) {
  AGBOX_CO_TRY(guest, link());
  if (!copy.found) {
    co_return guest_fail(GuestErrorKind::Refused,
                         "copy source " + copy.spec.source() +
                             ": what it was when the sandbox was accepted is not known");
  }
  // Its user does not matter: what is copied is never replaced by its successor.
  KnownSource source =
      known_source(copy.spec.source(), *copy.found,
                   copy.is_shadow ? SourceUse::ToolDirectory : SourceUse::Copy, /*user=*/0);
  co_return co_await agbox::copy_in(
      {.executor = shared_.executor, .turns = shared_.copies, .disk = shared_.copy_calls},
      std::move(guest), std::move(copy.spec), std::move(source), std::move(progress));
}

std::string LocalSandboxPlace::new_secret() const {
  return guestlink::new_secret();
}

GuestResult<> LocalSandboxPlace::go(const GoOrder& order) {
  AGBOX_TRY(guest, link());
  return guest->go(order);
}

asio::awaitable<GuestResult<EntrypointOutcome>> LocalSandboxPlace::entrypoint(Deadline deadline) {
  AGBOX_CO_TRY(guest, link());
  co_return co_await guest->entrypoint(deadline);
}

// --- execs ---

bool LocalSandboxPlace::is_connected() const {
  AGBOX_ON_ITS_THREAD(shared_.thread);
  return link_ && link_->is_connected();
}

Result<> LocalSandboxPlace::takes_execs() const {
  AGBOX_TRY(guest, link());
  return guest->takes_execs();
}

bool LocalSandboxPlace::guest_is_current() const {
  return is_connected() && link_->protocol() >= guestwire::kProtocolWithExecUsers;
}

asio::awaitable<Result<OutputPaths>> LocalSandboxPlace::create_output(
    store::v1::CreatedWith created_with, std::string exec_id) {
  AGBOX_ON_ITS_THREAD(shared_.thread);
  AGBOX_CO_TRY(logs, co_await run_blocking(shared_.spare_files.executor(), [&] {
                 return make_exec_logs(created_with, sandbox_id_, exec_id, shared_.spare_files);
               }));
  OutputPaths paths{
      .root = logs.root, .stdout_path = logs.stdout_path, .stderr_path = logs.stderr_path};
  outputs_.insert_or_assign(exec_id, std::move(logs));
  co_return paths;
}

asio::awaitable<void> LocalSandboxPlace::discard_output(std::string exec_id) {
  AGBOX_ON_ITS_THREAD(shared_.thread);
  const auto output = outputs_.extract(exec_id);
  if (!output || !output.mapped().are_new) co_return;
  co_await run_blocking(shared_.spare_files.executor(),
                        [&output] { remove_exec_logs(output.mapped()); });
}

asio::awaitable<Result<>> LocalSandboxPlace::open_output(std::string exec_id,
                                                         store::v1::Exec record) {
  AGBOX_ON_ITS_THREAD(shared_.thread);
  auto created = outputs_.extract(exec_id);
  if (created && created.mapped().are_new) {
    outputs_.insert(std::move(created));
    co_return Result<>{};
  }
  AGBOX_CO_TRY(reopened, co_await run_blocking(shared_.spare_files.executor(),
                                               [&] { return reopen_exec_logs(record); }));
  outputs_.emplace(exec_id, std::move(reopened));
  co_return Result<>{};
}

void LocalSandboxPlace::close_output(const std::string& exec_id) {
  AGBOX_ON_ITS_THREAD(shared_.thread);
  outputs_.erase(exec_id);
}

asio::awaitable<std::string> LocalSandboxPlace::output_tail(store::v1::Exec record) {
  co_return co_await run_blocking(shared_.spare_files.executor(),
                                  [&record] { return exec_output_tail(record); });
}

asio::awaitable<Result<>> LocalSandboxPlace::explain_output(store::v1::Exec record,
                                                            std::string reason) {
  AGBOX_ON_ITS_THREAD(shared_.thread);
  co_return co_await run_blocking(shared_.spare_files.executor(),
                                  [&] { return append_exec_log_line(record, std::move(reason)); });
}

Result<> LocalSandboxPlace::start_exec(const ExecOrder& order) {
  AGBOX_TRY(guest, link());
  guestlink::OutputFiles files;
  if (auto output = outputs_.extract(order.exec_id)) {
    files = {.out = std::move(output.mapped().out),
             .err = std::move(output.mapped().err),
             .free_space_reserve_bytes = output.mapped().free_space_reserve};
  }
  return guest->start_exec(order, std::move(files));
}

Result<> LocalSandboxPlace::cancel_exec(const std::string& exec_id,
                                        std::chrono::milliseconds grace) {
  AGBOX_TRY(guest, link());
  return guest->cancel_exec(exec_id, grace);
}

asio::awaitable<Result<ExecInput>> LocalSandboxPlace::attach_input(std::string exec_id) {
  AGBOX_CO_TRY(guest, link());
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    co_return std::unexpected(errno_error("create a pipe for the input of exec " + exec_id, errno));
  }
  UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  AGBOX_CO_TRY(id, guest->attach_input(exec_id, std::move(reading)));
  AGBOX_CO_TRY(report,
               co_await guest->input_report(id, std::chrono::steady_clock::now() + kLongestAttach));
  switch (report.outcome) {
    case InputReport::Outcome::Attached:
      co_return ExecInput{.pipe = std::move(writing), .position = report.position};
    case InputReport::Outcome::Closed:
      co_return fail(
          reason::kExecInputClosed,
          "exec " + exec_id + " takes no more input: it has ended, or the command does not read it",
          {{"exec_id", exec_id}});
    case InputReport::Outcome::Failed:
      break;
  }
  co_return fail(reason::kResourceExhausted, "input of exec " + exec_id + ": " + report.detail,
                 {{"exec_id", exec_id}});
}

Result<> LocalSandboxPlace::end_input(const std::string& exec_id) {
  AGBOX_TRY(guest, link());
  return guest->end_input(exec_id);
}

Result<> LocalSandboxPlace::resize_terminal(const std::string& exec_id, TerminalSize size) {
  AGBOX_TRY(guest, link());
  return guest->resize_terminal(exec_id, size);
}

Result<> LocalSandboxPlace::signal_exec(const std::string& exec_id, int number) {
  AGBOX_TRY(guest, link());
  return guest->signal_exec(exec_id, number);
}

Result<> LocalSandboxPlace::forget_exec(const std::string& exec_id) {
  AGBOX_TRY(guest, link());
  return guest->forget_exec(exec_id);
}

// --- files ---

asio::awaitable<Result<FilesReport>> LocalSandboxPlace::transfer_files(
    FileOrder order, std::function<void(FilePipe)> on_open) {
  AGBOX_ON_ITS_THREAD(shared_.thread);
  AGBOX_CO_TRY(guest, link());
  co_return co_await agbox::transfer_files(std::move(guest), std::move(order), std::move(on_open));
}

}  // namespace agbox
