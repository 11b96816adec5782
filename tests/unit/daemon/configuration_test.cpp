// SPDX-License-Identifier: Apache-2.0
#include "daemon/configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <ostream>

#include "unit/temp_directory.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

FixedPaths paths_in(const std::filesystem::path& directory) {
  return *resolve_fixed_paths(Platform::Linux, {{"XDG_RUNTIME_DIR", directory / "run"},
                                                {"XDG_CONFIG_HOME", directory / "config"},
                                                {"XDG_DATA_HOME", directory / "data"}});
}

const FixedPaths kPaths = paths_in("/u");
constexpr std::string_view kFile = "/u/config/agents-sandbox/config.toml";

Configuration parsed(std::string_view text) {
  const auto configuration = parse_configuration(text, kPaths);
  EXPECT_TRUE(configuration.has_value()) << configuration.error().message();
  return configuration.value_or(Configuration{});
}

void expect_defaults(const Configuration& configuration) {
  EXPECT_EQ(configuration.idle_ttl, 30min);
  EXPECT_EQ(configuration.cleanup_ttl, 360h);
  EXPECT_EQ(configuration.event_retention_ttl, 168h);
  EXPECT_EQ(configuration.state_root, "/u/data/agents-sandbox/state");
  EXPECT_EQ(configuration.log_level, LogLevel::Info);
  EXPECT_EQ(configuration.exec_output_root, "/u/data/agents-sandbox/exec-logs");
  EXPECT_EQ(configuration.exec_output_template, "{sandbox_id}/{exec_id}");
  EXPECT_EQ(configuration.exec_output_max, 4ULL << 30);
  EXPECT_EQ(configuration.address_pool.text(), "10.201.0.0/16");
  EXPECT_THAT(configuration.dns, IsEmpty());
  EXPECT_TRUE(configuration.pauses_unisolated);
}

TEST(Configuration, HasDefaultsForEverything) {
  expect_defaults(default_configuration(kPaths));
  expect_defaults(parsed(""));
  expect_defaults(parsed("# nothing\n[runtime]\n[artifacts]\n[network]\n"));
}

TEST(Configuration, AnEmptyValueMeansTheDefault) {
  std::string text;
  std::string_view table;
  for (const ConfigurationKey& key : configuration_keys()) {
    if (key.table != table) text += "[" + std::string(table = key.table) + "]\n";
    const bool is_list = key.kind == ConfigurationKey::Kind::StringList;
    text += std::string(key.name) + (is_list ? " = []\n" : " = \"\"\n");
  }
  expect_defaults(parsed(text));
}

TEST(Configuration, EveryKeyIsRead) {
  const Configuration configuration = parsed(R"(
    [runtime]
    idle_ttl = "45m"
    cleanup_ttl = "0"
    event_retention_ttl = "1h30m"
    state_root = "/srv/./state"
    log_level = "DeBuG"
    [artifacts]
    exec_output_root = "/srv/logs"
    exec_output_template = "{sandbox_id}/logs/x-{exec_id}"
    exec_output_max = "512MiB"
    [network]
    address_pool = "10.77.0.0/16"
    dns = ["192.0.2.53", "1.1.1.1"]
    [isolation]
    on_failure = "report"
  )");
  EXPECT_EQ(configuration.idle_ttl, 45min);
  EXPECT_EQ(configuration.cleanup_ttl, 0h);
  EXPECT_EQ(configuration.event_retention_ttl, 90min);
  EXPECT_EQ(configuration.state_root, "/srv/state");
  EXPECT_EQ(configuration.log_level, LogLevel::Debug);
  EXPECT_EQ(configuration.exec_output_root, "/srv/logs");
  EXPECT_EQ(configuration.exec_output_template, "{sandbox_id}/logs/x-{exec_id}");
  EXPECT_EQ(configuration.exec_output_max, 512ULL << 20);
  EXPECT_EQ(configuration.address_pool.text(), "10.77.0.0/16");
  ASSERT_EQ(configuration.dns.size(), 2U);
  EXPECT_EQ(configuration.dns[0].text(), "192.0.2.53");
  EXPECT_EQ(configuration.dns[1].text(), "1.1.1.1");
  EXPECT_FALSE(configuration.pauses_unisolated);
}

