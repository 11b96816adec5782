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

#include "base/check.h"
#include "guest/descriptors.h"
#include "guest/memory_events.h"
#include "guest/privilege.h"
#include "guest/runner_channel.h"
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

// Owned by the command's user, because `>/dev/stdout` reopens it.
std::optional<Pipe> make_pipe(const Identity& user) {
  const FileAccessAs as_user(user.uid, user.gid);
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  Pipe pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
  // Only our end: the command's must be an ordinary pipe.
  if (::fcntl(pipe.reading.get(), F_SETFL, O_NONBLOCK) != 0) return std::nullopt;
  return pipe;
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

    if (receive_cancel(channel_.get()) == Received::Packet) {
      end_.set_how(v1::ExecEnded::HOW_CANCELLED);
      return report_end();
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
    while (!is_done()) round();
  }

 private:
  std::expected<void, NotStarted> start() {
    if (order_.command.empty()) return std::unexpected(NotStarted{0, "there is no command"});
    auto out = make_pipe(order_.user);
    auto err = make_pipe(order_.user);
    if (!out || !err) {
      return std::unexpected(
          NotStarted{0, std::string("cannot create pipes: ") + std::strerror(errno)});
    }
    const auto main = start_child({.arguments = std::move(order_.command),
                                   .environment = std::move(order_.environment),
                                   .working_directory = std::move(order_.working_directory),
                                   .identity = order_.user,
                                   .out = out->writing.get(),
                                   .err = err->writing.get()});
    if (!main) return std::unexpected(main.error());
    main_ = *main;
    out_ = std::move(out->reading);
    err_ = std::move(err->reading);
    // There may be a thousand runners; none need keep an environment of a megabyte.
    order_ = {};
    ::malloc_trim(0);
    return {};
  }

  void round() {
    std::array<pollfd, 4> polled{{{signals_.get(), POLLIN, 0},
                                  {channel_.get(), POLLIN, 0},
                                  {out_.get(), POLLIN, 0},
                                  {err_.get(), POLLIN, 0}}};
    if (::poll(polled.data(), polled.size(), -1) < 0) {
      AGBOX_CHECK(errno == EINTR, "poll");
      return;
    }
    if (polled[2].revents != 0) read_out();
    if (polled[3].revents != 0) read_err();
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
      if (channel_) send_report(channel_.get(), {RunnerReport::Kind::Truncated, {}});
    }
    return static_cast<std::size_t>(got);
  }

  // Only what the pipes hold now: a process may never stop writing.
  void drain_all() {
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

  // The only place that decides which came first: a cancel or the command's end.
  void on_guest() {
    switch (receive_cancel(channel_.get())) {
      case Received::Packet:
        reap();
        if (main_ended_) return;
        cancelled_ = true;
        send_report(channel_.get(), {RunnerReport::Kind::CancelTaken, {}});
        return;
      case Received::Closed:  // no guest, no container: we are about to be gone too
        channel_.reset();
        return;
      case Received::NothingYet:
        return;
    }
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
    send_report(channel_.get(), {RunnerReport::Kind::Ended, std::move(end_)});
    channel_.reset();
  }

  ExecOrder order_;
  UniqueFd channel_;  // until the end is reported
  ExecOutput output_;
  UniqueFd signals_;
  MemoryEvents memory_;  // since before the command starts
  pid_t main_ = 0;
  UniqueFd out_;
  UniqueFd err_;
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
