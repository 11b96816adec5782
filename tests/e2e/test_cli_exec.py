# SPDX-License-Identifier: Apache-2.0
"""agbox exec, agbox sandbox exec and agbox logs on a real engine: a command in a sandbox as if it ran here."""

import contextlib
import hashlib
import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.daemon import PrivateDaemon
from support.images import make_image
from support.sandboxes import CONFIG, inside, started

IMAGE = "cli/exec:1"
BOX = "cli-exec"


@pytest.fixture
def box(make_daemon, daemon_user, engine) -> Iterator[PrivateDaemon]:
    """A daemon with one ready sandbox, BOX."""
    make_image(engine.api, IMAGE)
    daemon = started(make_daemon(user=daemon_user, engine=engine, config=CONFIG))
    created = daemon.agbox("sandbox", "create", "-q", "--image", IMAGE, "--sandbox-id", BOX)
    assert created.returncode == 0, created.stderr
    yield daemon
    deleted = daemon.agbox("sandbox", "delete", BOX)
    assert deleted.returncode == 0, deleted.stderr


def run(box: PrivateDaemon, *command: str, flags: tuple[str, ...] = ()) -> tuple[int, bytes, bytes]:
    done = box.agbox("exec", "run", *flags, BOX, "--", *command, text=False)
    return done.returncode, done.stdout, done.stderr


@contextlib.contextmanager
def begin(box: PrivateDaemon, *arguments: str, **options) -> Iterator[subprocess.Popen]:
    """agbox itself as a child, so that signals reach only it. Its end is waited for; a test
    that fails before it could bring that end does not wait."""
    argv = [str(box.bin_dir / "agbox"), *arguments]
    if box.user:
        argv = box.user.command(argv)
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    with subprocess.Popen(argv, env=box.environment, cwd=box.home, stdin=subprocess.DEVNULL, **options) as child:
        try:
            yield child
        except BaseException:
            child.kill()
            raise


def shown(box: PrivateDaemon, exec_id: str) -> dict:
    answer = box.agbox("exec", "get", "--json", exec_id)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)["exec"]


def test_a_command_runs_as_if_it_ran_here(box: PrivateDaemon) -> None:
    assert run(box, "sh", "-c", "echo out; echo err >&2") == (0, b"out\n", b"err\n")
    assert run(box, "sh", "-c", "printf 'a\\000\\033[2J\\377'") == (0, b"a\0\x1b[2J\xff", b"")
    assert run(box, "true") == (0, b"", b"")
    assert run(box, "sh", "-c", "exit 3") == (3, b"", b"")
    assert run(box, "sh", "-c", "echo $#-$2-", "x", "1", "") == (0, b"2--\n", b"")
    assert run(box, "sh", "-c", "echo $USER; pwd") == (0, b"agbox\n/workspace\n", b"")
    flags = ("--cwd", "/tmp", "--env-overrides", "A=1=2", "--env-overrides", "B=")
    assert run(box, "sh", "-c", "pwd; echo $A-$B-", flags=flags) == (0, b"/tmp\n1=2--\n", b"")
    code, out, err = run(box, "no-such-program")
    assert (code, out) == (127, b"") and b"no-such-program" in err and err.count(b"\n") == 1
    code, out, err = run(box, "true", flags=("--cwd", "/no/such/directory"))
    assert (code, out) == (126, b"") and b"/no/such/directory" in err
    code, _, err = run(box, "sh", "-c", "kill -9 $$")
    assert code == 137 and b"signal 9" in err
    same = box.agbox("sandbox", "exec", BOX, "--", "echo", "--help", "--")
    assert (same.returncode, same.stdout, same.stderr) == (0, "--help --\n", "")


