// SPDX-License-Identifier: Apache-2.0
// Where tests make the firewall fail, to see that the rest of the daemon notices it. The programs
// that users run link firewall_faults.cpp of this directory, in which nothing ever fails; test
// programs link that of tests/support instead, in which failpoints decide.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "isolation/nft/nft_table.h"

namespace agbox::firewall_faults {

using PutTables = std::function<Result<>(const std::vector<nft::Table>&)>;

// Before a verification, with the tables that it expects to find.
Result<> damage(const std::vector<nft::Table>& tables, const PutTables& put);
// A verification that does not look.
bool verifies_blindly();
// A monitor that does not notice what others change.
bool ignores_changes();

}  // namespace agbox::firewall_faults
