// SPDX-License-Identifier: Apache-2.0
// How each check judges: from its facts to its findings, without I/O.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/doctor/checks/daemon_files.h"
#include "control/doctor/checks/disk.h"
#include "control/doctor/checks/engine.h"
#include "control/doctor/checks/firewall.h"
#include "control/doctor/checks/images.h"
#include "control/doctor/checks/isolation.h"
#include "control/doctor/checks/network.h"
#include "control/doctor/checks/unknown_primaries.h"
#include "model/reasons.h"

namespace agbox {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// "FINDING_VERDICT_OK sentence | remedy" of each finding, each with a newline.
template <class Check>
std::string judged(const Check& check) {
  v1::DiagnoseResponse response;
  Findings findings(response, Check::kName);
  check.judge(findings);
  std::string text;
  for (const v1::Finding& finding : response.findings()) {
    EXPECT_EQ(finding.check(), Check::kName);
    text += v1::FindingVerdict_Name(finding.verdict()).substr(16) + " " + finding.sentence() +
            (finding.remedy().empty() ? "" : " | " + finding.remedy()) + "\n";
  }
  return text;
}

std::unexpected<Error> failed(const std::string& message) {
  return fail(reason::kEngineUnavailable, message);
}

Ipv4Network range(std::string_view text) {
  return parse_ipv4_network(text).value();
}

// --- engine ---

EngineReport docker() {
  EngineReport facts;
  facts.title = "Docker 28.5.2 (API 1.51)";
  facts.endpoint = "/var/run/docker.sock";
  return facts;
}

TEST(EngineCheck, IsReachableAndFit) {
  EXPECT_EQ(judged(EngineCheck{.engine = docker()}),
            "OK Docker 28.5.2 (API 1.51) is reachable at /var/run/docker.sock\n");
  EXPECT_THAT(judged(EngineCheck{.engine = failed("connection refused")}),
              StartsWith("BROKEN connection refused | sudo systemctl start docker"));
  EngineReport unfit = docker();
  unfit.unfit = "Podman cannot run sandboxes";
  EXPECT_THAT(judged(EngineCheck{.engine = unfit}),
              AllOf(StartsWith("BROKEN Podman cannot run sandboxes | "),
                    HasSubstr("sudo systemctl restart docker")));
}

TEST(LiveRestoreCheck, WarnsIfARestartStopsSandboxes) {
  EXPECT_THAT(judged(LiveRestoreCheck{.is_enabled = true}), StartsWith("OK "));
  EXPECT_THAT(judged(LiveRestoreCheck{.is_enabled = false}),
              AllOf(StartsWith("WARNING a restart of the engine stops every sandbox"),
                    HasSubstr("| set \"live-restore\": true")));
  EXPECT_EQ(judged(LiveRestoreCheck{}), "UNKNOWN not checked: the engine is unreachable\n");
}

TEST(LayerQuotaCheck, NeedsXfsWithProjectQuotasOrADriverWithItsOwn) {
  const auto verdict = [](const std::string& driver, const std::string& filesystem,
                          std::optional<bool> project_quota) {
    const std::string text = judged(LayerQuotaCheck{.driver = driver,
                                                    .backing_filesystem = filesystem,
                                                    .root_directory = "/var/lib/docker",
                                                    .has_project_quota = project_quota});
    return text.substr(0, text.find(' '));
  };
  EXPECT_EQ(verdict("overlay2", "xfs", true), "OK");
  EXPECT_EQ(verdict("overlay2", "xfs", false), "WARNING");
  EXPECT_EQ(verdict("overlay2", "xfs", std::nullopt), "UNKNOWN");
  EXPECT_EQ(verdict("overlay2", "extfs", true), "WARNING");
  EXPECT_EQ(verdict("overlay2", "", true), "UNKNOWN");
  EXPECT_EQ(verdict("btrfs", "", std::nullopt), "OK");
  EXPECT_EQ(verdict("zfs", "", std::nullopt), "OK");
  EXPECT_EQ(verdict("overlayfs", "xfs", true), "WARNING");  // containerd's, which has none
  EXPECT_EQ(verdict("", "", std::nullopt), "UNKNOWN");
  EXPECT_THAT(judged(LayerQuotaCheck{.driver = "overlay2",
                                     .backing_filesystem = "extfs",
                                     .root_directory = "/var/lib/docker",
                                     .has_project_quota = {}}),
              AllOf(HasSubstr("cannot limit what a sandbox writes into its own files (overlay2 on "
                              "extfs in /var/lib/docker): "),
                    HasSubstr("mounted with pquota")));
}

TEST(ImagesCheck, WarnsOfEachThatIsMissing) {
  EXPECT_EQ(judged(ImagesCheck{.looked_for = 2, .missing = {}}), "OK 2 images are on the engine\n");
  EXPECT_EQ(judged(ImagesCheck{}), "OK no sandbox has an image yet\n");
  const std::vector<ImagesCheck::Missing> missing = {{.name = "debian:12"},
                                                     {.name = "busybox", .is_of_sandbox = true}};
  EXPECT_EQ(judged(ImagesCheck{.looked_for = 3, .missing = missing}),
            "WARNING debian:12 is not on the engine: the next create with it has to pull it | "
            "docker pull debian:12\n"
            "WARNING busybox is not on the engine, though a sandbox was made of it: the next "
            "create with it has to pull it | docker pull busybox\n");
  EXPECT_EQ(judged(ImagesCheck{.looked_for = 1, .missing = failed("connection refused")}),
            "UNKNOWN not checked: connection refused\n");
}

TEST(UnknownPrimariesCheck, NamesTheFirstHundred) {
  EXPECT_THAT(judged(UnknownPrimariesCheck{}), StartsWith("OK "));
  EXPECT_EQ(judged(UnknownPrimariesCheck{.unknown = failed("connection refused")}),
            "UNKNOWN not checked: connection refused\n");
  std::vector<UnknownPrimary> many(
      103, {.sandbox_id = "box-9", .container_id = {}, .container_name = "c-1"});
  const std::string text = judged(UnknownPrimariesCheck{.unknown = many});
  EXPECT_THAT(text, AllOf(StartsWith("WARNING container c-1 carries our label, for sandbox box-9"),
                          HasSubstr(" | docker rm -f c-1 once nothing in it is needed\n"),
                          HasSubstr("\nWARNING and 3 more of the kind | docker ps --all")));
  EXPECT_EQ(std::ranges::count(text, '\n'), 101);
}

// --- firewall ---

TEST(CapabilityCheck, NeedsNetAdmin) {
  EXPECT_THAT(judged(CapabilityCheck{.has_net_admin = true}), StartsWith("OK "));
  EXPECT_THAT(judged(CapabilityCheck{.has_net_admin = false}),
              AllOf(StartsWith("BROKEN agboxd may not change the firewall"),
                    HasSubstr("| sudo setcap cap_net_admin+ep")));
}

TEST(FirewallCheck, ComparesEachTable) {
  FirewallFacts facts{
      .tables = {{.name = "inet a", .difference = {}}, {.name = "inet a_owned", .difference = {}}},
      .dropping_chains = {}};
  EXPECT_THAT(judged(FirewallCheck{.firewall = facts}),
              AllOf(StartsWith("OK "), HasSubstr(": inet a, inet a_owned\n")));
  facts.tables[1].difference = "table inet a_owned is missing";
  EXPECT_THAT(judged(FirewallCheck{.firewall = facts}),
              AllOf(StartsWith("BROKEN the sandbox firewall is not as expected: table "
                               "inet a_owned is missing | "),
                    HasSubstr("sudo nft monitor"), HasSubstr("restart agboxd\n")));
  EXPECT_THAT(judged(FirewallCheck{.firewall = failed("no nftables here")}),
              StartsWith("BROKEN no nftables here | "));
}

TEST(FirewallRepairsCheck, IsShownAfterTheFirstRepair) {
  EXPECT_EQ(judged(FirewallRepairsCheck{}), "");
  EXPECT_THAT(judged(FirewallRepairsCheck{.repairs = 2, .last_repair = "table x is missing"}),
              AllOf(StartsWith("WARNING "),
                    HasSubstr("restored 2 times since agboxd started; the last time: table x is "
                              "missing | keep that program away from tables named agents_")));
}

std::string judged_chain(const DroppingChain& chain, bool engine_uses_iptables = true) {
  return judged(
      OtherFirewallsCheck{.firewall = FirewallFacts{.tables = {}, .dropping_chains = {chain}},
                          .engine_uses_iptables = engine_uses_iptables});
}

TEST(OtherFirewallsCheck, IsBrokenIfNothingIsAccepted) {
  EXPECT_THAT(
      judged_chain({.table = "inet filter", .chain = "forward", .accepts_nothing = true}),
      AllOf(StartsWith("BROKEN "), HasSubstr("chain forward of table inet filter has the policy"),
            HasSubstr("sudo nft insert rule inet filter forward iifname '\"agbx*\"' accept"),
            HasSubstr("oifname '\"agbx*\"' accept")));
}

TEST(OtherFirewallsCheck, WarnsIfNoRuleIsForSandboxes) {
  EXPECT_THAT(judged_chain({.table = "inet filter", .chain = "forward"}), StartsWith("WARNING "));
  EXPECT_THAT(judged_chain({.table = "inet filter", .chain = "forward", .accepts_sandboxes = true}),
              StartsWith("OK "));
  EXPECT_EQ(judged(OtherFirewallsCheck{.firewall = failed("no nftables here")}),
            "UNKNOWN not checked: no nftables here\n");
}

// The engine's own rules are in the chain of iptables, or in tables of its own.
TEST(OtherFirewallsCheck, ExceptsTheEnginesOwn) {
  const DroppingChain iptables{.table = "ip filter", .chain = "FORWARD"};
  EXPECT_THAT(judged_chain(iptables), StartsWith("OK "));
  EXPECT_THAT(judged_chain(iptables, false),
              AllOf(StartsWith("WARNING "), HasSubstr("sudo iptables -I FORWARD -i agbx+ -j ")));
  EXPECT_THAT(judged_chain({.table = "ip docker-bridges", .chain = "filter-FORWARD"}, false),
              StartsWith("OK "));
  EXPECT_THAT(judged_chain({.table = "ip filter", .chain = "FORWARD", .accepts_nothing = true}),
              StartsWith("BROKEN "))
      << "an engine that adds no rules";
}

TEST(IsolationCheck, ReportsEverySandboxThatIsNotVerified) {
  EXPECT_EQ(judged(IsolationCheck{}), "OK no sandbox is running\n");
  EXPECT_EQ(judged(IsolationCheck{.verified = 1}), "OK verified now for 1 running sandbox\n");
  const std::vector<IsolationCheck::Problem> box_1 = {{.sandbox_id = "box-1", .why = "no bridge"}};
  EXPECT_EQ(judged(IsolationCheck{.verified = 1, .failed = box_1}),
            "BROKEN sandbox box-1: no bridge | agbox sandbox stop box-1, and resume it when the "
            "firewall is in place\n");
  EXPECT_EQ(judged(IsolationCheck{.verified = 1, .paused = box_1}),
            "BROKEN sandbox box-1 is paused: no bridge | remove what is in the way, and agboxd "
            "unpauses it; or: agbox sandbox stop box-1\n");
  EXPECT_EQ(judged(IsolationCheck{.verified = 2, .unreachable = box_1}),
            "UNKNOWN sandbox box-1: its rules are in place, but could not be tested from inside: "
            "no bridge\nOK verified now for 2 running sandboxes\n");
  EXPECT_EQ(judged(IsolationCheck{.skipped = 2}),
            "UNKNOWN 2 running sandboxes were not checked, because those before took too long\n");
}

// --- network ---

TEST(IpForwardCheck, IsBrokenIfDisabled) {
  EXPECT_THAT(judged(IpForwardCheck{.is_enabled = true}), StartsWith("OK "));
  EXPECT_THAT(judged(IpForwardCheck{.is_enabled = false}),
              AllOf(StartsWith("BROKEN "), HasSubstr("net.ipv4.ip_forward is 0"),
                    HasSubstr(" | sudo sysctl -w net.ipv4.ip_forward=1\n")));
  EXPECT_EQ(judged(IpForwardCheck{}), "UNKNOWN net.ipv4.ip_forward cannot be read\n");
}

TEST(AddressPoolCheck, CountsWhatIsFreeAndOverlapsNothingOfTheHost) {
  AddressPoolCheck check{.pool = range("10.201.0.0/24"), .in_use = {}, .taken = {}};
  EXPECT_EQ(judged(check), "OK 16 of 16 networks for sandboxes are free in 10.201.0.0/24\n");
  check.taken = {range("10.201.0.0/25"), range("10.201.0.128/26"), range("10.201.0.192/27"),
                 range("10.201.0.224/28")};
  EXPECT_THAT(judged(check), AllOf(StartsWith("WARNING 1 of 16"), HasSubstr("delete sandboxes")));
  check.taken = {range("10.201.0.0/24")};
  EXPECT_THAT(judged(check), AllOf(StartsWith("BROKEN 0 of 16 networks for sandboxes are free in "
                                              "10.201.0.0/24, so no sandbox can be created"),
                                   HasSubstr("delete sandboxes")));
  check.in_use = {range("10.201.0.128/25")};
  EXPECT_THAT(judged(check), AllOf(StartsWith("BROKEN "),
                                   HasSubstr("overlaps this host's route to 10.201.0.128/25"),
                                   HasSubstr("| set network.address_pool")));
  check.taken = failed("no netlink here");
  EXPECT_EQ(judged(check), "UNKNOWN not checked: no netlink here\n");
}

TEST(ResolversCheck, FollowTheHostUnlessConfigured) {
  ResolversCheck check{.given = {"192.0.2.53"}, .of_host = {"192.0.2.53"}};
  EXPECT_EQ(judged(check), "OK new sandboxes use 192.0.2.53, as this host does\n");
  check.of_host = {"192.0.2.1"};
  EXPECT_EQ(judged(check),
            "WARNING new sandboxes use 192.0.2.53, as this host did before; it now uses 192.0.2.1 "
            "| systemctl --user restart agboxd\n");
  check.are_configured = true;
  EXPECT_EQ(judged(check), "OK new sandboxes use 192.0.2.53 (network.dns)\n");
  check.given.clear();
  EXPECT_THAT(judged(check), AllOf(StartsWith("BROKEN no resolver"), HasSubstr("set network.dns")));
}

// --- files ---

TEST(StoreCheck, IsBrokenWithoutFreeSpace) {
  StoreCheck check{.path = "/data/ids.db", .space = {}};
  EXPECT_EQ(judged(check), "OK /data/ids.db accepts new work\n");
  check.space.refuses_new_work = true;
  EXPECT_THAT(judged(check), StartsWith("BROKEN the store /data/ids.db has no free space and "
                                        "refuses new work | free space on the disk of"));
  check.space.waiting_changes = 1;
  EXPECT_THAT(judged(check), HasSubstr("; 1 accepted change waits for it | "));
}

TEST(StoredSandboxesCheck, IsShownIfOneIsUnreadable) {
  EXPECT_EQ(judged(StoredSandboxesCheck{}), "");
  EXPECT_EQ(judged(StoredSandboxesCheck{.unreadable = {"box-1", "box-2"}}),
            "BROKEN cannot be read from the store: box-1, box-2 | agbox sandbox get <sandbox_id> "
            "says why and what to do\n");
}

TEST(LockCheck, IsBrokenIfTheFileIsAnother) {
  EXPECT_EQ(judged(LockCheck{.path = "/lock", .is_held = true}), "OK agboxd holds /lock\n");
  EXPECT_THAT(judged(LockCheck{.path = "/lock", .is_held = false}),
              AllOf(StartsWith("BROKEN the lock file /lock is not the one"),
                    HasSubstr("a second daemon could start | systemctl --user restart agboxd\n")));
  EXPECT_EQ(judged(LockCheck{.path = "/lock", .is_held = {}}),
            "UNKNOWN whether agboxd holds /lock cannot be seen\n");
}

TEST(GuestProgramCheck, IsBrokenIfItIsGone) {
  EXPECT_EQ(judged(GuestProgramCheck{.path = "/guest", .exists = true}), "OK /guest exists\n");
  EXPECT_THAT(judged(GuestProgramCheck{.path = "/guest"}),
              AllOf(StartsWith("BROKEN "), HasSubstr("so none can start: /guest | systemctl")));
}

TEST(DiskCheck, ComparesFreeSpaceWithTheReserve) {
  DiskCheck::Disk disk{.what = "store", .path = "/data"};
  const auto with_left = [&disk](std::uint64_t mib) {
    disk.room = {.left = mib * kMiB, .reserve = 10 * kMiB};
    return judged(DiskCheck{.disks = {disk}});
  };
  EXPECT_EQ(with_left(20),
            "OK the disk of /data (store) has 20 MiB left, of which 10 MiB should "
            "stay free\n");
  EXPECT_THAT(with_left(19), AllOf(StartsWith("WARNING "), HasSubstr(" | free space on the disk")));
  EXPECT_THAT(with_left(9), StartsWith("WARNING "));
  disk.holds_output = true;
  EXPECT_THAT(with_left(9), AllOf(StartsWith("BROKEN "), HasSubstr("commands are refused")));
  disk.problem = "Permission denied";
  EXPECT_EQ(with_left(9),
            "UNKNOWN the disk of /data (store) cannot be inspected: Permission denied\n");
}

}  // namespace
}  // namespace agbox
