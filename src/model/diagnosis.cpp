// SPDX-License-Identifier: Apache-2.0
#include "model/diagnosis.h"

#include <ranges>
#include <string_view>

#include "model/findings.h"
#include "model/object_names.h"
#include "model/sandbox_subnet.h"

namespace agbox {
namespace {

constexpr std::string_view kRestartDaemon = "systemctl --user restart agboxd";
// Below this share of the pool there is time to think of a larger one.
constexpr std::uint64_t kFewFreeShare = 10;
// Of a kind that there can be any number of.
constexpr std::size_t kMostNamed = 100;

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string counted(std::size_t number, std::string_view one, std::string_view many) {
  return std::to_string(number) + " " + std::string(number == 1 ? one : many);
}

std::string in_mib(std::uint64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

bool uses_iptables(const EngineFacts& engine) {
  return engine.firewall_backend.empty() || engine.firewall_backend.starts_with("iptables");
}

void judge_engine(const Result<EngineFacts>& engine, Findings& findings) {
  if (!engine) {
    findings.broken("engine", engine.error().message(),
                    "sudo systemctl start docker; where you may not use its socket: sudo usermod "
                    "-aG docker $USER, and log in again");
    return;
  }
  if (!engine->unfit.empty()) {
    findings.broken("engine", engine->unfit,
                    "change the engine as the sentence says, then: sudo systemctl restart docker");
    return;
  }
  findings.ok("engine", engine->name + " answers at " + engine->socket);
}

void judge_live_restore(const EngineFacts& engine, Findings& findings) {
  if (engine.has_live_restore) {
    findings.ok("live-restore", "sandboxes go on while the engine restarts");
    return;
  }
  findings.warn(
      "live-restore",
      "a restart of the engine stops every sandbox, with all that runs in it; agboxd then "
      "starts the sandbox again",
      "set \"live-restore\": true in /etc/docker/daemon.json, then: sudo systemctl reload "
      "docker");
}

void judge_layer_quota(const LayerStorage& storage, Findings& findings) {
  const std::string where =
      storage.driver +
      (storage.backing_filesystem.empty() ? "" : " on " + storage.backing_filesystem) + " in " +
      storage.root_folder;
  const auto has_quota = has_layer_quota(storage);
  if (!has_quota) {
    findings.unknown(
        "layer-quota",
        "whether the engine can limit what a sandbox writes cannot be seen from here (" + where +
            ")");
  } else if (*has_quota) {
    findings.ok("layer-quota",
                "the engine can limit what a sandbox writes into its own files (" + where + ")");
  } else {
    findings.warn(
        "layer-quota",
        "the engine cannot limit what a sandbox writes into its own files (" + where +
            "): disk_limit is refused, and a sandbox can fill that disk",
        "give the engine a data-root on XFS that is mounted with pquota, or a disk of its "
        "own");
  }
}

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
    findings.broken("firewall", firewall.error().message(), std::string(kRestartDaemon));
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

void judge_pool(const PoolFacts& facts, Findings& findings) {
  if (const auto checked = check_address_pool(facts.pool, facts.host_routes); !checked) {
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

void judge_store(const StoreFacts& facts, Findings& findings) {
  const std::string remedy = "make room on the disk of " + facts.path + "; it recovers by itself";
  if (facts.refuses_new_work) {
    findings.broken("store",
                    "the store " + facts.path + " has no room and refuses new work" +
                        (facts.waiting_changes == 0
                             ? ""
                             : "; " +
                                   counted(facts.waiting_changes, "accepted change waits",
                                           "accepted changes wait") +
                                   " for it"),
                    remedy);
  } else {
    findings.ok("store", facts.path + " takes new work");
  }
  if (facts.unreadable_sandboxes.empty()) return;
  findings.broken("stored-sandboxes",
                  "cannot be read from the store: " + listed(facts.unreadable_sandboxes),
                  "agbox sandbox get <sandbox_id> says why and what to do");
}

void judge_lock(const LockFacts& facts, Findings& findings) {
  if (!facts.is_held) {
    findings.unknown("lock", "whether agboxd holds " + facts.path + " cannot be seen");
  } else if (*facts.is_held) {
    findings.ok("lock", "agboxd holds " + facts.path);
  } else {
    findings.broken(
        "lock",
        "the lock file " + facts.path +
            " is not the one that agboxd holds: it was removed or replaced, and a second "
            "daemon could start",
        std::string(kRestartDaemon));
  }
}

void judge_guest_program(const GuestProgramFacts& facts, Findings& findings) {
  if (facts.is_there) {
    findings.ok("guest-program", facts.path + " is there for new sandboxes");
    return;
  }
  findings.broken(
      "guest-program",
      "the program that every sandbox begins with is gone, so none can start: " + facts.path,
      std::string(kRestartDaemon));
}

void judge_disk(const DiskFacts& disk, Findings& findings) {
  const std::string place = disk.path + " (" + disk.what + ")";
  if (!disk.problem.empty()) {
    findings.unknown("disk", "the disk of " + place + " cannot be looked at: " + disk.problem);
    return;
  }
  const std::string sentence = "the disk of " + place + " has " + in_mib(disk.left) +
                               " left, of which " + in_mib(disk.reserve) + " should stay free";
  const std::string remedy = "make room on the disk of " + disk.path;
  if (disk.left < disk.reserve && disk.holds_output) {
    findings.broken("disk", sentence + ": commands are refused until there is more", remedy);
  } else if (disk.left < 2 * disk.reserve) {
    findings.warn("disk", sentence, remedy);
  } else {
    findings.ok("disk", sentence);
  }
}

void judge_images(const Result<std::vector<ImageFacts>>& images, Findings& findings) {
  if (!images) {
    findings.unknown("images", "not looked at: " + images.error().message());
    return;
  }
  std::size_t there = 0;
  for (const ImageFacts& image : *images) {
    if (image.is_there) {
      ++there;
      continue;
    }
    findings.warn("images",
                  image.name + " is not on the engine" +
                      (image.is_of_sandbox ? ", though a sandbox was made of it" : "") +
                      ": the next create with it has to pull it",
                  "docker pull " + image.name);
  }
  if (there == images->size()) {
    findings.ok("images", there == 0 ? "no sandbox has an image yet"
                                     : counted(there, "image is", "images are") + " on the engine");
  }
}

void judge_strays(const Result<std::vector<StrayContainer>>& strays, Findings& findings) {
  if (!strays) {
    findings.unknown("unknown-primaries", "not looked at: " + strays.error().message());
    return;
  }
  for (const StrayContainer& stray : *strays | std::views::take(kMostNamed)) {
    findings.warn("unknown-primaries",
                  "container " + stray.container_name + " carries our label, for sandbox " +
                      stray.sandbox_id +
                      ", and the store does not know it, as after a backup was restored; agboxd "
                      "never removes it",
                  "docker rm -f " + stray.container_name + " once nothing in it is needed");
  }
  if (strays->size() > kMostNamed) {
    findings.warn("unknown-primaries",
                  "and " + std::to_string(strays->size() - kMostNamed) + " more of the kind",
                  "docker ps --all --filter label=" + instance_label());
  }
  if (strays->empty()) {
    findings.ok("unknown-primaries",
                "every primary container with our label is of a known sandbox");
  }
}

}  // namespace

std::optional<bool> has_layer_quota(const LayerStorage& storage) {
  if (storage.driver == "btrfs" || storage.driver == "zfs") return true;
  if (storage.driver != "overlay2") return false;
  if (storage.backing_filesystem.empty()) return std::nullopt;
  if (storage.backing_filesystem != "xfs") return false;
  return storage.has_project_quota;
}

v1::DiagnoseResponse judge_host(const DiagnosisFacts& facts) {
  Findings findings;
  judge_engine(facts.engine, findings);
  if (facts.engine) {
    judge_live_restore(*facts.engine, findings);
    judge_layer_quota(facts.engine->storage, findings);
  } else {
    for (const std::string_view check : {"live-restore", "layer-quota"}) {
      findings.unknown(check, "not looked at: the engine does not answer");
    }
  }
  judge_capability(facts.has_net_admin, findings);
  judge_tables(facts.firewall, facts.proofs, findings);
  judge_proofs(facts.proofs, findings);
  judge_other_firewalls(facts, findings);
  judge_forwarding(facts.forwards_packets, findings);
  judge_pool(facts.pool, findings);
  judge_resolvers(facts.resolvers, findings);
  judge_store(facts.store, findings);
  judge_lock(facts.lock, findings);
  judge_guest_program(facts.guest_program, findings);
  for (const DiskFacts& disk : facts.disks) judge_disk(disk, findings);
  judge_images(facts.images, findings);
  judge_strays(facts.strays, findings);
  return findings.take();
}

}  // namespace agbox
