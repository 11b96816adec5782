// SPDX-License-Identifier: Apache-2.0
#include "guest/init.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "guest/privilege.h"
#include "guest/time_slice.h"
#include "guestwire/place.h"

namespace agbox::guest {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Time for the last output of an ending container to reach the engine's log.
constexpr milliseconds kLogFlushTimeout{1000};
// Time for killed processes to disappear: longer only if they are blocked in the kernel.
constexpr milliseconds kLastEndTimeout{1000};
// Time for execs to end by SIGTERM when the container is stopped. The engine waits longer.
constexpr milliseconds kStopGrace{2000};

// One that joined, has no execs and is not connected: the daemon starts another if it needs one.
constexpr std::chrono::seconds kNeedless{60};

bool has_ended(const UniqueFd& pidfd) {
  pollfd ended{pidfd.get(), POLLIN, 0};
  return ::poll(&ended, 1, 0) > 0;
}

// Returns large frames to the kernel after use, because the runner of an exec starts as a copy of
// our memory.
void return_memory_early() {
  constexpr int kThreshold = 64 << 10;
  ::mallopt(M_MMAP_THRESHOLD, kThreshold);
  ::mallopt(M_TRIM_THRESHOLD, kThreshold);
}

// Only PID 1: for any other process "all" would be those of the machine.
TreeKiller::SignalEveryProcess every_process_of_container() {
  if (::getpid() != 1) return {};
  return [](int number) { ::kill(-1, number); };
}

std::string_view engine_home() {
  const char* home = ::getenv("HOME");
  return home == nullptr ? "" : home;
}

}  // namespace

int Init::run() {
  return run(std::nullopt);
}

int Init::join(std::string user) {
  std::error_code problem;
  const auto directory = std::filesystem::current_path(problem);
  return run(
      Joined{.user = std::move(user), .working_directory = problem ? "/" : directory.string()});
}

int Init::run(std::optional<Joined> joined) {
  make_undumpable();
  prefer_short_time_slice();
  return_memory_early();
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t ours;
  ::sigemptyset(&ours);
  ::sigaddset(&ours, SIGTERM);
  ::sigaddset(&ours, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &ours, nullptr);
  UniqueFd signals(::signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK));
  AGBOX_CHECK(signals, "signalfd");
  UniqueFd root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  AGBOX_CHECK(root, "opening /");
  // Now, because later root inside may replace it, for instance by a FIFO that never opens.
  UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  AGBOX_CHECK(null, "opening /dev/null");
  Init init(std::move(root), std::move(null), std::move(signals), std::move(joined));
  return init.loop();
}

Init::Init(UniqueFd root, UniqueFd null, UniqueFd signals, std::optional<Joined> joined)
    : root_(std::move(root)),
      null_(std::move(null)),
      signals_(std::move(signals)),
      joined_(std::move(joined)),
      needless_at_(steady_clock::now() + kNeedless),
      signal_every_process_(every_process_of_container()),
      out_(STDOUT_FILENO, tail_),
      err_(STDERR_FILENO, tail_),
      execs_({.null = null_.get(),
              .send =
                  [this](const v1::ToDaemon& message) {
                    if (greeted_) link_->send(message);
                  },
              .in_runner = [this] { ::explicit_bzero(secret_.data(), secret_.size()); },
              .is_foreign = [this](const Process& process) { return belongs_to_main(process); },
              .signal_every_process = signal_every_process_}),
      connection_probes_([this](const v1::ConnectionTried& tried) {
        v1::ToDaemon message;
        *message.mutable_connection_tried() = tried;
        link_->send(message);
      }),
      incoming_trees_([this](const v1::TreeReceived& received) {
        v1::ToDaemon message;
        *message.mutable_tree_received() = received;
        link_->send(message);
      }),
      file_transfers_([this](const v1::FilesDone& done) {
        v1::ToDaemon message;
        *message.mutable_files_done() = done;
        link_->send(message);
      }) {}

int Init::loop() {
  auto link = DaemonLink::open(
      guestwire::kLinkDirectoryInside,
      {.hello =
           [this] {
             greeted_ = false;
             connection_probes_.cancel_all();
             incoming_trees_.cancel_all();
             execs_.cancel_attaches();
             file_transfers_.cancel_all();
             return hello();
           },
       .on_message = [this](v1::ToGuest& message) { return on_message(message); }});
  if (!link) {
    // To the container's log, where users look for the reason.
    const std::string line = "agbox-guest: " + link.error().message() + "\n";
    return ::write(STDERR_FILENO, line.data(), line.size()) < 0 ? 2 : 1;
  }
  link_.emplace(std::move(*link));
  while (!exit_code_) round();
  out_.finish(kLogFlushTimeout);
  err_.finish(kLogFlushTimeout);
  if (signal_every_process_) end_everything_else();
  put_back(root_.get(), preparation_.kept_accounts);
  return *exit_code_;
}

