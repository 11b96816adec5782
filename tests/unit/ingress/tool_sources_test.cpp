// SPDX-License-Identifier: Apache-2.0
#include "ingress/tool_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "ingress/socket_walk.h"
#include "unit/temp_directory.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class ToolSources : public testing::Test {
 protected:
  ToolSources() : root_(fs::canonical(temp_.path())) {
    fs::create_directories(root_ / "home");
    fs::create_directories(root_ / "ours");
    forbidden_.emplace(std::vector{root_ / "ours"}, root_ / "run");
  }

  fs::path home(const std::string& path) const { return root_ / "home" / path; }
  void make_directory(const std::string& path) { fs::create_directories(home(path)); }

  static v1::CreateSpec spec_of(const std::vector<std::string>& tools) {
    v1::CreateSpec spec;
    for (const std::string& tool : tools) spec.add_builtin_tools(tool);
    return spec;
  }
  Result<ResolvedTools> resolve(const std::vector<std::string>& tools) {
    return resolve_tools(
        requested_resources(spec_of(tools)), sockets_,
        {.home = home_, .user = user_, .forbidden = *forbidden_, .engine_files = {}});
  }
  // "id source", with what is said of it in the handle.
  std::vector<std::string> found(const std::vector<std::string>& tools) {
    const auto resolved = resolve(tools);
    EXPECT_TRUE(resolved.has_value()) << resolved.error().message();
    std::vector<std::string> lines;
    if (!resolved) return lines;
    missing_.clear();
    for (const FoundResource& one : resolved->found) {
      lines.push_back(std::string(one.requested.resource->id) + " " +
                      fs::path(one.source.path).lexically_relative(root_).string() +
                      (one.is_shadow_copied ? " copied" : ""));
    }
    for (const MissingResource& one : resolved->missing) {
      missing_.push_back(std::string(one.requested.resource->id) + ": " + one.why);
    }
    return lines;
  }
  std::string refusal(const std::vector<std::string>& tools) {
    const auto resolved = resolve(tools);
    EXPECT_FALSE(resolved.has_value());
    if (resolved) return "";
    EXPECT_EQ(resolved.error().reason(), reason::kInvalidArgument);
    return resolved.error().message();
  }
  UniqueFd listen_at(const fs::path& path) {
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    EXPECT_LT(path.string().size(), sizeof address.sun_path);
    std::strcpy(address.sun_path, path.c_str());
    // sockaddr is the generic address type of the C API.
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
  }

  TempDirectory temp_;
  const fs::path root_;
  fs::path home_ = root_ / "home";
  RuntimeIdentity user_{.uid = ::geteuid(), .gid = ::getegid()};
  ToolSockets sockets_;
  std::optional<ForbiddenSources> forbidden_;
  std::vector<std::string> missing_;
};

TEST_F(ToolSources, AreBelowTheHomeOfTheDaemonsUser) {
  for (const char* path :
       {".claude", ".codex", ".agents", ".config/gh", ".ssh", ".cache/uv", ".local/share/uv",
        ".npm", ".cache/agents-sandbox-apt", ".config/opencode", ".local/share/opencode"}) {
    make_directory(path);
  }
  std::ofstream(home(".claude.json")) << "{}";
  std::ofstream(home(".ssh/known_hosts")) << "host";
  EXPECT_THAT(
      found({"claude", "codex", "git", "uv", "npm", "apt", "opencode"}),
      ElementsAre(".claude home/.claude", ".claude.json home/.claude.json", ".codex home/.codex",
                  ".agents home/.agents", "gh-auth home/.config/gh",
                  "ssh-known-hosts home/.ssh/known_hosts", "uv-cache home/.cache/uv",
                  "uv-python home/.local/share/uv", "npm home/.npm",
                  "apt home/.cache/agents-sandbox-apt", "opencode-config home/.config/opencode",
                  "opencode-data home/.local/share/opencode"));
}

TEST_F(ToolSources, WhatIsOptionalMayBeMissing) {
  EXPECT_THAT(found({"git", "npm"}), IsEmpty());
  EXPECT_THAT(
      missing_,
      ElementsAre("ssh-agent: SSH_AUTH_SOCK is required for ssh-agent tooling projection",
                  "gh-auth: stat " + home(".config/gh").string() + ": no such file or directory",
                  "ssh-known-hosts: stat " + home(".ssh/known_hosts").string() +
                      ": no such file or directory",
                  "npm: stat " + home(".npm").string() + ": no such file or directory"));
  fs::create_symlink("nowhere", home(".npm"));
  EXPECT_THAT(found({"npm"}), IsEmpty());
}

