// SPDX-License-Identifier: Apache-2.0
#include "guest/runner.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "guest/descriptors.h"
#include "guest/input_relay.h"
#include "guest/memory_events.h"
#include "guest/privilege.h"
#include "guest/runner_channel.h"
#include "guest/terminal.h"
#include "guest/time_slice.h"

namespace agbox::guest {
namespace {

constexpr char kName[] = "agbox-runner";
// The capacity of a pipe. Only what is read occupies memory.
constexpr std::size_t kChunk = std::size_t{64} << 10;

std::uint64_t microseconds(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(time.tv_usec);
}

struct Pipe {
  UniqueFd reading;
  UniqueFd writing;
};

// Owned by the command's user, because `>/dev/stdout` reopens it. Only our end does not block: the
// command's must be an ordinary pipe.
std::optional<Pipe> make_pipe(const Identity& user, UniqueFd Pipe::* ours) {
  const FileAccessAs as_user(user.uid, user.gid);
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  Pipe pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
  if (::fcntl((pipe.*ours).get(), F_SETFL, O_NONBLOCK) != 0) return std::nullopt;
  return pipe;
}

// The descriptors of a command, and our ends of them.
struct Streams {
  UniqueFd command_in{};  // empty: /dev/null
  UniqueFd command_out{};
  UniqueFd command_err{};
  UniqueFd in{};
  UniqueFd out{};
  UniqueFd err{};
};

Result<Streams> make_pipes(const ExecOrder& order) {
  const auto failed = [] { return std::unexpected(errno_error("cannot create pipes", errno)); };
  auto out = make_pipe(order.user, &Pipe::reading);
  if (!out) return failed();
  auto err = make_pipe(order.user, &Pipe::reading);
  if (!err) return failed();
  Streams streams{.command_out = std::move(out->writing),
                  .command_err = std::move(err->writing),
                  .out = std::move(out->reading),
                  .err = std::move(err->reading)};
  if (!order.has_input) return streams;
  auto in = make_pipe(order.user, &Pipe::writing);
  if (!in) return failed();
  streams.command_in = std::move(in->reading);
  streams.in = std::move(in->writing);
  return streams;
}

// What it writes to the terminal is the exec's stdout. A copy of the master takes its input,
// because both directions end on their own.
Result<Streams> make_terminal(const ExecOrder& order) {
  AGBOX_TRY(terminal, open_terminal(order.user, *order.terminal));
  UniqueFd in(::fcntl(terminal.master.get(), F_DUPFD_CLOEXEC, 3));
  if (!in) return std::unexpected(errno_error("cannot open a terminal", errno));
  return Streams{.command_in = std::move(terminal.slave),
                 .in = std::move(in),
                 .out = std::move(terminal.master)};
}

class Running {
 public:
  Running(ExecOrder order, UniqueFd channel)
      : order_(std::move(order)),
        channel_(std::move(channel)),
        output_(std::move(order_.files), order_.limits) {}

