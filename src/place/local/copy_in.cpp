// SPDX-License-Identifier: Apache-2.0
#include "place/local/copy_in.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <cerrno>
#include <exception>
#include <utility>

#include "async/run_blocking.h"
#include "async/worker_thread.h"
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

// What a copy needs of this process. Sandboxes share the limits of this user, so there may be none.
struct Packer {
  std::unique_ptr<WorkerThread> thread;
  std::shared_ptr<PackProgress> progress;
};

GuestResult<Packer> make_packer() {
  try {
    return Packer{.thread = std::make_unique<WorkerThread>(),
                  .progress = std::make_shared<PackProgress>()};
  } catch (const std::exception& error) {
    return guest_fail(GuestErrorKind::Unavailable,
                      std::string("start a thread that copies: ") + error.what());
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

// Reports at most once per interval, and not in the first.
class Reports : public std::enable_shared_from_this<Reports> {
 public:
  Reports(const asio::any_io_executor& executor, std::chrono::milliseconds interval,
          std::function<void()> report)
      : timer_(executor), interval_(interval), report_(std::move(report)) {}

  void start() {
    timer_.expires_after(interval_);
    timer_.async_wait([weak = weak_from_this()](boost::system::error_code cancelled) {
      const auto self = weak.lock();
      if (cancelled || !self || !self->report_) return;
      self->report_();
      self->start();
    });
  }
  void stop() {
    report_ = nullptr;
    timer_.cancel();
  }

 private:
  asio::steady_timer timer_;
  std::chrono::milliseconds interval_;
  std::function<void()> report_;
};

// Packs on `worker`. Aborted if the caller is cancelled.
asio::awaitable<Result<SkippedEntries>> pack(WorkerThread& worker, TreeSource source, UniqueFd pipe,
                                             std::shared_ptr<PackProgress> packed) {
  auto slot = (co_await asio::this_coro::cancellation_state).slot();
  if (slot.is_connected()) {
    slot.assign([packed](asio::cancellation_type) { packed->abort.fire(); });
  }
  auto done = co_await run_blocking(
      worker.executor(), [source = std::move(source), pipe = std::move(pipe), packed]() mutable {
        return pack_tree(std::move(source), std::move(pipe), PackLimits{}, *packed);
      });
  slot.clear();
  co_return done;
}

}  // namespace

asio::awaitable<GuestResult<CopyOutcome>> copy_in(CopyServices services,
                                                  std::shared_ptr<guestlink::GuestLink> guest,
                                                  v1::CopySpec copy, KnownSource known,
                                                  std::function<void(std::string phase)> progress) {
  const auto failed = [](const Error& error) {
    const auto kind =
        error.reason() == reason::kCancelled ? GuestErrorKind::Cancelled : GuestErrorKind::Refused;
    return guest_fail(kind, error.message());
  };
  auto turn = co_await services.turns.acquire();
  if (!turn) co_return failed(turn.error());
  // Its own thread: a large tree or a slow disk would block those that others wait for.
  AGBOX_CO_TRY(packer, make_packer());
  WorkerThread& worker = *packer.thread;
  const auto packed = packer.progress;
  // Destroyed before the thread, which it must not wait for.
  const std::shared_ptr<void> aborts(nullptr, [packed](void*) { packed->abort.fire(); });

  auto source = co_await run_blocking(worker.executor(), [&] { return open_source(copy, known); });
  if (!source) co_return failed(source.error());
  AGBOX_CO_TRY(pipe, make_pipe());
  AGBOX_CO_TRY(tree,
               guest->receive_tree({.target = copy.target(),
                                    .is_single_file = source->is_file,
                                    // A caller may copy into a mount of the same request.
                                    .is_outside_mounts = source->tree.use == TreeUse::ShadowCopy},
                                   std::move(pipe.reading)));
  const auto reports = std::make_shared<Reports>(services.executor, services.report_interval,
                                                 [&] { progress(phase_of(copy, *packed)); });
  reports->start();
  const auto done = co_await pack(worker, std::move(source->tree), std::move(pipe.writing), packed);
  reports->stop();

  // The reader's own reason is better than "it closed the pipe".
  if (!done && done.error().reason() != reason::kReaderGone) co_return failed(done.error());
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
