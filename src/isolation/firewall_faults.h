// SPDX-License-Identifier: Apache-2.0
// Fault injection for tests. Released programs link firewall_faults.cpp of this directory, in which
// nothing fails; test programs link that of tests/support, which is controlled by failpoints.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "isolation/nft/nft_table.h"

namespace agbox::firewall_faults {

using PutTables = std::function<Result<>(const std::vector<nft::Table>&)>;

// Before a verification, with the expected tables.
Result<> damage(const std::vector<nft::Table>& tables, const PutTables& put);
// Verifications always succeed.
bool verifies_blindly();
// The monitor misses changes by others.
bool ignores_changes();

}  // namespace agbox::firewall_faults
