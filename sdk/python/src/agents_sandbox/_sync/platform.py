# SPDX-License-Identifier: Apache-2.0
"""What differs between the asynchronous and the synchronous client: channels, streams in both directions, and tasks."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import grpc

_P = ParamSpec("_P")
T = TypeVar("T")

Condition = threading.Condition
sleep = time.sleep
# How a caller interrupts a call.
INTERRUPTIONS: tuple[type[BaseException], ...] = (KeyboardInterrupt, SystemExit)


def open_channel(target: str, options: list[tuple[str, Any]]) -> grpc.Channel:
    return grpc.insecure_channel(target, options=options)


def close_channel(channel: grpc.Channel) -> None:
    channel.close()


def home() -> object:
    """All threads share a channel."""
    return None


def to_thread(function: Callable[_P, T], /, *arguments: _P.args, **options: _P.kwargs) -> T:
    return function(*arguments, **options)


def finish(result: T) -> T:
    return result


def pending(made: T) -> T:
    return made


class Duplex:
    """A call with streams in both directions."""

    def __init__(self, method: Any) -> None:
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._call = method(self._sent())

    def _sent(self) -> Iterator[Any]:
        while (request := self._requests.get()) is not None:
            yield request

    def send(self, request: Any) -> None:
        self._requests.put(request)

    def receive(self) -> Any:
        """None at the end."""
        try:
            response = next(self._call, None)
        except grpc.RpcError:
            self._end_requests()
            raise
        if response is None:
            self._end_requests()
        return response

    def cancel(self) -> None:
        self._end_requests()
        self._call.cancel()

    def _end_requests(self) -> None:
        """Ends the thread of gRPC that waits for them."""
        self._requests.put(None)


def send_all(method: Any, requests: Iterator[Any], timeout: float | None) -> Any:
    """A call with a stream of requests; an error of the iterator cancels it and is raised."""
    errors: list[BaseException] = []

    def kept() -> Iterator[Any]:
        try:
            yield from requests
        except BaseException as error:
            errors.append(error)
            raise

    try:
        return method(kept(), timeout=timeout)
    except grpc.RpcError:
        if errors:
            raise errors[0] from None
        raise
