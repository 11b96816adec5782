// SPDX-License-Identifier: Apache-2.0
// Lets a program wait for descriptors that the kernel refuses to add to an epoll instance.
//
// The kernel counts the watches of all epoll instances of a user (fs.epoll.max_user_watches), and
// sandboxes run as the daemon's user: one of them can take them all. A program that links this file
// has its own epoll_create1(), epoll_ctl() and epoll_wait(), which every library in it calls. They
// pass everything to the kernel. Only a descriptor that it refuses with ENOSPC is waited for with
// poll(2), until the kernel takes it.
//
// Events may be repeated for such a descriptor and arrive up to 10 ms late. Asio and gRPC expect
// both: they read until EAGAIN, and do not know why they were woken.
#pragma once

#include <cstddef>

namespace agbox {

// In all epoll instances of this process.
std::size_t descriptors_refused_by_epoll();

// Whether to refuse every descriptor that is added from now on, as the kernel does.
void refuse_epoll_watches_for_test(bool refuse);

}  // namespace agbox