TEST_F(ToolSources, WhatIsRequiredIsNamedWithItsToolAndTheRemedy) {
  EXPECT_EQ(refusal({"claude"}), "builtin tool claude: stat " + home(".claude").string() +
                                     ": no such file or directory; start claude on this host once, "
                                     "or leave the tool out");
  EXPECT_THAT(refusal({"git", "codex"}), StartsWith("builtin tool codex: stat "));
  home_.clear();
  EXPECT_THAT(refusal({"npm"}), HasSubstr("builtin tool npm: agboxd has no HOME"));
}

TEST_F(ToolSources, WhatIsThereAndUnusableIsRefused) {
  std::ofstream(home(".claude")) << "x";
  EXPECT_EQ(refusal({"claude"}), "builtin tool claude: source " + home(".claude").string() +
                                     " is not a directory; move it away, or leave the tool out");
  fs::remove(home(".claude"));
  ASSERT_EQ(::mkfifo(home(".npm").c_str(), 0600), 0);
  EXPECT_THAT(refusal({"npm"}), HasSubstr(".npm is not a directory"));
  fs::remove(home(".npm"));
  make_directory(".claude");
  make_directory(".claude.json");
  EXPECT_THAT(refusal({"claude"}), HasSubstr(".claude.json is not a regular file"));
  user_ = {.uid = 12345, .gid = 12345};
  EXPECT_THAT(refusal({"claude"}),
              HasSubstr("builtin tool claude: source " + home(".claude").string() +
                        " cannot be writable: commands run as uid 12345"));
  EXPECT_THAT(refusal({"claude"}), HasSubstr("or leave the tool out"));
}

// Many keep the files of a tool elsewhere. What no sandbox may see stays forbidden.
TEST_F(ToolSources, AnotherPlaceMayBeLinked) {
  fs::create_directories(root_ / "dotfiles/claude");
  fs::create_directory_symlink(root_ / "dotfiles/claude", home(".claude"));
  EXPECT_THAT(found({"claude"}), ElementsAre(".claude dotfiles/claude"));
  fs::create_directory_symlink(root_ / "ours", home(".npm"));
  EXPECT_THAT(refusal({"npm"}), HasSubstr("which no sandbox may see"));
  fs::remove(home(".npm"));
  fs::create_directory_symlink("/proc", home(".npm"));
  EXPECT_THAT(refusal({"npm"}), StartsWith("builtin tool npm: source /proc is not possible"));
}

// A sandbox that has ~/.claude makes links in it, and the user's own links lead there.
TEST_F(ToolSources, ALinkThatASandboxMayHaveMadeDecidesNothing) {
  make_directory(".claude/agents");
  make_directory(".ssh");
  make_directory(".codex");
  std::ofstream(home(".ssh/key")) << "secret";
  std::ofstream(home(".claude/claude.json")) << "{}";
  fs::create_symlink(".claude/claude.json", home(".claude.json"));
  fs::create_symlink(home(".claude/agents/"), home(".agents"));
  EXPECT_THAT(found({"claude", "codex"}),
              ElementsAre(".claude home/.claude", ".claude.json home/.claude/claude.json",
                          ".codex home/.codex", ".agents home/.claude/agents"));
  fs::remove(home(".claude/claude.json"));
  fs::create_symlink("../.ssh/key", home(".claude/claude.json"));
  fs::remove(home(".claude/agents"));
  fs::create_symlink("../.ssh", home(".claude/agents"));
  EXPECT_THAT(found({"claude", "codex"}),
              ElementsAre(".claude home/.claude copied", ".codex home/.codex"));
  const std::string remedy =
      ", is a symbolic link that a sandbox could have made; make it a file or directory, or link "
      "it directly from HOME, to a path without links";
  EXPECT_THAT(missing_, testing::IsSupersetOf(
                            {".claude.json: " + home(".claude/claude.json").string() +
                                 ", on the way to " + home(".claude.json").string() + remedy,
                             ".agents: " + home(".claude/agents").string() + ", on the way to " +
                                 home(".agents").string() + remedy}));
  // What is required is refused.
  fs::remove(home(".codex"));
  fs::create_symlink(".claude/agents", home(".codex"));
  EXPECT_THAT(refusal({"codex"}), HasSubstr(home(".claude/agents").string() + ", on the way to " +
                                            home(".codex").string() + remedy));
}

