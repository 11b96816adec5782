// SPDX-License-Identifier: Apache-2.0
#include "paths/fixed_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agbox {
namespace {

using testing::HasSubstr;

TEST(FixedPaths, OnLinuxFollowTheXdgDirectories) {
  const auto paths = resolve_fixed_paths(
      Platform::Linux, {{"HOME", "/home/u"}, {"XDG_RUNTIME_DIR", "/run/user/1000"}});
  ASSERT_TRUE(paths.has_value());
  EXPECT_EQ(paths->runtime_directory, "/run/user/1000/agbox");
  EXPECT_EQ(paths->socket, "/run/user/1000/agbox/agboxd.sock");
  EXPECT_EQ(paths->lock, "/run/user/1000/agbox/agboxd.lock");
  EXPECT_EQ(paths->config_file, "/home/u/.config/agents-sandbox/config.toml");
  EXPECT_EQ(paths->store, "/home/u/.local/share/agents-sandbox/ids.db");
  EXPECT_EQ(paths->default_exec_output_root, "/home/u/.local/share/agents-sandbox/exec-logs");
  EXPECT_EQ(paths->default_state_root, "/home/u/.local/share/agents-sandbox/state");
}

TEST(FixedPaths, OnMacOsAreInApplicationSupport) {
  const auto paths = resolve_fixed_paths(Platform::MacOs, {{"HOME", "/Users/u"}});
  ASSERT_TRUE(paths.has_value());
  const std::string support = "/Users/u/Library/Application Support/";
  EXPECT_EQ(paths->socket, support + "agbox/run/agboxd.sock");
  EXPECT_EQ(paths->lock, support + "agbox/run/agboxd.lock");
  EXPECT_EQ(paths->config_file, support + "agents-sandbox/config.toml");
  EXPECT_EQ(paths->store, support + "agents-sandbox/ids.db");
  EXPECT_EQ(paths->default_exec_output_root, support + "agents-sandbox/exec-logs");
}

TEST(FixedPaths, XdgVariablesTakePrecedenceOnEveryPlatform) {
  for (const Platform platform : {Platform::Linux, Platform::MacOs}) {
    const auto paths = resolve_fixed_paths(
        platform, {{"XDG_RUNTIME_DIR", "/r"}, {"XDG_CONFIG_HOME", "/c"}, {"XDG_DATA_HOME", "/d"}});
    ASSERT_TRUE(paths.has_value());  // HOME is not needed then
    EXPECT_EQ(paths->socket, "/r/agbox/agboxd.sock");
    EXPECT_EQ(paths->config_file, "/c/agents-sandbox/config.toml");
    EXPECT_EQ(paths->store, "/d/agents-sandbox/ids.db");
  }
}

TEST(FixedPaths, AnEmptyVariableCountsAsUnset) {
  const auto paths = resolve_fixed_paths(
      Platform::Linux, {{"HOME", "/h"}, {"XDG_RUNTIME_DIR", "/r"}, {"XDG_DATA_HOME", ""}});
  ASSERT_TRUE(paths.has_value());
  EXPECT_EQ(paths->store, "/h/.local/share/agents-sandbox/ids.db");
}

TEST(FixedPaths, NamesTheMissingVariable) {
  const auto no_runtime = resolve_fixed_paths(Platform::Linux, {{"HOME", "/h"}});
  ASSERT_FALSE(no_runtime.has_value());
  EXPECT_THAT(no_runtime.error().message(),
              HasSubstr("resolve runtime path: XDG_RUNTIME_DIR is required on linux"));
  const auto no_home = resolve_fixed_paths(Platform::Linux, {{"XDG_RUNTIME_DIR", "/r"}});
  ASSERT_FALSE(no_home.has_value());
  EXPECT_THAT(no_home.error().message(), HasSubstr("HOME is not set"));
}

TEST(FixedPaths, RefusesARelativePath) {
  const auto paths =
      resolve_fixed_paths(Platform::Linux, {{"HOME", "/h"}, {"XDG_RUNTIME_DIR", "run"}});
  ASSERT_FALSE(paths.has_value());
  EXPECT_EQ(paths.error().message(), "XDG_RUNTIME_DIR must be an absolute path, but is \"run\"");
}

TEST(FixedPaths, OfAgentSessionsAreInTheConfigurationAndTheState) {
  const Environment plain{{"HOME", "/home/me"}};
  EXPECT_EQ(resolve_agent_definitions(Platform::Linux, plain),
            "/home/me/.config/agents-sandbox/agents");
  EXPECT_EQ(resolve_workspace_records(Platform::Linux, plain),
            "/home/me/.local/state/agents-sandbox/workspaces");
  EXPECT_EQ(resolve_workspace_records(Platform::MacOs, plain),
            "/home/me/Library/Application Support/agents-sandbox/workspaces");
  EXPECT_EQ(resolve_workspace_records(Platform::Linux, {{"XDG_STATE_HOME", "/state"}}),
            "/state/agents-sandbox/workspaces");
}

TEST(SocketPath, NeedsOnlyTheRuntimeDirectory) {
  EXPECT_EQ(resolve_socket_path(Platform::Linux, {{"XDG_RUNTIME_DIR", "/r"}}),
            std::filesystem::path("/r/agbox/agboxd.sock"));
}

}  // namespace
}  // namespace agbox