// As the kernel will do when we exit, but we outlive it.
void Init::end_everything_else() {
  signal_every_process_(SIGKILL);
  const Moment deadline = steady_clock::now() + kLastEndTimeout;
  while (true) {
    pid_t ended = 0;
    while ((ended = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (ended < 0 && errno == ECHILD) return;
    Watches watches;
    watches.add(signals_.get(), POLLIN, [this] {
      signalfd_siginfo ignored{};
      while (::read(signals_.get(), &ignored, sizeof ignored) > 0) {
      }
    });
    watches.wake(deadline);
    wait_and_serve(watches);
    if (steady_clock::now() >= deadline) return;
  }
}

void Init::round() {
  Watches watches;
  watches.add(signals_.get(), POLLIN, [this] { on_signal(); });
  link_->collect(watches);
  out_.collect(watches);
  err_.collect(watches);
  if (phase_ == v1::PHASE_ENTRYPOINT) {
    enter_socket_.collect(watches, main_, enter_reply_,
                          [this](Entered entered) { on_entered(std::move(entered)); });
    watches.wake(entrypoint_deadline_);
  }
  execs_.collect(watches);
  connection_probes_.collect(watches);
  if (stopped_at_ && !command_runs()) watches.wake(*stopped_at_ + kStopGrace);
  if (joined_ && !execs_.has_any()) watches.wake(needless_at_);

  wait_and_serve(watches);
  if (phase_ == v1::PHASE_ENTRYPOINT && steady_clock::now() >= entrypoint_deadline_) {
    on_entrypoint_late();
  }
  execs_.work();
  connection_probes_.end_overdue();
  if (joined_ && link_->is_connected() && greeted_) needless_at_ = steady_clock::now() + kNeedless;
  if (joined_ && !execs_.has_any() && steady_clock::now() >= needless_at_) end(0);
  // A running command ends the container itself.
  if (stopped_at_ && !command_runs() &&
      (!execs_.any_runs() || steady_clock::now() >= *stopped_at_ + kStopGrace)) {
    end(0);
  }
}

void Init::start() {
  if (!runtime_user_runs()) return;
  if (go_.entrypoint_size() > 0) return start_entrypoint();
  if (go_.command_size() > 0) return start_command();
  pass();
}

// Runs our own program as the runtime user: verifies IDs, limits and the guest's mount.
bool Init::runtime_user_runs() {
  const auto probe = start_child({.arguments = {guestwire::kProgramInside, "true"},
                                  .environment = {},
                                  .identity = preparation_.runtime_user});
  if (!probe) {
    fail(v1::EntrypointFailed::CAUSE_USER_CANNOT_RUN, probe.error().code, probe.error().reason);
    return false;
  }
  int status = 0;
  while (::waitpid(*probe, &status, 0) < 0 && errno == EINTR) {
  }
  const int code = exit_code_of(status);
  if (code != 0) fail(v1::EntrypointFailed::CAUSE_USER_CANNOT_RUN, code, "");
  return code == 0;
}

void Init::start_entrypoint() {
  ChildProgram program{.arguments = {go_.entrypoint().begin(), go_.entrypoint().end()},
                       .environment = environment_with({}),
                       .working_directory = go_.working_directory(),
                       .identity = preparation_.image_user};
  program.arguments.insert(program.arguments.end(), {guestwire::kProgramInside, "enter"});
  program.arguments.insert(program.arguments.end(), go_.command().begin(), go_.command().end());
  // The engine set HOME for root, as which it started us. A HOME set by the image stays.
  if (program.identity.uid != 0 && engine_home() == preparation_.root_home) {
    program.environment = environment_with({"HOME=" + program.identity.home});
  }
  if (const auto opened = enter_socket_.open(); !opened) {
    return fail(v1::EntrypointFailed::CAUSE_NOT_STARTED, 0, opened.error().message());
  }
  const auto started = start_main(std::move(program));
  if (!started) {
    return fail(v1::EntrypointFailed::CAUSE_NOT_STARTED, started.error().code,
                started.error().reason);
  }
  main_ = *started;
  entrypoint_deadline_ = steady_clock::now() + milliseconds(go_.entrypoint_limit_ms());
  phase_ = v1::PHASE_ENTRYPOINT;
}

void Init::start_command() {
  const Identity& user = preparation_.runtime_user;
  const auto started = start_main({.arguments = {go_.command().begin(), go_.command().end()},
                                   .environment = environment_with(environment_of(user)),
                                   .working_directory = go_.working_directory(),
                                   .identity = user});
  if (!started) {
    return fail(v1::EntrypointFailed::CAUSE_NOT_STARTED, started.error().code,
                started.error().reason);
  }
  main_ = *started;
  pass();
}

// With pipes, so that we keep its last output.
std::expected<pid_t, NotStarted> Init::start_main(ChildProgram program) {
  std::array<int, 2> out{-1, -1};
  std::array<int, 2> err{-1, -1};
  {
    // Owned by its user, because `>/dev/stdout` reopens them.
    const FileAccessAs user(program.identity.uid, program.identity.gid);
    if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(err.data(), O_CLOEXEC) != 0) {
      const int problem = errno;
      ::close(out[0]);
      ::close(out[1]);
      return std::unexpected(NotStarted{0, errno_error("cannot create pipes", problem).message()});
    }
  }
  out_.start(UniqueFd(out[0]));
  err_.start(UniqueFd(err[0]));
  const UniqueFd out_end(out[1]);
  const UniqueFd err_end(err[1]);
  program.out = out_end.get();
  program.err = err_end.get();
  return start_child(program);
}

void Init::on_entered(Entered entered) {
  entered_ = std::move(entered);
  pass();
}

void Init::pass() {
  phase_ = v1::PHASE_PASSED;
  out_.forget_tail();
  err_.forget_tail();
  tail_.clear();
  go_.clear_entrypoint();
  v1::ToDaemon message;
  message.mutable_entrypoint_passed();
  link_->send(message);
}

void Init::on_entrypoint_late() {
  fail(v1::EntrypointFailed::CAUSE_TOOK_TOO_LONG, 0, "");
}

// As PID 1 it kills everything; the guest keeps running to report the failure to the daemon.
void Init::fail(v1::EntrypointFailed::Cause cause, int code, std::string detail) {
  if (signal_every_process_) signal_every_process_(SIGKILL);
  out_.finish(milliseconds(0));
  err_.finish(milliseconds(0));
  enter_socket_.close();
  failure_.set_cause(cause);
  failure_.set_code(code);
  failure_.set_detail(std::move(detail));
  failure_.set_output_tail(tail_.text());
  phase_ = v1::PHASE_FAILED;
  v1::ToDaemon message;
  *message.mutable_entrypoint_failed() = failure_;
  link_->send(message);
}

void Init::on_signal() {
  signalfd_siginfo signal{};
  while (::read(signals_.get(), &signal, sizeof signal) == sizeof signal) {
    // The engine's SIGTERM comes from outside of this container, where processes have no pid here.
    if (signal.ssi_signo == SIGTERM && signal.ssi_pid == 0) on_stop();
    if (signal.ssi_signo == SIGCHLD) reap();
  }
}

void Init::on_stop() {
  if (stopped_at_) return;
  reap();  // a command that ended before was not stopped
  stopped_at_ = steady_clock::now();
  execs_.terminate_all();
  if (command_runs()) ::kill(command_is_gone() ? main_ : entered_.pid, SIGTERM);
}

void Init::reap() {
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) on_exit(pid, status);
}

