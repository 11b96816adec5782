// SPDX-License-Identifier: Apache-2.0
#include "isolation/nft/packet_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace agbox::nft {
namespace {

using testing::EndsWith;

TEST(FirewallRefusal, NamesTheCapabilityOnlyIfMissing) {
  EXPECT_EQ(explain_refusal("", {.number = EPERM, .words = {}, .sequence = 0}),
            "sandbox firewall: change nftables: Operation not permitted; the daemon "
            "needs CAP_NET_ADMIN: sudo setcap cap_net_admin+ep $(which agboxd)");
  EXPECT_EQ(explain_refusal("delete table inet x", {.number = EPERM, .words = {}, .sequence = 1}),
            "sandbox firewall: delete table inet x: Operation not permitted; another "
            "process owns the table: end it, or restart it without the owner flag");
}

TEST(FirewallRefusal, NamesTheModulesIfTheKernelLacksThem) {
  EXPECT_EQ(explain_refusal("add rule 3 to chain pre_raw of table inet x",
                            {.number = ENOENT, .words = "Unknown expression", .sequence = 9}),
            "sandbox firewall: add rule 3 to chain pre_raw of table inet x: Unknown "
            "expression; this kernel seems to lack a part of nftables, try: sudo modprobe -a "
            "nf_tables nft_ct nft_fib_inet nft_reject_inet nft_connlimit nft_limit");
}

TEST(FirewallRefusal, NamesTheRemedyForTransientFailures) {
  for (const int number : {ENOMEM, ENOBUFS}) {
    EXPECT_THAT(explain_refusal("add table inet x", {.number = number, .words = {}, .sequence = 1}),
                EndsWith("; the kernel is out of memory: free some"));
  }
  EXPECT_THAT(explain_refusal("add table inet x", {.number = EBUSY, .words = {}, .sequence = 1}),
              EndsWith("; another process changes the firewall, find it with: nft monitor"));
}

}  // namespace
}  // namespace agbox::nft
