// SPDX-License-Identifier: Apache-2.0
// A process to which the kernel grants no inotify instances, or none of their watches: one in a
// user namespace with a limit of its own, so that no other process is refused any.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "base/unique_fd.h"

namespace agbox {

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define AGBOX_THREAD_SANITIZER 1
#endif
#endif

// `limit` is "max_inotify_instances" or "max_inotify_watches". The story runs in a child process,
// and its failures are printed there.
inline void expect_to_hold_without(const std::string& limit, const std::function<void()>& story) {
#ifdef AGBOX_THREAD_SANITIZER
  // It has a thread of its own, and only a process with one thread can enter a user namespace. The
  // other sanitizers run these.
  static_cast<void>(limit);
  static_cast<void>(story);
#else
  EXPECT_EXIT(
      {
        const bool is_alone = ::unshare(CLONE_NEWUSER) == 0;
        const UniqueFd setting(::open(("/proc/sys/user/" + limit).c_str(), O_WRONLY | O_CLOEXEC));
        EXPECT_TRUE(is_alone && setting && ::write(setting.get(), "0", 1) == 1);
        story();
        std::_Exit(testing::Test::HasFailure() ? EXIT_FAILURE : EXIT_SUCCESS);
      },
      testing::ExitedWithCode(EXIT_SUCCESS), "");
#endif
}

}  // namespace agbox
