# SPDX-License-Identifier: Apache-2.0
"""A daemon in this process, for answers that a real one does not give. tests/e2e has the real one."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage

import agents_sandbox
import agents_sandbox.sync
from agents_sandbox._generated.agbox.rpc import error_details_pb2
from agents_sandbox._generated.agbox.v1 import service_pb2_grpc


class FakeDaemon(service_pb2_grpc.SandboxServiceServicer):
    """Calls answer with what `answers` has for their name: a function of request and context."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.answers: dict[str, Callable[[Any, grpc.ServicerContext], Any]] = {}
        self.requests: list[Any] = []
        self._server: grpc.Server | None = None

    def __getattribute__(self, name: str) -> Any:
        if name[0].isupper() and name in self.answers:
            answer = self.answers[name]

            def handle(request: Any, context: grpc.ServicerContext) -> Any:
                self.requests.append(request)
                return answer(request, context)

            return handle
        return super().__getattribute__(name)

    def start(self) -> None:
        self._server = grpc.server(ThreadPoolExecutor(8))
        service_pb2_grpc.add_SandboxServiceServicer_to_server(self, self._server)  # type: ignore[no-untyped-call]
        self._server.add_insecure_port(f"unix://{self.socket}")
        self._server.start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop(None).wait()
            self._server = None


@pytest.fixture
def runtime_directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="agbx-", dir="/tmp"))
    (directory / "agbox").mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(directory))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def daemon(runtime_directory: Path) -> Iterator[FakeDaemon]:
    """Answers are set before start()."""
    fake = FakeDaemon(runtime_directory / "agbox" / "agboxd.sock")
    yield fake
    fake.stop()


class Client:
    """A call of the asynchronous or the synchronous client, by its name."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.module: Any = agents_sandbox if kind == "async" else agents_sandbox.sync

    def call(self, method: str, *arguments: Any, options: dict[str, Any] | None = None, **named: Any) -> Any:
        if self.kind == "sync":
            with self.module.AgentsSandboxClient(**options or {}) as client:
                return getattr(client, method)(*arguments, **named)

        async def call() -> Any:
            async with self.module.AgentsSandboxClient(**options or {}) as client:
                return await getattr(client, method)(*arguments, **named)

        return asyncio.run(call())

    def events(
        self, *arguments: Any, count: int, options: dict[str, Any] | None = None, **named: Any
    ) -> list[Any]:
        if self.kind == "sync":
            with self.module.AgentsSandboxClient(**options or {}) as client:
                events = client.subscribe_sandbox_events(*arguments, **named)
                return [next(events) for _ in range(count)]

        async def read() -> list[Any]:
            async with self.module.AgentsSandboxClient(**options or {}) as client:
                events = client.subscribe_sandbox_events(*arguments, **named)
                found = [await anext(events) for _ in range(count)]
                await events.aclose()
                return found

        return asyncio.run(read())


@pytest.fixture(params=["async", "sync"])
def client(request: pytest.FixtureRequest) -> Client:
    return Client(request.param)


def refuse(
    context: grpc.ServicerContext, code: grpc.StatusCode, message: str, reason: str, **metadata: str
) -> Any:
    """As agboxd reports errors."""
    info = error_details_pb2.ErrorInfo(reason=reason, domain="agents-sandbox", metadata=metadata)
    detail = AnyMessage(type_url="type.googleapis.com/google.rpc.ErrorInfo", value=info.SerializeToString())
    status = error_details_pb2.Status(code=code.value[0], message=message, details=[detail])
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(code, message)
