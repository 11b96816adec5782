// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "model/guest/entrypoint_outcome.h"
#include "model/guest/peer_process.h"

namespace agbox {
namespace {

TEST(EntrypointFailure, SaysWhatHappenedInEveryCase) {
  using Cause = EntrypointFailure::Cause;
  EXPECT_EQ(
      (EntrypointFailure{Cause::Signaled, 9, "", ""}.sentence()),
      "the image's entrypoint was killed by signal 9 before it ran its arguments; create with "
      "bypass_entrypoint (--no-entrypoint) to go without it");
  EXPECT_EQ(
      (EntrypointFailure{Cause::NotStarted, 127, "cannot run 'x': No such file", ""}.sentence()),
      "the container's first program could not be started: cannot run 'x': No such file");
  EXPECT_EQ((EntrypointFailure{Cause::UserCannotRun, 126, "", ""}.sentence()),
            "the runtime user could not run a program in this container (exit code 126)");
}

TEST(PeerProcess, UnknownContradictsNothing) {
  const PeerProcess known{7, 100};
  EXPECT_TRUE(known.may_be({7, 100}));
  EXPECT_TRUE(known.may_be({0, 0}));
  EXPECT_TRUE(known.may_be({7, 0}));
  EXPECT_FALSE(known.may_be({8, 100}));
  EXPECT_FALSE(known.may_be({7, 101}));
}

}  // namespace
}  // namespace agbox
