# SPDX-License-Identifier: Apache-2.0
"""A private engine as a host in a world of its own: services on its addresses, a router with a
metadata service and an internet behind it, and Docker's own barriers between bridges out of the
way, so that only ours are left."""

import contextlib
import json
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from support.engine import PrivateEngine
from support.process import LoggedProcess, base_environment
from support.sandboxes import inspect, network, primary

_TOOLS = Path(__file__).resolve().parents[1] / "integration" / "isolation"
_PYTHON = "/usr/bin/python3"

PORT = 7001
LOOPBACK_PORT = 7002  # of a service on 127.0.0.1 alone
FORWARDED_PORT = 7003  # of every address of the host, turned to that service
INTERNET = "203.0.113.10"
METADATA = "169.254.169.254"
DOCKER0 = "172.30.0.1"  # the bridge of containers that are none of ours
UPLINK = "198.51.100.2"
ROUTER = "198.51.100.1"


class ProbedHost:
    def __init__(self, engine: PrivateEngine, stack: contextlib.ExitStack):
        self.engine = engine
        outside = engine.connect_outside()
        for address in (INTERNET, METADATA):
            outside.run("ip", "address", "add", f"{address}/32", "dev", "lo")
        everywhere = [f"tcp/0.0.0.0/{PORT}", f"udp/0.0.0.0/{PORT}"]
        here = [*everywhere, f"tcp/127.0.0.1/{LOOPBACK_PORT}"]
        stack.enter_context(_serving(engine.network_namespace, here))
        stack.enter_context(_serving(outside.network_namespace, everywhere))
        self.open_barriers()

    def open_barriers(self) -> None:
        """Whatever the engine itself puts between its bridges; again after each of its starts."""
        run = self.engine.world.run
        run("iptables", "-w", "-I", "FORWARD", "1", "-i", "agbx+", "-o", "agbx+", "-j", "ACCEPT")
        run("iptables", "-w", "-t", "raw", "-I", "PREROUTING", "1", "-i", "agbx+", "-j", "ACCEPT")
        # As an engine without its userland proxy forwards published ports.
        run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet")
        forward = ["-m", "addrtype", "--dst-type", "LOCAL", "-p", "tcp", "--dport"]
        target = ["-j", "DNAT", "--to-destination", f"127.0.0.1:{LOOPBACK_PORT}"]
        prerouting = ["iptables", "-w", "-t", "nat", "-I", "PREROUTING", "1"]
        run(*prerouting, *forward, str(FORWARDED_PORT), *target)

    def place(self, sandbox_id: str) -> dict[str, str]:
        """Gateway and IPAddress, among others."""
        seen = inspect(self.engine, primary(sandbox_id))
        return seen["NetworkSettings"]["Networks"][network(sandbox_id)]

    def network_namespace(self, container: str) -> str:
        """Of a running container, as this machine counts processes."""
        wanted = str(inspect(self.engine, container)["State"]["Pid"])
        for pid in self.engine.processes():
            with contextlib.suppress(OSError):
                status = Path(f"/proc/{pid}/status").read_text()
                numbers = next(line for line in status.splitlines() if line.startswith("NSpid:"))
                if numbers.split()[2:3] == [wanted]:
                    return f"/proc/{pid}/ns/net"
        raise LookupError(f"{container} has no process {wanted}")


def probe(namespace: str, places: Sequence[str]) -> set[str]:
    """Those of the places (tcp/ADDRESS/PORT, udp/…, icmp/ADDRESS) that answer."""
    argv = [*_enter(namespace), _PYTHON, str(_TOOLS / "prober.py"), "once", *places]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, timeout=60)
    return {place for place, (outcome, _) in json.loads(done.stdout).items() if outcome == "reached"}


@contextlib.contextmanager
def probing(namespace: str, places: Sequence[str]) -> Iterator[dict[str, list[int]]]:
    """Tries every place each 10 ms; place to [tries, reached] is there after the block."""
    counts: dict[str, list[int]] = {}
    argv = [*_enter(namespace), _PYTHON, str(_TOOLS / "prober.py"), "loop", *places]
    prober = LoggedProcess("prober", argv, base_environment(), stdin=subprocess.PIPE)
    try:
        prober.wait_for_line("ready".__eq__, "the first round", timeout=20)
        yield counts
        prober.close_input()
        assert prober.wait() == 0, prober.tail()
        counts.update(json.loads(prober.lines()[-1]))
    finally:
        if prober.returncode() is None:
            prober.send(signal.SIGKILL)
        prober.wait()


@contextlib.contextmanager
def _serving(namespace: str, places: Sequence[str]) -> Iterator[None]:
    argv = [*_enter(namespace), _PYTHON, str(_TOOLS / "echo_server.py"), *places]
    server = LoggedProcess("listeners", argv, base_environment())
    try:
        server.wait_for_line("ready".__eq__, "the listeners", timeout=20)
        yield
    finally:
        server.kill()


def _enter(namespace: str) -> list[str]:
    return ["nsenter", f"--net={namespace}", "--"]
