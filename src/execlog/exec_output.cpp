// SPDX-License-Identifier: Apache-2.0
#include "execlog/exec_output.h"

#include <algorithm>
#include <utility>

#include "model/reasons.h"

namespace agbox {
namespace {

// The memory that a stalled reader uses.
constexpr std::size_t kChunkBytes = std::size_t{128} << 10;
// A reader that keeps up with a busy writer would be woken by every write, and both would spend
// their time on that: a gigabyte took ten times as long. So after this much output within one
// window, or so many chunks, the rest of the window is sent together at its end. Less than that,
// such as the echo of a key or the answers of a program that talks to another one, is sent at once.
constexpr std::chrono::milliseconds kWindow{5};
constexpr std::size_t kWindowBytes = std::size_t{4} << 10;
constexpr int kWindowChunks = 16;

}  // namespace

ExecOutput::ExecOutput(LogWatch& watch, ExecOutputCut cut, std::function<void()> on_available)
    : watch_(watch),
      cut_(std::move(cut)),
      on_available_(std::move(on_available)),
      offset_(cut_.offset),
      throttle_(watch.executor()) {}

ExecOutput::Next ExecOutput::next() {
  while (true) {
    if (offset_ < size_) return take();
    if (is_size_final_) return End{outcome()};
    if (is_throttled()) return Nothing{};
    const bool was_armed = wait_.has_value();
    if (auto updated = update_size(); !updated) return End{updated};
    if (offset_ < size_ || is_size_final_) continue;
    if (was_armed) return Nothing{};
    // Arm first, then check again, so that nothing written in between is missed.
    arm();
  }
}

void ExecOutput::exec_ended() {
  cut_.is_over = true;
  notify();
}

// Copied, because the call may destroy this reader.
void ExecOutput::notify() {
  const auto on_available = on_available_;
  on_available();
}

bool ExecOutput::is_throttled() {
  if (cut_.is_over) return false;
  if (window_.bytes < kWindowBytes && window_.chunks < kWindowChunks) return false;
  const auto end = window_.began + kWindow;
  if (std::chrono::steady_clock::now() >= end) return false;
  if (std::exchange(is_throttle_set_, true)) return true;
  throttle_.expires_at(end);
  throttle_.async_wait(
      [this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
        if (error || alive.expired()) return;
        is_throttle_set_ = false;
        notify();
      });
  return true;
}

void ExecOutput::arm() {
  wait_.emplace(watch_.wait(file_->fd(), [this] {
    wait_.reset();
    notify();
  }));
}

// The first check after the end of the exec, or the only one of a reader that does not follow,
// determines where it ends: background children may write forever.
Result<> ExecOutput::update_size() {
  if (!file_) {
    auto file = LogFile::open(cut_.root, cut_.path);
    if (!file) return std::unexpected(of_exec(file.error()));
    file_ = std::move(*file);
  }
  auto size = file_->size();
  if (!size) return std::unexpected(of_exec(size.error()));
  if (cut_.limit_bytes > 0) size = std::min(*size, cut_.limit_bytes);
  if (*size < size_) {
    return std::unexpected(
        of_exec({reason::kExecOutputLost, "its " + cut_.stream + " log was truncated from " +
                                              std::to_string(size_) + " to " +
                                              std::to_string(*size) + " bytes"}));
  }
  size_ = *size;
  if (const auto tail = std::exchange(cut_.tail_bytes, std::nullopt)) {
    offset_ = size_ - std::min(size_, *tail);
  }
  is_size_final_ = cut_.is_over || !cut_.follow;
  return {};
}

ExecOutput::Next ExecOutput::take() {
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(size_ - offset_, kChunkBytes));
  Chunk chunk{
      .offset = offset_, .bytes = std::make_unique_for_overwrite<char[]>(size), .size = size};
  if (auto got = file_->read(offset_, {chunk.bytes.get(), size}); !got) {
    return End{std::unexpected(of_exec(got.error()))};
  }
  offset_ += size;
  const auto now = std::chrono::steady_clock::now();
  if (now >= window_.began + kWindow) window_ = {.began = now};
  window_.bytes += size;
  ++window_.chunks;
  return chunk;
}

Result<> ExecOutput::outcome() const {
  if (offset_ <= size_) return {};
  const std::string offset = std::to_string(offset_);
  const std::string size = std::to_string(size_);
  return fail(reason::kExecOutputOutOfRange,
              "offset " + offset + " is beyond the " + size + " bytes that exec " + cut_.exec_id +
                  " wrote to its " + cut_.stream,
              {{"exec_id", cut_.exec_id}, {"offset", offset}, {"size", size}});
}

Error ExecOutput::of_exec(const Error& error) const {
  return {
      error.reason(), "exec " + cut_.exec_id + ": " + error.message(), {{"exec_id", cut_.exec_id}}};
}

}  // namespace agbox
