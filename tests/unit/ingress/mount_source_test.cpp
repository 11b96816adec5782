// SPDX-License-Identifier: Apache-2.0
#include "ingress/mount_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "model/reasons.h"
#include "unit/temp_directory.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr uid_t kSomebody = 12345;

class MountSource : public testing::Test {
 protected:
  MountSource() : root_(fs::canonical(temp_directory_.path())) {
    for (const char* name : {"home/project/src", "ours/state", "elsewhere"}) {
      fs::create_directories(root_ / name);
    }
    std::ofstream(root_ / "home/file") << "x";
    fs::create_symlink(root_ / "home/project", root_ / "home/link");
    forbidden_.emplace(std::vector{root_ / "ours/state"});
  }

  fs::path at(const std::string& path) const { return root_ / path; }

  Result<PinnedSource> resolve(const std::string& path, bool is_writable = false) {
    auto resolved = resolve_mount_sources({{.path = path, .is_writable = is_writable}},
                                          {.home = home_,
                                           .user = {.uid = kSomebody, .gid = kSomebody},
                                           .forbidden = *forbidden_,
                                           .engine_files = engine_files_});
    if (!resolved) return std::unexpected(resolved.error());
    return std::move(resolved->sources.front());
  }
  std::string refusal(const std::string& path, bool is_writable = false) {
    const auto resolved = resolve(path, is_writable);
    EXPECT_FALSE(resolved.has_value()) << path;
    if (resolved) return "";
    EXPECT_EQ(resolved.error().reason(), reason::kInvalidArgument);
    return resolved.error().message();
  }
  Result<std::vector<PinnedSource>> reopen(const PinnedSource& source,
                                           const std::string& boot_id) const {
    return reopen_mount_sources({{.path = source.path,
                                  .identity = source.identity,
                                  .birth_time = source.birth_time,
                                  .boot_id = boot_id}},
                                *forbidden_);
  }
  // How a tool's source of that kind, which was something else at first, is found again.
  std::string reopened(const std::string& path, SourceUse use, uid_t user) {
    const auto again = reopen_mount_sources(
        {{.path = path, .identity = {}, .boot_id = boot_id(), .use = use, .user = user}},
        *forbidden_);
    if (again) return "";
    EXPECT_EQ(again.error().reason(), reason::kMountChanged);
    return again.error().message();
  }
  UniqueFd listen_at(const std::string& path) {
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    EXPECT_LT(path.size(), sizeof address.sun_path);
    std::strcpy(address.sun_path, path.c_str());
    // reinterpret_cast: bind() takes any kind of address.
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
  }
  std::string boot_id() {
    return resolve_mount_sources(
               {}, {.home = {}, .user = {}, .forbidden = *forbidden_, .engine_files = {}})
        ->boot_id;
  }

  TempDirectory temp_directory_;
  const fs::path root_;
  fs::path home_ = root_ / "home";
  std::vector<fs::path> engine_files_;
  std::optional<ForbiddenSources> forbidden_;
};

TEST_F(MountSource, IsAFileOrDirectoryWithTheLinksOfItsParentsResolved) {
  EXPECT_EQ(resolve(at("home/project"))->path, at("home/project"));
  EXPECT_EQ(resolve(at("home/file"))->path, at("home/file"));
  EXPECT_EQ(resolve(at("home/link/src"))->path, at("home/project/src"));
  EXPECT_EQ(resolve("~")->path, at("home"));
  EXPECT_EQ(resolve("~/link/src")->path, at("home/project/src"));
  struct stat status{};
  ASSERT_EQ(::stat(at("home/project/src").c_str(), &status), 0);
  EXPECT_EQ(resolve("~/link/src")->identity,
            (FileIdentity{.device = status.st_dev, .inode = status.st_ino}));
}

