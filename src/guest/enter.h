// SPDX-License-Identifier: Apache-2.0
// `agbox-guest enter [command...]`: the last argument of an image's entrypoint.
#pragma once

namespace agbox::guest {

// Tells the guest that the entrypoint was passed, becomes the runtime user where it still can, then
// executes the command or, without one, sleeps until somebody ends it.
int enter(char** command);

}  // namespace agbox::guest
