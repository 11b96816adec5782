// SPDX-License-Identifier: Apache-2.0
#include "guest/input_relay.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace agbox::guest {
namespace {

constexpr std::size_t kInputChunk = std::size_t{16} << 10;
// More wait only if the command does not read and clients keep coming.
constexpr std::size_t kMaxSources = 64;

std::uint64_t waiting_in(const UniqueFd& pipe) {
  int waiting = 0;
  if (::ioctl(pipe.get(), FIONREAD, &waiting) != 0) return 0;
  return static_cast<std::uint64_t>(std::max(waiting, 0));
}

v1::InputAttached attach_outcome(v1::InputAttached::Outcome what, const std::string& detail = {}) {
  v1::InputAttached report;
  report.set_outcome(what);
  report.set_detail(detail);
  return report;
}

}  // namespace

void InputRelay::open(UniqueFd to, bool is_terminal) {
  to_ = std::move(to);
  is_terminal_ = is_terminal;
}

void InputRelay::close() {
  to_.reset();
  sources_.clear();
  std::string().swap(unwritten_);
}

v1::InputAttached InputRelay::attach(UniqueFd pipe) {
  if (!to_ || end_is_due_) return attach_outcome(v1::InputAttached::OUTCOME_CLOSED);
  if (!pipe) {
    return attach_outcome(v1::InputAttached::OUTCOME_FAILED,
                          "the pipe could not be received: too many open files in the sandbox");
  }
  if (::fcntl(pipe.get(), F_SETFL, O_NONBLOCK) != 0) {
    return attach_outcome(v1::InputAttached::OUTCOME_FAILED, std::strerror(errno));
  }
  if (!sources_.empty() && !sources_.back().left) {
    sources_.back().left = waiting_in(sources_.back().pipe);
    if (*sources_.back().left == 0) sources_.pop_back();
  }
  if (sources_.size() >= kMaxSources) {
    return attach_outcome(v1::InputAttached::OUTCOME_FAILED,
                          "the command has not read the input of many earlier clients");
  }
  v1::InputAttached report = attach_outcome(v1::InputAttached::OUTCOME_ATTACHED);
  std::uint64_t position = taken_;
  for (const Source& source : sources_) position += *source.left;
  report.set_position(position);
  sources_.push_back({.pipe = std::move(pipe)});
  return report;
}

void InputRelay::end() {
  end_is_due_ = true;
  end_if_due();
}

pollfd InputRelay::wait_for_space() const {
  // Without POLLOUT it reports that nothing can read the pipe any more.
  return {to_.get(), static_cast<short>(unwritten_.empty() ? 0 : POLLOUT), 0};
}

pollfd InputRelay::wait_for_bytes() const {
  const bool can_take = to_ && unwritten_.empty() && !sources_.empty();
  return {can_take ? sources_.front().pipe.get() : -1, POLLIN, 0};
}

void InputRelay::on_space(short happened) {
  if ((happened & (POLLERR | POLLNVAL)) != 0 || ((happened & POLLHUP) != 0 && is_terminal_)) {
    return close();
  }
  write_some();
}

void InputRelay::on_bytes() {
  take_some();
  write_some();
}

void InputRelay::take_some() {
  if (!to_ || !unwritten_.empty() || sources_.empty()) return;
  Source& source = sources_.front();
  std::array<char, kInputChunk> chunk;
  const std::size_t most =
      source.left ? static_cast<std::size_t>(std::min<std::uint64_t>(*source.left, chunk.size()))
                  : chunk.size();
  const ssize_t got = ::read(source.pipe.get(), chunk.data(), most);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    sources_.pop_front();  // its writer is gone; another one may come
    return end_if_due();
  }
  taken_ += static_cast<std::uint64_t>(got);
  unwritten_.assign(chunk.data(), static_cast<std::size_t>(got));
  if (source.left && (*source.left -= static_cast<std::uint64_t>(got)) == 0) sources_.pop_front();
}

void InputRelay::write_some() {
  while (to_ && !unwritten_.empty()) {
    const ssize_t written = ::write(to_.get(), unwritten_.data(), unwritten_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) return;
    if (written <= 0) return close();  // nothing reads it any more
    unwritten_.erase(0, static_cast<std::size_t>(written));
  }
  end_if_due();
}

void InputRelay::end_if_due() {
  if (!end_is_due_ || !to_ || !unwritten_.empty() || !sources_.empty()) return;
  if (!is_terminal_) return close();
  end_is_due_ = false;
  termios settings{};
  if (::tcgetattr(to_.get(), &settings) != 0) return;
  unwritten_.assign(1, static_cast<char>(settings.c_cc[VEOF]));
  write_some();
}

}  // namespace agbox::guest
