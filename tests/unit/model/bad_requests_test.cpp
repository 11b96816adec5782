// SPDX-License-Identifier: Apache-2.0
#include "unit/model/bad_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/utf8.h"
#include "model/spec/sandbox_spec.h"

namespace agbox {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

TEST(BadRequests, AreAllRefusedByNameInOneReadableSentence) {
  for (const BadRequest& bad : bad_requests(1, 5000)) {
    const auto parsed = parse_create_request(bad.request);
    ASSERT_FALSE(parsed.has_value()) << bad.request.ShortDebugString().substr(0, 2000);
    const Error& error = parsed.error();
    EXPECT_THAT(error.reason().name, AnyOf("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"));
    EXPECT_THAT(error.message(), HasSubstr(bad.names))
        << bad.request.ShortDebugString().substr(0, 2000);
    EXPECT_LT(error.message().size(), 8192U);
    EXPECT_EQ(to_utf8(error.message()), error.message());
  }
}

}  // namespace
}  // namespace agbox
