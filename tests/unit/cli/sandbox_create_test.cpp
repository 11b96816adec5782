// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "unit/cli/commands_fixture.h"

namespace agbox::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

class SandboxCreate : public Commands {
 protected:
  static void prepare(test::ScriptedDaemon& daemon) {
    daemon.sandbox.set_sandbox_id("box-1");
    daemon.sandbox.set_state(v1::SANDBOX_STATE_PENDING);
    daemon.sandbox.set_last_event_sequence(1);
    daemon.keep_streams_open = true;
  }
  static v1::SandboxEvent event(std::uint64_t sequence, v1::EventType type, v1::SandboxState state,
                                const std::string& phase = "") {
    v1::SandboxEvent out;
    out.set_sequence(sequence);
    out.set_event_type(type);
    out.set_sandbox_state(state);
    if (!phase.empty()) out.mutable_sandbox_phase()->set_phase(phase);
    return out;
  }
  static v1::SandboxEvent ready(std::uint64_t sequence) {
    return event(sequence, v1::SANDBOX_READY, v1::SANDBOX_STATE_READY);
  }
  // The request that these arguments become.
  std::string request(std::vector<std::string> arguments) {
    test::ScriptedDaemon daemon(socket(), prepare);
    arguments.insert(arguments.begin(), {"sandbox", "create", "--json"});
    EXPECT_EQ(run(std::move(arguments)), 0) << error_;
    return daemon.calls().back();
  }
};

TEST_F(SandboxCreate, WaitsUntilItIsReadyAndSaysHowToGoOn) {
  test::ScriptedDaemon daemon(socket(), prepare);
  daemon.events = {
      event(2, v1::SANDBOX_PREPARING, v1::SANDBOX_STATE_PENDING, "materialize"),
      event(3, v1::SANDBOX_PREPARING, v1::SANDBOX_STATE_PENDING, "pulling busybox: 1 of 2 MB"),
      ready(4)};
  EXPECT_EQ(run({"sandbox", "create"}), 0);
  EXPECT_EQ(out_, "");
  EXPECT_THAT(error_, MatchesRegex("Waiting for sandbox box-1 to be ready\\.\\.\\.\n"
                                   "  pulling busybox: 1 of 2 MB\n"
                                   "Sandbox ready in [0-9]+\\.[0-9]s\\.\n"
                                   "  Open a shell:       agbox exec -it box-1\n"
                                   "  Run a command:      agbox exec box-1 COMMAND\n"
                                   "  Show sandbox:       agbox sandbox get box-1\n"
                                   "  Delete sandbox:     agbox sandbox delete box-1\n"));
  EXPECT_THAT(daemon.calls(),
              ElementsAre("CreateSandbox create_spec { image: "
                          "\"ghcr.io/agents-sandbox/coding-runtime:latest\" }",
                          "SubscribeSandboxEvents sandbox_id: \"box-1\" from_sequence: 1"));
}

TEST_F(SandboxCreate, ReportsItsCompanions) {
  test::ScriptedDaemon daemon(socket(), prepare);
  auto db = event(2, v1::COMPANION_CONTAINER_READY, v1::SANDBOX_STATE_PENDING);
  db.mutable_companion_container()->set_name("db");
  auto web = event(3, v1::COMPANION_CONTAINER_FAILED, v1::SANDBOX_STATE_PENDING);
  web.mutable_companion_container()->set_name("web");
  web.mutable_companion_container()->set_error_message("no such image");
  daemon.events = {db, web, ready(4)};
  EXPECT_EQ(run({"sandbox", "create"}), 0);
  EXPECT_THAT(error_, HasSubstr("...\n  companion db is ready\n"
                                "  companion web failed: no such image\nSandbox ready in "));
}

TEST_F(SandboxCreate, QuietlyPrintsTheIdAlone) {
  test::ScriptedDaemon daemon(socket(), prepare);
  daemon.events = {event(2, v1::SANDBOX_PREPARING, v1::SANDBOX_STATE_PENDING, "pulling"), ready(3)};
  EXPECT_EQ(run({"sandbox", "create", "-q"}), 0);
  EXPECT_EQ(out_, "box-1\n");
  EXPECT_EQ(error_, "");
}

