# SPDX-License-Identifier: Apache-2.0
"""agbox as docker's users type it, on a real engine: run, exec, ps, stop, start, rm, logs, inspect, cp and waits."""

import json
import re
import signal
import subprocess

import pytest
from support.daemon import PrivateDaemon
from support.images import make_image
from support.sandboxes import CONFIG, started
from support.tmux import Terminal

IMAGE = "cli/flat:1"


@pytest.fixture
def daemon(make_daemon, daemon_user, engine) -> PrivateDaemon:
    make_image(engine.api, IMAGE)
    return started(make_daemon(user=daemon_user, engine=engine, config=CONFIG))


def agbox(daemon: PrivateDaemon, *arguments: str, **options) -> tuple[int, str, str]:
    done = daemon.agbox(*arguments, **options)
    return done.returncode, done.stdout, done.stderr


def deleted(daemon: PrivateDaemon, *names: str) -> None:
    """agbox run does not wait for the end of the deletion."""
    for name in names:
        assert agbox(daemon, "sandbox", "wait", "--for", "deleted", name) == (0, "", "")


def argv(daemon: PrivateDaemon, *arguments: str) -> list[str]:
    command = [str(daemon.bin_dir / "agbox"), *arguments]
    return daemon.user.command(command) if daemon.user else command


