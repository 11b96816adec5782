// SPDX-License-Identifier: Apache-2.0
#include "place/local/source_calls.h"

namespace agbox {
namespace {

constexpr int kHeldThreads = 2;
// Threads that wait for a disk cost little.
constexpr int kMostCalls = 64;

}  // namespace

SourceCalls::SourceCalls(const boost::asio::any_io_executor& executor,
                         std::chrono::milliseconds limit)
    : limit_(limit), calls_(executor, kHeldThreads, kMostCalls) {}

Result<> SourceCalls::check_none_hangs(const std::vector<std::string>& names) {
  std::erase_if(hanging_, [](const auto& one) { return one.expired(); });
  for (const auto& one : hanging_) {
    const auto inspected = one.lock();
    if (!inspected) continue;
    const std::string name = inspected->name();
    if (std::ranges::find(names, name) != names.end()) return hangs(name);
  }
  return {};
}

std::unexpected<Error> SourceCalls::hangs(const std::string& name) const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit_).count();
  return fail(reason::kHostNotReady, name + " has not been inspected within " +
                                         std::to_string(seconds) +
                                         " s: its disk does not respond; is it on a network "
                                         "filesystem that is not reachable?");
}

}  // namespace agbox
