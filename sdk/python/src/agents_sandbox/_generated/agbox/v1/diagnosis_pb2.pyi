from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FindingVerdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FINDING_VERDICT_UNSPECIFIED: _ClassVar[FindingVerdict]
    FINDING_VERDICT_OK: _ClassVar[FindingVerdict]
    FINDING_VERDICT_WARNING: _ClassVar[FindingVerdict]
    FINDING_VERDICT_BROKEN: _ClassVar[FindingVerdict]
    FINDING_VERDICT_UNKNOWN: _ClassVar[FindingVerdict]
FINDING_VERDICT_UNSPECIFIED: FindingVerdict
FINDING_VERDICT_OK: FindingVerdict
FINDING_VERDICT_WARNING: FindingVerdict
FINDING_VERDICT_BROKEN: FindingVerdict
FINDING_VERDICT_UNKNOWN: FindingVerdict

class Finding(_message.Message):
    __slots__ = ("check", "verdict", "sentence", "remedy")
    CHECK_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    SENTENCE_FIELD_NUMBER: _ClassVar[int]
    REMEDY_FIELD_NUMBER: _ClassVar[int]
    check: str
    verdict: FindingVerdict
    sentence: str
    remedy: str
    def __init__(self, check: _Optional[str] = ..., verdict: _Optional[_Union[FindingVerdict, str]] = ..., sentence: _Optional[str] = ..., remedy: _Optional[str] = ...) -> None: ...
