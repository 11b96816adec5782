// SPDX-License-Identifier: Apache-2.0
#include "base/failpoint.h"

#include <signal.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <mutex>

#include "base/check.h"

namespace agbox::failpoint {
namespace {

struct Armed {
  Action action = Action::None;
  unsigned from_passage = 1;
  unsigned passages = 0;
};

const std::map<std::string_view, Action> kActions = {{"kill", Action::Kill},
                                                     {"stop", Action::Stop},
                                                     {"error", Action::Error},
                                                     {"hold", Action::Hold}};

struct Registry {
  std::mutex mutex;  // failpoints are passed on every thread
  std::map<std::string, Armed, std::less<>> armed;
  bool recording = false;
  std::vector<std::string> recorded;
};

Registry& registry() {
  static Registry instance;
  return instance;
}

bool parse_one(std::string_view text, std::map<std::string, Armed, std::less<>>& into) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  std::string_view action = text.substr(equals + 1);
  Armed armed;
  if (const std::size_t at = action.find('@'); at != std::string_view::npos) {
    const std::string_view number = action.substr(at + 1);
    const auto [end, problem] =
        std::from_chars(number.data(), number.data() + number.size(), armed.from_passage);
    if (problem != std::errc() || end != number.data() + number.size()) return false;
    if (armed.from_passage == 0) return false;
    action = action.substr(0, at);
  }
  const auto known = kActions.find(action);
  if (known == kActions.end()) return false;
  armed.action = known->second;
  into[std::string(text.substr(0, equals))] = armed;
  return true;
}

}  // namespace

constinit std::atomic<bool> active{false};

namespace {

const bool kEnvironmentIsRead = [] {
  // Not from a caller with fewer privileges than this program.
  const char* specification = ::secure_getenv("AGBOX_FAILPOINTS");
  if (specification == nullptr || *specification == '\0') return false;
  AGBOX_CHECK(arm(specification), "AGBOX_FAILPOINTS is not name=kill|stop|error|hold[@N];...");
  return true;
}();

}  // namespace

bool arm(std::string_view specification) {
  std::map<std::string, Armed, std::less<>> armed;
  while (!specification.empty()) {
    const std::size_t end = std::min(specification.find(';'), specification.size());
    if (end > 0 && !parse_one(specification.substr(0, end), armed)) return false;
    specification.remove_prefix(std::min(end + 1, specification.size()));
  }
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  all.armed = std::move(armed);
  active = all.recording || !all.armed.empty();
  return true;
}

std::vector<std::string> armed() {
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  std::vector<std::string> names;
  for (const auto& [name, armed] : all.armed) names.push_back(name);
  return names;
}

Action passed(std::string_view name) {
  Registry& all = registry();
  Action action = Action::None;
  {
    const std::scoped_lock lock(all.mutex);
    if (all.recording && std::ranges::find(all.recorded, name) == all.recorded.end()) {
      all.recorded.emplace_back(name);
    }
    const auto found = all.armed.find(name);
    if (found == all.armed.end()) return Action::None;
    if (++found->second.passages < found->second.from_passage) return Action::None;
    action = found->second.action;
  }
  if (action == Action::Kill) ::raise(SIGKILL);
  if (action == Action::Stop) ::raise(SIGSTOP);
  return action;
}

unsigned passages(std::string_view name) {
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  const auto found = all.armed.find(name);
  return found == all.armed.end() ? 0 : found->second.passages;
}

void record_passages(bool on) {
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  all.recording = on;
  active = on || !all.armed.empty();
}

std::vector<std::string> recorded_passages() {
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  return all.recorded;
}

}  // namespace agbox::failpoint
