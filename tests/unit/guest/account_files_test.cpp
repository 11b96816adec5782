// SPDX-License-Identifier: Apache-2.0
#include "guest/account_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agbox::guest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Case {
  std::string name;
  AccountFiles before;
  RuntimeUserPlan plan;
  AccountFiles after;
};

class WithRuntimeUser : public testing::TestWithParam<Case> {};

TEST_P(WithRuntimeUser, WritesTheExpectedFilesAndIsIdempotent) {
  const Case& test = GetParam();
  const AccountFiles once = with_runtime_user(test.before, test.plan);
  EXPECT_EQ(once.passwd, test.after.passwd);
  EXPECT_EQ(once.group, test.after.group);
  EXPECT_EQ(once.shadow, test.after.shadow);
  EXPECT_EQ(with_runtime_user(once, test.plan), once);
}

const std::string kRoot = "root:x:0:0:root:/root:/bin/bash\n";

INSTANTIATE_TEST_SUITE_P(
    Images, WithRuntimeUser,
    testing::Values(
        Case{"NoFilesAtAll",
             {},
             {1000, 1000, {}, "/bin/sh"},
             {"agbox:*:1000:1000::/home/agbox:/bin/sh\n", "agbox:x:1000:\n", std::nullopt}},
        Case{"OnlyRoot",
             {kRoot, "root:x:0:\n", "root:*:19000:0:99999:7:::\n"},
             {1000, 1000, {}, "/bin/sh"},
             {kRoot + "agbox:x:1000:1000::/home/agbox:/bin/sh\n", "root:x:0:\nagbox:x:1000:\n",
              "root:*:19000:0:99999:7:::\nagbox:*:1::::::\n"}},
        Case{"NoNewlineAtTheEnd",
             {"root:x:0:0:root:/root:/bin/sh", "root:x:0:", std::nullopt},
             {1000, 1000, {}, "/bin/sh"},
             {"root:x:0:0:root:/root:/bin/sh\nagbox:*:1000:1000::/home/agbox:/bin/sh\n",
              "root:x:0:\nagbox:x:1000:\n", std::nullopt}},
        Case{"UidAndGidExist",
             {kRoot + "node:x:1000:1000:Node:/home/node:/bin/zsh\n",
              "root:x:0:\nnode:x:1000:\nsudo:x:27:node\nvideo:x:44:a,node,b\n", std::nullopt},
             {1000, 1000, {}, "/bin/sh"},
             {kRoot + "agbox:*:1000:1000::/home/agbox:/bin/zsh\n"
                      "node:x:1000:1000:Node:/home/node:/bin/zsh\n",
              "root:x:0:\nnode:x:1000:\nsudo:x:27:node,agbox\nvideo:x:44:a,node,b,agbox\n",
              std::nullopt}},
        Case{"AShellThatLetsNobodyIn",
             {"svc:x:1000:1000::/:/usr/sbin/nologin\n", "svc:x:1000:\n", std::nullopt},
             {1000, 1000, {}, "/bin/bash"},
             {"agbox:*:1000:1000::/home/agbox:/bin/bash\nsvc:x:1000:1000::/:/usr/sbin/nologin\n",
              "svc:x:1000:\n", std::nullopt}},
        Case{"TheNameBelongsToAnotherUid",
             {kRoot + "agbox:x:1001:1001::/opt:/bin/sh\n", "agbox:x:1001:\n", std::nullopt},
             {1000, 1000, {}, "/bin/sh"},
             {kRoot + "agbox:*:1000:1000::/home/agbox:/bin/sh\n",
              "agbox:x:1001:\nagbox-1000:x:1000:\n", std::nullopt}},
        Case{"UidZeroIsAnAliasBehindRoot",
             {kRoot, "root:x:0:\nwheel:x:10:root\n", "root:*:19000::::::\n"},
             {0, 0, {4242}, "/bin/sh"},
             {kRoot + "agbox:x:0:0::/home/agbox:/bin/bash\n", "root:x:0:\nwheel:x:10:root\n",
              "root:*:19000::::::\nagbox:*:1::::::\n"}},
        Case{"SupplementalGroups",
             {kRoot, "root:x:0:\nrender:x:105:\n", std::nullopt},
             {1000, 1000, {105, 4242}, "/bin/sh"},
             {kRoot + "agbox:*:1000:1000::/home/agbox:/bin/sh\n",
              "root:x:0:\nrender:x:105:agbox\nagbox:x:1000:\n"
              "agbox-supplemental-4242:x:4242:agbox\n",
              std::nullopt}},
        Case{"LinesThatNobodyUnderstandsStay",
             {"# comment\n+::::::\nbroken\nbad:x:abc:0::/:/bin/sh\n\n", "+:::\nodd:x\n",
              std::nullopt},
             {1000, 1000, {}, "/bin/sh"},
             {"# comment\n+::::::\nbroken\nbad:x:abc:0::/:/bin/sh\n\n"
              "agbox:*:1000:1000::/home/agbox:/bin/sh\n",
              "+:::\nodd:x\nagbox:x:1000:\n", std::nullopt}},
        Case{"AGroupWithTooManyFieldsStays",
             {"node:x:1000:1000::/:/bin/sh\n", "video:x:44:a:x:44:node\nnode:x:1000:\n",
              std::nullopt},
             {1000, 1000, {}, "/bin/sh"},
             {"agbox:*:1000:1000::/home/agbox:/bin/sh\nnode:x:1000:1000::/:/bin/sh\n",
              "video:x:44:a:x:44:node\nnode:x:1000:\n", std::nullopt}},
        Case{"AShadowEntryOfItsOwnStays",
             {"", "", "agbox:$6$x:19000::::::\n"},
             {1000, 1000, {}, "/bin/sh"},
             {"agbox:x:1000:1000::/home/agbox:/bin/sh\n", "agbox:x:1000:\n",
              "agbox:$6$x:19000::::::\n"}}),
    [](const auto& info) { return info.param.name; });