TEST(Configuration, DottedKeysAndInlineTablesMeanTheSame) {
  EXPECT_EQ(parsed("runtime.idle_ttl = \"1m\"").idle_ttl, 1min);
  EXPECT_EQ(parsed("runtime = { idle_ttl = \"1m\" }").idle_ttl, 1min);
}

TEST(Configuration, RetentionFollowsCleanupIfOnlyThatIsSet) {
  EXPECT_EQ(parsed("[runtime]\ncleanup_ttl = \"24h\"").event_retention_ttl, 24h);
  EXPECT_EQ(parsed("[runtime]\ncleanup_ttl = \"\"").event_retention_ttl, 168h);
  EXPECT_EQ(
      parsed("[runtime]\nevent_retention_ttl = \"2h\"\ncleanup_ttl = \"24h\"").event_retention_ttl,
      2h);
  EXPECT_EQ(parsed("[runtime]\nevent_retention_ttl = \"2h\"").cleanup_ttl, 360h);
}

struct Wrong {
  std::string_view name;
  std::string_view text;
  std::vector<std::string> words;  // all of them are in the message
};

void PrintTo(const Wrong& wrong, std::ostream* out) {
  *out << wrong.name;
}

class WrongConfiguration : public testing::TestWithParam<Wrong> {};