  void run() {
    sigset_t all;
    ::sigfillset(&all);  // no call is interrupted, and only SIGKILL ends us
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    ::signal(SIGXFSZ, SIG_IGN);  // write() fails with EFBIG instead
    sigset_t child;
    ::sigemptyset(&child);
    ::sigaddset(&child, SIGCHLD);
    signals_.reset(::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
    AGBOX_CHECK(signals_, "signalfd");
    AGBOX_CHECK(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0, "prctl(PR_SET_CHILD_SUBREAPER)");

    std::vector<RunnerOrder> early;
    RunnerOrder order;
    while (receive_order(channel_.get(), order) == Received::Packet) {
      if (order.kind == RunnerOrder::Kind::Cancel) {
        end_.set_how(v1::ExecEnded::HOW_CANCELLED);
        return report_end();
      }
      early.push_back(std::move(order));
    }
    if (const auto started = start(); !started) {
      end_.set_how(v1::ExecEnded::HOW_NOT_STARTED);
      end_.set_code(started.error().code == 0 ? kNotExecutable : started.error().code);
      end_.set_detail(started.error().reason);
      // As a shell would print it.
      output_.append_err(started.error().reason + "\n");
      end_.set_output_truncated(output_.is_truncated());
      return report_end();
    }
    for (RunnerOrder& one : early) follow(std::move(one));
    while (!is_done()) round();
  }

 private:
  std::expected<void, NotStarted> start() {
    if (order_.command.empty()) return std::unexpected(NotStarted{0, "there is no command"});
    if (const auto resolved = resolve_user_of(order_); !resolved) {
      return std::unexpected(NotStarted{kNotExecutable, resolved.error().message()});
    }
    auto streams = order_.terminal ? make_terminal(order_) : make_pipes(order_);
    if (!streams) return std::unexpected(NotStarted{0, streams.error().message()});
    const bool has_terminal = order_.terminal.has_value();
    const int terminal = streams->command_in.get();
    const auto main = start_child({.arguments = std::move(order_.command),
                                   .environment = std::move(order_.environment),
                                   .working_directory = std::move(order_.working_directory),
                                   .identity = order_.user,
                                   .in = streams->command_in.get(),
                                   .out = has_terminal ? terminal : streams->command_out.get(),
                                   .err = has_terminal ? terminal : streams->command_err.get(),
                                   .has_terminal = has_terminal});
    if (!main) return std::unexpected(main.error());
    main_ = *main;
    out_ = std::move(streams->out);
    err_ = std::move(streams->err);
    if (streams->in) input_.open(std::move(streams->in), has_terminal);
    // Without it a command that closes the terminal for a while, and opens it again, would lose it.
    if (has_terminal) terminal_ = std::move(streams->command_in);
    // There may be a thousand runners; none need keep an environment of a megabyte.
    order_ = {};
    ::malloc_trim(0);
    return {};
  }

  void round() {
    std::array<pollfd, 6> polled{{{signals_.get(), POLLIN, 0},
                                  {channel_.get(), POLLIN, 0},
                                  {out_.get(), POLLIN, 0},
                                  {err_.get(), POLLIN, 0},
                                  input_.wait_for_space(),
                                  input_.wait_for_bytes()}};
    if (::poll(polled.data(), polled.size(), -1) < 0) {
      AGBOX_CHECK(errno == EINTR, "poll");
      return;
    }
    if (polled[2].revents != 0) read_out();
    if (polled[3].revents != 0) read_err();
    if (polled[4].revents != 0) input_.on_space(polled[4].revents);
    if (polled[5].revents != 0) input_.on_bytes();
    if (polled[1].revents != 0) on_guest();
    if (polled[0].revents != 0) reap();
    if (main_ended_ && channel_ && (!cancelled_ || childless_)) {
      drain_all();
      report_end();
    }
  }

  bool is_done() const { return childless_ && !channel_ && (cancelled_ || (!out_ && !err_)); }

  std::size_t read_out() {
    return read_some(out_, [&](std::string_view bytes) { output_.append_out(bytes); });
  }
  std::size_t read_err() {
    return read_some(err_, [&](std::string_view bytes) { output_.append_err(bytes); });
  }

  // Returns the number of bytes read.
  template <class Append>
  std::size_t read_some(UniqueFd& pipe, Append append) {
    const ssize_t got = ::read(pipe.get(), chunk_.data(), chunk_.size());
    if (got < 0 && errno == EAGAIN) return 0;
    if (got <= 0) {  // no writer is left
      pipe.reset();
      return 0;
    }
    append({chunk_.data(), static_cast<std::size_t>(got)});
    if (output_.is_truncated() && !end_.output_truncated()) {
      end_.set_output_truncated(true);
      if (channel_) send_report(channel_.get(), {.kind = RunnerReport::Kind::Truncated});
    }
    return static_cast<std::size_t>(got);
  }

  // Only what the pipes hold now: a process may never stop writing.
  void drain_all() {
    if (terminal_) return drain_terminal();
    take(out_, [this] { return read_out(); });
    take(err_, [this] { return read_err(); });
  }
  template <class Read>
  static void take(const UniqueFd& pipe, Read read) {
    int waiting = 0;
    if (!pipe || ::ioctl(pipe.get(), FIONREAD, &waiting) != 0) return;
    std::size_t left = static_cast<std::size_t>(waiting);
    while (left > 0 && pipe) {
      const std::size_t got = read();
      if (got == 0) return;  // another process has opened the pipe and read it
      left -= std::min(left, got);
    }
  }

  // What the terminal holds is less than this; the kernel knows no exact number. A read first takes
  // what is on its way through the kernel.
  void drain_terminal() {
    terminal_.reset();
    constexpr std::size_t kMostHeld = std::size_t{256} << 10;
    for (std::size_t total = 0; out_ && total < kMostHeld;) {
      const std::size_t got = read_out();
      if (got == 0) return;
      total += got;
    }
  }

  void on_guest() {
    RunnerOrder order;
    switch (receive_order(channel_.get(), order)) {
      case Received::Packet:
        return follow(std::move(order));
      case Received::Closed:  // no guest, no container: we are about to be gone too
        channel_.reset();
        return;
      case Received::NothingYet:
        return;
    }
  }

  void follow(RunnerOrder order) {
    switch (order.kind) {
      case RunnerOrder::Kind::Cancel:
        return cancel();
      case RunnerOrder::Kind::AttachInput: {
        RunnerReport report{.kind = RunnerReport::Kind::InputAttached};
        report.input = input_.attach(std::move(order.pipe));
        report.input.set_id(order.number);
        return send_report(channel_.get(), report);
      }
      case RunnerOrder::Kind::EndInput:
        return input_.end();
      case RunnerOrder::Kind::Resize:
        if (terminal_) resize(terminal_.get(), order.size);
        return;
      case RunnerOrder::Kind::Signal:
        return signal_command(static_cast<int>(order.number));
    }
  }

  // The only place that decides which came first: a cancel or the command's end.
  void cancel() {
    reap();
    if (main_ended_) return;
    cancelled_ = true;
    // As if its terminal were closed: shells ignore SIGTERM.
    if (terminal_) {
      for (const int number : {SIGHUP, SIGCONT}) signal_command(number);
      ::kill(main_, SIGHUP);
    }
    send_report(channel_.get(), {.kind = RunnerReport::Kind::CancelTaken});
  }

  void signal_command(int number) {
    reap();
    if (main_ended_) return;
    const pid_t foreground = terminal_ ? foreground_group(out_.get()) : 0;
    ::kill(-(foreground > 0 ? foreground : main_), number);
  }

  void reap() {
    signalfd_siginfo ignored{};
    while (::read(signals_.get(), &ignored, sizeof ignored) > 0) {
    }
    int status = 0;
    rusage used{};
    pid_t pid = 0;
    while ((pid = ::wait4(-1, &status, WNOHANG, &used)) > 0) {
      if (pid == main_ && !main_ended_) on_main_end(status, used);
    }
    childless_ = pid < 0 && errno == ECHILD;
  }

  void on_main_end(int status, const rusage& used) {
    main_ended_ = true;
    const bool by_signal = WIFSIGNALED(status);
    end_.set_how(by_signal ? v1::ExecEnded::HOW_SIGNALED : v1::ExecEnded::HOW_EXITED);
    end_.set_code(by_signal ? WTERMSIG(status) : WEXITSTATUS(status));
    // Shells exit with that code if their command was killed.
    if (exit_code_of(status) == 128 + SIGKILL) end_.set_detail(memory_.explain());
    end_.set_user_cpu_microseconds(microseconds(used.ru_utime));
    end_.set_system_cpu_microseconds(microseconds(used.ru_stime));
    end_.set_peak_memory_bytes(static_cast<std::uint64_t>(used.ru_maxrss) << 10);
  }

  void report_end() {
    if (cancelled_) {
      end_.set_how(v1::ExecEnded::HOW_CANCELLED);
      end_.set_code(0);
    }
    send_report(channel_.get(), {.kind = RunnerReport::Kind::Ended, .end = std::move(end_)});
    channel_.reset();
    input_.close();
  }

  ExecOrder order_;
  UniqueFd channel_;  // until the end is reported
  ExecOutput output_;
  UniqueFd signals_;
  MemoryEvents memory_;  // since before the command starts
  pid_t main_ = 0;
  UniqueFd out_;
  UniqueFd err_;
  InputRelay input_;
  UniqueFd terminal_;  // of a command that has one, until it ends
  bool cancelled_ = false;
  bool main_ended_ = false;
  bool childless_ = false;
  v1::ExecEnded end_;
  std::array<char, kChunk> chunk_;
};

[[noreturn]] void be_runner(ExecOrder order, UniqueFd channel, int null) {
  ::prctl(PR_SET_NAME, kName, 0, 0, 0);
  prefer_short_time_slice();
  // The engine's log belongs neither to us nor to the command.
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, fd);
  close_all_but({STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, channel.get(), order.files.out.get(),
                 order.files.err.get()});
  Running running(std::move(order), std::move(channel));
  running.run();
  ::_exit(0);
}

}  // namespace

std::expected<Runner, NotStarted> start_runner(ExecOrder order, int null,
                                               const std::function<void()>& in_runner) {
  if (!order.files.out || !order.files.err) {
    return std::unexpected(NotStarted{
        kNotExecutable, "its log files could not be received: too many open files in the guest"});
  }
  auto channel = make_runner_channel();
  if (!channel) return std::unexpected(NotStarted{kNotExecutable, channel.error().message()});
  auto& [ours, theirs] = *channel;
  const pid_t pid = ::fork();
  if (pid < 0) {
    NotStarted why{kNotExecutable, std::string("cannot start a process: ") + std::strerror(errno)};
    ExecOutput(std::move(order.files), order.limits).append_err(why.reason + "\n");
    return std::unexpected(std::move(why));
  }
  if (pid == 0) {
    in_runner();
    be_runner(std::move(order), std::move(theirs), null);
  }
  return Runner{pid, std::move(ours)};
}

}  // namespace agbox::guest
