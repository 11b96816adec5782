// SPDX-License-Identifier: Apache-2.0
// How far a pull has come, out of the lines that the engine sends while it pulls. An error can come
// as a line too, after the answer began well. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "engine/docker/api/engine_error.h"

namespace agbox {

struct PullProgress {
  int layers = 0;
  int layers_done = 0;
  std::int64_t bytes_done = 0;  // downloaded, of the layers whose size is known
  std::int64_t bytes_total = 0;

  bool operator==(const PullProgress&) const = default;
};

class PullTracker {
 public:
  // One line; the error that it carries, if it carries one.
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
