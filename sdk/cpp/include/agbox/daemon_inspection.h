// SPDX-License-Identifier: Apache-2.0
// Inspects the daemon's files, program and engine without calling the daemon, to explain why it is
// unreachable. Changes nothing and takes no lock.
#pragma once

#include <agbox/client_error.h>

#include <filesystem>
#include <optional>
#include <string>

namespace agbox::sdk {

// The engine that a daemon with this environment would use.
struct EngineInspection {
  std::filesystem::path socket = {};
  std::string problem = {};  // why it is unreachable; empty if it is reachable
  bool is_denied = false;    // this user has no access to its socket
  std::string server = {};   // its Server header: "Docker/28.5.2 (linux)"
  std::string api_version = {};
};

// A path is empty if the environment does not determine it; its problem then says why.
struct DaemonInspection {
  std::string runtime_problem = {};  // of the directory of socket and lock
  std::filesystem::path lock = {};
  std::optional<int> lock_holder = {};  // the process that holds it, if any
  std::filesystem::path store = {};
  std::filesystem::path config_file = {};
  std::string config_problem = {};
  bool has_config_file = false;
  std::string store_problem = {};  // why the daemon could not write there; empty if it could
  // The daemon's executable: next to this program, else on PATH; empty if not found.
  std::filesystem::path program = {};
  bool may_change_firewall = false;  // has CAP_NET_ADMIN when started
  EngineInspection engine = {};
};

DaemonInspection inspect_daemon();

}  // namespace agbox::sdk
