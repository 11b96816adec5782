// SPDX-License-Identifier: Apache-2.0
// The owner of an object in the engine. Every object of ours carries the labels of an ObjectOwner,
// and only objects that carry them are ever stopped or removed: a name does not identify an owner.
#pragma once

#include <string>

#include "model/object_names.h"

namespace agbox {

using EngineLabels = Labels;

struct ObjectOwner {
  std::string instance;         // the daemon's own UUID
  std::string sandbox_id = {};  // empty: every sandbox of the instance

  EngineLabels labels() const {
    EngineLabels all{{instance_label(), instance}};
    if (!sandbox_id.empty()) all[sandbox_label()] = sandbox_id;
    return all;
  }
  // An empty instance owns nothing.
  bool owns(const EngineLabels& labels) const {
    if (instance.empty()) return false;
    const auto carries = [&labels](const std::string& key, const std::string& value) {
      const auto found = labels.find(key);
      return found != labels.end() && found->second == value;
    };
    if (!carries(instance_label(), instance)) return false;
    return sandbox_id.empty() || carries(sandbox_label(), sandbox_id);
  }
};

}  // namespace agbox
