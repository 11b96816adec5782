// SPDX-License-Identifier: Apache-2.0
#include "place/local/user_limits.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/send_descriptors.h"
#include "base/text_file.h"
#include "base/unique_fd.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kSearchLimit{2};
constexpr std::uint64_t kMiB = 1 << 20;

// --- what is used up ---

bool can_send_descriptor() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return true;
  const UniqueFd sender(ends[0]);
  const UniqueFd receiver(ends[1]);
  return send_with_descriptors(sender.get(), "x", std::span(ends).first(1)) == 1 ||
         errno != ETOOMANYREFS;
}

bool can_watch_with_epoll() {
  // The system calls, because the daemon's own functions of these names hide a refusal.
  const UniqueFd epoll(static_cast<int>(::syscall(SYS_epoll_create1, EPOLL_CLOEXEC)));
  const UniqueFd watched(::eventfd(0, EFD_CLOEXEC));
  epoll_event event{};
  return ::syscall(SYS_epoll_ctl, epoll.get(), EPOLL_CTL_ADD, watched.get(), &event) == 0 ||
         errno != ENOSPC;
}

std::optional<KernelBudget> missing_of_inotify() {
  const UniqueFd inotify(::inotify_init1(IN_CLOEXEC));
  if (!inotify) {
    return errno == EMFILE ? std::optional(KernelBudget::InotifyInstances) : std::nullopt;
  }
  if (::inotify_add_watch(inotify.get(), "/", IN_DELETE_SELF) >= 0) return std::nullopt;
  return errno == ENOSPC ? std::optional(KernelBudget::InotifyWatches) : std::nullopt;
}

// --- who holds it ---

// Lines that begin with `field`, and the sum of the numbers after it.
struct Lines {
  std::uint64_t count = 0;
  std::uint64_t sum = 0;
};

// Of a file of any size, without keeping it.
Lines read_lines(const fs::path& path, std::string_view field) {
  Lines lines;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return lines;
  std::array<char, 1 << 16> buffer;
  std::string line;  // its first bytes
  while (true) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got <= 0) return lines;
    for (const char c : std::string_view(buffer.data(), static_cast<std::size_t>(got))) {
      if (c != '\n') {
        if (line.size() < 64) line += c;
        continue;
      }
      if (line.starts_with(field)) {
        const char* const number =
            std::find_if_not(line.data() + field.size(), line.data() + line.size(),
                             [](char space) { return space == ' ' || space == '\t'; });
        std::uint64_t value = 0;
        std::from_chars(number, line.data() + line.size(), value);
        ++lines.count;
        lines.sum += value;
      }
      line.clear();
    }
  }
}

struct Use {
  std::map<KernelBudget, std::uint64_t> amounts;
  bool has_hidden = false;  // processes that do not let themselves be inspected
};

// Of one descriptor of a process. The descriptions of epoll instances are not read: the kernel
// writes all of one into memory at once, however many watches it has.
void add_descriptor(const fs::path& process, const std::string& number, Use& use) {
  std::error_code gone;
  const std::string target = fs::read_symlink(process / "fd" / number, gone).string();
  if (gone) return;
  const fs::path description = process / "fdinfo" / number;
  if (target == "anon_inode:inotify") {
    ++use.amounts[KernelBudget::InotifyInstances];
    use.amounts[KernelBudget::InotifyWatches] += read_lines(description, "inotify wd:").count;
  } else if (target.starts_with("socket:")) {
    use.amounts[KernelBudget::DescriptorsInFlight] += read_lines(description, "scm_fds:").sum;
  }
}

void add_process(const fs::path& process, steady_clock::time_point end, Use& use) {
  std::error_code problem;
  fs::directory_iterator entries(process / "fd", problem);
  if (problem == std::errc::permission_denied) {
    const auto status = read_text_file(process / "status").value_or("");
    use.has_hidden |= status.contains("\nUid:\t" + std::to_string(::geteuid()) + "\t");
  }
  while (!problem && entries != fs::directory_iterator() && steady_clock::now() < end) {
    add_descriptor(process, entries->path().filename(), use);
    entries.increment(problem);
  }
}

