# SPDX-License-Identifier: Apache-2.0
"""Where a sandbox of the town may and may not connect, and the outcomes of attempts."""

from network import RESOLVER, Firewall, Town

INTERNET = "198.51.100.10"
LAN_NEIGHBOUR = "192.168.77.9"
METADATA = "169.254.169.254"
ON_LINK_PUBLIC = "203.0.113.9"
VPN_PEER = "10.8.0.9"

# Of the host itself: its addresses on this sandbox's bridge, the neighbour's, Docker's, the LAN, a
# public network and the VPN.
HOST_ADDRESSES = ("10.213.0.1", "10.213.0.17", "172.17.0.1", "192.168.77.2", "203.0.113.2", "10.8.0.1")
OUTSIDE_ADDRESSES = (LAN_NEIGHBOUR, "192.168.77.1", METADATA, ON_LINK_PUBLIC)

PORT = 80


def everywhere(*addresses: str) -> list[str]:
    """Over TCP, UDP and ICMP."""
    return [
        place
        for address in addresses
        for place in (f"tcp/{address}/{PORT}", f"udp/{address}/{PORT}", f"icmp/{address}")
    ]


FORBIDDEN = [
    *everywhere(*HOST_ADDRESSES),
    *everywhere(*OUTSIDE_ADDRESSES),
    *everywhere(VPN_PEER),
    # Another sandbox, and another container.
    *everywhere("10.213.0.18", "172.17.0.2"),
    # A port that another sandbox published on every address of the host.
    *(f"tcp/{address}/9090" for address in HOST_ADDRESSES),
    # DNS of other hosts, and the resolver's other ports.
    f"tcp/{LAN_NEIGHBOUR}/53",
    f"udp/{LAN_NEIGHBOUR}/53",
    f"tcp/{RESOLVER}/{PORT}",
    f"udp/{RESOLVER}/{PORT}",
    # IPv6, which a sandbox does not have but can configure itself.
    *everywhere("fd13:0:0:1::1", "fd13:0:0:2::1", "fd77::2", "fd77::1", "2001:db8::10"),
    *everywhere("fd13:0:0:2::2"),
]

ALLOWED = [
    f"tcp/{RESOLVER}/53",
    f"udp/{RESOLVER}/53",
    *everywhere(INTERNET),
    *everywhere("10.213.0.3"),
]


def outcomes(results: dict) -> dict[str, str]:
    return {place: outcome for place, (outcome, _) in results.items()}


def reached(results: dict) -> set[str]:
    return {place for place, outcome in outcomes(results).items() if outcome == "reached"}


def out_of_reach(node, places: list[str]) -> set[str]:
    """The control: what cannot be reached at all. The first packet over a new link may be lost during
    neighbour discovery, and is resent after a second; so silent places are retried."""
    left = set(places)
    for _ in range(5):
        left -= reached(node.probe(sorted(left)))
        if not left:
            break
    return left


def load(make_firewall, town: Town, **options) -> Firewall:
    firewall = make_firewall(town.host, **options)
    firewall.wait_until_loaded()
    return firewall