void Init::on_exit(pid_t pid, int status) {
  const int code = exit_code_of(status);
  execs_.on_exit(pid, status);
  incoming_trees_.on_exit(pid, status);
  file_transfers_.on_exit(pid, status);
  if (pid == main_) main_code_ = code;
  if (phase_ == v1::PHASE_ENTRYPOINT && pid == main_) {
    if (stopped_at_) return end(code);
    if (WIFSIGNALED(status)) {
      return fail(v1::EntrypointFailed::CAUSE_SIGNALED, WTERMSIG(status), "");
    }
    return fail(v1::EntrypointFailed::CAUSE_EXITED, code, "");
  }
  if (phase_ != v1::PHASE_PASSED || go_.command_size() == 0) return;
  if (pid == entered_.pid) return end(code);
  // Below a shell or an init of the image, the command is not our child: its parent passes its exit
  // code on. If the parent ended first, the command was reparented to us.
  if (main_code_ && command_is_gone()) end(*main_code_);
}

bool Init::command_is_gone() const {
  return entered_.pid == 0 || has_ended(entered_.pidfd);
}

bool Init::command_runs() const {
  return go_.command_size() > 0 && main_ != 0 &&
         (phase_ == v1::PHASE_ENTRYPOINT || phase_ == v1::PHASE_PASSED);
}

bool Init::belongs_to_main(const Process& process) const {
  return main_ != 0 && (process.session == main_ ||
                        (entered_.pid != 0 && process.session == ::getsid(entered_.pid)));
}

void Init::end(int code) {
  // A command that was asked to end is not done, however well it ends: the engine may be shutting
  // down, and the daemon would not start it again.
  const bool is_cut_short = stopped_at_ && go_.command_size() > 0 && code == 0;
  if (!exit_code_) exit_code_ = is_cut_short ? 128 + SIGTERM : code;
}

}  // namespace agbox::guest
