// SPDX-License-Identifier: Apache-2.0
// How many descriptors the daemon and the processes in its containers may have. The kernel refuses
// to send descriptors over a Unix socket if more of the user's are in flight than the sender may
// have open. Sandboxes run as the daemon's user: so that none of them can keep the daemon from
// handing the files of an exec to its guest, the daemon's limit is four times theirs.
#pragma once

#include <cstdint>

namespace agbox {

// Of this process: as far as it is of use, and as it is.
void raise_descriptor_limit();
std::uint64_t descriptor_limit();

// Of every process in a container, for a daemon with this limit.
std::int64_t container_descriptor_limit(std::uint64_t daemon_limit);

}  // namespace agbox