def completed(daemon: PrivateDaemon, *words: str) -> list[str]:
    """What bash offers for the last word."""
    script = 'source <("$0" completion bash); COMP_WORDS=("$0" "$@") COMP_CWORD=$#; _agbox; ' \
             'printf "%s\\n" "${COMPREPLY[@]}"'
    command = ["bash", "--norc", "-c", script, str(daemon.bin_dir / "agbox"), *words]
    if daemon.user:
        command = daemon.user.command(command)
    return subprocess.run(command, env=daemon.environment, cwd=daemon.home, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()


def test_run_is_docker_run_in_a_sandbox(daemon):
    script = "echo out; echo err >&2; pwd; echo $A-$USER; exit 3"
    assert agbox(daemon, "run", "--name", "flat-1", "-e", "A=1", "-w", "/tmp", IMAGE, "sh", "-c", script) == (
        3, "out\n/tmp\n1-agbox\n", "err\n")
    assert agbox(daemon, "run", "--rm", "--name", "flat-2", "-u", "root", IMAGE, "--", "id", "-u") == (0, "0\n", "")
    assert agbox(daemon, "run", "--name", "flat-3", "-i", IMAGE, "cat", input="in\n") == (0, "in\n", "")
    code, out, err = agbox(daemon, "run", "--name", "flat-4", IMAGE, "no-such-program")
    assert (code, out) == (127, "") and "no-such-program" in err
    assert agbox(daemon, "run", "--name", "flat-5", "-w", "/no/such", IMAGE, "true")[0] == 126
    code, _, err = agbox(daemon, "run", "--name", "flat-6", "127.0.0.1:1/no/image:1", "true")
    assert code == 125 and err.startswith("sandbox flat-6 failed: ")
    assert agbox(daemon, "run", "--name", "flat-1", IMAGE, "true")[0] == 125
    deleted(daemon, *(f"flat-{n}" for n in range(1, 7)))
    code, _, err = agbox(daemon, "run", "--timing", "--keep", "--name", "flat-kept", "-l", "a=b", IMAGE, "true")
    assert code == 0
    assert re.search(r"^Timing:\n  create .*\n  ready .*\n  command .*\n  total +\d+\.\d{3}s$", err, re.M)
    assert agbox(daemon, "run", "-d", "--name", "flat-detached", "-l", "a=b", IMAGE, "sleep", "300") == (
        0, "flat-detached\n", "")
    assert agbox(daemon, "rm", "--label", "a=b")[0] == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_a_run_and_its_sandbox(daemon, number):
    with subprocess.Popen(argv(daemon, "run", "--name", "flat-signal", IMAGE, "sh", "-c", "echo up; sleep 300"),
                          env=daemon.environment, cwd=daemon.home, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout.readline() == "up\n"
        run.send_signal(number)
        assert run.communicate(timeout=30) == ("", "")
    assert run.returncode == 128 + number
    deleted(daemon, "flat-signal")


def test_run_in_a_terminal_opens_a_shell(daemon, tmp_path):
    command = argv(daemon, "run", "-it", "--name", "flat-tty", IMAGE)
    with Terminal(tmp_path, command, daemon.environment, (60, 20)) as tty:
        tty.enter("PS1='> '; echo $((40 + 2)) $(stty size)")
        tty.wait_for("42 20 60")
        # There would be no way back.
        tty.press("C-p", "C-q")
        tty.press("C-u")
        tty.enter("exit 4")
        tty.wait_for("<code 4>")
    deleted(daemon, "flat-tty")


def test_the_verbs_of_docker(daemon):
    for name in ("flat-one", "flat-two"):
        created = agbox(daemon, "sandbox", "create", "-q", "--image", IMAGE, "--name", name, "-l", "group=x")
        assert created == (0, f"{name}\n", "")
    assert agbox(daemon, "exec", "flat-o", "sh", "-c", "echo $1; exit 5", "x", "-y") == (5, "-y\n", "")
    assert agbox(daemon, "exec", "-it", "flat-one")[0] == 125, "there is no terminal"
    assert agbox(daemon, "exec", "flat-", "true") == (
        125, "", 'create exec: "flat-" is the beginning of 2 sandbox IDs; type more of it:\n  flat-two\n  flat-one\n')
    assert agbox(daemon, "exec", "-d", "--exec-id", "flat-exec", "flat-two", "sh", "-c", "echo up; exit 6")[0] == 0
    assert agbox(daemon, "exec", "wait", "flat-ex") == (6, "", "")
    assert agbox(daemon, "logs", "flat-ex") == (0, "up\n", "")
    listed = agbox(daemon, "exec", "list", "-a", "flat-two")[1].splitlines()
    assert re.split(r"  +", listed[0]) == ["EXEC ID", "SANDBOX ID", "STATE", "EXIT CODE", "DURATION", "COMMAND"]
    assert re.split(r"  +", listed[1])[:4] == ["flat-exec", "flat-two", "Failed", "6"]

    assert agbox(daemon, "ps", "-q") == (0, "flat-two\nflat-one\n", "")
    assert agbox(daemon, "ps", "--format", "sandbox_id,state,labels.group") == (
        0, "flat-two\tSANDBOX_STATE_READY\tx\nflat-one\tSANDBOX_STATE_READY\tx\n", "")
    (daemon.home / "file").write_text("copied\n")
    assert agbox(daemon, "cp", "file", "flat-o:/workspace/")[0] == 0
    assert agbox(daemon, "exec", "flat-one", "cat", "file") == (0, "copied\n", "")
    assert completed(daemon, "stop", "flat-o") == ["flat-one"]
    code, _, err = agbox(daemon, "stop", "flat-one", "flat-two")
    assert code == 0 and re.fullmatch(r"Waiting for 2 sandbox\(es\) to be stopped\.\.\.\n"
                                      r"2 sandbox\(es\) stopped in \d+\.\ds\.\n", err)
    code, _, err = agbox(daemon, "exec", "flat-one", "true")
    assert code == 125 and "flat-one is not ready" in err, "a user stopped it"
    assert agbox(daemon, "start", "-l", "group=x")[0] == 0
    shown = json.loads(agbox(daemon, "inspect", "--json", "flat-o")[1])
    assert shown["sandbox"]["state"] == "SANDBOX_STATE_READY"
    code, out, err = agbox(daemon, "inspect", "--json", "nope-1")
    assert (code, err) == (1, "get sandbox: Sandbox nope-1 not found.\n")
    assert json.loads(out)["error"]["reason"] == "SANDBOX_NOT_FOUND"
    assert agbox(daemon, "rm", "-f", "flat-one", "flat-two")[0] == 0


def test_an_idle_sandbox_is_resumed(daemon):
    assert agbox(daemon, "sandbox", "create", "-q", "--image", IMAGE, "--name", "flat-idle", "--idle-ttl", "1s")[0] == 0
    assert agbox(daemon, "sandbox", "wait", "--for", "stopped", "flat-idle")[0] == 0
    code, _, err = agbox(daemon, "exec", "--no-resume", "flat-idle", "true")
    assert code == 125 and "idle_ttl" in err
    code, out, err = agbox(daemon, "exec", "flat-idle", "echo", "awake")
    assert (code, out) == (0, "awake\n")
    assert err.startswith("Sandbox flat-idle was stopped because it was idle: resuming it.\n")
    assert agbox(daemon, "rm", "flat-idle")[0] == 0


def test_head_takes_what_it_wants(daemon):
    command = ["sh", "-c", '"$0" run --name flat-head "$1" yes | head -n 1', str(daemon.bin_dir / "agbox"), IMAGE]
    if daemon.user:
        command = daemon.user.command(command)
    done = subprocess.run(command, env=daemon.environment, cwd=daemon.home, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "y\n", "")
    deleted(daemon, "flat-head")


def test_a_narrow_terminal_still_shows_what_exists(daemon, tmp_path):
    assert agbox(daemon, "sandbox", "create", "-q", "--image", IMAGE, "--name", "flat-narrow-terminal")[0] == 0
    with Terminal(tmp_path, argv(daemon, "ps"), daemon.environment, (20, 20)) as tty:
        screen = tty.wait_for("<code 0>")
    assert "flat-narrow-terminal" in screen
    assert agbox(daemon, "rm", "flat-narrow")[0] == 0


def test_run_starts_a_daemon_that_is_not_running(make_daemon, engine):
    make_image(engine.api, IMAGE)
    daemon = started(make_daemon(engine=engine, config=CONFIG))
    daemon.stop()
    *place, _ = daemon.command()  # in the network namespace of the engine

    def here(*arguments: str) -> tuple[int, str, str]:
        done = subprocess.run([*place, str(daemon.bin_dir / "agbox"), *arguments], env=daemon.environment,
                              cwd=daemon.home, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                              check=False)
        return done.returncode, done.stdout, done.stderr

    code, _, err = here("run", "--no-start", IMAGE, "true")
    assert code == 125 and err.startswith("create sandbox: agboxd is not running: ")
    assert here("daemon", "status")[0] == 1
    try:
        code, out, err = here("run", "--name", "flat-first", IMAGE, "echo", "up")
        assert (code, out, err) == (0, "up\n", "agboxd is not running: starting it.\n")
        assert json.loads(here("daemon", "status", "--json")[1])["engine"].startswith("Docker ")
        assert here("daemon", "start") == (0, "", "agboxd is running already.\n")
        assert here("sandbox", "wait", "--for", "deleted", "flat-first") == (0, "", "")
        code, out, _ = here("daemon", "logs", "-n", "1000")
        assert code == 0 and "engine is reachable" in out
    finally:
        stopped = here("daemon", "stop")
    assert stopped == (0, "", 'Sandboxes and their commands go on; "agbox daemon start" starts agboxd again.\n')
    assert here("daemon", "stop")[2].startswith("agboxd is not running.\n")
