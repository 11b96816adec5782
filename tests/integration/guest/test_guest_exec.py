# SPDX-License-Identifier: Apache-2.0
"""Execs in real containers: environment, end, and attacks on them."""

import re
import time
from pathlib import Path
from statistics import median

import pytest


def names(box) -> list[str]:
    """The kernel's names of all processes in the container."""
    lines = box.engine.docker("top", box.name, "-eo", "pid,comm").stdout.splitlines()[1:]
    return [line.split(None, 1)[1] for line in lines]


def runner_pids(box) -> list[str]:
    """Inside, the oldest first."""
    script = "for p in /proc/[0-9]*; do [ x$(cat $p/comm 2>/dev/null) = xagbox-runner ] && echo ${p#/proc/}; done"
    return sorted(box.exec("sh", "-c", script, user="0", check=False).split(), key=int)


def await_names(box, expected: dict[str, int]) -> None:
    deadline = time.monotonic() + 20
    while {name: names(box).count(name) for name in expected} != expected:
        assert time.monotonic() < deadline, names(box)


def await_only_the_guest(box) -> None:
    """A runner reports the end of its exec before its own end."""
    deadline = time.monotonic() + 20
    while (left := names(box)) != [".agbox-guest"]:
        assert time.monotonic() < deadline, left


@pytest.mark.parametrize("name", ["busybox", "debian"])
def test_a_command_runs_as_the_runtime_user(execs, uid, name):
    run = execs(name, uid).run_shell
    assert run("id -u; id -g; echo $HOME $USER; pwd; echo $HOST_UID").out.split() == [
        str(uid), str(uid), "/home/agbox", "agbox", "/workspace", str(uid)
    ]
    assert run("echo $A $B", env=["A=1", "B=2", "A=3"]).out == "3 2\n"
    assert run("pwd", cwd="/tmp").out == "/tmp\n"
    assert run("cat; readlink /proc/self/fd/0").out == "/dev/null\n"
    done = run("echo out; echo err >&2; exit 42")
    assert (done.how, done.code, done.out, done.err) == ("exited", 42, "out\n", "err\n")
    assert run("kill -11 $$").end["how"] == "signaled"


def test_the_one_binary_of_an_image_without_a_shell_runs(execs, uid):
    done = execs("scratch", uid).run("/busybox", "id", "-u")
    assert (done.how, done.code, done.out) == ("exited", 0, f"{uid}\n")


def test_what_cannot_be_run_says_why(execs):
    run = execs("busybox").run
    done = run("no-such-program")
    assert (done.how, done.code) == ("not started", 127)
    assert done.detail == "cannot run 'no-such-program': No such file or directory"
    done = run("/etc/passwd")
    assert (done.code, done.detail) == (126, "cannot run '/etc/passwd': Permission denied")
    done = run("true", cwd="/not/there")
    assert (done.code, done.detail) == (126, "cannot change to /not/there: No such file or directory")


def test_large_commands_and_environments_arrive(execs):
    run = execs("debian").run
    assert run("sh", "-c", "echo $#", "sh", *(str(n) for n in range(10000))).out == "10000\n"
    big = [f"V{number}={'v' * 10000}" for number in range(100)]
    assert int(run("sh", "-c", "env | wc -c", env=big).out) > 1_000_000
    assert run("printf", "[%s]", "", "a b", "").out == "[][a b][]"


def test_output_behaves_as_any_output(execs, uid):
    run = execs("debian", uid).run_shell
    done = run("echo a; echo b >/dev/stdout; echo c; echo d >/dev/stderr")
    assert (done.out, done.err) == ("a\nb\nc\n", "d\n")
    spoil = "truncate -s 0 /dev/stdout; chmod 777 /dev/stdout; perl -e 'seek(STDOUT, 0, 0)'"
    assert run(f"echo a; : >/dev/stdout; {spoil}; echo b").out == "a\nb\n"


def test_background_children_live_on(execs, uid):
    here = execs("debian", uid)
    before = time.monotonic()
    done = here.run_shell("nohup sleep 300 & exit 3")
    assert (done.how, done.code, done.err) == ("exited", 3, "")
    assert time.monotonic() - before < 5
    here.forget("exec-1")
    await_names(here.box, {"sleep": 1})  # before that the child was a shell and then nohup
    late = here.shell("(until [ -e /tmp/go ]; do sleep 0.01; done; echo late) & echo early")
    assert here.wait(late).out == "early\n"
    here.run("touch", "/tmp/go")
    here.wait_out(late, "early\nlate\n")


def test_a_cancel_reaches_sudo_and_new_sessions(execs):
    here = execs("debian")
    work = here.shell('sudo sleep 300 2>/dev/null & setsid sh -c "sleep 300 & wait" & (sleep 300 &); wait')
    await_names(here.box, {"sleep": 3})
    here.cancel(work)
    done = here.wait(work)
    await_only_the_guest(here.box)
    assert (done.how, done.code) == ("cancelled", 0)
    here.cancel(work)
    assert len(here.ends[work]) == 1 and not here.has_ended("another")


