# SPDX-License-Identifier: Apache-2.0
"""Every reason arrives as its error with its fields; what a newer daemon sends breaks nothing."""

from __future__ import annotations

import asyncio
import socket
import time
from pathlib import Path
from typing import Any

import grpc
import pytest
from conftest import Client, FakeDaemon, refuse

import agents_sandbox as sdk
from agents_sandbox._generated.agbox.v1 import event_pb2, exec_pb2, sandbox_pb2, service_pb2

NOT_FOUND, EXISTS = grpc.StatusCode.NOT_FOUND, grpc.StatusCode.ALREADY_EXISTS
PRECONDITION, RANGE = grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.OUT_OF_RANGE
REASONS: list[tuple[str, grpc.StatusCode, dict[str, str], type[Exception], dict[str, Any]]] = [
    (
        "SANDBOX_NOT_FOUND",
        NOT_FOUND,
        {"sandbox_id": "box1"},
        sdk.SandboxNotFoundError,
        {"sandbox_id": "box1"},
    ),
    (
        "SANDBOX_ID_ALREADY_EXISTS",
        EXISTS,
        {"sandbox_id": "box1"},
        sdk.SandboxConflictError,
        {"sandbox_id": "box1"},
    ),
    ("EXEC_ID_ALREADY_EXISTS", EXISTS, {"exec_id": "run1"}, sdk.SandboxConflictError, {"exec_id": "run1"}),
    ("SANDBOX_CONFLICT", EXISTS, {}, sdk.SandboxConflictError, {"sandbox_id": ""}),
    (
        "SANDBOX_NOT_READY",
        PRECONDITION,
        {"sandbox_id": "box1"},
        sdk.SandboxNotReadyError,
        {"sandbox_id": "box1"},
    ),
    ("SANDBOX_INVALID_STATE", PRECONDITION, {"sandbox_id": "box1"}, sdk.SandboxInvalidStateError, {}),
    ("EXEC_NOT_FOUND", NOT_FOUND, {"exec_id": "run1"}, sdk.ExecNotFoundError, {"exec_id": "run1"}),
    (
        "EXEC_ALREADY_TERMINAL",
        PRECONDITION,
        {"exec_id": "run1"},
        sdk.ExecAlreadyTerminalError,
        {"exec_id": "run1"},
    ),
    ("EXEC_NOT_RUNNING", PRECONDITION, {"exec_id": "run1"}, sdk.ExecNotRunningError, {"exec_id": "run1"}),
    (
        "SANDBOX_EVENT_SEQUENCE_EXPIRED",
        RANGE,
        {"sandbox_id": "box1", "from_sequence": "7", "oldest_sequence": "3"},
        sdk.SandboxSequenceExpiredError,
        {"sandbox_id": "box1", "from_sequence": 7, "oldest_sequence": 3},
    ),
    (
        "SOMETHING_NEW",
        PRECONDITION,
        {"sandbox_id": "box1"},
        sdk.SandboxClientError,
        {"reason": "SOMETHING_NEW"},
    ),
]


@pytest.mark.parametrize(
    ("reason", "code", "metadata", "kind", "fields"), REASONS, ids=[row[0] for row in REASONS]
)
def test_a_reason_is_an_error_with_its_fields(
    reason: str, code: Any, metadata: Any, kind: Any, fields: Any, daemon: FakeDaemon, client: Client
) -> None:
    daemon.answers["GetSandbox"] = lambda _, context: refuse(
        context, code, "what happened", reason, **metadata
    )
    daemon.start()
    with pytest.raises(sdk.SandboxClientError) as raised:
        client.call("get_sandbox", "box1")
    assert type(raised.value) is kind
    assert {name: getattr(raised.value, name) for name in fields} == fields
    assert (str(raised.value), raised.value.code, raised.value.reason) == ("what happened", code.name, reason)


def test_a_sequence_that_is_no_number_is_none(daemon: FakeDaemon, client: Client) -> None:
    daemon.answers["SubscribeSandboxEvents"] = lambda _, context: refuse(
        context, RANGE, "x", "SANDBOX_EVENT_SEQUENCE_EXPIRED", from_sequence="-1x"
    )
    daemon.start()
    with pytest.raises(sdk.SandboxSequenceExpiredError) as raised:
        client.events("box1", count=1)
    assert (raised.value.from_sequence, raised.value.oldest_sequence) == (None, None)


def test_details_that_cannot_be_read_leave_the_message(daemon: FakeDaemon, client: Client) -> None:
    def answer(_: Any, context: grpc.ServicerContext) -> None:
        context.set_trailing_metadata((("grpc-status-details-bin", b"\xff\xff\xff"),))
        context.abort(NOT_FOUND, "a message")

    daemon.answers["GetSandbox"] = answer
    daemon.start()
    with pytest.raises(sdk.SandboxClientError, match=r"^a message$") as raised:
        client.call("get_sandbox", "box1")
    assert type(raised.value) is sdk.SandboxClientError


def test_cancel_of_an_exec_in_a_wrong_state_names_it(daemon: FakeDaemon, client: Client) -> None:
    daemon.answers["CancelExec"] = lambda _, context: refuse(
        context, PRECONDITION, "no", "SANDBOX_INVALID_STATE"
    )
    daemon.start()
    with pytest.raises(sdk.ExecNotRunningError) as raised:
        client.call("cancel_exec", "run1")
    assert raised.value.exec_id == "run1"


