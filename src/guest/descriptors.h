// SPDX-License-Identifier: Apache-2.0
// Closes descriptors that a forked process must not inherit.
#pragma once

#include <vector>

namespace agbox::guest {

void close_all_but(std::vector<int> kept);

}  // namespace agbox::guest
