# SPDX-License-Identifier: Apache-2.0
"""scripts/with-engine: an engine is reachable while the command runs, and its exit code is returned."""

import fcntl
import importlib.machinery
import importlib.util
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from support.contract import REPOSITORY
from support.engine import docker_group
from support.engine_api import EngineApi
from support.host_engine import DEFAULT_SOCKET, HostEngine
from support.process import SYSTEM_PATH, run

# With the machine's own engine, accounts and network: one after the other.
pytestmark = pytest.mark.xdist_group("host")

WITH_ENGINE = REPOSITORY / "scripts" / "with-engine"

# A machine without an engine and with a network of its own. The first argument turns forwarding on or off.
_ALONE = """
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -m 1777 /run/lock
mount -t tmpfs -o mode=755 tmpfs /var/lib
echo "$1" >/proc/sys/net/ipv4/ip_forward
shift
exec "$@"
"""


def alone(*command: str | Path, forwarding: int, **options) -> subprocess.CompletedProcess:
    namespaces = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    shell = ("sh", "-euc", _ALONE, "alone", str(forwarding))
    return run("unshare", *namespaces, *shell, *command, check=False, **options)


@pytest.fixture
def script() -> ModuleType:
    """The script as a module, so that a test can shorten its times and move its files."""
    loader = importlib.machinery.SourceFileLoader("with_engine", str(WITH_ENGINE))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("with_engine", loader))
    loader.exec_module(module)
    return module


def test_the_command_finds_an_engine_and_its_exit_code_is_passed_on():
    ping = f"curl --silent --unix-socket {DEFAULT_SOCKET} http://docker/_ping; exit 7"
    done = run(WITH_ENGINE, "sh", "-c", ping, check=False)
    assert (done.returncode, done.stdout) == (7, "OK"), done.stderr


def test_a_command_ended_by_a_signal_ends_as_in_a_shell():
    assert run(WITH_ENGINE, "sh", "-c", "kill -KILL $$", check=False).returncode == 128 + 9


def test_a_command_that_does_not_exist_is_one_sentence():
    done = run(WITH_ENGINE, "no-such-command", check=False)
    assert done.returncode == 1
    assert "cannot run no-such-command: No such file or directory" in done.stderr


def test_without_a_command_it_says_how_it_is_used():
    assert run(WITH_ENGINE, check=False).returncode == 2
    assert "COMMAND" in run(WITH_ENGINE, "--help").stdout


def test_the_first_to_leave_does_not_take_the_engine_from_the_second():
    first, second = HostEngine(), HostEngine()
    first.end()
    try:
        assert EngineApi(DEFAULT_SOCKET).answers()
        assert second.docker("version").returncode == 0
    finally:
        second.end()


@pytest.mark.parametrize("policy", ["ACCEPT", "DROP"])
def test_forwarding_is_restored_when_the_engine_stops(policy):
    state = "cat /proc/sys/net/ipv4/ip_forward; iptables -S FORWARD | head -n 1"
    steps = f'iptables -P FORWARD {policy}; {state}; "$1" sh -c "{state}"; {state}'
    done = alone("sh", "-euc", steps, "steps", WITH_ENGINE, forwarding=0)
    assert done.returncode == 0, done.stderr
    before, during, after = zip(*[iter(done.stdout.splitlines())] * 2)
    assert before == after == ("0", f"-P FORWARD {policy}")
    assert during == ("1", "-P FORWARD DROP")


@pytest.mark.parametrize("has_private_group", [True, False])
def test_a_users_engine_is_for_no_other_user(test_user, directory, has_private_group):
    """sudo shows what it was to run as root."""
    shutil.copy(WITH_ENGINE, directory)  # the clone may be in a directory that the user may not enter
    sudo = directory / "sudo"
    sudo.write_text("#!/bin/sh\necho sudo: $* >&2\nexit 1\n")
    sudo.chmod(0o755)
    group = test_user.gid if has_private_group else 65534
    become = ("setpriv", f"--reuid={test_user.uid}", f"--regid={group}", "--clear-groups")
    environment = {**test_user.environment, "PATH": f"{directory}:{SYSTEM_PATH}"}
    done = alone(*become, directory / "with-engine", "true", forwarding=1, env=environment, cwd="/")
    assert done.returncode == 1
    if has_private_group:
        assert "dockerd --pidfile" in done.stderr and f"--group {group}\n" in done.stderr
    else:
        assert "dockerd" not in done.stderr
        assert f"setpriv --reuid={test_user.uid} --regid={group} " in done.stderr
        assert f"--groups={docker_group()} " in done.stderr


def test_a_lock_that_another_user_holds_is_one_sentence(script, directory, capsys):
    script.CHANGE_LOCK, script.USE_LOCK = str(directory / "change"), str(directory / "use")
    script.LOCK_TIMEOUT = 0.1
    with open(script.CHANGE_LOCK, "wb") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        assert script.main(["true"]) == 1
    assert f"{script.CHANGE_LOCK} is still locked after 0.1 s" in capsys.readouterr().err


def test_an_engine_that_does_not_come_up_is_stopped_also_if_it_is_sudos(script, directory, monkeypatch):
    script.START_TIMEOUT, script.OUR_PID_FILE = 1, directory / "pid"
    shutil.copy("/usr/bin/sleep", directory / "dockerd")
    start = directory / "start"
    start.write_text(f'#!/bin/sh\necho $$ >"$2"\nexec {directory}/dockerd 600\n')
    start.chmod(0o755)
    started = []
    monkeypatch.setattr(script.subprocess, "Popen", lambda *a, **o: started.append(OfRoot(*a, **o)) or started[-1])
    with pytest.raises(script.Failed, match="was not ready within 1 s"):
        script.start_dockerd(str(start), 0, directory)
    assert started[0].wait(10) == -15


class OfRoot(subprocess.Popen):
    """As sudo's process is to the user who started it."""

    def send_signal(self, number: int) -> None:
        raise PermissionError
