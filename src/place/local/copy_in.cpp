// SPDX-License-Identifier: Apache-2.0
#include "place/local/copy_in.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <exception>
#include <optional>
#include <utility>

#include "async/cancellation.h"
#include "base/shown_path.h"
#include "base/unique_fd.h"
#include "ingress/tree_packer.h"

namespace agbox {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

// How long the guest may take to report once the last byte is in the pipe: a slow disk has to take
// what the pipe and its buffers hold.
constexpr auto kReportLimit = 60s;
// The more a pipe holds, the less often both sides wait for each other. The kernel may refuse it.
constexpr int kPipeSize = 1 << 20;

struct Pipe {
  UniqueFd reading;
  UniqueFd writing;
};

GuestResult<Pipe> make_pipe() {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return guest_fail(GuestErrorKind::Unavailable, errno_error("create a pipe", errno).message());
  }
  ::fcntl(ends[1], F_SETPIPE_SZ, kPipeSize);
  return Pipe{.reading = UniqueFd(ends[0]), .writing = UniqueFd(ends[1])};
}

// Sandboxes share the limits of this user, so there may be no descriptor left.
GuestResult<std::shared_ptr<PackProgress>> make_progress() {
  try {
    return std::make_shared<PackProgress>();
  } catch (const std::exception& error) {
    return guest_fail(GuestErrorKind::Unavailable, error.what());
  }
}

struct OpenedSource {
  TreeSource tree;
  bool is_file = false;
};

Result<OpenedSource> open_source(const v1::CopySpec& copy, const KnownSource& known) {
  AGBOX_TRY(pinned, reopen_copy_source(known));
  UniqueFd root = std::move(pinned.fd);
  struct stat status{};
  if (::fstat(root.get(), &status) != 0) {
    return std::unexpected(errno_error("copy source " + shown_path(copy.source()), errno));
  }
  return OpenedSource{
      .tree = {.root = std::move(root),
               .path = copy.source(),
               .exclude_patterns = {copy.exclude_patterns().begin(), copy.exclude_patterns().end()},
               .use = known.use == SourceUse::ToolDirectory ? TreeUse::ShadowCopy : TreeUse::Copy},
      .is_file = S_ISREG(status.st_mode)};
}

std::string phase_of(const v1::CopySpec& copy, const PackProgress& packed) {
  constexpr std::uint64_t kMib = 1 << 20;
  return "copy to " + copy.target() + ": " + std::to_string(packed.entries) + " entries, " +
         std::to_string(packed.bytes / kMib) + " MiB";
}

std::string warning_of(const v1::CopySpec& copy, const SkippedEntries& skipped) {
  if (skipped.entries == 0) return {};
  const bool is_one = skipped.entries == 1;
  return "the shadow copy of " + shown_path(copy.source()) + " lacks " +
         (is_one ? "" : std::to_string(skipped.entries) + " entries, such as ") + skipped.first;
}

// Calls `act` after each interval, until it is destroyed.
class Ticks : public std::enable_shared_from_this<Ticks> {
 public:
  Ticks(const asio::any_io_executor& executor, std::chrono::milliseconds interval,
        std::function<void()> act)
      : timer_(executor), interval_(interval), act_(std::move(act)) {}

  void start() {
    timer_.expires_after(interval_);
    timer_.async_wait([weak = weak_from_this()](boost::system::error_code cancelled) {
      const auto self = weak.lock();
      if (cancelled || !self) return;
      self->act_();
      self->start();
    });
  }

 private:
  asio::steady_timer timer_;
  std::chrono::milliseconds interval_;
  std::function<void()> act_;
};

std::shared_ptr<Ticks> start_ticks(const asio::any_io_executor& executor,
                                   std::chrono::milliseconds interval, std::function<void()> act) {
  auto ticks = std::make_shared<Ticks>(executor, interval, std::move(act));
  ticks->start();
  return ticks;
}

