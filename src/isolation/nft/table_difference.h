// SPDX-License-Identifier: Apache-2.0
// Whether the kernel shows the table that we want, and what is different where it does not. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "isolation/nft/nft_table.h"

namespace agbox::nft {

// Half a sentence about the first difference, for example "table inet x: rule 3 of chain forward is
// another one"; nothing where they are the same. The order of sets, chains and elements does not
// count, that of rules does; what rules put into sets while packets pass does not count either.
std::optional<std::string> difference(const Table& wanted, const Table& seen);

// The same over several tables: each one wanted must be among those seen.
std::optional<std::string> difference(std::span<const Table> wanted, std::span<const Table> seen);

}  // namespace agbox::nft
