// SPDX-License-Identifier: Apache-2.0
// Takes what there is of something, and goes on taking.
#pragma once

#include <string>

namespace agbox::hostile {

// Connections to the socket that say nothing of sense: so many, as fast as the listener takes them,
// waiting for it where there is none. Gives how often it was turned away meanwhile.
unsigned long send_garbage(const std::string& socket, unsigned connections);

// All connections to the guest's socket in that directory, also under a name that it may have
// before it listens: from so many processes, each of which holds as many as it may have open. None
// says anything, and one that is closed is replaced at once.
[[noreturn]] void crowd(const std::string& directory, unsigned racers);

// Every block of the file's disk, and whatever becomes free later. Returns where it cannot begin.
void fill_disk(const std::string& file);

// Every process that there may be, and all of the CPU: each multiplies without a pause, in a
// session of its own, and ignores SIGTERM.
[[noreturn]] void multiply();

}  // namespace agbox::hostile