def test_what_ignores_a_cancel_is_killed_after_the_grace(execs, uid):
    here = execs("busybox", uid)
    work = here.shell("trap '' TERM; echo up; while :; do sleep 300; done")
    here.wait_out(work, "up")
    before = time.monotonic()
    here.cancel(work, grace_ms=500)
    assert here.wait(work).how == "cancelled"
    assert 0.5 <= time.monotonic() - before < 5
    await_only_the_guest(here.box)


PIDS = 150
# Runs only while its file exists, so that a failed test ends it.
BOMB = "$SIG{TERM} = 'IGNORE'; print 'up'; $| = 1; while (-e '/tmp/alive') { fork }"


def test_a_fork_bomb_at_the_limit_is_contained_and_cancelled(execs, uid):
    here = execs("debian", uid, options=["--pids-limit", str(PIDS)])
    groups = [line.split(":", 2) for line in Path(f"/proc/{here.guest_pid}/cgroup").read_text().splitlines()]
    directory = next((f"/sys/fs/cgroup/pids{path}" for _, kinds, path in groups if kinds == "pids"), "")
    directory = directory or f"/sys/fs/cgroup{groups[0][2]}"
    # Without the limit this test would be an attack on the machine.
    assert Path(directory, "pids.max").read_text().strip() == str(PIDS)
    here.run("touch", "/tmp/alive")
    bomb = here.start("perl", "-e", BOMB)
    deadline = time.monotonic() + 30
    while int(Path(directory, "pids.current").read_text()) < PIDS:
        assert time.monotonic() < deadline
    refused = [here.run("true") for _ in range(5)]
    assert all(done.code in (0, 126) for done in refused)
    assert any("cannot start a process" in done.detail for done in refused)
    before = time.monotonic()
    here.cancel(bomb, grace_ms=100)
    assert here.wait(bomb).how == "cancelled"
    print(f"\nbomb of {PIDS}: gone {time.monotonic() - before:.2f} s after the cancel")
    await_only_the_guest(here.box)
    assert here.run("echo", "well").out == "well\n"


def test_killing_everything_does_not_affect_other_execs(execs):
    here = execs("busybox", 1000)
    start = here.box.state()["StartedAt"]
    done = here.run_shell("env kill -9 -1; true")
    assert (done.how, done.code) == ("signaled", 9)
    assert here.run("echo", "well").out == "well\n"
    assert here.box.state()["StartedAt"] == start


@pytest.mark.parametrize("user", ["0", "agbox"])
def test_a_runner_is_not_accessible_from_inside(execs, uid, user):
    here = execs("busybox", uid)
    work = here.start("sleep", "300")
    await_names(here.box, {"sleep": 1})
    (runner,) = runner_pids(here.box)
    for look in ("cat mem", "cat environ", "cat maps", "cat fd/3", "ls cwd/", "ls root/"):
        said = here.box.exec("sh", "-c", f"cd /proc/{runner} && {look}", user=user, check=False)
        assert "Permission denied" in said, (look, said)
    status = here.box.exec("cat", f"/proc/{runner}/status", user=user)
    assert re.search(r"CapEff:\s+00000000000000e0", status), status
    if user == "agbox" and uid != 0:
        said = here.box.exec("kill", "-9", runner, user=user, check=False)
        assert "permitted" in said
    assert not here.has_ended(work)


def test_a_runner_that_root_kills_takes_its_exec_along_and_no_other(execs, uid):
    here = execs("busybox", uid)
    other = here.shell("until [ -e /tmp/go ]; do sleep 0.01; done; echo well")
    work = here.shell("(setsid sleep 300 &) ; trap '' TERM; sleep 300 & wait")
    await_names(here.box, {"agbox-runner": 2})
    deadline = time.monotonic() + 20
    while here.box.exec("ps", user="0").count("sleep 300") < 2:
        assert time.monotonic() < deadline
    here.box.exec("kill", "-9", runner_pids(here.box)[-1], user="0")
    done = here.wait(work)
    assert done.how == "runner lost" and "ended by signal 9" in done.detail
    assert "sleep 300" not in here.box.exec("ps", user="0")
    here.run("touch", "/tmp/go")
    assert here.wait(other).out == "well\n"


def test_a_stopped_runner_holds_up_its_own_exec_only(execs):
    here = execs("busybox")
    work = here.shell("echo up; sleep 300")
    here.wait_out(work, "up")
    here.box.exec("kill", "-STOP", runner_pids(here.box)[0], user="0")
    assert here.run("echo", "well").out == "well\n"
    here.cancel(work)
    assert here.wait(work).how == "cancelled"


