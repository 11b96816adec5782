// SPDX-License-Identifier: Apache-2.0
// The variables that a command in a container gets in addition to the container's own:
// NAME=value, the last of a name counts.
#pragma once

#include <google/protobuf/map.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace agbox {

// The container already has `envs`, those of its spec, except that the guest's own HOME and USER
// override them. `own` are the command's, which come after both.
inline std::vector<std::string> exec_environment(
    const google::protobuf::Map<std::string, std::string>& envs,
    const google::protobuf::Map<std::string, std::string>& own) {
  std::vector<std::string> lines;
  for (const char* name : {"HOME", "USER"}) {
    const auto found = envs.find(name);
    if (found != envs.end()) lines.push_back(found->first + "=" + found->second);
  }
  const std::map<std::string_view, std::string_view> sorted(own.begin(), own.end());
  for (const auto& [name, value] : sorted) {
    lines.push_back(std::string(name) + "=" + std::string(value));
  }
  return lines;
}

}  // namespace agbox
