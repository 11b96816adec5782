// SPDX-License-Identifier: Apache-2.0
#include "model/doctor/network_diagnosis.h"

#include "model/network/sandbox_subnet.h"

namespace agbox {
namespace {

// Below this share of the pool there is time to think of a larger one.
constexpr std::uint64_t kFewFreeShare = 10;

void judge_capability(bool has_net_admin, Findings& findings) {
  if (has_net_admin) {
    findings.ok("capability", "agboxd may change the firewall (CAP_NET_ADMIN)");
    return;
  }
  findings.broken(
      "capability", "agboxd may not change the firewall: it has lost CAP_NET_ADMIN",
      "sudo setcap cap_net_admin+ep $(which agboxd), then: " + std::string(kRestartDaemon));
}

void judge_tables(const Result<FirewallFacts>& firewall, const ProofFacts& proofs,
                  Findings& findings) {
  if (!firewall) {
    findings.broken("firewall", firewall.error().message(),
                    "do what it says; agboxd tries again by itself and need not be restarted");
    return;
  }
  std::vector<std::string> whole;
  for (const TableFacts& table : firewall->tables) {
    if (table.difference.empty()) {
      whole.push_back(table.name);
      continue;
    }
    findings.broken("firewall",
                    "the firewall of the sandboxes is not as it should be: " + table.difference,
                    "find who changes it with: sudo nft monitor; put it back with: " +
                        std::string(kRestartDaemon));
  }
  if (whole.size() == firewall->tables.size()) {
    findings.ok("firewall",
                "both copies of the rules are in the kernel, as they should be: " + listed(whole));
  }
  if (proofs.repairs > 0) {
    findings.warn(
        "firewall-repairs",
        "others have changed the firewall of the sandboxes, and it was put back " +
            (proofs.repairs == 1 ? std::string("once")
                                 : std::to_string(proofs.repairs) + " times") +
            " since agboxd started; the last time: " + proofs.last_repair,
        "keep that program away from tables named agents_sandbox_*; it is harmless as long "
        "as agboxd runs");
  }
}

void judge_proofs(const ProofFacts& proofs, Findings& findings) {
  for (const UnprovenSandbox& sandbox : proofs.unproven) {
    findings.broken("isolation", "sandbox " + sandbox.sandbox_id + ": " + sandbox.why,
                    "agbox sandbox stop " + sandbox.sandbox_id +
                        ", and resume it when the firewall is in place");
  }
  for (const UnprovenSandbox& sandbox : proofs.unasked) {
    findings.unknown("isolation",
                     "sandbox " + sandbox.sandbox_id +
                         ": the rules are in place for it, but it could not be asked to "
                         "try them: " +
                         sandbox.why);
  }
  if (proofs.skipped > 0) {
    findings.unknown("isolation",
                     counted(proofs.skipped, "running sandbox was", "running sandboxes were") +
                         " not asked, because those before took too long to answer");
  }
  const bool only_unknown = proofs.proven == 0 && (!proofs.unasked.empty() || proofs.skipped > 0);
  if (!proofs.unproven.empty() || only_unknown) return;
  findings.ok("isolation", proofs.proven == 0
                               ? "no sandbox runs that would have to prove its isolation"
                               : "proven now for " + counted(proofs.proven, "running sandbox",
                                                             "running sandboxes"));
}

// Our own rules come before what these accept, and stay.
std::string accept_command(const DroppingChain& chain) {
  if (chain.table == "ip filter") {
    return "sudo iptables -I FORWARD -i agbx+ -j ACCEPT && sudo iptables -I FORWARD -o agbx+ -j "
           "ACCEPT";
  }
  const std::string add = "sudo nft insert rule " + chain.table + " " + chain.chain;
  return add + " iifname '\"agbx*\"' accept && " + add + " oifname '\"agbx*\"' accept";
}

bool uses_iptables(const EngineFacts& engine) {
  return engine.firewall_backend.empty() || engine.firewall_backend.starts_with("iptables");
}

// Whether there was something to say of it.
bool judge_dropping_chain(const DroppingChain& chain, bool engine_uses_iptables,
                          Findings& findings) {
  const std::string name = "chain " + chain.chain + " of table " + chain.table;
  const std::string remedy = accept_command(chain);
  if (chain.accepts_nothing) {
    findings.broken("other-firewalls",
                    "another firewall drops everything that this host forwards, so no sandbox "
                    "reaches the internet: " +
                        name + " has the policy drop and accepts nothing",
                    remedy);
    return true;
  }
  // In these the engine accepts its own containers itself.
  const bool is_engines =
      (engine_uses_iptables && chain.table == "ip filter") || chain.table.starts_with("ip docker-");
  if (is_engines || chain.accepts_sandboxes) return false;
  findings.warn("other-firewalls",
                "another firewall drops what it does not accept, and no rule of it is for "
                "sandboxes: " +
                    name + " has the policy drop; sandboxes may not reach the internet",
                remedy);
  return true;
}

void judge_other_firewalls(const DiagnosisFacts& facts, Findings& findings) {
  if (!facts.firewall) {
    findings.unknown("other-firewalls", "not looked at: " + facts.firewall.error().message());
    return;
  }
  const bool engine_uses_iptables = !facts.engine || uses_iptables(*facts.engine);
  bool was_told = false;
  for (const DroppingChain& chain : facts.firewall->dropping_chains) {
    was_told |= judge_dropping_chain(chain, engine_uses_iptables, findings);
  }
  if (!was_told) findings.ok("other-firewalls", "no nftables policy of others cuts sandboxes off");
}

void judge_forwarding(std::optional<bool> forwards, Findings& findings) {
  if (!forwards) {
    findings.unknown("ip-forward", "net.ipv4.ip_forward cannot be read");
  } else if (*forwards) {
    findings.ok("ip-forward", "this host forwards packets of sandboxes (net.ipv4.ip_forward)");
  } else {
    findings.broken("ip-forward",
                    "this host forwards no packets, so no sandbox reaches the internet: "
                    "net.ipv4.ip_forward is 0",
                    "sudo sysctl -w net.ipv4.ip_forward=1");
  }
}

void judge_pool(const Result<PoolFacts>& gathered, Findings& findings) {
  if (!gathered) {
    findings.unknown("address-pool", "not checked: " + gathered.error().message());
    return;
  }
  const PoolFacts& facts = *gathered;
  if (const auto checked = check_address_pool(facts.pool, facts.in_use); !checked) {
    findings.broken("address-pool", checked.error().message(),
                    "set network.address_pool in config.toml to a free network, then: " +
                        std::string(kRestartDaemon));
    return;
  }
  const std::uint64_t all = network_count(facts.pool);
  const std::uint64_t left = free_network_count(facts.pool, facts.taken);
  const std::string sentence = std::to_string(left) + " of " + std::to_string(all) +
                               " networks for sandboxes are free in " + facts.pool.text();
  const std::string remedy =
      "delete sandboxes that are no longer needed, or set a larger network.address_pool in "
      "config.toml";
  if (left == 0) {
    findings.broken("address-pool", sentence + ", so no sandbox can be created", remedy);
  } else if (left * kFewFreeShare < all) {
    findings.warn("address-pool", sentence, remedy);
  } else {
    findings.ok("address-pool", sentence);
  }
}

void judge_resolvers(const ResolverFacts& facts, Findings& findings) {
  if (facts.given.empty()) {
    findings.broken("resolvers",
                    "no resolver can be given to a sandbox, so none is created: those of this host "
                    "are all on loopback or IPv6",
                    "set network.dns in config.toml, then: " + std::string(kRestartDaemon));
  } else if (!facts.are_configured && facts.given != facts.of_host) {
    findings.warn("resolvers",
                  "new sandboxes ask " + listed(facts.given) +
                      ", as this host did before; it now asks " +
                      (facts.of_host.empty() ? "none that a sandbox could" : listed(facts.of_host)),
                  std::string(kRestartDaemon));
  } else {
    findings.ok("resolvers", "new sandboxes ask " + listed(facts.given) +
                                 (facts.are_configured ? " (network.dns)" : ", as this host does"));
  }
}

}  // namespace

void diagnose_network(const DiagnosisFacts& facts, Findings& findings) {
  judge_capability(facts.has_net_admin, findings);
  judge_tables(facts.firewall, facts.proofs, findings);
  judge_proofs(facts.proofs, findings);
  judge_other_firewalls(facts, findings);
  judge_forwarding(facts.forwards_packets, findings);
  judge_pool(facts.pool, findings);
  judge_resolvers(facts.resolvers, findings);
}

}  // namespace agbox
