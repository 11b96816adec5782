// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace agbox::guest {

// The linker's build ID of this program; empty if linked without one.
std::string build_id();

}  // namespace agbox::guest
