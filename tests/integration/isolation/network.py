# SPDX-License-Identifier: Apache-2.0
"""A simulated network of namespaces: a host with sandbox bridges, and its surroundings. No namespace has a
name, so nothing can be left over: each ends with the process that holds it.

    sandbox, companion -- bridge +                      + router (LAN, metadata, internet)
    neighbour ----------- bridge +-------- host --------+ VPN peer
                                 |
    other (docker0) ----- bridge +
"""

import contextlib
import json
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from support.process import LoggedProcess, base_environment
from support.world import Outside

HERE = Path(__file__).resolve().parent
INSTANCE = "0a0b0c0d-1111-4222-8333-444455556666"
POOL = "10.213.0.0/16"
RESOLVER = "192.168.77.53"
PYTHON = "/usr/bin/python3"


def as_user(uid: int, *capabilities: str) -> tuple[str, ...]:
    """The beginning of a command line that runs the rest as another user."""
    sets = ",".join(("-all", *(f"+{name}" for name in capabilities)))
    become = ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", f"--inh-caps={sets}")
    return (*become, *([f"--ambient-caps={sets}"] if capabilities else []), "--")


class Node(Outside):
    """One network namespace."""

    def command(self, *argv: str) -> list[str]:
        return ["nsenter", f"--net={self.network_namespace}", "--", *argv]

    def ip(self, *commands: str) -> None:
        """Several `ip` commands in one batch."""
        self.run("ip", "-batch", "-", input="\n".join(commands) + "\n")

    def nft(self, text: str) -> None:
        self.run("nft", "-f", "-", input=text)

    def sysctl(self, **values: str) -> None:
        for name, value in values.items():
            path = "/proc/sys/net/" + name.replace("__", "/")
            self.run("sh", "-c", f"echo {value} > {path}")

    def cable_to(self, other: "Node", here: str, there: str) -> None:
        """A veth pair between the two, with these interface names."""
        run_there = ["ip", "link", "add", here, "type", "veth", "peer", "name", there]
        self.run(*run_there, "netns", other.pid)

    @contextlib.contextmanager
    def running(self, *argv: str) -> Iterator[LoggedProcess]:
        process = LoggedProcess(
            argv[0], self.command(*argv), base_environment(), stdin=subprocess.PIPE
        )
        try:
            yield process
        finally:
            if process.returncode() is None:
                process.send(signal.SIGKILL)
            process.wait()

    @contextlib.contextmanager
    def serving(self, *places: str) -> Iterator[LoggedProcess]:
        with self.running(PYTHON, str(HERE / "echo_server.py"), *places) as server:
            server.wait_for_line("ready".__eq__, "the listeners", timeout=20)
            yield server

    def probe(self, places: list[str]) -> dict[str, tuple[str, float]]:
        done = self.run(PYTHON, str(HERE / "prober.py"), "once", *places)
        return json.loads(done.stdout)

    @contextlib.contextmanager
    def flooding(self, word: str, places: list[str]) -> Iterator[list[int]]:
        """Floods every place with datagrams with this word; the count is available after the block."""
        sent: list[int] = []
        with self.running(PYTHON, str(HERE / "prober.py"), "flood", word, *places) as prober:
            prober.wait_for_line("ready".__eq__, "the first datagram", timeout=20)
            yield sent
            prober.close_input()
            assert prober.wait() == 0, prober.tail()
            sent.append(int(prober.lines()[-1]))


class Firewall:
    """Our firewall and nothing else, in the namespace of a node."""

    def __init__(
        self,
        program: Path,
        node: Node,
        *,
        instance: str = INSTANCE,
        prefix: tuple[str, ...] = (),
        failpoints: str = "",
    ):
        assert program.exists(), f"there is no {program}; build it with: cmake --build --preset release"
        self.process = LoggedProcess(
            "firewall",
            node.command(*prefix, str(program), instance, POOL, RESOLVER),
            {**base_environment(), "AGBOX_FAILPOINTS": failpoints},
            stdin=subprocess.PIPE,
        )

    def wait_until_loaded(self) -> str:
        """Returns the name prefix of its bridges."""
        line = self.process.wait_for_line(
            lambda line: line.startswith(("loaded ", "error ")), "the rules", timeout=20
        )
        assert line.startswith("loaded "), line
        return line.split()[1]

    def ask(self, command: str) -> str:
        seen = len(self.process.lines())
        self.process.write_line(command)
        return self.process.wait_for_line(
            lambda line: line.startswith(("ok", "error ")), f"an answer to {command}", 20, after=seen
        )

    def wait_for_repair(self, number: int) -> Mapping[str, object]:
        """The log line of the repair with this number."""
        mark = f'"repairs":{number}}}'
        return json.loads(
            self.process.wait_for_line(lambda line: mark in line, f"repair {number}", timeout=10)
        )

    def end(self) -> None:
        if self.process.returncode() is None:
            self.process.send(signal.SIGKILL)
        self.process.wait()


