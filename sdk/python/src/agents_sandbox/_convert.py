# SPDX-License-Identifier: Apache-2.0
"""Between messages of the API and the values of this package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from agents_sandbox._generated.agbox.v1 import event_pb2, exec_pb2, sandbox_pb2, spec_pb2
from agents_sandbox.types import (
    CompanionContainerEventDetails,
    CompanionContainerSpec,
    CopySpec,
    ExecEventDetails,
    ExecHandle,
    ExecState,
    HealthcheckConfig,
    MountSpec,
    PortMapping,
    RunResult,
    SandboxEvent,
    SandboxEventType,
    SandboxHandle,
    SandboxPhaseDetails,
    SandboxState,
)

_PROTOCOLS = {
    "tcp": spec_pb2.PORT_PROTOCOL_TCP,
    "udp": spec_pb2.PORT_PROTOCOL_UDP,
    "sctp": spec_pb2.PORT_PROTOCOL_SCTP,
}
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def duration_of(value: timedelta | None) -> Duration | None:
    """Negative ones too: the daemon rejects them, and names the field."""
    if value is None:
        return None
    duration = Duration()
    duration.FromTimedelta(value)
    return duration


def command_of(command: Sequence[str], name: str = "command") -> list[str]:
    if isinstance(command, (str, bytes)):
        raise TypeError(f"{name} must be a list of strings, not {type(command).__name__}")
    return list(command)


def create_spec(
    *,
    image: str | None,
    mounts: Iterable[MountSpec],
    copies: Iterable[CopySpec],
    ports: Iterable[PortMapping],
    builtin_tools: Iterable[str],
    command: Sequence[str] | None,
    companion_containers: Iterable[CompanionContainerSpec],
    labels: Mapping[str, str] | None,
    envs: Mapping[str, str] | None,
    idle_ttl: timedelta | None,
    cpu_limit: str,
    memory_limit: str,
    disk_limit: str,
    gpus: str,
    required_services: Iterable[CompanionContainerSpec] = (),
    optional_services: Iterable[CompanionContainerSpec] = (),
    bypass_entrypoint: bool = False,
) -> spec_pb2.CreateSpec:
    if command is not None:
        command = command_of(command)
        if not command:
            raise ValueError("command must not be empty; omit it for a sandbox without a command")
        if not all(command):
            raise ValueError("command must not have an empty string in it")
    return spec_pb2.CreateSpec(
        image=image,
        mounts=[spec_pb2.MountSpec(source=m.source, target=m.target, writable=m.writable) for m in mounts],
        copies=[
            spec_pb2.CopySpec(source=c.source, target=c.target, exclude_patterns=c.exclude_patterns)
            for c in copies
        ],
        ports=[_port(port) for port in ports],
        builtin_tools=builtin_tools,
        command=command,
        companion_containers=[_companion(companion) for companion in companion_containers],
        required_services=[_companion(service) for service in required_services],
        optional_services=[_companion(service) for service in optional_services],
        labels=labels,
        envs=envs,
        idle_ttl=duration_of(idle_ttl),
        cpu_limit=cpu_limit,
        memory_limit=memory_limit,
        disk_limit=disk_limit,
        gpus=gpus,
        bypass_entrypoint=bypass_entrypoint,
    )


def _port(port: PortMapping) -> spec_pb2.PortMapping:
    if port.protocol not in _PROTOCOLS:
        raise ValueError(f"protocol of a port must be tcp, udp or sctp, not {port.protocol!r}")
    return spec_pb2.PortMapping(
        container_port=port.container_port, host_port=port.host_port, protocol=_PROTOCOLS[port.protocol]
    )


def _companion(companion: CompanionContainerSpec) -> spec_pb2.CompanionContainerSpec:
    return spec_pb2.CompanionContainerSpec(
        name=companion.name,
        image=companion.image,
        envs=companion.envs,
        healthcheck=None if companion.healthcheck is None else _healthcheck(companion.healthcheck),
        post_start_on_primary=companion.post_start_on_primary,
        command=companion.command,
        cpu_limit=companion.cpu_limit,
        memory_limit=companion.memory_limit,
        disk_limit=companion.disk_limit,
    )


def _healthcheck(check: HealthcheckConfig) -> spec_pb2.HealthcheckConfig:
    return spec_pb2.HealthcheckConfig(
        test=check.test,
        interval=duration_of(check.interval),
        timeout=duration_of(check.timeout),
        retries=check.retries,
        start_period=duration_of(check.start_period),
        start_interval=duration_of(check.start_interval),
    )


def companion_spec(message: spec_pb2.CompanionContainerSpec) -> CompanionContainerSpec:
    check = None
    if message.HasField("healthcheck"):
        m = message.healthcheck
        check = HealthcheckConfig(
            test=tuple(m.test),
            interval=_timedelta(m.interval) if m.HasField("interval") else None,
            timeout=_timedelta(m.timeout) if m.HasField("timeout") else None,
            retries=m.retries or None,
            start_period=_timedelta(m.start_period) if m.HasField("start_period") else None,
            start_interval=_timedelta(m.start_interval) if m.HasField("start_interval") else None,
        )
    return CompanionContainerSpec(
        name=message.name,
        image=message.image,
        envs=dict(message.envs),
        healthcheck=check,
        command=tuple(message.command),
        post_start_on_primary=tuple(message.post_start_on_primary),
        cpu_limit=message.cpu_limit,
        memory_limit=message.memory_limit,
        disk_limit=message.disk_limit,
    )


def sandbox_handle(message: sandbox_pb2.SandboxHandle) -> SandboxHandle:
    return SandboxHandle(
        sandbox_id=message.sandbox_id,
        state=SandboxState(message.state),
        last_event_sequence=message.last_event_sequence,
        companion_containers=tuple(companion_spec(one) for one in message.companion_containers),
        labels=dict(message.labels),
        created_at=_time(message.created_at) if message.HasField("created_at") else None,
        image=message.image or None,
        error_code=message.error_code or None,
        error_message=message.error_message or None,
        state_changed_at=_time(message.state_changed_at) if message.HasField("state_changed_at") else None,
    )


def exec_handle(message: exec_pb2.ExecStatus) -> ExecHandle:
    state = ExecState(message.state)
    return ExecHandle(
        exec_id=message.exec_id,
        sandbox_id=message.sandbox_id,
        state=state,
        command=tuple(message.command),
        cwd=message.cwd,
        env_overrides=dict(message.env_overrides),
        exit_code=message.exit_code if state.is_terminal else None,
        error=message.error or None,
        last_event_sequence=message.last_event_sequence,
        stdout_log_path=message.stdout_log_path or None,
        stderr_log_path=message.stderr_log_path or None,
    )


def run_result(message: exec_pb2.ExecStatus, stdout: bytes, stderr: bytes) -> RunResult:
    state = ExecState(message.state)
    has_code = state is ExecState.FINISHED or (state is ExecState.FAILED and message.exit_code > 0)
    return RunResult(
        exec_id=message.exec_id,
        state=state,
        exit_code=message.exit_code if has_code else None,
        stdout_bytes=stdout,
        stderr_bytes=stderr,
        error_code=message.error_code or None,
        error=message.error or None,
        output_truncated=message.output_truncated,
    )


def sandbox_event(message: event_pb2.SandboxEvent) -> SandboxEvent:
    event_type = SandboxEventType(message.event_type)
    phase = execution = companion = None
    if message.HasField("sandbox_phase"):
        p = message.sandbox_phase
        phase = SandboxPhaseDetails(
            phase=p.phase or None,
            error_code=p.error_code or None,
            error_message=p.error_message or None,
            reason=p.reason or None,
        )
    elif message.HasField("exec"):
        e = message.exec
        has_code = event_type is SandboxEventType.EXEC_FINISHED or e.exit_code != 0
        execution = ExecEventDetails(
            exec_id=e.exec_id,
            exit_code=e.exit_code if has_code else None,
            exec_state=ExecState(e.exec_state),
            error_code=e.error_code or None,
            error_message=e.error_message or None,
        )
    elif message.HasField("companion_container"):
        c = message.companion_container
        companion = CompanionContainerEventDetails(
            name=c.name, error_code=c.error_code or None, error_message=c.error_message or None
        )
    return SandboxEvent(
        event_id=message.event_id,
        sequence=message.sequence,
        sandbox_id=message.sandbox_id,
        event_type=event_type,
        occurred_at=_time(message.occurred_at),
        replay=message.replay,
        snapshot=message.snapshot,
        sandbox_state=SandboxState(message.sandbox_state) if message.sandbox_state else None,
        sandbox_phase=phase,
        exec=execution,
        companion_container=companion,
    )


def _timedelta(message: Duration) -> timedelta:
    return timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)


def _time(message: Timestamp) -> datetime:
    return _EPOCH + timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)
