// SPDX-License-Identifier: Apache-2.0
#include "model/network/resolv_conf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agbox {
namespace {

using testing::HasSubstr;

struct File {
  std::string_view name;
  std::string_view text;
  std::vector<std::string> resolvers;
};

class ResolvConf : public testing::TestWithParam<File> {};

TEST_P(ResolvConf, NamesResolversForSandboxes) {
  std::vector<std::string> resolvers;
  for (const Ipv4Address& resolver : read_resolvers(GetParam().text)) {
    resolvers.push_back(resolver.text());
  }
  EXPECT_EQ(resolvers, GetParam().resolvers);
}

INSTANTIATE_TEST_SUITE_P(
    Files, ResolvConf,
    testing::Values(
        File{"Nothing", "", {}},
        File{"Everyday",
             "# by hand\nsearch example.com\nnameserver 192.0.2.1\nnameserver 192.0.2.2\n",
             {"192.0.2.1", "192.0.2.2"}},
        File{"LastLineWithoutEnd", "nameserver\t192.0.2.1", {"192.0.2.1"}},
        File{"Stub", "nameserver 127.0.0.53\noptions edns0 trust-ad\n", {}},
        File{"EveryLoopbackAddress", "nameserver 127.0.1.1\nnameserver 127.255.255.255\n", {}},
        File{"ThisHost", "nameserver 0.0.0.0\n", {}},
        File{
            "SixAndLoopbackAreLeftOut",
            "nameserver ::1\nnameserver fe80::1%eth0\nnameserver 127.0.0.1\nnameserver 192.0.2.9\n",
            {"192.0.2.9"}},
        File{"EachOnce", "nameserver 192.0.2.1\nnameserver 192.0.2.1\n", {"192.0.2.1"}},
        File{"OutOfOrderIsKept",
             "nameserver 192.0.2.9\nnameserver 192.0.2.1\n",
             {"192.0.2.9", "192.0.2.1"}},
        File{"OtherWords", "#nameserver 192.0.2.1\nnameservers 192.0.2.2\nnameserver\n", {}},
        File{"NoAddress", "nameserver resolver.example\nnameserver 192.0.2\n", {}}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(CheckResolvers, NoContainerIsMadeWithoutOne) {
  EXPECT_TRUE(check_resolvers({"192.0.2.1", "10.0.0.53"}).has_value());
  EXPECT_THAT(check_resolvers({}).error().message(), HasSubstr("set network.dns in config.toml"));
  for (const std::string wrong : {"127.0.0.53", "0.0.0.0", "::1", ""}) {
    const auto checked = check_resolvers({"192.0.2.1", wrong});
    ASSERT_FALSE(checked.has_value()) << wrong;
    EXPECT_THAT(checked.error().message(), HasSubstr("resolver '" + wrong + "' cannot be given"));
  }
}

}  // namespace
}  // namespace agbox
