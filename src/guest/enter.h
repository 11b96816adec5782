// SPDX-License-Identifier: Apache-2.0
// `agbox-guest enter [command...]`: appended to an image's entrypoint.
#pragma once

namespace agbox::guest {

// Reports to the guest that the entrypoint has completed, switches to the runtime user if still
// root, then executes the command or, without one, sleeps.
int enter(char** command);

}  // namespace agbox::guest
