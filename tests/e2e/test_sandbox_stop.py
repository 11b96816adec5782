# SPDX-License-Identifier: Apache-2.0
"""Stop and resume on a real engine: what stays, what ends, and that neither is lost."""

import time

import grpc
import pytest
from support.execs import CANCELLED, FINISHED, RUNNING, Execs, output
from support.images import make_image
from support.odd_images import odd_image
from support.sandboxes import (
    CONFIG,
    DELETED,
    FAILED,
    READY,
    RESUME_FAILPOINTS,
    STOP_FAILPOINTS,
    STOPPED,
    assert_one_history,
    connected,
    crashing,
    inside,
    inspect,
    left_over,
    network,
    primary,
    restarted,
    started,
    times_logged,
    wait_for_log,
)


@pytest.fixture
def image(engine):
    return make_image(engine.api, "stop:1")


@pytest.fixture
def sandboxes(make_daemon, daemon_user, engine, contract):
    daemon = started(make_daemon(user=daemon_user, engine=engine, config=CONFIG))
    with connected(daemon, contract) as client:
        client.daemon = daemon
        yield client
    assert left_over(engine) == []


def story(sandboxes, events, since=3):
    """`SANDBOX_STOPPED stop_requested` and `EXEC_CANCELLED one`, since it was first ready."""
    types = sandboxes.contract.event.EventType
    return [
        f"{types.Name(event.event_type)} {event.exec.exec_id or event.sandbox_phase.reason}".strip()
        for event in events[since:]
    ]


STOP = ["SANDBOX_STOP_REQUESTED stop_requested", "SANDBOX_STOPPED stop_requested"]
RESUME = ["SANDBOX_ACCEPTED", "SANDBOX_READY"]


def test_the_same_container_comes_back_with_its_files(sandboxes, engine, image):
    sandboxes.create_ready("box-1", image)
    before = inspect(engine, primary("box-1"))
    inside(engine, "box-1", "sh", "-c", "echo kept > /workspace/file")

    events = sandboxes.stop_wait("box-1")
    assert [event.sandbox_state for event in events[3:]] == [READY, STOPPED]
    stopped = inspect(engine, primary("box-1"))
    # A guest without a command ends by itself; what the engine kills after its grace has code 137.
    assert not stopped["State"]["Running"] and stopped["State"]["ExitCode"] == 0

    sandboxes.resume_wait("box-1")
    after = inspect(engine, primary("box-1"))
    assert after["Id"] == before["Id"] and after["State"]["Running"]
    status = Execs(sandboxes, "box-1").run("cat", "/workspace/file")
    assert (status.state, output(status)) == (FINISHED, "kept\n")
    events = sandboxes.delete_wait("box-1")
    assert story(sandboxes, events)[:4] == STOP + RESUME
    assert_one_history(events)


def times_of_a_stop(sandboxes, image):
    """Seconds after the request: the ends of an exec that ends when it is asked to and of one that does not, of the
    stop, and of another stop without execs; and how both ended."""
    sandboxes.create_ready("box-1", image)
    quiet = sandboxes.stop_wait("box-1")
    sandboxes.resume_wait("box-1")
    execs = Execs(sandboxes, "box-1")
    execs.create("sh", "-c", "echo up; exec sleep 600", exec_id="polite")
    # Neither SIGTERM nor a session of its own saves it.
    deaf = "trap '' TERM; echo up; setsid sleep 600 & while :; do sleep 1; done"
    execs.create("sh", "-c", deaf, exec_id="deaf")
    for name in ("polite", "deaf"):
        execs.wait_for_output(name)
    events = sandboxes.stop_wait("box-1")[len(quiet) + len(RESUME) + 2 :]
    assert story(sandboxes, events, since=0)[:: len(events) - 1] == STOP
    assert sorted(event.exec.exec_id for event in events[1:-1]) == ["deaf", "polite"]
    at = {event.exec.exec_id: event.occurred_at.ToNanoseconds() / 1e9 for event in events[1:-1]}
    requested, stopped = (event.occurred_at.ToNanoseconds() / 1e9 for event in (events[0], events[-1]))
    before, after = (event.occurred_at.ToNanoseconds() / 1e9 for event in quiet[-2:])
    states = {execs.get(name).state for name in ("polite", "deaf")}
    sandboxes.delete_wait("box-1")
    return (at["polite"] - requested, at["deaf"] - requested, stopped - requested, after - before), states


