# SPDX-License-Identifier: Apache-2.0
"""Entrypoints, commands, stopping, and daemon restarts."""

import signal
import time
from statistics import median

import pytest

from link import LinkError

PINGS_OF_A_RECONNECT = 50


def test_nothing_of_the_image_runs_before_go(sandbox):
    box = sandbox("pass-on")
    box.start()
    processes = box.engine.docker("top", box.name, "-eo", "pid,args").stdout.splitlines()[1:]
    assert [line.split(None, 1)[1] for line in processes] == ["/.agbox-guest"]
    assert box.logs() == ""


def test_an_entrypoint_that_ignores_its_arguments_fails_with_its_words(sandbox):
    box = sandbox("ignores-arguments")
    box.start()
    outcome = box.go()
    assert not outcome["passed"]
    assert outcome["code"] == 7
    assert "I do what I want" in outcome["tail"] and "really" in outcome["tail"]
    assert "exit code 7" in outcome["sentence"] and "--no-entrypoint" in outcome["sentence"]
    assert "I do what I want" in box.logs()
    # The guest stays until it is stopped, so that a reconnecting daemon gets the report too.
    assert box.state()["Running"]


def test_bypassing_the_entrypoint_goes_without_it(sandbox):
    box = sandbox("ignores-arguments")
    box.ready(bypass=True)
    assert box.exec("id", "-un") == "agbox"


def test_an_entrypoint_that_takes_too_long_fails_with_its_words(sandbox):
    box = sandbox("never-passes")
    box.start()
    outcome = box.go(limit_ms=3000)
    assert not outcome["passed"]
    assert "in time" in outcome["sentence"] and "waiting for a database" in outcome["sentence"]
    # Nothing of it is left running.
    assert "sleep 3600" not in box.exec("ps", user="0")


def test_only_a_descendant_of_the_entrypoint_can_pass_it(sandbox):
    box = sandbox("faker")
    box.start()
    outcome = box.go()
    assert not outcome["passed"] and outcome["code"] == 9


def test_a_program_of_a_running_container_cannot_pass_the_entrypoint(sandbox):
    box = sandbox("never-passes")
    box.start()
    box.daemon.ask("go", box.name, entrypoint=["/entry"], command=[], limit_ms=20000)
    assert "accepts this only from its entrypoint" in box.exec("/.agbox-guest", "enter", user="0", check=False)
    with pytest.raises(LinkError, match="does not answer"):
        box.daemon.ask("entrypoint", box.name, limit_ms=300)


def test_a_command_runs_as_the_user_and_its_end_is_the_containers(sandbox, uid):
    box = sandbox("busybox", uid)
    box.start()
    assert box.go(["sh", "-c", "echo $(id -u) $HOME $USER $(pwd); echo more >/dev/stderr; exit 5"])["passed"]
    assert box.wait_exit() == 5
    assert f"{uid} /home/agbox agbox /workspace" in box.logs()
    assert "more" in box.logs()


def test_a_command_behind_an_entrypoint_runs_as_the_user(sandbox):
    box = sandbox("pass-on")
    box.ready(["sh", "-c", "echo a; echo b >/dev/stdout; echo $(id -u) $HOME $USER; kill -9 $$"])
    assert box.wait_exit() == 137
    assert "a\nb\n1000 /home/agbox agbox\n" in box.logs()


def test_a_command_below_a_shell_ends_the_container_with_its_code(sandbox):
    box = sandbox("below-a-shell")
    box.ready(["sh", "-c", "exit 6"])
    assert box.wait_exit() == 6
    assert "cleaned up" in box.logs()


def test_all_output_of_a_command_reaches_the_log(sandbox):
    box = sandbox("busybox")
    box.ready(["sh", "-c", "seq 1 200000"])  # far more than the capacity of all pipes
    assert box.wait_exit() == 0
    assert box.logs().splitlines() == [str(number) for number in range(1, 200001)]


def test_a_command_that_cannot_be_run_is_told(sandbox):
    box = sandbox("busybox")
    box.start()
    outcome = box.go(["no-such-program"])
    assert not outcome["passed"] and outcome["code"] == 127
    assert "cannot run 'no-such-program': No such file or directory" in outcome["sentence"]


@pytest.mark.parametrize("name", ["busybox", "pass-on"])
def test_a_stop_without_a_command_is_quick(sandbox, name):
    box = sandbox(name)
    box.ready()
    assert box.stop() < 30
    assert box.state()["ExitCode"] == 0


@pytest.mark.parametrize("name", ["busybox", "pass-on", "below-a-shell"])
def test_a_stop_is_forwarded_to_the_command(sandbox, name):
    box = sandbox(name)
    box.ready(["sh", "-c", "trap 'echo got it; exit 3' TERM; echo up; while :; do sleep 0.05; done"])
    box.wait_log("up")
    assert box.stop() < 30
    assert box.state()["ExitCode"] == 3
    assert "got it" in box.logs()


