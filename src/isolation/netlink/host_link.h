// SPDX-License-Identifier: Apache-2.0
// Finds and removes links (network interfaces) of this host by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace agbox {

bool has_link(const std::string& name);
// Links whose names begin with the prefix.
Result<std::vector<std::string>> find_links(std::string_view prefix);

// Succeeds if there is no such link. Takes the kernel about 10 ms.
Result<> remove_link(const std::string& name);

}  // namespace agbox
