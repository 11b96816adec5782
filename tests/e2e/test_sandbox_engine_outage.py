# SPDX-License-Identifier: Apache-2.0
"""An engine that hangs or crashes in the middle of a create: the daemon answers, the create goes on. And one
that is restarted: what ran before runs again."""

import pytest
from support.images import make_image
from support.sandboxes import (
    CONFIG,
    READY,
    assert_one_history,
    connected,
    left_over,
    started,
    wait_for_log,
)
from support.watch import AS_QUICK, Watch

pytestmark = pytest.mark.engines("28")

ANSWERS = 50


@pytest.fixture
def own_engine(make_engine, engine_name):
    return make_engine(engine_name)


@pytest.fixture
def daemon(make_daemon, test_user, own_engine):
    return started(make_daemon(user=test_user, engine=own_engine, config=CONFIG))


def test_an_engine_that_hangs_in_a_create_blocks_nothing_else(
    daemon, own_engine, contract, say
):
    image = make_image(own_engine.api, "outage:1")
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("before", image)
        with Watch(daemon, contract, "before") as quiet:
            quiet.wait_for(ANSWERS)
        own_engine.freeze()
        sandboxes.create("hanging", image)
        with Watch(daemon, contract, "hanging") as beside:
            beside.wait_for(ANSWERS)
        assert sandboxes.get("hanging").state != READY
        own_engine.thaw()
        say(f"next to an engine that hangs: {beside.beside(quiet)}")
        assert beside.slowdown(quiet) < AS_QUICK
        sandboxes.wait("hanging", READY)
        for name in ("before", "hanging"):
            assert_one_history(sandboxes.delete_wait(name))
    assert left_over(own_engine) == []


def test_a_create_and_a_delete_go_on_when_a_crashed_engine_is_back(
    daemon, own_engine, contract
):
    image = make_image(own_engine.api, "outage:2")
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("leaving", image)
        own_engine.freeze()
        sandboxes.create("coming", image)
        sandboxes.delete("leaving")
        own_engine.kill9()
        daemon.wait_for_message("operation is tried again")
        sandboxes.page()
        own_engine.start()
        sandboxes.wait("coming", READY)
        for name in ("leaving", "coming"):
            assert_one_history(sandboxes.delete_wait(name))
    # An engine that is killed while it makes a network forgets that network's bridge.
    assert [item for item in left_over(own_engine) if not item.startswith("link ")] == []


def test_a_command_that_the_engine_stops_when_it_shuts_down_has_not_finished(
    daemon, own_engine, contract
):
    image = make_image(own_engine.api, "outage:3")
    serve = "trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done"
    with connected(daemon, contract) as sandboxes:
        so_far = sandboxes.create_ready("server", image, command=["sh", "-c", serve])[-1].sequence
        wait_for_log(own_engine, "server", "up")
        own_engine.restart()
        again = sandboxes.follow(
            "server", lambda event: event.sequence > so_far and event.sandbox_state != READY
            or event.sequence > so_far + 1)
        types = [contract.event.EventType.Name(event.event_type) for event in again[so_far:]]
        assert types == ["SANDBOX_PREPARING", "SANDBOX_READY"]
        assert sandboxes.get("server").last_exit == "exit code 143"
        sandboxes.delete_wait("server")
    assert left_over(own_engine) == []
