# SPDX-License-Identifier: Apache-2.0
"""The client with direct parameters, whose operations wait for their end if asked to."""

from __future__ import annotations

import asyncio  # async only
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from types import TracebackType

from agents_sandbox._async.follow import events_of, wait_for_exec, wait_for_sandbox
from agents_sandbox._async.raw import RawClient
from agents_sandbox._convert import command_of, create_spec, exec_handle, sandbox_event, sandbox_handle
from agents_sandbox._deadline import Deadline
from agents_sandbox._generated.agbox.v1 import sandbox_pb2, service_pb2
from agents_sandbox.errors import DaemonTimeoutError, ExecNotRunningError, SandboxInvalidStateError
from agents_sandbox.types import (
    CompanionContainerSpec,
    CopySpec,
    DeleteSandboxesResult,
    ExecHandle,
    MountSpec,
    PingInfo,
    PortMapping,
    SandboxEvent,
    SandboxHandle,
    SandboxState,
)


class AgentsSandboxClient:
    """Connects to the daemon of this user, at the first call.

    `timeout_seconds` limits each call with one response, `stream_timeout_seconds` each subscription of events (None: no
    limit), `operation_timeout_seconds` each wait.
    """

    def __init__(
        self,
        *,
        timeout_seconds: float = 5.0,
        stream_timeout_seconds: float | None = None,
        operation_timeout_seconds: float = 60.0,
    ) -> None:
        for name, seconds in (
            ("timeout_seconds", timeout_seconds),
            ("stream_timeout_seconds", stream_timeout_seconds),
            ("operation_timeout_seconds", operation_timeout_seconds),
        ):
            if seconds is not None and not seconds > 0:
                raise ValueError(f"{name} must be more than 0, not {seconds}")
        self._raw = RawClient(timeout=timeout_seconds)
        self._stream_timeout = stream_timeout_seconds
        self._operation_timeout = operation_timeout_seconds

    async def __aenter__(self) -> AgentsSandboxClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._raw.close()

    # <async only>
    async def aclose(self) -> None:
        await self._raw.close()

    def close(self) -> asyncio.Future[None]:
        """Closes it in the background; the result may be awaited, and need not be."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            loop = asyncio.new_event_loop()
            try:
                loop.run_until_complete(self._raw.close())
                closed: asyncio.Future[None] = loop.create_future()
                closed.set_result(None)
                return closed
            finally:
                loop.close()
        return loop.create_task(self._raw.close())

    # </async only>
    # <sync only>
    # def close(self) -> None:
    #     self._raw.close()
    # </sync only>

    @property
    def raw(self) -> RawClient:
        """One method per call of the API."""
        return self._raw

    async def ping(self) -> PingInfo:
        response = await self._raw.ping(service_pb2.PingRequest())
        return PingInfo(version=response.version, daemon=response.daemon)

    async def create_sandbox(
        self,
        *,
        config_yaml: str | bytes | None = None,
        image: str | None = None,
        sandbox_id: str | None = None,
        mounts: Sequence[MountSpec] = (),
        copies: Sequence[CopySpec] = (),
        ports: Sequence[PortMapping] = (),
        builtin_tools: Sequence[str] = (),
        command: Sequence[str] | None = None,
        companion_containers: Sequence[CompanionContainerSpec] = (),
        labels: Mapping[str, str] | None = None,
        envs: Mapping[str, str] | None = None,
        idle_ttl: timedelta | None = None,
        cpu_limit: str = "",
        memory_limit: str = "",
        disk_limit: str = "",
        gpus: str = "",
        wait: bool = True,
    ) -> SandboxHandle:
        if not image and not config_yaml:
            raise ValueError("image or config_yaml is required")
        if sandbox_id is not None and not sandbox_id:
            raise ValueError("sandbox_id must not be empty; omit it for a generated one")
        spec = create_spec(
            image=image,
            mounts=mounts,
            copies=copies,
            ports=ports,
            builtin_tools=builtin_tools,
            command=command,
            companion_containers=companion_containers,
            labels=labels,
            envs=envs,
            idle_ttl=idle_ttl,
            cpu_limit=cpu_limit,
            memory_limit=memory_limit,
            disk_limit=disk_limit,
            gpus=gpus,
        )
        yaml = config_yaml.encode() if isinstance(config_yaml, str) else config_yaml
        request = service_pb2.CreateSandboxRequest(
            create_spec=spec, sandbox_id=sandbox_id or "", config_yaml=yaml or b""
        )
        created = (await self._raw.create_sandbox(request)).sandbox
        return await self._reached("create_sandbox", created, SandboxState.READY, wait)

    async def get_sandbox(self, sandbox_id: str) -> SandboxHandle:
        return sandbox_handle(await self._get(sandbox_id))

    async def list_sandboxes(
        self, *, include_deleted: bool = False, label_selector: Mapping[str, str] | None = None
    ) -> list[SandboxHandle]:
        found: list[SandboxHandle] = []
        request = service_pb2.ListSandboxesRequest(
            include_deleted=include_deleted, label_selector=label_selector
        )
        while True:
            page = await self._raw.list_sandboxes(request)
            found += [sandbox_handle(one) for one in page.sandboxes]
            request.page_token = page.next_page_token
            if not request.page_token:
                return found

    async def resume_sandbox(self, sandbox_id: str, *, wait: bool = True) -> SandboxHandle:
        await self._raw.resume_sandbox(service_pb2.ResumeSandboxRequest(sandbox_id=sandbox_id))
        return await self._reached("resume_sandbox", await self._get(sandbox_id), SandboxState.READY, wait)

    async def stop_sandbox(self, sandbox_id: str, *, wait: bool = True) -> SandboxHandle:
        await self._raw.stop_sandbox(service_pb2.StopSandboxRequest(sandbox_id=sandbox_id))
        return await self._reached("stop_sandbox", await self._get(sandbox_id), SandboxState.STOPPED, wait)

    async def delete_sandbox(self, sandbox_id: str, *, wait: bool = True) -> SandboxHandle:
        await self._raw.delete_sandbox(service_pb2.DeleteSandboxRequest(sandbox_id=sandbox_id))
        return await self._reached("delete_sandbox", await self._get(sandbox_id), SandboxState.DELETED, wait)

    async def delete_sandboxes(
        self, label_selector: Mapping[str, str], *, wait: bool = True
    ) -> DeleteSandboxesResult:
        request = service_pb2.DeleteSandboxesRequest(label_selector=label_selector)
        response = await self._raw.delete_sandboxes(request)
        if wait:
            deadline = Deadline.after(self._operation_timeout, "delete_sandboxes")
            for sandbox_id in response.deleted_sandbox_ids:
                baseline = await self._get(sandbox_id)
                await wait_for_sandbox(
                    self._raw, "delete_sandboxes", baseline, SandboxState.DELETED, deadline
                )
        return DeleteSandboxesResult(
            deleted_sandbox_ids=tuple(response.deleted_sandbox_ids), deleted_count=response.deleted_count
        )

    async def create_exec(
        self,
        sandbox_id: str,
        command: Sequence[str],
        *,
        exec_id: str | None = None,
        cwd: str = "/workspace",
        env_overrides: Mapping[str, str] | None = None,
        wait: bool = False,
    ) -> ExecHandle:
        request = service_pb2.CreateExecRequest(
            sandbox_id=sandbox_id,
            command=command_of(command),
            cwd=cwd,
            env_overrides=env_overrides,
            exec_id=exec_id or "",
        )
        if exec_id is not None and not exec_id:
            raise ValueError("exec_id must not be empty; omit it for a generated one")
        created = await self._raw.create_exec(request)
        if wait:
            return await self._ended("create_exec", created.exec_id)
        return await self.get_exec(created.exec_id)

    async def run(
        self,
        sandbox_id: str,
        command: Sequence[str],
        *,
        cwd: str = "/workspace",
        env_overrides: Mapping[str, str] | None = None,
    ) -> ExecHandle:
        return await self.create_exec(sandbox_id, command, cwd=cwd, env_overrides=env_overrides, wait=True)

    async def cancel_exec(self, exec_id: str, *, wait: bool = True) -> ExecHandle:
        try:
            await self._raw.cancel_exec(service_pb2.CancelExecRequest(exec_id=exec_id))
        except SandboxInvalidStateError as error:
            raise ExecNotRunningError(
                str(error),
                code=error.code,
                reason=error.reason,
                metadata={**error.metadata, "exec_id": exec_id},
            ) from error
        if wait:
            return await self._ended("cancel_exec", exec_id)
        return await self.get_exec(exec_id)

    async def get_exec(self, exec_id: str) -> ExecHandle:
        response = await self._raw.get_exec(service_pb2.GetExecRequest(exec_id=exec_id))
        return exec_handle(response.exec)

    async def list_active_execs(self, *, sandbox_id: str | None = None) -> list[ExecHandle]:
        found: list[ExecHandle] = []
        request = service_pb2.ListActiveExecsRequest(sandbox_id=sandbox_id)
        while True:
            page = await self._raw.list_active_execs(request)
            found += [exec_handle(one) for one in page.execs]
            request.page_token = page.next_page_token
            if not request.page_token:
                return found

    async def subscribe_sandbox_events(
        self, sandbox_id: str, *, from_sequence: int = 0, include_current_snapshot: bool = False
    ) -> AsyncIterator[SandboxEvent]:
        """Continues across restarts of the daemon. Ends with an error only, such as that of stream_timeout_seconds."""
        deadline = Deadline.after(self._stream_timeout, "the subscription of events")
        async with contextlib.aclosing(
            events_of(self._raw, sandbox_id, from_sequence, deadline, snapshot=include_current_snapshot)
        ) as events:
            try:
                async for event in events:
                    yield sandbox_event(event)
            except TimeoutError as late:
                raise DaemonTimeoutError(str(late), code="DEADLINE_EXCEEDED") from late

    async def _get(self, sandbox_id: str) -> sandbox_pb2.SandboxHandle:
        response = await self._raw.get_sandbox(service_pb2.GetSandboxRequest(sandbox_id=sandbox_id))
        return response.sandbox

    async def _reached(
        self, operation: str, baseline: sandbox_pb2.SandboxHandle, goal: SandboxState, wait: bool
    ) -> SandboxHandle:
        if not wait:
            return sandbox_handle(baseline)
        deadline = Deadline.after(self._operation_timeout, operation)
        return sandbox_handle(await wait_for_sandbox(self._raw, operation, baseline, goal, deadline))

    async def _ended(self, operation: str, exec_id: str) -> ExecHandle:
        deadline = Deadline.after(self._operation_timeout, operation)
        return exec_handle(await wait_for_exec(self._raw, operation, exec_id, deadline))
