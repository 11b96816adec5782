import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SandboxStats(_message.Message):
    __slots__ = ("sandbox_id", "time", "containers")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    time: _timestamp_pb2.Timestamp
    containers: _containers.RepeatedCompositeFieldContainer[ContainerStats]
    def __init__(self, sandbox_id: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., containers: _Optional[_Iterable[_Union[ContainerStats, _Mapping]]] = ...) -> None: ...

class ContainerStats(_message.Message):
    __slots__ = ("name", "running", "cpu_time", "user_cpu", "system_cpu", "memory_bytes", "memory_limit_bytes", "memory_peak_bytes", "pids", "network_rx_bytes", "network_tx_bytes", "block_read_bytes", "block_write_bytes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    CPU_TIME_FIELD_NUMBER: _ClassVar[int]
    USER_CPU_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_CPU_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_PEAK_BYTES_FIELD_NUMBER: _ClassVar[int]
    PIDS_FIELD_NUMBER: _ClassVar[int]
    NETWORK_RX_BYTES_FIELD_NUMBER: _ClassVar[int]
    NETWORK_TX_BYTES_FIELD_NUMBER: _ClassVar[int]
    BLOCK_READ_BYTES_FIELD_NUMBER: _ClassVar[int]
    BLOCK_WRITE_BYTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    running: bool
    cpu_time: _duration_pb2.Duration
    user_cpu: _duration_pb2.Duration
    system_cpu: _duration_pb2.Duration
    memory_bytes: int
    memory_limit_bytes: int
    memory_peak_bytes: int
    pids: int
    network_rx_bytes: int
    network_tx_bytes: int
    block_read_bytes: int
    block_write_bytes: int
    def __init__(self, name: _Optional[str] = ..., running: bool = ..., cpu_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., user_cpu: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., system_cpu: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., memory_bytes: _Optional[int] = ..., memory_limit_bytes: _Optional[int] = ..., memory_peak_bytes: _Optional[int] = ..., pids: _Optional[int] = ..., network_rx_bytes: _Optional[int] = ..., network_tx_bytes: _Optional[int] = ..., block_read_bytes: _Optional[int] = ..., block_write_bytes: _Optional[int] = ...) -> None: ...
