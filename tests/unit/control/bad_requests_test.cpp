// SPDX-License-Identifier: Apache-2.0
// Thousands of creates that must be refused, as a client's call handles them: the store has what it
// had before.
#include "unit/model/bad_requests.h"

#include "unit/control/control_fixture.h"

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class BadRequestsTest : public ControlTest {
 protected:
  BadRequestsTest() { start(); }

  Result<v1::SandboxHandle> call(const v1::CreateSandboxRequest& request) {
    auto spec = parse_create_request(request);
    if (!spec) return std::unexpected(spec.error());
    return create(request.sandbox_id(), std::move(*spec));
  }
};

TEST_F(BadRequestsTest, LeaveTheStoreAsItWas) {
  create_ready("before");
  const auto history = event_types("before");
  settle();
  for (const BadRequest& bad : bad_requests(3, 5000)) {
    ASSERT_FALSE(call(bad.request).has_value()) << bad.request.ShortDebugString().substr(0, 2000);
  }
  // A good spec with an ID that is none is refused at the next step.
  v1::CreateSandboxRequest request;
  *request.mutable_create_spec() = spec().create_spec;
  const std::string long_id(201, 'x');
  for (const std::string& id :
       std::vector<std::string>{"abc", "a b c", "../../etc", "id\n", "-id-", long_id}) {
    request.set_sandbox_id(id);
    ASSERT_FALSE(call(request).has_value()) << id;
  }
  restart();
  EXPECT_THAT(listed(), ElementsAre("before"));
  EXPECT_EQ(event_types("before"), history);
  EXPECT_THAT(network_names(), testing::SizeIs(1));
  // The ID of the refused ones was not reserved.
  create_ready("bad-request");
}

}  // namespace
}  // namespace agbox
