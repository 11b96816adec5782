// SPDX-License-Identifier: Apache-2.0
// The output of commands: results go to stdout, everything else to stderr. A result that cannot be
// written is an error, so that a script never mistakes a partial result for a complete one.
#pragma once

#include <string>
#include <string_view>

namespace agbox::cli {

class Console {
 public:
  Console(int out_fd, int error_fd) : out_fd_(out_fd), error_fd_(error_fd) {}
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // Buffers text of a result; flush() writes it.
  void out(std::string_view text) { pending_ += text; }

  // Write the output of a command, unchanged and unbuffered; each from one thread only. Return 0 or
  // an errno.
  int write_stdout(std::string_view bytes) const;
  int write_stderr(std::string_view bytes) const;

  // Prints a message and a newline to stderr; control characters are escaped.
  void error(std::string_view message);

  // Whether stderr is a terminal.
  bool is_terminal() const;
  // Shows a line that the next message replaces; only on a terminal.
  void status(std::string_view text);

  // False if stdout could not be written; the reason is then on stderr.
  bool flush();

 private:
  int out_fd_;
  int error_fd_;
  std::string pending_;
  bool shows_status_ = false;
};

}  // namespace agbox::cli
