import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PortProtocol(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PORT_PROTOCOL_TCP: _ClassVar[PortProtocol]
    PORT_PROTOCOL_UDP: _ClassVar[PortProtocol]
    PORT_PROTOCOL_SCTP: _ClassVar[PortProtocol]
PORT_PROTOCOL_TCP: PortProtocol
PORT_PROTOCOL_UDP: PortProtocol
PORT_PROTOCOL_SCTP: PortProtocol

class MountSpec(_message.Message):
    __slots__ = ("source", "target", "writable")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    WRITABLE_FIELD_NUMBER: _ClassVar[int]
    source: str
    target: str
    writable: bool
    def __init__(self, source: _Optional[str] = ..., target: _Optional[str] = ..., writable: bool = ...) -> None: ...

class CopySpec(_message.Message):
    __slots__ = ("source", "target", "exclude_patterns")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    EXCLUDE_PATTERNS_FIELD_NUMBER: _ClassVar[int]
    source: str
    target: str
    exclude_patterns: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, source: _Optional[str] = ..., target: _Optional[str] = ..., exclude_patterns: _Optional[_Iterable[str]] = ...) -> None: ...

class PortMapping(_message.Message):
    __slots__ = ("container_port", "host_port", "protocol")
    CONTAINER_PORT_FIELD_NUMBER: _ClassVar[int]
    HOST_PORT_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    container_port: int
    host_port: int
    protocol: PortProtocol
    def __init__(self, container_port: _Optional[int] = ..., host_port: _Optional[int] = ..., protocol: _Optional[_Union[PortProtocol, str]] = ...) -> None: ...

class HealthcheckConfig(_message.Message):
    __slots__ = ("test", "interval", "timeout", "retries", "start_period", "start_interval")
    TEST_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    RETRIES_FIELD_NUMBER: _ClassVar[int]
    START_PERIOD_FIELD_NUMBER: _ClassVar[int]
    START_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    test: _containers.RepeatedScalarFieldContainer[str]
    interval: _duration_pb2.Duration
    timeout: _duration_pb2.Duration
    retries: int
    start_period: _duration_pb2.Duration
    start_interval: _duration_pb2.Duration
    def __init__(self, test: _Optional[_Iterable[str]] = ..., interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., retries: _Optional[int] = ..., start_period: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., start_interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class CompanionContainerSpec(_message.Message):
    __slots__ = ("name", "image", "envs", "healthcheck", "post_start_on_primary", "command", "cpu_limit", "memory_limit", "disk_limit")
    class EnvsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    ENVS_FIELD_NUMBER: _ClassVar[int]
    HEALTHCHECK_FIELD_NUMBER: _ClassVar[int]
    POST_START_ON_PRIMARY_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    CPU_LIMIT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_LIMIT_FIELD_NUMBER: _ClassVar[int]
    DISK_LIMIT_FIELD_NUMBER: _ClassVar[int]
    name: str
    image: str
    envs: _containers.ScalarMap[str, str]
    healthcheck: HealthcheckConfig
    post_start_on_primary: _containers.RepeatedScalarFieldContainer[str]
    command: _containers.RepeatedScalarFieldContainer[str]
    cpu_limit: str
    memory_limit: str
    disk_limit: str
    def __init__(self, name: _Optional[str] = ..., image: _Optional[str] = ..., envs: _Optional[_Mapping[str, str]] = ..., healthcheck: _Optional[_Union[HealthcheckConfig, _Mapping]] = ..., post_start_on_primary: _Optional[_Iterable[str]] = ..., command: _Optional[_Iterable[str]] = ..., cpu_limit: _Optional[str] = ..., memory_limit: _Optional[str] = ..., disk_limit: _Optional[str] = ...) -> None: ...

class CreateSpec(_message.Message):
    __slots__ = ("image", "mounts", "copies", "builtin_tools", "companion_containers", "labels", "envs", "idle_ttl", "ports", "command", "cpu_limit", "memory_limit", "disk_limit", "gpus", "required_services", "optional_services", "bypass_entrypoint", "lease_ttl")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class EnvsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    MOUNTS_FIELD_NUMBER: _ClassVar[int]
    COPIES_FIELD_NUMBER: _ClassVar[int]
    BUILTIN_TOOLS_FIELD_NUMBER: _ClassVar[int]
    COMPANION_CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    ENVS_FIELD_NUMBER: _ClassVar[int]
    IDLE_TTL_FIELD_NUMBER: _ClassVar[int]
    PORTS_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    CPU_LIMIT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_LIMIT_FIELD_NUMBER: _ClassVar[int]
    DISK_LIMIT_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_SERVICES_FIELD_NUMBER: _ClassVar[int]
    OPTIONAL_SERVICES_FIELD_NUMBER: _ClassVar[int]
    BYPASS_ENTRYPOINT_FIELD_NUMBER: _ClassVar[int]
    LEASE_TTL_FIELD_NUMBER: _ClassVar[int]
    image: str
    mounts: _containers.RepeatedCompositeFieldContainer[MountSpec]
    copies: _containers.RepeatedCompositeFieldContainer[CopySpec]
    builtin_tools: _containers.RepeatedScalarFieldContainer[str]
    companion_containers: _containers.RepeatedCompositeFieldContainer[CompanionContainerSpec]
    labels: _containers.ScalarMap[str, str]
    envs: _containers.ScalarMap[str, str]
    idle_ttl: _duration_pb2.Duration
    ports: _containers.RepeatedCompositeFieldContainer[PortMapping]
    command: _containers.RepeatedScalarFieldContainer[str]
    cpu_limit: str
    memory_limit: str
    disk_limit: str
    gpus: str
    required_services: _containers.RepeatedCompositeFieldContainer[CompanionContainerSpec]
    optional_services: _containers.RepeatedCompositeFieldContainer[CompanionContainerSpec]
    bypass_entrypoint: bool
    lease_ttl: _duration_pb2.Duration
    def __init__(self, image: _Optional[str] = ..., mounts: _Optional[_Iterable[_Union[MountSpec, _Mapping]]] = ..., copies: _Optional[_Iterable[_Union[CopySpec, _Mapping]]] = ..., builtin_tools: _Optional[_Iterable[str]] = ..., companion_containers: _Optional[_Iterable[_Union[CompanionContainerSpec, _Mapping]]] = ..., labels: _Optional[_Mapping[str, str]] = ..., envs: _Optional[_Mapping[str, str]] = ..., idle_ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., ports: _Optional[_Iterable[_Union[PortMapping, _Mapping]]] = ..., command: _Optional[_Iterable[str]] = ..., cpu_limit: _Optional[str] = ..., memory_limit: _Optional[str] = ..., disk_limit: _Optional[str] = ..., gpus: _Optional[str] = ..., required_services: _Optional[_Iterable[_Union[CompanionContainerSpec, _Mapping]]] = ..., optional_services: _Optional[_Iterable[_Union[CompanionContainerSpec, _Mapping]]] = ..., bypass_entrypoint: bool = ..., lease_ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...