TEST_P(WrongConfiguration, IsReportedWithLocationAndRemedy) {
  const auto configuration = parse_configuration(GetParam().text, kPaths);
  ASSERT_FALSE(configuration.has_value());
  const std::string& message = configuration.error().message();
  for (const std::string& word : GetParam().words) EXPECT_THAT(message, HasSubstr(word));
  EXPECT_THAT(message, HasSubstr(kFile));
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

const std::string kDecode = "decode daemon config file " + std::string(kFile) + ": ";

INSTANTIATE_TEST_SUITE_P(
    Rows, WrongConfiguration,
    testing::Values(
        Wrong{"Syntax", "[runtime\nidle_ttl = 3", {kDecode + "line 1, column "}},
        Wrong{"ImpossibleTableName",
              "[runtime]\n\n[`network]\n[more]",
              {kDecode + "line 3: a key or value begins with an invalid character"}},
        Wrong{"LetterOutsideAscii", "[runtime]\n\u00C2 = 1", {kDecode + "line 2"}},
        Wrong{"DuplicateKey",
              "[runtime]\nidle_ttl = \"1m\"\nidle_ttl = \"2m\"",
              {kDecode + "line 3"}},
        Wrong{"NotUtf8", "[runtime]\nlog_level = \"\xFF\"", {kDecode + "line 2"}},
        Wrong{"MisspeltKey",
              "[runtime]\nidle_tll = \"30m\"",
              {kDecode + "line 2: unknown key \"runtime.idle_tll\"",
               "the nearest known one is runtime.idle_ttl"}},
        Wrong{"KeyWithoutItsTable",
              "cleanup_ttl = \"30m\"",
              {"line 1: unknown key \"cleanup_ttl\"", "nearest known one is runtime.cleanup_ttl"}},
        Wrong{"KeyInTheWrongTable",
              "[network]\nexec_output_max = \"1GiB\"",
              {"unknown key \"network.exec_output_max\"", "artifacts.exec_output_max"}},
        Wrong{"QuotedDottedKey",
              "\"runtime.idle_ttl\" = \"30m\"",
              {"unknown key \"runtime.idle_ttl\"", "runtime.idle_ttl"}},
        Wrong{"MisspeltTable",
              "[netwrok]\ndns = []",
              {"line 1: unknown table [\"netwrok\"]", "nearest known one is [network]"}},
        Wrong{"NestedTable",
              "[runtime.idle_ttl]\nx = 1",
              {"line 1: runtime.idle_ttl must be a string, but is a table"}},
        Wrong{"HostileKey", "\"a\\nb\\u0001\" = 1", {R"(unknown key "a\nb\u0001")"}},
        Wrong{"TableAsString",
              "runtime = \"x\"",
              {"line 1: runtime must be a table, but is a string", "write [runtime]"}},
        Wrong{"IntegerForDuration",
              "[runtime]\n\nidle_ttl = 30",
              {"line 3: runtime.idle_ttl must be a string, but is an integer",
               "write for example idle_ttl = \"45m\""}},
        Wrong{"BooleanForLevel",
              "[runtime]\nlog_level = true",
              {"runtime.log_level must be a string, but is a boolean"}},
        Wrong{"IntegerForSize",
              "[artifacts]\nexec_output_max = 0",
              {"must be a string, but is an integer", "exec_output_max = \"512MiB\""}},
        Wrong{"DateForPath",
              "[runtime]\nstate_root = 2024-01-01",
              {"runtime.state_root must be a string, but is a date"}},
        Wrong{"ListOfTables",
              "[[runtime]]\nidle_ttl = \"1m\"",
              {"runtime must be a table, but is a list"}},
        Wrong{"StringForList",
              "[network]\ndns = \"1.1.1.1\"",
              {"network.dns must be a list of strings, but is a string", "dns = ["}},
        Wrong{"IntegerInList",
              "[network]\ndns = [\"1.1.1.1\",\n 8]",
              {"line 3: each element of network.dns must be a string, but is an integer"}},
        Wrong{"NegativeDuration",
              "[runtime]\nidle_ttl = \"-1s\"",
              {"parse runtime.idle_ttl from", ": line 2: duration \"-1s\" is negative"}},
        Wrong{"NegativeRetention",
              "[runtime]\nevent_retention_ttl = \"-1ns\"",
              {"parse runtime.event_retention_ttl from", "is negative"}},
        Wrong{"DurationThatNoDateCanHold",
              "[runtime]\ncleanup_ttl = \"2562047h\"",
              {"parse runtime.cleanup_ttl from",
               "duration \"2562047h\" is longer than 876000h; write 0 to switch it off"}},
        Wrong{"DurationBarelyTooLong",
              "[runtime]\nidle_ttl = \"876000h1ns\"",
              {"parse runtime.idle_ttl from", "is longer than 876000h"}},
        Wrong{"DurationWithoutUnit",
              "[runtime]\ncleanup_ttl = \"15\"",
              {"parse runtime.cleanup_ttl from", "invalid duration \"15\""}},
        Wrong{"UnknownLevel",
              "[runtime]\nlog_level = \"loud\"",
              {"parse log level \"loud\": expected debug, info, warn or error", "line 2"}},
        Wrong{"RelativeOutputRoot",
              "[artifacts]\nexec_output_root = \"logs\"",
              {"parse artifacts.exec_output_root from", "path \"logs\" is not absolute"}},
        Wrong{"HomeInPath",
              "[runtime]\nstate_root = \"~/state\"",
              {"path \"~/state\" is not absolute", "~ is not expanded"}},
        Wrong{"NulInPath", "[runtime]\nstate_root = \"/a\\u0000b\"", {"has a NUL byte"}},
        Wrong{"TemplateWithoutSandbox",
              "[artifacts]\nexec_output_template = \"{exec_id}\"",
              {"parse artifacts.exec_output_template from", "does not begin with {sandbox_id}/"}},
        Wrong{"TemplateWithoutExec",
              "[artifacts]\nexec_output_template = \"{sandbox_id}/log\"",
              {"has no {exec_id}"}},
        Wrong{"TemplateWithUnknownField",
              "[artifacts]\nexec_output_template = \"{sandbox_id}/{exec_id}-{user}\"",
              {"brace that is not part of"}},
        Wrong{"TemplateThatLeavesTheRoot",
              "[artifacts]\nexec_output_template = \"{sandbox_id}/../{exec_id}\"",
              {"has a component .."}},
        Wrong{"TemplateWithEmptyComponent",
              "[artifacts]\nexec_output_template = \"{sandbox_id}//{exec_id}\"",
              {"has an empty path component"}},
        Wrong{"TemplateWithControlCharacter",
              "[artifacts]\nexec_output_template = \"{sandbox_id}/{exec_id}\\n\"",
              {"has a control character"}},
        Wrong{"SizeWithoutUnit",
              "[artifacts]\nexec_output_max = \"4 bananas\"",
              {"parse artifacts.exec_output_max from", "invalid suffix: 'bananas'"}},
        Wrong{"NotANetwork",
              "[network]\naddress_pool = \"10.201.0.0\"",
              {"parse network.address_pool from", "is not an IPv4 network"}},
        Wrong{"HostBits", "[network]\naddress_pool = \"10.201.1.0/16\"", {"10.201.0.0/16"}},
        Wrong{"PoolTooSmall",
              "[network]\naddress_pool = \"10.201.0.0/29\"",
              {"must be between /8 and /28"}},
        Wrong{"PoolTooLarge", "[network]\naddress_pool = \"0.0.0.0/0\"", {"must be between /8"}},
        Wrong{"NotAnAddress",
              "[network]\ndns = [\"1.1.1.1\", \"resolver\"]",
              {"parse network.dns from", "\"resolver\" is not an IPv4 address"}},
        Wrong{"EmptyAddress", "[network]\ndns = [\"\"]", {"\"\" is not an IPv4 address"}},
        Wrong{"LoopbackResolver",
              "[network]\ndns = [\"127.0.0.53\"]",
              {"resolver 127.0.0.53 is a loopback address"}},
        Wrong{"UnspecifiedResolver",
              "[network]\ndns = [\"0.0.0.0\"]",
              {"resolver 0.0.0.0 is the unspecified address"}},
        Wrong{"UnknownOnFailure",
              "[isolation]\non_failure = \"stop\"",
              {"parse isolation.on_failure from", "\"stop\" is neither pause nor report"}},
        Wrong{"OnFailureIsNoBoolean",
              "[isolation]\non_failure = true",
              {"isolation.on_failure must be a string, but is a boolean", "\"report\""}}),
    [](const auto& row) { return std::string(row.param.name); });

class ConfigurationFile : public testing::Test {
 protected:
  ConfigurationFile() { std::filesystem::create_directories(paths_.config_file.parent_path()); }
  void write(std::string_view text) { std::ofstream(paths_.config_file) << text; }

  TempDirectory temp_directory_;
  FixedPaths paths_ = paths_in(temp_directory_.path());
};

TEST_F(ConfigurationFile, ThatIsMissingMeansTheDefaults) {
  const auto configuration = load_configuration(paths_);
  ASSERT_TRUE(configuration.has_value());
  EXPECT_EQ(configuration->idle_ttl, 30min);
}

TEST_F(ConfigurationFile, IsRead) {
  write("[runtime]\nidle_ttl = \"5m\"\n");
  EXPECT_EQ(load_configuration(paths_)->idle_ttl, 5min);
}

TEST_F(ConfigurationFile, ThatIsNotARegularFileIsRefused) {
  std::filesystem::create_directory(paths_.config_file);
  const auto directory = load_configuration(paths_);
  ASSERT_FALSE(directory.has_value());
  EXPECT_THAT(directory.error().message(),
              AllOf(HasSubstr("read daemon config file " + paths_.config_file.string()),
                    HasSubstr("not a regular file")));
  std::filesystem::remove(paths_.config_file);
  ASSERT_EQ(::mkfifo(paths_.config_file.c_str(), 0600), 0);
  EXPECT_FALSE(load_configuration(paths_).has_value());  // without waiting for a writer
}

TEST_F(ConfigurationFile, ThatIsAbsurdlyLargeIsRefused) {
  write(std::string((std::size_t{1} << 20) + 1, '#'));
  const auto configuration = load_configuration(paths_);
  ASSERT_FALSE(configuration.has_value());
  EXPECT_THAT(configuration.error().message(), HasSubstr("larger than 1 MiB"));
}

}  // namespace
}  // namespace agbox
