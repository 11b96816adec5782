// SPDX-License-Identifier: Apache-2.0
#include "cli/format/message_json.h"

#include <agbox/v1/service.pb.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agbox::cli {
namespace {

TEST(MessageJson, ShowsEveryFieldOfAnEmptyHandleInTheContractsOrder) {
  v1::GetSandboxResponse response;
  response.mutable_sandbox();
  EXPECT_EQ(message_json(response), R"({
  "sandbox": {
    "sandbox_id": "",
    "state": "SANDBOX_STATE_UNSPECIFIED",
    "last_event_sequence": "0",
    "companion_containers": [],
    "labels": {},
    "created_at": null,
    "image": "",
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

TEST(MessageJson, ShowsAnExecWithItsValues) {
  v1::ListActiveExecsResponse response;
  v1::ExecStatus& exec = *response.add_execs();
  exec.set_exec_id("exec-1");
  exec.set_state(v1::EXEC_STATE_RUNNING);
  exec.add_command("echo");
  exec.add_command("a \"b\"\n\x1b");
  (*exec.mutable_env_overrides())["B"] = "2";
  (*exec.mutable_env_overrides())["A"] = "1";
  exec.set_exit_code(-1);
  exec.set_last_event_sequence(18'446'744'073'709'551'615u);
  EXPECT_EQ(message_json(response), R"({
  "execs": [
    {
      "exec_id": "exec-1",
      "sandbox_id": "",
      "state": "EXEC_STATE_RUNNING",
      "command": [
        "echo",
        "a \"b\"\n\u001b"
      ],
      "cwd": "",
      "env_overrides": {
        "A": "1",
        "B": "2"
      },
      "exit_code": -1,
      "error": "",
      "last_event_sequence": "18446744073709551615",
      "stdout_log_path": "",
      "stderr_log_path": "",
      "started_at": null,
      "ended_at": null,
      "output_truncated": false,
      "usage": null,
      "error_code": "",
      "cancel_requested": false,
      "user": "",
      "timeout": null,
      "stdin": false,
      "tty": false,
      "container": ""
    }
  ],
  "next_page_token": ""
}
)");
}

TEST(MessageJson, TimesAreTextAndUnsetMembersOfAOneofAreAbsent) {
  v1::SandboxEvent event;
  event.mutable_occurred_at()->set_seconds(1'700'000'000);
  event.mutable_occurred_at()->set_nanos(120'000'000);
  event.set_event_type(v1::COMPANION_CONTAINER_READY);
  event.set_replay(true);
  event.mutable_companion_container()->set_name("db");
  EXPECT_EQ(message_json(event), R"({
  "event_id": "",
  "sequence": "0",
  "sandbox_id": "",
  "event_type": "COMPANION_CONTAINER_READY",
  "occurred_at": "2023-11-14T22:13:20.120Z",
  "replay": true,
  "snapshot": false,
  "sandbox_state": "SANDBOX_STATE_UNSPECIFIED",
  "companion_container": {
    "name": "db",
    "error_code": "",
    "error_message": ""
  }
}
)");
}

TEST(MessageJson, OnOneLine) {
  v1::CreateSpec spec;
  spec.set_image("a\n  b,  c");
  spec.add_command("x");
  spec.add_command("y");
  (*spec.mutable_labels())["k"] = "v";
  EXPECT_THAT(message_json_line(spec),
              testing::StartsWith(R"({"image": "a\n  b,  c", "mounts": [], "copies": [], )"));
  EXPECT_THAT(message_json_line(spec), testing::HasSubstr(R"("labels": {"k": "v"}, "envs": {})"));
  EXPECT_THAT(message_json_line(spec), testing::HasSubstr(R"("command": ["x", "y"], )"));
  EXPECT_THAT(message_json_line(spec),
              testing::EndsWith("\"bypass_entrypoint\": false, \"lease_ttl\": null}\n"));
}

TEST(MessageJson, DurationsAndOptionals) {
  v1::HealthcheckConfig check;
  check.mutable_interval()->set_seconds(1);
  check.mutable_interval()->set_nanos(500'000'000);
  check.set_retries(4'294'967'295u);
  EXPECT_EQ(message_json(check), R"({
  "test": [],
  "interval": "1.500s",
  "timeout": null,
  "retries": 4294967295,
  "start_period": null,
  "start_interval": null
}
)");

  v1::ListActiveExecsRequest active;
  EXPECT_EQ(message_json(active), "{\n  \"page_size\": 0,\n  \"page_token\": \"\"\n}\n");
  active.set_sandbox_id("");
  EXPECT_EQ(message_json(active),
            "{\n  \"sandbox_id\": \"\",\n  \"page_size\": 0,\n  \"page_token\": \"\"\n}\n");
}

TEST(MessageJson, AnEnumNumberWithoutANameIsANumber) {
  v1::PortMapping port;
  port.set_protocol(static_cast<v1::PortProtocol>(9));
  EXPECT_EQ(message_json(port),
            "{\n  \"container_port\": 0,\n  \"host_port\": 0,\n  \"protocol\": 9\n}\n");
}

}  // namespace
}  // namespace agbox::cli
