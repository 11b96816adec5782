// SPDX-License-Identifier: Apache-2.0
// A label selector of a request: sandboxes match if they have every label of it.
#pragma once

#include <google/protobuf/map.h>

#include <algorithm>
#include <string>

namespace agbox {

using SandboxLabels = google::protobuf::Map<std::string, std::string>;

inline bool has_labels(const SandboxLabels& labels, const SandboxLabels& selector) {
  return std::ranges::all_of(selector, [&](const auto& wanted) {
    const auto found = labels.find(wanted.first);
    return found != labels.end() && found->second == wanted.second;
  });
}

}  // namespace agbox
