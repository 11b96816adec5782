// SPDX-License-Identifier: Apache-2.0
#include "base/file_io.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>

#include "base/unique_fd.h"

namespace agbox {
namespace {

TEST(FileIo, PassesMoreThanAPipeHolds) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const std::string bytes(1'000'000, 'x');
  int problem = -1;
  std::thread writing([&] {
    problem = write_all(writer.get(), bytes);
    writer.reset();
  });
  EXPECT_EQ(read_all(reader.get(), bytes.size()), bytes);
  writing.join();
  EXPECT_EQ(problem, 0);
}

TEST(FileIo, ReportsWhatIsLargerThanTheLimit) {
  const UniqueFd zero(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(read_all(zero.get(), 100'000), std::unexpected(EFBIG));
}

TEST(FileIo, ReportsTheErrno) {
  EXPECT_EQ(read_all(-1, 1), std::unexpected(EBADF));
  EXPECT_EQ(write_all(-1, "x"), EBADF);
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(write_all(full.get(), "x"), ENOSPC);
}

}  // namespace
}  // namespace agbox
