// SPDX-License-Identifier: Apache-2.0
// How soon the scheduler runs the guest and its runners.
#pragma once

namespace agbox::guest {

// For this process, not for what it starts. A process with a short slice is scheduled soon after it
// wakes up, even next to thousands of processes that never sleep: with the default of all of them
// it would wait for each to use up its own, for seconds. It gets no more CPU time than before.
void prefer_short_time_slice();

}  // namespace agbox::guest