def test_numbers_of_a_newer_daemon_are_kept(daemon: FakeDaemon, client: Client) -> None:
    daemon.answers["GetSandbox"] = lambda *_: service_pb2.GetSandboxResponse(
        sandbox=sandbox_pb2.SandboxHandle(sandbox_id="box1", state=99)  # type: ignore[arg-type]
    )
    daemon.answers["GetExec"] = lambda *_: service_pb2.GetExecResponse(
        exec=exec_pb2.ExecStatus(exec_id="run1", state=77, exit_code=3)  # type: ignore[arg-type]
    )
    daemon.answers["SubscribeSandboxEvents"] = lambda *_: iter(
        [event_pb2.SandboxEvent(sequence=1, event_type=55, sandbox_state=66)]  # type: ignore[arg-type]
    )
    daemon.start()
    sandbox, execution = client.call("get_sandbox", "box1"), client.call("get_exec", "run1")
    (event,) = client.events("box1", count=1)
    assert (sandbox.state, sandbox.state.name) == (99, "UNKNOWN_99")
    assert (execution.state.name, execution.exit_code) == ("UNKNOWN_77", None)
    assert (event.event_type.name, event.sandbox_state) == ("UNKNOWN_55", 66)


def test_without_a_daemon_the_error_says_so(runtime_directory: Path, client: Client) -> None:
    begin = time.monotonic()
    with pytest.raises(
        sdk.DaemonUnreachableError, match=r"agboxd is not running: socket .* does not exist; start it"
    ):
        client.call("ping")
    (runtime_directory / "agbox" / "agboxd.sock").write_text("")
    with pytest.raises(sdk.DaemonUnreachableError, match="is not a socket; remove it"):
        client.call("ping")
    assert time.monotonic() - begin < 5


def test_a_daemon_that_does_not_respond_is_a_timeout(runtime_directory: Path, client: Client) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(runtime_directory / "agbox" / "agboxd.sock"))
        listener.listen()
        begin = time.monotonic()
        with pytest.raises(sdk.SandboxClientError, match=r"did not respond within 0\.3 s") as raised:
            client.call("ping", options={"timeout_seconds": 0.3})
    assert isinstance(raised.value, TimeoutError)
    assert 0.2 < time.monotonic() - begin < 5


def test_a_socket_path_that_is_too_long_is_named(monkeypatch: pytest.MonkeyPatch, client: Client) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/tmp/" + "x" * 120)
    with pytest.raises(sdk.SandboxClientError, match=r"is too long: the limit is 107 bytes"):
        client.call("ping")


def test_without_a_runtime_directory_the_variable_is_named(
    monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    with pytest.raises(sdk.SandboxClientError, match="XDG_RUNTIME_DIR is not set"):
        client.call("ping")


@pytest.mark.parametrize(
    ("method", "arguments", "named", "kind", "message"),
    [
        ("create_sandbox", (), {}, ValueError, "image or config_yaml is required"),
        ("create_sandbox", (), {"image": "x", "sandbox_id": ""}, ValueError, "sandbox_id must not be empty"),
        ("create_sandbox", (), {"image": "x", "command": []}, ValueError, "command must not be empty"),
        ("create_sandbox", (), {"image": "x", "command": ["sh", ""]}, ValueError, "empty string"),
        (
            "create_sandbox",
            (),
            {"image": "x", "command": "sh"},
            TypeError,
            "must be a list of strings, not str",
        ),
        (
            "create_sandbox",
            (),
            {"image": "x", "ports": [sdk.PortMapping(1, 2, "icmp")]},
            ValueError,
            "tcp, udp or sctp",
        ),
        ("create_exec", ("box1", "ls"), {}, TypeError, "must be a list of strings, not str"),
        ("create_exec", ("box1", ["ls"]), {"exec_id": ""}, ValueError, "exec_id must not be empty"),
    ],
)
def test_invalid_arguments_are_refused_without_a_call(
    method: str, arguments: Any, named: Any, kind: Any, message: str, runtime_directory: Path, client: Client
) -> None:
    with pytest.raises(kind, match=message):
        client.call(method, *arguments, **named)
    assert runtime_directory.exists()


@pytest.mark.parametrize("name", ["timeout_seconds", "stream_timeout_seconds", "operation_timeout_seconds"])
def test_a_timeout_that_is_not_positive_is_refused(
    name: str, runtime_directory: Path, client: Client
) -> None:
    with pytest.raises(ValueError, match=f"{name} must be more than 0"):
        client.module.AgentsSandboxClient(**{name: 0.0})
    assert runtime_directory.exists()


def test_a_client_is_closed_with_or_without_an_event_loop(daemon: FakeDaemon) -> None:
    daemon.answers["Ping"] = lambda *_: service_pb2.PingResponse(version="1", daemon="agboxd")
    daemon.start()
    outside, inside = sdk.AgentsSandboxClient(), sdk.AgentsSandboxClient()
    assert asyncio.run(outside.ping()) == sdk.PingInfo("1", "agboxd")
    outside.close()

    async def close() -> None:
        await inside.ping()
        await inside.close()
        for client in (outside, inside):
            with pytest.raises(sdk.SandboxClientError, match="the client was closed"):
                await client.ping()

    asyncio.run(close())