GuestError failure_of(const Error& error) {
  if (error.reason() == reason::kCancelled) return {GuestErrorKind::Cancelled, error.message()};
  const bool may_pass = error.reason() == reason::kResourceExhausted;
  return {may_pass ? GuestErrorKind::Unavailable : GuestErrorKind::Refused, error.message()};
}

// Gives the call up if it has not moved for as long as `stall`, or the caller is cancelled.
template <class T>
asio::awaitable<Result<T>> while_it_moves(DiskCall<Result<T>> call, const PackProgress& packed,
                                          std::chrono::milliseconds stall, std::string source) {
  while (true) {
    const std::uint64_t before = packed.steps;
    auto done = co_await call.wait(std::chrono::steady_clock::now() + stall);
    if (done) co_return std::move(*done);
    if (co_await is_cancelled()) co_return fail(reason::kCancelled, "cancelled");
    if (packed.steps != before) continue;
    co_return fail(
        reason::kHostNotReady,
        "copy source " + shown_path(source) + ": nothing could be read for " +
            std::to_string(std::chrono::duration_cast<std::chrono::seconds>(stall).count()) +
            " s: its disk does not respond; is it on a network filesystem that is not reachable?");
  }
}

}  // namespace

asio::awaitable<GuestResult<CopyOutcome>> copy_in(CopyServices services,
                                                  std::shared_ptr<guestlink::GuestLink> guest,
                                                  v1::CopySpec copy, KnownSource known,
                                                  std::function<void(std::string phase)> progress) {
  std::optional<Semaphore::Permit> turn;
  if (auto acquired = co_await services.turns.acquire()) {
    turn.emplace(std::move(*acquired));
  } else {
    co_return std::unexpected(failure_of(acquired.error()));
  }
  AGBOX_CO_TRY(packed, make_progress());
  // The thread ends by itself, unless a disk hangs.
  const std::shared_ptr<void> aborts(nullptr, [packed](void*) { packed->abort.fire(); });
  auto reports = start_ticks(services.executor, services.report_interval,
                             [&] { progress(phase_of(copy, *packed)); });
  const auto end_of_turn =
      start_ticks(services.executor, services.longest_turn, [&turn] { turn.reset(); });

  auto opening = services.disk.start([copy, known] { return open_source(copy, known); });
  if (!opening) co_return std::unexpected(failure_of(opening.error()));
  auto source =
      co_await while_it_moves(std::move(*opening), *packed, services.stall, copy.source());
  if (!source) co_return std::unexpected(failure_of(source.error()));
  AGBOX_CO_TRY(pipe, make_pipe());
  AGBOX_CO_TRY(tree,
               guest->receive_tree({.target = copy.target(),
                                    .is_single_file = source->is_file,
                                    // A caller may copy into a mount of the same request.
                                    .is_outside_mounts = source->tree.use == TreeUse::ShadowCopy},
                                   std::move(pipe.reading)));
  auto packing = services.disk.start(
      [tree = std::move(source->tree), pipe = std::move(pipe.writing), packed]() mutable {
        return pack_tree(std::move(tree), std::move(pipe), PackLimits{}, *packed);
      });
  if (!packing) co_return std::unexpected(failure_of(packing.error()));
  const auto done =
      co_await while_it_moves(std::move(*packing), *packed, services.stall, copy.source());
  reports.reset();

  // The reader's own reason is better than "it closed the pipe".
  if (!done && done.error().reason() != reason::kReaderGone) {
    co_return std::unexpected(failure_of(done.error()));
  }
  AGBOX_CO_TRY(report,
               co_await guest->tree_report(tree, std::chrono::steady_clock::now() + kReportLimit));
  if (report.failure.empty() && done) {
    co_return CopyOutcome{.warning = warning_of(copy, *done)};
  }
  const std::string& why = report.failure.empty() ? done.error().message() : report.failure;
  co_return guest_fail(GuestErrorKind::Refused,
                       "copy " + shown_path(copy.source()) + " to " + copy.target() + ": " + why);
}

}  // namespace agbox
