# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the firewall tests: private namespaces, and the firewall in one of them."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from network import RESOLVER, Firewall, Node, Town  # noqa: E402
from places import HOST_ADDRESSES, INTERNET, LAN_NEIGHBOUR, OUTSIDE_ADDRESSES, PORT, VPN_PEER  # noqa: E402
from support.process import LoggedProcess  # noqa: E402


@pytest.fixture
def clean_host() -> Iterator[Node]:
    """A host with an uplink, a public on-link network and nothing else."""
    host, street = Node(), Node()
    try:
        host.cable_to(street, "lan0", "eth0")
        street.ip("link set eth0 up")
        host.ip(
            "link set lo up",
            "address add 192.168.77.2/24 dev lan0",
            "address add 203.0.113.2/24 dev lan0",
            "link set lan0 up",
            "route add default via 192.168.77.1",
        )
        yield host
    finally:
        host.end()
        street.end()


@pytest.fixture
def make_firewall(bin_dir: Path) -> Iterator[Callable[..., Firewall]]:
    """make_firewall(node): started, not loaded yet."""
    with contextlib.ExitStack() as stack:

        def make(node: Node, program: Path | None = None, **options) -> Firewall:
            built = bin_dir.parent / "tests" / "firewall_daemon"
            firewall = Firewall(program or built, node, **options)
            stack.callback(firewall.end)
            return firewall

        yield make


@pytest.fixture
def bridge_prefix(make_firewall: Callable[..., Firewall]) -> str:
    """The name prefix of the tests' bridges, as printed by a separate firewall."""
    node = Node()
    try:
        return make_firewall(node).wait_until_loaded()
    finally:
        node.end()


@pytest.fixture
def town(bridge_prefix: str) -> Iterator[Town]:
    with contextlib.ExitStack() as stack:
        yield Town(stack, bridge_prefix)


@pytest.fixture
def services(town: Town) -> Iterator[LoggedProcess]:
    """Servers at every place; returns that of the router."""

    def places(*addresses: str, ports=(PORT,)) -> list[str]:
        return [f"{kind}/{a}/{p}" for a in addresses for p in ports for kind in ("tcp", "udp")]

    link_local = town.link_local(town.bridge)
    host_places = places(*HOST_ADDRESSES, "fd13:0:0:1::1", "fd13:0:0:2::1", "fd77::2")
    host_places += places(f"{link_local}%{town.bridge}")
    router_places = places(*OUTSIDE_ADDRESSES, INTERNET, "fd77::1", "2001:db8::10")
    router_places += places(RESOLVER, LAN_NEIGHBOUR, ports=(53,)) + places(RESOLVER)
    with (
        town.host.serving(*host_places),
        town.router.serving(*router_places) as router,
        town.vpn.serving(*places(VPN_PEER)),
        town.companion.serving(*places("10.213.0.3")),
        town.neighbour.serving(*places("10.213.0.18", "fd13:0:0:2::2")),
        town.container.serving(*places("172.17.0.2")),
        town.sandbox.serving(*places("10.213.0.2", "fd13:0:0:1::2")),
    ):
        yield router
