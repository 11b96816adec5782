# SPDX-License-Identifier: Apache-2.0
"""The private daemon is private, starts and stops on request, and can be reached in every way that tests
need. The daemon itself is tested elsewhere."""

import os
import signal

import pytest

import support.daemon
from support.process import open_files


def test_it_runs_as_the_user_that_it_was_given(daemon, daemon_user):
    uid = daemon_user.uid if daemon_user else 0
    assert os.stat(f"/proc/{daemon.pid}").st_uid == uid
    assert os.readlink(f"/proc/{daemon.pid}/exe") == str(daemon.bin_dir / "agboxd")


def test_every_path_that_it_uses_is_in_its_directory(daemon):
    # Directories that no sandbox may see are only held to be recognized.
    opened = set(open_files(daemon.pid, with_paths=False))
    files = {path for path in opened if path.startswith("/") and not path.startswith("/dev/")}
    assert files, "the daemon holds its lock and its store open"
    assert all(path.startswith(f"{daemon.directory}/") for path in files), files
    assert daemon.socket.is_socket()


def test_its_log_is_json(daemon):
    assert "listening" in [entry["msg"] for entry in daemon.log()]
    assert daemon.stop() == 0
    assert all("time" in entry and "level" in entry for entry in daemon.log())


def test_stopped_killed_and_restarted_it_serves_again(daemon, contract):
    assert daemon.stop() == 0
    daemon.start()
    daemon.kill()
    assert daemon.process.returncode() == -signal.SIGKILL
    daemon.restart()
    with daemon.channel() as channel:
        answer = contract.stub(channel).Ping(contract.service.PingRequest(), timeout=10)
    assert answer.version


def test_a_daemon_that_crashes_fails_its_test(make_daemon):
    daemon = make_daemon().start()
    os.kill(daemon.pid, signal.SIGSEGV)
    daemon.process.wait()
    for goes_on in (daemon.restart, daemon.end):
        with pytest.raises(RuntimeError, match="agboxd ended with -11, by itself"):
            goes_on()
    assert daemon.wait() == -signal.SIGSEGV  # an end that a test waits for is the test's to check


def test_a_daemon_that_is_stopped_must_end_with_0(make_daemon):
    daemon = make_daemon().start()
    os.kill(daemon.pid, signal.SIGABRT)
    daemon.process.wait()
    daemon.stop()
    with pytest.raises(RuntimeError, match="agboxd ended with -6, not with 0"):
        daemon.start()
    assert daemon.wait() == -signal.SIGABRT


def test_with_sanitizers_it_is_asked_to_exit(make_daemon, monkeypatch):
    daemon = make_daemon().start()
    monkeypatch.setattr(support.daemon, "_is_sanitized", lambda program: True)
    daemon.end()
    assert daemon.process.returncode() == 0


def test_the_cli_talks_to_it(daemon):
    done = daemon.agbox("ping")
    assert done.returncode == 0, done.stderr


def test_a_start_that_fails_says_why(make_daemon):
    daemon = make_daemon(config="no_such_key = 1\n")
    with pytest.raises(RuntimeError, match="no_such_key"):
        daemon.start()
    assert daemon.wait() == 2


def test_it_runs_beside_a_private_engine(make_daemon, daemon_user, engine):
    daemon = make_daemon(user=daemon_user, engine=engine).start()
    assert os.readlink(f"/proc/{daemon.pid}/ns/net") == os.readlink(engine.network_namespace)
    assert daemon.environment["DOCKER_HOST"] == engine.docker_host


def test_without_an_engine_it_asks_for_none(daemon):
    assert daemon.environment["DOCKER_HOST"].startswith(f"unix://{daemon.directory}/")


def test_without_an_engine_it_leaves_the_hosts_network_alone(daemon):
    assert os.readlink(f"/proc/{daemon.pid}/ns/net") != os.readlink("/proc/self/ns/net")


def test_its_firewall_is_beside_its_engine_and_is_taken_away(make_daemon, daemon_user, engine):
    daemon = make_daemon(user=daemon_user, engine=engine).start()
    daemon.wait_for_message("sandbox firewall loaded")
    assert len(daemon.firewall_tables()) == 4
    assert daemon.stop() == 0
    assert daemon.firewall_tables() == []
    daemon.start()
    daemon.wait_for_message("sandbox firewall loaded")
    daemon.kill()
    assert len(daemon.firewall_tables()) >= 2  # owned tables disappear with it on older kernels
    daemon.end()
    assert daemon.firewall_tables() == []
