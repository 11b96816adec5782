// SPDX-License-Identifier: Apache-2.0
#include "isolation/firewall_faults.h"

namespace agbox::firewall_faults {

Result<> damage(const std::vector<nft::Table>&, const PutTables&) {
  return {};
}

bool verifies_blindly() {
  return false;
}

bool ignores_changes() {
  return false;
}

}  // namespace agbox::firewall_faults
