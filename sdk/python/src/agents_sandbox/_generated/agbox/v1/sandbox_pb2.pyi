import datetime

from agents_sandbox._generated.agbox.v1 import spec_pb2 as _spec_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SandboxState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SANDBOX_STATE_UNSPECIFIED: _ClassVar[SandboxState]
    SANDBOX_STATE_PENDING: _ClassVar[SandboxState]
    SANDBOX_STATE_READY: _ClassVar[SandboxState]
    SANDBOX_STATE_FAILED: _ClassVar[SandboxState]
    SANDBOX_STATE_STOPPED: _ClassVar[SandboxState]
    SANDBOX_STATE_DELETING: _ClassVar[SandboxState]
    SANDBOX_STATE_DELETED: _ClassVar[SandboxState]

class CompanionRole(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COMPANION_ROLE_UNSPECIFIED: _ClassVar[CompanionRole]
    COMPANION_ROLE_REQUIRED_SERVICE: _ClassVar[CompanionRole]
    COMPANION_ROLE_OPTIONAL_SERVICE: _ClassVar[CompanionRole]
    COMPANION_ROLE_COMPANION: _ClassVar[CompanionRole]

class CompanionState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COMPANION_STATE_UNSPECIFIED: _ClassVar[CompanionState]
    COMPANION_STATE_STARTING: _ClassVar[CompanionState]
    COMPANION_STATE_READY: _ClassVar[CompanionState]
    COMPANION_STATE_FAILED: _ClassVar[CompanionState]
    COMPANION_STATE_STOPPED: _ClassVar[CompanionState]
SANDBOX_STATE_UNSPECIFIED: SandboxState
SANDBOX_STATE_PENDING: SandboxState
SANDBOX_STATE_READY: SandboxState
SANDBOX_STATE_FAILED: SandboxState
SANDBOX_STATE_STOPPED: SandboxState
SANDBOX_STATE_DELETING: SandboxState
SANDBOX_STATE_DELETED: SandboxState
COMPANION_ROLE_UNSPECIFIED: CompanionRole
COMPANION_ROLE_REQUIRED_SERVICE: CompanionRole
COMPANION_ROLE_OPTIONAL_SERVICE: CompanionRole
COMPANION_ROLE_COMPANION: CompanionRole
COMPANION_STATE_UNSPECIFIED: CompanionState
COMPANION_STATE_STARTING: CompanionState
COMPANION_STATE_READY: CompanionState
COMPANION_STATE_FAILED: CompanionState
COMPANION_STATE_STOPPED: CompanionState

class BuiltinResource(_message.Message):
    __slots__ = ("tool", "id", "source", "target", "writable", "socket", "shadow_copy")
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    WRITABLE_FIELD_NUMBER: _ClassVar[int]
    SOCKET_FIELD_NUMBER: _ClassVar[int]
    SHADOW_COPY_FIELD_NUMBER: _ClassVar[int]
    tool: str
    id: str
    source: str
    target: str
    writable: bool
    socket: bool
    shadow_copy: bool
    def __init__(self, tool: _Optional[str] = ..., id: _Optional[str] = ..., source: _Optional[str] = ..., target: _Optional[str] = ..., writable: bool = ..., socket: bool = ..., shadow_copy: bool = ...) -> None: ...

class CompanionStatus(_message.Message):
    __slots__ = ("name", "role", "image", "state", "health", "restart_count", "last_exit", "error_code", "error_message")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    RESTART_COUNT_FIELD_NUMBER: _ClassVar[int]
    LAST_EXIT_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    name: str
    role: CompanionRole
    image: str
    state: CompanionState
    health: str
    restart_count: int
    last_exit: str
    error_code: str
    error_message: str
    def __init__(self, name: _Optional[str] = ..., role: _Optional[_Union[CompanionRole, str]] = ..., image: _Optional[str] = ..., state: _Optional[_Union[CompanionState, str]] = ..., health: _Optional[str] = ..., restart_count: _Optional[int] = ..., last_exit: _Optional[str] = ..., error_code: _Optional[str] = ..., error_message: _Optional[str] = ...) -> None: ...

class SandboxHandle(_message.Message):
    __slots__ = ("sandbox_id", "state", "last_event_sequence", "companion_containers", "labels", "created_at", "image", "error_code", "error_message", "state_changed_at", "isolation_problem", "paused", "restart_count", "last_exit", "isolation_unverified", "mounts", "copies", "builtin_resources", "ports", "companions", "lease_ttl", "warnings")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    LAST_EVENT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    COMPANION_CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    STATE_CHANGED_AT_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_PROBLEM_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    RESTART_COUNT_FIELD_NUMBER: _ClassVar[int]
    LAST_EXIT_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_UNVERIFIED_FIELD_NUMBER: _ClassVar[int]
    MOUNTS_FIELD_NUMBER: _ClassVar[int]
    COPIES_FIELD_NUMBER: _ClassVar[int]
    BUILTIN_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    PORTS_FIELD_NUMBER: _ClassVar[int]
    COMPANIONS_FIELD_NUMBER: _ClassVar[int]
    LEASE_TTL_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    state: SandboxState
    last_event_sequence: int
    companion_containers: _containers.RepeatedCompositeFieldContainer[_spec_pb2.CompanionContainerSpec]
    labels: _containers.ScalarMap[str, str]
    created_at: _timestamp_pb2.Timestamp
    image: str
    error_code: str
    error_message: str
    state_changed_at: _timestamp_pb2.Timestamp
    isolation_problem: str
    paused: bool
    restart_count: int
    last_exit: str
    isolation_unverified: str
    mounts: _containers.RepeatedCompositeFieldContainer[_spec_pb2.MountSpec]
    copies: _containers.RepeatedCompositeFieldContainer[_spec_pb2.CopySpec]
    builtin_resources: _containers.RepeatedCompositeFieldContainer[BuiltinResource]
    ports: _containers.RepeatedCompositeFieldContainer[_spec_pb2.PortMapping]
    companions: _containers.RepeatedCompositeFieldContainer[CompanionStatus]
    lease_ttl: _duration_pb2.Duration
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, sandbox_id: _Optional[str] = ..., state: _Optional[_Union[SandboxState, str]] = ..., last_event_sequence: _Optional[int] = ..., companion_containers: _Optional[_Iterable[_Union[_spec_pb2.CompanionContainerSpec, _Mapping]]] = ..., labels: _Optional[_Mapping[str, str]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., image: _Optional[str] = ..., error_code: _Optional[str] = ..., error_message: _Optional[str] = ..., state_changed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., isolation_problem: _Optional[str] = ..., paused: bool = ..., restart_count: _Optional[int] = ..., last_exit: _Optional[str] = ..., isolation_unverified: _Optional[str] = ..., mounts: _Optional[_Iterable[_Union[_spec_pb2.MountSpec, _Mapping]]] = ..., copies: _Optional[_Iterable[_Union[_spec_pb2.CopySpec, _Mapping]]] = ..., builtin_resources: _Optional[_Iterable[_Union[BuiltinResource, _Mapping]]] = ..., ports: _Optional[_Iterable[_Union[_spec_pb2.PortMapping, _Mapping]]] = ..., companions: _Optional[_Iterable[_Union[CompanionStatus, _Mapping]]] = ..., lease_ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., warnings: _Optional[_Iterable[str]] = ...) -> None: ...