def test_execs_are_shown_listed_and_cancelled(box: PrivateDaemon) -> None:
    begun = box.agbox("exec", "run", "-d", "--exec-id", "cli-sleep", BOX, "--", "sh", "-c", "echo up; sleep 300")
    assert (begun.returncode, begun.stdout, begun.stderr) == (0, "cli-sleep\n", "")
    listed = box.agbox("exec", "list").stdout.splitlines()
    assert re.split(r"  +", listed[0]) == ["EXEC ID", "SANDBOX ID", "STATE", "COMMAND"]
    assert re.split(r"  +", listed[1]) == ["cli-sleep", BOX, "Running", "sh -c echo up; sleep 300"]
    text = box.agbox("exec", "get", "cli-sleep").stdout
    assert text.startswith(f"exec_id=cli-sleep\nsandbox_id={BOX}\nstate=Running\ncommand=sh -c echo up; sleep 300\n")
    assert "exit_code" not in text

    cancelled = box.agbox("exec", "cancel", "cli-sleep")
    assert (cancelled.returncode, cancelled.stdout) == (0, "")
    assert re.fullmatch(r"Waiting for exec cli-sleep to be cancelled\.\.\.\nExec cancelled in \d+\.\ds\.\n",
                        cancelled.stderr)
    assert shown(box, "cli-sleep")["state"] == "EXEC_STATE_CANCELLED"
    again = box.agbox("exec", "cancel", "cli-sleep")
    assert (again.returncode, again.stderr) == (0, "")
    assert len(box.agbox("exec", "list", BOX).stdout.splitlines()) == 1
    every = json.loads(box.agbox("exec", "list", "--all", "--json").stdout)["execs"]
    assert [each["exec_id"] for each in every] == ["cli-sleep"]
    taken = box.agbox("exec", "run", "--exec-id", "cli-sleep", BOX, "--", "true")
    assert (taken.returncode, taken.stderr) == (1, "create exec: exec_id cli-sleep already exists\n")
    unknown = box.agbox("exec", "run", "no-such-box", "--", "true")
    assert (unknown.returncode, unknown.stderr) == (1, "create exec: Sandbox no-such-box not found.\n")


def test_logs_show_what_was_written(box: PrivateDaemon) -> None:
    script = "echo out; echo err >&2; exit 4"
    assert box.agbox("exec", "run", "--exec-id", "cli-logs", BOX, "--", "sh", "-c", script).returncode == 4
    logs = box.agbox("logs", "cli-logs")
    assert (logs.returncode, logs.stdout, logs.stderr) == (0, "out\n", "err\n")
    error_alone = box.agbox("logs", "-f", "--stream", "stderr", "cli-logs")
    assert (error_alone.returncode, error_alone.stdout, error_alone.stderr) == (0, "err\n", "")
    unknown = box.agbox("logs", "no-such-exec")
    assert (unknown.returncode, unknown.stderr) == (1, "read exec output: Exec no-such-exec not found.\n")

    with begin(box, "exec", "run", "--exec-id", "cli-live", BOX, "--", "sh", "-c", "echo up; sleep 300") as live:
        # Comes although the command has not ended; it never will by itself.
        assert live.stdout.readline() == b"up\n"
        with begin(box, "logs", "-f", "cli-live") as follower:
            assert follower.stdout.readline() == b"up\n"
            follower.send_signal(signal.SIGINT)
            assert follower.wait(10) == 130
        live.send_signal(signal.SIGTERM)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_exec_and_its_tree(box: PrivateDaemon, number: signal.Signals) -> None:
    script = "setsid sh -c 'echo $$; sleep 300' & sleep 300"
    with begin(box, "exec", "run", "--exec-id", "cli-cancel", BOX, "--", "sh", "-c", script) as live:
        child = live.stdout.readline().strip().decode()
        live.send_signal(number)
        out, err = live.communicate(timeout=20)
    assert (live.returncode, out, err) == (128 + number, b"", b"")
    assert shown(box, "cli-cancel")["state"] == "EXEC_STATE_CANCELLED"
    assert run(box, "test", "-e", f"/proc/{child}")[0] == 1


