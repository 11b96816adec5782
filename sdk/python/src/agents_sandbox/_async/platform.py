# SPDX-License-Identifier: Apache-2.0
"""What differs between the asynchronous and the synchronous client: channels, streams in both directions, and tasks."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

import grpc.aio

T = TypeVar("T")

Condition = asyncio.Condition
sleep = asyncio.sleep
to_thread = asyncio.to_thread
# How a caller interrupts a call.
INTERRUPTIONS: tuple[type[BaseException], ...] = (asyncio.CancelledError, KeyboardInterrupt, SystemExit)


def open_channel(target: str, options: list[tuple[str, Any]]) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(target, options=options)


async def close_channel(channel: grpc.aio.Channel) -> None:
    await channel.close()


def home() -> object:
    """Channels belong to the event loop that opened them."""
    return asyncio.get_running_loop()


async def finish(call: Coroutine[Any, Any, T]) -> T:
    """Awaits the call to its end even if the caller is cancelled, which is raised afterwards. For calls with a timeout
    whose effect must be known."""
    task = asyncio.ensure_future(call)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


class Duplex:
    """A call with streams in both directions."""

    def __init__(self, method: Any) -> None:
        self._call = method()
        self._is_cancelled = False
        self._has_failed_to_send = False

    async def send(self, request: Any) -> None:
        """Nothing is raised if the call has ended."""
        try:
            await self._call.write(request)
        except (grpc.RpcError, asyncio.InvalidStateError):
            self._has_failed_to_send = True

    async def receive(self) -> Any:
        """None at the end."""
        try:
            response = await self._call.read()
        except asyncio.CancelledError:
            if self._is_cancelled:  # by cancel(), and not the task
                return None
            raise
        except grpc.RpcError as status:
            # If a write meets the end of the call, gRPC forgets how it ended, and what was not read yet.
            if self._has_failed_to_send and status.code() is grpc.StatusCode.INTERNAL:
                return None
            raise
        return None if response is grpc.aio.EOF else response

    def cancel(self) -> None:
        self._is_cancelled = True
        self._call.cancel()


_M_co = TypeVar("_M_co", covariant=True)


class Manager(Protocol[_M_co]):
    async def __aenter__(self) -> _M_co: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


M = TypeVar("M", bound="Manager[Any]")


class Pending(Generic[M]):
    """An operation to await, or to use with `async with` at once."""

    def __init__(self, operation: Coroutine[Any, Any, M]) -> None:
        self._operation = operation
        self._made: M | None = None

    def __await__(self) -> Generator[Any, None, M]:
        return self._operation.__await__()

    async def __aenter__(self) -> M:
        self._made = await self._operation
        entered: M = await self._made.__aenter__()
        return entered

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._made is not None:
            await self._made.__aexit__(kind, error, traceback)


def pending(operation: Coroutine[Any, Any, M]) -> Pending[M]:
    return Pending(operation)


async def send_all(method: Any, requests: Any, timeout: float | None) -> Any:
    """A call with a stream of requests; an error of the iterator cancels it and is raised."""
    call = method(timeout=timeout)
    try:
        # The daemon may end the call at any time: its status then says why.
        with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError):
            async for request in requests:
                await call.write(request)
            await call.done_writing()
    except BaseException:
        call.cancel()
        raise
    return await call
