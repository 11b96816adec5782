# SPDX-License-Identifier: Apache-2.0
"""Input and terminals of execs on a real engine: agbox exec run -it in a real terminal, agbox attach, and AttachExec."""

import hashlib
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from support.daemon import PrivateDaemon
from support.execs import CANCELLED, FAILED, FINISHED, Execs, output
from support.images import make_image
from support.process import peak_resident_bytes
from support.sandboxes import CONFIG, STOPPED, connected, started
from support.tmux import Terminal

IMAGE = "attach/exec:1"
BOX = "attach-1"
TAKEN_OVER, CLOSED = 1, 2
SIZE = (100, 30)


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


def command(box: PrivateDaemon, *arguments: str) -> list[str]:
    argv = [str(box.bin_dir / "agbox"), *arguments]
    return box.user.command(argv) if box.user else argv


@pytest.fixture
def terminal(box, tmp_path):
    """A terminal that runs agbox."""

    def open_terminal(*arguments: str) -> Terminal:
        return Terminal(tmp_path, command(box, *arguments), box.environment, SIZE)

    return open_terminal


def test_a_shell_in_a_terminal_is_as_usual(box, terminal):
    with terminal("exec", "run", "-it", BOX, "--", "sh") as tty:
        tty.enter("PS1='> '; echo $((40 + 2)) ${TERM:+term} $USER")
        tty.wait_for("42 term agbox")
        tty.enter("stty size")
        tty.wait_for("30 100")
        tty.resize(120, 40)
        tty.enter("until [ \"$(stty size)\" = '40 120' ]; do sleep 0.1; done; stty size")
        tty.wait_for("40 120")
        # Ctrl-C ends the foreground, not the shell.
        tty.enter("echo begun; sleep 4321")
        tty.wait_for("begun")
        tty.press("C-c")
        tty.enter("echo interrupted $?")
        tty.wait_for("interrupted 130")
        # Job control: stop, background, foreground.
        tty.enter("echo job; sleep 4322")
        tty.wait_for("job")
        tty.press("C-z")
        tty.enter("jobs | grep -c Stopped")
        tty.wait_for("1")
        tty.enter("fg")
        tty.wait_for("sleep 4322")
        tty.press("C-c")
        tty.enter("exit 3")
        screen = tty.wait_for("<code 3>")
        assert "icanon" in screen.split("<code 3>")[1].split()
        assert "echo" in screen.split("<code 3>")[1].split()


def test_ctrl_d_ends_a_shell(box, terminal):
    with terminal("exec", "run", "-it", BOX, "--", "sh") as tty:
        tty.enter("echo ready; PS1=")
        tty.wait_for("ready")
        tty.press("C-d")
        tty.wait_for("<code 0>")


def test_a_session_survives_detaching_and_the_daemon(box, terminal, tmp_path):
    with terminal("exec", "run", "-it", "--exec-id", "session", BOX, "--", "sh") as tty:
        tty.enter("PS1='> '; MARK=kept; echo one-$MARK")
        tty.wait_for("one-kept")
        tty.press("C-p", "C-q")
        tty.wait_for("<code 0>")
        screen = tty.wait_for("icanon")  # a line of stty, in a terminal that was restored
        assert "Detached: exec session keeps running." in screen
    with terminal("attach", "session") as tty:
        tty.wait_for("one-kept")  # the replay
        tty.enter("echo two-$MARK")
        tty.wait_for("two-kept")
        box.kill()
        started(box)
        tty.enter("echo three-$MARK")
        tty.wait_for("three-kept")
        tty.enter("exit 5")
        screen = tty.wait_for("<code 5>")
        assert screen.count("two-kept") == 1
    ended = box.agbox("attach", "session")
    assert ended.returncode == 5
    assert "three-kept" in ended.stdout


