# SPDX-License-Identifier: Apache-2.0
"""agbox against a real daemon, once of root's and once of the test user's."""

import json
import re
import subprocess


def run_agbox(daemon, *arguments: str) -> subprocess.CompletedProcess:
    """As the daemon's user, in the daemon's environment."""
    command = [str(daemon.bin_dir / "agbox"), *arguments]
    if daemon.user:
        command = daemon.user.command(command)
    return subprocess.run(command, env=daemon.environment, cwd=daemon.home, capture_output=True,
                          text=True, check=False, timeout=30, stdin=subprocess.DEVNULL)


def test_ping_tells_who_answered_and_how_fast(daemon):
    result = run_agbox(daemon, "ping")
    assert (result.returncode, result.stderr) == (0, "")
    lines = dict(line.split(": ", 1) for line in result.stdout.splitlines())
    assert lines["daemon"] == "agboxd"
    assert re.fullmatch(r"\d+\.\d+\.\d+", lines["version"])
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", lines["instance"])
    assert lines["socket"] == str(daemon.socket)
    assert re.fullmatch(r"\d+\.\d{3} ms", lines["round trip"])


def test_ping_as_json(daemon):
    result = run_agbox(daemon, "ping", "--json")
    assert (result.returncode, result.stderr) == (0, "")
    answer = json.loads(result.stdout)
    assert answer["daemon"] == "agboxd"
    assert list(answer)[:2] == ["version", "daemon"]
    assert result.stdout == json.dumps(answer, indent=2, ensure_ascii=False) + "\n"


def test_version_shows_both(daemon):
    result = run_agbox(daemon, "version")
    assert (result.returncode, result.stderr) == (0, "")
    ours, theirs = result.stdout.splitlines()
    assert ours.removeprefix("agbox: ") == theirs.removeprefix("agboxd: ")


def test_after_the_daemon_was_killed_the_stale_socket_is_named(daemon):
    daemon.kill()
    result = run_agbox(daemon, "ping")
    assert (result.returncode, result.stdout) == (1, "")
    assert "no process listens on" in result.stderr


def test_after_the_daemon_ended_it_is_not_running(daemon):
    daemon.stop()
    result = run_agbox(daemon, "ping")
    assert (result.returncode, result.stdout) == (1, "")
    assert "ping: agboxd is not running: " in result.stderr