TEST_F(SandboxCreate, WarningsArePrintedOnceItIsReady) {
  test::ScriptedDaemon daemon(socket(), prepare);
  daemon.sandbox.add_warnings("builtin tool git shows nothing");
  daemon.events = {ready(2)};
  EXPECT_EQ(run({"sandbox", "create", "-q"}), 0);
  EXPECT_EQ(out_, "box-1\n");
  EXPECT_EQ(error_, "Warning: builtin tool git shows nothing\n");
  EXPECT_EQ(daemon.calls().size(), 2u);

  // What a shadow copy lacks is only known then.
  daemon.sandbox.add_builtin_resources()->set_shadow_copy(true);
  EXPECT_EQ(run({"sandbox", "create", "-q"}), 0);
  EXPECT_THAT(daemon.calls().back(), StartsWith("GetSandbox"));
}

TEST_F(SandboxCreate, AsJsonItDoesNotWait) {
  test::ScriptedDaemon daemon(socket(), prepare);
  EXPECT_EQ(run({"sandbox", "create", "--json"}), 0);
  EXPECT_EQ(error_, "");
  EXPECT_THAT(out_, StartsWith("{\n  \"sandbox\": {\n    \"sandbox_id\": \"box-1\",\n"
                               "    \"state\": \"SANDBOX_STATE_PENDING\",\n"));
  EXPECT_EQ(daemon.calls().size(), 1u);
}

TEST_F(SandboxCreate, FlagsBecomeTheSpec) {
  EXPECT_EQ(request({"--image", "x", "--image", "busybox:1", "--sandbox-id", "mine"}),
            "CreateSandbox create_spec { image: \"busybox:1\" } sandbox_id: \"mine\"");
  EXPECT_THAT(request({"--label", "a=1", "--label=b=x=y", "--label", "a=2", "--label", "c="}),
              testing::AllOf(HasSubstr("labels { key: \"a\" value: \"2\" }"),
                             HasSubstr("labels { key: \"b\" value: \"x=y\" }"),
                             HasSubstr("labels { key: \"c\" value: \"\" }")));
  EXPECT_THAT(request({"--env", "A=[1,2]"}), HasSubstr("envs { key: \"A\" value: \"[1,2]\" }"));
  EXPECT_THAT(request({"-e", "B=2"}), HasSubstr("envs { key: \"B\" value: \"2\" }"));
  EXPECT_THAT(request({"-v", "/b:/t2", "--mount", "~/a:/t1", "--mount=/c:/t3:writable"}),
              HasSubstr("mounts { source: \"~/a\" target: \"/t1\" } "
                        "mounts { source: \"/c\" target: \"/t3\" writable: true } "
                        "mounts { source: \"/b\" target: \"/t2\" writable: true }"));
  const std::string here = std::filesystem::current_path();
  EXPECT_THAT(
      request({"-v", ".:/t1:ro", "-v", "./x/:/t2:rw", "-v", "~/y:/t3:ro"}),
      HasSubstr("mounts { source: \"" + here + "\" target: \"/t1\" } mounts { source: \"" + here +
                "/x\" target: \"/t2\" writable: true } "
                "mounts { source: \"~/y\" target: \"/t3\" }"));
  EXPECT_THAT(request({"--idle-ttl", "1h0.5s"}),
              HasSubstr("idle_ttl { seconds: 3600 nanos: 500000000 }"));
  EXPECT_THAT(request({"--idle-ttl", "0"}), HasSubstr("idle_ttl { }"));
  EXPECT_THAT(request({"--cpu-limit", "1.5", "--memory-limit=2g", "--no-entrypoint"}),
              HasSubstr("cpu_limit: \"1.5\" memory_limit: \"2g\" bypass_entrypoint: true"));
  EXPECT_THAT(request({"--builtin-tool", "git", "--builtin-tool=uv"}),
              HasSubstr("builtin_tools: \"git\" builtin_tools: \"uv\""));
  EXPECT_THAT(request({"--copy", "/a:/b", "--copy=~/c:~/d:e/"}),
              HasSubstr("copies { source: \"/a\" target: \"/b\" } "
                        "copies { source: \"~/c\" target: \"~/d:e/\" }"));
  EXPECT_THAT(request({"--copy", "./x/../y:/b"}),
              HasSubstr("copies { source: \"" + (std::filesystem::current_path() / "y").string() +
                        "\" target: \"/b\" }"));
  EXPECT_THAT(request({"--disk-limit", "10g", "--gpus=all"}),
              HasSubstr("disk_limit: \"10g\" gpus: \"all\""));
  EXPECT_THAT(
      request({"-p", "8080:80", "--port=127.0.0.1:53:5353/UDP"}),
      HasSubstr("ports { container_port: 80 host_port: 8080 } "
                "ports { container_port: 5353 host_port: 53 protocol: PORT_PROTOCOL_UDP }"));
  EXPECT_THAT(request({"--image=x", "--", "sh", "-c", "exit 1", "--json"}),
              HasSubstr("image: \"x\" command: \"sh\" command: \"-c\" command: \"exit 1\" "
                        "command: \"--json\""));
}

