# SPDX-License-Identifier: Apache-2.0
"""Attacks on the guest by root and the runtime user inside."""

import re
from pathlib import Path

import pytest

from link import LinkError


def is_alive(box) -> None:
    box.daemon.ask("ping", box.name, limit_ms=5000)
    assert box.state()["Running"]


@pytest.mark.parametrize("signal", ["KILL", "STOP", "TERM", "INT", "HUP", "USR1", "SEGV"])
def test_no_signal_from_inside_harms_the_guest(sandbox, signal):
    box = sandbox("busybox")
    box.ready()
    box.exec("kill", f"-{signal}", "1", user="0")
    is_alive(box)


@pytest.mark.parametrize("user", ["0", "agbox"])
def test_the_guest_is_not_accessible_from_inside(sandbox, uid, user):
    box = sandbox("busybox", uid)
    box.ready()
    for look in ("cat mem", "cat environ", "cat maps", "cat fd/3", "ls cwd/", "ls root/"):
        said = box.exec("sh", "-c", f"cd /proc/1 && {look}", user=user, check=False)
        assert "Permission denied" in said, (look, said)
    is_alive(box)


def test_the_guest_keeps_three_capabilities_and_what_it_starts_all(sandbox):
    box = sandbox("debian")
    box.ready()
    status = dict(re.findall(r"(\w+):\s+(\w+)", box.exec("cat", "/proc/1/status", user="0")))
    kill_setuid_setgid = (1 << 5) | (1 << 7) | (1 << 6)
    assert int(status["CapPrm"], 16) == int(status["CapEff"], 16) == kill_setuid_setgid
    assert int(status["CapInh"], 16) == int(status["CapAmb"], 16) == 0
    assert bin(int(status["CapBnd"], 16)).count("1") == 8
    assert status["NoNewPrivs"] == "0"


@pytest.mark.parametrize("user", ["0", "agbox"])
def test_a_process_inside_cannot_take_the_guests_place(sandbox, uid, user):
    """The socket is gone while the guest is connected, and the directory is read-only."""
    box = sandbox("busybox", uid)
    box.ready()
    seen = box.exec("ls", "-A", "/.agbox-link", user=user, check=False)
    assert seen == "" or "Permission denied" in seen
    said = box.exec("touch", "/.agbox-link/guest.sock", user=user, check=False)
    assert "Read-only file system" in said or "Permission denied" in said
    said = box.exec("mv", "/.agbox-link", "/elsewhere", user="0", check=False)
    assert "busy" in said.lower()
    is_alive(box)


def test_a_guest_without_the_secret_is_refused(sandbox, start_daemon):
    box = sandbox("busybox")
    box.ready()
    box.daemon.kill()
    box.daemon = start_daemon(1000)
    box.daemon.ask("adopt", box.name, device=box.place["device"], inode=box.place["inode"])
    box.expect(secret="00" * 32)
    with pytest.raises(LinkError, match="does not answer"):
        box.daemon.ask("hello", box.name, limit_ms=1000)
    box.expect(secret=box.secret)
    assert box.daemon.ask("hello", box.name)["phase"] == 3


def test_another_process_than_the_known_one_is_refused(sandbox, start_daemon):
    box = sandbox("busybox")
    hello = box.ready()
    box.daemon.kill()
    box.daemon = start_daemon(1000)
    box.daemon.ask("adopt", box.name, device=box.place["device"], inode=box.place["inode"])
    box.expect(secret=box.secret, pid=hello["pid"], start_time=hello["start_time"] + 1)
    with pytest.raises(LinkError, match="does not answer"):
        box.daemon.ask("hello", box.name, limit_ms=500)


FALSE_DAEMON = """
use Socket;
socket(my $door, PF_UNIX, SOCK_STREAM, 0) or die;
bind($door, sockaddr_un("/.agbox-link/guest.sock")) or die "bind: $!";
listen($door, 8) or die;
accept(my $caller, $door) or die;
my $said = sysread($caller, my $bytes, 4096);
open(my $report, ">", "/workspace/report.new"); print $report "heard $said bytes"; close $report;
rename("/workspace/report.new", "/workspace/report");
"""


def test_a_false_socket_from_inside_gets_no_connection(sandbox, start_daemon):
    """Even if the directory were writable, which the read-only mount prevents."""
    box = sandbox("debian", 1000, link_writable=True)
    box.ready()
    box.daemon.kill()
    box.exec("rm", "-f", "/.agbox-link/guest.sock")
    box.engine.docker("exec", "-d", "-u", "agbox", box.name, "perl", "-e", FALSE_DAEMON)
    report = "until [ -e /workspace/report ]; do sleep 0.05; done; cat /workspace/report"
    assert box.exec("timeout", "20", "sh", "-c", report) == "heard 0 bytes"
    box.daemon = start_daemon(1000)
    box.daemon.ask("adopt", box.name, device=box.place["device"], inode=box.place["inode"])
    box.expect(secret=box.secret)
    assert box.daemon.ask("hello", box.name)["phase"] == 3


def test_the_guest_is_small(sandbox, guest_bin_dir):
    box = sandbox("pass-on")
    hello = box.ready()
    assert len(hello["build_id"]) == 40
    size = (guest_bin_dir / "agbox-guest").stat().st_size
    status = Path(f"/proc/{hello['pid']}/status").read_text()
    anonymous = int(re.search(r"RssAnon:\s+(\d+) kB", status).group(1))
    descriptors = len(list(Path(f"/proc/{hello['pid']}/fd").iterdir()))
    print(f"\nguest: {size} bytes, RssAnon {anonymous} KiB, {descriptors} descriptors")
    assert size < 3_000_000
    assert anonymous < 512
    assert descriptors < 16