def test_a_command_that_is_stopped_is_not_done(sandbox):
    box = sandbox("busybox")
    box.ready(["sh", "-c", "trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done"])
    box.wait_log("up")
    box.stop()
    assert box.state()["ExitCode"] == 128 + signal.SIGTERM


def test_the_daemon_can_stop_it_too(sandbox):
    box = sandbox("busybox")
    box.ready()
    box.daemon.ask("stop", box.name)
    assert box.wait_exit() == 0


def test_zombies_are_reaped(sandbox):
    box = sandbox("busybox")
    box.ready()
    box.exec("sh", "-c", "for i in 1 2 3 4 5 6 7 8; do (sh -c 'true' &) ; done")
    deadline = time.monotonic() + 10
    while " Z " in box.exec("sh", "-c", "cat /proc/[0-9]*/stat", user="0", check=False):
        assert time.monotonic() < deadline


@pytest.mark.parametrize("phase", ["before go", "in the entrypoint", "passed", "failed"])
def test_the_guest_comes_back_to_a_daemon_that_was_killed(sandbox, start_daemon, uid, phase):
    name = {"in the entrypoint": "never-passes", "failed": "ignores-arguments"}.get(phase, "pass-on")
    box = sandbox(name, uid)
    hello = box.start()
    if phase == "in the entrypoint":
        answer = box.daemon.ask("go", box.name, entrypoint=["/entry"], command=[], limit_ms=20000)
        box.secret = answer["secret"]
        box.wait_log("waiting for a database")  # otherwise the secret may not have arrived
    elif phase != "before go":
        box.go()
    box.daemon.kill()
    assert box.state()["Running"]
    box.daemon = start_daemon(uid)
    box.daemon.ask("adopt", box.name, device=box.place["device"], inode=box.place["inode"])
    known = {"secret": box.secret} if box.secret else {}
    box.expect(**known, pid=hello["pid"], start_time=hello["start_time"])
    back = box.daemon.ask("hello", box.name)
    assert back["phase"] == {"before go": 1, "in the entrypoint": 2, "passed": 3, "failed": 4}[phase]
    assert (back["pid"], back["start_time"]) == (hello["pid"], hello["start_time"])
    box.daemon.ask("ping", box.name)
    if phase == "passed":
        assert box.daemon.ask("entrypoint", box.name)["passed"]
    if phase == "failed":
        assert "I do what I want" in box.daemon.ask("entrypoint", box.name)["sentence"]
    if phase == "before go":
        assert box.go()["passed"]


def seconds_of_reconnects(box, start_daemon, is_late=False):
    """Medians of five: until the guest is connected again, and of a ping as a control. A late guest is paused until
    the daemon listens."""
    times, pings = [], []
    for _ in range(5):
        box.daemon.kill()
        box.daemon = start_daemon(1000)
        box.daemon.ask("adopt", box.name, device=box.place["device"], inode=box.place["inode"])
        if is_late:
            box.engine.docker("pause", box.name)
        before = time.monotonic()
        box.expect(secret=box.secret)
        if is_late:
            box.engine.docker("unpause", box.name)
        when, _ = box.daemon.wait_event("connected")
        times.append(when - before)
        for _ in range(10):
            before = time.monotonic()
            box.daemon.ask("ping", box.name)
            pings.append(time.monotonic() - before)
    return median(times), median(pings)


def test_a_reconnect_takes_as_long_as_a_few_pings(sandbox, start_daemon):
    box = sandbox("busybox")
    box.ready()
    reconnect, ping = seconds_of_reconnects(box, start_daemon)
    print(f"\nreconnect {reconnect * 1000:.2f} ms, ping {ping * 1000:.2f} ms: {reconnect / ping:.1f} times")
    assert reconnect < PINGS_OF_A_RECONNECT * ping


def test_a_guest_that_reconnects_late_is_noticed(sandbox, start_daemon):
    box = sandbox("busybox")
    box.ready()
    reconnect, ping = seconds_of_reconnects(box, start_daemon, is_late=True)
    print(f"\nreconnect {reconnect * 1000:.2f} ms, ping {ping * 1000:.2f} ms: {reconnect / ping:.1f} times")
    assert reconnect > PINGS_OF_A_RECONNECT * ping


def test_a_directory_that_was_made_again_is_told_instead_of_waited_for(sandbox, start_daemon):
    box = sandbox("busybox")
    box.ready()
    box.daemon.kill()
    box.daemon = start_daemon(1000)
    box.daemon.ask("forget", box.name)
    box.daemon.ask("make", box.name)
    box.daemon.end()
    box.daemon = start_daemon(1000)
    with pytest.raises(LinkError, match="create it again"):
        box.daemon.ask("adopt", box.name, device=box.place["device"], inode=box.place["inode"])
