# SPDX-License-Identifier: Apache-2.0
"""A private engine as a host in a simulated network: services on its addresses, a router with a local
network, a metadata service, resolvers and an internet, a VPN, and Docker's own isolation disabled, so that
only ours is tested."""

import contextlib
import json
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.engine import PrivateEngine
from support.process import LoggedProcess, base_environment, run
from support.sandboxes import inspect, network, primary
from support.world import Outside

_TOOLS = Path(__file__).resolve().parents[1] / "integration" / "isolation"
_PYTHON = "/usr/bin/python3"
_PATIENCE = 30

PORT = 7001
LOOPBACK_PORT = 7002  # of a service on 127.0.0.1 only
FORWARDED_PORT = 7003  # on every address of the host, forwarded to that service
VPN_PORT = 7006  # in the internet, reached through the VPN
INTERNET = "203.0.113.10"
METADATA = "169.254.169.254"
RESOLVER = "192.168.88.53"
NO_RESOLVER = "192.168.88.54"  # a host that answers on the same port
LAN = "192.168.77.1"
NEXT_DOOR = "192.0.2.9"  # in the internet until the host gets an address in its network
DOCKER0 = "172.30.0.1"  # the bridge of other containers
UPLINK = Outside.INSIDE_ADDRESS
ROUTER = Outside.ADDRESS
VPN_ADDRESS = "10.8.0.1"
VPN_PEER = "10.8.0.9"
BEHIND_VPN = "203.0.113.200"  # a public address without a default route to it
POOL = "10.201.0.0/16"

NFTABLES_BACKEND = "--firewall-backend=nftables"

LONGEST_REFUSAL = 500  # milliseconds, on a loaded machine


def everywhere(*addresses: str) -> list[str]:
    """Over TCP, UDP and ICMP."""
    return [
        place
        for address in addresses
        for place in (f"tcp/{address}/{PORT}", f"udp/{address}/{PORT}", f"icmp/{address}")
    ]


def services(*addresses: str, port: int = PORT) -> list[str]:
    return [f"{kind}/{address}/{port}" for kind in ("tcp", "udp") for address in addresses]


def quickest_refusals(
    probe: Callable[[Sequence[str]], dict[str, tuple[str, float]]], places: Sequence[str]
) -> dict[str, tuple[str, float]]:
    """The outcomes of `probe`, with the best of a few attempts for those not refused quickly: a loaded
    machine delays some of them, a silent firewall all."""
    results = probe(places)
    for _ in range(3):
        slow = [
            place
            for place, (outcome, took) in results.items()
            if outcome != "reached" and took > LONGEST_REFUSAL
        ]
        if not slow:
            break
        for place, result in probe(slow).items():
            if result[0] == "reached" or result[1] < results[place][1]:
                results[place] = result
    return results


def as_name(address: str) -> str:
    """A public name with this address, served by the tests' resolver."""
    return f"name/{address.replace('.', '-')}.test/{PORT}"


class ProbedHost:
    def __init__(self, engine: PrivateEngine, stack: contextlib.ExitStack):
        self.engine = engine
        self._stack = stack
        self.outside = engine.connect_outside()
        for address in (INTERNET, METADATA, RESOLVER, NO_RESOLVER):
            self.outside.run("ip", "address", "add", f"{address}/32", "dev", "lo")
        for address in (LAN, NEXT_DOOR):
            self.outside.run("ip", "address", "add", f"{address}/24", "dev", "out0")
        self.outside.run("sh", "-euc", _BELIEVE_SENDERS)
        # Routes for answers without masquerading, and for direct access by neighbours.
        self.outside.run("ip", "route", "add", POOL, "via", UPLINK)
        self._connect_vpn()
        everybody = services("0.0.0.0", "::")
        self.serve(engine.network_namespace, *everybody, *services("127.0.0.1", port=LOOPBACK_PORT))
        dns = [f"dns/{RESOLVER}/53", f"tcp/{RESOLVER}/53", *services(NO_RESOLVER, port=53)]
        self._internet = self.serve(self.outside.network_namespace, *everybody, *dns)
        self.open_barriers()

    def _connect_vpn(self) -> None:
        self.vpn = Outside()
        self._stack.callback(self.vpn.end)
        enter = ["nsenter", f"--net={self.engine.network_namespace}", "--"]
        link = ["ip", "link", "add", "vpn0", "type", "veth", "peer", "name", "eth0"]
        run(*enter, *link, "netns", self.vpn.pid)
        here, there = self.engine.world.run, self.vpn.run
        for node, name, address in ((here, "vpn0", VPN_ADDRESS), (there, "eth0", VPN_PEER)):
            node("ip", "address", "add", f"{address}/24", "dev", name)
            node("ip", "link", "set", name, "up")
        here("ip", "route", "add", BEHIND_VPN, "via", VPN_PEER)
        there("ip", "route", "add", "default", "via", VPN_ADDRESS)
        for address in (BEHIND_VPN, INTERNET):
            there("ip", "address", "add", f"{address}/32", "dev", "lo")
        own = services(VPN_PEER, BEHIND_VPN)
        self.serve(self.vpn.network_namespace, *own, f"tcp/{INTERNET}/{VPN_PORT}")

    def open_barriers(self) -> None:
        """Disables the isolation of the engine and the kernel; repeat after each start of the engine."""
        run = self.engine.world.run
        if NFTABLES_BACKEND in self.engine.options.arguments:
            for chain in ("filter-FORWARD", "raw-PREROUTING"):
                run("nft", "flush", "chain", "ip", "docker-bridges", chain)
        for way in ("-i", "-o"):
            run("iptables", "-w", "-I", "FORWARD", "1", way, "agbx+", "-j", "ACCEPT")
        run("iptables", "-w", "-t", "raw", "-I", "PREROUTING", "1", "-j", "ACCEPT")
        run("sh", "-euc", _BELIEVE_SENDERS + _OPEN_LOOPBACK_AND_IPV6)
        # As an engine without userland proxy forwards published ports.
        forward = ["-m", "addrtype", "--dst-type", "LOCAL", "-p", "tcp", "--dport"]
        target = ["-j", "DNAT", "--to-destination", f"127.0.0.1:{LOOPBACK_PORT}"]
        prerouting = ["iptables", "-w", "-t", "nat", "-I", "PREROUTING", "1"]
        run(*prerouting, *forward, str(FORWARDED_PORT), *target)

    def serve(self, namespace: str, *places: str) -> LoggedProcess:
        """Answers there until the host ends."""
        argv = [*_enter(namespace), _PYTHON, str(_TOOLS / "echo_server.py"), *places]
        server = LoggedProcess("listeners", argv, base_environment())
        self._stack.callback(server.kill)
        server.wait_for_line("ready".__eq__, "the listeners", timeout=_PATIENCE)
        return server

    def overheard(self) -> list[str]:
        """Packets with a forged sender that reached the internet so far."""
        seen = len(self._internet.lines())
        say = f"echo -n say that is all > /dev/udp/127.0.0.1/{PORT}"
        self.outside.run("bash", "-c", say)
        # Packets arrive in order: all earlier ones have been reported by now.
        self._internet.wait_for_line("say that is all".__eq__, "what came", _PATIENCE, after=seen)
        return [line for line in self._internet.lines() if line.startswith("say forged ")]

    def place(self, sandbox_id: str) -> dict[str, str]:
        """Gateway and IPAddress, among others."""
        seen = inspect(self.engine, primary(sandbox_id))
        return seen["NetworkSettings"]["Networks"][network(sandbox_id)]

    def network_namespace(self, container: str) -> str:
        """Of a running container, by its host PID."""
        wanted = str(inspect(self.engine, container)["State"]["Pid"])
        for pid in self.engine.processes():
            with contextlib.suppress(OSError):
                status = Path(f"/proc/{pid}/status").read_text()
                numbers = next(line for line in status.splitlines() if line.startswith("NSpid:"))
                if numbers.split()[2:3] == [wanted]:
                    return f"/proc/{pid}/ns/net"
        raise LookupError(f"{container} has no process {wanted}")