def ended_as_they_were_asked_to(polite, deaf, stopped, quiet):
    """The polite one at once, the deaf one after its grace, and only then the container, which takes as long as
    without execs."""
    return polite < deaf / 2 and stopped - deaf > quiet / 4


def test_execs_end_before_the_sandbox_is_stopped(sandboxes, image, say):
    times, states = times_of_a_stop(sandboxes, image)
    assert states == {CANCELLED}
    say("polite {:.2f} s, deaf {:.2f} s, stopped {:.2f} s, without execs {:.2f} s".format(*times))
    assert ended_as_they_were_asked_to(*times)


@pytest.mark.engines("28")
def test_execs_that_nobody_asks_to_end_are_noticed(make_daemon, test_user, engine, contract, image):
    """A daemon without its cancels: they end with the container."""
    daemon = make_daemon(
        user=test_user,
        engine=engine,
        config=CONFIG,
        environment={"AGBOX_FAILPOINTS": "exec.cancel_send.before=error"},
    )
    with connected(started(daemon), contract) as sandboxes:
        times, _ = times_of_a_stop(sandboxes, image)
        assert not ended_as_they_were_asked_to(*times)
    assert left_over(engine) == []


def test_a_callers_command_gets_sigterm(sandboxes, engine, image):
    trap = "trap 'echo told to end; exit 7' TERM; echo up; while :; do sleep 0.1; done"
    sandboxes.create_ready("box-1", image, command=["sh", "-c", trap])
    wait_for_log(engine, "box-1", "up")
    sandboxes.stop_wait("box-1")
    assert inspect(engine, primary("box-1"))["State"]["ExitCode"] == 7
    assert times_logged(engine, "box-1", "told to end") == 1
    # It runs again at every start.
    sandboxes.resume_wait("box-1")
    wait_for_log(engine, "box-1", "up", times=2)
    sandboxes.stop_wait("box-1")
    assert times_logged(engine, "box-1", "told to end") == 2
    sandboxes.delete_wait("box-1")


@pytest.mark.engines("28")
def test_a_command_that_ignores_sigterm_is_killed_after_five_seconds(sandboxes, engine, image):
    trap = "trap '' TERM; echo up; while :; do sleep 1; done"
    sandboxes.create_ready("box-1", image, command=["sh", "-c", trap])
    wait_for_log(engine, "box-1", "up")
    began = time.monotonic()
    sandboxes.stop_wait("box-1")
    assert 4 < time.monotonic() - began < 20
    assert inspect(engine, primary("box-1"))["State"]["ExitCode"] == 137
    sandboxes.delete_wait("box-1")


@pytest.mark.parametrize("missing", ["container", "network"])
def test_a_resume_recreates_nothing(sandboxes, engine, image, missing):
    sandboxes.create_ready("box-1", image)
    sandboxes.stop_wait("box-1")
    if missing == "container":
        engine.docker("rm", "-f", primary("box-1"))
    else:
        engine.docker("network", "rm", network("box-1"))
    sandboxes.resume("box-1")
    (last,) = sandboxes.follow("box-1", lambda event: event.sandbox_state == FAILED)[-1:]
    assert last.sandbox_phase.error_code == "SANDBOX_RESUME_FAILED"
    name = primary("box-1") if missing == "container" else network("box-1")
    assert f"{missing} {name}" in last.sandbox_phase.error_message
    assert "is gone" in last.sandbox_phase.error_message
    left = left_over(engine)
    assert not any(line.startswith(f"{missing} ") for line in left), left
    assert not any("running" in line for line in left), left
    sandboxes.delete_wait("box-1")


@pytest.mark.engines("28")
def test_the_second_of_two_stops_adds_nothing_and_a_resume_is_refused(armed, contract, image):
    daemon = started(armed("stop.container.before=hold"))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        sandboxes.stop("box-1")
        daemon.wait_for_message("held at a failpoint")
        sandboxes.stop("box-1")
        assert sandboxes.get("box-1").last_event_sequence == 4
        with pytest.raises(grpc.RpcError) as refused:
            sandboxes.resume("box-1")
        assert refused.value.details() == "sandbox box-1 is not stopped"
        with pytest.raises(grpc.RpcError) as refused:
            Execs(sandboxes, "box-1").create("true")
        assert refused.value.details() == (
            "sandbox box-1 is not ready: it is being stopped (stop_requested); resume it once it is stopped"
        )
        assert_one_history(sandboxes.delete_wait("box-1"))


