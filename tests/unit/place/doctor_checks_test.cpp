// SPDX-License-Identifier: Apache-2.0
// How each check of this machine judges: from its facts to its findings, without I/O.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/reasons.h"
#include "place/local/doctor/checks/disk.h"
#include "place/local/doctor/checks/firewall.h"
#include "place/local/doctor/checks/guest_program.h"
#include "place/local/doctor/checks/lock.h"
#include "place/local/doctor/checks/network.h"
#include "place/local/doctor/checks/user_limits.h"
#include "unit/model/judged_check.h"

namespace agbox {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::unexpected<Error> failed(const std::string& message) {
  return fail(reason::kIsolationUnavailable, message);
}

// --- firewall ---

TEST(CapabilityCheck, WarnsIfEveryUserCanRunTheProgram) {
  EXPECT_THAT(
      judged(CapabilityCheck{.has_net_admin = true, .program_of_everyone = "/bin/agboxd"}),
      AllOf(StartsWith("WARNING "), HasSubstr("every user of this host can run /bin/agboxd"),
            HasSubstr("sudo chown root:docker /bin/agboxd && sudo chmod 0750 /bin/agboxd "
                      "&& sudo setcap cap_net_admin+ep /bin/agboxd")));
}

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
  std::vector<std::string> engine_tables = {"ip docker-*"};
  if (engine_uses_iptables) engine_tables.emplace_back("ip filter");
  return judged(
      OtherFirewallsCheck{.firewall = FirewallFacts{.tables = {}, .dropping_chains = {chain}},
                          .engine_tables = std::move(engine_tables)});
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

// --- network ---

TEST(IpForwardCheck, IsBrokenIfDisabled) {
  EXPECT_THAT(judged(IpForwardCheck{.is_enabled = true}), StartsWith("OK "));
  EXPECT_THAT(judged(IpForwardCheck{.is_enabled = false}),
              AllOf(StartsWith("BROKEN "), HasSubstr("net.ipv4.ip_forward is 0"),
                    HasSubstr(" | sudo sysctl -w net.ipv4.ip_forward=1\n")));
  EXPECT_EQ(judged(IpForwardCheck{}), "UNKNOWN net.ipv4.ip_forward cannot be read\n");
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
    disk.space = {.left = mib * kMiB, .reserve = 10 * kMiB};
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

// --- limits of the user ---

TEST(UserLimitsCheck, NamesWhatIsUsedUpAndTheSandboxThatHasIt) {
  EXPECT_THAT(judged(UserLimitsCheck{}), StartsWith("OK "));
  EXPECT_THAT(judged(UserLimitsCheck{.exhausted = {KernelBudget::InotifyWatches},
                                     .holders = {{KernelBudget::InotifyWatches,
                                                  {.sandbox_id = "s1", .how_much = "192505"}}}}),
              AllOf(StartsWith("WARNING inotify watches (fs.inotify.max_user_watches) of user "),
                    HasSubstr(" are used up, most of them by sandbox s1 (192505): "),
                    HasSubstr(" | agbox sandbox stop s1\n")));
}

TEST(UserLimitsCheck, WithoutDescriptorsInFlightNoCommandStarts) {
  EXPECT_THAT(judged(UserLimitsCheck{.exhausted = {KernelBudget::DescriptorsInFlight}}),
              AllOf(StartsWith("BROKEN descriptors in flight"),
                    HasSubstr("used up: no command starts in any sandbox | end the process")));
}

}  // namespace
}  // namespace agbox
