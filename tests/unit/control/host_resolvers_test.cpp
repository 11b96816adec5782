// SPDX-License-Identifier: Apache-2.0
// Which resolvers sandboxes are given while those of the host change, and that the firewall lets
// every sandbox reach its own.
#include <fstream>

#include "unit/control/control_fixture.h"

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kStub = "nameserver 127.0.0.53\noptions edns0\n";

class HostResolversTest : public ControlTest {
 protected:
  HostResolversTest() {
    resolver_files_ = {named_, behind_stub_};
    name("nameserver 192.0.2.53\n");
  }

  void name(const std::string& text) { replace(named_, text); }
  static void replace(const std::filesystem::path& file, const std::string& text) {
    std::ofstream(file.string() + ".new") << text;
    std::filesystem::rename(file.string() + ".new", file);
  }
  std::vector<std::string> given(const std::string& id) {
    std::vector<std::string> resolvers;
    for (const auto& resolver : primary(id).spec.at("HostConfig").at("Dns").as_array()) {
      resolvers.emplace_back(resolver.as_string());
    }
    return resolvers;
  }
  void wait_for_resolvers(const std::vector<std::string>& resolvers) {
    run_until([&] { return isolation_.is_started && isolation_.resolvers == resolvers; });
  }

  std::filesystem::path named_ = temp_directory_.path() / "resolv.conf";
  std::filesystem::path behind_stub_ = temp_directory_.path() / "behind-stub.conf";
};

TEST_F(HostResolversTest, NewSandboxesAskThoseOfTheHostAsTheyChange) {
  start();
  wait_for_engine();
  create_ready("box-1");
  EXPECT_THAT(given("box-1"), ElementsAre("192.0.2.53"));
  name("nameserver 192.0.2.7\nnameserver 192.0.2.6\n");
  // A sandbox keeps those that it was made with, so they stay within reach.
  wait_for_resolvers({"192.0.2.6", "192.0.2.7", "192.0.2.53"});
  create_ready("box-2");
  EXPECT_THAT(given("box-2"), ElementsAre("192.0.2.7", "192.0.2.6"));
  ASSERT_TRUE(remove("box-1").has_value());
  wait_for_resolvers({"192.0.2.6", "192.0.2.7"});
}

TEST_F(HostResolversTest, WhereAStubIsNamedThoseBehindItAreAsked) {
  name(kStub);
  replace(behind_stub_, "nameserver 192.0.2.1\n");
  start();
  wait_for_engine();
  wait_for_resolvers({"192.0.2.1"});
  replace(behind_stub_, "nameserver 192.0.2.2\n");
  wait_for_resolvers({"192.0.2.2"});
  create_ready("box-1");
  EXPECT_THAT(given("box-1"), ElementsAre("192.0.2.2"));
}

TEST_F(HostResolversTest, WhereNoneIsLeftACreateIsRefusedUntilThereIsOne) {
  start();
  wait_for_engine();
  name(kStub);
  wait_for_resolvers({});
  const auto refused = create("box-1");
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message(), HasSubstr("no resolver for the sandbox"));
  name("nameserver 192.0.2.8\n");
  wait_for_resolvers({"192.0.2.8"});
  create_ready("box-1");
  EXPECT_THAT(given("box-1"), ElementsAre("192.0.2.8"));
}

}  // namespace
}  // namespace agbox