TEST_F(MountSource, IsRefusedInTheWordsThatClientsKnow) {
  const std::string missing = at("home/none");
  EXPECT_EQ(refusal(missing),
            "mount source path is invalid: lstat " + missing + ": no such file or directory");
  EXPECT_EQ(refusal("~/none"),
            "mount source path is invalid: lstat " + missing + ": no such file or directory");
  const std::string below_file = at("home/file/x");
  EXPECT_EQ(refusal(below_file),
            "mount source path is invalid: lstat " + below_file + ": not a directory");
  const std::string link = at("home/link");
  EXPECT_EQ(refusal(link), "mount source must not be a symlink: " + link);
  const std::string fifo = at("home/fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(refusal(fifo), "mount source must be a file, directory, or unix socket: " + fifo);
  EXPECT_EQ(refusal("/dev/null"),
            "mount source must be a file, directory, or unix socket: /dev/null");
}

TEST_F(MountSource, ASocketIsRefused) {
  const std::string path = at("home/agent.sock");
  const UniqueFd socket = listen_at(path);
  EXPECT_THAT(refusal(path), StartsWith("mount source must not be a Unix socket: " + path));
}

TEST_F(MountSource, ATildeNeedsAHome) {
  home_.clear();
  EXPECT_THAT(refusal("~/project"), HasSubstr("agboxd has no HOME"));
}

TEST_F(MountSource, APathThatCannotBeStoredIsRefused) {
  fs::create_directories(root_ / "bad\xff" / "x");
  fs::create_symlink(root_ / "bad\xff", root_ / "good");
  EXPECT_THAT(refusal(at("good/x")), HasSubstr("UTF-8"));
}

TEST_F(MountSource, WhatRunsTheHostIsRefused) {
  for (const char* path :
       {"/proc", "/proc/self", "/sys", "/sys/kernel", "/dev", "/dev/shm", "/run"}) {
    if (fs::is_symlink(path)) continue;
    EXPECT_THAT(refusal(path), StartsWith("mount source ")) << path;
  }
  EXPECT_EQ(refusal("/"), "mount source / is not possible: it is the root directory of this host");
}

TEST_F(MountSource, WhatIsOursIsRefusedWithAllThatIsInItOrAroundIt) {
  const std::string ours = at("ours/state");
  const std::string end = " " + ours + ", which no sandbox may see";
  fs::create_directories(at("ours/state/deep/er"));
  std::ofstream(at("ours/state/file")) << "x";
  EXPECT_EQ(refusal(ours), "mount source " + ours + " is not possible: it is" + end);
  EXPECT_THAT(refusal(at("ours/state/deep/er")), HasSubstr("it is inside" + end));
  EXPECT_THAT(refusal(at("ours/state/file")), HasSubstr("it is inside" + end));
  EXPECT_THAT(refusal(at("ours")), HasSubstr("it contains" + end));
  EXPECT_THAT(refusal(root_), HasSubstr("it contains" + end));
  EXPECT_TRUE(resolve(at("elsewhere")).has_value());
}

TEST_F(MountSource, ALinkedParentLeadsToTheSameRefusal) {
  fs::create_directories(at("ours/state/deep"));
  fs::create_symlink(at("ours"), at("elsewhere/way"));
  EXPECT_THAT(refusal(at("elsewhere/way/state")), HasSubstr("it is " + at("ours/state").string()));
  EXPECT_THAT(refusal(at("elsewhere/way/state/deep")), HasSubstr("it is inside"));
}

TEST_F(MountSource, ARenamedDirectoryIsStillOurs) {
  fs::create_directories(at("ours/state/deep"));
  fs::rename(at("ours/state"), at("elsewhere/renamed"));
  EXPECT_THAT(refusal(at("elsewhere/renamed")), HasSubstr("it is " + at("ours/state").string()));
  EXPECT_THAT(refusal(at("elsewhere/renamed/deep")), HasSubstr("it is inside"));
  EXPECT_THAT(refusal(at("elsewhere")), HasSubstr("it contains"));
  EXPECT_TRUE(resolve(at("ours")).has_value());
}

TEST_F(MountSource, ADirectoryThatWasCreatedAgainIsOursToo) {
  fs::remove(at("ours/state"));
  fs::create_directory(at("elsewhere/takes_its_inode"));
  fs::create_directories(at("ours/state/deep"));
  EXPECT_THAT(refusal(at("ours/state")), HasSubstr("it is " + at("ours/state").string()));
  EXPECT_THAT(refusal(at("ours/state/deep")), HasSubstr("it is inside"));
  EXPECT_THAT(refusal(at("ours")), HasSubstr("it contains"));
}

TEST_F(MountSource, TheFilesOfTheEngineAreRefusedWhereverItKeepsThem) {
  fs::create_directories(at("engine/overlay2"));
  EXPECT_TRUE(resolve(at("engine")).has_value());
  engine_files_ = {at("engine"), at("does/not/exist")};
  EXPECT_THAT(refusal(at("engine")), HasSubstr("it is "));
  EXPECT_THAT(refusal(at("engine/overlay2")), HasSubstr("it is inside"));
}

TEST_F(MountSource, AWritableOneHasToBeWritableForTheRuntimeUser) {
  const std::string path = at("home/project");
  const auto refused = AllOf(HasSubstr("commands run as uid 12345 and gid 12345"),
                             HasSubstr("change its owner or mode, or mount it read-only "
                                       "(writable: false, or -v ...:ro)"));
  ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  EXPECT_THAT(refusal(path, true), refused);
  EXPECT_TRUE(resolve(path).has_value());
  ASSERT_EQ(::chmod(path.c_str(), 0757), 0);
  EXPECT_TRUE(resolve(path, true).has_value());
  if (::geteuid() != 0) return;  // only root can give files away
  ASSERT_EQ(::chown(path.c_str(), kSomebody, 0), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0577), 0);
  EXPECT_THAT(refusal(path, true), refused);
  ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
  EXPECT_TRUE(resolve(path, true).has_value());
  ASSERT_EQ(::chown(path.c_str(), 0, kSomebody), 0);
  EXPECT_THAT(refusal(path, true), refused);
  ASSERT_EQ(::chmod(path.c_str(), 0770), 0);
  EXPECT_TRUE(resolve(path, true).has_value());
}