TEST_F(ToolSources, OnlyOneLinkIsFollowedAndOnlyInHome) {
  make_directory("dotfiles/gh");
  make_directory("dotfiles/npm");
  make_directory(".config");
  fs::create_symlink("../dotfiles/gh", home(".config/gh"));
  EXPECT_THAT(found({"git"}), IsEmpty());
  EXPECT_THAT(missing_[1], StartsWith("gh-auth: " + home(".config/gh").string() + ", on the way"));
  fs::remove_all(home(".config"));
  fs::create_symlink("dotfiles", home(".config"));
  EXPECT_THAT(found({"git"}), ElementsAre("gh-auth home/dotfiles/gh"));
  fs::create_symlink("dotfiles", home("second"));
  fs::create_symlink("second/npm", home(".npm"));
  EXPECT_THAT(found({"npm"}), IsEmpty());
  EXPECT_THAT(missing_[0], StartsWith("npm: " + home("second").string() + ", on the way"));
  // Dots are those of the link's text.
  fs::remove(home(".npm"));
  fs::create_symlink("nothing/../dotfiles/./npm/", home(".npm"));
  EXPECT_THAT(found({"npm"}), ElementsAre("npm home/dotfiles/npm"));
}

TEST_F(ToolSources, HomeItselfMayBeALink) {
  make_directory("dotfiles/claude");
  fs::create_directory_symlink(root_ / "home", root_ / "me");
  home_ = root_ / "me/";
  fs::create_directory_symlink(root_ / "me/dotfiles/claude", home(".claude"));
  EXPECT_THAT(found({"claude"}), ElementsAre(".claude home/dotfiles/claude"));
}

TEST_F(ToolSources, ATreeWithALinkThatLeadsOutIsCopied) {
  make_directory(".claude/skills");
  make_directory(".config/gh");
  make_directory(".cache/uv");
  fs::create_symlink("skills", home(".claude/inside"));
  EXPECT_THAT(found({"claude"}), ElementsAre(".claude home/.claude"));
  for (const char* path : {".claude/skills/out", ".config/gh/out", ".cache/uv/out"}) {
    fs::create_symlink("/etc/passwd", home(path));
  }
  // Read-only, it is safe as it is; and a cache is shared by its purpose.
  EXPECT_THAT(found({"claude", "git", "uv"}),
              ElementsAre(".claude home/.claude copied", "gh-auth home/.config/gh",
                          "uv-cache home/.cache/uv"));
}

// Root in a sandbox can make a directory that the daemon may not read, or one that is too deep.
TEST_F(ToolSources, ATreeThatCannotBeSearchedIsMounted) {
  std::string deep = ".claude";
  for (int i = 0; i < 130; ++i) deep += "/d";
  make_directory(deep);
  EXPECT_THAT(found({"claude"}), ElementsAre(".claude home/.claude"));
  fs::create_symlink("/etc/passwd", home(".claude/out"));
  EXPECT_THAT(found({"claude"}), ElementsAre(".claude home/.claude copied"));
}

TEST_F(ToolSources, OneThatShowsNothingIsAWarning) {
  const auto warnings = [this](const std::vector<std::string>& tools) {
    const auto resolved = resolve(tools);
    EXPECT_TRUE(resolved.has_value()) << resolved.error().message();
    return tool_warnings(spec_of(tools), *resolved);
  };
  make_directory(".npm");
  make_directory(".claude");
  // Of claude, something is shown; what is optional may be missing.
  EXPECT_THAT(warnings({"npm", "claude"}), IsEmpty());
  EXPECT_THAT(warnings({"npm", "apt"}), ElementsAre("builtin tool apt shows nothing: apt: stat " +
                                                    home(".cache/agents-sandbox-apt").string() +
                                                    ": no such file or directory"));
  EXPECT_THAT(warnings({"git"}),
              ElementsAre(testing::AllOf(HasSubstr("builtin tool git shows nothing: ssh-agent: "),
                                         HasSubstr("; gh-auth: stat "))));
  std::string deep = ".claude";
  for (int i = 0; i < 130; ++i) deep += "/d";
  make_directory(deep);
  EXPECT_THAT(warnings({"claude"}),
              ElementsAre(HasSubstr(
                  "builtin tool claude: " + home(".claude").string() +
                  " is mounted although not all of its symbolic links were inspected: ")));
}