// The kernel's memory for a control group, most of which is epoll watches if it has many. No
// process can hide it.
std::uint64_t kernel_memory_of(std::string_view groups) {
  std::uint64_t bytes = 0;
  while (!groups.empty()) {
    const std::string_view line = groups.substr(0, groups.find('\n'));
    groups.remove_prefix(std::min(groups.size(), line.size() + 1));
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (controllers.empty()) {
      const std::string statistics = "/sys/fs/cgroup" + path + "/memory.stat";
      bytes = std::max(bytes, read_lines(statistics, "slab_unreclaimable ").sum);
    } else if (controllers == "memory") {
      const auto text =
          read_text_file("/sys/fs/cgroup/memory" + path + "/memory.kmem.usage_in_bytes");
      std::uint64_t used = 0;
      if (text) std::from_chars(text->data(), text->data() + text->size(), used);
      bytes = std::max(bytes, used);
    }
  }
  return bytes;
}

std::map<std::string, Use> uses_of(const std::vector<SandboxGuest>& guests) {
  std::map<std::string, std::string> by_groups;  // sandboxes, by the control groups of their guest
  std::map<std::string, Use> uses;
  for (const SandboxGuest& guest : guests) {
    const auto groups = read_text_file("/proc/" + std::to_string(guest.pid) + "/cgroup");
    if (guest.pid == 0 || !groups || groups->empty()) continue;
    by_groups[*groups] = guest.sandbox_id;
    uses[guest.sandbox_id].amounts[KernelBudget::EpollWatches] = kernel_memory_of(*groups);
  }
  const auto end = steady_clock::now() + kSearchLimit;
  std::error_code problem;
  fs::directory_iterator processes("/proc", problem);
  while (!problem && processes != fs::directory_iterator() && steady_clock::now() < end) {
    const fs::path process = processes->path();
    if (const auto groups = read_text_file(process / "cgroup")) {
      const auto sandbox = by_groups.find(*groups);
      if (sandbox != by_groups.end()) add_process(process, end, uses[sandbox->second]);
    }
    processes.increment(problem);
  }
  return uses;
}

std::string how_much(KernelBudget budget, std::uint64_t amount) {
  if (budget != KernelBudget::EpollWatches) return std::to_string(amount);
  return std::to_string(amount / kMiB) + " MiB of kernel memory";
}

}  // namespace

std::vector<KernelBudget> exhausted_budgets() {
  std::vector<KernelBudget> exhausted;
  if (!can_send_descriptor()) exhausted.push_back(KernelBudget::DescriptorsInFlight);
  if (!can_watch_with_epoll()) exhausted.push_back(KernelBudget::EpollWatches);
  if (const auto missing = missing_of_inotify()) exhausted.push_back(*missing);
  return exhausted;
}

BudgetHolders find_holders(const std::vector<SandboxGuest>& guests,
                           const std::vector<KernelBudget>& budgets) {
  const auto uses = uses_of(guests);
  BudgetHolders holders;
  for (const KernelBudget budget : budgets) {
    std::uint64_t most = 0;
    for (const auto& [sandbox_id, use] : uses) {
      const auto found = use.amounts.find(budget);
      if (found == use.amounts.end() || found->second <= most) continue;
      most = found->second;
      holders[budget] = {.sandbox_id = sandbox_id, .how_much = how_much(budget, most)};
    }
    if (holders.contains(budget)) continue;
    const auto hidden =
        std::ranges::find_if(uses, [](const auto& one) { return one.second.has_hidden; });
    if (hidden == uses.end()) continue;
    holders[budget] = {.sandbox_id = hidden->first, .how_much = "its processes hide how many"};
  }
  return holders;
}

std::string describe_exhausted(KernelBudget budget, const BudgetHolders& holders) {
  std::string sentence =
      title_of(budget) + " of user " + std::to_string(::geteuid()) + " are used up";
  const auto holder = holders.find(budget);
  if (holder == holders.end()) return sentence;
  return sentence + ", most of them by sandbox " + holder->second.sandbox_id + " (" +
         holder->second.how_much + ")";
}

}  // namespace agbox
