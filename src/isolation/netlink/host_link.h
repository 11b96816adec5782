// SPDX-License-Identifier: Apache-2.0
// The links (network interfaces) of this host by their names: which are there, take one away.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace agbox {

bool has_link(const std::string& name);
// Those whose names begin so.
Result<std::vector<std::string>> find_links(std::string_view prefix);

// Done also where there is no such link. Takes the kernel some 10 ms.
Result<> remove_link(const std::string& name);

}  // namespace agbox