TEST_F(MountSource, IsTheSameAtALaterStart) {
  const auto source = resolve(at("home/project")).value();
  const auto again = reopen(source, boot_id());
  ASSERT_TRUE(again.has_value()) << again.error().message();
  EXPECT_EQ(again->front().identity, source.identity);
}

TEST_F(MountSource, WhatIsNoLongerItIsRefusedByName) {
  const std::string path = at("home/project");
  const auto source = resolve(path).value();
  const auto why = [&] {
    const auto opened = reopen(source, boot_id());
    EXPECT_FALSE(opened.has_value());
    if (opened) return std::string();
    EXPECT_EQ(opened.error().reason(), reason::kMountChanged);
    return opened.error().message();
  };
  fs::rename(path, at("home/moved"));
  EXPECT_THAT(why(), StartsWith("mount source " + path + " was removed"));
  fs::create_symlink(at("home/moved"), path);
  EXPECT_THAT(why(), StartsWith("mount source " + path + " became a symbolic link"));
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_THAT(why(), StartsWith("mount source " + path + " was replaced by another"));
  fs::remove(path);
  fs::rename(at("home/moved"), path);
  EXPECT_TRUE(reopen(source, boot_id()).has_value());
  // A link on the way to it, and not only in its place.
  fs::rename(at("home"), at("moved"));
  fs::create_symlink(at("moved"), at("home"));
  EXPECT_THAT(why(), HasSubstr("became a symbolic link, or one of its parents did"));
}

TEST_F(MountSource, InAnotherBootADeviceMayHaveAnotherNumber) {
  auto source = resolve(at("home/project")).value();
  source.identity.device += 1;
  EXPECT_FALSE(reopen(source, boot_id()).has_value());
  EXPECT_TRUE(reopen(source, "an earlier boot").has_value());
  source.identity.inode += 1;
  EXPECT_FALSE(reopen(source, "an earlier boot").has_value());
}

// While a sandbox is stopped nothing keeps the inode of a source.
TEST_F(MountSource, AnotherFileWithTheSameInodeIsNoticed) {
  auto source = resolve(at("home/project")).value();
  ASSERT_NE(source.birth_time, 0) << "no filesystem of this host says when a file was created";
  fs::last_write_time(at("home/project"), fs::file_time_type::clock::now() + std::chrono::hours(1));
  std::ofstream(at("home/project/new")) << "x";
  EXPECT_TRUE(reopen(source, boot_id()).has_value()) << "what is changed is still the same";
  source.birth_time -= 1;
  for (const std::string& boot : {boot_id(), std::string("an earlier boot")}) {
    const auto opened = reopen(source, boot);
    ASSERT_FALSE(opened.has_value());
    EXPECT_THAT(opened.error().message(), HasSubstr("was replaced by another file or directory"));
  }
  source.birth_time = 0;
  EXPECT_TRUE(reopen(source, boot_id()).has_value()) << "as an older daemon has stored it";
}

