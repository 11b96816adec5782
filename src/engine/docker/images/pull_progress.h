// SPDX-License-Identifier: Apache-2.0
// The progress of a pull, from the lines that the engine sends. An error can be a line too, even
// after a successful status. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "engine/engine_error.h"

namespace agbox {

struct PullProgress {
  int layers = 0;
  int layers_done = 0;
  std::int64_t bytes_done = 0;  // downloaded, of layers of known size
  std::int64_t bytes_total = 0;

  bool operator==(const PullProgress&) const = default;
};

// For people: "pulling <image>: 1 of 3 layers, 10 of 40 MiB".
std::string describe_pull(const std::string& image, const PullProgress& pull);

class PullTracker {
 public:
  // Takes one line; returns the error that it carries, if any.
  EngineResult<> take(std::string_view line);
  PullProgress progress() const;

 private:
  struct Layer {
    std::int64_t current = 0;
    std::int64_t total = 0;
    bool is_done = false;
  };
  std::map<std::string, Layer> layers_;
};

}  // namespace agbox
