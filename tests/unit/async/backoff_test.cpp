// SPDX-License-Identifier: Apache-2.0
#include "async/backoff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

TEST(Backoff, DoublesUpToItsLimitAndResetsAfterSuccess) {
  Backoff backoff(100ms, 30s);
  std::vector<std::chrono::milliseconds> waits;
  for (int i = 0; i < 11; ++i) waits.push_back(backoff.next());
  EXPECT_THAT(waits, ElementsAre(100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 6400ms, 12800ms,
                                 25600ms, 30s, 30s));
  backoff.reset();
  EXPECT_EQ(backoff.next(), 100ms);
}

}  // namespace
}  // namespace agbox
