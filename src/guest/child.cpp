// SPDX-License-Identifier: Apache-2.0
#include "guest/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <unordered_map>

#include "guest/privilege.h"

namespace agbox::guest {
namespace {

// Used if the environment has no PATH; the engine's default.
constexpr std::string_view kDefaultPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

constexpr const char* kShell = "/bin/sh";

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  // execve takes char* for historical reasons and does not modify it.
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

std::string_view path_in(const std::vector<std::string>& environment) {
  constexpr std::string_view kName = "PATH=";
  for (const std::string& entry : environment) {
    if (entry.starts_with(kName)) return std::string_view(entry).substr(kName.size());
  }
  return kDefaultPath;
}

// Candidate paths of a program, in search order.
std::vector<std::string> candidate_paths(const std::string& name, std::string_view path) {
  if (name.empty() || name.contains('/')) return {name};
  std::vector<std::string> paths;
  while (true) {
    const std::size_t colon = path.find(':');
    const std::string_view directory = path.substr(0, colon);
    paths.push_back(directory.empty() ? name : std::string(directory) + "/" + name);
    if (colon == std::string_view::npos) return paths;
    path.remove_prefix(colon + 1);
  }
}

// Everything that the child needs. It shares our memory until execve, so all allocations happen
// before vfork.
struct Execution {
  explicit Execution(const ChildProgram& program)
      : paths(candidate_paths(program.arguments[0], path_in(program.environment))),
        path_pointers(pointers(paths)),
        arguments(pointers(program.arguments)),
        shell_arguments(arguments),
        environment(pointers(program.environment)) {
    // const_cast: as in pointers().
    shell_arguments.insert(shell_arguments.begin(), const_cast<char*>(kShell));
  }

  std::vector<std::string> paths;
  std::vector<char*> path_pointers;
  std::vector<char*> arguments;
  mutable std::vector<char*> shell_arguments;  // the second is the file, once it is known
  std::vector<char*> environment;
};

// Whether the shell would only stumble over it: a program for another machine, for example.
bool is_binary(const char* path) {
  // Others in the sandbox may have replaced it by a FIFO or a terminal.
  const int file = ::open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file < 0) return false;  // the shell says why
  char head[128];
  const ssize_t got = ::read(file, head, sizeof head);
  ::close(file);
  return got > 0 && std::memchr(head, 0, static_cast<std::size_t>(got)) != nullptr;
}

// Like a shell: an executable file that the kernel cannot execute, without "#!", is a script. If
// the image has no shell, errno is that of the file.
void execute_as_script(char* path, const Execution& execution) {
  if (!is_binary(path)) {
    execution.shell_arguments[1] = path;
    ::execve(kShell, execution.shell_arguments.data(), execution.environment.data());
  }
  errno = ENOEXEC;
}

// The step that failed and its errno, reported by the child.
struct Report {
  enum Step : int { None, Terminal, Identity, Directory, Program } step = None;
  int problem = 0;
};

// Returns the most useful errno: that of the first candidate that exists.
int execute(const Execution& execution) {
  int problem = ENOENT;
  for (char* const path : execution.path_pointers) {
    if (path == nullptr) break;
    ::execve(path, execution.arguments.data(), execution.environment.data());
    if (errno == ENOEXEC) execute_as_script(path, execution);
    const bool go_on = errno == ENOENT || errno == ENOTDIR || errno == EACCES;
    if (!go_on || execution.paths.size() == 1) return errno;
    if (errno == EACCES) problem = EACCES;
  }
  return problem;
}

// Runs in the child: system calls only.
[[noreturn]] void run(const ChildProgram& program, const Execution& execution,
                      volatile Report& report) {
  const auto exit_with = [&](Report::Step step, int problem) {
    report.step = step;
    report.problem = problem;
    ::_exit(kNotExecutable);
  };
  ::setsid();
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (program.in >= 0) ::dup2(program.in, STDIN_FILENO);
  if (program.out >= 0) ::dup2(program.out, STDOUT_FILENO);
  if (program.err >= 0) ::dup2(program.err, STDERR_FILENO);
  if (program.has_terminal && ::ioctl(STDIN_FILENO, TIOCSCTTY, 0) != 0) {
    exit_with(Report::Terminal, errno);
  }
  if (const int problem = switch_user(program.identity)) exit_with(Report::Identity, problem);
  if (::chdir(program.working_directory.c_str()) != 0) exit_with(Report::Directory, errno);
  exit_with(Report::Program, execute(execution));
  ::_exit(kNotExecutable);
}

// Limits the length of error messages.
std::string shortened(const std::string& name) {
  constexpr std::size_t kEnough = 512;
  return name.size() <= kEnough ? name : name.substr(0, kEnough) + "...";
}

NotStarted explain(const Report& report, const ChildProgram& program) {
  const std::string why = std::strerror(report.problem);
  switch (report.step) {
    case Report::Terminal:
      return {kNotExecutable, "cannot take its terminal: " + why};
    case Report::Identity:
      return {kNotExecutable,
              "cannot become uid " + std::to_string(program.identity.uid) + ": " + why};
    case Report::Directory:
      return {kNotExecutable,
              "cannot change to " + shortened(program.working_directory) + ": " + why};
    case Report::None:
    case Report::Program:
      break;
  }
  return {report.problem == ENOENT ? kNotFound : kNotExecutable,
          "cannot run '" + shortened(program.arguments[0]) + "': " + why};
}

}  // namespace

std::expected<pid_t, NotStarted> start_child(const ChildProgram& program) {
  const Execution execution(program);
  // volatile: the child writes it in our memory, which the compiler does not see. We resume after
  // execve or the child's end, so it is never read too early.
  volatile Report report;
  // fork() would copy our page tables for nothing, and posix_spawn() cannot change IDs. That
  // vfork() suspends us until execve is intended.
  const pid_t pid = ::vfork();  // NOLINT(bugprone-unsafe-functions)
  if (pid < 0) {
    return std::unexpected(
        NotStarted{0, std::string("cannot start a process: ") + std::strerror(errno)});
  }
  if (pid == 0) run(program, execution, report);
  if (report.step == Report::None) return pid;
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return std::unexpected(explain({report.step, report.problem}, program));
}

int exit_code_of(int wait_status) {
  if (WIFSIGNALED(wait_status)) return 128 + WTERMSIG(wait_status);
  return WEXITSTATUS(wait_status);
}

std::vector<std::string> environment_with(const std::vector<std::string>& added) {
  std::vector<std::string> result;
  std::unordered_map<std::string_view, std::size_t> place_of_name;
  const auto put = [&](std::string_view entry) {
    const auto [place, is_new] =
        place_of_name.try_emplace(entry.substr(0, entry.find('=')), result.size());
    if (is_new) {
      result.emplace_back(entry);
    } else {
      result[place->second] = entry;
    }
  };
  for (char** variable = environ; *variable != nullptr; ++variable) put(*variable);
  for (const std::string& entry : added) put(entry);
  return result;
}

}  // namespace agbox::guest
