// SPDX-License-Identifier: Apache-2.0
#include "base/tar/tar_reader.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <utility>

#include "base/shown_path.h"

namespace agbox {
namespace {

constexpr std::size_t kReaderBuffer = std::size_t{256} << 10;
// Of all records of one entry: two paths and some numbers, or comments of another program.
constexpr std::uint64_t kMaxRecords = std::uint64_t{64} << 10;
// File sizes are signed in the kernel.
constexpr auto kMaxSize = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

std::unexpected<Error> bad_tar(std::string message) {
  return fail(reason::kInvalidArgument, std::move(message));
}

std::string_view field(std::string_view header, std::size_t offset, std::size_t size) {
  return header.substr(offset, size);
}

// Up to the first NUL.
std::string_view text_field(std::string_view header, std::size_t offset, std::size_t size) {
  const std::string_view whole = field(header, offset, size);
  return whole.substr(0, whole.find('\0'));
}

// Octal digits between spaces and NULs, or a big-endian number after a byte of 0x80.
std::optional<std::uint64_t> number_field(std::string_view header, std::size_t offset,
                                          std::size_t size) {
  std::string_view digits = field(header, offset, size);
  std::uint64_t number = 0;
  if (static_cast<unsigned char>(digits[0]) == 0x80) {
    for (const char c : digits.substr(1)) {
      if (number > kMaxSize >> 8) return std::nullopt;
      number = number << 8 | static_cast<unsigned char>(c);
    }
    return number;
  }
  const auto is_blank = [](char c) { return c == ' ' || c == '\0'; };
  while (!digits.empty() && is_blank(digits.front())) digits.remove_prefix(1);
  while (!digits.empty() && is_blank(digits.back())) digits.remove_suffix(1);
  for (const char c : digits) {
    if (c < '0' || c > '7') return std::nullopt;
    number = number << 3 | static_cast<std::uint64_t>(c - '0');
  }
  return number;
}

// The checksum counts itself as spaces. Some old programs added signed characters.
bool has_checksum(std::string_view header) {
  std::int64_t as_unsigned = 0;
  std::int64_t as_signed = 0;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const char c = i >= 148 && i < 156 ? ' ' : header[i];
    as_unsigned += static_cast<unsigned char>(c);
    as_signed += static_cast<signed char>(c);
  }
  const auto stored = number_field(header, 148, 8);
  if (!stored) return false;
  const auto sum = static_cast<std::int64_t>(*stored);
  return sum == as_unsigned || sum == as_signed;
}

std::optional<std::uint64_t> decimal(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size() || number > kMaxSize) {
    return std::nullopt;
  }
  return number;
}

struct Time {
  std::int64_t seconds = 0;
  std::uint32_t nanoseconds = 0;
};

// "-1.25"; digits after the ninth are dropped.
std::optional<Time> time_of(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  const std::size_t point = text.find('.');
  const auto whole = decimal(text.substr(0, point));
  if (!whole) return std::nullopt;
  Time time{.seconds = static_cast<std::int64_t>(*whole)};
  if (point != std::string_view::npos) {
    std::uint32_t unit = 100'000'000;
    for (const char c : text.substr(point + 1)) {
      if (c < '0' || c > '9') return std::nullopt;
      time.nanoseconds += static_cast<std::uint32_t>(c - '0') * unit;
      unit /= 10;
    }
  }
  if (!is_negative) return time;
  time.seconds = -time.seconds;
  if (time.nanoseconds != 0) {
    --time.seconds;
    time.nanoseconds = 1'000'000'000 - time.nanoseconds;
  }
  return time;
}

bool is_all_zero(std::string_view block) {
  return std::ranges::all_of(block, [](char c) { return c == '\0'; });
}

}  // namespace

struct TarReader::Overrides {
  std::optional<std::string> path;
  std::optional<std::string> target;
  std::optional<std::uint64_t> size;
  std::optional<Time> time;
  std::optional<std::uint64_t> sparse_major;
  std::optional<std::string> sparse_name;
  std::optional<std::uint64_t> sparse_size;

  // The records of a pax header: "<length> <key>=<value>\n".
  Result<> take(std::string_view records) {
    while (!records.empty()) {
      const std::size_t space = records.find(' ');
      const auto length = decimal(records.substr(0, space));
      if (space == std::string_view::npos || !length || *length > records.size() ||
          *length < space + 3 || records[*length - 1] != '\n') {
        return bad_tar("a pax header that cannot be read");
      }
      const std::string_view record = records.substr(space + 1, *length - space - 2);
      const std::size_t equals = record.find('=');
      if (equals == std::string_view::npos) return bad_tar("a pax record without a value");
      AGBOX_TRY_VOID(take(record.substr(0, equals), record.substr(equals + 1)));
      records.remove_prefix(*length);
    }
    return {};
  }

