# SPDX-License-Identifier: Apache-2.0
"""Containers that end by themselves on a real engine: out of memory, at once each time, after a while."""

import pytest
from support.execs import FAILED as EXEC_FAILED
from support.execs import FINISHED, Execs
from support.images import make_image
from support.sandboxes import FAILED, READY, STOPPED, assert_one_history, connected, inspect, left_over, started

EAT = "x=a; while :; do x=$x$x; done"
ENDED = "the container ended and is started again"
MINUTE = 60
SECOND = 1_000_000_000  # in nanoseconds


@pytest.fixture
def image(engine):
    return make_image(engine.api, "ends:1")


@pytest.fixture
def code_out_of_memory(engine, image):
    """The daemon's name for it. Not every kernel reports it to the engine; then it is an ordinary exit."""
    body = {"Image": image, "Cmd": ["sh", "-c", EAT],
            "HostConfig": {"Memory": 64 << 20, "NetworkMode": "none"}}
    made = engine.api.call("POST", "/containers/create", json_body=body).json()["Id"]
    engine.api.call("POST", f"/containers/{made}/start")
    engine.api.call("POST", f"/containers/{made}/wait", timeout=60)
    state = inspect(engine, made)["State"]
    engine.api.call("DELETE", f"/containers/{made}")
    assert state["ExitCode"] == 137
    return "CONTAINER_OOM" if state["OOMKilled"] else "CONTAINER_EXITED"


def waits(daemon, sandbox_id):
    """How long the daemon has waited after each end so far, in seconds."""
    return [line["backoff"] / SECOND for line in daemon.log()
            if line["msg"] == ENDED and line["sandbox_id"] == sandbox_id]


def seconds_between(first, last):
    return (last.occurred_at.ToNanoseconds() - first.occurred_at.ToNanoseconds()) / SECOND


def test_one_that_runs_out_of_memory_is_started_again(
    armed, engine, contract, image, code_out_of_memory
):
    daemon = started(armed())
    with connected(daemon, contract) as sandboxes:
        # The pipe is there from the first time on.
        script = f"mkfifo /tmp/eat 2> /dev/null; read line < /tmp/eat; {EAT}"
        sandboxes.create_ready("eats-1", image, command=["sh", "-c", script], memory_limit="64m")
        execs = Execs(sandboxes, "eats-1")
        execs.create("sleep", "1000", exec_id="lost-1")
        execs.create("sh", "-c", "until [ -p /tmp/eat ]; do :; done; echo > /tmp/eat",
                     exec_id="feeds-1")
        lost = execs.wait("lost-1")
        assert (lost.state, lost.error_code) == (EXEC_FAILED, code_out_of_memory)
        assert "with code 137" in lost.error
        execs.create("true", exec_id="next-1")
        assert execs.wait("next-1").state == FINISHED
        assert waits(daemon, "eats-1") == [0.1]
        assert sandboxes.get("eats-1").state == READY
        assert_one_history(sandboxes.delete_wait("eats-1"))
    assert left_over(engine) == []


def test_a_command_that_ends_with_zero_stops_its_sandbox(armed, engine, contract, image):
    daemon = started(armed())
    with connected(daemon, contract) as sandboxes:
        # As fast as a command can be.
        created = daemon.agbox("sandbox", "create", "--image", image, "--sandbox-id", "job-1", "--", "true")
        assert created.returncode == 0, created.stderr
        events = sandboxes.follow("job-1", lambda event: event.sandbox_state == STOPPED)
        kinds = [contract.event.EventType.Name(event.event_type) for event in events]
        assert kinds == ["SANDBOX_ACCEPTED", "SANDBOX_PREPARING", "SANDBOX_READY",
                         "SANDBOX_STOP_REQUESTED", "SANDBOX_STOPPED"]
        assert [event.sandbox_phase.reason for event in events[3:]] == ["command_finished"] * 2
        handle = sandboxes.get("job-1")
        assert (handle.restart_count, handle.last_exit) == (0, "exit code 0")
        refused = daemon.agbox("exec", "run", "job-1", "--", "true")
        assert "is stopped (command_finished); resume it" in refused.stderr
        seen = len(events)
        sandboxes.resume("job-1")
        again = sandboxes.follow(
            "job-1", lambda event: event.sequence > seen and event.sandbox_state == STOPPED)
        assert [event.sandbox_phase.reason for event in again[-2:]] == ["command_finished"] * 2
        assert_one_history(sandboxes.delete_wait("job-1"))
    assert left_over(engine) == []


@pytest.mark.long
@pytest.mark.engines("28")
def test_crash_loops_fail_in_five_to_seven_minutes_and_slow_crashes_never(
    armed, engine, contract, image, code_out_of_memory
):
    daemon = started(armed())
    eats = code_out_of_memory.replace("EXITED", "CRASHLOOP")
    with connected(daemon, contract) as sandboxes:
        scripts = {"loop-1": "sleep 1; exit 3", "eats-1": f"sleep 1; {EAT}", "slow-1": "sleep 40; exit 3"}
        for name, script in scripts.items():
            sandboxes.create_ready(name, image, command=["sh", "-c", script], memory_limit="64m")
        for name, code in {"loop-1": "CONTAINER_CRASHLOOP", "eats-1": eats}.items():
            events = sandboxes.follow(name, lambda event: event.sandbox_state == FAILED, timeout=480)
            failed = events[-1]
            ends = [event for event in events if event.sandbox_phase.phase == "restart"]
            assert failed.sandbox_phase.error_code == code
            assert 5 * MINUTE < seconds_between(ends[0], failed) < 7 * MINUTE
            assert len(ends) == len(waits(daemon, name)) == sandboxes.get(name).restart_count
            assert waits(daemon, name) == [min(0.1 * 2**n, 60) for n in range(len(waits(daemon, name)))]
        assert sandboxes.get("slow-1").state == READY
        assert len(waits(daemon, "slow-1")) >= 6
        assert set(waits(daemon, "slow-1")) == {0.1}
        for name in scripts:
            assert_one_history(sandboxes.delete_wait(name))
    assert left_over(engine) == []
