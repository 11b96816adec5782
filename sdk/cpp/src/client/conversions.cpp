// SPDX-License-Identifier: Apache-2.0
#include "conversions.h"

#include <google/protobuf/util/time_util.h>

#include <string_view>
#include <utility>

namespace agbox::sdk {

namespace {

using google::protobuf::util::TimeUtil;

std::map<std::string, std::string> from_map(
    const google::protobuf::Map<std::string, std::string>& values) {
  return {values.begin(), values.end()};
}

std::vector<std::string> from_list(const google::protobuf::RepeatedPtrField<std::string>& values) {
  return {values.begin(), values.end()};
}

void fill(v1::HealthcheckConfig& message, const HealthCheck& check) {
  message.mutable_test()->Assign(check.test.begin(), check.test.end());
  const auto is_given = [](std::chrono::nanoseconds time) { return time.count() != 0; };
  if (is_given(check.interval)) *message.mutable_interval() = to_duration(check.interval);
  if (is_given(check.timeout)) *message.mutable_timeout() = to_duration(check.timeout);
  message.set_retries(check.retries);
  if (is_given(check.start_period))
    *message.mutable_start_period() = to_duration(check.start_period);
  if (is_given(check.start_interval))
    *message.mutable_start_interval() = to_duration(check.start_interval);
}

void fill(v1::CompanionContainerSpec& message, const Service& service) {
  message.set_name(service.name);
  message.set_image(service.image);
  message.mutable_envs()->insert(service.envs.begin(), service.envs.end());
  if (service.health_check) fill(*message.mutable_healthcheck(), *service.health_check);
  message.mutable_post_start_on_primary()->Assign(service.post_start_on_primary.begin(),
                                                  service.post_start_on_primary.end());
  message.mutable_command()->Assign(service.command.begin(), service.command.end());
  message.set_cpu_limit(service.cpu_limit);
  message.set_memory_limit(service.memory_limit);
  message.set_disk_limit(service.disk_limit);
}

Mount part_of(const v1::MountSpec& mount) {
  return {.source = mount.source(), .target = mount.target(), .writable = mount.writable()};
}

Copy part_of(const v1::CopySpec& copy) {
  return {.source = copy.source(), .target = copy.target()};
}

Port part_of(const v1::PortMapping& port) {
  return {.container_port = port.container_port(),
          .host_port = port.host_port(),
          .protocol = static_cast<PortProtocol>(port.protocol())};
}

ServiceInfo part_of(const v1::CompanionStatus& companion) {
  return {.name = companion.name(),
          .role = static_cast<ServiceRole>(companion.role()),
          .image = companion.image(),
          .state = static_cast<ServiceState>(companion.state()),
          .health = companion.health(),
          .restart_count = companion.restart_count(),
          .last_exit = companion.last_exit(),
          .error_code = companion.error_code(),
          .error_message = companion.error_message()};
}

BuiltinResource part_of(const v1::BuiltinResource& resource) {
  return {.tool = resource.tool(),
          .id = resource.id(),
          .source = resource.source(),
          .target = resource.target(),
          .writable = resource.writable(),
          .is_socket = resource.socket(),
          .is_shadow_copy = resource.shadow_copy()};
}

ContainerStats part_of(const v1::ContainerStats& stats) {
  ContainerStats container{.name = stats.name(),
                           .is_running = stats.running(),
                           .cpu_time = from_duration(stats.cpu_time()),
                           .user_cpu = from_duration(stats.user_cpu()),
                           .system_cpu = from_duration(stats.system_cpu()),
                           .memory_bytes = stats.memory_bytes(),
                           .memory_limit_bytes = stats.memory_limit_bytes(),
                           .pids = stats.pids(),
                           .network_rx_bytes = stats.network_rx_bytes(),
                           .network_tx_bytes = stats.network_tx_bytes(),
                           .block_read_bytes = stats.block_read_bytes(),
                           .block_write_bytes = stats.block_write_bytes()};
  if (stats.has_memory_peak_bytes()) container.memory_peak_bytes = stats.memory_peak_bytes();
  return container;
}

template <class Element, class Messages>
std::vector<Element> parts_of(const Messages& messages) {
  std::vector<Element> elements;
  for (const auto& message : messages) elements.push_back(part_of(message));
  return elements;
}

// "SANDBOX_STATE_READY" is "READY"; empty is a number that this library does not know.
std::string enumerator_text(std::string_view name, std::string_view prefix, int number) {
  if (name.empty()) return "UNKNOWN_" + std::to_string(number);
  if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  return std::string(name);
}

}  // namespace

google::protobuf::Duration to_duration(std::chrono::nanoseconds time) {
  return TimeUtil::NanosecondsToDuration(time.count());
}

std::chrono::nanoseconds from_duration(const google::protobuf::Duration& duration) {
  return std::chrono::seconds(duration.seconds()) + std::chrono::nanoseconds(duration.nanos());
}

google::protobuf::Timestamp to_timestamp(Time time) {
  return TimeUtil::NanosecondsToTimestamp(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

Time from_timestamp(const google::protobuf::Timestamp& timestamp) {
  return Time(std::chrono::duration_cast<Time::duration>(
      std::chrono::seconds(timestamp.seconds()) + std::chrono::nanoseconds(timestamp.nanos())));
}

v1::CreateSandboxRequest to_request(const SandboxSpec& spec) {
  v1::CreateSandboxRequest request;
  request.set_sandbox_id(spec.id);
  request.set_config_yaml(spec.config_yaml);
  v1::CreateSpec& message = *request.mutable_create_spec();
  message.set_image(spec.image);
  for (const Mount& mount : spec.mounts) {
    v1::MountSpec& added = *message.add_mounts();
    added.set_source(mount.source);
    added.set_target(mount.target);
    added.set_writable(mount.writable);
  }
  for (const Copy& copy : spec.copies) {
    v1::CopySpec& added = *message.add_copies();
    added.set_source(copy.source);
    added.set_target(copy.target);
    added.mutable_exclude_patterns()->Assign(copy.exclude_patterns.begin(),
                                             copy.exclude_patterns.end());
  }
  for (const Port& port : spec.ports) {
    v1::PortMapping& added = *message.add_ports();
    added.set_container_port(port.container_port);
    added.set_host_port(port.host_port);
    added.set_protocol(static_cast<v1::PortProtocol>(port.protocol));
  }
  message.mutable_builtin_tools()->Assign(spec.builtin_tools.begin(), spec.builtin_tools.end());
  for (const Service& service : spec.required_services)
    fill(*message.add_required_services(), service);
  for (const Service& service : spec.optional_services)
    fill(*message.add_optional_services(), service);
  for (const Service& service : spec.companion_containers)
    fill(*message.add_companion_containers(), service);
  message.mutable_labels()->insert(spec.labels.begin(), spec.labels.end());
  message.mutable_envs()->insert(spec.envs.begin(), spec.envs.end());
  if (spec.idle_ttl) *message.mutable_idle_ttl() = to_duration(*spec.idle_ttl);
  if (spec.lease_ttl) *message.mutable_lease_ttl() = to_duration(*spec.lease_ttl);
  message.mutable_command()->Assign(spec.command.begin(), spec.command.end());
  message.set_bypass_entrypoint(spec.bypass_entrypoint);
  message.set_cpu_limit(spec.cpu_limit);
  message.set_memory_limit(spec.memory_limit);
  message.set_disk_limit(spec.disk_limit);
  message.set_gpus(spec.gpus);
  return request;
}

v1::CreateExecRequest to_request(const std::string& sandbox_id, const Command& command) {
  v1::CreateExecRequest request;
  request.set_sandbox_id(sandbox_id);
  request.mutable_command()->Assign(command.args.begin(), command.args.end());
  request.set_cwd(command.cwd);
  request.mutable_env_overrides()->insert(command.env.begin(), command.env.end());
  request.set_exec_id(command.exec_id);
  request.set_user(command.user);
  if (command.command_timeout.count() != 0) {
    *request.mutable_timeout() = to_duration(command.command_timeout);
  }
  request.set_stdin(command.takes_input || command.input);
  if (command.terminal) {
    v1::Terminal& terminal = *request.mutable_terminal();
    terminal.mutable_size()->set_rows(command.terminal->rows);
    terminal.mutable_size()->set_columns(command.terminal->columns);
    terminal.set_term(command.terminal->term);
  }
  request.set_container(command.container);
  return request;
}

SandboxInfo from_message(const v1::SandboxHandle& sandbox) {
  SandboxInfo info{.id = sandbox.sandbox_id(),
                   .state = static_cast<SandboxState>(sandbox.state()),
                   .last_event_sequence = sandbox.last_event_sequence(),
                   .image = sandbox.image(),
                   .labels = from_map(sandbox.labels()),
                   .error_code = sandbox.error_code(),
                   .error_message = sandbox.error_message(),
                   .warnings = from_list(sandbox.warnings()),
                   .isolation_problem = sandbox.isolation_problem(),
                   .isolation_unverified = sandbox.isolation_unverified(),
                   .is_paused = sandbox.paused(),
                   .restart_count = sandbox.restart_count(),
                   .last_exit = sandbox.last_exit(),
                   .mounts = parts_of<Mount>(sandbox.mounts()),
                   .copies = parts_of<Copy>(sandbox.copies()),
                   .ports = parts_of<Port>(sandbox.ports()),
                   .services = parts_of<ServiceInfo>(sandbox.companions()),
                   .builtin_resources = parts_of<BuiltinResource>(sandbox.builtin_resources())};
  if (sandbox.has_lease_ttl()) info.lease_ttl = from_duration(sandbox.lease_ttl());
  if (sandbox.has_created_at()) info.created_at = from_timestamp(sandbox.created_at());
  if (sandbox.has_state_changed_at())
    info.state_changed_at = from_timestamp(sandbox.state_changed_at());
  return info;
}

SandboxStats from_message(const v1::SandboxStats& stats) {
  SandboxStats measured{.containers = parts_of<ContainerStats>(stats.containers())};
  if (stats.has_time()) measured.time = from_timestamp(stats.time());
  return measured;
}

ExecInfo from_message(const v1::ExecStatus& exec) {
  ExecInfo info{.id = exec.exec_id(),
                .sandbox_id = exec.sandbox_id(),
                .state = static_cast<ExecState>(exec.state()),
                .args = from_list(exec.command()),
                .cwd = exec.cwd(),
                .env = from_map(exec.env_overrides()),
                .user = exec.user(),
                .container = exec.container(),
                .command_timeout = from_duration(exec.timeout()),
                .exit_code = exec.exit_code(),
                .error_code = exec.error_code(),
                .error = exec.error(),
                .last_event_sequence = exec.last_event_sequence(),
                .is_truncated = exec.output_truncated(),
                .is_cancel_requested = exec.cancel_requested(),
                .takes_input = exec.stdin(),
                .has_terminal = exec.tty()};
  if (exec.has_started_at()) info.started_at = from_timestamp(exec.started_at());
  if (exec.has_ended_at()) info.ended_at = from_timestamp(exec.ended_at());
  if (exec.has_usage()) {
    info.usage = ExecUsage{.user_cpu = from_duration(exec.usage().user_cpu()),
                           .system_cpu = from_duration(exec.usage().system_cpu()),
                           .peak_memory_bytes = exec.usage().peak_memory_bytes()};
  }
  return info;
}

Event from_message(const v1::SandboxEvent& message) {
  Event event{.sandbox_id = message.sandbox_id(),
              .sequence = message.sequence(),
              .type = static_cast<EventType>(message.event_type()),
              .sandbox_state = static_cast<SandboxState>(message.sandbox_state()),
              .is_replay = message.replay()};
  if (message.has_occurred_at()) event.occurred_at = from_timestamp(message.occurred_at());
  if (message.has_sandbox_phase()) {
    const v1::SandboxPhaseDetails& phase = message.sandbox_phase();
    event.phase = PhaseDetails{.phase = phase.phase(),
                               .reason = phase.reason(),
                               .error_code = phase.error_code(),
                               .error_message = phase.error_message()};
  }
  if (message.has_exec()) {
    const v1::ExecEventDetails& exec = message.exec();
    event.exec = ExecDetails{.exec_id = exec.exec_id(),
                             .exit_code = exec.exit_code(),
                             .state = static_cast<ExecState>(exec.exec_state()),
                             .error_code = exec.error_code(),
                             .error_message = exec.error_message()};
  }
  if (message.has_companion_container()) {
    const v1::CompanionContainerEventDetails& companion = message.companion_container();
    event.service = ServiceDetails{.name = companion.name(),
                                   .error_code = companion.error_code(),
                                   .error_message = companion.error_message()};
  }
  return event;
}

EventMessage from_message(const v1::SubscribeEventsResponse& response) {
  EventMessage message{.cursor = response.cursor(),
                       .is_caught_up = response.caught_up(),
                       .has_gap = response.events_missing()};
  if (response.has_event()) message.event = from_message(response.event());
  return message;
}

CommandResult result_of(const v1::ExecStatus& exec) {
  return {.exec_id = exec.exec_id(),
          .state = static_cast<ExecState>(exec.state()),
          .exit_code = exec.exit_code(),
          .error_code = exec.error_code(),
          .error = exec.error(),
          .is_truncated = exec.output_truncated()};
}

std::string to_string(SandboxState state) {
  const int number = static_cast<int>(state);
  return enumerator_text(v1::SandboxState_Name(number), "SANDBOX_STATE_", number);
}

std::string to_string(ExecState state) {
  const int number = static_cast<int>(state);
  return enumerator_text(v1::ExecState_Name(number), "EXEC_STATE_", number);
}

std::string to_string(EventType type) {
  const int number = static_cast<int>(type);
  return enumerator_text(v1::EventType_Name(number), "EVENT_TYPE_", number);
}

Command shell(std::string line) {
  return {.args = {"sh", "-c", std::move(line)}};
}

}  // namespace agbox::sdk
