# SPDX-License-Identifier: Apache-2.0
"""Signals, and notifications to the service manager."""

import os
import re
import signal
import socket
import subprocess

import grpc
import pytest

from support.contract import REPOSITORY


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_ends_it_cleanly(make_daemon, number):
    daemon = make_daemon().start()
    daemon.signal(number)
    assert daemon.wait(timeout=5) == 0
    messages = [entry["msg"] for entry in daemon.log()]
    assert "shutting down" in messages
    assert messages[-1] == "sandbox firewall removed"
    assert not daemon.socket.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(make_daemon, number):
    # It stops when the first signal is handled, so that the second one always finds it there.
    daemon = make_daemon(environment={"AGBOX_FAILPOINTS": "daemon.shutdown=stop"}).start()
    with daemon.channel() as channel:
        watch = channel.unary_stream("/grpc.health.v1.Health/Watch", bytes, bytes)(b"", timeout=60)
        next(watch)
        daemon.signal(signal.SIGTERM)
        os.waitid(os.P_PID, daemon.pid, os.WSTOPPED)
        daemon.signal(number)
        daemon.signal(signal.SIGCONT)
        assert daemon.wait(timeout=5) == -number
        with pytest.raises(grpc.RpcError):
            for _ in watch:
                pass
    daemon.environment["AGBOX_FAILPOINTS"] = ""
    assert daemon.restart().stop() == 0


def test_a_hang_up_changes_nothing_and_says_so(daemon, contract):
    daemon.signal(signal.SIGHUP)
    line = daemon.wait_for_message(
        "SIGHUP changes nothing: the configuration is read at start; restart agboxd to apply a change; "
        "sandboxes keep running"
    )
    assert line["level"] == "WARN"
    with daemon.channel() as channel:
        contract.stub(channel).Ping(contract.service.PingRequest(), timeout=10)
    assert daemon.stop() == 0


def test_a_signal_during_the_start_ends_it_cleanly(make_daemon):
    daemon = make_daemon()
    daemon.launch()
    daemon.wait_for_message("starting")
    assert daemon.stop() == 0


def test_a_reader_of_the_log_that_goes_away_does_not_end_it(make_daemon, contract):
    daemon = make_daemon()
    process = subprocess.Popen(daemon.command(), env=daemon.environment, stderr=subprocess.PIPE)
    try:
        while b'"listening"' not in process.stderr.readline():
            pass
        process.stderr.close()
        process.send_signal(signal.SIGHUP)  # writes a line that is not read
        with daemon.channel() as channel:
            contract.stub(channel).Ping(contract.service.PingRequest(), timeout=10)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=5) == 0
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def with_full_log(make_daemon):
    """A daemon whose log is a full pipe: writing a line blocks."""
    daemon = make_daemon()
    process = subprocess.Popen(daemon.command(), env=daemon.environment, stderr=subprocess.PIPE)
    try:
        while b'"listening"' not in process.stderr.readline():
            pass
        filler = os.open(f"/proc/{process.pid}/fd/2", os.O_WRONLY | os.O_NONBLOCK)
        with pytest.raises(BlockingIOError):
            while True:
                os.write(filler, b"x")
        os.close(filler)
        yield process
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_an_unread_log_does_not_block_shutdown(with_full_log):
    with_full_log.send_signal(signal.SIGTERM)
    # By the alarm alone; that it comes in time is a matter of its constant.
    assert with_full_log.wait(timeout=30) == 1


def test_a_control_thread_that_hangs_does_not_hold_up_the_end(with_full_log):
    # It comes first, and the control thread does not come back from the line that it writes.
    with_full_log.send_signal(signal.SIGHUP)
    with_full_log.send_signal(signal.SIGTERM)
    assert with_full_log.wait(timeout=30) == 1


def test_the_service_manager_is_notified_of_ready_and_stopping(make_daemon, daemon_user, directory):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(10)
        manager.bind(str(directory / "notify"))
        (directory / "notify").chmod(0o777)
        directory.chmod(0o755)
        daemon = make_daemon(user=daemon_user, environment={"NOTIFY_SOCKET": str(directory / "notify")})
        daemon.launch()
        assert manager.recv(4096) == b"READY=1\nSTATUS=Serving"
        # It is ready when it says so, not a moment later.
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(daemon.socket))
        daemon.signal(signal.SIGTERM)
        assert manager.recv(4096) == b"STOPPING=1\nSTATUS=Shutting down"
        assert daemon.wait(timeout=5) == 0
        manager.settimeout(0)
        with pytest.raises(BlockingIOError):
            manager.recv(4096)


def test_the_systemd_unit_is_valid(bin_dir, directory):
    template = (REPOSITORY / "packaging" / "agboxd.service.in").read_text()
    unit = directory / "agboxd.service"
    unit.write_text(template.replace("@CMAKE_INSTALL_FULL_BINDIR@", str(bin_dir)))
    assert "@" not in unit.read_text()

    def complaints() -> str:
        # It ends with 0 for a misspelt key too; what it says is what counts.
        return subprocess.run(
            ["systemd-analyze", "verify", "--user", unit],
            env={"XDG_RUNTIME_DIR": str(directory), "HOME": str(directory), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=60,
        ).stderr

    assert complaints() == ""
    unit.write_text(re.sub("^UMask=", "Umask=", unit.read_text(), flags=re.MULTILINE))
    assert "Unknown key" in complaints()
