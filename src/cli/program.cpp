// SPDX-License-Identifier: Apache-2.0
#include "cli/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <utility>

namespace agbox::cli {

namespace {

constexpr int kNotFound = 127;
constexpr int kNotExecutable = 126;

// What main() sets for the gRPC of agbox only.
constexpr std::array<std::string_view, 2> kOwnSettings = {"GRPC_VERBOSITY=NONE",
                                                          "GRPC_POLL_STRATEGY=poll"};

class SpawnSettings {
 public:
  explicit SpawnSettings(short flags = 0) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    // agbox ignores SIGPIPE, and that would be inherited.
    sigset_t signals;
    ::sigemptyset(&signals);
    ::sigaddset(&signals, SIGPIPE);
    ::posix_spawnattr_setsigdefault(&attributes_, &signals);
    ::posix_spawnattr_setflags(&attributes_, static_cast<short>(POSIX_SPAWN_SETSIGDEF | flags));
  }
  ~SpawnSettings() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  void open(int fd, const char* path, int flags) {
    constexpr mode_t kOwnerOnly = 0600;
    ::posix_spawn_file_actions_addopen(&actions_, fd, path, flags, kOwnerOnly);
  }
  void copy(int from, int to) { ::posix_spawn_file_actions_adddup2(&actions_, from, to); }
  void enter(const char* directory) {
    ::posix_spawn_file_actions_addchdir_np(&actions_, directory);
  }
  void close_others() { ::posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1); }

  // The process, or an errno.
  std::expected<pid_t, int> spawn(const Words& words) const {
    Words settings;
    for (char** setting = environ; *setting != nullptr; ++setting) {
      if (std::ranges::find(kOwnSettings, std::string_view(*setting)) == kOwnSettings.end()) {
        settings.emplace_back(*setting);
      }
    }
    Words arguments = words;
    pid_t process = 0;
    const int problem = ::posix_spawnp(&process, words.front().c_str(), &actions_, &attributes_,
                                       pointers(arguments).data(), pointers(settings).data());
    if (problem != 0) return std::unexpected(problem);
    return process;
  }

 private:
  static std::vector<char*> pointers(Words& words) {
    std::vector<char*> out;
    for (std::string& word : words) out.push_back(word.data());
    out.push_back(nullptr);
    return out;
  }

  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

int exit_code_of(const std::expected<pid_t, int>& process) {
  if (!process) return process.error() == ENOENT ? kNotFound : kNotExecutable;
  int status = 0;
  while (::waitpid(*process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int run_program(const Words& words) {
  return exit_code_of(SpawnSettings().spawn(words));
}

bool program_succeeds(const Words& words) {
  SpawnSettings settings;
  settings.open(STDIN_FILENO, "/dev/null", O_RDONLY);
  settings.open(STDOUT_FILENO, "/dev/null", O_WRONLY);
  settings.open(STDERR_FILENO, "/dev/null", O_WRONLY);
  return exit_code_of(settings.spawn(words)) == 0;
}

std::expected<BackgroundProgram, int> run_in_background(const std::filesystem::path& program,
                                                        const std::filesystem::path& log) {
  SpawnSettings settings(POSIX_SPAWN_SETSID);
  settings.open(STDIN_FILENO, "/dev/null", O_RDONLY);
  settings.open(STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW);
  settings.copy(STDOUT_FILENO, STDERR_FILENO);
  settings.close_others();
  settings.enter("/");  // it would keep the filesystem of this directory in use
  const auto process = settings.spawn({std::filesystem::absolute(program).string()});
  if (!process) return std::unexpected(process.error());
  const auto ended = static_cast<int>(::syscall(SYS_pidfd_open, *process, 0));
  if (ended < 0) return std::unexpected(errno);
  return BackgroundProgram{*process, UniqueFd(ended)};
}

}  // namespace agbox::cli
