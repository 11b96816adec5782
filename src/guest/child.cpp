// SPDX-License-Identifier: Apache-2.0
#include "guest/child.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <unordered_map>

#include "guest/privilege.h"

namespace agbox::guest {
namespace {

// Where an environment names no PATH; what the engine sets too.
constexpr std::string_view kDefaultPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  // execve takes char* for the sake of old C and changes nothing.
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

// Where a program may be, in the order in which to try.
std::vector<std::string> places_of(const std::string& name, std::string_view path) {
  if (name.empty() || name.contains('/')) return {name};
  std::vector<std::string> places;
  while (true) {
    const std::size_t colon = path.find(':');
    const std::string_view folder = path.substr(0, colon);
    places.push_back(folder.empty() ? name : std::string(folder) + "/" + name);
    if (colon == std::string_view::npos) return places;
    path.remove_prefix(colon + 1);
  }
}

// All that the child needs. It runs on our memory until it has become the program, so whatever is
// to be made is made before it.
struct Execution {
  explicit Execution(const ChildProgram& program)
      : places(places_of(program.arguments[0], path_in(program.environment))),
        place_pointers(pointers(places)),
        arguments(pointers(program.arguments)),
        environment(pointers(program.environment)) {}

  std::vector<std::string> places;
  std::vector<char*> place_pointers;
  std::vector<char*> arguments;
  std::vector<char*> environment;
};

// The step that failed and its errno, from the child to us.
struct Report {
  enum Step : int { None, Identity, Folder, Program } step = None;
  int problem = 0;
};

// The errno that says most: of the first place where there was something, if it was not a program.
int execute(const Execution& execution) {
  int problem = ENOENT;
  for (char* const place : execution.place_pointers) {
    if (place == nullptr) break;
    ::execve(place, execution.arguments.data(), execution.environment.data());
    const bool go_on = errno == ENOENT || errno == ENOTDIR || errno == EACCES;
    if (!go_on || execution.places.size() == 1) return errno;
    if (errno == EACCES) problem = EACCES;
  }
  return problem;
}

// In the child: calls the kernel and nothing else.
[[noreturn]] void run(const ChildProgram& program, const Execution& execution,
                      volatile Report& report) {
  const auto give_up = [&](Report::Step step, int problem) {
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
  if (const int problem = become(program.identity)) give_up(Report::Identity, problem);
  if (::chdir(program.working_directory.c_str()) != 0) give_up(Report::Folder, errno);
  give_up(Report::Program, execute(execution));
  ::_exit(kNotExecutable);
}

// A sentence with a name of a megabyte in it helps nobody.
std::string shortened(const std::string& name) {
  constexpr std::size_t kEnough = 512;
  return name.size() <= kEnough ? name : name.substr(0, kEnough) + "...";
}

NotStarted explain(const Report& report, const ChildProgram& program) {
  const std::string why = std::strerror(report.problem);
  switch (report.step) {
    case Report::Identity:
      return {kNotExecutable,
              "cannot become uid " + std::to_string(program.identity.uid) + ": " + why};
    case Report::Folder:
      return {kNotExecutable, "cannot enter " + shortened(program.working_directory) + ": " + why};
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
  // Written by the child, in our memory: the compiler does not see that. We go on when the child
  // has become the program or has ended, so nothing is read too early.
  volatile Report report;
  // fork() would copy our page tables only for them to be thrown away, and posix_spawn() knows no
  // ids. That we stand still until the child has become the program is what we want.
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
