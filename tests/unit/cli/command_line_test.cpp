// SPDX-License-Identifier: Apache-2.0
// What every command has in common, on a small tree of the test's own.
#include "cli/command_line.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "cli/completion_script.h"
#include "unit/cli/captured_console.h"

namespace agbox::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct CopyFlags {
  std::string source;
  std::string target;
  std::string mode;
  bool quiet = false;
};

// agbox file copy <source> [<target>] [-m|--mode TEXT] [--quiet]; agbox file list; agbox file do --
// …; agbox fail
void add_file(CommandLine& line, CLI::App& parent) {
  CLI::App& file = *parent.add_subcommand("file", "Work with files");
  line.requires_subcommand(file);

  CLI::App& copy = *file.add_subcommand("copy", "Copy a user's file");
  auto flags = std::make_shared<CopyFlags>();
  copy.add_option("source", flags->source, "What to copy")->required();
  copy.add_option("target", flags->target, "Where to");
  copy.add_option("-m,--mode", flags->mode, "Its mode");
  copy.add_flag("--quiet", flags->quiet, "Say nothing");
  line.on(copy, [flags](Console& console) {
    console.out("copy " + flags->source + " " + flags->target + " " + flags->mode + "\n");
    return static_cast<int>(kSuccess);
  });

  CLI::App& perform = *file.add_subcommand("do", "Do something with a file");
  auto words = std::make_shared<std::vector<std::string>>();
  line.accepts_args_after_dashes(perform, *words);
  line.on(perform, [words](Console& console) {
    for (const std::string& word : *words) console.out("[" + word + "]");
    return static_cast<int>(kSuccess);
  });

  CLI::App& list = *file.add_subcommand("list", "List files");
  line.on(list, [](Console& console) {
    console.out("listed\n");
    return static_cast<int>(kSuccess);
  });
}

void add_fail(CommandLine& line, CLI::App& parent) {
  CLI::App& command = *parent.add_subcommand("fail", "Fail");
  line.on(command, [](Console& console) {
    console.error("fail: no luck");
    return 77;
  });
}

constexpr std::array<CommandLine::AddCommand, 2> kTestCommands = {add_file, add_fail};

struct Outcome {
  int code;
  std::string out;
  std::string error;
};

Outcome run(std::vector<std::string> arguments) {
  CapturedConsole captured;
  CommandLine line(kTestCommands);
  const int code = line.run(std::move(arguments), captured.console());
  return {code, captured.out(), captured.error()};
}

TEST(CommandLine, AloneSaysWhoItIs) {
  const Outcome outcome = run({});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, testing::MatchesRegex(
                               "agbox [0-9.]+\nRun \"agbox --help\" for usage information.\n"));
  EXPECT_EQ(outcome.error, "");
}

TEST(CommandLine, RunsTheDeepestCommandWithItsArguments) {
  EXPECT_EQ(run({"file", "copy", "a b", "-m", "0600", "c"}).out, "copy a b c 0600\n");
  EXPECT_EQ(run({"file", "copy", "--mode=x", "--", "--quiet"}).out, "copy --quiet  x\n");
  EXPECT_EQ(run({"file", "list"}).out, "listed\n");
}

TEST(CommandLine, WordsAfterTheDashesArePassedOnAsTheyAre) {
  EXPECT_EQ(run({"file", "do", "--", "sh", "-c", "a b", "--help", "--", ""}).out,
            "[sh][-c][a b][--help][--][]");
  EXPECT_EQ(run({"file", "do"}).out, "");
  EXPECT_EQ(run({"file", "do", "--"}).out, "");
  const Outcome forgotten = run({"file", "do", "sh"});
  EXPECT_EQ(forgotten.code, 2);
  EXPECT_THAT(forgotten.error,
              HasSubstr("Error: accepts 0 arg(s), received 1\n\n"
                        "Usage:\n  agbox file do [flags] [-- <command> [args...]]\n"));
}