 private:
  // Other keys (owners, times of access, comments) have no effect.
  Result<> take(std::string_view key, std::string_view value) {
    const auto number = [&](std::optional<std::uint64_t>& place) -> Result<> {
      place = decimal(value);
      if (place) return {};
      return bad_tar("a pax record " + shown_path(key) + " that is no number");
    };
    if (key == "path") path = value;
    if (key == "linkpath") target = value;
    if (key == "size") return number(size);
    if (key == "mtime") {
      time = time_of(value);
      if (!time) return bad_tar("a pax record mtime that is no time");
    }
    if (key == "GNU.sparse.name") sparse_name = value;
    if (key == "GNU.sparse.realsize") return number(sparse_size);
    if (key == "GNU.sparse.major") return number(sparse_major);
    // Of the formats 0.0 and 0.1.
    if (key == "GNU.sparse.map" || key == "GNU.sparse.numblocks" || key == "GNU.sparse.size") {
      sparse_major = 0;
    }
    return {};
  }
};

TarReader::TarReader(Source source) : source_(std::move(source)), buffer_(kReaderBuffer) {}

// Reads more, after what is in the buffer.
Result<> TarReader::fill() {
  if (begin_ == end_) {
    begin_ = 0;
    end_ = 0;
  } else if (end_ == buffer_.size()) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const auto got = source_(std::span(buffer_).subspan(end_));
  if (!got) return std::unexpected(errno_error("reading the stream", got.error()));
  if (*got == 0) return bad_tar("the stream ends early");
  end_ += *got;
  return {};
}

Result<std::string_view> TarReader::block() {
  while (end_ - begin_ < kTarBlock) AGBOX_TRY_VOID(fill());
  const std::string_view block(buffer_.data() + begin_, kTarBlock);
  begin_ += kTarBlock;
  return block;
}

Result<std::string> TarReader::text(std::uint64_t size, std::string_view what) {
  if (size > kMaxRecords) return bad_tar(std::string(what) + " that is too long");
  std::string text;
  for (std::uint64_t left = size; left > 0;) {
    AGBOX_TRY(bytes, block());
    const auto used = std::min<std::uint64_t>(left, kTarBlock);
    text += bytes.substr(0, used);
    left -= used;
  }
  return text;
}

Result<std::string_view> TarReader::content() {
  if (left_ == 0) return std::string_view();
  if (begin_ == end_) AGBOX_TRY_VOID(fill());
  const std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, end_ - begin_));
  const std::string_view bytes(buffer_.data() + begin_, size);
  begin_ += size;
  left_ -= size;
  return bytes;
}

Result<> TarReader::skip_content() {
  while (left_ > 0) AGBOX_TRY_VOID(content());
  while (padding_ > 0) {
    if (begin_ == end_) AGBOX_TRY_VOID(fill());
    const std::size_t size = std::min(padding_, end_ - begin_);
    begin_ += size;
    padding_ -= size;
  }
  return {};
}

Result<std::optional<TarEntry>> TarReader::next() {
  AGBOX_TRY_VOID(skip_content());
  Overrides overrides;
  std::size_t headers = 0;
  while (true) {
    AGBOX_TRY(bytes, block());
    if (is_all_zero(bytes)) return std::nullopt;
    const std::string header(bytes);  // reading on overwrites the buffer
    if (!has_checksum(header)) return bad_tar("a header with a wrong checksum: not a tar archive");
    const auto size = number_field(header, 124, 12);
    if (!size || *size > kMaxSize) return bad_tar("a header with an impossible size");
    const char type = header[156];
    if (type != 'x' && type != 'g' && type != 'L' && type != 'K') {
      AGBOX_TRY(entry, entry_of(header, overrides));
      return entry;
    }
    if (++headers > 16) return bad_tar("too many headers before an entry");
    AGBOX_TRY(value, text(*size, "a header"));
    if (type == 'x') AGBOX_TRY_VOID(overrides.take(value));
    // A pax header takes precedence. Those for all entries ('g') carry comments.
    if (type == 'L' && !overrides.path) overrides.path = value.substr(0, value.find('\0'));
    if (type == 'K' && !overrides.target) overrides.target = value.substr(0, value.find('\0'));
  }
}

