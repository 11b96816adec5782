import datetime

from agents_sandbox._generated.agbox.v1 import exec_pb2 as _exec_pb2
from agents_sandbox._generated.agbox.v1 import sandbox_pb2 as _sandbox_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EventType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVENT_TYPE_UNSPECIFIED: _ClassVar[EventType]
    SANDBOX_ACCEPTED: _ClassVar[EventType]
    SANDBOX_PREPARING: _ClassVar[EventType]
    SANDBOX_READY: _ClassVar[EventType]
    SANDBOX_FAILED: _ClassVar[EventType]
    SANDBOX_STOP_REQUESTED: _ClassVar[EventType]
    SANDBOX_STOPPED: _ClassVar[EventType]
    SANDBOX_DELETE_REQUESTED: _ClassVar[EventType]
    SANDBOX_DELETED: _ClassVar[EventType]
    EXEC_STARTED: _ClassVar[EventType]
    EXEC_FINISHED: _ClassVar[EventType]
    EXEC_FAILED: _ClassVar[EventType]
    EXEC_CANCELLED: _ClassVar[EventType]
    COMPANION_CONTAINER_READY: _ClassVar[EventType]
    COMPANION_CONTAINER_FAILED: _ClassVar[EventType]
    SANDBOX_SERVICE_READY: _ClassVar[EventType]
    SANDBOX_SERVICE_FAILED: _ClassVar[EventType]
EVENT_TYPE_UNSPECIFIED: EventType
SANDBOX_ACCEPTED: EventType
SANDBOX_PREPARING: EventType
SANDBOX_READY: EventType
SANDBOX_FAILED: EventType
SANDBOX_STOP_REQUESTED: EventType
SANDBOX_STOPPED: EventType
SANDBOX_DELETE_REQUESTED: EventType
SANDBOX_DELETED: EventType
EXEC_STARTED: EventType
EXEC_FINISHED: EventType
EXEC_FAILED: EventType
EXEC_CANCELLED: EventType
COMPANION_CONTAINER_READY: EventType
COMPANION_CONTAINER_FAILED: EventType
SANDBOX_SERVICE_READY: EventType
SANDBOX_SERVICE_FAILED: EventType

class SandboxPhaseDetails(_message.Message):
    __slots__ = ("phase", "error_code", "error_message", "reason")
    PHASE_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    phase: str
    error_code: str
    error_message: str
    reason: str
    def __init__(self, phase: _Optional[str] = ..., error_code: _Optional[str] = ..., error_message: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ExecEventDetails(_message.Message):
    __slots__ = ("exec_id", "exit_code", "exec_state", "error_code", "error_message")
    EXEC_ID_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    EXEC_STATE_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    exec_id: str
    exit_code: int
    exec_state: _exec_pb2.ExecState
    error_code: str
    error_message: str
    def __init__(self, exec_id: _Optional[str] = ..., exit_code: _Optional[int] = ..., exec_state: _Optional[_Union[_exec_pb2.ExecState, str]] = ..., error_code: _Optional[str] = ..., error_message: _Optional[str] = ...) -> None: ...

class CompanionContainerEventDetails(_message.Message):
    __slots__ = ("name", "error_code", "error_message")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    name: str
    error_code: str
    error_message: str
    def __init__(self, name: _Optional[str] = ..., error_code: _Optional[str] = ..., error_message: _Optional[str] = ...) -> None: ...

class SandboxEvent(_message.Message):
    __slots__ = ("event_id", "sequence", "sandbox_id", "event_type", "occurred_at", "replay", "snapshot", "sandbox_state", "sandbox_phase", "exec", "companion_container")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    OCCURRED_AT_FIELD_NUMBER: _ClassVar[int]
    REPLAY_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_STATE_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_PHASE_FIELD_NUMBER: _ClassVar[int]
    EXEC_FIELD_NUMBER: _ClassVar[int]
    COMPANION_CONTAINER_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    sequence: int
    sandbox_id: str
    event_type: EventType
    occurred_at: _timestamp_pb2.Timestamp
    replay: bool
    snapshot: bool
    sandbox_state: _sandbox_pb2.SandboxState
    sandbox_phase: SandboxPhaseDetails
    exec: ExecEventDetails
    companion_container: CompanionContainerEventDetails
    def __init__(self, event_id: _Optional[str] = ..., sequence: _Optional[int] = ..., sandbox_id: _Optional[str] = ..., event_type: _Optional[_Union[EventType, str]] = ..., occurred_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., replay: bool = ..., snapshot: bool = ..., sandbox_state: _Optional[_Union[_sandbox_pb2.SandboxState, str]] = ..., sandbox_phase: _Optional[_Union[SandboxPhaseDetails, _Mapping]] = ..., exec: _Optional[_Union[ExecEventDetails, _Mapping]] = ..., companion_container: _Optional[_Union[CompanionContainerEventDetails, _Mapping]] = ...) -> None: ...
