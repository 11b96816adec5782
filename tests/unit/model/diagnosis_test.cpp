// SPDX-License-Identifier: Apache-2.0
// A healthy machine, and every way in which it can be something else.
#include "model/doctor/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "model/reasons.h"

namespace agbox {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Ipv4Network range(std::string_view text) {
  return parse_ipv4_network(text).value();
}

DiagnosisFacts healthy() {
  DiagnosisFacts facts;
  facts.has_net_admin = true;
  facts.engine = EngineFacts{.name = "Docker 28.5.2 (API 1.51)",
                             .socket = "/var/run/docker.sock",
                             .unfit = {},
                             .firewall_backend = {},
                             .has_live_restore = true,
                             .storage = {.driver = "overlay2",
                                         .backing_filesystem = "xfs",
                                         .root_folder = "/var/lib/docker",
                                         .has_project_quota = true}};
  facts.firewall =
      FirewallFacts{.tables = {{.name = "inet agents_sandbox_1", .difference = {}},
                               {.name = "inet agents_sandbox_1_owned", .difference = {}}},
                    .dropping_chains = {}};
  facts.forwards_packets = true;
  facts.pool->pool = range("10.201.0.0/24");
  facts.resolvers = {.given = {"192.0.2.53"}, .of_host = {"192.0.2.53"}};
  facts.store.path = "/data/ids.db";
  facts.lock = {.path = "/run/agboxd.lock", .is_held = true};
  facts.guest_program = {.path = "/state/agbox-guest", .is_there = true};
  facts.disks = {{.what = "store", .path = "/data", .left = 100 << 20, .reserve = 10 << 20}};
  facts.images = std::vector<ImageFacts>{{.name = "debian:12", .is_there = true}};
  facts.strays = std::vector<StrayContainer>{};
  return facts;
}

// The findings about one check after a change to a healthy machine.
struct Found {
  std::vector<v1::FindingVerdict> verdicts;
  std::string sentences;
  std::string remedies;
};
Found found(const std::string& check, const std::function<void(DiagnosisFacts&)>& change) {
  DiagnosisFacts facts = healthy();
  change(facts);
  Found found;
  for (const v1::Finding& finding : judge_host(facts).findings()) {
    if (finding.check() != check) continue;
    found.verdicts.push_back(finding.verdict());
    found.sentences += finding.sentence() + "\n";
    found.remedies += finding.remedy();
  }
  return found;
}

constexpr auto kOk = v1::FINDING_VERDICT_OK;
constexpr auto kWarning = v1::FINDING_VERDICT_WARNING;
constexpr auto kBroken = v1::FINDING_VERDICT_BROKEN;
constexpr auto kUnknown = v1::FINDING_VERDICT_UNKNOWN;

TEST(Diagnosis, OfAHealthyMachineIsOkAboutEverythingOnce) {
  std::multiset<std::string> checks;
  for (const v1::Finding& finding : judge_host(healthy()).findings()) {
    EXPECT_EQ(finding.verdict(), kOk) << finding.ShortDebugString();
    EXPECT_THAT(finding.sentence(), Not(IsEmpty())) << finding.check();
    EXPECT_EQ(finding.remedy(), "") << finding.check();
    checks.insert(finding.check());
  }
  EXPECT_THAT(checks, ElementsAre("address-pool", "capability", "disk", "engine", "firewall",
                                  "guest-program", "images", "ip-forward", "isolation",
                                  "layer-quota", "live-restore", "lock", "other-firewalls",
                                  "resolvers", "store", "unknown-primaries"));
}

struct Fault {
  std::string check;
  v1::FindingVerdict verdict;
  std::function<void(DiagnosisFacts&)> change;
  std::string sentence;
  std::string remedy;  // a part of it
};

const Fault kFaults[] = {
    {"engine", kBroken,
     [](auto& facts) { facts.engine = fail(reason::kEngineUnavailable, "nobody is there"); },
     "nobody is there", "sudo systemctl start docker"},
    {"engine", kBroken, [](auto& facts) { facts.engine->unfit = "Podman cannot run sandboxes"; },
     "Podman cannot run sandboxes", "sudo systemctl restart docker"},
    {"live-restore", kWarning, [](auto& facts) { facts.engine->has_live_restore = false; },
     "a restart of the engine stops every sandbox", "\"live-restore\": true"},
    {"layer-quota", kWarning,
     [](auto& facts) { facts.engine->storage.backing_filesystem = "extfs"; },
     "cannot limit what a sandbox writes into its own files (overlay2 on extfs in /var/lib/docker)",
     "mounted with pquota"},
    {"capability", kBroken, [](auto& facts) { facts.has_net_admin = false; }, "lost CAP_NET_ADMIN",
     "sudo setcap cap_net_admin+ep"},
    {"firewall", kBroken,
     [](auto& facts) { facts.firewall = fail(reason::kIsolationUnavailable, "no nftables here"); },
     "no nftables here", "agboxd tries again by itself"},
    {"firewall", kBroken,
     [](auto& facts) {
       facts.firewall->tables[1].difference = "table inet agents_sandbox_1_owned is missing";
     },
     "not as it should be: table inet agents_sandbox_1_owned is missing", "sudo nft monitor"},
    {"firewall-repairs", kWarning,
     [](auto& facts) {
       facts.proofs.repairs = 2;
       facts.proofs.last_repair = "table x is missing, changed by 'nft' (pid 7)";
     },
     "put back 2 times since agboxd started; the last time: table x is missing, changed by 'nft'",
     "agents_sandbox_*"},
    {"isolation", kBroken,
     [](auto& facts) {
       facts.proofs.proven = 1;
       facts.proofs.unproven = {{.sandbox_id = "box-1", .why = "its bridge is gone"}};
     },
     "sandbox box-1: its bridge is gone", "agbox sandbox stop box-1"},
    {"isolation", kUnknown,
     [](auto& facts) {
       facts.proofs.proven = 0;
       facts.proofs.unasked = {{.sandbox_id = "box-1", .why = "the guest does not answer"}};
     },
     "sandbox box-1: the rules are in place for it, but it could not be asked to try them: the "
     "guest "
     "does not answer",
     ""},
    {"isolation", kUnknown,
     [](auto& facts) {
       facts.proofs.proven = 0;
       facts.proofs.skipped = 2;
     },
     "2 running sandboxes were not asked, because those before took too long to answer", ""},
    {"other-firewalls", kUnknown,
     [](auto& facts) { facts.firewall = fail(reason::kIsolationUnavailable, "no nftables here"); },
     "not looked at: no nftables here", ""},
    {"ip-forward", kBroken, [](auto& facts) { facts.forwards_packets = false; },
     "net.ipv4.ip_forward is 0", "sudo sysctl -w net.ipv4.ip_forward=1"},
    {"ip-forward", kUnknown, [](auto& facts) { facts.forwards_packets.reset(); }, "cannot be read",
     ""},
    {"address-pool", kBroken, [](auto& facts) { facts.pool->in_use = {range("10.201.0.128/25")}; },
     "overlaps this host's route to 10.201.0.128/25", "set network.address_pool"},
    {"address-pool", kBroken, [](auto& facts) { facts.pool->taken = {facts.pool->pool}; },
     "0 of 16 networks for sandboxes are free in 10.201.0.0/24, so no sandbox can be created",
     "delete sandboxes"},
    {"address-pool", kWarning,
     [](auto& facts) {
       facts.pool->taken = {range("10.201.0.0/25"), range("10.201.0.128/26"),
                            range("10.201.0.192/27"), range("10.201.0.224/28")};
     },
     "1 of 16 networks", "delete sandboxes"},
    {"address-pool", kUnknown,
     [](auto& facts) { facts.pool = fail(reason::kInternal, "no netlink here"); },
     "not checked: no netlink here", ""},
    {"resolvers", kBroken, [](auto& facts) { facts.resolvers.given.clear(); },
     "no resolver can be given to a sandbox", "set network.dns"},
    {"resolvers", kWarning, [](auto& facts) { facts.resolvers.of_host = {"192.0.2.1"}; },
     "ask 192.0.2.53, as this host did before; it now asks 192.0.2.1", "restart agboxd"},
    {"store", kBroken,
     [](auto& facts) {
       facts.store.refuses_new_work = true;
       facts.store.waiting_changes = 1;
     },
     "has no room and refuses new work; 1 accepted change waits for it", "make room"},
    {"stored-sandboxes", kBroken,
     [](auto& facts) { facts.store.unreadable_sandboxes = {"box-1", "box-2"}; }, "box-1, box-2",
     "agbox sandbox get"},
    {"lock", kBroken, [](auto& facts) { facts.lock.is_held = false; },
     "a second daemon could start", "restart agboxd"},
    {"lock", kUnknown, [](auto& facts) { facts.lock.is_held.reset(); }, "cannot be seen", ""},
    {"guest-program", kBroken, [](auto& facts) { facts.guest_program.is_there = false; },
     "is gone, so none can start: /state/agbox-guest", "restart agboxd"},
    {"disk", kWarning, [](auto& facts) { facts.disks[0].left = 19 << 20; },
     "has 19 MiB left, of which 10 MiB should stay free", "make room"},
    {"disk", kWarning, [](auto& facts) { facts.disks[0].left = 9 << 20; }, "has 9 MiB left",
     "make room"},
    {"disk", kBroken,
     [](auto& facts) {
       facts.disks[0].left = 9 << 20;
       facts.disks[0].holds_output = true;
     },
     "commands are refused", "make room"},
    {"disk", kUnknown, [](auto& facts) { facts.disks[0].problem = "Permission denied"; },
     "cannot be looked at: Permission denied", ""},
    {"images", kWarning, [](auto& facts) { facts.images->at(0).is_there = false; },
     "debian:12 is not on the engine: the next create", "docker pull debian:12"},
    {"images", kUnknown,
     [](auto& facts) { facts.images = fail(reason::kEngineUnavailable, "nobody is there"); },
     "not looked at: nobody is there", ""},
    {"unknown-primaries", kWarning,
     [](auto& facts) { facts.strays->push_back({.container_name = "c-1", .sandbox_id = "box-9"}); },
     "container c-1 carries our label, for sandbox box-9", "docker rm -f c-1"},
};

TEST(Diagnosis, NamesEveryFaultWithWhatMendsIt) {
  for (const Fault& fault : kFaults) {
    const Found told = found(fault.check, fault.change);
    EXPECT_THAT(told.verdicts, ElementsAre(fault.verdict)) << fault.sentence;
    EXPECT_THAT(told.sentences, HasSubstr(fault.sentence));
    EXPECT_THAT(told.remedies, HasSubstr(fault.remedy));
    EXPECT_EQ(told.remedies.empty(), fault.remedy.empty()) << fault.sentence;
  }
}

TEST(Diagnosis, WithoutAnEngineStillTellsTheRest) {
  DiagnosisFacts facts = healthy();
  facts.engine = fail(reason::kEngineUnavailable, "nobody is there");
  std::set<std::string> unknown;
  for (const v1::Finding& finding : judge_host(facts).findings()) {
    if (finding.verdict() == kUnknown) unknown.insert(finding.check());
  }
  EXPECT_THAT(unknown, ElementsAre("layer-quota", "live-restore"));
}

TEST(Diagnosis, OfManyStraysNamesTheFirst) {
  const Found told = found("unknown-primaries", [](auto& facts) {
    facts.strays->resize(103, {.container_name = "c", .sandbox_id = "s"});
  });
  EXPECT_EQ(told.verdicts.size(), 101U);
  EXPECT_THAT(told.sentences, HasSubstr("and 3 more of the kind\n"));
}

// --- chains of others ---

Found with_chain(const DroppingChain& chain, const std::string& backend = {}) {
  return found("other-firewalls", [&](DiagnosisFacts& facts) {
    facts.engine->firewall_backend = backend;
    facts.firewall->dropping_chains = {chain};
  });
}

TEST(OtherFirewalls, ThatAcceptNothingCutSandboxesOff) {
  const Found told =
      with_chain({.table = "inet filter", .chain = "forward", .accepts_nothing = true});
  EXPECT_THAT(told.verdicts, ElementsAre(kBroken));
  EXPECT_THAT(told.sentences, HasSubstr("chain forward of table inet filter has the policy drop"));
  EXPECT_THAT(
      told.remedies,
      AllOf(HasSubstr("sudo nft insert rule inet filter forward iifname '\"agbx*\"' accept"),
            HasSubstr("oifname '\"agbx*\"' accept")));
}

TEST(OtherFirewalls, ThatAcceptSomethingElseMayCutSandboxesOff) {
  EXPECT_THAT(with_chain({.table = "inet filter", .chain = "forward"}).verdicts,
              ElementsAre(kWarning));
}

TEST(OtherFirewalls, ThatAcceptSandboxesAreFine) {
  EXPECT_THAT(
      with_chain({.table = "inet filter", .chain = "forward", .accepts_sandboxes = true}).verdicts,
      ElementsAre(kOk));
}

// Its own rules are in the chain of iptables, or in tables of its own.
TEST(OtherFirewalls, AreNotTheEnginesOwn) {
  const DroppingChain iptables{.table = "ip filter", .chain = "FORWARD"};
  EXPECT_THAT(with_chain(iptables).verdicts, ElementsAre(kOk));
  EXPECT_THAT(with_chain(iptables, "iptables").verdicts, ElementsAre(kOk));
  const Found told = with_chain(iptables, "nftables");
  EXPECT_THAT(told.verdicts, ElementsAre(kWarning));
  EXPECT_THAT(told.remedies, HasSubstr("sudo iptables -I FORWARD -i agbx+ -j ACCEPT"));
  EXPECT_THAT(
      with_chain({.table = "ip docker-bridges", .chain = "filter-FORWARD"}, "nftables").verdicts,
      ElementsAre(kOk));
  EXPECT_THAT(
      with_chain({.table = "ip filter", .chain = "FORWARD", .accepts_nothing = true}).verdicts,
      ElementsAre(kBroken))
      << "an engine that keeps out of the firewall";
}

TEST(LayerQuota, IsThereOnXfsWithProjectQuotasAndWhereTheDriverHasItsOwn) {
  const auto quota = [](const std::string& driver, const std::string& filesystem,
                        std::optional<bool> project_quota) {
    return has_layer_quota({.driver = driver,
                            .backing_filesystem = filesystem,
                            .root_folder = "/var/lib/docker",
                            .has_project_quota = project_quota});
  };
  EXPECT_EQ(quota("overlay2", "xfs", true), true);
  EXPECT_EQ(quota("overlay2", "xfs", false), false);
  EXPECT_EQ(quota("overlay2", "xfs", std::nullopt), std::nullopt);
  EXPECT_EQ(quota("overlay2", "extfs", true), false);
  EXPECT_EQ(quota("overlay2", "", true), std::nullopt);
  EXPECT_EQ(quota("btrfs", "", std::nullopt), true);
  EXPECT_EQ(quota("zfs", "", std::nullopt), true);
  EXPECT_EQ(quota("overlayfs", "xfs", true), false);  // containerd's, which has none
}

}  // namespace
}  // namespace agbox
