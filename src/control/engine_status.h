// SPDX-License-Identifier: Apache-2.0
// Which engine is reachable now.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/thread_checker.h"
#include "engine/engine.h"
#include "model/reasons.h"

namespace agbox {

class EngineStatus {
 public:
  // `problem`, a human-readable sentence, is reported until the first attempt to reach the engine.
  explicit EngineStatus(std::string problem) : problem_(std::move(problem)) {}

  const std::optional<ReachableEngine>& now() const { return now_; }
  // ENGINE_UNAVAILABLE with the problem if none is reachable.
  Result<ReachableEngine> check() const {
    if (now_) return *now_;
    return fail(reason::kEngineUnavailable, problem_);
  }

  void set_reachable(const ReachableEngine& engine) {
    AGBOX_ON_ITS_THREAD(thread_);
    now_ = engine;
  }
  void set_unreachable(std::string problem) {
    AGBOX_ON_ITS_THREAD(thread_);
    now_.reset();
    problem_ = std::move(problem);
  }

 private:
  ThreadChecker thread_;
  std::optional<ReachableEngine> now_;
  std::string problem_;
};

}  // namespace agbox
