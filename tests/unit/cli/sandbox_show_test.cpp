// SPDX-License-Identifier: Apache-2.0
// agbox sandbox list and get.
#include <gmock/gmock.h>

#include "base/clock.h"
#include "unit/cli/commands_fixture.h"

namespace agbox::cli {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class SandboxShow : public Commands {
 protected:
  SandboxShow() {
    sandbox_.set_sandbox_id("box-1");
    sandbox_.set_state(v1::SANDBOX_STATE_READY);
    sandbox_.set_image("busybox:1");
    sandbox_.mutable_created_at()->set_seconds(1'700'000'000);
    sandbox_.mutable_created_at()->set_nanos(5);
    (*sandbox_.mutable_labels())["b"] = "x y";
    (*sandbox_.mutable_labels())["a"] = "1";
  }

  static google::protobuf::Timestamp ago(std::chrono::seconds time) {
    google::protobuf::Timestamp out;
    const auto now = std::chrono::floor<std::chrono::seconds>(SystemClock().wall_now());
    out.set_seconds((now - time).time_since_epoch().count());
    return out;
  }

  v1::SandboxHandle sandbox_;
};

TEST_F(SandboxShow, GetPrintsALinePerFact) {
  test::ScriptedDaemon daemon(socket());
  daemon.sandbox = sandbox_;
  EXPECT_EQ(run({"sandbox", "get", "box-1"}), 0);
  EXPECT_EQ(out_,
            "sandbox_id=box-1\nstate=Ready\nimage=busybox:1\ncreated_at=2023-11-14T22:13:20Z\n"
            "labels={\"a\":\"1\",\"b\":\"x y\"}\n");
  EXPECT_EQ(error_, "");
  EXPECT_THAT(daemon.calls(), ElementsAre("GetSandbox sandbox_id: \"box-1\""));
}

TEST_F(SandboxShow, GetShowsTheLease) {
  test::ScriptedDaemon daemon(socket());
  daemon.sandbox = sandbox_;
  daemon.sandbox.mutable_lease_ttl()->set_seconds(10);
  EXPECT_EQ(run({"sandbox", "get", "box-1"}), 0);
  EXPECT_THAT(out_, HasSubstr("\nlease_ttl=10s\n"));
}

TEST_F(SandboxShow, GetShowsAnErrorAndNoLabelsWhereThereAreNone) {
  test::ScriptedDaemon daemon(socket());
  daemon.sandbox = sandbox_;
  daemon.sandbox.clear_labels();
  daemon.sandbox.set_state(v1::SANDBOX_STATE_FAILED);
  daemon.sandbox.set_error_code("SANDBOX_CREATE_FAILED");
  daemon.sandbox.set_error_message("no\nstate=Ready\x1b[2J");
  EXPECT_EQ(run({"sandbox", "get", "box-1"}), 0);
  EXPECT_EQ(out_,
            "sandbox_id=box-1\nstate=Failed\nimage=busybox:1\ncreated_at=2023-11-14T22:13:20Z\n"
            "error_code=SANDBOX_CREATE_FAILED\nerror_message=no state=Ready\\x1b[2J\n");
}

TEST_F(SandboxShow, GetAsJsonIsTheDaemonsAnswer) {
  test::ScriptedDaemon daemon(socket());
  daemon.sandbox = sandbox_;
  EXPECT_EQ(run({"sandbox", "get", "--json", "box-1"}), 0);
  EXPECT_EQ(out_, R"({
  "sandbox": {
    "sandbox_id": "box-1",
    "state": "SANDBOX_STATE_READY",
    "last_event_sequence": "0",
    "companion_containers": [],
    "labels": {
      "a": "1",
      "b": "x y"
    },
    "created_at": "2023-11-14T22:13:20.000000005Z",
    "image": "busybox:1",
    "error_code": "",
    "error_message": "",
    "state_changed_at": null,
    "isolation_problem": "",
    "paused": false,
    "restart_count": "0",
    "last_exit": "",
    "isolation_unverified": "",
    "mounts": [],
    "copies": [],
    "builtin_resources": [],
    "ports": [],
    "companions": [],
    "lease_ttl": null,
    "warnings": []
  }
}
)");
}

TEST_F(SandboxShow, GetNeedsOneIdThatTheDaemonKnows) {
  EXPECT_EQ(run({"sandbox", "get"}), 2);
  EXPECT_THAT(error_, StartsWith("Error: accepts 1 arg(s), received 0\n\nUsage:\n"
                                 "  agbox sandbox get <sandbox_id> [flags]\n"));
  EXPECT_EQ(run({"sandbox", "get", "a", "b"}), 2);
  EXPECT_THAT(error_, StartsWith("Error: accepts 1 arg(s), received 2\n\nUsage:"));
  test::ScriptedDaemon daemon(socket());
  daemon.status = unknown("nope");
  EXPECT_EQ(run({"sandbox", "get", "nope"}), 1);
  EXPECT_EQ(error_, "get sandbox: Sandbox nope not found.\n");
}

TEST_F(SandboxShow, GetShowsWhatOfTheHostIsVisibleInside) {
  test::ScriptedDaemon daemon(socket());
  daemon.sandbox = sandbox_;
  for (const bool is_writable : {false, true}) {
    v1::MountSpec& mount = *daemon.sandbox.add_mounts();
    mount.set_source(is_writable ? "/home/me/\x1b[31m" : "/home/me/notes");
    mount.set_target(is_writable ? "/workspace" : "/notes");
    mount.set_writable(is_writable);
  }
  v1::PortMapping& port = *daemon.sandbox.add_ports();
  port.set_host_port(8080);
  port.set_container_port(80);
  EXPECT_EQ(run({"sandbox", "get", "box-1"}), 0);
  EXPECT_THAT(out_, HasSubstr("\nport=127.0.0.1:8080 -> 80/tcp\n"));
  EXPECT_THAT(out_, HasSubstr("\nmount=/home/me/notes -> /notes (read-only)\nmount=/home/me/"));
  EXPECT_THAT(out_, HasSubstr("[31m -> /workspace (writable)\n"));
  EXPECT_THAT(out_, testing::Not(HasSubstr("\x1b")));
}

TEST_F(SandboxShow, GetShowsWhatItsToolsMakeVisible) {
  test::ScriptedDaemon daemon(socket());
  daemon.sandbox = sandbox_;
  const auto add = [&daemon](const std::string& id) -> v1::BuiltinResource& {
    v1::BuiltinResource& resource = *daemon.sandbox.add_builtin_resources();
    resource.set_tool("tool");
    resource.set_id(id);
    resource.set_source("/home/me/" + id);
    resource.set_target("/" + id);
    return resource;
  };
  add("read");
  add("write").set_writable(true);
  add("copy").set_writable(true);
  daemon.sandbox.mutable_builtin_resources(2)->set_shadow_copy(true);
  add("agent").set_socket(true);
  EXPECT_EQ(run({"sandbox", "get", "box-1"}), 0);
  EXPECT_THAT(out_, HasSubstr("\nbuiltin_tool=tool read: /home/me/read -> /read (read-only)\n"
                              "builtin_tool=tool write: /home/me/write -> /write (writable)\n"
                              "builtin_tool=tool copy: /home/me/copy -> /copy (shadow copy, "
                              "writable)\n"
                              "builtin_tool=tool agent: /home/me/agent -> /agent (socket)\n"));
  EXPECT_EQ(run({"sandbox", "get", "box-1", "--json"}), 0);
  EXPECT_THAT(out_, HasSubstr(R"("id": "agent")"));
  EXPECT_THAT(out_, HasSubstr(R"("shadow_copy": true)"));
}

TEST_F(SandboxShow, GetShowsEachCompanionAndNoneOfItsSecrets) {
  test::ScriptedDaemon daemon(socket());
  daemon.sandbox = sandbox_;
  const auto add = [&daemon](const std::string& name, v1::CompanionRole role,
                             v1::CompanionState state) -> v1::CompanionStatus& {
    v1::CompanionStatus& companion = *daemon.sandbox.add_companions();
    companion.set_name(name);
    companion.set_role(role);
    companion.set_image(name + ":1");
    companion.set_state(state);
    return companion;
  };
  add("db", v1::COMPANION_ROLE_REQUIRED_SERVICE, v1::COMPANION_STATE_READY).set_health("healthy");
  v1::CompanionStatus& cache =
      add("cache", v1::COMPANION_ROLE_OPTIONAL_SERVICE, v1::COMPANION_STATE_STARTING);
  cache.set_restart_count(2);
  cache.set_last_exit("exit code 137");
  v1::CompanionStatus& web = add("web", v1::COMPANION_ROLE_COMPANION, v1::COMPANION_STATE_FAILED);
  web.set_error_code("COMPANION_CONTAINER_FAILED");
  web.set_error_message("no\nstate=Ready\x1b[2J");
  add("old", v1::COMPANION_ROLE_COMPANION, v1::COMPANION_STATE_STOPPED);
  add("new", static_cast<v1::CompanionRole>(7), static_cast<v1::CompanionState>(9));
  v1::CompanionContainerSpec& spec = *daemon.sandbox.add_companion_containers();
  spec.set_name("web");
  (*spec.mutable_envs())["TOKEN"] = "hunter2";
  EXPECT_EQ(run({"sandbox", "get", "box-1"}), 0);
  EXPECT_THAT(out_, HasSubstr("\ncompanion=db (required service, db:1): Ready, healthy\n"
                              "companion=cache (optional service, cache:1): Starting, "
                              "restart_count=2, last_exit=exit code 137\n"
                              "companion=web (companion, web:1): Failed, "
                              "COMPANION_CONTAINER_FAILED: no state=Ready\\x1b[2J\n"
                              "companion=old (companion, old:1): Stopped\n"
                              "companion=new (role 7, new:1): State 9\n"));
  EXPECT_THAT(out_, Not(HasSubstr("TOKEN")));
  EXPECT_THAT(out_, Not(HasSubstr("hunter2")));
  EXPECT_EQ(run({"sandbox", "get", "box-1", "--json"}), 0);
  EXPECT_THAT(out_, HasSubstr(R"("role": "COMPANION_ROLE_OPTIONAL_SERVICE")"));
  EXPECT_THAT(out_, HasSubstr(R"("last_exit": "exit code 137")"));
}

TEST_F(SandboxShow, GetShowsWarnings) {
  test::ScriptedDaemon daemon(socket());
  daemon.sandbox = sandbox_;
  EXPECT_EQ(run({"sandbox", "get", "box-1"}), 0);
  EXPECT_THAT(out_, Not(HasSubstr("warning")));
  daemon.sandbox.add_warnings("builtin tool git shows nothing");
  daemon.sandbox.add_warnings("a\x1b[2J");
  EXPECT_EQ(run({"sandbox", "get", "box-1"}), 0);
  EXPECT_THAT(out_, HasSubstr("\nwarning=builtin tool git shows nothing\nwarning=a\\x1b[2J\n"));
}

TEST_F(SandboxShow, GetShowsAnIsolationThatDoesNotHold) {
  test::ScriptedDaemon daemon(socket());
  daemon.sandbox = sandbox_;
  daemon.sandbox.set_isolation_problem("no rule is for it");
  EXPECT_EQ(run({"sandbox", "get", "box-1"}), 0);
  EXPECT_THAT(out_, HasSubstr("\npaused=false\nisolation_problem=no rule is for it\n"));
  daemon.sandbox.set_paused(true);
  EXPECT_EQ(run({"sandbox", "get", "box-1"}), 0);
  EXPECT_THAT(out_, HasSubstr("\npaused=true\n"));
  EXPECT_EQ(run({"sandbox", "get", "box-1", "--json"}), 0);
  EXPECT_THAT(out_, HasSubstr("\"isolation_problem\": \"no rule is for it\""));
}

TEST_F(SandboxShow, GetShowsAnIsolationThatIsNotVerified) {
  test::ScriptedDaemon daemon(socket());
  daemon.sandbox = sandbox_;
  EXPECT_EQ(run({"sandbox", "get", "box-1"}), 0);
  EXPECT_THAT(out_, Not(HasSubstr("isolation_unverified")));
  daemon.sandbox.set_isolation_unverified("its guest is away");
  EXPECT_EQ(run({"sandbox", "get", "box-1"}), 0);
  EXPECT_THAT(out_, HasSubstr("\nisolation_unverified=its guest is away\n"));
}

TEST_F(SandboxShow, GetShowsHowItsContainerEndedAndWasRestarted) {
  test::ScriptedDaemon daemon(socket());
  daemon.sandbox = sandbox_;
  EXPECT_EQ(run({"sandbox", "get", "box-1"}), 0);
  EXPECT_THAT(out_, Not(HasSubstr("restart_count")));
  EXPECT_THAT(out_, Not(HasSubstr("last_exit")));
  daemon.sandbox.set_restart_count(2);
  daemon.sandbox.set_last_exit("exit code 137");
  EXPECT_EQ(run({"sandbox", "get", "box-1"}), 0);
  EXPECT_THAT(out_, HasSubstr("\nrestart_count=2\nlast_exit=exit code 137\n"));
}

TEST_F(SandboxShow, ListIsATable) {
  test::ScriptedDaemon daemon(socket());
  v1::ListSandboxesResponse& page = daemon.pages.emplace_back();
  v1::SandboxHandle& first = *page.add_sandboxes();
  first = sandbox_;
  first.mutable_labels()->insert({"name", "Grüße"});
  *first.mutable_created_at() = ago(3h + 30min);
  *first.mutable_state_changed_at() = ago(2min + 30s);
  v1::SandboxHandle& second = *page.add_sandboxes();
  second.set_sandbox_id("a-much-longer-id");
  second.set_state(v1::SANDBOX_STATE_FAILED);
  *second.mutable_created_at() = ago(50h);
  *second.mutable_state_changed_at() = ago(49h);
  second.set_error_message("no such image\nx\x1b[2J");
  EXPECT_EQ(run({"sandbox", "list"}), 0);
  EXPECT_EQ(
      out_,
      "SANDBOX ID        CREATED  STATUS     LABELS                ERROR\n"
      "box-1             3h ago   Ready 2m   a=1,b=x y,name=Grüße  \n"
      "a-much-longer-id  2d ago   Failed 2d                        no such image x\\x1b[2J\n");
  EXPECT_EQ(error_, "");
}

TEST_F(SandboxShow, AnEmptyListIsItsHeader) {
  test::ScriptedDaemon daemon(socket());
  daemon.pages.emplace_back();
  EXPECT_EQ(run({"sandbox", "list"}), 0);
  EXPECT_EQ(out_, "SANDBOX ID  CREATED  STATUS  LABELS  ERROR\n");
  EXPECT_EQ(run({"sandbox", "list", "--json"}), 0);
  EXPECT_THAT(out_, StartsWith("{\n  \"sandboxes\": []"));
}

TEST_F(SandboxShow, ListFiltersAndTurnsPages) {
  test::ScriptedDaemon daemon(socket());
  for (const char* id : {"box-1", "box-2", "box-3"}) {
    daemon.pages.emplace_back().add_sandboxes()->set_sandbox_id(id);
  }
  EXPECT_EQ(run({"sandbox", "list", "--include-deleted", "--label", "a=1", "--json"}), 0);
  for (const char* id : {"box-1", "box-2", "box-3"}) EXPECT_THAT(out_, HasSubstr(id));
  const std::string asked =
      "ListSandboxes include_deleted: true label_selector { key: \"a\" value: \"1\" }";
  EXPECT_THAT(daemon.calls(),
              ElementsAre(asked, asked + " page_token: \"1\"", asked + " page_token: \"2\""));
}

TEST_F(SandboxShow, ListSaysWhatIsWrong) {
  EXPECT_EQ(run({"sandbox", "list", "--label", "a"}), 2);
  EXPECT_EQ(error_, "--label must be in key=value form\n");
  EXPECT_EQ(run({"sandbox", "list", "x"}), 2);
  EXPECT_THAT(error_, StartsWith("Error: accepts 0 arg(s), received 1\n"));
  EXPECT_EQ(run({"sandbox", "list"}), 1);
  EXPECT_THAT(error_, StartsWith("list sandboxes: agboxd is not running: "));
}

TEST_F(SandboxShow, APageThatNamesItselfIsRefused) {
  test::ScriptedDaemon daemon(socket());
  daemon.pages.resize(2);
  daemon.pages[1].set_next_page_token("1");
  EXPECT_EQ(run({"sandbox", "list"}), 1);
  EXPECT_THAT(error_, StartsWith("list sandboxes: agboxd returned page \"1\" twice"));
}

TEST_F(SandboxShow, SandboxAloneNamesItsCommands) {
  EXPECT_EQ(run({"sandbox"}), 2);
  EXPECT_EQ(error_,
            "sandbox command requires a subcommand\n"
            "available subcommands: create, list, get, delete, stop, resume, exec, wait\n");
  EXPECT_EQ(run({"sandbox", "x"}), 2);
  EXPECT_EQ(error_, "Error: unknown command \"x\" for \"agbox sandbox\"\n");
}

}  // namespace
}  // namespace agbox::cli
