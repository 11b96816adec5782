# SPDX-License-Identifier: Apache-2.0
"""Deletes, crashes of the daemon and crashes of the engine at every step of a sandbox's life."""

import os
import signal
import time

import pytest
from support.images import make_image
from support.odd_images import odd_image
from support.sandboxes import (
    CREATE_FAILPOINTS,
    DELETE_FAILPOINTS,
    DELETED,
    FAILED,
    PREPARING,
    READY,
    assert_one_history,
    connected,
    crashing,
    inside,
    left_over,
    network,
    restarted,
    started,
)


@pytest.fixture
def image(engine):
    return make_image(engine.api, "crash:1")


@pytest.fixture
def copied(directory, contract):
    """What a create has to have for every failpoint to be passed."""
    (directory / "copied").write_text("copied")
    (directory / "copied").chmod(0o644)
    return {
        "copies": [contract.spec.CopySpec(source=str(directory / "copied"), target="/opt/copied")],
        "ports": [contract.spec.PortMapping(host_port=18090, container_port=80)],
        "builtin_tools": ["npm"],
    }


@pytest.fixture
def with_npm(armed, test_user):
    """A daemon whose user has what the tool mounts."""

    def make(failpoints):
        daemon = armed(failpoints)
        (daemon.home / ".npm").mkdir()
        os.chown(daemon.home / ".npm", test_user.uid, test_user.gid)
        return daemon

    return make


@pytest.fixture
def occupied(engine, failpoint):
    """Where only a refused subnet leads to the failpoint: a network in the way of the first choice,
    without an address on the host that would warn of it."""
    if not failpoint.startswith("create.subnet."):
        yield
        return
    body = {
        "Name": "in-the-way",
        "Options": {"com.docker.network.bridge.inhibit_ipv4": "true"},
        "IPAM": {"Config": [{"Subnet": "10.201.0.0/28"}]},
    }
    engine.api.call("POST", "/networks/create", json_body=body)
    yield
    engine.api.call("DELETE", "/networks/in-the-way")


def preparings(events):
    return [event for event in events if event.event_type == PREPARING]


@pytest.mark.engines("28")
@pytest.mark.usefixtures("occupied")
@pytest.mark.family(3)
@pytest.mark.parametrize("failpoint", CREATE_FAILPOINTS)
def test_a_create_that_is_held_anywhere_can_be_deleted(with_npm, engine, contract, image, copied, failpoint):
    daemon = started(with_npm(f"{failpoint}=hold"))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create("held", image, **copied)
        daemon.wait_for_message("held at a failpoint")
        stream = sandboxes.subscribe("held")
        events = sandboxes.delete_wait("held")
        assert_one_history(events)
        assert left_over(engine) == []
        assert sandboxes.get("held").last_event_sequence == len(events)
        assert [next(stream).sequence for _ in events] == [event.sequence for event in events]
        stream.cancel()
    assert daemon.stop() == 0
    with connected(restarted(daemon), contract) as sandboxes:
        assert sandboxes.get("held").last_event_sequence == len(events)


@pytest.mark.engines("28")
@pytest.mark.usefixtures("occupied")
@pytest.mark.family(3)
@pytest.mark.parametrize("failpoint", CREATE_FAILPOINTS)
def test_a_create_starts_over_after_a_crash_anywhere(with_npm, engine, contract, image, copied, failpoint):
    daemon = started(with_npm(f"{failpoint}=kill"))
    with connected(daemon, contract) as sandboxes:
        with crashing(daemon):
            sandboxes.create("crash", image, **copied)
    with connected(restarted(daemon), contract) as sandboxes:
        events = sandboxes.wait("crash", READY)
        assert len(preparings(events)) == 2
        assert inside(engine, "crash", "id", "-un") == "agbox"
        assert inside(engine, "crash", "cat", "/opt/copied") == "copied"
        assert len(sandboxes.get("crash").builtin_resources) == 1
        assert_one_history(sandboxes.delete_wait("crash"))
    assert left_over(engine) == []


@pytest.mark.engines("28")
@pytest.mark.family(3)
@pytest.mark.parametrize("failpoint", DELETE_FAILPOINTS)
def test_a_delete_goes_on_after_a_crash_anywhere(armed, engine, contract, image, failpoint):
    daemon = started(armed(f"{failpoint}=kill"))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("crash", image)
        with crashing(daemon):
            sandboxes.delete("crash")
    with connected(restarted(daemon), contract) as sandboxes:
        events = sandboxes.wait("crash", DELETED)
        assert_one_history(events)
        assert len(events) == 5
    assert left_over(engine) == []


