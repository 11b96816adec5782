# SPDX-License-Identifier: Apache-2.0
"""Translates the status of a call into errors."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError

from agents_sandbox._generated.agbox.rpc import error_details_pb2
from agents_sandbox.errors import (
    DaemonTimeoutError,
    DaemonUnreachableError,
    ExecAlreadyTerminalError,
    ExecNotFoundError,
    ExecNotRunningError,
    SandboxClientError,
    SandboxConflictError,
    SandboxInvalidStateError,
    SandboxNotFoundError,
    SandboxNotReadyError,
    SandboxSequenceExpiredError,
)

_BY_REASON: Final[dict[str, type[SandboxClientError]]] = {
    "SANDBOX_NOT_FOUND": SandboxNotFoundError,
    "SANDBOX_CONFLICT": SandboxConflictError,
    "SANDBOX_ID_ALREADY_EXISTS": SandboxConflictError,
    "EXEC_ID_ALREADY_EXISTS": SandboxConflictError,
    "SANDBOX_NOT_READY": SandboxNotReadyError,
    "SANDBOX_INVALID_STATE": SandboxInvalidStateError,
    "SANDBOX_EVENT_SEQUENCE_EXPIRED": SandboxSequenceExpiredError,
    "EXEC_NOT_FOUND": ExecNotFoundError,
    "EXEC_ALREADY_TERMINAL": ExecAlreadyTerminalError,
    "EXEC_NOT_RUNNING": ExecNotRunningError,
}
_START_IT: Final = 'start it with "agbox daemon start"'


def error_of(status: Any, socket_path: str, timeout: float | None) -> SandboxClientError:
    """`status` is the grpc.RpcError of a synchronous or an asynchronous call."""
    code: grpc.StatusCode = status.code()
    details: str = status.details() or ""
    info = _error_info(status.trailing_metadata())
    if info is not None:
        kind = _BY_REASON.get(info.reason, SandboxClientError)
        return kind(details, code=code.name, reason=info.reason, metadata=info.metadata)
    if code is grpc.StatusCode.UNAVAILABLE:
        return DaemonUnreachableError(_why_unreachable(socket_path, details), code=code.name)
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        limit = "in time" if timeout is None else f"within {timeout:g} s"
        return DaemonTimeoutError(f"agboxd at {socket_path} did not respond {limit}", code=code.name)
    return SandboxClientError(details or f"agboxd rejected the call with {code.name}", code=code.name)


def was_not_sent(status: Any, socket_path: str) -> bool:
    """The call failed because of an earlier attempt to connect, and the daemon is listening now."""
    if status.code() is not grpc.StatusCode.UNAVAILABLE:
        return False
    return (
        "failed to connect to all addresses" in (status.details() or "") and _connect_error(socket_path) == 0
    )


def is_loss(error: SandboxClientError) -> bool:
    """Whether the connection was lost, so that a call that may be repeated should be. A daemon that ends cancels its
    streams."""
    return error.code in ("UNAVAILABLE", "CANCELLED")


def _error_info(trailers: Any) -> error_details_pb2.ErrorInfo | None:
    """Whatever its domain; None if there is none, or it cannot be read."""
    encoded = next((value for key, value in trailers or () if key == "grpc-status-details-bin"), None)
    if not isinstance(encoded, bytes):
        return None
    with contextlib.suppress(DecodeError):
        for detail in error_details_pb2.Status.FromString(encoded).details:
            if detail.type_url.rpartition("/")[2] == "google.rpc.ErrorInfo":
                return error_details_pb2.ErrorInfo.FromString(detail.value)
    return None


def _why_unreachable(path: str, transport_message: str) -> str:
    problem = _connect_error(path)
    if problem == errno.ENOENT:
        return f"agboxd is not running: socket {path} does not exist; {_START_IT}"
    if problem == errno.ECONNREFUSED:
        with contextlib.suppress(OSError):
            if not stat.S_ISSOCK(os.stat(path).st_mode):  # noqa: PTH116
                return f"cannot connect to agboxd: {path} is not a socket; remove it, then {_START_IT}"
        return f"agboxd is not running: no process listens on {path}; {_START_IT}"
    if problem in (errno.EACCES, errno.EPERM):
        return (
            f"cannot connect to agboxd at {path}: {os.strerror(problem)}; each user runs their own agboxd, so "
            "XDG_RUNTIME_DIR must be a directory of this user"
        )
    if problem == 0:
        return (
            f"lost the connection to agboxd at {path} ({transport_message}); it serves only the user that runs "
            'it, see its log with "journalctl --user -u agboxd"'
        )
    return f"cannot connect to agboxd at {path}: {os.strerror(problem)}; {_START_IT}"


def _connect_error(path: str) -> int:
    """0 if a process listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        return probe.connect_ex(path)