Result<TarEntry> TarReader::entry_of(std::string_view header, const Overrides& overrides) {
  TarEntry entry;
  const bool is_posix = field(header, 257, 6) == std::string_view("ustar\0", 6);
  entry.path = text_field(header, 0, 100);
  if (const auto prefix = text_field(header, 345, 155); is_posix && !prefix.empty()) {
    entry.path = std::string(prefix) + "/" + entry.path;
  }
  if (overrides.path) entry.path = *overrides.path;
  if (overrides.sparse_name) entry.path = *overrides.sparse_name;
  entry.target = overrides.target.value_or(std::string(text_field(header, 157, 100)));
  const auto problem = [&](std::string_view what) {
    return bad_tar(shown_path(entry.path) + ": " + std::string(what));
  };
  if (entry.path.size() > kMaxTarPath || entry.target.size() > kMaxTarPath) {
    return problem("a path that is too long");
  }
  if (entry.path.contains('\0') || entry.target.contains('\0')) {
    return bad_tar("a path with a NUL byte");
  }

  const bool is_directory_by_name = entry.path.ends_with('/');
  switch (header[156]) {
    case '0':
    case '7':
      entry.kind = TarEntry::Kind::File;
      break;
    case '\0':  // of the oldest format, which has no type for directories
      entry.kind = is_directory_by_name ? TarEntry::Kind::Directory : TarEntry::Kind::File;
      break;
    case '5':
      entry.kind = TarEntry::Kind::Directory;
      break;
    case '2':
      entry.kind = TarEntry::Kind::Symlink;
      break;
    case '1':
      return problem("is a hard link, which cannot be unpacked");
    case '3':
    case '4':
      return problem("is a device, which cannot be unpacked");
    case '6':
      return problem("is a FIFO, which cannot be unpacked");
    default:
      return problem("has an unknown type and cannot be unpacked");
  }
  while (entry.path.ends_with('/')) entry.path.pop_back();
  if (entry.kind != TarEntry::Kind::Symlink) entry.target.clear();

  const auto mode = number_field(header, 100, 8);
  const auto size = number_field(header, 124, 12);
  if (!mode || !size) return problem("a header that cannot be read");
  entry.mode = static_cast<std::uint32_t>(*mode & 07777);
  // A time that cannot be read is no reason to refuse a file.
  entry.mtime_seconds =
      static_cast<std::int64_t>(std::min(number_field(header, 136, 12).value_or(0), kMaxSize));
  if (overrides.time) {
    entry.mtime_seconds = overrides.time->seconds;
    entry.mtime_nanoseconds = overrides.time->nanoseconds;
  }
  const std::uint64_t stored = overrides.size.value_or(*size);
  if (stored > kMaxSize - kTarBlock) return problem("has an impossible size");
  left_ = stored;
  padding_ = static_cast<std::size_t>((kTarBlock - stored % kTarBlock) % kTarBlock);
  if (entry.kind != TarEntry::Kind::File) return entry;
  entry.size = stored;
  if (overrides.sparse_major) {
    if (*overrides.sparse_major != 1 || !overrides.sparse_size) {
      return problem("a sparse file in a format that cannot be unpacked; pack it without --sparse");
    }
    entry.size = *overrides.sparse_size;
    AGBOX_TRY_VOID(read_sparse_map(entry));
  }
  return entry;
}

// The map is the beginning of the stored bytes: decimal numbers in lines, padded to a block.
Result<> TarReader::read_sparse_map(TarEntry& entry) {
  const auto problem = [&] {
    return bad_tar(shown_path(entry.path) + ": a sparse file whose map cannot be read");
  };
  std::string digits;
  std::uint64_t used = 0;
  // At most as long as what is stored: content() ends there.
  std::string_view bytes;
  const auto number = [&]() -> Result<std::uint64_t> {
    digits.clear();
    while (true) {
      if (bytes.empty()) {
        AGBOX_TRY(more, content());
        if (more.empty()) return problem();
        bytes = more;
      }
      const char c = bytes[0];
      bytes.remove_prefix(1);
      ++used;
      if (c == '\n') break;
      digits += c;
      if (digits.size() > 20) return problem();
    }
    const auto value = decimal(digits);
    if (!value) return problem();
    return *value;
  };
  AGBOX_TRY(count, number());
  if (count > kMaxTarExtents) return problem();
  std::uint64_t sum = 0;
  std::uint64_t end = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    AGBOX_TRY(offset, number());
    AGBOX_TRY(length, number());
    if (offset < end || offset > entry.size || length > entry.size - offset) return problem();
    end = offset + length;
    sum += length;
    entry.extents.push_back({.offset = offset, .length = length});
  }
  // What was taken from the buffer too early is given back.
  begin_ -= bytes.size();
  left_ += bytes.size();
  for (std::uint64_t left = (kTarBlock - used % kTarBlock) % kTarBlock; left > 0;) {
    AGBOX_TRY(more, content());
    if (more.empty()) return problem();
    const auto taken = std::min<std::uint64_t>(left, more.size());
    begin_ -= more.size() - taken;
    left_ += more.size() - taken;
    left -= taken;
  }
  if (left_ != sum) return problem();
  entry.is_sparse = true;
  return {};
}

}  // namespace agbox