TEST_F(SandboxCreate, AFileIsSentAsItIsAndDecidesTheImage) {
  const auto file = temp_directory_.path() / "box.yaml";
  std::ofstream(file) << "image: y\n";
  EXPECT_EQ(request({"--yaml-file", file}),
            "CreateSandbox create_spec { } config_yaml: \"image: y\\n\"");
  EXPECT_EQ(request({"--yaml-file", file, "--image", "x"}),
            "CreateSandbox create_spec { image: \"x\" } config_yaml: \"image: y\\n\"");
}

TEST_F(SandboxCreate, AFileThatCannotBeReadIsNamed) {
  const std::string missing = temp_directory_.path() / "none.yaml";
  EXPECT_EQ(run({"sandbox", "create", "--yaml-file", missing}), 1);
  EXPECT_EQ(error_, "read yaml file " + missing + ": No such file or directory\n");
  EXPECT_EQ(run({"sandbox", "create", "--yaml-file", temp_directory_.path()}), 1);
  EXPECT_EQ(error_, "read yaml file " + temp_directory_.path().string() + ": Is a directory\n");
  EXPECT_EQ(run({"sandbox", "create", "--yaml-file", "/dev/zero"}), 1);
  EXPECT_EQ(error_, "read yaml file /dev/zero: has more than 4194304 bytes\n");
}

TEST_F(SandboxCreate, AFlagWithoutItsValueIsNamedWithWhatItTakes) {
  EXPECT_EQ(run({"sandbox", "create", "--builtin-tool"}), 2);
  EXPECT_THAT(error_, StartsWith("Error: --builtin-tool needs a value: "
                                 "claude|codex|git|uv|npm|apt|opencode\n\nUsage:"));
  EXPECT_EQ(run({"sandbox", "create", "-p"}), 2);
  EXPECT_THAT(error_, StartsWith("Error: --port needs a value: HOST:CONTAINER[/PROTOCOL]\n"));
}