TEST(CommandLine, TheExitCodeIsTheCommands) {
  const Outcome outcome = run({"fail"});
  EXPECT_EQ(outcome.code, 77);
  EXPECT_EQ(outcome.error, "fail: no luck\n");
  EXPECT_EQ(outcome.out, "");
}

TEST(CommandLine, AnUnknownCommandIsNamedWithoutUsage) {
  const Outcome root = run({"nope"});
  EXPECT_EQ(root.code, 2);
  EXPECT_EQ(root.error, "Error: unknown command \"nope\" for \"agbox\"\n");
  EXPECT_EQ(root.out, "");
  EXPECT_EQ(run({"file", "x"}).error, "Error: unknown command \"x\" for \"agbox file\"\n");
  EXPECT_EQ(run({"x", "file", "list"}).error, "Error: unknown command \"x\" for \"agbox\"\n");
}

TEST(CommandLine, AnUnknownCommandHasNoHelp) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"nope", "--help"},
                                                {"nope", "-h"},
                                                {"--help", "nope"},
                                                {"nope", "list", "--help"},
                                                {"help", "nope"},
                                                {"help", "nope", "--help"}}) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.error, StartsWith("Error: unknown command \"nope\" for \"agbox"));
  }
  EXPECT_THAT(run({"file", "nope", "--help"}).error,
              StartsWith("Error: unknown command \"nope\" for \"agbox file\"\n"));
  EXPECT_EQ(run({"file", "list", "extra", "--help"}).code, 0) << "the command exists";
}

TEST(CommandLine, NearNamesOfAnUnknownCommandAreSuggested) {
  EXPECT_EQ(run({"flie"}).error,
            "Error: unknown command \"flie\" for \"agbox\"\n\n"
            "Did you mean this?\n  agbox fail\n  agbox file\n");
  EXPECT_THAT(run({"file", "co", "--help"}).error,
              HasSubstr("Did you mean this?\n  agbox file copy\n"));
  EXPECT_THAT(run({"f"}).error, HasSubstr("Did you mean this?\n  agbox fail\n  agbox file\n"));
  EXPECT_THAT(run({"file", "xx"}).error, Not(HasSubstr("Did you mean"))) << "do is no near name";
}

TEST(CommandLine, HelpIsACommandToo) {
  EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
  EXPECT_EQ(run({"help", "file"}).out, run({"file", "--help"}).out);
  EXPECT_EQ(run({"help", "file", "copy"}).out, run({"file", "copy", "--help"}).out);
  EXPECT_EQ(run({"help", "file", "copy"}).code, 0);
  EXPECT_THAT(run({"--help"}).out, HasSubstr("  help   Print help for a command\n"));
}

