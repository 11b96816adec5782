// SPDX-License-Identifier: Apache-2.0
#include "store/ballast.h"

#include <gmock/gmock.h>

#include <fstream>

#include "unit/store/store_fixture.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class BallastTest : public StoreTest {
 protected:
  fs::path file() const { return temp_directory_ / "ballast"; }
};

TEST_F(BallastTest, ReservesItsBlocksAndReleasesThemOnce) {
  Ballast ballast(file(), 100'000);
  EXPECT_FALSE(ballast.is_whole());
  ASSERT_TRUE(ballast.make().has_value());
  EXPECT_TRUE(ballast.is_whole());
  EXPECT_TRUE(ballast.release());
  EXPECT_FALSE(ballast.is_whole());
  EXPECT_FALSE(ballast.release());
}

TEST_F(BallastTest, AFileWithHolesIsCompleted) {
  std::ofstream(file()).close();
  fs::resize_file(file(), 100'000);
  Ballast ballast(file(), 100'000);
  EXPECT_FALSE(ballast.is_whole());
  ASSERT_TRUE(ballast.make().has_value());
  EXPECT_TRUE(ballast.is_whole());
}

TEST_F(BallastTest, WithoutSpaceItLeavesNothing) {
  // Larger than any disk.
  Ballast ballast(file(), std::uint64_t{1} << 60);
  EXPECT_FALSE(ballast.make().has_value());
  EXPECT_FALSE(fs::exists(file()));
  const auto with_margin = ballast.make_with_margin();
  ASSERT_FALSE(with_margin.has_value());
  EXPECT_EQ(with_margin.error().reason(), reason::kResourceExhausted);
}

TEST_F(BallastTest, ASymbolicLinkIsNotFollowed) {
  fs::create_symlink(temp_directory_ / "target", file());
  Ballast ballast(file(), 4096);
  EXPECT_FALSE(ballast.make().has_value());
  EXPECT_FALSE(fs::exists(temp_directory_ / "target"));
}

TEST_F(BallastTest, AStoreWithoutSpaceForItsBallastRefusesOnlyNewWork) {
  open();
  ASSERT_TRUE(append(create("s-01")));
  EXPECT_FALSE(store().space().refuses_new_work);
  store_.reset();
  StoreOptions greedy = options();
  greedy.ballast_bytes = std::uint64_t{1} << 60;
  auto opened = Store::open(std::move(greedy));
  ASSERT_TRUE(opened.has_value()) << opened.error().message();
  store_ = std::move(*opened);
  EXPECT_TRUE(store().space().refuses_new_work);
  const auto refused = append(Change{{create("s-02")}, Urgency::NewWork});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason(), reason::kResourceExhausted);
  EXPECT_THAT(refused.error().message(), HasSubstr("full"));
  EXPECT_TRUE(append(event("s-01")));
  EXPECT_EQ(events("s-01")->events.size(), 1U);
}

}  // namespace
}  // namespace agbox
