// SPDX-License-Identifier: Apache-2.0
// Why no daemon answers and what to do about it, as far as a client can see: facts go in, findings
// come out. Pure.
#pragma once

#include <optional>
#include <string>

#include "agbox/v1/service.pb.h"

namespace agbox {

struct AbsenceFacts {
  std::string why;  // nobody answers, in one sentence
  std::string lock;
  std::optional<int> lock_holder;  // a process
  std::string program;             // the daemon's; empty where there is none
  bool may_change_firewall = false;
  std::string store;
  std::string store_problem;  // why it cannot be written; empty where it can
  std::string config_file;
  bool has_config_file = false;
  struct Engine {
    std::string socket;
    std::string problem;  // empty where it answers
    bool is_denied = false;
    std::string server;
    std::string api_version;
  };
  Engine engine;
};

v1::DiagnoseResponse judge_absence(const AbsenceFacts& facts);

}  // namespace agbox
