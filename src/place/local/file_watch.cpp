// SPDX-License-Identifier: Apache-2.0
#include "place/local/file_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "async/await.h"
#include "async/cancellation.h"
#include "base/kernel_budget.h"
#include "base/unique_fd.h"

namespace agbox {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;

// A change may consist of several steps: a new file, its content, a rename, a link.
constexpr std::chrono::milliseconds kAfterChange{100};
// While the kernel refuses to watch: sandboxes may have used up what it lets this user have.
constexpr std::chrono::seconds kBetweenChecks{2};
constexpr int kMostLinks = 40;  // as many as the kernel follows

constexpr std::uint32_t kOfNames =
    IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ATTRIB;
constexpr std::uint32_t kOfTheDirectory = IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED;
constexpr std::uint32_t kWatchedFor = kOfNames | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

// Without the root.
std::list<fs::path> components(const fs::path& path) {
  const fs::path relative = path.relative_path();
  return {relative.begin(), relative.end()};
}

// The path components that lead to the files, with the directories that contain them.
class WatchedNames {
 public:
  explicit WatchedNames(int inotify) : inotify_(inotify) {}

  // Watches the components that lead to the files now, instead of all previous ones. False if the
  // kernel refuses.
  bool follow(const std::vector<fs::path>& files) {
    const auto before = std::exchange(names_, {});
    const bool are_watched =
        std::ranges::all_of(files, [this](const fs::path& file) { return follow(file); });
    for (const auto& [directory, names] : before) {
      // Fails if the directory itself is gone, and its watch with it.
      if (!names_.contains(directory)) ::inotify_rm_watch(inotify_, directory);
    }
    return are_watched;
  }

  // Whether any event received so far concerns one of the names.
  bool take_events() {
    std::array<char, 4096> buffer{};  // the kernel never splits an event
    bool concerns_us = false;
    while (true) {
      const ssize_t got = ::read(inotify_, buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return concerns_us;  // EAGAIN: no more events
      for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
        inotify_event event{};
        std::memcpy(&event, buffer.data() + at, sizeof event);
        const std::string_view padded(buffer.data() + at + sizeof event, event.len);
        concerns_us |= concerns(event, padded.substr(0, padded.find('\0')));
        at += sizeof event + event.len;
      }
    }
  }

 private:
  // A name is resolved only after its directory is watched, so that no later change is missed.
  bool follow(const fs::path& file) {
    fs::path at = file.root_path();
    std::list<fs::path> left = components(file);
    for (int links = 0; !left.empty();) {
      const fs::path name = std::move(left.front());
      left.pop_front();
      if (name == "..") at = at.parent_path();
      if (name.empty() || name == "." || name == "..") continue;
      const Watch outcome = watch(at, name);
      if (outcome == Watch::Refused) return false;
      if (outcome == Watch::NoDirectory) return true;  // the watch on its parent reports it
      std::error_code is_no_link;
      const fs::path target = fs::read_symlink(at / name, is_no_link);
      if (is_no_link) {
        at /= name;
        continue;
      }
      if (++links > kMostLinks) return true;
      if (target.is_absolute()) at = target.root_path();
      left.splice(left.begin(), components(target));
    }
    return true;
  }

  enum class Watch { Set, NoDirectory, Refused };
  Watch watch(const fs::path& directory, const fs::path& name) {
    const int descriptor = ::inotify_add_watch(inotify_, directory.c_str(), kWatchedFor);
    if (descriptor >= 0) {
      names_[descriptor].insert(name.string());
      return Watch::Set;
    }
    // It does not exist, or cannot be read.
    if (errno == ENOENT || errno == ENOTDIR || errno == EACCES) return Watch::NoDirectory;
    if (errno == ENOSPC) note_refusal(KernelBudget::InotifyWatches);
    return Watch::Refused;
  }

  bool concerns(const inotify_event& event, std::string_view name) const {
    if ((event.mask & IN_Q_OVERFLOW) != 0) return true;
    const auto directory = names_.find(event.wd);
    if (directory == names_.end()) return false;
    if (name.empty()) return (event.mask & kOfTheDirectory) != 0;
    return directory->second.contains(name);
  }

  int inotify_;
  std::map<int, std::set<std::string, std::less<>>> names_;  // by watch descriptor
};

// False if the kernel refuses.
bool open_inotify(asio::posix::stream_descriptor& inotify) {
  UniqueFd opened(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!opened && errno == EMFILE) note_refusal(KernelBudget::InotifyInstances);
  if (!opened) return false;
  boost::system::error_code problem;
  inotify.assign(opened.get(), problem);
  if (problem) return false;
  static_cast<void>(opened.release());
  return true;
}

// Returns when it is cancelled, or the kernel refuses a watch.
asio::awaitable<void> follow_changes(const std::vector<fs::path>& files,
                                     const std::function<void()>& on_change) {
  const auto executor = co_await asio::this_coro::executor;
  asio::posix::stream_descriptor inotify(executor);
  if (!open_inotify(inotify)) co_return;
  asio::steady_timer timer(executor);
  WatchedNames names(inotify.native_handle());
  while (names.follow(files)) {
    on_change();
    do {
      if (co_await is_cancelled()) co_return;
      const auto [ended] =
          co_await inotify.async_wait(asio::posix::stream_descriptor::wait_read, kAwait);
      if (ended) co_return;
    } while (!names.take_events());
    timer.expires_after(kAfterChange);
    co_await timer.async_wait(kAwait);
    if (co_await is_cancelled()) co_return;
    static_cast<void>(names.take_events());
  }
}

}  // namespace

asio::awaitable<void> watch_files(std::vector<fs::path> files, std::function<void()> on_change) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  while (true) {
    co_await follow_changes(files, on_change);
    if (co_await is_cancelled()) co_return;
    on_change();
    timer.expires_after(kBetweenChecks);
    co_await timer.async_wait(kAwait);
    if (co_await is_cancelled()) co_return;
  }
}

}  // namespace agbox
