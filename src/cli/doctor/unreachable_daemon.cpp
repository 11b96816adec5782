// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/unreachable_daemon.h"

#include "model/doctor/findings.h"

namespace agbox::cli {
namespace {

void judge_daemon(const std::string& why, const sdk::DaemonInspection& inspection,
                  Findings findings) {
  if (!inspection.runtime_problem.empty()) {
    return findings.broken(inspection.runtime_problem, "export XDG_RUNTIME_DIR=/run/user/$(id -u)");
  }
  if (!inspection.lock_holder) {
    const std::string program = inspection.program.empty() ? "agboxd" : inspection.program.string();
    return findings.broken(why, "systemctl --user start agboxd, or run: " + program);
  }
  const std::string process = std::to_string(*inspection.lock_holder);
  findings.broken(why + "; process " + process +
                      " is an agboxd that starts, ends or hangs: it holds " +
                      inspection.lock.string(),
                  "see its log with: journalctl --user -u agboxd; end it with: kill " + process +
                      "; then: systemctl --user start agboxd");
}

void judge_capability(const sdk::DaemonInspection& inspection, Findings findings) {
  const std::string program = inspection.program.string();
  if (program.empty()) {
    findings.broken("there is no agboxd next to this agbox, and none on PATH",
                    "install agents-sandbox, or put the directory of agboxd on PATH");
  } else if (inspection.may_change_firewall) {
    findings.ok(program + " may change the firewall (CAP_NET_ADMIN)");
  } else {
    findings.broken(program + " refuses to start: it may not change the firewall (CAP_NET_ADMIN)",
                    "sudo setcap cap_net_admin+ep " + program);
  }
}

void judge_store(const sdk::DaemonInspection& inspection, Findings findings) {
  const std::string store = inspection.store.string();
  if (store.empty()) {
    return findings.broken("the path of agboxd's store is not known: " + inspection.store_problem,
                           "export HOME and unset XDG_DATA_HOME, or set it to an absolute path");
  }
  if (inspection.store_problem.empty()) return findings.ok(store + " can be written");
  findings.broken("agboxd could not write its store " + store + ": " + inspection.store_problem,
                  "make that directory writable for you, or set XDG_DATA_HOME to one that is");
}

void judge_configuration(const sdk::DaemonInspection& inspection, Findings findings) {
  const std::string file = inspection.config_file.string();
  if (file.empty()) {
    return findings.broken("the path of config.toml is not known: " + inspection.config_problem,
                           "export HOME and unset XDG_CONFIG_HOME, or set it to an absolute path");
  }
  findings.ok(file + (inspection.has_config_file ? " is read at the start"
                                                 : " does not exist: the defaults are used"));
}

void judge_engine(const sdk::EngineInspection& engine, Findings findings) {
  const std::string socket = engine.socket.string();
  if (engine.problem.empty()) {
    findings.ok((engine.server.empty() ? "an engine" : engine.server) +
                (engine.api_version.empty() ? "" : " (API " + engine.api_version + ")") +
                " is reachable at " + socket);
  } else if (socket.empty()) {
    findings.broken(engine.problem, "unset DOCKER_HOST");
  } else if (engine.is_denied) {
    findings.broken("you may not use the engine at " + socket + ": " + engine.problem,
                    "sudo usermod -aG docker $USER, and log in again");
  } else {
    findings.broken("no engine is reachable at " + socket + ": " + engine.problem,
                    "sudo systemctl start docker");
  }
}

}  // namespace

v1::DiagnoseResponse judge_unreachable_daemon(const std::string& why,
                                              const sdk::DaemonInspection& inspection) {
  v1::DiagnoseResponse response;
  judge_daemon(why, inspection, {response, "daemon"});
  judge_capability(inspection, {response, "capability"});
  judge_store(inspection, {response, "store"});
  judge_configuration(inspection, {response, "configuration"});
  if (!inspection.lock_holder && !inspection.lock.empty()) {
    Findings(response, "lock").ok("no process holds " + inspection.lock.string());
  }
  judge_engine(inspection.engine, {response, "engine"});
  return response;
}

}  // namespace agbox::cli