class Town:
    """The host and its surroundings, with a replacement for Docker's NAT."""

    def __init__(self, stack: contextlib.ExitStack, bridge_prefix: str):
        self.bridge = bridge_prefix + "aaaaaa"
        self.other_bridge = bridge_prefix + "bbbbbb"
        names = ("host", "router", "vpn", "sandbox", "companion", "neighbour", "container")
        self.nodes = {name: Node() for name in names}
        for node in self.nodes.values():
            stack.callback(node.end)
            # IPv6 addresses are usable immediately, without duplicate address detection.
            node.sysctl(ipv6__conf__all__accept_dad="0", ipv6__conf__default__accept_dad="0")
        self._connect()
        self._play_docker()

    def __getattr__(self, name: str) -> Node:
        try:
            return self.__dict__["nodes"][name]
        except KeyError:
            raise AttributeError(name) from None

    def _connect(self) -> None:
        host = self.host
        host.sysctl(ipv4__ip_forward="1", ipv6__conf__all__forwarding="1")
        host.cable_to(self.router, "lan0", "eth0")
        host.cable_to(self.vpn, "vpn0", "eth0")
        host.ip(
            "address add 192.168.77.2/24 dev lan0",
            "address add 203.0.113.2/24 dev lan0",
            "address add fd77::2/64 dev lan0 nodad",
            "link set lan0 up",
            "route add default via 192.168.77.1",
            "route add default via fd77::1",
            "address add 10.8.0.1/24 dev vpn0",
            "link set vpn0 up",
        )
        self.router.sysctl(ipv4__ip_forward="1")
        self.router.ip(
            "address add 192.168.77.1/24 dev eth0",
            f"address add {RESOLVER}/24 dev eth0",
            "address add 192.168.77.9/24 dev eth0",
            "address add 203.0.113.9/24 dev eth0",
            "address add 169.254.169.254/32 dev eth0",
            "address add 198.51.100.10/32 dev eth0",
            "address add fd77::1/64 dev eth0 nodad",
            "address add 2001:db8::10/128 dev eth0 nodad",
            "link set eth0 up",
            "route add 10.213.0.0/16 via 192.168.77.2",
            "route add fd13::/32 via fd77::2",
        )
        self.vpn.ip(
            "address add 10.8.0.9/24 dev eth0",
            "link set eth0 up",
            "route add default via 10.8.0.1",
        )
        self._add_bridge(self.bridge, "10.213.0.1/28", "fd13:0:0:1::1/64")
        self._add_bridge(self.other_bridge, "10.213.0.17/28", "fd13:0:0:2::1/64")
        self._add_bridge("docker0", "172.17.0.1/16", "fd13:0:0:3::1/64")
        self._plug(self.sandbox, self.bridge, "s", "10.213.0.2/28", "fd13:0:0:1::2/64")
        self._plug(self.companion, self.bridge, "c", "10.213.0.3/28", "fd13:0:0:1::3/64")
        self._plug(self.neighbour, self.other_bridge, "n", "10.213.0.18/28", "fd13:0:0:2::2/64")
        self._plug(self.container, "docker0", "d", "172.17.0.2/16", "fd13:0:0:3::2/64")

    def _add_bridge(self, name: str, address: str, address6: str) -> None:
        self.host.ip(
            f"link add {name} type bridge",
            f"address add {address} dev {name}",
            f"address add {address6} dev {name} nodad",
            f"link set {name} up",
        )

    def _plug(self, node: Node, bridge: str, link: str, address: str, address6: str) -> None:
        self.host.cable_to(node, f"v{link}", "eth0")
        self.host.ip(f"link set v{link} master {bridge}", f"link set v{link} up")
        gateway = str(int(address.split(".")[3].split("/")[0]) // 16 * 16 + 1)
        node.ip(
            f"address add {address} dev eth0",
            f"address add {address6} dev eth0 nodad",
            "link set eth0 up",
            f"route add default via {address.rsplit('.', 1)[0]}.{gateway}",
            f"route add default via {address6.split('/')[0][:-1]}1",
        )

    def _play_docker(self) -> None:
        """Masquerading, and port 9090 of the host published for the neighbour on every address."""
        self.host.nft(
            f"""
            table ip nat {{
                chain PREROUTING {{
                    type nat hook prerouting priority dstnat;
                    fib daddr type local tcp dport 9090 dnat to 10.213.0.18:80
                }}
                chain POSTROUTING {{
                    type nat hook postrouting priority srcnat;
                    ip saddr 10.213.0.0/28 oifname != "{self.bridge}" masquerade
                    ip saddr 10.213.0.16/28 oifname != "{self.other_bridge}" masquerade
                }}
            }}
            """
        )

    def link_local(self, bridge: str) -> str:
        """The IPv6 link-local address of the host on a bridge."""
        shown = json.loads(self.host.run("ip", "-j", "-6", "address", "show", "dev", bridge).stdout)
        addresses = [entry for entry in shown[0]["addr_info"] if entry["scope"] == "link"]
        return addresses[0]["local"]
