// SPDX-License-Identifier: Apache-2.0
// What containers use, as rows of a table.
#pragma once

#include <agbox/v1/stats.pb.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace agbox::cli {

// 1.5MiB, as `docker stats` prints it.
std::string bytes_text(std::uint64_t bytes);

class StatsTable {
 public:
  static std::vector<std::string> header();
  // One row per container. The CPU usage is that since the previous call for this sandbox, unknown
  // at the first one.
  std::vector<std::vector<std::string>> rows(const v1::SandboxStats& stats);

 private:
  struct Earlier {
    double time = 0;      // in seconds
    double cpu_time = 0;  // the same
  };
  std::map<std::pair<std::string, std::string>, Earlier> earlier_;  // by sandbox and container
};

}  // namespace agbox::cli
