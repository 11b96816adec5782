// SPDX-License-Identifier: Apache-2.0
#include "place/local/host_resolvers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "unit/temp_directory.h"

namespace agbox {
namespace {

using testing::ElementsAre;

const std::string kStub = "nameserver 127.0.0.53\noptions edns0\n";

TEST(HostResolvers, TheFirstFileThatNamesOneCounts) {
  const TempDirectory directory;
  const std::filesystem::path named = directory.path() / "resolv.conf";
  const std::filesystem::path behind_stub = directory.path() / "behind-stub.conf";
  const std::vector<std::filesystem::path> files = {named, behind_stub};
  std::ofstream(named) << kStub;
  EXPECT_TRUE(host_resolvers(files).empty());
  std::ofstream(behind_stub) << "nameserver 192.0.2.1\n";
  EXPECT_THAT(host_resolvers(files), ElementsAre(Ipv4Address{0xC0000201}));
  std::ofstream(named) << kStub + "nameserver 192.0.2.2\n";
  EXPECT_THAT(host_resolvers(files), ElementsAre(Ipv4Address{0xC0000202}));
}

}  // namespace
}  // namespace agbox
