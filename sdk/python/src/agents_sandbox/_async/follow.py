# SPDX-License-Identifier: Apache-2.0
"""Follows the daemon across its restarts: after a lost connection it continues where it was."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Container
from typing import Final, TypeVar

from agents_sandbox._async import platform
from agents_sandbox._async.raw import RawClient
from agents_sandbox._deadline import Deadline
from agents_sandbox._generated.agbox.v1 import event_pb2, exec_pb2, sandbox_pb2, service_pb2
from agents_sandbox._status import is_loss
from agents_sandbox.errors import (
    DaemonTimeoutError,
    DaemonUnreachableError,
    SandboxClientError,
    SandboxFailedError,
)
from agents_sandbox.types import ExecState, SandboxState

T = TypeVar("T")

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
# Longer than a restart of the daemon, with the recovery of its sandboxes.
_LONGEST_ABSENCE = 30.0
# A connection that has lasted so long was a good one.
_STEADY = 2.0


class Reconnection:
    """Waits for the daemon after a lost connection, with longer and longer pauses if it loses the next ones too."""

    def __init__(self, client: RawClient, deadline: Deadline, absence: float | None = None) -> None:
        """`absence`: after how many seconds without the daemon it fails."""
        self._client = client
        self._deadline = deadline
        self._seconds = _LONGEST_ABSENCE if absence is None else absence
        self._back_at = 0.0
        self.reset()

    def reset(self) -> None:
        """The daemon responded."""
        self._pause = _FIRST_PAUSE
        self._absence: Deadline | None = None  # since the first of several losses

    async def after(self, loss: SandboxClientError | None) -> None:
        """Raises what was lost if it was not the connection. None: the stream ended."""
        if loss is not None:
            if isinstance(loss, DaemonTimeoutError) and self._deadline.is_over():
                raise self._deadline.error() from loss
            if not is_loss(loss):
                raise loss
        if time.monotonic() - self._back_at > _STEADY:  # although nothing was to be said
            self.reset()
        if self._absence is None:
            self._absence = Deadline.after(self._seconds, "the absence of the daemon")
        try:
            limit = self._deadline.remaining(self._absence.remaining())
            await platform.sleep(min(self._pause, limit or 0))
            self._pause = min(self._pause * 2, _LONGEST_PAUSE)
            limit = self._deadline.remaining(self._absence.remaining())
            await self._client.ping(service_pb2.PingRequest(), timeout=limit, wait_for_ready=True)
            self._back_at = time.monotonic()
        except TimeoutError as late:
            self._deadline.remaining()
            message = f"the daemon is not back after {self._seconds:g} s"
            raise DaemonUnreachableError(
                f"{message}: {loss}" if loss else message, code="UNAVAILABLE"
            ) from late
        except SandboxClientError as error:
            if not is_loss(error):
                raise

    async def retry(self, call: Callable[[], Awaitable[T]]) -> T:
        """Repeats a call, which must be one that may be repeated."""
        while True:
            try:
                return await call()
            except SandboxClientError as error:
                await self.after(error)


async def events_of(
    client: RawClient, sandbox_id: str, after: int, deadline: Deadline, *, snapshot: bool = False
) -> AsyncGenerator[event_pb2.SandboxEvent, None]:
    """Every event after that sequence, in order and once, until the deadline."""
    reconnection = Reconnection(client, deadline)
    while True:
        loss: SandboxClientError | None = None
        stream = client.subscribe_sandbox_events(
            service_pb2.SubscribeSandboxEventsRequest(
                sandbox_id=sandbox_id, from_sequence=after, include_current_snapshot=snapshot
            ),
            timeout=deadline.remaining(),
        )
        try:
            async for event in stream:
                reconnection.reset()
                if event.snapshot:
                    yield event
                elif event.sequence > after:
                    after, snapshot = event.sequence, False
                    yield event
        except SandboxClientError as error:
            loss = error
        finally:
            stream.cancel()
        await reconnection.after(loss)


async def wait_for_sandbox(
    client: RawClient,
    operation: str,
    baseline: sandbox_pb2.SandboxHandle,
    goal: SandboxState,
    deadline: Deadline,
) -> sandbox_pb2.SandboxHandle:
    """Reads the events after the baseline until the sandbox has the state, or cannot reach it any more."""
    sandbox_id = baseline.sandbox_id
    if _is_reached(operation, baseline, goal):
        return baseline
    request = service_pb2.GetSandboxRequest(sandbox_id=sandbox_id)
    reconnection = Reconnection(client, deadline)
    async with contextlib.aclosing(
        events_of(client, sandbox_id, baseline.last_event_sequence, deadline)
    ) as events:
        async for event in events:
            if not _decides(event.sandbox_state, goal):
                continue

            async def get() -> service_pb2.GetSandboxResponse:
                return await client.get_sandbox(request, timeout=deadline.remaining(client.timeout))

            sandbox = (await reconnection.retry(get)).sandbox
            if SandboxState(event.sandbox_state) is goal or _is_reached(operation, sandbox, goal):
                return sandbox
    raise SandboxClientError(f"{operation} ended before sandbox {sandbox_id} was {goal.name}.")


def _lost_states(goal: SandboxState) -> Container[int]:
    """From which the goal is not reached any more."""
    if goal is SandboxState.DELETED:
        return (SandboxState.FAILED,)
    lost = (SandboxState.FAILED, SandboxState.DELETING, SandboxState.DELETED)
    return (*lost, SandboxState.STOPPED) if goal is SandboxState.READY else lost


def _decides(state: int, goal: SandboxState) -> bool:
    return state == goal or state in _lost_states(goal)


def _is_reached(operation: str, sandbox: sandbox_pb2.SandboxHandle, goal: SandboxState) -> bool:
    if SandboxState(sandbox.state) is goal:
        return True
    if sandbox.state not in _lost_states(goal):
        return False
    name = SandboxState(sandbox.state).name
    why = ": ".join(text for text in (sandbox.error_code, sandbox.error_message) if text)
    raise SandboxFailedError(
        f"{operation} observed sandbox {sandbox.sandbox_id} in {name} state." + (f" {why}" if why else ""),
        metadata={
            "sandbox_id": sandbox.sandbox_id,
            "error_code": sandbox.error_code,
            "error_message": sandbox.error_message,
        },
    )


async def wait_for_exec(
    client: RawClient, operation: str, exec_id: str, deadline: Deadline
) -> exec_pb2.ExecStatus:
    """Reads its state, and then the events after it until it has ended."""
    reconnection = Reconnection(client, deadline)

    async def get() -> service_pb2.GetExecResponse:
        request = service_pb2.GetExecRequest(exec_id=exec_id)
        return await client.get_exec(request, timeout=deadline.remaining(client.timeout))

    status = (await reconnection.retry(get)).exec
    if ExecState(status.state).is_terminal:
        return status
    async with contextlib.aclosing(
        events_of(client, status.sandbox_id, status.last_event_sequence, deadline)
    ) as events:
        async for event in events:
            if event.exec.exec_id == exec_id and ExecState(event.exec.exec_state).is_terminal:
                return (await reconnection.retry(get)).exec
    raise SandboxClientError(f"{operation} ended before exec {exec_id} had ended.")


async def create_once(create: Callable[[], Awaitable[T]], existing: T, client: RawClient) -> T:
    """Makes a request that has a new ID, again if its response was lost: `existing` if the daemon had accepted it."""
    reconnection = Reconnection(client, Deadline.after(None, "the request"), client.timeout)
    was_lost = False
    while True:
        try:
            return await create()
        except SandboxClientError as error:
            if was_lost and error.code == "ALREADY_EXISTS":
                return existing
            was_lost = True
            await reconnection.after(error)