TEST(RuntimeIdentity, HasEveryGroupThatNamesTheUser) {
  const RuntimeUserPlan plan{1000, 1000, {4242}, "/bin/sh"};
  const AccountFiles files = with_runtime_user(
      {"node:x:1000:1000::/:/bin/sh\n", "node:x:1000:node\nvideo:x:44:node\n", {}}, plan);
  const Identity identity = runtime_identity(files, plan);
  EXPECT_EQ(identity.uid, 1000U);
  EXPECT_EQ(identity.gid, 1000U);
  EXPECT_THAT(identity.gids, ElementsAre(44, 4242));
  EXPECT_EQ(identity.home, "/home/agbox");
}

struct UserCase {
  std::string user;
  Identity identity;
};

class ResolveUser : public testing::TestWithParam<UserCase> {};

const AccountFiles kImage = {
    "root:x:0:0:root:/root:/bin/sh\n"
    "web:x:33:33::/var/www:/bin/sh\n"
    "1234:x:77:77::/named:/bin/sh\n"
    "agbox:x:1000:1000::/home/agbox:/bin/sh\n"
    "node:x:1000:1001::/home/node:/bin/sh\n"
    "homeless:x:50:50:::\n",
    "root:x:0:\nweb:x:33:\nssl:x:110:web,other\nextra:x:111:web\n42:x:4200:\n", std::nullopt};

TEST_P(ResolveUser, AsTheEngineDoes) {
  const auto identity = resolve_user(GetParam().user, kImage);
  ASSERT_TRUE(identity) << identity.error().message();
  EXPECT_EQ(*identity, GetParam().identity);
}

INSTANTIATE_TEST_SUITE_P(Users, ResolveUser,
                         testing::Values(UserCase{"", {0, 0, {}, "/root"}},
                                         UserCase{"0", {0, 0, {}, "/root"}},
                                         UserCase{"root", {0, 0, {}, "/root"}},
                                         UserCase{"web", {33, 33, {110, 111}, "/var/www"}},
                                         UserCase{"33", {33, 33, {110, 111}, "/var/www"}},
                                         UserCase{"web:ssl", {33, 110, {}, "/var/www"}},
                                         UserCase{"web:5", {33, 5, {}, "/var/www"}},
                                         UserCase{"9999", {9999, 0, {}, "/"}},
                                         UserCase{"9999:8888", {9999, 8888, {}, "/"}},
                                         // A name that looks like a number is a name first.
                                         UserCase{"1234", {77, 77, {}, "/named"}},
                                         UserCase{"0:42", {0, 4200, {}, "/root"}},
                                         // A number never refers to our own entry.
                                         UserCase{"1000", {1000, 1001, {}, "/home/node"}},
                                         UserCase{"agbox", {1000, 1000, {}, "/home/agbox"}},
                                         UserCase{"homeless", {50, 50, {}, "/"}}));

TEST(ResolveUserError, NamesWhatIsMissing) {
  EXPECT_THAT(resolve_user("nobody-here", kImage).error().message(), HasSubstr("'nobody-here'"));
  EXPECT_THAT(resolve_user("web:nogroup", kImage).error().message(), HasSubstr("'nogroup'"));
  EXPECT_FALSE(resolve_user("4294967295", kImage));
  EXPECT_FALSE(resolve_user("-1", kImage));
  EXPECT_FALSE(resolve_user("2147483648", kImage));
}

TEST(ResolveUser, WorksWithoutAnyFile) {
  EXPECT_EQ(resolve_user("", {}).value(), (Identity{0, 0, {}, "/"}));
  EXPECT_EQ(resolve_user("12:34", {}).value(), (Identity{12, 34, {}, "/"}));
}

}  // namespace
}  // namespace agbox::guest
