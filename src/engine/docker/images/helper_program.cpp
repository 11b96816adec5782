// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/images/helper_program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <cerrno>
#include <memory>
#include <optional>

#include "async/await.h"
#include "async/cancellation.h"
#include "base/unique_fd.h"

namespace agbox {

namespace {

std::optional<std::string> find_program(const std::string& name, const Environment& environment) {
  const auto path = environment.find("PATH");
  if (path == environment.end()) return std::nullopt;
  std::string_view rest = path->second;
  while (!rest.empty()) {
    const std::string_view directory = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(directory.size() + 1, rest.size()));
    if (!directory.starts_with('/')) continue;  // never a program from the current directory
    std::string candidate = std::string(directory) + "/" + name;
    struct stat facts{};
    if (::stat(candidate.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) &&
        ::access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return std::nullopt;
}

// A file in memory: the program may read it in any way, without SIGPIPE.
Result<UniqueFd> input_file(std::string_view text) {
  UniqueFd file(::memfd_create("agbox-helper-input", MFD_CLOEXEC));
  if (!file) return std::unexpected(errno_error("memfd_create", errno));
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::lseek(file.get(), 0, SEEK_SET) != 0) {
    return std::unexpected(errno_error("write the input of a helper", errno));
  }
  return file;
}

struct SpawnSettings {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;

  SpawnSettings() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
};

Result<pid_t> spawn(const std::string& path, const HelperRun& run, int input, int output) {
  SpawnSettings settings;
  ::posix_spawn_file_actions_adddup2(&settings.actions, input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&settings.actions, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&settings.actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // Our libraries open sockets that a program would inherit, such as those to the engine.
  ::posix_spawn_file_actions_addclosefrom_np(&settings.actions, STDERR_FILENO + 1);
  sigset_t all;
  sigset_t none;
  ::sigfillset(&all);
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&settings.attributes, &all);
  ::posix_spawnattr_setsigmask(&settings.attributes, &none);
  ::posix_spawnattr_setpgroup(&settings.attributes, 0);
  ::posix_spawnattr_setflags(
      &settings.attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  std::vector<std::string> texts{run.program};
  texts.insert(texts.end(), run.arguments.begin(), run.arguments.end());
  std::vector<std::string> variables;
  for (const auto& [name, value] : run.environment) variables.push_back(name + "=" + value);
  const auto pointers = [](std::vector<std::string>& from) {
    std::vector<char*> all_of_them;
    all_of_them.reserve(from.size() + 1);
    for (std::string& text : from) all_of_them.push_back(text.data());
    all_of_them.push_back(nullptr);
    return all_of_them;
  };
  pid_t pid = 0;
  const int problem = ::posix_spawn(&pid, path.c_str(), &settings.actions, &settings.attributes,
                                    pointers(texts).data(), pointers(variables).data());
  if (problem != 0) return std::unexpected(errno_error("cannot run " + path, problem));
  return pid;
}

// Our child; kills its process group and reaps it unless already reaped.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    reap();
  }

  // Only after its end or a SIGKILL, so the wait is short.
  int reap() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  pid_t pid_;
};

}  // namespace

asio::awaitable<Result<HelperAnswer>> run_helper(HelperRun run,
                                                 std::chrono::milliseconds deadline) {
  const auto executor = co_await asio::this_coro::executor;
  const auto path = find_program(run.program, run.environment);
  if (!path) {
    co_return fail(reason::kInvalidArgument, run.program +
                                                 " is not in PATH; install it or remove "
                                                 "it from the Docker configuration");
  }
  AGBOX_CO_TRY(input, input_file(run.input));
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) co_return std::unexpected(errno_error("pipe", errno));
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  AGBOX_CO_TRY(pid, spawn(*path, run, input.get(), write_end.get()));
  Child child(pid);
  write_end.reset();

  // glibc 2.36 declares pidfd_open, older ones do not.
  UniqueFd end_of_child(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!end_of_child) co_return std::unexpected(errno_error("pidfd_open", errno));

  // Shared with the timer's handler, which may already be queued when we are done.
  struct Waiting {
    asio::posix::stream_descriptor output;
    asio::posix::stream_descriptor exit;
    asio::steady_timer timer;
    bool has_expired = false;
  };
  auto waiting =
      std::make_shared<Waiting>(asio::posix::stream_descriptor(executor, read_end.release()),
                                asio::posix::stream_descriptor(executor, end_of_child.release()),
                                asio::steady_timer(executor, deadline));
  waiting->timer.async_wait([weak = std::weak_ptr(waiting)](boost::system::error_code stopped) {
    const auto here = weak.lock();
    if (stopped || !here) return;
    here->has_expired = true;
    here->output.cancel();
    here->exit.cancel();
  });
  const auto too_late = [&] {
    return waiting->has_expired
               ? fail(reason::kInvalidArgument, run.program + " gave no answer within " +
                                                    std::to_string(deadline.count()) + " ms")
               : fail(reason::kCancelled, run.program + ": cancelled");
  };

  HelperAnswer answer;
  std::array<char, 4096> piece{};
  while (true) {
    if (waiting->has_expired || co_await is_cancelled()) co_return too_late();
    const auto [problem, length] =
        co_await waiting->output.async_read_some(asio::buffer(piece), kAwait);
    if (problem == asio::error::eof) break;
    if (problem) co_return too_late();
    answer.output.append(piece.data(), length);
    if (answer.output.size() > run.largest_output) {
      co_return fail(reason::kInvalidArgument, run.program + " wrote more than " +
                                                   std::to_string(run.largest_output) + " bytes");
    }
  }
  if (waiting->has_expired || co_await is_cancelled()) co_return too_late();
  const auto [problem] =
      co_await waiting->exit.async_wait(asio::posix::stream_descriptor::wait_read, kAwait);
  if (problem) co_return too_late();
  answer.exit_code = child.reap();
  co_return answer;
}

}  // namespace agbox
