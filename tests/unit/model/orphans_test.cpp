// SPDX-License-Identifier: Apache-2.0
#include "model/sandbox/orphans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agbox {
namespace {

using Kind = SandboxClaim::Kind;
using testing::Not;
using testing::StrEq;

struct ContainerRow {
  SandboxClaim claim;
  Fate mine;             // a primary whose id is "mine"
  Fate other;            // a primary with another id
  Fate other_companion;  // no primary, with another id
};

TEST(OrphansTest, AContainerIsJudgedByWhatItsSandboxClaims) {
  const ContainerRow rows[] = {
      {{.kind = Kind::Unknown}, Fate::Report, Fate::Report, Fate::Remove},
      {{.kind = Kind::Deleted}, Fate::Remove, Fate::Remove, Fate::Remove},
      {{.kind = Kind::Everything}, Fate::Keep, Fate::Keep, Fate::Keep},
      {{.kind = Kind::Listed, .container_ids = {"mine"}}, Fate::Keep, Fate::Report, Fate::Remove},
      {{.kind = Kind::Listed}, Fate::Remove, Fate::Remove, Fate::Remove},
  };
  for (const ContainerRow& row : rows) {
    SCOPED_TRACE(static_cast<int>(row.claim.kind));
    EXPECT_EQ(judge_container(row.claim, "mine", true).fate, row.mine);
    EXPECT_EQ(judge_container(row.claim, "other", true).fate, row.other);
    EXPECT_EQ(judge_container(row.claim, "other", false).fate, row.other_companion);
  }
}

struct NetworkRow {
  SandboxClaim claim;
  Fate alone;
  Fate beside_unknown_primary;
};

TEST(OrphansTest, ANetworkIsJudgedByWhatItsSandboxClaims) {
  const NetworkRow rows[] = {
      {{.kind = Kind::Unknown}, Fate::Remove, Fate::Keep},
      {{.kind = Kind::Deleted}, Fate::Remove, Fate::Remove},
      {{.kind = Kind::Everything}, Fate::Keep, Fate::Keep},
      {{.kind = Kind::Listed, .has_network = true}, Fate::Keep, Fate::Keep},
      {{.kind = Kind::Listed}, Fate::Remove, Fate::Keep},
  };
  for (const NetworkRow& row : rows) {
    SCOPED_TRACE(static_cast<int>(row.claim.kind));
    EXPECT_EQ(judge_network(row.claim, false).fate, row.alone);
    EXPECT_EQ(judge_network(row.claim, true).fate, row.beside_unknown_primary);
  }
}

TEST(OrphansTest, WhatIsNotKeptHasAReason) {
  for (const Kind kind : {Kind::Unknown, Kind::Deleted, Kind::Listed}) {
    for (const bool is_primary : {false, true}) {
      EXPECT_THAT(judge_container({.kind = kind}, "x", is_primary).reason, Not(StrEq("")));
    }
    EXPECT_THAT(judge_network({.kind = kind}, false).reason, Not(StrEq("")));
  }
}

}  // namespace
}  // namespace agbox