def test_execs_outlive_the_daemon_and_run_once(execs, start_daemon, uid):
    here = execs("busybox", uid)
    box = here.box
    script = "echo $ID >>/workspace/ran; echo begin; until [ -e /tmp/$GATE ]; do sleep 0.01; done; echo end; exit $CODE"
    started = [
        here.shell(script, env=[f"ID={n}", f"CODE={n}", f"GATE={'early' if n % 2 else 'late'}"])
        for n in range(20)
    ]
    for exec_id in started:
        here.wait_out(exec_id, "begin")
    box.daemon.kill()
    box.exec("touch", "/tmp/early")
    for exec_id in started[1::2]:
        here.wait_out(exec_id, "end")

    def come_back() -> dict:
        box.daemon = start_daemon(uid)
        box.daemon.ask("adopt", box.name, device=box.place["device"], inode=box.place["inode"])
        box.expect(secret=box.secret)
        return box.daemon.ask("hello", box.name)

    assert sorted(come_back()["execs"]) == sorted(started)
    for exec_id in started[1::2]:
        here.wait(exec_id)
    for exec_id in started[1::2]:
        here.forget(exec_id)
    box.exec("touch", "/tmp/late")
    for number, exec_id in enumerate(started):
        done = here.wait(exec_id)
        assert (done.how, done.code, done.out) == ("exited", number, "begin\nend\n")
        assert len(here.ends[exec_id]) == 1
    ran = box.exec("cat", "/workspace/ran").split()
    assert sorted(ran, key=int) == [str(n) for n in range(20)]

    # What was not forgotten is reported again to the next daemon.
    box.daemon.kill()
    here.ends.clear()
    assert sorted(come_back()["execs"]) == sorted(started[0::2])
    for number in range(0, 20, 2):
        assert here.wait(started[number]).code == number


def test_the_daemon_is_out_of_the_way_of_output(execs):
    here = execs("debian")
    size = 512 << 20
    work = here.shell(f"head -c {size} /dev/zero")
    before = time.monotonic()
    done_at = here.directory / f"{work}.out"
    here.box.daemon.kill()
    deadline = time.monotonic() + 60
    while done_at.stat().st_size < size:
        assert time.monotonic() < deadline, done_at.stat().st_size
        time.sleep(0.01)
    print(f"\n{size / (time.monotonic() - before) / (1 << 20):.0f} MiB/s without a daemon")


def test_output_beyond_its_limit_is_dropped_and_told(execs):
    here = execs("busybox")
    done = here.run_shell("seq 1 100000; exit 7", limit=5000)
    assert (done.code, len(done.out), done.end["output_truncated"]) == (7, 5000, True)
    assert here.truncated == ["exec-1"]


def test_all_output_is_there_when_the_end_is_told(execs):
    here = execs("busybox")
    for _ in range(100):
        done = here.run("head", "-c", "1048576", "/dev/zero")
        assert (done.code, len(done.out)) == (0, 1 << 20)


def test_a_stop_asks_execs_to_end_and_does_not_wait_for_unresponsive_ones(execs):
    here = execs("busybox")
    deaf = here.shell("trap '' TERM; echo up; while :; do sleep 300; done")
    here.wait_out(deaf, "up")
    waited = here.box.stop()
    assert 2 <= waited < 30, "its grace period; the engine's is 60 s"
    here.box.ready()
    times = []
    for _ in range(3):
        polite = here.shell("trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done")
        here.wait_out(polite, "up")
        times.append(here.box.stop())
        assert here.out(polite) == "up\nbye\n"
        here.box.ready()
    assert median(times) < waited / 2


def test_runners_are_small_and_leave_nothing(execs):
    here = execs("busybox")
    guest = here.guest_pid
    here.run("true", env=[f"BIG{number}={'x' * 100000}" for number in range(20)])
    descriptors = len(list(Path(f"/proc/{guest}/fd").iterdir()))
    work = here.start("sleep", "300", env=[f"BIG{number}={'x' * 100000}" for number in range(10)])
    await_names(here.box, {"sleep": 1})
    children = Path(f"/proc/{guest}/task/{guest}/children").read_text().split()
    (runner,) = (pid for pid in children if "agbox-runner" in Path(f"/proc/{pid}/comm").read_text())

    def anonymous(pid: str | int) -> int:
        return int(re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text()).group(1))

    deadline = time.monotonic() + 10
    while anonymous(runner) > 256:  # the command runs before its megabyte of environment is dropped
        assert time.monotonic() < deadline, anonymous(runner)
    shared = Path(f"/proc/{runner}/smaps_rollup").read_text()
    private = int(re.search(r"Private_Dirty:\s+(\d+) kB", shared).group(1))
    print(f"\nrunner: RssAnon {anonymous(runner)} KiB, its own {private} KiB; guest: {anonymous(guest)} KiB")
    assert anonymous(guest) < 512
    here.cancel(work)
    here.wait(work)

    times = []
    for _ in range(300):
        before = time.monotonic()
        done = here.run("true")
        times.append((time.monotonic() - before) * 1000)
        assert done.code == 0
    times.sort()
    print(f"exec of true, with the test's own work: median {times[150]:.2f} ms, p99 {times[296]:.2f} ms")
    for exec_id in list(here.ends):
        here.forget(exec_id)
    here.box.daemon.ask("ping", here.box.name)
    assert len(list(Path(f"/proc/{guest}/fd").iterdir())) == descriptors
    await_only_the_guest(here.box)