@pytest.mark.parametrize("failpoint", ["create.image.before", "start.container.after"])
def test_a_create_that_kills_the_daemon_three_times_fails(
    armed, engine, contract, image, failpoint
):
    daemon = started(armed(f"{failpoint}=kill"))
    with connected(daemon, contract) as sandboxes, crashing(daemon):
        sandboxes.create("deadly", image)
    for _ in range(2):
        daemon.launch()
        assert daemon.wait() == -signal.SIGKILL
    with connected(started(daemon), contract) as sandboxes:
        events = sandboxes.follow("deadly", lambda event: event.sandbox_state == FAILED)
        assert len(preparings(events)) == 3
        phase = events[-1].sandbox_phase
        assert phase.error_code == "SANDBOX_CREATE_FAILED"
        assert "3 times" in phase.error_message
        assert_one_history(sandboxes.delete_wait("deadly"))
    assert left_over(engine) == []


def first_process_began(engine, sandbox_id):
    return inside(engine, sandbox_id, "cut", "-d", " ", "-f", "22", "/proc/1/stat", user="0")


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_ready_sandbox_outlives_the_daemon_and_its_guest_comes_back(
    armed, engine, contract, image, end
):
    daemon = started(armed())
    with connected(daemon, contract) as sandboxes:
        before = sandboxes.create_ready("survivor", image)
        process = first_process_began(engine, "survivor")
    daemon.stop() if end == "stop" else daemon.kill()
    assert inside(engine, "survivor", "id", "-un") == "agbox"
    with connected(restarted(daemon), contract) as sandboxes:
        assert daemon.wait_for_message("the guest is connected")["sandbox_id"] == "survivor"
        assert sandboxes.get("survivor").state == READY
        assert first_process_began(engine, "survivor") == process
        after = sandboxes.history("survivor")
        assert [event.event_id for event in after] == [event.event_id for event in before]
        assert_one_history(sandboxes.delete_wait("survivor"))
    assert left_over(engine) == []


@pytest.mark.engines("28")
def test_sandboxes_of_an_earlier_run_keep_their_networks(armed, engine, contract, image):
    """What is stored keeps the subnet from others: without it the next create would begin with the
    pool's first, be refused by the engine and ask for all networks."""

    def look(name):
        net = engine.api.call("GET", f"/networks/{network(name)}").json()
        return net["Id"], net["IPAM"]["Config"][0]["Subnet"]

    daemon = started(armed())
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("first", image)
    first = look("first")
    assert first[1] == "10.201.0.0/28"
    daemon.stop()
    # Only a create that was refused its subnet comes by this failpoint.
    with connected(restarted(daemon, "create.subnet.before=kill"), contract) as sandboxes:
        sandboxes.create_ready("second", image)
        assert look("first") == first
        assert look("second")[1] == "10.201.0.16/28"
        for name in ("first", "second"):
            sandboxes.delete_wait(name)
    assert left_over(engine) == []


@pytest.mark.engines("28")
def test_a_create_that_waits_for_its_entrypoint_can_be_deleted_at_once(armed, engine, contract):
    image = make_image(engine.api, "crash-waits:1", odd_image("never-passes"))
    daemon = started(armed())
    with connected(daemon, contract) as sandboxes:
        sandboxes.create("waiting", image)
        daemon.wait_for_message("the guest is connected")
        before = time.monotonic()
        assert_one_history(sandboxes.delete_wait("waiting"))
        assert time.monotonic() - before < 20  # the entrypoint alone may take 60
    assert left_over(engine) == []


@pytest.mark.engines("28")
def test_two_daemons_share_an_engine_and_a_pool(armed, engine, contract, image):
    """Neither refuses to start because of the other's networks, and neither touches them."""
    first = started(armed())
    with connected(first, contract) as ours:
        ours.create_ready("shared-1", image)
        with connected(started(armed()), contract) as theirs:
            theirs.create_ready("shared-2", image)
            assert [handle.sandbox_id for handle in theirs.page().sandboxes] == ["shared-2"]
            theirs.delete_wait("shared-2")
        assert inside(engine, "shared-1", "id", "-un") == "agbox"
        ours.delete_wait("shared-1")
    assert left_over(engine) == []
