// SPDX-License-Identifier: Apache-2.0
// A link (network interface) of this host by its name: is it there, take it away.
#pragma once

#include <string>

#include "base/result.h"

namespace agbox {

bool has_link(const std::string& name);

// Done also where there is no such link. Takes the kernel some 10 ms.
Result<> remove_link(const std::string& name);

}  // namespace agbox
