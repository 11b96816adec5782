// SPDX-License-Identifier: Apache-2.0
// What to do if an image of this project cannot be pulled. Users who did not choose it may not know
// how to get it, and that others do as well.
#pragma once

#include <string>
#include <string_view>

namespace agbox::cli {

// Lines to append to the reason of a failed create. Empty if it names no image of this project.
std::string image_remedy(std::string_view failure);

}  // namespace agbox::cli
