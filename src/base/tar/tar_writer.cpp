// SPDX-License-Identifier: Apache-2.0
#include "base/tar/tar_writer.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace agbox {
namespace {

using Block = std::array<char, kTarBlock>;

constexpr std::array<char, 2 * kTarBlock> kZeros{};
constexpr std::uint64_t kMaxOctalSize = 077777777777;  // 11 digits
constexpr std::size_t kMaxShortName = 100;

// Parts of a header: offset and size.
struct Field {
  std::size_t offset;
  std::size_t size;
};
constexpr Field kName{0, 100};
constexpr Field kMode{100, 8};
constexpr Field kUid{108, 8};
constexpr Field kGid{116, 8};
constexpr Field kSize{124, 12};
constexpr Field kTime{136, 12};
constexpr Field kChecksum{148, 8};
constexpr Field kType{156, 1};
constexpr Field kTarget{157, 100};
constexpr Field kMagic{257, 8};

void put(Block& block, Field field, std::string_view text) {
  std::ranges::copy(text.substr(0, field.size), block.begin() + static_cast<long>(field.offset));
}

// With a NUL at the end.
void put_octal(Block& block, Field field, std::uint64_t number) {
  for (std::size_t i = field.size - 1; i-- > 0; number >>= 3) {
    block[field.offset + i] = static_cast<char>('0' + (number & 7));
  }
}

struct Header {
  char type;
  std::string_view name;
  std::string_view target{};
  std::uint32_t mode = 0644;
  std::uint64_t size = 0;
  std::uint64_t time = 0;
};

void append(std::string& out, const Header& header) {
  Block block{};
  put(block, kName, header.name);
  put_octal(block, kMode, header.mode & 07777);
  put_octal(block, kUid, 0);
  put_octal(block, kGid, 0);
  put_octal(block, kSize, std::min(header.size, kMaxOctalSize));
  put_octal(block, kTime, std::min(header.time, kMaxOctalSize));
  put(block, kType, std::string_view(&header.type, 1));
  put(block, kTarget, header.target);
  put(block, kMagic, std::string_view("ustar\00000", 8));
  put(block, kChecksum, "        ");
  std::uint64_t sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  put_octal(block, {kChecksum.offset, 7}, sum);
  out.append(block.data(), block.size());
}

// "<length> <key>=<value>\n", where the length counts itself.
void append_record(std::string& out, std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) ++length;
  out += std::to_string(length);
  out.append(" ").append(key).append("=").append(value).append("\n");
}

// Nanoseconds count upwards from the second, also before 1970.
std::string time_text(std::int64_t seconds, std::uint32_t nanoseconds) {
  const bool is_negative = seconds < 0;
  auto whole = static_cast<std::uint64_t>(seconds);
  if (is_negative) {
    whole = ~whole + 1;
    if (nanoseconds != 0) {
      --whole;
      nanoseconds = 1'000'000'000 - nanoseconds;
    }
  }
  std::string text = (is_negative ? "-" : "") + std::to_string(whole);
  if (nanoseconds == 0) return text;
  std::string fraction = std::to_string(nanoseconds);
  fraction.insert(0, 9 - fraction.size(), '0');
  return text + "." + fraction;
}

// Of GNU tar 1.0: the number of parts, then offset and length of each, padded to a block.
std::string sparse_map(const std::vector<TarExtent>& extents) {
  std::string map = std::to_string(extents.size()) + "\n";
  for (const TarExtent& extent : extents) {
    map += std::to_string(extent.offset) + "\n" + std::to_string(extent.length) + "\n";
  }
  map += tar_padding(map.size());
  return map;
}

char type_of(TarEntry::Kind kind) {
  switch (kind) {
    case TarEntry::Kind::File:
      return '0';
    case TarEntry::Kind::Directory:
      return '5';
    case TarEntry::Kind::Symlink:
      return '2';
  }
  return '0';
}

}  // namespace

std::string tar_header(const TarEntry& entry) {
  const std::string path = entry.path + (entry.kind == TarEntry::Kind::Directory ? "/" : "");
  const std::string map = entry.is_sparse ? sparse_map(entry.extents) : "";
  const std::uint64_t size = entry.stored_bytes() + map.size();

  std::string records;
  if (path.size() > kMaxShortName && !entry.is_sparse) append_record(records, "path", path);
  if (entry.target.size() > kMaxShortName) append_record(records, "linkpath", entry.target);
  if (size > kMaxOctalSize) append_record(records, "size", std::to_string(size));
  if (entry.mtime_nanoseconds != 0 || entry.mtime_seconds < 0 ||
      static_cast<std::uint64_t>(entry.mtime_seconds) > kMaxOctalSize) {
    append_record(records, "mtime", time_text(entry.mtime_seconds, entry.mtime_nanoseconds));
  }
  if (entry.is_sparse) {
    append_record(records, "GNU.sparse.major", "1");
    append_record(records, "GNU.sparse.minor", "0");
    append_record(records, "GNU.sparse.name", path);
    append_record(records, "GNU.sparse.realsize", std::to_string(entry.size));
  }

  std::string out;
  if (!records.empty()) {
    append(out, {.type = 'x', .name = "PaxHeaders/entry", .size = records.size()});
    out += records;
    out += tar_padding(records.size());
  }
  append(out, {.type = type_of(entry.kind),
               .name = path,
               .target = entry.target,
               .mode = entry.mode,
               .size = size,
               .time = static_cast<std::uint64_t>(std::max<std::int64_t>(entry.mtime_seconds, 0))});
  return out + map;
}

std::string_view tar_padding(std::uint64_t stored_bytes) {
  const std::size_t used = stored_bytes % kTarBlock;
  return {kZeros.data(), used == 0 ? 0 : kTarBlock - used};
}

std::string_view tar_end() {
  return {kZeros.data(), kZeros.size()};
}

}  // namespace agbox
