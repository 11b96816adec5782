// SPDX-License-Identifier: Apache-2.0
#include "guest/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/unique_fd.h"
#include "guest/privilege.h"

namespace agbox::guest {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  // execve takes char* for the sake of old C and changes nothing.
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

// The step that failed and its errno, from the child to the guest.
struct Report {
  enum Step : int { Identity, Folder, Program } step;
  int problem;
};

[[noreturn]] void run(const ChildProgram& program, int report_fd) {
  const auto give_up = [&](Report::Step step, int problem) {
    const Report report{step, problem};
    const ssize_t told = ::write(report_fd, &report, sizeof report);
    ::_exit(told == sizeof report ? kNotExecutable : kNotFound);
  };
  ::setsid();
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (program.out >= 0) ::dup2(program.out, STDOUT_FILENO);
  if (program.err >= 0) ::dup2(program.err, STDERR_FILENO);
  if (const int problem = become(program.identity)) give_up(Report::Identity, problem);
  if (::chdir(program.working_directory.c_str()) != 0) give_up(Report::Folder, errno);
  std::vector<char*> environment = pointers(program.environment);
  environ = environment.data();  // also where execvp finds PATH
  const std::vector<char*> arguments = pointers(program.arguments);
  ::execvp(arguments[0], arguments.data());
  give_up(Report::Program, errno);
  ::_exit(kNotExecutable);
}

NotStarted explain(const Report& report, const ChildProgram& program) {
  const std::string why = std::strerror(report.problem);
  switch (report.step) {
    case Report::Identity:
      return {kNotExecutable,
              "cannot become uid " + std::to_string(program.identity.uid) + ": " + why};
    case Report::Folder:
      return {kNotExecutable, "cannot enter " + program.working_directory + ": " + why};
    case Report::Program:
      break;
  }
  return {report.problem == ENOENT ? kNotFound : kNotExecutable,
          "cannot run '" + program.arguments[0] + "': " + why};
}

}  // namespace

std::expected<pid_t, NotStarted> start_child(const ChildProgram& program) {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return std::unexpected(
        NotStarted{0, std::string("cannot make a pipe: ") + std::strerror(errno)});
  }
  UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) {
    return std::unexpected(
        NotStarted{0, std::string("cannot start a process: ") + std::strerror(errno)});
  }
  if (pid == 0) run(program, writing.get());
  writing.reset();
  Report report{};
  ssize_t got = 0;
  do {
    got = ::read(reading.get(), &report, sizeof report);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof report) return pid;  // closed by a successful exec
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return std::unexpected(explain(report, program));
}

int exit_code_of(int wait_status) {
  if (WIFSIGNALED(wait_status)) return 128 + WTERMSIG(wait_status);
  return WEXITSTATUS(wait_status);
}

std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& replaced) {
  std::vector<std::string> result;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view entry = *variable;
    const std::string_view name = entry.substr(0, entry.find('='));
    const bool ours = std::any_of(replaced.begin(), replaced.end(),
                                  [&](const auto& pair) { return pair.first == name; });
    if (!ours) result.emplace_back(entry);
  }
  for (const auto& [name, value] : replaced) result.push_back(name + "=" + value);
  return result;
}

}  // namespace agbox::guest
