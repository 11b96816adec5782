// SPDX-License-Identifier: Apache-2.0
// Where commands write: results to stdout, everything else to stderr. A result that could not be
// written is an error like any other, so that a script never takes half an answer for a whole one.
#pragma once

#include <string>
#include <string_view>

namespace agbox::cli {

class Console {
 public:
  Console(int out_fd, int error_fd) : out_fd_(out_fd), error_fd_(error_fd) {}
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // Text of a result; written by flush().
  void out(std::string_view text) { pending_ += text; }

  // Bytes of a command, as they are and at once; from one thread each. 0, or the errno that ended
  // the writing.
  int pass_to_stdout(std::string_view bytes) const;
  int pass_to_stderr(std::string_view bytes) const;

  // One message for a person, with a newline behind it; control characters are made visible.
  void error(std::string_view message);

  // Whether a person watches stderr.
  bool is_terminal() const;
  // On a terminal only: a line that the next message replaces.
  void status(std::string_view text);

  // False where stdout did not take everything; stderr then says why.
  bool flush();

 private:
  int out_fd_;
  int error_fd_;
  std::string pending_;
  bool shows_status_ = false;
};

}  // namespace agbox::cli