TEST_F(SandboxCreate, UsageErrorsNeedNoDaemon) {
  const std::pair<std::vector<std::string>, std::string> rows[] = {
      {{"--label", "a"}, "--label must be in key=value form\n"},
      {{"--label", "=a"}, "--label must be in key=value form\n"},
      {{"--label", "{}"}, "--label must be in key=value form\n"},
      {{"--env", "A"}, "--env must be in key=value form\n"},
      {{"--builtin-tool", "git", "--builtin-tool", "vim"},
       "--builtin-tool \"vim\": must be one of claude, codex, git, uv, npm, apt, opencode\n"},
      {{"--builtin-tool", "{}"},
       "--builtin-tool \"{}\": must be one of claude, codex, git, uv, npm, apt, opencode\n"},
      {{"--gpus", "0"},
       "--gpus: unsupported value \"0\"; currently only empty or \"all\" are supported\n"},
      {{"--port", ""}, "--port: value must not be empty\n"},
      {{"-p", "80"}, "--port \"80\": must be host:container[/proto]\n"},
      {{"-p", "1:2/"}, "--port \"1:2/\": protocol must not be empty after '/'\n"},
      {{"-p", "1:2/icmp"},
       "--port \"1:2/icmp\": unsupported protocol \"icmp\"; must be tcp, udp, or sctp\n"},
      {{"-p", "x:2"}, "--port host_port \"x:2\": \"x\" is not an integer\n"},
      {{"-p", ":2"}, "--port host_port \":2\": \"\" is not an integer\n"},
      {{"-p", "127.0.0.1::2"}, "--port host_port \"127.0.0.1::2\": \"\" is not an integer\n"},
      {{"-p", "1-2:3-4"}, "--port host_port \"1-2:3-4\": \"1-2\" is not an integer\n"},
      {{"-p", "1:0"}, "--port container_port \"1:0\": 0 is out of range (1..65535)\n"},
      {{"-p", "99999999999:1"},
       "--port host_port \"99999999999:1\": 99999999999 is out of range (1..65535)\n"},
      {{"-p", "0.0.0.0:1:2"},
       "--port \"0.0.0.0:1:2\": cannot be published on \"0.0.0.0\"; ports of sandboxes are "
       "published on 127.0.0.1 only\n"},
      {{"-p", "[::1]:1:2"},
       "--port \"[::1]:1:2\": cannot be published on \"[::1]\"; ports of sandboxes are published "
       "on 127.0.0.1 only\n"},
      {{"--copy", "a"}, "--copy \"a\": must be host:container\n"},
      {{"--copy", ":/b"}, "--copy \":/b\": source and target must be non-empty\n"},
      {{"--copy", "/a:"}, "--copy \"/a:\": source and target must be non-empty\n"},
      {{"--copy", "/a:/b:ro"},
       "--copy \"/a:/b:ro\": a copy has no mode; it is the sandbox's own\n"},
      {{"--copy", "/a:/b:rw"},
       "--copy \"/a:/b:rw\": a copy has no mode; it is the sandbox's own\n"},
      {{"--copy", "/a:/b:writable"},
       "--copy \"/a:/b:writable\": a copy has no mode; it is the sandbox's own\n"},
      {{"--idle-ttl", "soon"},
       "--idle-ttl: invalid duration \"soon\": use for example 30m, 1h30m or 0\n"},
      {{"--idle-ttl", ""}, "--idle-ttl: invalid duration \"\": use for example 30m, 1h30m or 0\n"},
      {{"--idle-ttl", "-5s"}, "--idle-ttl must not be negative\n"},
      {{"--mount", "/a"}, "--mount \"/a\": must be host:container or host:container:writable\n"},
      {{"--mount", "/a:/b:writable:x"},
       "--mount \"/a:/b:writable:x\": must be host:container or host:container:writable\n"},
      {{"--mount", ":/b"}, "--mount \":/b\": source and target must be non-empty\n"},
      {{"--mount", "/a:"}, "--mount \"/a:\": source and target must be non-empty\n"},
      {{"--mount", "/a:/b:rw"},
       "--mount \"/a:/b:rw\": only the literal suffix \":writable\" is supported (got \"rw\"); "
       "omit "
       "the suffix for read-only\n"},
      {{"-v", "/a"}, "--volume \"/a\": must be host:container or host:container:ro\n"},
      {{"-v", "/a:"}, "--volume \"/a:\": source and target must be non-empty\n"},
      {{"-v", "/a:/b:z"},
       "--volume \"/a:/b:z\": only the suffixes \":ro\" and \":rw\" are supported (got \"z\")\n"},
      {{"-v", "data:/b"},
       "--volume \"data:/b\": named volumes are not supported; for a directory write ./data\n"},
  };
  for (auto [arguments, message] : rows) {
    arguments.insert(arguments.begin(), {"sandbox", "create"});
    EXPECT_EQ(run(arguments), 2);
    EXPECT_EQ(error_, message);
  }
  EXPECT_EQ(run({"sandbox", "create", "busybox"}), 2);
  EXPECT_THAT(error_, StartsWith("Error: accepts 0 arg(s), received 1\n\nUsage:\n"
                                 "  agbox sandbox create [flags] [-- <command> [args...]]\n"));
  EXPECT_EQ(run({"sandbox", "create", "-q", "--json"}), 2);
}

TEST_F(SandboxCreate, ARefusalIsTheDaemonsSentence) {
  test::ScriptedDaemon daemon(socket(), prepare);
  daemon.status = test::ErrorInfoBytes{.code = grpc::ALREADY_EXISTS,
                                       .message = "sandbox_id box-1 already exists",
                                       .reason = "SANDBOX_ID_ALREADY_EXISTS"}
                      .status();
  EXPECT_EQ(run({"sandbox", "create"}), 1);
  EXPECT_EQ(error_, "create sandbox: sandbox_id box-1 already exists\n");
}

