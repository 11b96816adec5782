// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/tar/tar_reader.h"
#include "base/tar/tar_writer.h"

namespace agbox {
namespace {

// `step` bytes at a time, as a slow pipe would.
TarReader reader_of(std::string bytes, std::size_t step = 100000) {
  return TarReader(
      [bytes = std::move(bytes), at = std::size_t{0}, step](std::span<char> buffer) mutable {
        const std::size_t size = std::min({buffer.size(), bytes.size() - at, step});
        std::memcpy(buffer.data(), bytes.data() + at, size);
        at += size;
        return std::expected<std::size_t, int>(size);
      });
}

std::string content_of(TarReader& reader) {
  std::string content;
  while (true) {
    const auto bytes = reader.content();
    EXPECT_TRUE(bytes) << bytes.error().message();
    if (!bytes || bytes->empty()) return content;
    content += *bytes;
  }
}

std::string packed(const TarEntry& entry, std::string_view content = {}) {
  std::string bytes = tar_header(entry);
  bytes += content;
  bytes += tar_padding(content.size());
  return bytes;
}

std::string problem_of(std::string bytes) {
  TarReader reader = reader_of(std::move(bytes));
  while (true) {
    const auto entry = reader.next();
    if (!entry) return entry.error().message();
    if (!*entry) return "";
  }
}

// A header as other programs write it.
std::string raw_header(char type, std::string_view name, std::string_view size,
                       std::string_view magic = std::string_view("ustar\00000", 8),
                       std::string_view prefix = {}) {
  std::string header(512, '\0');
  const auto put = [&](std::size_t at, std::string_view text) {
    std::ranges::copy(text, header.begin() + static_cast<long>(at));
  };
  put(0, name);
  put(100, "0000644");
  put(124, size);
  put(136, "00000000012");
  put(148, "        ");
  header[156] = type;
  put(257, magic);
  put(345, prefix);
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::array<char, 8> digits;
  std::snprintf(digits.data(), digits.size(), "%06o", sum);
  put(148, {digits.data(), 7});
  return header;
}

TEST(TarTest, WhatIsWrittenIsReadBack) {
  const std::vector<std::pair<TarEntry, std::string>> entries = {
      {{.path = "a.txt",
        .target = "",
        .mode = 0640,
        .mtime_seconds = 1700000000,
        .mtime_nanoseconds = 123456789,
        .size = 5},
       "hello"},
      {{.kind = TarEntry::Kind::Directory, .path = "d", .target = "", .mode = 01777}, ""},
      {{.kind = TarEntry::Kind::Symlink,
        .path = "d/l",
        .target = std::string(300, 't'),
        .mode = 0777},
       ""},
      {{.path = "d/" + std::string(200, 'n') + "/\xff\n",
        .target = "",
        .mode = 0,
        .mtime_seconds = -2,
        .mtime_nanoseconds = 500000000,
        .size = 512},
       std::string(512, 'x')},
      {{.path = "before 1970", .target = "", .mtime_seconds = -1, .mtime_nanoseconds = 0}, ""},
      {{.path = "empty", .target = "", .mode = 0600}, ""},
  };
  std::string stream;
  for (const auto& [entry, content] : entries) stream += packed(entry, content);
  stream += tar_end();
  for (const std::size_t step : {std::size_t{1}, std::size_t{511}, std::size_t{1 << 20}}) {
    TarReader reader = reader_of(stream, step);
    for (const auto& [entry, content] : entries) {
      const auto read = reader.next();
      ASSERT_TRUE(read) << read.error().message();
      ASSERT_TRUE(*read);
      EXPECT_EQ(**read, entry);
      EXPECT_EQ(content_of(reader), content);
    }
    const auto end = reader.next();
    ASSERT_TRUE(end);
    EXPECT_FALSE(*end);
  }
}

TEST(TarTest, ContentThatIsNotReadIsSkipped) {
  TarReader reader =
      reader_of(packed({.path = "a", .target = "", .size = 3}, "abc") +
                packed({.path = "b", .target = "", .size = 1}, "b") + std::string(tar_end()));
  ASSERT_TRUE(reader.next());
  const auto second = reader.next();
  ASSERT_TRUE(second && *second);
  EXPECT_EQ((*second)->path, "b");
  EXPECT_EQ(content_of(reader), "b");
}

TEST(TarTest, HolesAreNotStored) {
  const TarEntry entry{
      .path = "disk.img",
      .target = "",
      .mode = 0644,
      .size = std::uint64_t{1} << 40,
      .is_sparse = true,
      .extents = {{.offset = 4096, .length = 3}, {.offset = std::uint64_t{1} << 39, .length = 2}}};
  const std::string stream = packed(entry, "abcde") + std::string(tar_end());
  EXPECT_LT(stream.size(), 8192U);
  for (const std::size_t step : {std::size_t{1}, std::size_t{1 << 20}}) {
    TarReader reader = reader_of(stream, step);
    const auto read = reader.next();
    ASSERT_TRUE(read) << read.error().message();
    ASSERT_TRUE(*read);
    EXPECT_EQ(**read, entry);
    EXPECT_EQ(content_of(reader), "abcde");
    EXPECT_TRUE(reader.next());
  }
}

TEST(TarTest, NamesOfOtherProgramsAreRead) {
  const std::string_view gnu("ustar  \0", 8);
  const std::string name(150, 'g');
  const std::string stream =
      raw_header('L', "././@LongLink", "00000000227", gnu) + name + '\0' +
      std::string(512 - 151, '\0') + raw_header('0', "short", "00000000000", gnu) +
      raw_header('0', "file", "0", std::string_view("ustar\00000", 8), "some/prefix") +
      raw_header('0', "old/", "0", std::string_view(), "") +
      raw_header('\0', "v7dir/", "0", std::string_view(), "") + std::string(tar_end());
  TarReader reader = reader_of(stream);
  const auto path = [&] {
    const auto entry = reader.next();
    EXPECT_TRUE(entry) << entry.error().message();
    return entry && *entry ? (*entry)->path : "none";
  };
  EXPECT_EQ(path(), name);
  EXPECT_EQ(path(), "some/prefix/file");
  EXPECT_EQ(path(), "old");
  const auto directory = reader.next();
  ASSERT_TRUE(directory && *directory);
  EXPECT_EQ((*directory)->kind, TarEntry::Kind::Directory);
}

TEST(TarTest, WhatCannotBeUnpackedIsRefusedByName) {
  EXPECT_EQ(problem_of(raw_header('1', "link", "0")),
            "link: is a hard link, which cannot be unpacked");
  EXPECT_EQ(problem_of(raw_header('3', "null", "0")),
            "null: is a device, which cannot be unpacked");
  EXPECT_EQ(problem_of(raw_header('6', "pipe", "0")), "pipe: is a FIFO, which cannot be unpacked");
  EXPECT_EQ(problem_of(raw_header('S', "sparse", "0")),
            "sparse: has an unknown type and cannot be unpacked");
}

TEST(TarTest, AnIncompleteStreamIsAnError) {
  const std::string stream =
      packed({.path = "a", .target = "", .size = 600}, std::string(600, 'a'));
  for (std::size_t length = 0; length <= stream.size(); length += 64) {
    EXPECT_EQ(problem_of(stream.substr(0, length)), "the stream ends early") << length;
  }
  EXPECT_EQ(problem_of(stream + std::string(tar_end())), "");
}

TEST(TarTest, HeadersThatCannotBeTrueAreRefused) {
  EXPECT_NE(problem_of(std::string(512, 'x')), "");
  std::string header = raw_header('0', "a", "00000000001");
  header[0] = 'b';
  EXPECT_NE(problem_of(header + std::string(1024, '\0')), "");
  EXPECT_NE(problem_of(raw_header('0', "a", "\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")),
            "");
  EXPECT_NE(problem_of(raw_header('0', "a", "0000000000z")), "");
  // More than one entry needs, announced or repeated.
  EXPECT_NE(problem_of(raw_header('x', "p", "00010000000")), "");
  std::string many;
  for (int i = 0; i < 100; ++i) many += raw_header('x', "p", "00000000000");
  EXPECT_NE(problem_of(many), "");
  for (const std::string_view records :
       {"5 a=b\n", "7 a=b\n", "99 path=x\n", " path=x\n", "-1 a=b\n", "6 a=b", "10 size=x\n\n",
        "12 mtime=1x\n", "0 a=b\n", "3 =\n"}) {
    std::string block(records);
    block.resize(512, '\0');
    std::array<char, 12> size;
    std::snprintf(size.data(), size.size(), "%011zo", records.size());
    EXPECT_NE(problem_of(raw_header('x', "p", size.data()) + block + raw_header('0', "a", "0") +
                         std::string(tar_end())),
              "")
        << records;
  }
}

TEST(TarTest, SparseMapsThatCannotBeTrueAreRefused) {
  const auto with_map = [](std::string map, std::string_view realsize) {
    const std::string records = "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n" +
                                std::to_string(24 + realsize.size()) +
                                " GNU.sparse.realsize=" + std::string(realsize) + "\n";
    std::string block = records;
    block.resize(512, '\0');
    std::array<char, 12> size;
    std::snprintf(size.data(), size.size(), "%011zo", records.size());
    map.resize(512, '\0');
    return raw_header('x', "p", size.data()) + block + raw_header('0', "a", "00000001000") + map +
           std::string(tar_end());
  };
  EXPECT_EQ(problem_of(with_map("0\n", "100")), "");
  EXPECT_NE(problem_of(with_map("1\n0\n5\n", "100")), "");          // stores more than follows
  EXPECT_NE(problem_of(with_map("2\n50\n0\n10\n0\n", "100")), "");  // backwards
  EXPECT_NE(problem_of(with_map("1\n99\n2\n", "100")), "");         // beyond its size
  EXPECT_NE(problem_of(with_map("99999999\n", "100")), "");         // too many
  EXPECT_NE(problem_of(with_map("1\n18446744073709551615\n1\n", "100")), "");
  EXPECT_NE(problem_of(with_map("x\n", "100")), "");
  EXPECT_NE(problem_of(with_map(std::string(512, '1'), "100")), "");  // does not end
}

}  // namespace
}  // namespace agbox
