// SPDX-License-Identifier: Apache-2.0
// Raw mode of the terminal of this program: every key is passed on as it is. The former mode is
// restored however the program ends, except by SIGKILL.
#pragma once

#include <cstdint>
#include <optional>

#include "base/unique_fd.h"

namespace agbox::cli {

struct WindowSize {
  std::uint32_t rows = 24;
  std::uint32_t columns = 80;
};

// Of a terminal; the default if it is none or has no size.
WindowSize window_size(int terminal);

// Restores the terminal if it is in raw mode. Safe in a signal handler.
void restore_terminal();

// At most one at a time.
class RawMode {
 public:
  explicit RawMode(int terminal);
  ~RawMode();
  RawMode(const RawMode&) = delete;
  RawMode& operator=(const RawMode&) = delete;
};

// Readable after the size of the window has changed; at most one at a time.
class WindowChanges {
 public:
  WindowChanges();
  ~WindowChanges();
  WindowChanges(const WindowChanges&) = delete;
  WindowChanges& operator=(const WindowChanges&) = delete;

  int fd() const { return reader_.get(); }
  void clear() const;

 private:
  UniqueFd reader_;
  UniqueFd writer_;
};

}  // namespace agbox::cli
