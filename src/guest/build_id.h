// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace agbox::guest {

// The linker's fingerprint of this very program; empty where it was linked without.
std::string build_id();

}  // namespace agbox::guest
