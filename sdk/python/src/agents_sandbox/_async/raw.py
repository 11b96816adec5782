# SPDX-License-Identifier: Apache-2.0
"""The thin client: one method per call of the API, with its messages, typed errors and raw streams."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Generic, TypeVar

import grpc

from agents_sandbox._async import platform
from agents_sandbox._generated.agbox.v1 import event_pb2, files_pb2, service_pb2, service_pb2_grpc
from agents_sandbox._socket_path import default_socket_path, target_of
from agents_sandbox._status import error_of, was_not_sent
from agents_sandbox.errors import SandboxClientError

R = TypeVar("R")

_OPTIONS: list[tuple[str, Any]] = [
    # The daemon is on this machine: no proxy, no service configuration from DNS.
    ("grpc.enable_http_proxy", 0),
    ("grpc.service_config_disable_resolution", 1),
    # A call that may have reached the daemon is repeated by the caller or not at all.
    ("grpc.enable_retries", 0),
    # Clients of one process share neither a connection nor its backoff.
    ("grpc.use_local_subchannel_pool", 1),
    # Reconnect to a restarted daemon at once; gRPC's default backoff grows to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.max_reconnect_backoff_ms", 500),
]


class Stream(Generic[R]):
    """Responses of one call. Ends without an error only if the daemon ended it so."""

    def __init__(self, client: RawClient, call: Any, timeout: float | None) -> None:
        self._client = client
        self._call = call
        self._responses = call.__aiter__()
        self._timeout = timeout

    def __aiter__(self) -> AsyncIterator[R]:
        return self

    async def __anext__(self) -> R:
        try:
            response: R = await self._responses.__anext__()
        except grpc.RpcError as status:
            raise self._client.error_of(status, self._timeout) from status
        return response

    def cancel(self) -> None:
        self._call.cancel()


class AttachStream:
    """An AttachExec call."""

    def __init__(self, client: RawClient, call: platform.Duplex) -> None:
        self._client = client
        self._call = call

    async def send(self, request: service_pb2.AttachExecRequest) -> None:
        """Nothing is raised if the call has ended: receive() says why."""
        await self._call.send(request)

    async def receive(self) -> service_pb2.AttachExecResponse | None:
        """None at the end."""
        try:
            response: service_pb2.AttachExecResponse | None = await self._call.receive()
        except grpc.RpcError as status:
            raise self._client.error_of(status, None) from status
        return response

    def cancel(self) -> None:
        self._call.cancel()


class RawClient:
    """Connects at the first call. `timeout` is the limit in seconds of calls with one response; None: no limit."""

    def __init__(self, *, socket_path: str | None = None, timeout: float | None = 5.0) -> None:
        self.socket_path = socket_path or default_socket_path()
        self.timeout = timeout
        self._channel: Any = None
        self._stub: Any = None
        self._home: object = None
        self._is_closed = False

    async def close(self) -> None:
        channel, self._channel, self._stub, self._is_closed = self._channel, None, None, True
        if channel is not None and self._home == platform.home():
            await platform.close_channel(channel)

    async def __aenter__(self) -> RawClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def ping(
        self, request: service_pb2.PingRequest, *, timeout: float | None = None, wait_for_ready: bool = False
    ) -> service_pb2.PingResponse:
        """`wait_for_ready`: waits for a daemon that is not reachable yet, at most until the timeout."""
        response: service_pb2.PingResponse = await self._call("Ping", request, timeout, wait_for_ready)
        return response

    async def create_sandbox(
        self, request: service_pb2.CreateSandboxRequest, *, timeout: float | None = None
    ) -> service_pb2.CreateSandboxResponse:
        response: service_pb2.CreateSandboxResponse = await self._call("CreateSandbox", request, timeout)
        return response

    async def get_sandbox(
        self, request: service_pb2.GetSandboxRequest, *, timeout: float | None = None
    ) -> service_pb2.GetSandboxResponse:
        response: service_pb2.GetSandboxResponse = await self._call("GetSandbox", request, timeout)
        return response

    async def list_sandboxes(
        self, request: service_pb2.ListSandboxesRequest, *, timeout: float | None = None
    ) -> service_pb2.ListSandboxesResponse:
        response: service_pb2.ListSandboxesResponse = await self._call("ListSandboxes", request, timeout)
        return response

    async def resume_sandbox(
        self, request: service_pb2.ResumeSandboxRequest, *, timeout: float | None = None
    ) -> service_pb2.AcceptedResponse:
        response: service_pb2.AcceptedResponse = await self._call("ResumeSandbox", request, timeout)
        return response

    async def stop_sandbox(
        self, request: service_pb2.StopSandboxRequest, *, timeout: float | None = None
    ) -> service_pb2.AcceptedResponse:
        response: service_pb2.AcceptedResponse = await self._call("StopSandbox", request, timeout)
        return response

    async def delete_sandbox(
        self, request: service_pb2.DeleteSandboxRequest, *, timeout: float | None = None
    ) -> service_pb2.AcceptedResponse:
        response: service_pb2.AcceptedResponse = await self._call("DeleteSandbox", request, timeout)
        return response

    async def delete_sandboxes(
        self, request: service_pb2.DeleteSandboxesRequest, *, timeout: float | None = None
    ) -> service_pb2.DeleteSandboxesResponse:
        response: service_pb2.DeleteSandboxesResponse = await self._call("DeleteSandboxes", request, timeout)
        return response

    async def create_exec(
        self, request: service_pb2.CreateExecRequest, *, timeout: float | None = None
    ) -> service_pb2.CreateExecResponse:
        response: service_pb2.CreateExecResponse = await self._call("CreateExec", request, timeout)
        return response

    async def cancel_exec(
        self, request: service_pb2.CancelExecRequest, *, timeout: float | None = None
    ) -> service_pb2.AcceptedResponse:
        response: service_pb2.AcceptedResponse = await self._call("CancelExec", request, timeout)
        return response

    async def get_exec(
        self, request: service_pb2.GetExecRequest, *, timeout: float | None = None
    ) -> service_pb2.GetExecResponse:
        response: service_pb2.GetExecResponse = await self._call("GetExec", request, timeout)
        return response

    async def list_active_execs(
        self, request: service_pb2.ListActiveExecsRequest, *, timeout: float | None = None
    ) -> service_pb2.ListActiveExecsResponse:
        response: service_pb2.ListActiveExecsResponse = await self._call("ListActiveExecs", request, timeout)
        return response

    async def list_execs(
        self, request: service_pb2.ListExecsRequest, *, timeout: float | None = None
    ) -> service_pb2.ListExecsResponse:
        response: service_pb2.ListExecsResponse = await self._call("ListExecs", request, timeout)
        return response

    async def get_stats(
        self, request: service_pb2.GetStatsRequest, *, timeout: float | None = None
    ) -> service_pb2.GetStatsResponse:
        response: service_pb2.GetStatsResponse = await self._call("GetStats", request, timeout)
        return response

    async def diagnose(
        self, request: service_pb2.DiagnoseRequest, *, timeout: float | None = None
    ) -> service_pb2.DiagnoseResponse:
        response: service_pb2.DiagnoseResponse = await self._call("Diagnose", request, timeout)
        return response

    def hold_sandbox(
        self, request: service_pb2.HoldSandboxRequest, *, timeout: float | None = None
    ) -> Stream[service_pb2.HoldSandboxResponse]:
        """The sandbox is held from the first response on, until cancel() or the end of this program."""
        return self._stream("HoldSandbox", request, timeout)

    def subscribe_sandbox_events(
        self, request: service_pb2.SubscribeSandboxEventsRequest, *, timeout: float | None = None
    ) -> Stream[event_pb2.SandboxEvent]:
        return self._stream("SubscribeSandboxEvents", request, timeout)

    def subscribe_events(
        self, request: service_pb2.SubscribeEventsRequest, *, timeout: float | None = None
    ) -> Stream[service_pb2.SubscribeEventsResponse]:
        return self._stream("SubscribeEvents", request, timeout)

    def read_exec_output(
        self, request: service_pb2.ReadExecOutputRequest, *, timeout: float | None = None
    ) -> Stream[service_pb2.ReadExecOutputResponse]:
        return self._stream("ReadExecOutput", request, timeout)

    def read_container_logs(
        self, request: service_pb2.ReadContainerLogsRequest, *, timeout: float | None = None
    ) -> Stream[service_pb2.ReadContainerLogsResponse]:
        return self._stream("ReadContainerLogs", request, timeout)

    def watch_stats(
        self, request: service_pb2.WatchStatsRequest, *, timeout: float | None = None
    ) -> Stream[service_pb2.WatchStatsResponse]:
        return self._stream("WatchStats", request, timeout)

    def copy_out(
        self, request: files_pb2.CopyOutRequest, *, timeout: float | None = None
    ) -> Stream[files_pb2.CopyOutResponse]:
        return self._stream("CopyOut", request, timeout)

    async def copy_in(
        self, requests: AsyncIterator[files_pb2.CopyInRequest], *, timeout: float | None = None
    ) -> files_pb2.CopyInResponse:
        """An error that `requests` raises ends the call, and is raised."""
        try:
            response: files_pb2.CopyInResponse = await platform.send_all(
                self.stub().CopyIn, requests, timeout
            )
        except grpc.RpcError as status:
            raise self.error_of(status, timeout) from status
        return response

    def attach_exec(self) -> AttachStream:
        return AttachStream(self, platform.Duplex(self.stub().AttachExec))

    async def call(self, method: str, request: Any, *, timeout: float | None = None) -> Any:
        """Any call with one request and one response, by its name in the API."""
        return await self._call(method, request, timeout)

    def stream(self, method: str, request: Any, *, timeout: float | None = None) -> Stream[Any]:
        """Any call with one request and a stream of responses, by its name in the API."""
        return self._stream(method, request, timeout)

    def stub(self) -> Any:
        """The generated stub, for calls without the translation of errors."""
        if self._is_closed:
            raise SandboxClientError("the client was closed")
        if self._stub is None or self._home != platform.home():
            self._home = platform.home()
            self._channel = platform.open_channel(target_of(self.socket_path), _OPTIONS)
            # The generated class has no annotations.
            self._stub = service_pb2_grpc.SandboxServiceStub(self._channel)  # type: ignore[no-untyped-call,unused-ignore]
        return self._stub

    def error_of(self, status: grpc.RpcError, timeout: float | None) -> SandboxClientError:
        return error_of(status, self.socket_path, timeout)

    async def _call(
        self, method: str, request: Any, timeout: float | None, wait_for_ready: bool = False
    ) -> Any:
        limit = self.timeout if timeout is None else timeout
        call = getattr(self.stub(), method)
        try:
            try:
                return await call(request, timeout=limit, wait_for_ready=wait_for_ready)
            except grpc.RpcError as status:
                if not was_not_sent(status, self.socket_path):
                    raise
                return await call(request, timeout=limit, wait_for_ready=True)
        except grpc.RpcError as status:
            raise self.error_of(status, limit) from status

    def _stream(self, method: str, request: Any, timeout: float | None) -> Stream[Any]:
        return Stream(self, getattr(self.stub(), method)(request, timeout=timeout), timeout)
