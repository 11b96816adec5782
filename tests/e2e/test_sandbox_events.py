# SPDX-License-Identifier: Apache-2.0
"""Events: the same from every anchor, before and after a restart, and never ahead of the state."""

import threading

import grpc
import pytest
from support.images import make_image
from support.sandboxes import (
    CONFIG,
    DELETED,
    READY,
    connected,
    restarted,
    started,
)

pytestmark = pytest.mark.engines("28")


@pytest.fixture
def daemon(make_daemon, test_user, engine):
    return started(make_daemon(user=test_user, engine=engine, config=CONFIG))


@pytest.fixture
def image(engine):
    return make_image(engine.api, "events:1")


def bytes_of(event):
    """All of an event but whether it was there before the subscription."""
    copy = type(event).FromString(event.SerializeToString())
    copy.replay = False
    return copy.SerializeToString(deterministic=True)


def read(sandboxes, sandbox_id, newest, **request):
    if request.get("from_sequence") == newest:
        return []
    return sandboxes.follow(sandbox_id, lambda event: event.sequence == newest, **request)


def test_every_anchor_yields_the_same_bytes_before_and_after_a_restart(
    daemon, contract, image
):
    with connected(daemon, contract) as sandboxes:
        sandboxes.create("anchors", image)
        live = []
        for event in sandboxes.subscribe("anchors"):
            live.append(event)
            if event.sandbox_state == READY:
                sandboxes.delete("anchors")
            if event.sandbox_state == DELETED:
                break
        count = len(live)
        before = [read(sandboxes, "anchors", count, from_sequence=k) for k in range(count + 1)]
    assert daemon.stop() == 0
    with connected(restarted(daemon), contract) as sandboxes:
        after = [read(sandboxes, "anchors", count, from_sequence=k) for k in range(count + 1)]
    whole = [bytes_of(event) for event in live]
    assert count == 5
    for k in range(count + 1):
        assert [bytes_of(event) for event in before[k]] == whole[k:]
        assert [bytes_of(event) for event in after[k]] == whole[k:]
        assert all(event.replay for event in after[k])


def test_an_event_is_never_seen_before_the_state_that_it_announces(daemon, contract, image):
    with connected(daemon, contract) as sandboxes:
        sandboxes.create("atomic", image)
        for event in sandboxes.subscribe("atomic"):
            handle = sandboxes.get("atomic")
            assert handle.last_event_sequence >= event.sequence
            if handle.last_event_sequence == event.sequence:
                assert handle.state == event.sandbox_state
                if event.sandbox_state == READY:
                    sandboxes.delete("atomic")
            if event.sandbox_state == DELETED:
                break


def test_events_that_come_while_one_listens_are_no_replay(daemon, contract, image):
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("replayed", image)
        stream = sandboxes.subscribe("replayed", from_sequence=2)
        assert next(stream).replay
        sandboxes.delete("replayed")
        live = [next(stream), next(stream)]
        assert [event.replay for event in live] == [False, False]
        assert live[-1].sandbox_state == DELETED
        stream.cancel()


def test_a_snapshot_comes_first_and_is_not_sent_twice(daemon, contract, image):
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("snapshot", image)
        stream = sandboxes.subscribe("snapshot", include_current_snapshot=True)
        first = next(stream)
        assert (first.sequence, first.snapshot, first.replay) == (3, True, True)
        assert [next(stream).sequence, next(stream).sequence] == [1, 2]
        sandboxes.delete("snapshot")
        following = [next(stream), next(stream)]
        assert [(event.sequence, event.snapshot) for event in following] == [(4, False), (5, False)]
        stream.cancel()


def test_an_anchor_that_is_newer_than_the_newest_event_is_out_of_range(daemon, contract, image):
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("future", image)
        for snapshot in (False, True):
            with pytest.raises(grpc.RpcError) as refused:
                list(
                    sandboxes.subscribe(
                        "future", from_sequence=4, include_current_snapshot=snapshot
                    )
                )
            assert refused.value.code() == grpc.StatusCode.OUT_OF_RANGE
            assert "event sequence 4 is outside retained history" in refused.value.details()
        sandboxes.delete_wait("future")


def test_a_stream_stays_open_after_the_sandbox_was_deleted(daemon, contract, image):
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("open", image)
        sandboxes.delete_wait("open")
        stream = sandboxes.subscribe("open", from_sequence=4)
        assert next(stream).sandbox_state == DELETED
        threading.Timer(1.5, stream.cancel).start()
        with pytest.raises(grpc.RpcError) as ended:  # and not StopIteration
            next(stream)
        assert ended.value.code() == grpc.StatusCode.CANCELLED


def test_the_end_of_the_daemon_ends_streams_with_its_own_error(daemon, contract, image):
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("ends-1", image)
        events = sandboxes.subscribe("ends-1", from_sequence=2)
        assert next(events).sandbox_state == READY
        command = sandboxes.service.CreateExecRequest(
            sandbox_id="ends-1", exec_id="says-1", command=["sh", "-c", "echo here; exec sleep 600"])
        sandboxes.stub.CreateExec(command, timeout=10)
        follow = sandboxes.service.ReadExecOutputRequest(exec_id="says-1", stream=1, follow=True)
        output = sandboxes.stub.ReadExecOutput(follow, timeout=60)
        assert next(output).data == b"here\n"
        assert daemon.stop() == 0
        for stream in (events, output):
            with pytest.raises(grpc.RpcError) as ended:
                while True:
                    next(stream)
            assert ended.value.code() == grpc.StatusCode.UNAVAILABLE
            assert ended.value.details() == "agboxd is shutting down; call again once it has started"
            trailers = dict(ended.value.trailing_metadata())
            status = contract.error_details.Status.FromString(trailers["grpc-status-details-bin"])
            info = contract.error_details.ErrorInfo.FromString(status.details[0].value)
            assert info.reason == "SHUTTING_DOWN"
    daemon.start()
    with connected(daemon, contract) as sandboxes:
        sandboxes.delete_wait("ends-1")