TEST_F(SandboxCreate, WithoutADaemonItSaysHowToStartIt) {
  EXPECT_EQ(run({"sandbox", "create"}), 1);
  EXPECT_THAT(error_, StartsWith("create sandbox: agboxd is not running: "));
  ::unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(run({"sandbox", "create"}), 1);
  EXPECT_THAT(error_, StartsWith("resolve daemon socket: resolve runtime path: XDG_RUNTIME_DIR"));
}

TEST_F(SandboxCreate, AFailureIsToldWithItsReasonAndTheWayOut) {
  test::ScriptedDaemon daemon(socket(), prepare);
  auto failed = event(2, v1::SANDBOX_FAILED, v1::SANDBOX_STATE_FAILED);
  failed.mutable_sandbox_phase()->set_error_message("no such image: x\x1b[2J");
  daemon.events = {failed};
  EXPECT_EQ(run({"sandbox", "create"}), 1);
  EXPECT_EQ(error_,
            "Waiting for sandbox box-1 to be ready...\n"
            "sandbox box-1 failed: no such image: x\\x1b[2J\n"
            "  Delete sandbox:     agbox sandbox delete box-1\n");
}

TEST_F(SandboxCreate, AFailureOfTheDefaultImageNamesTheOtherWays) {
  test::ScriptedDaemon daemon(socket(), prepare);
  auto failed = event(2, v1::SANDBOX_FAILED, v1::SANDBOX_STATE_FAILED);
  failed.mutable_sandbox_phase()->set_error_message(
      "pull image ghcr.io/agents-sandbox/coding-runtime:latest: denied");
  daemon.events = {failed};
  EXPECT_EQ(run({"sandbox", "create"}), 1);
  EXPECT_EQ(
      error_,
      "Waiting for sandbox box-1 to be ready...\n"
      "sandbox box-1 failed: pull image ghcr.io/agents-sandbox/coding-runtime:latest: denied\n"
      "  Build the image:    scripts/build-images coding-runtime, in a clone of the repository\n"
      "  Use another image:  --image IMAGE\n"
      "  Delete sandbox:     agbox sandbox delete box-1\n");
}

TEST_F(SandboxCreate, ALostWaitIsToldAsSuch) {
  test::ScriptedDaemon daemon(socket(), prepare);
  daemon.keep_streams_open = false;
  daemon.stream_status = grpc::Status(grpc::RESOURCE_EXHAUSTED, "too many streams");
  EXPECT_EQ(run({"sandbox", "create"}), 1);
  EXPECT_EQ(error_,
            "Waiting for sandbox box-1 to be ready...\n"
            "wait for sandbox ready: too many streams\n");
}

TEST_F(SandboxCreate, CtrlCEndsTheWaitAndNotTheSandbox) {
  for (const int signal : {SIGINT, SIGTERM}) {
    test::ScriptedDaemon daemon(socket(), prepare);
    const auto person = interrupt_at(daemon, "SubscribeSandboxEvents", signal);
    EXPECT_EQ(run({"sandbox", "create"}), 128 + signal);
    EXPECT_EQ(error_,
              "Waiting for sandbox box-1 to be ready...\n"
              "Stopped waiting; the daemon keeps creating sandbox box-1.\n"
              "  Show sandbox:       agbox sandbox get box-1\n"
              "  Delete sandbox:     agbox sandbox delete box-1\n");
    EXPECT_EQ(out_, "");
  }
}

TEST_F(SandboxCreate, AnIgnoredSignalStaysIgnored) {
  struct sigaction former{};
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGINT, &ignore, &former), 0);
  test::ScriptedDaemon daemon(socket(), [](test::ScriptedDaemon& scripted) {
    prepare(scripted);
    scripted.events = {event(2, v1::SANDBOX_PREPARING, v1::SANDBOX_STATE_PENDING)};
  });
  std::thread person([&] {
    EXPECT_TRUE(daemon.wait_for_call("SubscribeSandboxEvents"));
    ::kill(::getpid(), SIGINT);
    ::kill(::getpid(), SIGTERM);
  });
  EXPECT_EQ(run({"sandbox", "create"}), 128 + SIGTERM);
  person.join();
  ASSERT_EQ(::sigaction(SIGINT, &former, nullptr), 0);
}

}  // namespace
}  // namespace agbox::cli
