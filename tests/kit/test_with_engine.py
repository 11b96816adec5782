# SPDX-License-Identifier: Apache-2.0
"""scripts/with-engine: an engine is reachable while the command runs, and its exit code is returned."""

from support.contract import REPOSITORY
from support.engine_api import EngineApi
from support.host_engine import DEFAULT_SOCKET, HostEngine
import pytest
from support.process import run

# With the machine's own engine, accounts and network: one after the other.
pytestmark = pytest.mark.xdist_group("host")

WITH_ENGINE = REPOSITORY / "scripts" / "with-engine"


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
