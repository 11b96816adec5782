# SPDX-License-Identifier: Apache-2.0
"""Values that calls take and return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum


class _OpenEnum(IntEnum):
    """A newer daemon may send numbers that this version has no name for."""

    @classmethod
    def _missing_(cls, value: object) -> _OpenEnum | None:
        if not isinstance(value, int):
            return None
        member = int.__new__(cls, value)
        member._name_ = f"UNKNOWN_{value}"
        member._value_ = value
        return member


class SandboxState(_OpenEnum):
    UNSPECIFIED = 0
    PENDING = 1
    READY = 2
    FAILED = 3
    STOPPED = 4
    DELETING = 5
    DELETED = 6


class SandboxEventType(_OpenEnum):
    UNSPECIFIED = 0
    SANDBOX_ACCEPTED = 1
    SANDBOX_PREPARING = 2
    SANDBOX_READY = 3
    SANDBOX_FAILED = 4
    SANDBOX_STOP_REQUESTED = 5
    SANDBOX_STOPPED = 6
    SANDBOX_DELETE_REQUESTED = 7
    SANDBOX_DELETED = 8
    EXEC_STARTED = 9
    EXEC_FINISHED = 10
    EXEC_FAILED = 11
    EXEC_CANCELLED = 12
    COMPANION_CONTAINER_READY = 13
    COMPANION_CONTAINER_FAILED = 14


class ExecState(_OpenEnum):
    UNSPECIFIED = 0
    RUNNING = 1
    FINISHED = 2
    FAILED = 3
    CANCELLED = 4

    @property
    def is_terminal(self) -> bool:
        return self in (ExecState.FINISHED, ExecState.FAILED, ExecState.CANCELLED)


@dataclass(frozen=True)
class PingInfo:
    version: str
    daemon: str


@dataclass(frozen=True)
class MountSpec:
    source: str
    target: str
    writable: bool = False


@dataclass(frozen=True)
class CopySpec:
    source: str
    target: str
    exclude_patterns: Sequence[str] = ()


@dataclass(frozen=True)
class PortMapping:
    container_port: int
    host_port: int
    protocol: str = "tcp"


@dataclass(frozen=True)
class HealthcheckConfig:
    test: Sequence[str]
    interval: timedelta | None = None
    timeout: timedelta | None = None
    retries: int | None = None
    start_period: timedelta | None = None
    start_interval: timedelta | None = None


@dataclass(frozen=True)
class CompanionContainerSpec:
    name: str
    image: str
    envs: Mapping[str, str] = field(default_factory=dict)
    healthcheck: HealthcheckConfig | None = None
    command: Sequence[str] = ()
    post_start_on_primary: Sequence[str] = ()
    cpu_limit: str = ""
    memory_limit: str = ""
    disk_limit: str = ""


@dataclass(frozen=True)
class SandboxHandle:
    sandbox_id: str
    state: SandboxState
    last_event_sequence: int
    companion_containers: tuple[CompanionContainerSpec, ...]
    labels: Mapping[str, str]
    created_at: datetime | None
    image: str | None
    error_code: str | None
    error_message: str | None
    state_changed_at: datetime | None


@dataclass(frozen=True)
class ExecHandle:
    exec_id: str
    sandbox_id: str
    state: ExecState
    command: tuple[str, ...]
    cwd: str
    env_overrides: Mapping[str, str]
    exit_code: int | None
    error: str | None
    last_event_sequence: int
    stdout_log_path: str | None = None
    stderr_log_path: str | None = None


@dataclass(frozen=True)
class DeleteSandboxesResult:
    deleted_sandbox_ids: tuple[str, ...]
    deleted_count: int


@dataclass(frozen=True)
class SandboxPhaseDetails:
    phase: str | None
    error_code: str | None
    error_message: str | None
    reason: str | None


@dataclass(frozen=True)
class ExecEventDetails:
    exec_id: str
    exit_code: int | None
    exec_state: ExecState
    error_code: str | None
    error_message: str | None


@dataclass(frozen=True)
class CompanionContainerEventDetails:
    name: str
    error_code: str | None
    error_message: str | None


@dataclass(frozen=True)
class SandboxEvent:
    event_id: str
    sequence: int
    sandbox_id: str
    event_type: SandboxEventType
    occurred_at: datetime
    replay: bool
    snapshot: bool
    sandbox_state: SandboxState | None
    sandbox_phase: SandboxPhaseDetails | None
    exec: ExecEventDetails | None
    companion_container: CompanionContainerEventDetails | None


@dataclass(frozen=True)
class OutputChunk:
    """What a command printed. `stream` is "stdout" or "stderr"."""

    stream: str
    data: bytes

    @property
    def text(self) -> str:
        """A character may be split between two chunks: decode their concatenation if that matters."""
        return self.data.decode(errors="replace")


@dataclass(frozen=True)
class RunResult:
    """How a command ended, and what it printed. `exit_code` is None if it has none: it was cancelled, or lost with its
    container."""

    exec_id: str
    state: ExecState
    exit_code: int | None
    stdout_bytes: bytes = field(repr=False)
    stderr_bytes: bytes = field(repr=False)
    error_code: str | None = None
    error: str | None = None
    output_truncated: bool = False

    @property
    def stdout(self) -> str:
        return self.stdout_bytes.decode(errors="replace")

    @property
    def stderr(self) -> str:
        return self.stderr_bytes.decode(errors="replace")

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    @property
    def timed_out(self) -> bool:
        """It was ended because its `command_timeout` had passed."""
        return self.error_code == "TIMEOUT"


@dataclass(frozen=True)
class CopyResult:
    """`notes` entries were left out, such as sockets, or changed while they were read; `first_note` is the first."""

    entries: int
    bytes: int
    notes: int = 0
    first_note: str | None = None
