// SPDX-License-Identifier: Apache-2.0
// What a client sees of its daemon, and of what the daemon needs, without asking it: for programs
// that tell people why nobody answers. Nothing is changed, and no lock is taken.
#pragma once

#include <agbox/client_error.h>

#include <filesystem>
#include <optional>
#include <string>

namespace agbox::sdk {

// The engine that a daemon with this environment would use.
struct EngineTraces {
  std::filesystem::path socket = {};
  std::string problem = {};  // why it does not answer; empty where it does
  bool is_denied = false;    // this user may not use its socket
  std::string server = {};   // in its own words: "Docker/28.5.2 (linux)"
  std::string api_version = {};
};

struct DaemonTraces {
  std::filesystem::path lock = {};
  std::optional<int> lock_holder = {};  // the process that holds it; nothing where none does
  std::filesystem::path store = {};
  std::filesystem::path config_file = {};
  bool has_config_file = false;
  std::string store_problem = {};  // why a daemon could not write there; empty where it could
  // The daemon's program: beside this one, or else on PATH; empty where there is none.
  std::filesystem::path program = {};
  bool may_change_firewall = false;  // once it is started
  EngineTraces engine = {};
};

// Fails where the environment does not say where a daemon keeps its files.
Result<DaemonTraces> look_for_daemon();

}  // namespace agbox::sdk
