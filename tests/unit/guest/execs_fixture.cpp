// SPDX-License-Identifier: Apache-2.0
#include "unit/guest/execs_fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace agbox::guest {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr rlim_t kMostProcesses = 300;

// Limits the damage of a fork bomb that is not stopped.
void limit_processes() {
  const rlimit limit{kMostProcesses, kMostProcesses};
  if (::setrlimit(RLIMIT_NPROC, &limit) != 0) std::abort();
}

UniqueFd new_log(const std::filesystem::path& path) {
  return UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600));
}

std::string name_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

}  // namespace

void ExecsTest::SetUp() {
  if (::geteuid() != 0) GTEST_SKIP() << "running a command as somebody else takes root";
  // Like PID 1 of a container, adopt orphans.
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
  ::chmod(directory().c_str(), 0777);
  null_.reset(::open("/dev/null", O_RDWR | O_CLOEXEC));
  sigset_t child;
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child, nullptr);
  std::ofstream(directory() / "alive") << "";
  signals_.reset(::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
  execs_ = std::make_unique<Execs>(Execs::Context{
      .null = null_.get(),
      .send = [this](const v1::ToDaemon& message) { reported_.push_back(message); },
      .in_runner =
          [this] {
            limit_processes();
            in_runner_();
          },
      .is_foreign = [this](const Process& process) { return is_foreign_(process); }});
}

void ExecsTest::TearDown() {
  if (!execs_) return;
  // Kill what a test left running.
  std::filesystem::remove(directory() / "alive");
  until([this] {
    for (const pid_t pid : alive()) ::kill(pid, SIGKILL);
    return alive().empty() && !execs_->any_runs();
  });
}

ExecOrder ExecsTest::order_of(std::vector<std::string> command) {
  return {.command = std::move(command),
          .environment = {"PATH=/usr/bin:/bin", "FOLDER=" + directory().string()},
          .working_directory = directory().string(),
          .user = user_,
          .files = {},
          .limits = {}};
}

void ExecsTest::start(const std::string& id, ExecOrder order) {
  if (!order.files.out) order.files.out = new_log(directory() / (id + ".out"));
  if (!order.files.err) order.files.err = new_log(directory() / (id + ".err"));
  execs_->start(id, std::move(order));
}

v1::ExecEnded ExecsTest::run(const std::string& id, ExecOrder order) {
  start(id, std::move(order));
  return wait_end(id);
}

void ExecsTest::round(milliseconds limit) {
  Watches watches;
  watches.add(signals_.get(), POLLIN, [this] { reap(); });
  execs_->collect(watches);
  watches.wake(Clock::now() + limit);
  wait_and_serve(watches);
  execs_->work();
}

void ExecsTest::until(const std::function<bool()>& holds) {
  const auto deadline = Clock::now() + seconds(60);
  while (!holds()) {
    ASSERT_LT(Clock::now(), deadline);
    // Files and other processes do not wake the loop.
    round(milliseconds(5));
  }
}

void ExecsTest::reap() {
  signalfd_siginfo ignored{};
  while (::read(signals_.get(), &ignored, sizeof ignored) > 0) {
  }
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) execs_->on_exit(pid, status);
}

const v1::ExecEnded* ExecsTest::end_of(const std::string& id) const {
  for (const v1::ToDaemon& message : reported_) {
    if (message.has_exec_ended() && message.exec_ended().exec_id() == id) {
      return &message.exec_ended();
    }
  }
  return nullptr;
}

v1::ExecEnded ExecsTest::wait_end(const std::string& id) {
  until([&] { return end_of(id) != nullptr; });
  const v1::ExecEnded* end = end_of(id);
  return end == nullptr ? v1::ExecEnded() : *end;
}

std::string ExecsTest::read(const std::string& name) const {
  std::ifstream file(directory() / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool ExecsTest::exists(const std::string& name) const {
  return std::filesystem::exists(directory() / name);
}

uid_t ExecsTest::uid() {
  return 100'000 + static_cast<uid_t>(::getpid());
}

std::vector<pid_t> ExecsTest::alive() {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    struct stat status{};
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0 && ::stat(entry.path().c_str(), &status) == 0 && status.st_uid == uid()) {
      found.push_back(pid);
    }
  }
  return found;
}

std::vector<pid_t> ExecsTest::alive(const std::string& name) {
  std::vector<pid_t> found = alive();
  std::erase_if(found, [&](pid_t pid) { return name_of(pid) != name; });
  return found;
}

std::vector<pid_t> ExecsTest::runners() {
  std::vector<pid_t> found;
  for (const Process& child : ProcessTable::read().value().children_of(::getpid())) {
    if (name_of(child.pid) == "agbox-runner") found.push_back(child.pid);
  }
  return found;
}

}  // namespace agbox::guest