def test_a_second_signal_leaves_at_once(box: PrivateDaemon) -> None:
    script = "trap '' TERM; echo up; while :; do sleep 1; done"
    with begin(box, "exec", "run", "--exec-id", "cli-stubborn", BOX, "--", "sh", "-c", script) as live:
        assert live.stdout.readline() == b"up\n"
        live.send_signal(signal.SIGINT)
        live.send_signal(signal.SIGTERM)
        assert live.wait(10) in {-signal.SIGINT, -signal.SIGTERM}
    assert box.agbox("exec", "cancel", "cli-stubborn").returncode == 0
    assert shown(box, "cli-stubborn")["state"] == "EXEC_STATE_CANCELLED"


def test_a_closed_stdout_cancels_the_exec(box: PrivateDaemon) -> None:
    with begin(box, "exec", "run", "--exec-id", "cli-pipe", BOX, "--", "yes") as live:
        assert live.stdout.read(2) == b"y\n"
        live.stdout.close()
        assert live.wait(20) == 1
        assert live.stderr.read() == b"", "head has what it wants"
    assert shown(box, "cli-pipe")["state"] == "EXEC_STATE_CANCELLED"


def test_much_output_needs_little_memory(box: PrivateDaemon) -> None:
    size = 256 << 20
    expected = hashlib.sha256()
    read = hashlib.sha256()
    peak = 0
    with begin(box, "exec", "run", BOX, "--", "dd", "if=/dev/zero", "bs=1M", f"count={size >> 20}") as live:
        while piece := live.stdout.read(1 << 20):
            read.update(piece)
            expected.update(bytes(len(piece)))
            size -= len(piece)
            peak = max(peak, peak_memory(live.pid))
        assert live.wait(30) == 0
    assert (size, read.digest()) == (0, expected.digest())
    assert 0 < peak < 64 << 20


def peak_memory(pid: int) -> int:
    """In bytes; 0 if it has just ended."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.M)
    return int(found[1]) << 10 if found else 0


def test_a_restart_of_the_daemon_is_waited_out(box: PrivateDaemon, engine) -> None:
    script = "for i in 1 2 3; do echo $i; read x </tmp/go$i; done; exit 7"
    inside(engine, BOX, "mkfifo", "/tmp/go1", "/tmp/go2", "/tmp/go3")
    with begin(box, "exec", "run", "--exec-id", "cli-restart", BOX, "--", "sh", "-c", script) as live:
        assert live.stdout.readline() == b"1\n"
        box.kill()
        box.wait()
        started(box)
        began = time.monotonic()
        for step, line in ((1, b"2\n"), (2, b"3\n"), (3, b"")):
            inside(engine, BOX, "sh", "-c", f"echo >/tmp/go{step}")
            assert live.stdout.readline() == line
            if step == 1:
                found_in = time.monotonic() - began
        # It checks at least once a second, and times out after thirty.
        assert found_in < 15, "the daemon that is back is found soon"
        assert live.wait(30) == 7
        assert live.stderr.read() == b""


def test_a_cut_output_is_said_in_one_sentence(make_daemon, engine) -> None:
    make_image(engine.api, IMAGE)
    config = CONFIG + '[artifacts]\nexec_output_max = "1MiB"\n'
    daemon = started(make_daemon(engine=engine, config=config))
    assert daemon.agbox("sandbox", "create", "-q", "--image", IMAGE, "--sandbox-id", BOX).returncode == 0
    cut = daemon.agbox("exec", "run", "--exec-id", "cli-cut", BOX, "--", "head", "-c", str(3 << 20), "/dev/zero", text=False)
    assert (cut.returncode, len(cut.stdout)) == (0, 1 << 20)
    assert re.fullmatch(rb"warning: output of exec cli-cut is incomplete: [^\n]*\n", cut.stderr)
    logs = daemon.agbox("logs", "cli-cut", text=False)
    assert (logs.returncode, len(logs.stdout), logs.stderr) == (0, 1 << 20, cut.stderr)
    assert daemon.agbox("sandbox", "delete", BOX).returncode == 0
