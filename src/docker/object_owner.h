// SPDX-License-Identifier: Apache-2.0
// Whose an object in the engine is. Every object of ours carries the labels of an ObjectOwner, and
// only what carries them is ever stopped or removed: a name proves nothing.
#pragma once

#include <map>
#include <string>

namespace agbox {

using EngineLabels = std::map<std::string, std::string>;

inline constexpr const char* kInstanceLabel = "io.github.1996fanrui.agents-sandbox.instance";
inline constexpr const char* kSandboxIdLabel = "io.github.1996fanrui.agents-sandbox.sandbox-id";

struct ObjectOwner {
  std::string instance;         // the daemon's own UUID
  std::string sandbox_id = {};  // empty: every sandbox of the instance

  EngineLabels labels() const {
    EngineLabels all{{kInstanceLabel, instance}};
    if (!sandbox_id.empty()) all[kSandboxIdLabel] = sandbox_id;
    return all;
  }
  // An empty instance owns nothing.
  bool owns(const EngineLabels& labels) const {
    if (instance.empty()) return false;
    const auto carries = [&labels](const char* key, const std::string& value) {
      const auto found = labels.find(key);
      return found != labels.end() && found->second == value;
    };
    if (!carries(kInstanceLabel, instance)) return false;
    return sandbox_id.empty() || carries(kSandboxIdLabel, sandbox_id);
  }
};

}  // namespace agbox
