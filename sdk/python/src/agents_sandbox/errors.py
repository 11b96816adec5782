# SPDX-License-Identifier: Apache-2.0
"""What calls of this package raise. All of them are SandboxClientError, except invalid arguments (ValueError,
TypeError), waits that take too long (TimeoutError), and local files (OSError)."""

from __future__ import annotations

from collections.abc import Mapping


class SandboxClientError(RuntimeError):
    """A call failed. `code` is the gRPC status code, `reason` what the daemon calls it; None if it does not have one."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        reason: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.metadata: Mapping[str, str] = dict(metadata or {})

    def _number(self, key: str) -> int | None:
        text = self.metadata.get(key, "")
        return int(text) if text.isascii() and text.isdigit() else None


class _SandboxError(SandboxClientError):
    @property
    def sandbox_id(self) -> str:
        """Empty if the daemon did not name it."""
        return self.metadata.get("sandbox_id", "")


class _ExecError(SandboxClientError):
    @property
    def exec_id(self) -> str:
        """Empty if the daemon did not name it."""
        return self.metadata.get("exec_id", "")


class SandboxConflictError(_SandboxError, _ExecError):
    """The ID was used before. IDs of deleted sandboxes are not reused."""


class SandboxNotFoundError(_SandboxError):
    """There is no such sandbox, or its history was purged."""


class SandboxNotReadyError(_SandboxError):
    """Only a ready sandbox can do that."""


class SandboxInvalidStateError(SandboxClientError):
    """The sandbox or the exec is not in a state for that."""


class SandboxSequenceExpiredError(_SandboxError):
    """The sandbox has no event with this sequence number."""

    @property
    def from_sequence(self) -> int | None:
        return self._number("from_sequence")

    @property
    def oldest_sequence(self) -> int | None:
        return self._number("oldest_sequence")


class ExecNotFoundError(_ExecError):
    """There is no such exec, or its history was purged."""


class ExecAlreadyTerminalError(_ExecError):
    """The exec has ended."""


class ExecNotRunningError(SandboxInvalidStateError, _ExecError):
    """The exec cannot be cancelled, because it does not run."""


class SandboxFailedError(_SandboxError):
    """The sandbox cannot reach the awaited state any more. `error_code` and `error_message` say why it failed."""

    @property
    def error_code(self) -> str | None:
        return self.metadata.get("error_code") or None

    @property
    def error_message(self) -> str | None:
        return self.metadata.get("error_message") or None


class DaemonUnreachableError(SandboxClientError):
    """There is no connection to the daemon."""


class DaemonTimeoutError(SandboxClientError, TimeoutError):
    """The daemon did not respond in time."""


class UnsafeArchiveError(SandboxClientError):
    """What a sandbox sent for its files cannot be unpacked safely."""
