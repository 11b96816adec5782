# SPDX-License-Identifier: Apache-2.0
# Generated from sdk/python/src/agents_sandbox/_async/sandbox.py by sdk/python/scripts/make_sync.py.
"""A sandbox as an object."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from types import TracebackType
from typing import TypeVar

from agents_sandbox._convert import command_of, create_spec, duration_of, sandbox_event, sandbox_handle
from agents_sandbox._deadline import Deadline
from agents_sandbox._generated.agbox.v1 import exec_pb2, sandbox_pb2, service_pb2
from agents_sandbox._sync import platform
from agents_sandbox._sync.client import AgentsSandboxClient
from agents_sandbox._sync.files import Files
from agents_sandbox._sync.follow import create_once, events_of, wait_for_sandbox
from agents_sandbox._sync.process import Process, Terminal
from agents_sandbox._sync.raw import RawClient
from agents_sandbox.errors import SandboxClientError, SandboxNotFoundError
from agents_sandbox.types import (
    CompanionContainerSpec,
    CopySpec,
    MountSpec,
    PortMapping,
    RunResult,
    SandboxEvent,
    SandboxHandle,
    SandboxState,
)

P = TypeVar("P", bound=Process)

_DELETE_TIMEOUT = 60.0


class Sandbox:
    """A sandbox that exists. Make one and delete it again:

        with Sandbox.create(image="debian:12") as sandbox:
            result = sandbox.run("ls /")
            print(result.exit_code, result.stdout)

    `Sandbox.create(...)` keeps it until `delete()`; `Sandbox.open(sandbox_id)` is one that exists already, which
    `with` does not delete.
    """

    def __init__(
        self, client: RawClient, message: sandbox_pb2.SandboxHandle, *, closes_client: bool, deletes: bool
    ) -> None:
        """Use create() or open()."""
        self._client = client
        self._message = message
        self._closes_client = closes_client
        self._deletes = deletes

    @classmethod
    def create(
        cls,
        *,
        image: str | None = None,
        config_yaml: str | bytes | None = None,
        sandbox_id: str | None = None,
        mounts: Sequence[MountSpec] = (),
        copies: Sequence[CopySpec] = (),
        ports: Sequence[PortMapping] = (),
        builtin_tools: Sequence[str] = (),
        command: Sequence[str] | None = None,
        required_services: Sequence[CompanionContainerSpec] = (),
        optional_services: Sequence[CompanionContainerSpec] = (),
        companion_containers: Sequence[CompanionContainerSpec] = (),
        labels: Mapping[str, str] | None = None,
        envs: Mapping[str, str] | None = None,
        idle_ttl: timedelta | None = None,
        cpu_limit: str = "",
        memory_limit: str = "",
        disk_limit: str = "",
        gpus: str = "",
        bypass_entrypoint: bool = False,
        ready_timeout: float | None = 300.0,
        client: AgentsSandboxClient | None = None,
    ) -> Sandbox:
        """Creates a sandbox and waits until it is ready, at most `ready_timeout` seconds: an image may have to be
        pulled. If that fails or is cancelled, the sandbox is deleted. With `client` several share a connection."""
        if not image and not config_yaml:
            raise ValueError("image or config_yaml is required")
        if sandbox_id is not None and not sandbox_id:
            raise ValueError("sandbox_id must not be empty; omit it for a generated one")
        request = service_pb2.CreateSandboxRequest(
            create_spec=create_spec(
                image=image,
                mounts=mounts,
                copies=copies,
                ports=ports,
                builtin_tools=builtin_tools,
                command=command,
                required_services=required_services,
                optional_services=optional_services,
                companion_containers=companion_containers,
                labels=labels,
                envs=envs,
                idle_ttl=idle_ttl,
                cpu_limit=cpu_limit,
                memory_limit=memory_limit,
                disk_limit=disk_limit,
                gpus=gpus,
                bypass_entrypoint=bypass_entrypoint,
            ),
            sandbox_id=sandbox_id or str(uuid.uuid4()),
            config_yaml=(config_yaml.encode() if isinstance(config_yaml, str) else config_yaml) or b"",
        )
        return platform.pending(cls._create(request, sandbox_id is None, ready_timeout, client))

    @classmethod
    def open(cls, sandbox_id: str, *, client: AgentsSandboxClient | None = None) -> Sandbox:
        """One that exists, in any state."""
        return platform.pending(cls._open(sandbox_id, client))

    @classmethod
    def _create(
        cls,
        request: service_pb2.CreateSandboxRequest,
        has_new_id: bool,
        ready_timeout: float | None,
        client: AgentsSandboxClient | None,
    ) -> Sandbox:
        raw = RawClient() if client is None else client.raw
        accepted: list[sandbox_pb2.SandboxHandle] = []

        def create() -> service_pb2.CreateSandboxResponse:
            return raw.create_sandbox(request)

        def accept() -> None:
            if has_new_id:
                handle = sandbox_pb2.SandboxHandle(
                    sandbox_id=request.sandbox_id, state=sandbox_pb2.SANDBOX_STATE_PENDING
                )
                existing = service_pb2.CreateSandboxResponse(sandbox=handle)
                accepted.append((create_once(create, existing, raw)).sandbox)
            else:
                accepted.append((create()).sandbox)

        try:
            platform.finish(accept())
            sandbox = cls(raw, accepted[0], closes_client=client is None, deletes=True)
            deadline = Deadline.after(ready_timeout, f"the create of sandbox {request.sandbox_id}")
            sandbox._message = wait_for_sandbox(raw, "create", accepted[0], SandboxState.READY, deadline)
        except BaseException:
            with contextlib.suppress(SandboxClientError):
                if accepted:
                    platform.finish(_request_delete(raw, request.sandbox_id))
            if client is None:
                raw.close()
            raise
        return sandbox

    @classmethod
    def _open(cls, sandbox_id: str, client: AgentsSandboxClient | None) -> Sandbox:
        raw = RawClient() if client is None else client.raw
        try:
            response = raw.get_sandbox(service_pb2.GetSandboxRequest(sandbox_id=sandbox_id))
        except BaseException:
            if client is None:
                raw.close()
            raise
        return cls(raw, response.sandbox, closes_client=client is None, deletes=False)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if self._deletes:
                platform.finish(self.delete())
        except (SandboxClientError, TimeoutError):
            if error is None:
                raise
        finally:
            self.close()

    def close(self) -> None:
        """Ends the connection, and leaves the sandbox as it is."""
        if self._closes_client:
            self._client.close()

    @property
    def sandbox_id(self) -> str:
        return self._message.sandbox_id

    @property
    def handle(self) -> SandboxHandle:
        """As of the latest operation or refresh()."""
        return sandbox_handle(self._message)

    @property
    def files(self) -> Files:
        return Files(self._client, self.sandbox_id)

    def refresh(self) -> SandboxHandle:
        request = service_pb2.GetSandboxRequest(sandbox_id=self.sandbox_id)
        self._message = (self._client.get_sandbox(request)).sandbox
        return self.handle

    def stop(self, *, stop_timeout: float | None = 60.0) -> None:
        """Files are kept, processes end. Waits until it is stopped."""
        self._client.stop_sandbox(service_pb2.StopSandboxRequest(sandbox_id=self.sandbox_id))
        self._reach("stop", SandboxState.STOPPED, stop_timeout)

    def resume(self, *, ready_timeout: float | None = 300.0) -> None:
        """Waits until it is ready."""
        self._client.resume_sandbox(service_pb2.ResumeSandboxRequest(sandbox_id=self.sandbox_id))
        self._reach("resume", SandboxState.READY, ready_timeout)

    def delete(self, *, delete_timeout: float | None = _DELETE_TIMEOUT) -> None:
        """Waits until everything but its history is gone. No error if it is deleted already."""
        with contextlib.suppress(SandboxNotFoundError):
            self._client.delete_sandbox(service_pb2.DeleteSandboxRequest(sandbox_id=self.sandbox_id))
            self._reach("delete", SandboxState.DELETED, delete_timeout)

    def wait_for(self, state: SandboxState, *, wait_timeout: float | None = 60.0) -> SandboxHandle:
        """Until it has the state. SandboxFailedError if it cannot reach it any more."""
        self._reach("wait", state, wait_timeout)
        return self.handle

    def _reach(self, operation: str, goal: SandboxState, timeout: float | None) -> None:
        self.refresh()
        deadline = Deadline.after(timeout, f"{operation} of sandbox {self.sandbox_id}")
        self._message = wait_for_sandbox(self._client, operation, self._message, goal, deadline)

    def events(self, *, from_sequence: int = 0) -> Iterator[SandboxEvent]:
        """All events after that sequence and those to come, in order and once, also across restarts of the daemon."""
        deadline = Deadline.after(None, "events")
        with contextlib.closing(events_of(self._client, self.sandbox_id, from_sequence, deadline)) as events:
            for event in events:
                yield sandbox_event(event)

    def run(
        self,
        command: str | Sequence[str],
        *,
        input: str | bytes | None = None,  # noqa: A002
        cwd: str = "/workspace",
        env: Mapping[str, str] | None = None,
        user: str = "",
        command_timeout: float | timedelta | None = None,
    ) -> RunResult:
        """Runs a command to its end: a list of strings as it is, a string with `sh -c`. Cancelling the call cancels the
        command; so does the daemon after `command_timeout`."""
        request = self._request(command, cwd, env, user, command_timeout, stdin=input is not None)
        process = Process(self._client, request.exec_id, writes=input is not None, cancels=True)
        try:
            platform.finish(self._accept(request))
            return process.communicate(input)
        except platform.INTERRUPTIONS:
            with contextlib.suppress(SandboxClientError):
                platform.finish(process._request_cancel())
            raise
        finally:
            process.detach()

    def start(
        self,
        command: str | Sequence[str],
        *,
        stdin: bool = False,
        exec_id: str | None = None,
        cwd: str = "/workspace",
        env: Mapping[str, str] | None = None,
        user: str = "",
        command_timeout: float | timedelta | None = None,
    ) -> Process:
        """Starts a command, whose output can be read as it comes. With `stdin` it takes input."""
        request = self._request(command, cwd, env, user, command_timeout, stdin=stdin, exec_id=exec_id)
        process = Process(self._client, request.exec_id, writes=stdin, cancels=True)
        return platform.pending(self._started(process, request, exec_id is None))

    def terminal(
        self,
        command: str | Sequence[str] = ("sh",),
        *,
        rows: int = 24,
        columns: int = 80,
        term: str = "xterm",
        exec_id: str | None = None,
        cwd: str = "/workspace",
        env: Mapping[str, str] | None = None,
        user: str = "",
        command_timeout: float | timedelta | None = None,
    ) -> Terminal:
        """Starts a command in a terminal of that size."""
        request = self._request(command, cwd, env, user, command_timeout, exec_id=exec_id)
        size = exec_pb2.TerminalSize(rows=rows, columns=columns)
        request.terminal.CopyFrom(exec_pb2.Terminal(size=size, term=term))
        terminal = Terminal(self._client, request.exec_id, writes=True, cancels=True)
        return platform.pending(self._started(terminal, request, exec_id is None))

    def attach(self, exec_id: str, *, write: bool = False) -> Process:
        """A command that was started before, from the beginning of its output. `write` takes over its input. Leaving
        `with` does not cancel it."""
        return Process(self._client, exec_id, writes=write, cancels=False)

    def _request(
        self,
        command: str | Sequence[str],
        cwd: str,
        env: Mapping[str, str] | None,
        user: str,
        command_timeout: float | timedelta | None,
        *,
        stdin: bool = False,
        exec_id: str | None = None,
    ) -> service_pb2.CreateExecRequest:
        if isinstance(command_timeout, (int, float)):
            command_timeout = timedelta(seconds=command_timeout)
        return service_pb2.CreateExecRequest(
            sandbox_id=self.sandbox_id,
            command=["sh", "-c", command] if isinstance(command, str) else command_of(command),
            cwd=cwd,
            env_overrides=env,
            exec_id=exec_id or str(uuid.uuid4()),
            user=user,
            timeout=duration_of(command_timeout),
            stdin=stdin,
        )

    def _started(self, process: P, request: service_pb2.CreateExecRequest, has_new_id: bool) -> P:
        try:
            platform.finish(self._accept(request, has_new_id))
        except platform.INTERRUPTIONS:
            if has_new_id:
                with contextlib.suppress(SandboxClientError):
                    platform.finish(process._request_cancel())
            raise
        return process

    def _accept(self, request: service_pb2.CreateExecRequest, has_new_id: bool = True) -> None:
        def create() -> service_pb2.CreateExecResponse:
            return self._client.create_exec(request)

        if has_new_id:
            existing = service_pb2.CreateExecResponse(exec_id=request.exec_id)
            create_once(create, existing, self._client)
        else:
            create()


def _request_delete(client: RawClient, sandbox_id: str) -> None:
    client.delete_sandbox(service_pb2.DeleteSandboxRequest(sandbox_id=sandbox_id))
