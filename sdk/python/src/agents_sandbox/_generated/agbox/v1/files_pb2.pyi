from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CopyPlacement(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COPY_PLACEMENT_UNSPECIFIED: _ClassVar[CopyPlacement]
    COPY_PLACEMENT_ROOT: _ClassVar[CopyPlacement]
    COPY_PLACEMENT_CONTENT: _ClassVar[CopyPlacement]
COPY_PLACEMENT_UNSPECIFIED: CopyPlacement
COPY_PLACEMENT_ROOT: CopyPlacement
COPY_PLACEMENT_CONTENT: CopyPlacement

class CopyInRequest(_message.Message):
    __slots__ = ("target", "data")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    target: CopyInTarget
    data: bytes
    def __init__(self, target: _Optional[_Union[CopyInTarget, _Mapping]] = ..., data: _Optional[bytes] = ...) -> None: ...

class CopyInTarget(_message.Message):
    __slots__ = ("sandbox_id", "path", "placement", "as_root")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    AS_ROOT_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    path: str
    placement: CopyPlacement
    as_root: bool
    def __init__(self, sandbox_id: _Optional[str] = ..., path: _Optional[str] = ..., placement: _Optional[_Union[CopyPlacement, str]] = ..., as_root: bool = ...) -> None: ...

class CopyInResponse(_message.Message):
    __slots__ = ("entries", "bytes")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    entries: int
    bytes: int
    def __init__(self, entries: _Optional[int] = ..., bytes: _Optional[int] = ...) -> None: ...

class CopyOutRequest(_message.Message):
    __slots__ = ("sandbox_id", "path", "as_root")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    AS_ROOT_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    path: str
    as_root: bool
    def __init__(self, sandbox_id: _Optional[str] = ..., path: _Optional[str] = ..., as_root: bool = ...) -> None: ...

class CopyOutResponse(_message.Message):
    __slots__ = ("data", "summary")
    DATA_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    summary: CopySummary
    def __init__(self, data: _Optional[bytes] = ..., summary: _Optional[_Union[CopySummary, _Mapping]] = ...) -> None: ...

class CopySummary(_message.Message):
    __slots__ = ("entries", "bytes", "notes", "first_note")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    FIRST_NOTE_FIELD_NUMBER: _ClassVar[int]
    entries: int
    bytes: int
    notes: int
    first_note: str
    def __init__(self, entries: _Optional[int] = ..., bytes: _Optional[int] = ..., notes: _Optional[int] = ..., first_note: _Optional[str] = ...) -> None: ...
