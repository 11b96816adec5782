# SPDX-License-Identifier: Apache-2.0
"""Sandboxes that are left alone, with times of a second in the place of hours and weeks."""

import grpc
import pytest
from support.execs import FINISHED, Execs
from support.images import make_image
from support.sandboxes import CONFIG, READY, STOPPED, connected, left_over, started

pytestmark = pytest.mark.engines("28")


@pytest.fixture
def image(engine):
    return make_image(engine.api, "idle:1")


@pytest.fixture
def daemon_with(make_daemon, test_user, engine):
    """daemon_with(idle_ttl="1s"): a daemon that runs."""

    def make(**times):
        lines = "".join(f'{key} = "{time}"\n' for key, time in times.items())
        config = CONFIG.replace("[runtime]\n", "[runtime]\n" + lines)
        return started(make_daemon(user=test_user, engine=engine, config=config))

    return make


def story(sandboxes, events):
    """`SANDBOX_STOPPED idle_ttl`, since it was ready."""
    types = sandboxes.contract.event.EventType
    return [f"{types.Name(event.event_type)} {event.sandbox_phase.reason}" for event in events[3:]]


def test_what_is_left_alone_is_stopped_deleted_and_purged(daemon_with, engine, contract, image):
    daemon = daemon_with(idle_ttl="1s", cleanup_ttl="1s", event_retention_ttl="1s")
    with connected(daemon, contract) as sandboxes:
        sandboxes.create("idle", image)
        events = list(sandboxes.subscribe("idle"))  # the stream ends with the history
        assert story(sandboxes, events) == [
            "SANDBOX_STOP_REQUESTED idle_ttl",
            "SANDBOX_STOPPED idle_ttl",
            "SANDBOX_DELETE_REQUESTED cleanup_ttl",
            "SANDBOX_DELETED cleanup_ttl",
        ]
        times = [event.occurred_at.ToNanoseconds() / 1e9 for event in events]
        assert times[3] - times[2] >= 0.99 and times[5] - times[4] >= 0.99
        with pytest.raises(grpc.RpcError) as gone:
            sandboxes.get("idle")
        assert gone.value.code() == grpc.StatusCode.NOT_FOUND
    assert left_over(engine) == []


def test_an_exec_and_a_time_of_its_own_keep_a_sandbox(daemon_with, engine, contract, image):
    with connected(daemon_with(idle_ttl="10s"), contract) as sandboxes:
        sandboxes.create_ready("kept", image, idle_ttl={"seconds": 0})
        sandboxes.create_ready("busy", image)
        status = Execs(sandboxes, "busy").run("sleep", "11")
        assert status.state == FINISHED, "a running exec is never idle"
        events = sandboxes.wait("busy", STOPPED)
        assert story(sandboxes, events)[-1] == "SANDBOX_STOPPED idle_ttl"
        idle = events[-2].occurred_at.ToNanoseconds() - status.ended_at.ToNanoseconds()
        assert idle / 1e9 >= 9.99
        assert sandboxes.get("kept").state == READY
        for name in ("kept", "busy"):
            sandboxes.delete_wait(name)
    assert left_over(engine) == []


def test_the_time_goes_on_while_the_daemon_is_away(daemon_with, engine, contract, image):
    daemon = daemon_with(idle_ttl="5s")
    with connected(daemon, contract) as sandboxes:
        ready = sandboxes.create_ready("away", image)[-1]
    daemon.kill()
    with connected(started(daemon), contract) as sandboxes:
        events = sandboxes.wait("away", STOPPED)
        idle = events[3].occurred_at.ToNanoseconds() - ready.occurred_at.ToNanoseconds()
        # Neither at once nor from the start of the new daemon on.
        assert 4.99 <= idle / 1e9 < 60
        sandboxes.delete_wait("away")
    assert left_over(engine) == []
