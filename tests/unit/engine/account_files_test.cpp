// SPDX-License-Identifier: Apache-2.0
// What may be at /etc/passwd and /etc/group of a container that is started.
#include "engine/docker/workload/account_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/reasons.h"
#include "support/fake_docker/fake_docker.h"
#include "support/test_loop.h"

namespace agbox {
namespace {

using testing::HasSubstr;

fake::File link(const std::string& target) {
  return {.mode = fake::kLinkMode, .size = 10, .link_target = target};
}
const fake::File kDirectory{.mode = fake::kDirectoryMode, .size = 4096};
const fake::File kFifo{.mode = fake::kFifoMode, .size = 0};
constexpr std::uint32_t kSocketMode = 1U << 24U;
constexpr std::uint32_t kDeviceMode = (1U << 26U) | (1U << 21U);
constexpr std::uint32_t kIrregularMode = 1U << 19U;

class AccountFilesTest : public testing::Test {
 protected:
  AccountFilesTest() {
    docker_.engine().add_image("busybox");
    const fake::json::object mount{{"Type", "bind"}, {"Source", "/s"}, {"Target", "/data"}};
    id_ = loop_.run(client_.create_container({.name = "c", .image = "busybox"})).value();
    docker_.engine().find_container(id_)->spec["HostConfig"] =
        fake::json::object{{"Mounts", fake::json::array{mount}}};
  }

  std::map<std::string, fake::File>& files() { return docker_.engine().find_container(id_)->files; }
  EngineResult<> check() { return loop_.run(check_account_files(client_, id_, {})); }
  void expect_unsafe(const std::string& words) {
    const auto checked = check();
    ASSERT_FALSE(checked.has_value());
    EXPECT_EQ(checked.error().kind(), EngineErrorKind::Unsafe);
    EXPECT_EQ(checked.error().reason(), reason::kAccountFileUnsafe);
    EXPECT_THAT(checked.error().message(), HasSubstr(words));
  }

  TestLoop loop_;
  FakeDocker docker_{loop_.io()};
  EngineClient client_{loop_.executor(), {.socket_path = docker_.socket_path()}};
  std::string id_;
};

TEST_F(AccountFilesTest, FilesMayBeThereOrNot) {
  EXPECT_TRUE(check());
  files().erase("/etc/group");
  EXPECT_TRUE(check());
  files().clear();
  EXPECT_TRUE(check());
}

TEST_F(AccountFilesTest, NothingElseMayBeThere) {
  for (const char* const path : {"/etc/passwd", "/etc/group"}) {
    const fake::File before = std::exchange(files()[path], kFifo);
    expect_unsafe(std::string(path) + " is a FIFO");
    files()[path] = kDirectory;
    expect_unsafe(std::string(path) + " is a directory");
    files()[path] = {.mode = kSocketMode};
    expect_unsafe(std::string(path) + " is a socket");
    files()[path] = {.mode = kDeviceMode};
    expect_unsafe(std::string(path) + " is a device");
    files()[path] = {.mode = kIrregularMode};
    expect_unsafe(std::string(path) + " is no ordinary file");
    files()[path] = {.size = (4 << 20) + 1};
    expect_unsafe(std::string(path) + " has 4194305 bytes");
    files()[path] = before;
  }
  files()["/etc"] = kFifo;
  expect_unsafe("/etc is a FIFO");
}

TEST_F(AccountFilesTest, ALinkMayLeadToAFile) {
  files()["/etc/passwd"] = link("/nix/store/passwd");
  files()["/nix/store/passwd"] = {};
  EXPECT_TRUE(check());
  files()["/nix/store/passwd"] = kFifo;
  expect_unsafe("/etc/passwd leads to /nix/store/passwd, which is a FIFO");
  files().erase("/nix/store/passwd");
  expect_unsafe("/etc/passwd leads to /nix/store/passwd, which does not exist");
}

TEST_F(AccountFilesTest, ALinkOfTheDirectoryMayLeadToADirectory) {
  files()["/etc"] = link("/private/etc");
  files()["/private/etc"] = kDirectory;
  EXPECT_TRUE(check());
  files()["/private/etc"] = {};
  expect_unsafe("/etc leads to /private/etc, which is a file");
}

// There the engine sees one thing from outside, and another inside.
TEST_F(AccountFilesTest, ALinkMustNotLeadIntoAMount) {
  for (const std::string target :
       {"/data", "/data/passwd", "/dev/urandom", "/proc/1/x", "/sys/x"}) {
    SCOPED_TRACE(target);
    files()["/etc/passwd"] = link(target);
    files()[target] = {};
    expect_unsafe("/etc/passwd leads to " + target + ", which is part of a mount");
  }
  files()["/etc/passwd"] = link("/database");
  files()["/database"] = {};
  EXPECT_TRUE(check());
  files()["/etc"] = link("/data/etc");
  expect_unsafe("/etc leads to /data/etc, which is part of a mount");
}

TEST_F(AccountFilesTest, ATargetIsShownAsOneLine) {
  files()["/etc/passwd"] = link("/a\nb");
  expect_unsafe("leads to /a\\x0ab, which");
}

TEST_F(AccountFilesTest, WhatCannotBeInspectedIsNotStarted) {
  docker_.reply("HEAD /containers/*/archive", 500, "");
  EXPECT_EQ(check().error().kind(), EngineErrorKind::Refused);
  docker_.drop("HEAD /containers/*/archive");
  EXPECT_TRUE(check().error().is_open());
  docker_.clear_faults();
  docker_.reply("HEAD /containers/*/archive", 200, "");
  EXPECT_EQ(check().error().kind(), EngineErrorKind::Garbled);
}

}  // namespace
}  // namespace agbox
