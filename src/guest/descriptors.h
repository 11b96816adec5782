// SPDX-License-Identifier: Apache-2.0
// What a forked process must not keep open.
#pragma once

#include <vector>

namespace agbox::guest {

// Closes every descriptor of this process but these.
void close_all_but(std::vector<int> kept);

}  // namespace agbox::guest