TEST_F(ToolSources, ASocketIsForwardedOnlyIfItIsOneOfTheDaemonsUser) {
  const fs::path path = root_ / "agent";
  sockets_["ssh-agent"] = path;
  EXPECT_THAT(found({"git"}), IsEmpty());
  EXPECT_EQ(missing_[0], "ssh-agent: stat " + path.string() + ": no such file or directory");
  {
    std::ofstream(path) << "not a socket";
    EXPECT_THAT(found({"git"}), IsEmpty());
    EXPECT_EQ(missing_[0], "ssh-agent: " + path.string() + " is not a Unix socket");
    fs::remove(path);
  }
  const UniqueFd socket = listen_at(path);
  EXPECT_THAT(found({"git"}), ElementsAre("ssh-agent agent"));
  fs::create_symlink(path, root_ / "link");
  sockets_["ssh-agent"] = root_ / "link";
  EXPECT_THAT(found({"git"}), ElementsAre("ssh-agent agent"));
  user_.uid += 1;
  EXPECT_THAT(found({"git"}), IsEmpty());
  EXPECT_THAT(missing_[0], HasSubstr("belongs to uid "));
}

// A directory of a session that ended, which another user made again.
TEST_F(ToolSources, TheWayToASocketBelongsToTheUserOrRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  constexpr uid_t kStranger = 4242;
  const UniqueFd bus = listen_at(root_ / "private");
  const fs::path session = root_ / "ssh-x";
  fs::create_directory(session);
  fs::create_symlink(root_ / "private", session / "agent");
  sockets_["ssh-agent"] = session / "agent";
  EXPECT_THAT(found({"git"}), ElementsAre("ssh-agent private"));
  ASSERT_EQ(::chown(session.c_str(), kStranger, kStranger), 0);
  EXPECT_THAT(found({"git"}), IsEmpty());
  EXPECT_EQ(missing_[0], "ssh-agent: " + session.string() +
                             " belongs to uid 4242, not to the daemon's user or root");
  ASSERT_EQ(::chown(session.c_str(), 0, 0), 0);
  ASSERT_EQ(::lchown((session / "agent").c_str(), kStranger, kStranger), 0);
  EXPECT_THAT(found({"git"}), IsEmpty());
  EXPECT_THAT(missing_[0],
              StartsWith("ssh-agent: " + (session / "agent").string() + " belongs to uid 4242"));
}

TEST_F(ToolSources, OthersMayNotReplaceWhatIsOnTheWayToASocket) {
  const fs::path shared = root_ / "shared";
  fs::create_directory(shared);
  const UniqueFd agent = listen_at(shared / "agent");
  sockets_["ssh-agent"] = shared / "agent";
  for (const mode_t mode : {0775U, 0757U, 0777U}) {
    ASSERT_EQ(::chmod(shared.c_str(), mode), 0);
    EXPECT_THAT(found({"git"}), IsEmpty());
    EXPECT_EQ(missing_[0], "ssh-agent: other users may replace what is in " + shared.string() +
                               "; run chmod go-w on it");
  }
  ASSERT_EQ(::chmod(shared.c_str(), 01777), 0);
  EXPECT_THAT(found({"git"}), ElementsAre("ssh-agent shared/agent"));
}