def test_a_client_that_is_killed_leaves_the_exec_running_and_the_terminal_usable(box, terminal):
    with terminal("exec", "run", "-it", "--exec-id", "left", BOX, "--", "sh", "-c", "echo up; exec sleep 4323") as tty:
        tty.wait_for("up")
        pid = subprocess.run(["pgrep", "-f", f"{box.bin_dir}/agbox exec run -it --exec-id left"],
                             capture_output=True, text=True, check=True).stdout.split()[-1]
        subprocess.run(["kill", "-HUP", pid], check=True)
        screen = tty.wait_for("icanon")
        assert "echo" in screen.splitlines()
    shown = box.agbox("exec", "get", "left")
    assert "state=Running" in shown.stdout
    assert box.agbox("exec", "cancel", "left").returncode == 0


@pytest.mark.parametrize("megabytes", [16, pytest.param(100, marks=pytest.mark.long)])
@pytest.mark.parametrize("kills_daemon", [False, True])
def test_much_input_arrives_unchanged_and_the_daemon_stays_small(box, kills_daemon, megabytes, tmp_path):
    data = os.urandom(megabytes << 20)
    before = peak_resident_bytes(box.pid)
    argv = command(box, "exec", "run", "-i", BOX, "--", "sh", "-c", "read -r first; echo going; sleep 1; cat")
    with (
        open(tmp_path / "copy", "wb") as copy,
        subprocess.Popen(argv, env=box.environment, cwd=box.home, stdin=subprocess.PIPE, stdout=copy) as child,
    ):
        child.stdin.write(b"go\n")
        feeder = threading.Thread(target=lambda: (child.stdin.write(data), child.stdin.close()))
        feeder.start()
        if kills_daemon:
            while not (tmp_path / "copy").stat().st_size > 1 << 20:
                threading.Event().wait(0.01)
            box.kill()
            started(box)
        feeder.join()
        assert child.wait(60) == 0
    if not kills_daemon:
        # In the second in which nothing reads, the input waits in front of the sandbox, and not in the daemon.
        assert peak_resident_bytes(box.pid) - before < 8 << 20
    copied = (tmp_path / "copy").read_bytes()
    assert copied.startswith(b"going\n")
    assert hashlib.sha256(copied.removeprefix(b"going\n")).digest() == hashlib.sha256(data).digest()


def test_stdin_is_passed_on_and_ends(box):
    ran = box.agbox("exec", "run", "-i", BOX, "--", "sh", "-c", "cat; echo over", input="a\nb")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "a\nbover\n", "")
    # Without -i there is none, and a command that reads no more is no error.
    assert box.agbox("exec", "run", BOX, "--", "cat", input="lost").stdout == ""
    ran = box.agbox("exec", "run", "-i", BOX, "--", "head", "-n", "1", input="first\n" + "x" * 1_000_000)
    assert (ran.returncode, ran.stdout) == (0, "first\n")
    ran = box.agbox("exec", "run", "-t", BOX, "--", "sh", "-c", "test -t 1 && stty size", text=False)
    assert (ran.returncode, ran.stdout) == (0, b"24 80\r\n")


def test_what_cannot_be_attached_to_says_why(box):
    def attach(*arguments: str):
        answer = box.agbox("attach", *arguments, input="")
        return answer.returncode, answer.stderr

    assert attach("no-such-exec") == (1, "attach to exec: Exec no-such-exec not found.\n")
    started_one = box.agbox("exec", "run", "-d", "--exec-id", "deaf", BOX, "--", "sleep", "4324")
    assert started_one.returncode == 0
    code, why = attach("deaf")
    assert code == 1
    assert "exec deaf has no stdin, because it was not started with -i or -t" in why
    box.agbox("exec", "run", "-td", "--exec-id", "term", BOX, "--", "sleep", "4325")
    code, why = attach("term")
    assert code == 2
    assert "run agbox attach in a terminal, or use --no-stdin" in why
    ran = box.agbox("exec", "run", "-it", BOX, "--", "true", input="")
    assert ran.returncode == 2
    assert "-it needs a terminal, and stdin is none; use -i" in ran.stderr
    ran = box.agbox("attach", "--detach-keys", "ctrl-1", "term")
    assert ran.returncode == 2
    assert "--detach-keys must be keys such as ctrl-p,ctrl-q" in ran.stderr
    for exec_id in ("deaf", "term"):
        assert box.agbox("exec", "cancel", exec_id).returncode == 0


