# SPDX-License-Identifier: Apache-2.0
# Generated from sdk/python/src/agents_sandbox/_async/process.py by sdk/python/scripts/make_sync.py.
"""Commands of a sandbox: their output as it comes, their input and their terminals."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Final

from agents_sandbox._convert import exec_handle, run_result
from agents_sandbox._deadline import Deadline
from agents_sandbox._generated.agbox.v1 import exec_pb2, service_pb2
from agents_sandbox._sync import platform
from agents_sandbox._sync.follow import Reconnection, wait_for_exec
from agents_sandbox._sync.raw import AttachStream, RawClient
from agents_sandbox.errors import ExecAlreadyTerminalError, ExecNotFoundError, SandboxClientError
from agents_sandbox.types import ExecHandle, OutputChunk, RunResult

# What the daemon takes beyond what the command has read.
_MOST_UNACCEPTED: Final = 1 << 16
_MESSAGE: Final = 1 << 15
_NAMES: Final = {exec_pb2.OUTPUT_STREAM_STDOUT: "stdout", exec_pb2.OUTPUT_STREAM_STDERR: "stderr"}


class Process:
    """A command that runs, or ran, in a sandbox. Iterate over it for its output, as it comes:

        with sandbox.start("make test") as process:
            for chunk in process:
                print(chunk.text, end="")
            print((process.wait()).exit_code)

    Leaving `with` cancels a command that still runs. Neither the command nor its output and input notice a
    restart of the daemon. Output and input may be used by two tasks at the same time.
    """

    def __init__(self, client: RawClient, exec_id: str, *, writes: bool, cancels: bool) -> None:
        self._client = client
        self._exec_id = exec_id
        self._cancels = cancels
        self._changed = platform.Condition()
        self._is_receiving = False
        self._call: AttachStream | None = None
        self._is_attached = False
        self._status: exec_pb2.ExecStatus | None = None
        self._reconnection = Reconnection(client, Deadline.after(None, f"exec {exec_id}"))
        self._offsets = {"stdout": 0, "stderr": 0}
        self._chunks: collections.deque[OutputChunk] = collections.deque()
        # Input: what the command has not been given yet, and how much of that was sent on this connection.
        self._writes = writes
        self._why_no_input = "" if writes else "it was not started with stdin=True"
        self._unaccepted = bytearray()
        self._sent = 0
        self._position: int | None = None  # of the first unaccepted byte in the input
        self._wants_end = False
        self._has_sent_end = False
        self._size: exec_pb2.TerminalSize | None = None

    @property
    def exec_id(self) -> str:
        return self._exec_id

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if self._cancels and self._status is None:
                platform.finish(self._request_cancel())
        except SandboxClientError:
            if error is None:
                raise
        finally:
            self.detach()

    def detach(self) -> None:
        """Ends the connection, not the command."""
        self._drop()

    # --- output and end ---

    def __iter__(self) -> Iterator[OutputChunk]:
        return self

    def __next__(self) -> OutputChunk:
        self._until(lambda: bool(self._chunks) or self._status is not None)
        if not self._chunks:
            raise StopIteration
        return self._chunks.popleft()

    def communicate(self, input: str | bytes | None = None) -> RunResult:  # noqa: A002
        """Writes the input and ends it, reads the output that was not read yet, and waits for the end."""
        if input is not None:
            self._write(input, or_closed=True)
            self.end_input()
        output: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
        for chunk in self:
            output[chunk.stream].append(chunk.data)
        if self._status is None:
            raise RuntimeError("the output ended before the command")
        return run_result(self._status, b"".join(output["stdout"]), b"".join(output["stderr"]))

    def wait(self) -> RunResult:
        """Until it has ended, with no limit. The result is without output."""
        if self._status is None:
            deadline = Deadline.after(None, "wait")
            return run_result(wait_for_exec(self._client, "wait", self._exec_id, deadline), b"", b"")
        return run_result(self._status, b"", b"")

    def cancel(self) -> ExecHandle:
        """Ends it with all of its processes: SIGTERM, then SIGKILL. No error if it has ended."""
        self._request_cancel()
        deadline = Deadline.after(None, "cancel")
        return exec_handle(wait_for_exec(self._client, "cancel", self._exec_id, deadline))

    def _request_cancel(self) -> None:
        """Also of a command that was not accepted."""
        with contextlib.suppress(ExecAlreadyTerminalError, ExecNotFoundError):
            self._client.cancel_exec(service_pb2.CancelExecRequest(exec_id=self._exec_id))

    # --- input ---

    def write(self, data: str | bytes) -> None:
        """To its stdin or terminal. Waits while the command is slow to read."""
        self._write(data, or_closed=False)

    def _write(self, data: str | bytes, *, or_closed: bool) -> None:
        """`or_closed`: a command that does not read to the end is no error."""
        rest = memoryview(data.encode() if isinstance(data, str) else data)
        while len(rest):
            self._until(
                lambda: (
                    bool(self._why_no_input)
                    or (self._is_attached and len(self._unaccepted) < _MOST_UNACCEPTED)
                    or self._status is not None
                )
            )
            with self._changed:
                if self._why_no_input or self._status is not None:
                    if or_closed and self._writes:
                        return
                    why = self._why_no_input or "it has ended"
                    raise SandboxClientError(
                        f"exec {self._exec_id} takes no input: {why}", reason="EXEC_INPUT_CLOSED"
                    )
                size = min(len(rest), _MOST_UNACCEPTED - len(self._unaccepted))
                self._unaccepted += rest[:size]
                rest = rest[size:]
                self._send_unsent()

    def end_input(self) -> None:
        """After what was written: end of file for a command, Ctrl-D for a terminal."""
        with self._changed:
            self._wants_end = True
            self._send_unsent()

    def send_signal(self, number: int) -> None:
        """To the foreground process group of the terminal, or the process group of the command."""
        self._until(lambda: self._is_attached or self._status is not None)
        with self._changed:
            self._send(service_pb2.AttachExecRequest(signal=number))

    def _send(self, request: service_pb2.AttachExecRequest) -> None:
        if self._call is not None and self._is_attached:
            self._call.send(request)

    def _send_unsent(self) -> None:
        if not self._is_attached or self._why_no_input:
            return
        while self._sent < len(self._unaccepted):
            piece = bytes(self._unaccepted[self._sent : self._sent + _MESSAGE])
            self._sent += len(piece)
            self._send(service_pb2.AttachExecRequest(input=piece))
        if self._wants_end and not self._has_sent_end:
            self._has_sent_end = True
            self._send(service_pb2.AttachExecRequest(end_input=service_pb2.AttachEndInput()))

    # --- the connection ---

    def _until(self, holds: Callable[[], bool]) -> None:
        """One task at a time receives, for all that wait."""
        while True:
            with self._changed:
                if holds():
                    return
                if self._is_receiving:
                    self._changed.wait()
                    continue
                self._is_receiving = True
            try:
                self._receive()
            finally:
                with self._changed:
                    self._is_receiving = False
                    self._changed.notify_all()

    def _receive(self) -> None:
        loss: SandboxClientError | None = None
        try:
            if self._call is None:
                self._attach()
            response = self._call.receive() if self._call is not None else None
        except SandboxClientError as error:
            response, loss = None, error
        except BaseException:
            self._drop()
            raise
        if response is not None:
            self._reconnection.reset()
            with self._changed:
                self._take(response)
        elif self._status is None:
            self._drop()
            self._reconnection.after(loss)

    def _attach(self) -> None:
        self._call = self._client.attach_exec()
        start = service_pb2.AttachStart(
            exec_id=self._exec_id,
            write=not self._why_no_input,
            output=True,
            stdout_offset=self._offsets["stdout"],
            stderr_offset=self._offsets["stderr"],
        )
        self._call.send(service_pb2.AttachExecRequest(start=start))

    def _drop(self) -> None:
        call, self._call, self._is_attached = self._call, None, False
        if call is not None:
            call.cancel()

    def _take(self, response: service_pb2.AttachExecResponse) -> None:
        kind = response.WhichOneof("message")
        if kind == "output":
            output = response.output
            stream = _NAMES.get(output.stream, "stdout")
            self._offsets[stream] = output.offset + len(output.data)
            if output.data:
                self._chunks.append(OutputChunk(stream, output.data))
        elif kind == "ended":
            self._status = response.ended
        elif kind == "attached":
            self._take_attached(response.attached)
        elif kind == "input_accepted":
            self._accept(response.input_accepted)
            self._sent = max(0, self._sent)
            self._send_unsent()
        elif kind == "input_stopped":
            self._why_no_input = response.input_stopped.message or "it was closed"
            self._unaccepted.clear()
            self._sent = 0

    def _take_attached(self, attached: service_pb2.Attached) -> None:
        """What the command was given although that was not confirmed, because the daemon ended, is not sent again."""
        if self._position is not None:
            self._accept(attached.input_offset)
        self._position = attached.input_offset
        self._sent, self._has_sent_end, self._is_attached = 0, False, True
        if self._size is not None and not self._why_no_input:
            self._send(service_pb2.AttachExecRequest(resize=self._size))
        self._send_unsent()

    def _accept(self, position: int) -> None:
        size = min(max(0, position - (self._position or 0)), len(self._unaccepted))
        del self._unaccepted[:size]
        self._sent -= size
        self._position = position


class Terminal(Process):
    """A command in a terminal, whose output is its stdout."""

    def resize(self, rows: int, columns: int) -> None:
        self._until(lambda: self._is_attached or self._status is not None)
        with self._changed:
            self._size = exec_pb2.TerminalSize(rows=rows, columns=columns)
            self._send(service_pb2.AttachExecRequest(resize=self._size))
