// SPDX-License-Identifier: Apache-2.0
#include "cli/daemon_control.h"

#include <agbox/daemon_inspection.h>
#include <agbox/raw_client.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>

#include "base/clock.h"
#include "base/text_file.h"
#include "cli/interrupt.h"
#include "cli/wait_report.h"

namespace agbox::cli {

namespace {

using namespace std::chrono_literals;

constexpr const char* kService = "agboxd.service";
constexpr auto kStartTime = 30s;
// The daemon promises five seconds.
constexpr int kStopMilliseconds = 15'000;
constexpr std::size_t kShownLogBytes = 2000;

std::string message_of(int problem) {
  return std::generic_category().message(problem);
}

// Requests a stop when a program has ended.
class EndWatch {
 public:
  explicit EndWatch(int ended)
      : over_(::eventfd(0, EFD_CLOEXEC)), watcher_([this, ended] {
          std::array<pollfd, 2> polled{{{ended, POLLIN, 0}, {over_.get(), POLLIN, 0}}};
          while (::poll(polled.data(), polled.size(), -1) < 0 && errno == EINTR) {
          }
          if (polled[0].revents != 0) source_.request_stop();
        }) {}
  ~EndWatch() {
    const std::uint64_t one = 1;
    static_cast<void>(!::write(over_.get(), &one, sizeof one));
  }
  EndWatch(const EndWatch&) = delete;
  EndWatch& operator=(const EndWatch&) = delete;

  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  UniqueFd over_;
  // The caller is blocked in a wait for the socket.
  std::jthread watcher_;
};

bool is_reachable() {
  const auto client = sdk::RawClient::open();
  return client && client->ping();
}

// The last lines that it has.
std::string end_of_log(const std::filesystem::path& log) {
  std::string text = read_text_file(log).value_or("");
  if (text.size() <= kShownLogBytes) return text;
  text.erase(0, text.size() - kShownLogBytes);
  const std::size_t line = text.find('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

bool start_process(Console& console, const std::filesystem::path& program) {
  const std::filesystem::path log = daemon_log();
  // If one of these fails, so does the next line, and says why.
  const std::filesystem::path directory = log.parent_path();
  std::error_code problem;
  std::filesystem::create_directories(directory.parent_path(), problem);
  ::mkdir(directory.c_str(), 0700);  // as the daemon does
  const auto started = run_in_background(program, log);
  if (!started) {
    console.failure("start " + program.string() + " with its log in " + log.string() + ": " +
                    message_of(started.error()));
    return false;
  }
  const auto client = sdk::RawClient::open();
  if (!client) {
    console.failure("start agboxd: " + client.error().message);
    return false;
  }
  const EndWatch watch(started->ended.get());
  client->wait_until_reachable(kStartTime, watch.token());
  if (client->ping()) return true;
  console.failure((watch.token().stop_requested() ? "agboxd has ended; its log "
                                                  : "agboxd does not respond; its log ") +
                  log.string() + " says:\n" + end_of_log(log) +
                  "\nRun \"agbox doctor\" to find the problem.");
  return false;
}

bool start_service(Console& console) {
  if (run_program({"systemctl", "--user", "start", kService}) == 0 && is_reachable()) return true;
  console.failure("systemctl --user start " + std::string(kService) +
                  " failed; see \"agbox daemon logs\" and \"agbox doctor\"");
  return false;
}

}  // namespace

bool has_daemon_service() {
  return program_succeeds({"systemctl", "--user", "cat", kService});
}

std::filesystem::path daemon_log() {
  const std::filesystem::path store = sdk::inspect_daemon().store;
  return store.empty() ? store : store.parent_path() / "agboxd.log";
}

bool start_daemon(Console& console) {
  const SystemClock clock;
  const WaitReport waiting(console, clock, "Waiting for agboxd to start");
  if (has_daemon_service()) return start_service(console);
  const sdk::DaemonInspection found = sdk::inspect_daemon();
  if (!found.program.empty() && !found.store.empty()) return start_process(console, found.program);
  console.failure(found.program.empty()
                      ? "start agboxd: it is neither next to this agbox nor on PATH"
                      : "start agboxd: the path of its store is not known: " + found.store_problem);
  return false;
}

bool stop_daemon(Console& console) {
  const SystemClock clock;
  const WaitReport waiting(console, clock, "Waiting for agboxd to stop");
  const auto holder = sdk::inspect_daemon().lock_holder;
  if (!holder) {
    console.error("agboxd is not running.");
    return true;
  }
  if (program_succeeds({"systemctl", "--user", "is-active", "--quiet", kService})) {
    return run_program({"systemctl", "--user", "stop", kService}) == 0;
  }
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, *holder, 0)));
  // Still the process that holds the lock, and not another one with its number.
  if (!process || sdk::inspect_daemon().lock_holder != holder) return true;
  if (::syscall(SYS_pidfd_send_signal, process.get(), SIGTERM, nullptr, 0) != 0 && errno != ESRCH) {
    console.failure("stop process " + std::to_string(*holder) + ", agboxd: " + message_of(errno));
    return false;
  }
  pollfd ended{.fd = process.get(), .events = POLLIN, .revents = 0};
  if (::poll(&ended, 1, kStopMilliseconds) == 1) return true;
  console.failure("process " + std::to_string(*holder) + ", agboxd, has not ended yet");
  return false;
}

bool start_daemon_on_first_use(Console& console) {
  const sdk::DaemonInspection found = sdk::inspect_daemon();
  // One that starts, ends or hangs is not ours to replace.
  if (found.lock_holder) return false;
  const bool can_start =
      has_daemon_service() || (!found.program.empty() && !found.store.empty() &&
                               found.may_change_firewall && found.engine.problem.empty());
  if (!can_start) return false;
  console.error("agboxd is not running: starting it.");
  return start_daemon(console);
}

}  // namespace agbox::cli