def test_a_closed_pipe_ends_the_client_and_not_the_exec(box):
    talker = "while :; do echo line; sleep 0.05; done"
    box.agbox("exec", "run", "-d", "--exec-id", "talker", BOX, "--", "sh", "-c", talker)
    with subprocess.Popen(command(box, "attach", "--no-stdin", "talker"), env=box.environment, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as attach:
        assert attach.stdout.readline() == "line\n"
        attach.stdout.close()
        assert "talker keeps running" in attach.stderr.read()
        assert attach.wait(30) == 1
    assert "state=Running" in box.agbox("exec", "get", "talker").stdout
    assert box.agbox("exec", "cancel", "talker").returncode == 0


class Attached:
    """One AttachExec call."""

    def __init__(self, execs: Execs, **start: Any):
        self.service = execs.service
        self._requests: queue.SimpleQueue = queue.SimpleQueue()
        self.send(start=self.service.AttachStart(**start))
        self.call = execs.stub.AttachExec(iter(self._requests.get, None), timeout=60)

    def send(self, **message: Any) -> None:
        self._requests.put(self.service.AttachExecRequest(**message))

    def wait_for(self, kind: str) -> Any:
        for response in self.call:
            if response.HasField(kind):
                return getattr(response, kind)
        raise AssertionError(f"the stream ended without {kind}")

    def output(self, until: str) -> str:
        text = ""
        while until not in text:
            text += self.wait_for("output").data.decode()
        return text

    def close(self) -> None:
        self._requests.put(None)
        self.call.cancel()


@pytest.fixture
def execs(box, contract):
    with connected(box, contract) as sandboxes:
        yield Execs(sandboxes, BOX)


def test_the_latest_writer_writes_and_the_former_reads_on(execs):
    created = execs.create("cat", exec_id="shared", stdin=True)
    first = Attached(execs, exec_id="shared", write=True, output=True)
    assert first.wait_for("attached").exec.stdin
    first.send(input=b"from first\n")
    assert first.wait_for("input_accepted") is not None
    second = Attached(execs, exec_id="shared", write=True, output=True)
    assert second.wait_for("attached").input_offset == len("from first\n")
    stopped = first.wait_for("input_stopped")
    assert stopped.reason == TAKEN_OVER
    assert stopped.message == "another client took over the input of exec shared"
    first.send(input=b"lost\n")
    second.send(input=b"from second\n")
    assert "from second" in first.output("from second\n")
    second.send(end_input=execs.service.AttachEndInput())
    for client in (first, second):
        assert client.wait_for("ended").state == FINISHED
        client.close()
    assert output(execs.wait(created.exec_id)) == "from first\nfrom second\n"


def test_a_client_that_never_reads_delays_no_one(execs):
    execs.create("sh", "-c", "seq 1 200000; cat", exec_id="busy", stdin=True)
    stalled = Attached(execs, exec_id="busy", write=False, output=True, stdout_offset=0)
    writer = Attached(execs, exec_id="busy", write=True, output=True)
    writer.wait_for("attached")
    writer.send(input=b"the end\n")
    writer.output("the end\n")
    writer.send(end_input=execs.service.AttachEndInput())
    assert writer.wait_for("ended").exit_code == 0
    text = stalled.output("the end\n")
    assert text.startswith("1\n2\n")
    stalled.close()
    writer.close()


def test_signals_and_sizes_reach_the_foreground(execs):
    script = "trap 'stty size' WINCH; trap 'echo usr1; exit 4' USR1; echo ready; while :; do sleep 0.05; done"
    terminal = execs.service.CreateExecRequest(sandbox_id=BOX, command=["sh", "-c", script], exec_id="signals")
    terminal.terminal.size.rows, terminal.terminal.size.columns = 20, 70
    execs.stub.CreateExec(terminal, timeout=30)
    client = Attached(execs, exec_id="signals", write=True, output=True, stdout_offset=0)
    client.output("ready")
    client.send(resize={"rows": 25, "columns": 75})
    client.output("25 75")
    client.send(signal=signal.SIGUSR1)
    client.output("usr1")
    assert client.wait_for("ended").exit_code == 4
    client.close()


def test_an_exec_that_has_ended_is_only_read(execs):
    execs.wait(execs.create("sh", "-c", "echo done; exit 3", exec_id="over", stdin=True).exec_id)
    execs.create("sh", "-c", "echo up; exec sleep 4327", exec_id="stopped", stdin=True)
    running = Attached(execs, exec_id="stopped", write=True, output=True, stdout_offset=0)
    running.output("up\n")
    stopping = execs.service.StopSandboxRequest(sandbox_id=BOX)
    execs.stub.StopSandbox(stopping, timeout=30)
    assert running.wait_for("ended").state == CANCELLED
    running.close()
    execs.sandboxes.wait(BOX, STOPPED)
    for exec_id, state, text in (("over", FAILED, "done\n"), ("stopped", CANCELLED, "up\n")):
        for write in (False, True):
            client = Attached(execs, exec_id=exec_id, write=write, output=True)
            assert client.wait_for("attached").input_offset == 0
            client.output(text)
            assert client.wait_for("ended").state == state
            client.close()
    assert execs.get("over").exit_code == 3


def test_the_largest_terminal_is_one(execs):
    def run(exec_id: str, size: int):
        request = execs.service.CreateExecRequest(sandbox_id=BOX, command=["stty", "size"], exec_id=exec_id)
        request.terminal.size.rows = request.terminal.size.columns = size
        execs.stub.CreateExec(request, timeout=30)
        return execs.wait(exec_id)

    assert output(run("large", 29999)) == "29999 29999\n"
    assert run("largest", 65535).state == FINISHED  # which stty does not believe
    with pytest.raises(grpc.RpcError) as refused:
        run("too-large", 65536)
    assert "terminal.size.rows is 65536" in refused.value.details()


def test_a_client_that_says_nothing_holds_nothing_up(execs):
    """Without a start, and attached as the writer without ever writing."""
    silent = execs.stub.AttachExec(iter(queue.SimpleQueue().get, None), timeout=60)
    execs.create("cat", exec_id="waits", stdin=True)
    idle = Attached(execs, exec_id="waits", write=True, output=True)
    idle.wait_for("attached")
    writer = Attached(execs, exec_id="waits", write=True, output=True)
    writer.wait_for("attached")
    writer.send(input=b"heard\n")
    writer.output("heard\n")
    writer.send(end_input=execs.service.AttachEndInput())
    assert writer.wait_for("ended").exit_code == 0
    assert silent.is_active()
    for client in (silent, idle.call, writer.call):
        client.cancel()


REFUSED = [
    ({"exec_id": "none"}, {}, "exec none was not found"),
    ({"exec_id": "plain", "write": True}, {}, "exec plain has no input"),
    ({"exec_id": "input"}, {"input": b"x"}, "input: the client attached without start.write"),
    ({"exec_id": "input", "write": True}, {"input": b"x" * 65537}, "input: at most 65536 bytes"),
    ({"exec_id": "input", "write": True}, {"resize": {"rows": 0, "columns": 1}}, "resize.rows is 0"),
    ({"exec_id": "input", "write": True}, {"resize": {"rows": 1, "columns": 70000}}, "resize.columns is 70000"),
    ({"exec_id": "input", "write": True}, {"resize": {"rows": 1, "columns": 1}}, "exec input has no terminal"),
    ({"exec_id": "input"}, {"signal": 65}, "signal must be 1 to 64, not 65"),
    ({"exec_id": "input"}, {"start": {"exec_id": "input"}}, "the first message must be start"),
]


def test_what_makes_no_sense_is_refused_by_name(execs):
    execs.create("sleep", "4326", exec_id="plain")
    execs.create("cat", exec_id="input", stdin=True)
    for start, message, words in REFUSED:
        client = Attached(execs, **start)
        if message:
            client.wait_for("attached")
            client.send(**message)
        with pytest.raises(grpc.RpcError) as refused:
            list(client.call)
        assert words in refused.value.details()
        client.close()
