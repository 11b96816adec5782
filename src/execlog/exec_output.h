// SPDX-License-Identifier: Apache-2.0
// One reader of an exec's output: a cursor into one of its two logs. It returns what the log has
// and otherwise waits. Other readers, however slow, affect neither it nor the exec. Belongs to the
// output thread.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "base/result.h"
#include "execlog/log_file.h"
#include "execlog/log_watch.h"

namespace agbox {

// What to read.
struct ExecOutputCut {
  std::string exec_id;
  std::string stream;          // for messages: "stdout"
  std::filesystem::path root;  // of all logs
  std::filesystem::path path;
  // Bytes beyond this limit are not ours: our runner writes no more. 0: no limit.
  std::uint64_t limit_bytes = 0;
  std::uint64_t offset = 0;
  // Begin this many bytes before the end that the log has when it is opened, whatever the offset.
  std::optional<std::uint64_t> tail_bytes{};
  bool follow = false;
  bool is_over = false;  // the exec has ended
};

class ExecOutput {
 public:
  struct Chunk {
    std::uint64_t offset;
    std::unique_ptr<char[]> bytes;
    std::size_t size;
  };
  struct Nothing {};  // yet: on_available will be called
  struct End {
    Result<> outcome;
  };
  using Next = std::variant<Chunk, Nothing, End>;

  // `on_available` is called when next() may have something again after it returned Nothing.
  ExecOutput(LogWatch& watch, ExecOutputCut cut, std::function<void()> on_available);

  Next next();

  // The exec has ended: its log is complete, and next() ends there. Later output of its background
  // children is not returned.
  void exec_ended();

 private:
  Result<> update_size();
  bool is_throttled();
  void arm();
  Next take();
  Result<> outcome() const;
  void notify();
  Error of_exec(const Error& error) const;

  LogWatch& watch_;
  ExecOutputCut cut_;
  std::function<void()> on_available_;
  std::optional<LogFile> file_;
  std::uint64_t offset_;    // of the next byte to return
  std::uint64_t size_ = 0;  // when last checked
  bool is_size_final_ = false;
  // What was taken since the first chunk after the window before.
  struct Window {
    std::chrono::steady_clock::time_point began{};
    std::size_t bytes = 0;
    int chunks = 0;
  };
  Window window_;
  boost::asio::steady_timer throttle_;
  bool is_throttle_set_ = false;
  std::optional<LogWatch::Wait> wait_;
  // An expired timer may call its handler after this object is destroyed; the handler checks this.
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace agbox
