// SPDX-License-Identifier: Apache-2.0
// A firewall that fails where failpoints say so: isolation.damage, isolation.blind,
// isolation.watch.
#include "isolation/firewall_faults.h"

#include "base/failpoint.h"

namespace agbox::firewall_faults {

// Takes every rule out of both copies: what nobody else could do to the owned one.
Result<> damage(const std::vector<nft::Table>& tables, const PutTables& put) {
  if (!AGBOX_FAILPOINT_FAILS("isolation.damage")) return {};
  std::vector<nft::Table> damaged = tables;
  for (nft::Table& table : damaged) {
    for (nft::Chain& chain : table.chains) chain.rules.clear();
  }
  return put(damaged);
}

bool verifies_blindly() {
  return AGBOX_FAILPOINT_FAILS("isolation.blind");
}

bool ignores_changes() {
  return AGBOX_FAILPOINT_FAILS("isolation.watch");
}

}  // namespace agbox::firewall_faults