TEST_F(ToolSources, LinksToASocketAreFollowedToABoundAndNotBelowATool) {
  make_directory(".ssh");
  make_directory(".npm/deep");
  const UniqueFd agent = listen_at(root_ / "agent");
  fs::create_symlink("../../agent", home(".ssh/1"));
  for (int i = 2; i <= kMaxSocketLinks + 1; ++i) {
    fs::create_symlink(std::to_string(i - 1), home(".ssh/" + std::to_string(i)));
  }
  sockets_["ssh-agent"] = home(".ssh/" + std::to_string(kMaxSocketLinks));
  EXPECT_THAT(found({"git"}), ElementsAre("ssh-agent agent"));
  sockets_["ssh-agent"] = home(".ssh/" + std::to_string(kMaxSocketLinks + 1));
  EXPECT_THAT(found({"git"}), IsEmpty());
  EXPECT_THAT(missing_[0], HasSubstr("one symbolic link too many: at most 8"));
  fs::create_symlink("loop", home(".ssh/loop"));
  sockets_["ssh-agent"] = home(".ssh/loop");
  EXPECT_THAT(found({"git"}), IsEmpty());
  // A sandbox that has ~/.npm may have made it, also if this one has not.
  fs::create_symlink(root_ / "agent", home(".npm/deep/agent"));
  fs::create_symlink("../.npm/deep/agent", home(".ssh/agent"));
  sockets_["ssh-agent"] = home(".ssh/agent");
  EXPECT_THAT(found({"git"}), IsEmpty());
  EXPECT_THAT(missing_[0], StartsWith("ssh-agent: " + home(".npm/deep/agent").string() +
                                      " is a symbolic link in a directory of a builtin tool"));
}

TEST_F(ToolSources, BelowRunOnlySocketsOfTheUsersOwnDirectoryAreForwarded) {
  const fs::path run = root_ / "run";
  const fs::path own = run / "user" / std::to_string(user_.uid);
  const auto forwards = [&](const fs::path& path) {
    fs::create_directories(path.parent_path());
    const UniqueFd socket = listen_at(path);
    sockets_["ssh-agent"] = path;
    const bool is_found = !found({"git"}).empty();
    EXPECT_TRUE(is_found || missing_[0].ends_with("which no sandbox may see")) << missing_[0];
    return is_found;
  };
  forbidden_.emplace(std::vector{root_ / "ours"}, run);
  for (const char* name :
       {"x.sock", "containerd/containerd.sock", "systemd/private", "snapd.socket",
        "podman/podman.sock", "libvirt/libvirt-sock", "user/agent"}) {
    EXPECT_FALSE(forwards(run / name)) << name;
  }
  EXPECT_FALSE(forwards(run / "user" / std::to_string(user_.uid + 1) / "agent"));
  for (const char* name : {"bus", "systemd/private", "docker.sock", "docker/x",
                           "podman/podman.sock", "containerd-rootless/x", "libvirt/x"}) {
    EXPECT_FALSE(forwards(own / name)) << name;
  }
  for (const char* name : {"keyring/ssh", "gnupg/S.gpg-agent.ssh", "openssh_agent"}) {
    EXPECT_TRUE(forwards(own / name)) << name;
  }
  // Under another name it is the same socket.
  fs::create_hard_link(own / "bus", own / "agent");
  sockets_["ssh-agent"] = own / "agent";
  EXPECT_THAT(found({"git"}), IsEmpty());
}

TEST_F(ToolSources, NoToolForwardsASocketOfTheEngineOrOfTheDaemon) {
  const fs::path path = root_ / "ours/agboxd.sock";
  const UniqueFd socket = listen_at(path);
  sockets_["ssh-agent"] = path;
  EXPECT_THAT(found({"git"}), IsEmpty());
  EXPECT_THAT(missing_[0], HasSubstr("which no sandbox may see"));
}

TEST_F(ToolSources, SocketsAreThoseThatTheEnvironmentNames) {
  using Sockets = ToolSockets;
  EXPECT_EQ(tool_sockets({}, 7), (Sockets{{"pulse-audio", "/run/user/7/pulse/native"}}));
  EXPECT_EQ(tool_sockets({{"SSH_AUTH_SOCK", "/a"}, {"XDG_RUNTIME_DIR", "/x"}}, 7),
            (Sockets{{"ssh-agent", "/a"}, {"pulse-audio", "/x/pulse/native"}}));
  EXPECT_EQ(tool_sockets({{"SSH_AUTH_SOCK", "a"}}, 7).at("ssh-agent"), fs::absolute("a"));
  EXPECT_FALSE(tool_sockets({{"SSH_AUTH_SOCK", ""}}, 7).contains("ssh-agent"));
}

}  // namespace
}  // namespace agbox
