import datetime

from agents_sandbox._generated.agbox.v1 import diagnosis_pb2 as _diagnosis_pb2
from agents_sandbox._generated.agbox.v1 import event_pb2 as _event_pb2
from agents_sandbox._generated.agbox.v1 import exec_pb2 as _exec_pb2
from agents_sandbox._generated.agbox.v1 import files_pb2 as _files_pb2
from agents_sandbox._generated.agbox.v1 import sandbox_pb2 as _sandbox_pb2
from agents_sandbox._generated.agbox.v1 import spec_pb2 as _spec_pb2
from agents_sandbox._generated.agbox.v1 import stats_pb2 as _stats_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EventsStart(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVENTS_START_UNSPECIFIED: _ClassVar[EventsStart]
    EVENTS_START_NOW: _ClassVar[EventsStart]
    EVENTS_START_OLDEST: _ClassVar[EventsStart]
EVENTS_START_UNSPECIFIED: EventsStart
EVENTS_START_NOW: EventsStart
EVENTS_START_OLDEST: EventsStart

class PingRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PingResponse(_message.Message):
    __slots__ = ("version", "daemon", "features", "instance_id", "engine", "isolation_shortcoming", "isolation_repairs", "isolation_last_repair", "limits_shortcoming")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DAEMON_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_SHORTCOMING_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_REPAIRS_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_LAST_REPAIR_FIELD_NUMBER: _ClassVar[int]
    LIMITS_SHORTCOMING_FIELD_NUMBER: _ClassVar[int]
    version: str
    daemon: str
    features: _containers.RepeatedScalarFieldContainer[str]
    instance_id: str
    engine: str
    isolation_shortcoming: str
    isolation_repairs: int
    isolation_last_repair: str
    limits_shortcoming: str
    def __init__(self, version: _Optional[str] = ..., daemon: _Optional[str] = ..., features: _Optional[_Iterable[str]] = ..., instance_id: _Optional[str] = ..., engine: _Optional[str] = ..., isolation_shortcoming: _Optional[str] = ..., isolation_repairs: _Optional[int] = ..., isolation_last_repair: _Optional[str] = ..., limits_shortcoming: _Optional[str] = ...) -> None: ...

class CreateSandboxRequest(_message.Message):
    __slots__ = ("create_spec", "sandbox_id", "config_yaml")
    CREATE_SPEC_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    CONFIG_YAML_FIELD_NUMBER: _ClassVar[int]
    create_spec: _spec_pb2.CreateSpec
    sandbox_id: str
    config_yaml: bytes
    def __init__(self, create_spec: _Optional[_Union[_spec_pb2.CreateSpec, _Mapping]] = ..., sandbox_id: _Optional[str] = ..., config_yaml: _Optional[bytes] = ...) -> None: ...

class CreateSandboxResponse(_message.Message):
    __slots__ = ("sandbox",)
    SANDBOX_FIELD_NUMBER: _ClassVar[int]
    sandbox: _sandbox_pb2.SandboxHandle
    def __init__(self, sandbox: _Optional[_Union[_sandbox_pb2.SandboxHandle, _Mapping]] = ...) -> None: ...

class GetSandboxRequest(_message.Message):
    __slots__ = ("sandbox_id",)
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    def __init__(self, sandbox_id: _Optional[str] = ...) -> None: ...

class GetSandboxResponse(_message.Message):
    __slots__ = ("sandbox",)
    SANDBOX_FIELD_NUMBER: _ClassVar[int]
    sandbox: _sandbox_pb2.SandboxHandle
    def __init__(self, sandbox: _Optional[_Union[_sandbox_pb2.SandboxHandle, _Mapping]] = ...) -> None: ...

class ListSandboxesRequest(_message.Message):
    __slots__ = ("include_deleted", "label_selector", "page_size", "page_token")
    class LabelSelectorEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    INCLUDE_DELETED_FIELD_NUMBER: _ClassVar[int]
    LABEL_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    include_deleted: bool
    label_selector: _containers.ScalarMap[str, str]
    page_size: int
    page_token: str
    def __init__(self, include_deleted: bool = ..., label_selector: _Optional[_Mapping[str, str]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListSandboxesResponse(_message.Message):
    __slots__ = ("sandboxes", "next_page_token")
    SANDBOXES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    sandboxes: _containers.RepeatedCompositeFieldContainer[_sandbox_pb2.SandboxHandle]
    next_page_token: str
    def __init__(self, sandboxes: _Optional[_Iterable[_Union[_sandbox_pb2.SandboxHandle, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ResumeSandboxRequest(_message.Message):
    __slots__ = ("sandbox_id",)
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    def __init__(self, sandbox_id: _Optional[str] = ...) -> None: ...

class StopSandboxRequest(_message.Message):
    __slots__ = ("sandbox_id",)
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    def __init__(self, sandbox_id: _Optional[str] = ...) -> None: ...

class DeleteSandboxRequest(_message.Message):
    __slots__ = ("sandbox_id",)
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    def __init__(self, sandbox_id: _Optional[str] = ...) -> None: ...

class DeleteSandboxesRequest(_message.Message):
    __slots__ = ("label_selector",)
    class LabelSelectorEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    LABEL_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    label_selector: _containers.ScalarMap[str, str]
    def __init__(self, label_selector: _Optional[_Mapping[str, str]] = ...) -> None: ...

class DeleteSandboxesResponse(_message.Message):
    __slots__ = ("deleted_sandbox_ids", "deleted_count")
    DELETED_SANDBOX_IDS_FIELD_NUMBER: _ClassVar[int]
    DELETED_COUNT_FIELD_NUMBER: _ClassVar[int]
    deleted_sandbox_ids: _containers.RepeatedScalarFieldContainer[str]
    deleted_count: int
    def __init__(self, deleted_sandbox_ids: _Optional[_Iterable[str]] = ..., deleted_count: _Optional[int] = ...) -> None: ...

class AcceptedResponse(_message.Message):
    __slots__ = ("accepted",)
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    accepted: bool
    def __init__(self, accepted: bool = ...) -> None: ...

class HoldSandboxRequest(_message.Message):
    __slots__ = ("sandbox_id",)
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    def __init__(self, sandbox_id: _Optional[str] = ...) -> None: ...

class HoldSandboxResponse(_message.Message):
    __slots__ = ("lease_ttl",)
    LEASE_TTL_FIELD_NUMBER: _ClassVar[int]
    lease_ttl: _duration_pb2.Duration
    def __init__(self, lease_ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class SubscribeSandboxEventsRequest(_message.Message):
    __slots__ = ("sandbox_id", "from_sequence", "include_current_snapshot")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_CURRENT_SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    from_sequence: int
    include_current_snapshot: bool
    def __init__(self, sandbox_id: _Optional[str] = ..., from_sequence: _Optional[int] = ..., include_current_snapshot: bool = ...) -> None: ...

class SubscribeEventsRequest(_message.Message):
    __slots__ = ("label_selector", "event_types", "start", "cursor")
    class LabelSelectorEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    LABEL_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    EVENT_TYPES_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    label_selector: _containers.ScalarMap[str, str]
    event_types: _containers.RepeatedScalarFieldContainer[_event_pb2.EventType]
    start: EventsStart
    cursor: str
    def __init__(self, label_selector: _Optional[_Mapping[str, str]] = ..., event_types: _Optional[_Iterable[_Union[_event_pb2.EventType, str]]] = ..., start: _Optional[_Union[EventsStart, str]] = ..., cursor: _Optional[str] = ...) -> None: ...

class SubscribeEventsResponse(_message.Message):
    __slots__ = ("cursor", "event", "caught_up", "events_missing")
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    CAUGHT_UP_FIELD_NUMBER: _ClassVar[int]
    EVENTS_MISSING_FIELD_NUMBER: _ClassVar[int]
    cursor: str
    event: _event_pb2.SandboxEvent
    caught_up: bool
    events_missing: bool
    def __init__(self, cursor: _Optional[str] = ..., event: _Optional[_Union[_event_pb2.SandboxEvent, _Mapping]] = ..., caught_up: bool = ..., events_missing: bool = ...) -> None: ...

class CreateExecRequest(_message.Message):
    __slots__ = ("sandbox_id", "command", "cwd", "env_overrides", "exec_id", "user", "timeout", "stdin", "terminal", "container")
    class EnvOverridesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    ENV_OVERRIDES_FIELD_NUMBER: _ClassVar[int]
    EXEC_ID_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    STDIN_FIELD_NUMBER: _ClassVar[int]
    TERMINAL_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    command: _containers.RepeatedScalarFieldContainer[str]
    cwd: str
    env_overrides: _containers.ScalarMap[str, str]
    exec_id: str
    user: str
    timeout: _duration_pb2.Duration
    stdin: bool
    terminal: _exec_pb2.Terminal
    container: str
    def __init__(self, sandbox_id: _Optional[str] = ..., command: _Optional[_Iterable[str]] = ..., cwd: _Optional[str] = ..., env_overrides: _Optional[_Mapping[str, str]] = ..., exec_id: _Optional[str] = ..., user: _Optional[str] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., stdin: bool = ..., terminal: _Optional[_Union[_exec_pb2.Terminal, _Mapping]] = ..., container: _Optional[str] = ...) -> None: ...

class CreateExecResponse(_message.Message):
    __slots__ = ("exec_id", "stdout_log_path", "stderr_log_path")
    EXEC_ID_FIELD_NUMBER: _ClassVar[int]
    STDOUT_LOG_PATH_FIELD_NUMBER: _ClassVar[int]
    STDERR_LOG_PATH_FIELD_NUMBER: _ClassVar[int]
    exec_id: str
    stdout_log_path: str
    stderr_log_path: str
    def __init__(self, exec_id: _Optional[str] = ..., stdout_log_path: _Optional[str] = ..., stderr_log_path: _Optional[str] = ...) -> None: ...

class CancelExecRequest(_message.Message):
    __slots__ = ("exec_id",)
    EXEC_ID_FIELD_NUMBER: _ClassVar[int]
    exec_id: str
    def __init__(self, exec_id: _Optional[str] = ...) -> None: ...

class GetExecRequest(_message.Message):
    __slots__ = ("exec_id",)
    EXEC_ID_FIELD_NUMBER: _ClassVar[int]
    exec_id: str
    def __init__(self, exec_id: _Optional[str] = ...) -> None: ...

class GetExecResponse(_message.Message):
    __slots__ = ("exec",)
    EXEC_FIELD_NUMBER: _ClassVar[int]
    exec: _exec_pb2.ExecStatus
    def __init__(self, exec: _Optional[_Union[_exec_pb2.ExecStatus, _Mapping]] = ...) -> None: ...

class ListActiveExecsRequest(_message.Message):
    __slots__ = ("sandbox_id", "page_size", "page_token")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    page_size: int
    page_token: str
    def __init__(self, sandbox_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListActiveExecsResponse(_message.Message):
    __slots__ = ("execs", "next_page_token")
    EXECS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    execs: _containers.RepeatedCompositeFieldContainer[_exec_pb2.ExecStatus]
    next_page_token: str
    def __init__(self, execs: _Optional[_Iterable[_Union[_exec_pb2.ExecStatus, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListExecsRequest(_message.Message):
    __slots__ = ("sandbox_id", "page_size", "page_token")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    page_size: int
    page_token: str
    def __init__(self, sandbox_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListExecsResponse(_message.Message):
    __slots__ = ("execs", "next_page_token")
    EXECS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    execs: _containers.RepeatedCompositeFieldContainer[_exec_pb2.ExecStatus]
    next_page_token: str
    def __init__(self, execs: _Optional[_Iterable[_Union[_exec_pb2.ExecStatus, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ReadExecOutputRequest(_message.Message):
    __slots__ = ("exec_id", "stream", "offset", "follow")
    EXEC_ID_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    exec_id: str
    stream: _exec_pb2.OutputStream
    offset: int
    follow: bool
    def __init__(self, exec_id: _Optional[str] = ..., stream: _Optional[_Union[_exec_pb2.OutputStream, str]] = ..., offset: _Optional[int] = ..., follow: bool = ...) -> None: ...

class ReadExecOutputResponse(_message.Message):
    __slots__ = ("offset", "data")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    offset: int
    data: bytes
    def __init__(self, offset: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class ReadContainerLogsRequest(_message.Message):
    __slots__ = ("sandbox_id", "container", "follow", "since", "tail", "stream", "cursor")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    TAIL_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    container: str
    follow: bool
    since: _timestamp_pb2.Timestamp
    tail: int
    stream: _exec_pb2.OutputStream
    cursor: str
    def __init__(self, sandbox_id: _Optional[str] = ..., container: _Optional[str] = ..., follow: bool = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., tail: _Optional[int] = ..., stream: _Optional[_Union[_exec_pb2.OutputStream, str]] = ..., cursor: _Optional[str] = ...) -> None: ...

class ReadContainerLogsResponse(_message.Message):
    __slots__ = ("stream", "data", "time", "cursor")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    stream: _exec_pb2.OutputStream
    data: bytes
    time: _timestamp_pb2.Timestamp
    cursor: str
    def __init__(self, stream: _Optional[_Union[_exec_pb2.OutputStream, str]] = ..., data: _Optional[bytes] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., cursor: _Optional[str] = ...) -> None: ...

class GetStatsRequest(_message.Message):
    __slots__ = ("sandbox_id",)
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    def __init__(self, sandbox_id: _Optional[str] = ...) -> None: ...

class GetStatsResponse(_message.Message):
    __slots__ = ("stats",)
    STATS_FIELD_NUMBER: _ClassVar[int]
    stats: _stats_pb2.SandboxStats
    def __init__(self, stats: _Optional[_Union[_stats_pb2.SandboxStats, _Mapping]] = ...) -> None: ...

class WatchStatsRequest(_message.Message):
    __slots__ = ("sandbox_id", "interval")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    interval: _duration_pb2.Duration
    def __init__(self, sandbox_id: _Optional[str] = ..., interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WatchStatsResponse(_message.Message):
    __slots__ = ("stats",)
    STATS_FIELD_NUMBER: _ClassVar[int]
    stats: _stats_pb2.SandboxStats
    def __init__(self, stats: _Optional[_Union[_stats_pb2.SandboxStats, _Mapping]] = ...) -> None: ...

class AttachExecRequest(_message.Message):
    __slots__ = ("start", "input", "end_input", "resize", "signal")
    START_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    END_INPUT_FIELD_NUMBER: _ClassVar[int]
    RESIZE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    start: AttachStart
    input: bytes
    end_input: AttachEndInput
    resize: _exec_pb2.TerminalSize
    signal: int
    def __init__(self, start: _Optional[_Union[AttachStart, _Mapping]] = ..., input: _Optional[bytes] = ..., end_input: _Optional[_Union[AttachEndInput, _Mapping]] = ..., resize: _Optional[_Union[_exec_pb2.TerminalSize, _Mapping]] = ..., signal: _Optional[int] = ...) -> None: ...

class AttachStart(_message.Message):
    __slots__ = ("exec_id", "write", "output", "stdout_offset", "stderr_offset")
    EXEC_ID_FIELD_NUMBER: _ClassVar[int]
    WRITE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    STDOUT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    STDERR_OFFSET_FIELD_NUMBER: _ClassVar[int]
    exec_id: str
    write: bool
    output: bool
    stdout_offset: int
    stderr_offset: int
    def __init__(self, exec_id: _Optional[str] = ..., write: bool = ..., output: bool = ..., stdout_offset: _Optional[int] = ..., stderr_offset: _Optional[int] = ...) -> None: ...

class AttachEndInput(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AttachExecResponse(_message.Message):
    __slots__ = ("attached", "output", "input_accepted", "input_stopped", "ended")
    ATTACHED_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    INPUT_ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    INPUT_STOPPED_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    attached: Attached
    output: AttachOutput
    input_accepted: int
    input_stopped: InputStopped
    ended: _exec_pb2.ExecStatus
    def __init__(self, attached: _Optional[_Union[Attached, _Mapping]] = ..., output: _Optional[_Union[AttachOutput, _Mapping]] = ..., input_accepted: _Optional[int] = ..., input_stopped: _Optional[_Union[InputStopped, _Mapping]] = ..., ended: _Optional[_Union[_exec_pb2.ExecStatus, _Mapping]] = ...) -> None: ...

class Attached(_message.Message):
    __slots__ = ("input_offset", "exec")
    INPUT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    EXEC_FIELD_NUMBER: _ClassVar[int]
    input_offset: int
    exec: _exec_pb2.ExecStatus
    def __init__(self, input_offset: _Optional[int] = ..., exec: _Optional[_Union[_exec_pb2.ExecStatus, _Mapping]] = ...) -> None: ...

class AttachOutput(_message.Message):
    __slots__ = ("stream", "offset", "data")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    stream: _exec_pb2.OutputStream
    offset: int
    data: bytes
    def __init__(self, stream: _Optional[_Union[_exec_pb2.OutputStream, str]] = ..., offset: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class InputStopped(_message.Message):
    __slots__ = ("reason", "message")
    class Reason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        REASON_UNSPECIFIED: _ClassVar[InputStopped.Reason]
        REASON_TAKEN_OVER: _ClassVar[InputStopped.Reason]
        REASON_CLOSED: _ClassVar[InputStopped.Reason]
    REASON_UNSPECIFIED: InputStopped.Reason
    REASON_TAKEN_OVER: InputStopped.Reason
    REASON_CLOSED: InputStopped.Reason
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    reason: InputStopped.Reason
    message: str
    def __init__(self, reason: _Optional[_Union[InputStopped.Reason, str]] = ..., message: _Optional[str] = ...) -> None: ...

class DiagnoseRequest(_message.Message):
    __slots__ = ("images",)
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    images: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, images: _Optional[_Iterable[str]] = ...) -> None: ...

class DiagnoseResponse(_message.Message):
    __slots__ = ("findings",)
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    findings: _containers.RepeatedCompositeFieldContainer[_diagnosis_pb2.Finding]
    def __init__(self, findings: _Optional[_Iterable[_Union[_diagnosis_pb2.Finding, _Mapping]]] = ...) -> None: ...
