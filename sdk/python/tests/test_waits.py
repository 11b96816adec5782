# SPDX-License-Identifier: Apache-2.0
"""Waits follow events: across lost streams, until their limit, and without polling."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from conftest import Client, FakeDaemon

import agents_sandbox as sdk
from agents_sandbox._async import follow as asynchronous
from agents_sandbox._generated.agbox.v1 import event_pb2, sandbox_pb2, service_pb2
from agents_sandbox._sync import follow as synchronous


def handle(state: int, sequence: int, **fields: Any) -> sandbox_pb2.SandboxHandle:
    return sandbox_pb2.SandboxHandle(
        sandbox_id="box1",
        state=state,  # type: ignore[arg-type]
        last_event_sequence=sequence,
        **fields,
    )


def event(sequence: int, state: int = 1) -> event_pb2.SandboxEvent:
    return event_pb2.SandboxEvent(sandbox_id="box1", sequence=sequence, sandbox_state=state)  # type: ignore[arg-type]


def create(daemon: FakeDaemon) -> None:
    daemon.answers["CreateSandbox"] = lambda *_: service_pb2.CreateSandboxResponse(sandbox=handle(1, 1))
    daemon.answers["Ping"] = lambda *_: service_pb2.PingResponse(version="1", daemon="agboxd")


def starts_of(daemon: FakeDaemon) -> list[int]:
    return [
        r.from_sequence for r in daemon.requests if isinstance(r, service_pb2.SubscribeSandboxEventsRequest)
    ]


def test_a_wait_continues_after_the_last_event_when_a_stream_is_lost(
    daemon: FakeDaemon, client: Client
) -> None:
    def subscribe(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        if request.from_sequence == 1:
            yield event(2)
            context.abort(grpc.StatusCode.UNAVAILABLE, "lost")
        elif request.from_sequence == 2:
            yield event(3)  # and ends
        else:
            yield event(4, state=2)

    create(daemon)
    daemon.answers["SubscribeSandboxEvents"] = subscribe
    daemon.answers["GetSandbox"] = lambda *_: service_pb2.GetSandboxResponse(sandbox=handle(2, 4))
    daemon.start()
    assert client.call("create_sandbox", image="x").state is sdk.SandboxState.READY
    assert starts_of(daemon) == [1, 2, 3]
    # Only the event that decides is followed by a question.
    assert sum(isinstance(r, service_pb2.GetSandboxRequest) for r in daemon.requests) == 1


def test_events_come_once_and_in_order_across_a_restart(daemon: FakeDaemon, client: Client) -> None:
    def subscribe(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        if len(starts_of(daemon)) == 1:
            yield from (event(1), event(2))
            threading.Thread(target=restart).start()
            context.add_callback(lambda: None)
            while context.is_active():
                time.sleep(0.01)
        # One that sends an event again.
        yield from (event(request.from_sequence), event(3), event(4))

    def restart() -> None:
        daemon.stop()
        daemon.start()

    create(daemon)
    daemon.answers["SubscribeSandboxEvents"] = subscribe
    daemon.start()
    assert [one.sequence for one in client.events("box1", count=4)] == [1, 2, 3, 4]


def test_a_stream_has_no_limit_but_its_own(daemon: FakeDaemon, client: Client) -> None:
    released = threading.Event()

    def subscribe(*_: Any) -> Iterator[Any]:
        assert released.wait(1.0) is False  # longer than the limit of calls
        yield event(1)

    daemon.answers["SubscribeSandboxEvents"] = subscribe
    daemon.start()
    (first,) = client.events("box1", count=1, options={"timeout_seconds": 0.3})
    assert first.sequence == 1
    with pytest.raises(sdk.DaemonTimeoutError, match=r"the subscription of events did not end within 0\.2 s"):
        client.events("box1", count=1, options={"stream_timeout_seconds": 0.2})
    released.set()


def test_a_wait_that_takes_too_long_is_a_timeout(daemon: FakeDaemon, client: Client) -> None:
    ended = threading.Event()

    def subscribe(*_: Any) -> Iterator[Any]:
        yield event(2)
        ended.wait(10)

    create(daemon)
    daemon.answers["SubscribeSandboxEvents"] = subscribe
    daemon.start()
    with pytest.raises(TimeoutError, match=r"create_sandbox did not end within 0\.4 s") as raised:
        client.call("create_sandbox", image="x", options={"operation_timeout_seconds": 0.4})
    assert not isinstance(raised.value, sdk.SandboxClientError)
    ended.set()


@pytest.mark.parametrize("has_failed_before", [True, False])
def test_a_sandbox_that_fails_ends_the_wait_with_the_reason(
    has_failed_before: bool, daemon: FakeDaemon, client: Client
) -> None:
    failed = handle(3, 3, error_code="IMAGE_PULL_FAILED", error_message="no such image")
    answer = failed if has_failed_before else handle(1, 1)
    daemon.answers["CreateSandbox"] = lambda *_: service_pb2.CreateSandboxResponse(sandbox=answer)
    daemon.answers["SubscribeSandboxEvents"] = lambda *_: iter([event(3, state=3)])
    daemon.answers["GetSandbox"] = lambda *_: service_pb2.GetSandboxResponse(sandbox=failed)
    daemon.start()
    with pytest.raises(sdk.SandboxFailedError) as raised:
        client.call("create_sandbox", image="x")
    assert str(raised.value).startswith("create_sandbox observed sandbox box1 in FAILED state.")
    assert (raised.value.error_code, raised.value.error_message) == ("IMAGE_PULL_FAILED", "no such image")


def test_a_sandbox_that_is_deleted_ends_the_wait(daemon: FakeDaemon, client: Client) -> None:
    create(daemon)
    daemon.answers["SubscribeSandboxEvents"] = lambda *_: iter([event(2, state=5)])
    daemon.answers["GetSandbox"] = lambda *_: service_pb2.GetSandboxResponse(sandbox=handle(6, 3))
    daemon.start()
    with pytest.raises(sdk.SandboxFailedError, match="in DELETED state"):
        client.call("create_sandbox", image="x")


def test_lists_are_read_to_their_last_page(daemon: FakeDaemon, client: Client) -> None:
    def answer(request: Any, _: Any) -> Any:
        page = int(request.page_token or 0)
        return service_pb2.ListSandboxesResponse(
            sandboxes=[handle(2, page + 1)], next_page_token=str(page + 1) if page < 2 else ""
        )

    daemon.answers["ListSandboxes"] = answer
    daemon.start()
    assert [one.last_event_sequence for one in client.call("list_sandboxes")] == [1, 2, 3]


def test_a_daemon_may_be_lost_after_a_long_silence(
    daemon: FakeDaemon, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the absence that is limited, and not the silence before."""
    silence = threading.Event()

    def subscribe(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        if request.from_sequence == 1:
            yield event(2)
            silence.wait(2.5)
            context.abort(grpc.StatusCode.UNAVAILABLE, "lost")
        yield event(3)

    for module in (asynchronous, synchronous):
        monkeypatch.setattr(module, "_LONGEST_ABSENCE", 2.0)
    create(daemon)
    daemon.answers["SubscribeSandboxEvents"] = subscribe
    daemon.start()
    assert [one.sequence for one in client.events("box1", count=2, from_sequence=1)] == [2, 3]


def test_a_daemon_that_stays_away_is_an_error(
    runtime_directory: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (asynchronous, synchronous):
        monkeypatch.setattr(module, "_LONGEST_ABSENCE", 0.4)
    begin = time.monotonic()
    with pytest.raises(sdk.DaemonUnreachableError, match=r"not back after 0\.4 s: agboxd is not running"):
        client.events("box1", count=1)
    assert time.monotonic() - begin < 10
    assert runtime_directory.exists()


def test_a_daemon_that_keeps_ending_streams_is_an_error(
    daemon: FakeDaemon, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (asynchronous, synchronous):
        monkeypatch.setattr(module, "_LONGEST_ABSENCE", 0.4)
    create(daemon)
    daemon.answers["SubscribeSandboxEvents"] = lambda *_: iter([])
    daemon.start()
    with pytest.raises(sdk.DaemonUnreachableError, match=r"not back after 0\.4 s"):
        client.events("box1", count=1)
    assert len(starts_of(daemon)) < 10
