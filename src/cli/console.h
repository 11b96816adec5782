// SPDX-License-Identifier: Apache-2.0
// The output of commands: results go to stdout, everything else to stderr. A result that cannot be
// written is an error, so that a script never mistakes a partial result for a complete one.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace agbox::cli {

// What a program wants to know of a failure; empty if there is nothing to know.
struct FailureDetails {
  std::string code = {};    // of gRPC, such as NOT_FOUND
  std::string reason = {};  // of the daemon, such as SANDBOX_NOT_FOUND
  std::map<std::string, std::string> metadata = {};
};

// error(), failure(), status() and clear_status() may be called on any thread.
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

  // As error(), for the reason why a command fails; with report_failures_as_json() also a line of
  // JSON on stdout.
  void failure(std::string_view message, const FailureDetails& details = {});
  void report_failures_as_json() { failures_as_json_ = true; }

  // Whether stderr is a terminal.
  bool is_terminal() const;
  // Of the terminal that stdout is; nullopt if it is none.
  std::optional<std::size_t> out_columns() const;
  // Shows a line that the next message replaces; only on a terminal.
  void status(std::string_view text);
  void clear_status();

  // False if stdout could not be written; the reason is then on stderr.
  bool flush();
  // The reason why stdout could not be written, an errno. A reader that wants no more, such as
  // head, needs no message.
  void report_write_problem(int problem);

 private:
  void write_message(std::string_view text);

  int out_fd_;
  int error_fd_;
  std::string pending_;
  bool failures_as_json_ = false;
  std::mutex mutex_;  // of what follows, and of whole messages
  bool shows_status_ = false;
};

}  // namespace agbox::cli