TEST(CommandLine, AGroupAloneNamesItsCommands) {
  const Outcome outcome = run({"file"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.error,
            "file command requires a subcommand\navailable subcommands: copy, do, list\n");
}

TEST(CommandLine, AUsageErrorShowsTheUsageOfItsCommand) {
  const Outcome outcome = run({"file", "list", "--nope=1"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.error,
            "Error: unknown flag: --nope\n\n"
            "Usage:\n  agbox file list [flags]\n\n"
            "Flags:\n  -h, --help   Print help\n");
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(run({"file", "list", "-q"}).error,
              HasSubstr("Error: unknown shorthand flag: 'q' in -q\n\nUsage:\n  agbox file list"));
  EXPECT_THAT(run({"file", "list", "x", "y"}).error,
              HasSubstr("Error: accepts 0 arg(s), received 2\n\nUsage:"));
  EXPECT_THAT(run({"file", "copy", "a", "b", "c"}).error,
              HasSubstr("Error: accepts between 1 and 2 arg(s), received 3\n\nUsage:"));
  EXPECT_THAT(run({"file", "copy", "--nope"}).error, HasSubstr("Error: unknown flag: --nope\n"));
}

TEST(CommandLine, AMissingArgumentOrValueIsAUsageError) {
  const Outcome argument = run({"file", "copy"});
  EXPECT_EQ(argument.code, 2);
  EXPECT_THAT(argument.error, HasSubstr("Error: accepts between 1 and 2 arg(s), received 0\n\n"
                                        "Usage:\n  agbox file copy"));
  const Outcome value = run({"file", "copy", "a", "--mode"});
  EXPECT_EQ(value.code, 2);
  EXPECT_THAT(value.error, HasSubstr("--mode"));
}

TEST(CommandLine, ControlCharactersOfAnArgumentAreNotEchoed) {
  EXPECT_THAT(run({"\x1b[2J"}).error,
              StartsWith("Error: unknown command \"\\x1b[2J\" for \"agbox\"\n"));
}

TEST(CommandLine, HelpGoesToStdout) {
  const Outcome outcome = run({"file", "copy", "--help"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.out,
            "Copy a user's file\n\n"
            "Usage:\n  agbox file copy <source> [<target>] [flags]\n\n"
            "Arguments:\n  <source>   What to copy\n  <target>   Where to\n\n"
            "Flags:\n"
            "  -h, --help        Print help\n"
            "  -m, --mode TEXT   Its mode\n"
            "      --quiet       Say nothing\n");
  EXPECT_THAT(run({"-h"}).out, HasSubstr("Commands:\n  fail   Fail\n  file   Work with files\n"));
  EXPECT_THAT(run({"-h"}).out, HasSubstr("Run \"agbox <command> --help\" for more"));
  EXPECT_THAT(run({"help", "-h"}).out, HasSubstr("Run \"agbox help <command>\" for more"));
}

TEST(CommandLine, AFailedWriteIsARuntimeErrorEvenOfAGoodCommand) {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  Console console(full.get(), full.get());
  CommandLine line(kTestCommands);
  EXPECT_EQ(line.run({"file", "list"}, console), 1);
}

TEST(CompletionScript, KnowsFlagsThatTakeAValue) {
  CommandLine line(kTestCommands);
  const CLI::App& root = line.root();
  const std::string bash = bash_completion(root);
  EXPECT_THAT(bash, HasSubstr("'agbox file copy -m'|'agbox file copy --mode') ((++index)) ;;"));
  EXPECT_THAT(bash, HasSubstr("'agbox file copy') words='-h --help -m --mode --quiet' ;;"));
  EXPECT_THAT(zsh_completion(root), HasSubstr("'copy:Copy a user'\\''s file'"));
  const std::string fish = fish_completion(root);
  EXPECT_THAT(fish, HasSubstr("-s m -l mode -r -F -d 'Its mode'"));
  EXPECT_THAT(fish, HasSubstr("-a copy -d 'Copy a user\\'s file'"));
  EXPECT_THAT(bash, HasSubstr("'agbox help file') words='copy do list -h --help' ;;"));
  for (const std::string& script : {bash, zsh_completion(root), fish}) {
    EXPECT_THAT(script, Not(testing::ContainsRegex("@[A-Z]+@")));  // no placeholder is left
  }
}

TEST(CompletionScript, AsksTheDaemonForIds) {
  CommandLine line(all_commands());
  EXPECT_THAT(bash_completion(line.root()),
              HasSubstr("'agbox start') words='-h --help -l --label --json'\n"
                        "        [[ ${COMP_WORDS[COMP_CWORD]} == -* ]] || words+=\" "
                        "$(\"${COMP_WORDS[0]}\" ps -q 2>/dev/null)\" ;;"));
  EXPECT_THAT(zsh_completion(line.root()),
              HasSubstr("|| compadd -- ${(f)\"$(${words[1]} exec list -q 2>/dev/null)\"} ;;"));
  EXPECT_THAT(fish_completion(line.root()),
              HasSubstr("\"agbox logs\"' -a '(agbox exec list -aq 2>/dev/null)'\n"));
}

}  // namespace
}  // namespace agbox::cli
