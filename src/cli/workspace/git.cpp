// SPDX-License-Identifier: Apache-2.0
#include "cli/workspace/git.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "base/file_io.h"

namespace agbox::cli {

namespace {

// Of a patch: more cannot be read by people, and has to fit into memory.
constexpr std::size_t kMaxOutput = std::size_t{1} << 30;
// Patterns of a .gitignore can take older versions of git forever.
constexpr std::chrono::minutes kLongestRun{5};
constexpr std::size_t kMaxMessages = std::size_t{64} << 10;

// Above those of every .gitattributes: no conversion, no filter, no driver.
constexpr std::string_view kAttributes =
    "* -text !eol -ident -filter !working-tree-encoding !diff !merge !whitespace !export-subst "
    "!export-ignore\n";

using Words = std::vector<std::string>;

std::vector<char*> pointers(Words& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

std::string variable(const char* name, const char* otherwise = "") {
  const char* const value = std::getenv(name);
  return std::string(name) + "=" + (value != nullptr ? value : otherwise);
}

Words plain_environment() {
  return {variable("PATH", "/usr/local/bin:/usr/bin:/bin"), "LC_ALL=C", "GIT_TERMINAL_PROMPT=0",
          "GIT_OPTIONAL_LOCKS=0"};
}

UniqueFd memory_file(std::string_view content = {}) {
  UniqueFd file(::memfd_create("git", MFD_CLOEXEC));
  if (file && write_all(file.get(), content) == 0 && ::lseek(file.get(), 0, SEEK_SET) == 0) {
    return file;
  }
  return {};
}

std::string content_of(int file) {
  std::string text(kMaxMessages, '\0');
  const ssize_t got = ::pread(file, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

// The process, or an errno.
std::expected<pid_t, int> spawn(Words words, Words environment, int input, int output, int errors) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  // agbox ignores SIGPIPE, and that would be inherited. A process group of its own: Ctrl-C ends
  // agbox in its own way, not the git that saves the work.
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &signals);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  pid_t process = 0;
  const int problem = ::posix_spawnp(&process, "git", &actions, &attributes, pointers(words).data(),
                                     pointers(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) return std::unexpected(problem);
  return process;
}

int wait_for_exit(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// To the end; ETIMEDOUT if that does not come.
std::expected<std::string, int> read_in_time(int fd) {
  const auto deadline = std::chrono::steady_clock::now() + kLongestRun;
  std::string text;
  std::array<char, 65536> chunk{};
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return std::unexpected(ETIMEDOUT);
    pollfd readable{.fd = fd, .events = POLLIN, .revents = 0};
    if (::poll(&readable, 1, static_cast<int>(left.count())) <= 0) continue;
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::unexpected(errno);
    if (got == 0) return text;
    if (text.size() + static_cast<std::size_t>(got) > kMaxOutput) return std::unexpected(EFBIG);
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

Result<GitOutput> output_of(const Words& words, const Words& environment, std::string_view input) {
  const UniqueFd stdin_file = memory_file(input);
  const UniqueFd errors = memory_file();
  std::array<int, 2> ends{};
  if (!stdin_file || !errors || ::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return std::unexpected(errno_error("prepare to run git", errno));
  }
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const auto process = spawn(words, environment, stdin_file.get(), writer.get(), errors.get());
  if (!process) return std::unexpected(errno_error("run git", process.error()));
  writer = UniqueFd();
  auto out = read_in_time(reader.get());
  if (!out) ::kill(*process, SIGKILL);
  const int code = wait_for_exit(*process);
  if (!out && out.error() == ETIMEDOUT) {
    return fail(reason::kHostNotReady,
                "git did not end within " + std::to_string(kLongestRun.count()) + " minutes");
  }
  if (!out) return std::unexpected(errno_error("read the output of git", out.error()));
  return GitOutput{.exit_code = code, .out = std::move(*out), .error = content_of(errors.get())};
}

}  // namespace

GitProcess::GitProcess(GitProcess&& other) noexcept
    : process_(std::exchange(other.process_, 0)),
      input_(std::move(other.input_)),
      errors_(std::move(other.errors_)) {}

GitProcess::~GitProcess() {
  wait();
}

int GitProcess::write(std::string_view bytes) const {
  return write_all(input_.get(), bytes);
}

int GitProcess::wait() {
  input_ = UniqueFd();
  return process_ == 0 ? 0 : wait_for_exit(std::exchange(process_, 0));
}

GitOutput GitProcess::finish() {
  const int code = wait();
  return {.exit_code = code, .out = {}, .error = content_of(errors_.get())};
}

std::vector<std::string> GitStore::environment(const std::filesystem::path& work_tree) const {
  Words out = plain_environment();
  out.insert(out.end(),
             {"GIT_DIR=" + directory_.string(), "HOME=/nonexistent", "XDG_CONFIG_HOME=/nonexistent",
              "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
              "GIT_NO_REPLACE_OBJECTS=1"});
  if (!work_tree.empty()) out.push_back("GIT_WORK_TREE=" + work_tree.string());
  return out;
}

namespace {

Words store_command(const std::vector<std::string>& arguments) {
  Words words{"git"};
  for (const char* const setting :
       {"core.hooksPath=/dev/null", "core.attributesFile=/dev/null", "core.excludesFile=/dev/null",
        "core.fsmonitor=false", "core.protectHFS=true", "core.protectNTFS=true",
        "core.compression=1", "core.untrackedCache=false", "apply.whitespace=nowarn"}) {
    words.insert(words.end(), {"-c", setting});
  }
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

}  // namespace

Result<> GitStore::create() const {
  AGBOX_TRY(made, run({"init", "--quiet", "--bare", "--object-format=sha1", "--template="}));
  std::error_code problem;
  std::filesystem::create_directories(directory_ / "info", problem);
  std::ofstream attributes(directory_ / "info/attributes");
  attributes << kAttributes;
  attributes.close();
  if (problem || !attributes) {
    return fail(reason::kHostNotReady,
                (directory_ / "info/attributes").string() + " cannot be written");
  }
  return {};
}

Result<std::string> GitStore::run(const std::vector<std::string>& arguments,
                                  std::string_view input) const {
  AGBOX_TRY(done, output_of(store_command(arguments), environment({}), input));
  if (done.exit_code == 0) return std::move(done.out);
  return fail(reason::kHostNotReady, "git " + arguments.front() + " ended with " +
                                         std::to_string(done.exit_code) +
                                         (done.error.empty() ? "" : ": " + done.error));
}

Result<GitOutput> GitStore::run_in(const std::filesystem::path& work_tree,
                                   const std::vector<std::string>& arguments,
                                   std::string_view input) const {
  Words all{"-C", work_tree.string()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return output_of(store_command(all), environment(work_tree), input);
}

std::string GitStore::object(const std::string& name) const {
  std::string id = run({"rev-parse", "--verify", "--quiet", name}).value_or("");
  while (id.ends_with('\n')) id.pop_back();
  return id;
}

Result<GitProcess> GitStore::start_import() const {
  std::array<int, 2> ends{};
  UniqueFd errors = memory_file();
  const UniqueFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!errors || !null || ::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return std::unexpected(errno_error("prepare to run git", errno));
  }
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const auto process = spawn(store_command({"fast-import", "--quiet", "--done", "--force"}),
                             environment({}), reader.get(), null.get(), errors.get());
  if (!process) return std::unexpected(errno_error("run git", process.error()));
  // It compares every file of a directory with all others there.
  const rlim_t seconds = std::chrono::seconds(kLongestRun).count();
  const rlimit time{.rlim_cur = seconds, .rlim_max = seconds};
  ::prlimit(*process, RLIMIT_CPU, &time, nullptr);  // fails only if it has ended
  return GitProcess(*process, std::move(writer), std::move(errors));
}

bool has_git() {
  const auto done = output_of({"git", "--version"}, plain_environment(), {});
  return done && done->exit_code == 0;
}

Result<GitOutput> run_users_git(const std::filesystem::path& directory,
                                const std::vector<std::string>& arguments) {
  Words environment = plain_environment();
  for (const char* const name : {"HOME", "XDG_CONFIG_HOME", "USER"}) {
    if (std::getenv(name) != nullptr) environment.push_back(variable(name));
  }
  Words words{"git", "-C", directory.string(), "-c", "core.fsmonitor=false", "-c",
              "core.hooksPath=/dev/null",
              // A repository without a .git may have come out of a sandbox.
              "-c", "safe.bareRepository=explicit"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return output_of(words, environment, {});
}

}  // namespace agbox::cli
