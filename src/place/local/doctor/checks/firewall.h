// SPDX-License-Identifier: Apache-2.0
// The firewall of the sandboxes, and other firewalls in their way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/capability.h"
#include "place/local/doctor/local_diagnosis.h"

namespace agbox {

// May the daemon change the firewall, and other users not, with its program?
struct CapabilityCheck {
  static constexpr std::string_view kName = "capability";
  bool has_net_admin = false;
  std::string program_of_everyone{};  // path; empty if not every user can run it with capabilities

  static CapabilityCheck gather() {
    return {.has_net_admin = has_net_admin_capability(),
            .program_of_everyone = capable_program_of_everyone()};
  }

  void judge(Findings& findings) const {
    if (!program_of_everyone.empty()) {
      findings.warn("every user of this host can run " + program_of_everyone +
                        ", which may change the firewall (CAP_NET_ADMIN)",
                    "sudo chown root:docker " + program_of_everyone + " && sudo chmod 0750 " +
                        program_of_everyone + " && sudo setcap cap_net_admin+ep " +
                        program_of_everyone);
    }
    if (has_net_admin) return findings.ok("agboxd may change the firewall (CAP_NET_ADMIN)");
    findings.broken(
        "agboxd may not change the firewall: it has lost CAP_NET_ADMIN",
        "sudo setcap cap_net_admin+ep $(which agboxd), then: " + std::string(kRestartDaemon));
  }
};

// Are both copies of every table in the kernel as expected?
struct FirewallCheck {
  static constexpr std::string_view kName = "firewall";
  Result<FirewallFacts> firewall;

  static FirewallCheck gather(const LocalCheckContext& context) {
    return {.firewall = context.firewall};
  }

  void judge(Findings& findings) const {
    if (!firewall) {
      return findings.broken(firewall.error().message(),
                             "fix the cause above; agboxd retries by itself");
    }
    std::vector<std::string> names;
    for (const TableFacts& table : firewall->tables) {
      names.push_back(table.name);
      if (table.difference.empty()) continue;
      findings.broken("the sandbox firewall is not as expected: " + table.difference,
                      "find the program that changes it with: sudo nft monitor; restore it with: " +
                          std::string(kRestartDaemon));
    }
    if (!findings.empty()) return;
    findings.ok("both copies of the rules are in the kernel, as they should be: " + listed(names));
  }
};

// Does another program change our rules? No finding until it happens.
struct FirewallRepairsCheck {
  static constexpr std::string_view kName = "firewall-repairs";
  std::uint64_t repairs = 0;
  std::string last_repair{};

  static FirewallRepairsCheck gather(const LocalCheckContext& context) {
    const IsolationHealth& health = context.isolation_health;
    return {.repairs = health.repairs, .last_repair = health.last_repair};
  }

  void judge(Findings& findings) const {
    if (repairs == 0) return;
    findings.warn("another program changed the firewall of the sandboxes; it was restored " +
                      counted(repairs, "time", "times") +
                      " since agboxd started; the last time: " + last_repair,
                  "keep that program away from tables named agents_sandbox_*; it is harmless as "
                  "long as agboxd runs");
  }
};

// Does another program's forward chain drop the packets of sandboxes?
struct OtherFirewallsCheck {
  static constexpr std::string_view kName = "other-firewalls";
  Result<FirewallFacts> firewall;
  // The tables in which the engine accepts packets of containers; "name*" is a prefix.
  std::vector<std::string> engine_tables{};

  static OtherFirewallsCheck gather(const LocalCheckContext& context) {
    return {.firewall = context.firewall, .engine_tables = context.request.engine_firewall_tables};
  }

  void judge(Findings& findings) const {
    if (!firewall) return findings.unknown("not checked: " + firewall.error().message());
    for (const DroppingChain& chain : firewall->dropping_chains) judge_chain(chain, findings);
    if (findings.empty()) findings.ok("no nftables policy of another program cuts sandboxes off");
  }

 private:
  void judge_chain(const DroppingChain& chain, Findings& findings) const {
    const std::string name = "chain " + chain.chain + " of table " + chain.table;
    if (chain.accepts_nothing) {
      return findings.broken(
          "another firewall drops everything that this host forwards, so no sandbox reaches the "
          "internet: " +
              name + " has the policy drop and accepts nothing",
          accept_command(chain));
    }
    if (is_engines(chain.table) || chain.accepts_sandboxes) return;
    findings.warn(
        "another firewall drops what it does not accept, and no rule of it is for sandboxes: " +
            name + " has the policy drop; sandboxes may not reach the internet",
        accept_command(chain));
  }

  bool is_engines(std::string_view table) const {
    return std::ranges::any_of(engine_tables, [table](std::string_view name) {
      return name.ends_with('*') ? table.starts_with(name.substr(0, name.size() - 1))
                                 : table == name;
    });
  }

  // Our own rules are evaluated as well: this opens nothing that they reject.
  static std::string accept_command(const DroppingChain& chain) {
    if (chain.table == "ip filter") {
      return "sudo iptables -I FORWARD -i agbx+ -j ACCEPT && sudo iptables -I FORWARD -o agbx+ -j "
             "ACCEPT";
    }
    const std::string add = "sudo nft insert rule " + chain.table + " " + chain.chain;
    return add + " iifname '\"agbx*\"' accept && " + add + " oifname '\"agbx*\"' accept";
  }
};

}  // namespace agbox