@pytest.mark.engines("28")
@pytest.mark.family(3)
@pytest.mark.parametrize("failpoint", STOP_FAILPOINTS)
def test_a_stop_goes_on_after_a_crash_anywhere(armed, engine, contract, image, failpoint):
    daemon = started(armed(f"{failpoint}=kill"))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("crash", image)
        container = inspect(engine, primary("crash"))["Id"]
        Execs(sandboxes, "crash").create("sleep", "600", exec_id="long")
        with crashing(daemon):
            sandboxes.stop("crash")
    with connected(restarted(daemon), contract) as sandboxes:
        events = sandboxes.wait("crash", STOPPED)
        assert story(sandboxes, events) == [
            "EXEC_STARTED long", STOP[0], "EXEC_CANCELLED long", STOP[1]]
        assert inspect(engine, primary("crash"))["Id"] == container
        sandboxes.resume_wait("crash")
        assert inside(engine, "crash", "id", "-un") == "agbox"
        assert_one_history(sandboxes.delete_wait("crash"))
    assert left_over(engine) == []


@pytest.mark.engines("28")
@pytest.mark.family(3)
@pytest.mark.parametrize("failpoint", RESUME_FAILPOINTS)
def test_a_resume_goes_on_after_a_crash_anywhere(armed, engine, contract, image, failpoint):
    daemon = started(armed())
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("crash", image)
        container = inspect(engine, primary("crash"))["Id"]
        sandboxes.stop_wait("crash")
    daemon.stop()
    restarted(daemon, f"{failpoint}=kill")
    with connected(daemon, contract) as sandboxes, crashing(daemon):
        sandboxes.resume("crash")
    with connected(restarted(daemon), contract) as sandboxes:
        events = sandboxes.follow("crash", lambda event: event.sequence > 5 and event.sandbox_state == READY)
        assert story(sandboxes, events) == STOP + RESUME
        assert inspect(engine, primary("crash"))["Id"] == container
        status = Execs(sandboxes, "crash").run("true")
        assert status.state == FINISHED
        assert_one_history(sandboxes.delete_wait("crash"))
    assert left_over(engine) == []


@pytest.mark.engines("28")
@pytest.mark.family(3)
@pytest.mark.parametrize("failpoint", STOP_FAILPOINTS)
def test_a_stop_that_is_held_anywhere_can_be_deleted(armed, engine, contract, image, failpoint):
    daemon = started(armed(f"{failpoint}=hold"))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("held", image)
        sandboxes.stop("held")
        daemon.wait_for_message("held at a failpoint")
        events = sandboxes.delete_wait("held")
        assert_one_history(events)
        assert events[-1].sandbox_state == DELETED
        assert "SANDBOX_STOPPED stop_requested" not in story(sandboxes, events)
    assert left_over(engine) == []


@pytest.mark.engines("28")
@pytest.mark.parametrize("kind", ["pass-on", "user-1234", "own-ideas", "scratch"])
def test_odd_images_come_back_too(sandboxes, engine, kind):
    image = make_image(engine.api, f"stop-{kind}:1", odd_image(kind))
    sandboxes.create_ready("box-1", image)
    sandboxes.stop_wait("box-1")
    # By its name the image is another one now.
    engine.docker("rmi", "--force", image)
    sandboxes.resume_wait("box-1")
    program = "/busybox" if kind == "scratch" else "/bin/busybox"
    assert Execs(sandboxes, "box-1").run(program, "true").state == FINISHED
    if kind == "pass-on":
        wait_for_log(engine, "box-1", "entrypoint as 0:0", times=2)
        assert times_logged(engine, "box-1", "entrypoint as 0:0") == 2
    sandboxes.delete_wait("box-1")


@pytest.mark.engines("28")
def test_a_stopped_sandbox_outlives_the_daemon(armed, engine, contract, image):
    daemon = started(armed())
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        sandboxes.stop_wait("box-1")
    daemon.kill()
    with connected(restarted(daemon), contract) as sandboxes:
        assert sandboxes.get("box-1").state == STOPPED
        sandboxes.resume_wait("box-1")
        execs = Execs(sandboxes, "box-1")
        execs.create("sleep", "600", exec_id="long")
        assert execs.get("long").state == RUNNING
        sandboxes.delete_wait("box-1")
    assert left_over(engine) == []
