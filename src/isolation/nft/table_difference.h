// SPDX-License-Identifier: Apache-2.0
// Whether the kernel's table is the wanted one, and the difference if not. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "isolation/nft/nft_table.h"

namespace agbox::nft {

// The first difference, e.g. "table inet x: chain forward has a different rule 3"; nullopt if
// equal. The order of sets, chains and elements does not matter, that of rules does; elements added
// at run time are ignored.
std::optional<std::string> difference(const Table& wanted, const Table& seen);

// The same for several tables: each wanted one must be among those seen.
std::optional<std::string> difference(std::span<const Table> wanted, std::span<const Table> seen);

}  // namespace agbox::nft
