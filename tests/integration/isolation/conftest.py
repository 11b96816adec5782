# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the firewall's tests: namespaces of the test's own, and the firewall in one of them."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from network import Firewall, Node, Town  # noqa: E402


@pytest.fixture
def clean_host() -> Iterator[Node]:
    """A host with an uplink, a public network next door and nothing else."""
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
    """make_firewall(node): started, and not loaded yet."""
    with contextlib.ExitStack() as stack:

        def make(node: Node, **options) -> Firewall:
            firewall = Firewall(bin_dir.parent / "tests" / "firewall_daemon", node, **options)
            stack.callback(firewall.end)
            return firewall

        yield make


@pytest.fixture
def bridge_prefix(make_firewall: Callable[..., Firewall]) -> str:
    """How the names of the tests' bridges begin: the firewall says it, in a world of its own."""
    node = Node()
    try:
        return make_firewall(node).wait_until_loaded()
    finally:
        node.end()


@pytest.fixture
def town(bridge_prefix: str) -> Iterator[Town]:
    with contextlib.ExitStack() as stack:
        yield Town(stack, bridge_prefix)
