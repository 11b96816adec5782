// SPDX-License-Identifier: Apache-2.0
// Amounts of bytes as people write them in config.toml: a whole number and a unit, 4GiB or 500MB.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace agbox {

// Units: B, KiB, MiB, GiB, TiB (powers of 1024) and KB, MB, GB, TB (powers of 1000), in any case of
// letters; a bare 0 needs none. A number alone is refused, because nobody can see its unit.
Result<std::uint64_t> parse_byte_size(std::string_view text);

}  // namespace agbox
