// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/log_frames.h"

#include <algorithm>

#include "base/rfc3339.h"
#include "engine/docker/api/output_tail.h"

namespace agbox {
namespace {

constexpr unsigned char kStdout = 1;
constexpr unsigned char kStderr = 2;
constexpr unsigned char kProblem = 3;  // a message of the engine itself

// 2006-01-02T15:04:05.000000000+07:00
constexpr std::size_t kLongestTime = 35;

std::unexpected<EngineError> garbled_log(std::string_view what) {
  return engine_fail(EngineErrorKind::Garbled,
                     "the engine's log of the container cannot be read: " + std::string(what));
}

}  // namespace

EngineResult<std::vector<LogPiece>> LogFrames::feed(std::string_view bytes) {
  std::vector<LogPiece> pieces;
  while (!bytes.empty()) {
    EngineResult<> taken;
    switch (part_) {
      case Part::Header:
        take_header(bytes);
        if (header_bytes_ == header_.size()) taken = begin_frame();
        break;
      case Part::Time:
        taken = take_time(bytes);
        break;
      case Part::Data:
        take_data(bytes, pieces);
        break;
      case Part::Problem:
        taken = take_problem(bytes);
        break;
    }
    if (!taken) return std::unexpected(std::move(taken.error()));
  }
  return pieces;
}

void LogFrames::take_header(std::string_view& bytes) {
  const std::size_t count = std::min(bytes.size(), header_.size() - header_bytes_);
  std::ranges::copy(bytes.substr(0, count), header_.begin() + header_bytes_);
  header_bytes_ += count;
  bytes.remove_prefix(count);
}

EngineResult<> LogFrames::begin_frame() {
  header_bytes_ = 0;
  left_ = 0;
  for (std::size_t i = 4; i < header_.size(); ++i) left_ = (left_ << 8U) | header_.at(i);
  if (left_ == 0) return {};
  text_.clear();
  switch (header_[0]) {
    case kStdout:
    case kStderr:
      stream_ = header_[0] == kStdout ? v1::OUTPUT_STREAM_STDOUT : v1::OUTPUT_STREAM_STDERR;
      part_ = Part::Time;
      return {};
    case kProblem:
      part_ = Part::Problem;
      return {};
    default:
      return garbled_log("it has a frame of no output");
  }
}

EngineResult<> LogFrames::take_time(std::string_view& bytes) {
  const std::size_t most =
      std::min<std::size_t>({bytes.size(), left_, kLongestTime + 1 - text_.size()});
  const std::size_t space = bytes.substr(0, most).find(' ');
  const std::size_t count = space == std::string_view::npos ? most : space;
  text_ += bytes.substr(0, count);
  bytes.remove_prefix(count);
  left_ -= static_cast<std::uint32_t>(count);
  if (space == std::string_view::npos) {
    if (left_ > 0 && text_.size() <= kLongestTime) return {};
    return garbled_log("it has a line without its time");
  }
  bytes.remove_prefix(1);
  --left_;
  const auto time = parse_rfc3339(text_);
  if (!time) return garbled_log("it has a line without its time");
  if (position_.time != *time) position_ = {.time = *time};
  part_ = left_ > 0 ? Part::Data : Part::Header;
  return {};
}

void LogFrames::take_data(std::string_view& bytes, std::vector<LogPiece>& pieces) {
  std::string_view data = bytes.substr(0, left_);
  bytes.remove_prefix(data.size());
  left_ -= static_cast<std::uint32_t>(data.size());
  if (left_ == 0) part_ = Part::Header;
  const std::uint64_t begin = position_.bytes;
  position_.bytes += data.size();
  if (after_) {
    const bool is_earlier = position_.time < after_->time ||
                            (position_.time == after_->time && position_.bytes <= after_->bytes);
    if (is_earlier) return;
    if (position_.time == after_->time && begin < after_->bytes) {
      data.remove_prefix(after_->bytes - begin);
    }
    // From here on the order counts, not the time: the clock of the machine may be set back.
    after_.reset();
  }
  if (pieces.empty() || pieces.back().stream != stream_) pieces.push_back({.stream = stream_});
  pieces.back().data += data;
  pieces.back().end = position_;
}

EngineResult<> LogFrames::take_problem(std::string_view& bytes) {
  const std::string_view text = bytes.substr(0, left_);
  if (text_.size() < kLongestShownOutput) text_ += text.substr(0, kLongestShownOutput);
  left_ -= static_cast<std::uint32_t>(text.size());
  bytes.remove_prefix(text.size());
  if (left_ > 0) return {};
  return engine_fail(EngineErrorKind::Refused,
                     "the engine cannot read the log any further: " + shown_output(text_));
}

}  // namespace agbox
