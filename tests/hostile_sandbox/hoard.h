// SPDX-License-Identifier: Apache-2.0
// Takes what the kernel counts per user, which the sandboxes of a user share with his daemon.
#pragma once

#include <string_view>

namespace agbox::hostile {

// "descriptors" in flight in Unix sockets, "epoll-watches", "inotify-instances" or
// "inotify-watches": all that there are, and whatever becomes free later. Prints how many once it
// is refused more. Returns only if it cannot begin.
void hoard(std::string_view budget);

}  // namespace agbox::hostile