_BELIEVE_SENDERS = """
cd /proc/sys/net
for setting in ipv4/conf/*/rp_filter; do echo 0 > $setting; done
"""
# Makes services on loopback reachable from bridges, as Docker does without its userland proxy, and gives
# bridges an IPv6 address immediately.
_OPEN_LOOPBACK_AND_IPV6 = """
echo 1 > ipv4/conf/default/route_localnet
for bridge in ipv4/conf/agbx*; do
  test -e $bridge || break
  name=${bridge##*/}
  echo 1 > ipv4/conf/$name/route_localnet
  echo 0 > ipv6/conf/$name/accept_dad
  echo 0 > ipv6/conf/$name/disable_ipv6
done
"""


class Loop:
    """Probes places continuously; `round` maps places to [attempts, reached, last time], after each was
    probed again."""

    def __init__(self, prober: LoggedProcess):
        self._prober = prober
        prober.wait_for_line("ready".__eq__, "the first round", timeout=_PATIENCE)

    def round(self) -> dict[str, list]:
        seen = len(self._prober.lines())
        self._prober.write_line("")
        told = self._prober.wait_for_line(lambda _: True, "a round", timeout=_PATIENCE, after=seen)
        return json.loads(told)

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        self._prober.freeze()
        try:
            yield
        finally:
            self._prober.thaw()


@dataclass(frozen=True)
class Vantage:
    """A network namespace from which places are probed. Raw frames go to the next hop."""

    namespace: str
    next_hop: str = ""

    def probe(self, places: Sequence[str]) -> dict[str, tuple[str, float]]:
        """Maps places to outcome and milliseconds; see prober.py."""
        return json.loads(run(*self._command("once", places)).stdout)

    def reached(self, places: Sequence[str]) -> set[str]:
        return {place for place, (outcome, _) in self.probe(places).items() if outcome == "reached"}

    def out_of_reach(self, places: Sequence[str]) -> set[str]:
        """In five attempts: a first packet may be lost during neighbour discovery."""
        left = set(places)
        for _ in range(5):
            left -= self.reached(sorted(left))
            if not left:
                break
        return left

    @contextlib.contextmanager
    def probing(self, places: Sequence[str]) -> Iterator[Loop]:
        with self._running("loop", places) as prober:
            yield Loop(prober)

    @contextlib.contextmanager
    def holding(self, place: str) -> Iterator[LoggedProcess]:
        """An established connection; every line written to it sends another request."""
        with self._running("hold", [place]) as holder:
            holder.wait_for_line("answered".__eq__, "the first answer", timeout=_PATIENCE)
            yield holder

    @contextlib.contextmanager
    def _running(self, command: str, places: Sequence[str]) -> Iterator[LoggedProcess]:
        argv = self._command(command, places)
        prober = LoggedProcess("prober", argv, base_environment(), stdin=subprocess.PIPE)
        try:
            yield prober
        finally:
            prober.send(signal.SIGKILL)
            prober.wait()

    def _command(self, command: str, places: Sequence[str]) -> list[str]:
        via = ["--via", self.next_hop] if self.next_hop else []
        return [*_enter(self.namespace), _PYTHON, str(_TOOLS / "prober.py"), command, *via, *places]


def _enter(namespace: str) -> list[str]:
    return ["nsenter", f"--net={namespace}", "--"]