// Its inode stays the same when the first write copies it up, and its time of creation does not.
TEST_F(MountSource, OnAnOverlayWhatIsWrittenToIsStillTheSame) {
  for (const char* name : {"disk", "overlay"}) fs::create_directory(at(name));
  if (::mount("none", at("disk").c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "mounting needs root";
  }
  fs::create_directories(at("disk/lower/project"));
  for (const char* name : {"disk/upper", "disk/work"}) fs::create_directory(at(name));
  const std::string layers = "lowerdir=" + at("disk/lower").string() +
                             ",upperdir=" + at("disk/upper").string() +
                             ",workdir=" + at("disk/work").string();
  EXPECT_EQ(::mount("none", at("overlay").c_str(), "overlay", 0, layers.c_str()), 0);
  {
    const auto source = resolve(at("overlay/project")).value();
    std::ofstream(at("overlay/project/new")) << "x";
    EXPECT_TRUE(reopen(source, boot_id()).has_value());
  }
  ASSERT_EQ(::umount2(at("overlay").c_str(), MNT_DETACH), 0);
  ASSERT_EQ(::umount2(at("disk").c_str(), MNT_DETACH), 0);
}

TEST_F(MountSource, WhatIsInspectedNowHasAName) {
  InspectedNow inspected;
  const SourceRules rules{.home = home_,
                          .user = {.uid = kSomebody, .gid = kSomebody},
                          .forbidden = *forbidden_,
                          .engine_files = {},
                          .inspected = &inspected};
  EXPECT_TRUE(resolve_mount_sources({{.path = at("home/file")}}, rules).has_value());
  EXPECT_EQ(inspected.name(), "mount source " + at("home/file").string());
  EXPECT_FALSE(
      resolve_mount_sources({{.path = "~/project", .use = SourceUse::Copy}, {.path = "/"}}, rules)
          .has_value());
  EXPECT_EQ(inspected.name(), "mount source /");
  const PinnedSource source = resolve(at("home/project")).value();
  EXPECT_TRUE(reopen_mount_sources(
                  {{.path = source.path, .identity = source.identity, .boot_id = boot_id()}},
                  *forbidden_, &inspected)
                  .has_value());
  EXPECT_EQ(inspected.name(), "mount source " + at("home/project").string());
}

TEST_F(MountSource, OfAToolAFileMayBeReplacedByOneOfTheDaemonsUser) {
  const std::string file = at("home/file");
  const std::string replaced = "was replaced by another file or directory";
  EXPECT_EQ(reopened(file, SourceUse::ToolFile, ::geteuid()), "");
  EXPECT_THAT(reopened(file, SourceUse::ToolFile, ::geteuid() + 1),
              AllOf(StartsWith("builtin tool source " + file + " "), HasSubstr(replaced)));
  EXPECT_THAT(reopened(file, SourceUse::ToolSocket, ::geteuid()), HasSubstr(replaced));
  EXPECT_THAT(reopened(file, SourceUse::Mount, ::geteuid()), HasSubstr(replaced));
  const std::string directory = at("home/project");
  for (const SourceUse use : {SourceUse::ToolFile, SourceUse::ToolDirectory}) {
    EXPECT_THAT(reopened(directory, use, ::geteuid()), HasSubstr(replaced));
  }
  EXPECT_THAT(reopened(at("home/link"), SourceUse::ToolFile, ::geteuid()),
              HasSubstr("became a symbolic link"));
}

// What a new sandbox could not have, no successor brings.
TEST_F(MountSource, OfAToolASuccessorIsCheckedAsAtFirst) {
  const std::string control = at("control.sock");
  const UniqueFd socket = listen_at(control);
  const std::string agent = at("agent");
  fs::create_hard_link(control, agent);
  const auto why = [&](SourceUse use, const std::string& path) {
    return reopened(path, use, ::geteuid());
  };
  EXPECT_EQ(why(SourceUse::ToolSocket, agent), "");
  forbidden_.emplace(std::vector<fs::path>{control});
  EXPECT_THAT(why(SourceUse::ToolSocket, agent),
              AllOf(StartsWith("builtin tool source " + agent + " was replaced by another one"),
                    HasSubstr("it is " + control + ", which no sandbox may see")));
  std::ofstream(at("ours/state/file")) << "x";
  forbidden_.emplace(std::vector{at("ours/state/file")});
  fs::create_hard_link(at("ours/state/file"), at("home/second"));
  EXPECT_THAT(why(SourceUse::ToolFile, at("home/second")), HasSubstr("which no sandbox may see"));
  // Nor may its directory be another user's by now.
  ASSERT_EQ(::chmod(root_.c_str(), 0777), 0);
  EXPECT_THAT(why(SourceUse::ToolSocket, agent), HasSubstr("other users may replace"));
}

}  // namespace
}  // namespace agbox
