// SPDX-License-Identifier: Apache-2.0
// The generated classes read what a client with the contract's numbers writes, and write what such
// a client reads.
#include <agbox/v1/service.pb.h>
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <set>

#include "unit/api/hand_encoded_contract.h"
#include "unit/api/hand_wire.h"

namespace agbox::test {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

template <class Message>
Message decoded(const std::string& wire) {
  Message message;
  EXPECT_TRUE(message.ParseFromString(wire)) << Message::descriptor()->full_name();
  // A field that the class does not know would land there, unnoticed by every check below.
  EXPECT_EQ(message.GetReflection()->GetUnknownFields(message).field_count(), 0)
      << Message::descriptor()->full_name();
  return message;
}

template <class Time>
void expect_time(const Time& time, std::int64_t seconds, std::int32_t nanos) {
  EXPECT_EQ(time.seconds(), seconds);
  EXPECT_EQ(time.nanos(), nanos);
}

void expect_healthcheck(const v1::HealthcheckConfig& check) {
  EXPECT_THAT(check.test(), ElementsAre("CMD-SHELL", "true"));
  expect_time(check.interval(), 5, 1);
  expect_time(check.timeout(), 6, 2);
  EXPECT_EQ(check.retries(), 7u);
  expect_time(check.start_period(), 8, 3);
  expect_time(check.start_interval(), 0, 250'000'000);
}

void expect_companion(const v1::CompanionContainerSpec& companion) {
  EXPECT_EQ(companion.name(), "db");
  EXPECT_EQ(companion.image(), "postgres:16");
  EXPECT_THAT(companion.envs(), UnorderedElementsAre(Pair("PGUSER", "agbox"), Pair("EMPTY", "")));
  expect_healthcheck(companion.healthcheck());
  EXPECT_THAT(companion.post_start_on_primary(), ElementsAre("createdb app", "seed app"));
  EXPECT_THAT(companion.command(), ElementsAre("postgres", "-c"));
  EXPECT_EQ(companion.cpu_limit(), "1.5");
  EXPECT_EQ(companion.memory_limit(), "512m");
  EXPECT_EQ(companion.disk_limit(), "10g");
}

void expect_mount(const v1::MountSpec& mount) {
  EXPECT_EQ(mount.source(), "/mount/source");
  EXPECT_EQ(mount.target(), "/mount/target");
  EXPECT_TRUE(mount.writable());
}

void expect_copy(const v1::CopySpec& copy) {
  EXPECT_EQ(copy.source(), "/copy/source");
  EXPECT_EQ(copy.target(), "/copy/target");
  EXPECT_THAT(copy.exclude_patterns(), ElementsAre("*.log", "node_modules"));
}

void expect_port(const v1::PortMapping& port) {
  EXPECT_EQ(port.container_port(), 8080u);
  EXPECT_EQ(port.host_port(), 65535u);
  EXPECT_EQ(port.protocol(), v1::PORT_PROTOCOL_SCTP);
}

void expect_spec(const v1::CreateSpec& spec) {
  EXPECT_EQ(spec.image(), "debian:12");
  ASSERT_EQ(spec.mounts_size(), 1);
  expect_mount(spec.mounts(0));
  ASSERT_EQ(spec.copies_size(), 1);
  expect_copy(spec.copies(0));
  EXPECT_THAT(spec.builtin_tools(), ElementsAre("git", "uv"));
  ASSERT_EQ(spec.companion_containers_size(), 1);
  expect_companion(spec.companion_containers(0));
  EXPECT_THAT(spec.labels(), UnorderedElementsAre(Pair("team", "core")));
  EXPECT_THAT(spec.envs(), UnorderedElementsAre(Pair("LANG", "C.UTF-8")));
  expect_time(spec.idle_ttl(), 1800, 5);
  ASSERT_EQ(spec.ports_size(), 1);
  expect_port(spec.ports(0));
  EXPECT_THAT(spec.command(), ElementsAre("sleep", "infinity"));
  EXPECT_EQ(spec.cpu_limit(), "2");
  EXPECT_EQ(spec.memory_limit(), "4g");
  EXPECT_EQ(spec.disk_limit(), "20g");
  EXPECT_EQ(spec.gpus(), "all");
  ASSERT_EQ(spec.required_services_size(), 1);
  EXPECT_EQ(spec.required_services(0).name(), "required");
  ASSERT_EQ(spec.optional_services_size(), 1);
  EXPECT_EQ(spec.optional_services(0).name(), "optional");
}

void expect_handle(const v1::SandboxHandle& handle) {
  EXPECT_EQ(handle.sandbox_id(), "box-1");
  EXPECT_EQ(handle.state(), v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(handle.last_event_sequence(), 18'446'744'073'709'551'615u);
  ASSERT_EQ(handle.companion_containers_size(), 1);
  expect_companion(handle.companion_containers(0));
  EXPECT_THAT(handle.labels(), UnorderedElementsAre(Pair("team", "core")));
  expect_time(handle.created_at(), 1'700'000'000, 123'456'789);
  EXPECT_EQ(handle.image(), "debian:12");
  EXPECT_EQ(handle.error_code(), "SANDBOX_CREATE_FAILED");
  EXPECT_EQ(handle.error_message(), "no such image");
  expect_time(handle.state_changed_at(), 1'700'000'001, 5);
}

void expect_phase(const v1::SandboxPhaseDetails& phase) {
  EXPECT_EQ(phase.phase(), "materialize");
  EXPECT_EQ(phase.error_code(), "CONTAINER_OOM");
  EXPECT_EQ(phase.error_message(), "primary container OOM killed");
  EXPECT_EQ(phase.reason(), "idle_ttl");
}

void expect_exec_details(const v1::ExecEventDetails& exec) {
  EXPECT_EQ(exec.exec_id(), "exec-1");
  EXPECT_EQ(exec.exit_code(), -1);
  EXPECT_EQ(exec.exec_state(), v1::EXEC_STATE_FAILED);
  EXPECT_EQ(exec.error_code(), "EXEC_ERROR");
  EXPECT_EQ(exec.error_message(), "exit code 1");
}

void expect_companion_details(const v1::CompanionContainerEventDetails& companion) {
  EXPECT_EQ(companion.name(), "db");
  EXPECT_EQ(companion.error_code(), "COMPANION_ERROR");
  EXPECT_EQ(companion.error_message(), "unhealthy");
}

void expect_event_head(const v1::SandboxEvent& event, v1::EventType type) {
  EXPECT_EQ(event.event_id(), "box-1-42");
  EXPECT_EQ(event.sequence(), 42u);
  EXPECT_EQ(event.sandbox_id(), "box-1");
  EXPECT_EQ(event.event_type(), type);
  expect_time(event.occurred_at(), 1'700'000'042, 7);
  EXPECT_TRUE(event.replay());
  EXPECT_TRUE(event.snapshot());
  EXPECT_EQ(event.sandbox_state(), v1::SANDBOX_STATE_DELETING);
}

void expect_exec(const v1::ExecStatus& exec) {
  EXPECT_EQ(exec.exec_id(), "exec-1");
  EXPECT_EQ(exec.sandbox_id(), "box-1");
  EXPECT_EQ(exec.state(), v1::EXEC_STATE_CANCELLED);
  EXPECT_THAT(exec.command(), ElementsAre("make", "-j2"));
  EXPECT_EQ(exec.cwd(), "/workspace");
  EXPECT_THAT(exec.env_overrides(), UnorderedElementsAre(Pair("CC", "clang")));
  EXPECT_EQ(exec.exit_code(), 143);
  EXPECT_EQ(exec.error(), "killed by signal 15");
  EXPECT_EQ(exec.last_event_sequence(), 17u);
}

TEST(Wire, ReadsEveryPartOfASpec) {
  expect_mount(decoded<v1::MountSpec>(hand_mount_spec()));
  expect_copy(decoded<v1::CopySpec>(hand_copy_spec()));
  expect_port(decoded<v1::PortMapping>(hand_port_mapping()));
  expect_healthcheck(decoded<v1::HealthcheckConfig>(hand_healthcheck_config()));
  expect_companion(decoded<v1::CompanionContainerSpec>(hand_companion_container_spec()));
  expect_spec(decoded<v1::CreateSpec>(hand_create_spec()));
}

TEST(Wire, ReadsHandleAndExecStatus) {
  expect_handle(decoded<v1::SandboxHandle>(hand_sandbox_handle()));
  expect_exec(decoded<v1::ExecStatus>(hand_exec_status()));
}

TEST(Wire, ReadsEventsWithEachKindOfDetails) {
  expect_phase(decoded<v1::SandboxPhaseDetails>(hand_sandbox_phase_details()));
  expect_exec_details(decoded<v1::ExecEventDetails>(hand_exec_event_details()));
  expect_companion_details(
      decoded<v1::CompanionContainerEventDetails>(hand_companion_container_event_details()));

  const auto phase = decoded<v1::SandboxEvent>(hand_event_with_phase());
  expect_event_head(phase, v1::SANDBOX_DELETE_REQUESTED);
  ASSERT_EQ(phase.details_case(), v1::SandboxEvent::kSandboxPhase);
  expect_phase(phase.sandbox_phase());

  const auto exec = decoded<v1::SandboxEvent>(hand_event_with_exec());
  expect_event_head(exec, v1::EXEC_FAILED);
  ASSERT_EQ(exec.details_case(), v1::SandboxEvent::kExec);
  expect_exec_details(exec.exec());

  const auto companion = decoded<v1::SandboxEvent>(hand_event_with_companion());
  expect_event_head(companion, v1::COMPANION_CONTAINER_FAILED);
  ASSERT_EQ(companion.details_case(), v1::SandboxEvent::kCompanionContainer);
  expect_companion_details(companion.companion_container());
}

TEST(Wire, OfTwoDetailsTheLastOneStands) {
  const auto event =
      decoded<v1::SandboxEvent>(hand_event_with_phase() + hand_event_with_companion());
  EXPECT_EQ(event.details_case(), v1::SandboxEvent::kCompanionContainer);
}

TEST(Wire, ReadsRequestsWithSeveralFields) {
  const auto create = decoded<v1::CreateSandboxRequest>(hand_create_sandbox_request());
  expect_spec(create.create_spec());
  EXPECT_EQ(create.sandbox_id(), "box-1");
  EXPECT_EQ(create.config_yaml(), std::string("image: x\n\0\xFF", 11));  // bytes, not text

  const auto list = decoded<v1::ListSandboxesRequest>(hand_list_sandboxes_request());
  EXPECT_TRUE(list.include_deleted());
  EXPECT_THAT(list.label_selector(), UnorderedElementsAre(Pair("team", "core")));

  const auto remove = decoded<v1::DeleteSandboxesRequest>(hand_delete_sandboxes_request());
  EXPECT_THAT(remove.label_selector(), UnorderedElementsAre(Pair("team", "core")));

  const auto subscribe = decoded<v1::SubscribeSandboxEventsRequest>(hand_subscribe_request());
  EXPECT_EQ(subscribe.sandbox_id(), "box-1");
  EXPECT_EQ(subscribe.from_sequence(), 41u);
  EXPECT_TRUE(subscribe.include_current_snapshot());

  const auto exec = decoded<v1::CreateExecRequest>(hand_create_exec_request());
  EXPECT_EQ(exec.sandbox_id(), "box-1");
  EXPECT_THAT(exec.command(), ElementsAre("make", ""));
  EXPECT_EQ(exec.cwd(), "/workspace");
  EXPECT_THAT(exec.env_overrides(), UnorderedElementsAre(Pair("CC", "clang")));
  EXPECT_EQ(exec.exec_id(), "exec-1");
}

TEST(Wire, ReadsRequestsThatAreOneId) {
  const std::string wire = hand_only_field_one("the-id");
  EXPECT_EQ(decoded<v1::GetSandboxRequest>(wire).sandbox_id(), "the-id");
  EXPECT_EQ(decoded<v1::ResumeSandboxRequest>(wire).sandbox_id(), "the-id");
  EXPECT_EQ(decoded<v1::StopSandboxRequest>(wire).sandbox_id(), "the-id");
  EXPECT_EQ(decoded<v1::DeleteSandboxRequest>(wire).sandbox_id(), "the-id");
  EXPECT_EQ(decoded<v1::CancelExecRequest>(wire).exec_id(), "the-id");
  EXPECT_EQ(decoded<v1::GetExecRequest>(wire).exec_id(), "the-id");
  EXPECT_EQ(decoded<v1::ListActiveExecsRequest>(wire).sandbox_id(), "the-id");
}

TEST(Wire, ReadsResponses) {
  const auto ping = decoded<v1::PingResponse>(hand_ping_response());
  EXPECT_EQ(ping.version(), "0.1.0");
  EXPECT_EQ(ping.daemon(), "agboxd");
  EXPECT_THAT(ping.features(), ElementsAre("feature-a", "feature-b"));
  EXPECT_EQ(ping.instance_id(), "instance");

  const std::string handle = hand_only_field_one(hand_sandbox_handle());
  expect_handle(decoded<v1::CreateSandboxResponse>(handle).sandbox());
  expect_handle(decoded<v1::GetSandboxResponse>(handle).sandbox());
  expect_exec(decoded<v1::GetExecResponse>(hand_only_field_one(hand_exec_status())).exec());

  const auto list = decoded<v1::ListSandboxesResponse>(hand_list_sandboxes_response());
  ASSERT_EQ(list.sandboxes_size(), 2);
  expect_handle(list.sandboxes(0));
  EXPECT_EQ(list.sandboxes(1).sandbox_id(), "box-2");

  const auto removed = decoded<v1::DeleteSandboxesResponse>(hand_delete_sandboxes_response());
  EXPECT_THAT(removed.deleted_sandbox_ids(), ElementsAre("box-1", "box-2"));
  EXPECT_EQ(removed.deleted_count(), 2u);

  EXPECT_TRUE(decoded<v1::AcceptedResponse>(hand_accepted_response()).accepted());

  const auto exec = decoded<v1::CreateExecResponse>(hand_create_exec_response());
  EXPECT_EQ(exec.exec_id(), "exec-1");
  EXPECT_EQ(exec.stdout_log_path(), "/logs/out");
  EXPECT_EQ(exec.stderr_log_path(), "/logs/err");

  const auto active = decoded<v1::ListActiveExecsResponse>(hand_list_active_execs_response());
  ASSERT_EQ(active.execs_size(), 2);
  expect_exec(active.execs(0));
  EXPECT_EQ(active.execs(1).exec_id(), "e2");
}

TEST(Wire, PresenceIsVisibleWhereTheContractNeedsIt) {
  EXPECT_FALSE(decoded<v1::ListActiveExecsRequest>("").has_sandbox_id());
  EXPECT_TRUE(decoded<v1::ListActiveExecsRequest>(hand_only_field_one("")).has_sandbox_id());
  EXPECT_FALSE(decoded<v1::CreateSpec>("").has_idle_ttl());
  const std::string zero_ttl = HandEncoder().bytes(8, "").wire();
  EXPECT_TRUE(decoded<v1::CreateSpec>(zero_ttl).has_idle_ttl());  // "never stop", not "as usual"
  EXPECT_FALSE(decoded<v1::CreateSandboxRequest>("").has_create_spec());
  EXPECT_EQ(decoded<v1::SandboxEvent>("").details_case(), v1::SandboxEvent::DETAILS_NOT_SET);
  EXPECT_EQ(decoded<v1::PingRequest>("").ByteSizeLong(), 0u);
}

TEST(Wire, FieldsOfANewerPeerSurviveAPassThroughUs) {
  const std::string newer =
      HandEncoder().bytes(7, "debian:12").varint(900, 5).bytes(901, "later").wire();
  v1::SandboxHandle handle;
  ASSERT_TRUE(handle.ParseFromString(newer));
  EXPECT_EQ(handle.image(), "debian:12");

  const auto fields = hand_decode(handle.SerializeAsString());
  ASSERT_TRUE(fields.has_value());
  EXPECT_THAT(*fields, UnorderedElementsAre(HandField{.number = 7, .bytes = "debian:12"},
                                            HandField{.number = 900, .varint = 5},
                                            HandField{.number = 901, .bytes = "later"}));
}

TEST(Wire, AnEnumNumberOfANewerPeerIsKept) {
  const auto handle = decoded<v1::SandboxHandle>(HandEncoder().varint(2, 77).wire());
  EXPECT_EQ(static_cast<int>(handle.state()), 77);
}

TEST(Wire, WritesAnEventAsTheTableSays) {
  v1::SandboxEvent event;
  event.set_event_id("box-1-2");
  event.set_sequence(300);
  event.set_sandbox_id("box-1");
  event.set_event_type(v1::EXEC_FAILED);
  event.mutable_occurred_at()->set_seconds(9);
  event.set_sandbox_state(v1::SANDBOX_STATE_READY);
  event.mutable_exec()->set_exec_id("exec-1");
  event.mutable_exec()->set_exit_code(-1);

  const auto fields = hand_decode(event.SerializeAsString());

  ASSERT_TRUE(fields.has_value());
  const HandEncoder exec = HandEncoder().bytes(1, "exec-1").varint(2, 18'446'744'073'709'551'615u);
  EXPECT_THAT(
      *fields,
      ElementsAre(HandField{.number = 1, .bytes = "box-1-2"}, HandField{.number = 2, .varint = 300},
                  HandField{.number = 3, .bytes = "box-1"}, HandField{.number = 4, .varint = 11},
                  HandField{.number = 5, .bytes = HandEncoder().varint(1, 9).wire()},
                  HandField{.number = 8, .varint = 2},
                  HandField{.number = 10, .bytes = exec.wire()}));
}

TEST(Wire, WritesMapsOptionalsAndNestedMessagesAsTheTableSays) {
  v1::CreateSandboxRequest create;
  create.set_sandbox_id("box-1");
  (*create.mutable_create_spec()->mutable_labels())["team"] = "core";
  create.mutable_create_spec()->mutable_idle_ttl();
  const HandEncoder spec = HandEncoder().entry(6, "team", "core").bytes(8, "");
  EXPECT_EQ(create.SerializeAsString(), HandEncoder().message(1, spec).bytes(2, "box-1").wire());

  v1::ListActiveExecsRequest active;
  EXPECT_EQ(active.SerializeAsString(), "");
  active.set_sandbox_id("");
  EXPECT_EQ(active.SerializeAsString(), HandEncoder().bytes(1, "").wire());

  v1::PortMapping port;
  port.set_container_port(80);
  port.set_protocol(v1::PORT_PROTOCOL_UDP);
  EXPECT_EQ(port.SerializeAsString(), HandEncoder().varint(1, 80).varint(3, 1).wire());
}

TEST(Wire, MethodsHaveTheContractsPathsAndKinds) {
  const auto* service = v1::PingRequest::descriptor()->file()->FindServiceByName("SandboxService");
  ASSERT_NE(service, nullptr);
  ASSERT_EQ(service->full_name(), "agbox.v1.SandboxService");

  std::set<std::string> unary;
  std::set<std::string> server_streams;
  for (int i = 0; i < service->method_count(); ++i) {
    const auto* method = service->method(i);
    if (method->client_streaming()) continue;  // the contract has none, later calls may be such
    const std::string call =
        method->name() + " " + method->input_type()->name() + " " + method->output_type()->name();
    (method->server_streaming() ? server_streams : unary).insert(call);
  }
  EXPECT_THAT(unary, testing::IsSupersetOf({
                         "Ping PingRequest PingResponse",
                         "CreateSandbox CreateSandboxRequest CreateSandboxResponse",
                         "GetSandbox GetSandboxRequest GetSandboxResponse",
                         "ListSandboxes ListSandboxesRequest ListSandboxesResponse",
                         "ResumeSandbox ResumeSandboxRequest AcceptedResponse",
                         "StopSandbox StopSandboxRequest AcceptedResponse",
                         "DeleteSandbox DeleteSandboxRequest AcceptedResponse",
                         "DeleteSandboxes DeleteSandboxesRequest DeleteSandboxesResponse",
                         "CreateExec CreateExecRequest CreateExecResponse",
                         "CancelExec CancelExecRequest AcceptedResponse",
                         "GetExec GetExecRequest GetExecResponse",
                         "ListActiveExecs ListActiveExecsRequest ListActiveExecsResponse",
                     }));
  EXPECT_THAT(
      server_streams,
      testing::Contains("SubscribeSandboxEvents SubscribeSandboxEventsRequest SandboxEvent"));
}

TEST(Wire, NumbersWithTwoNamesArePrintedWithTheOlderOne) {
  EXPECT_EQ(v1::EventType_Name(v1::SANDBOX_SERVICE_READY), "COMPANION_CONTAINER_READY");
  EXPECT_EQ(v1::EventType_Name(v1::SANDBOX_SERVICE_FAILED), "COMPANION_CONTAINER_FAILED");
}

}  // namespace
}  // namespace agbox::test
