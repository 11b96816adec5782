# SPDX-License-Identifier: Apache-2.0
"""What a sandbox reaches, and what reaches it. Every forbidden place is first reached without the
rules: a probe that finds nothing anyway would prove nothing."""

import socket
import struct

import pytest
from frames import checksum
from network import HERE, PYTHON, RESOLVER
from other_firewalls import FIREWALLD_LIKE, OTHER_FIREWALLS

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
    # Another sandbox, and a container that is none of ours.
    *everywhere("10.213.0.18", "172.17.0.2"),
    # A port that another sandbox published on every address of the host.
    *(f"tcp/{address}/9090" for address in HOST_ADDRESSES),
    # DNS of whoever is not the resolver, and the resolver's other ports.
    f"tcp/{LAN_NEIGHBOUR}/53",
    f"udp/{LAN_NEIGHBOUR}/53",
    f"tcp/{RESOLVER}/{PORT}",
    f"udp/{RESOLVER}/{PORT}",
    # IPv6, which a sandbox does not have but can give itself.
    *everywhere("fd13:0:0:1::1", "fd13:0:0:2::1", "fd77::2", "fd77::1", "2001:db8::10"),
    *everywhere("fd13:0:0:2::2"),
]

ALLOWED = [
    f"tcp/{RESOLVER}/53",
    f"udp/{RESOLVER}/53",
    *everywhere(INTERNET),
    *everywhere("10.213.0.3"),
]


@pytest.fixture
def services(town):
    """Something answers at every place that there is."""

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


@pytest.fixture
def forbidden(town, services):
    """With the link-local address, which only this run knows."""
    return FORBIDDEN + everywhere(f"{town.link_local(town.bridge)}%eth0")


def outcomes(results: dict) -> dict[str, str]:
    return {place: outcome for place, (outcome, _) in results.items()}


def reached(results: dict) -> set[str]:
    return {place for place, outcome in outcomes(results).items() if outcome == "reached"}


def out_of_reach(node, places: list[str]) -> set[str]:
    """The control: what cannot be reached at all. The first packet over a new link may be lost while
    neighbours find each other, and is sent again after a second; so what is silent is tried again."""
    left = set(places)
    for _ in range(5):
        left -= reached(node.probe(sorted(left)))
        if not left:
            break
    return left


def load(make_firewall, town):
    firewall = make_firewall(town.host)
    firewall.wait_until_loaded()
    return firewall


def test_the_matrix(town, forbidden, make_firewall, say):
    assert out_of_reach(town.sandbox, forbidden + ALLOWED) == set(), "even without the rules"
    assert out_of_reach(town.companion, FORBIDDEN) == set(), "even without the rules"

    load(make_firewall, town)
    results = town.sandbox.probe(forbidden)
    assert reached(results) == set()
    assert set(ALLOWED) - reached(town.sandbox.probe(ALLOWED)) == set()
    # The companion is as closed in as the sandbox.
    assert reached(town.companion.probe(FORBIDDEN)) == set()

    # An agent that runs into a refusal goes on at once. Only IPv6, which no honest sandbox speaks,
    # and the bridges of others are silent.
    answered = {
        place: result
        for place, result in results.items()
        if place.startswith("tcp/") and ":" not in place and "/10.213.0.18/" not in place
    }
    slow = {place: result for place, result in answered.items()
            if result[0] != "refused" or result[1] > 500}
    assert slow == {}
    longest = max(took for _, took in answered.values())
    say(f"{len(forbidden)} forbidden places, 0 reached; {len(ALLOWED)} allowed, all reached; "
        f"the slowest refusal over TCP took {longest} ms")


@pytest.mark.parametrize("other", OTHER_FIREWALLS)
def test_the_matrix_beside_another_firewall(town, forbidden, make_firewall, other):
    """What it lets through is closed all the same, and what works beside it goes on working."""
    town.host.nft(OTHER_FIREWALLS[other])
    assert out_of_reach(town.sandbox, ALLOWED) == set(), "even without the rules"
    if OTHER_FIREWALLS[other] == FIREWALLD_LIKE:  # the other one closes much of it itself
        assert out_of_reach(town.sandbox, forbidden) == set(), "even without the rules"
    load(make_firewall, town)
    assert reached(town.sandbox.probe(forbidden)) == set()
    assert out_of_reach(town.sandbox, ALLOWED) == set()


def test_replies_pass_and_nothing_else_gets_in(town, services, make_firewall):
    """The host reaches a sandbox's port, as the engine's proxy of a published port does; the local
    network, another sandbox and a VPN do not."""
    inwards = everywhere("10.213.0.2")
    outside = (town.router, town.vpn, town.neighbour, town.container)
    inwards6 = everywhere("fd13:0:0:1::2")
    for node in outside:
        assert out_of_reach(node, inwards) == set()
    assert out_of_reach(town.router, inwards6) == set()
    load(make_firewall, town)
    assert set(inwards) - reached(town.host.probe(inwards)) == set()
    for node in outside:
        assert reached(node.probe(inwards)) == set()
    assert reached(town.router.probe(inwards6)) == set()


def test_a_sandbox_tells_the_host_that_a_port_is_closed(town, services, make_firewall):
    """An ICMP error about what the host itself opened towards the sandbox."""
    load(make_firewall, town)
    assert outcomes(town.host.probe(["udp/10.213.0.2/81"])) == {"udp/10.213.0.2/81": "refused"}


def test_a_resolver_on_an_address_of_the_host_answers_names_and_nothing_else(
    town, services, make_firewall
):
    firewall = load(make_firewall, town)
    own = "192.168.77.2"
    dns = [f"{kind}/{own}/53" for kind in ("tcp", "udp")]
    with town.host.serving(*dns):
        assert reached(town.sandbox.probe(dns)) == set()
        assert firewall.ask(f"resolvers {own}") == "ok"
        assert out_of_reach(town.sandbox, dns) == set()
        assert reached(town.sandbox.probe(everywhere(own))) == set()


def test_what_a_nat_of_others_turns_to_the_host_is_closed(town, services, make_firewall):
    """As a transparent proxy does it: the sandbox has asked for a place on the internet."""
    elsewhere = "198.51.100.77"
    town.host.nft(
        f"""
        table ip proxy {{
            chain pre {{
                type nat hook prerouting priority dstnat;
                ip daddr {elsewhere} dnat to 192.168.77.2
            }}
        }}
        """
    )
    places = everywhere(elsewhere)
    assert out_of_reach(town.sandbox, places) == set(), "even without the rules"
    load(make_firewall, town)
    assert reached(town.sandbox.probe(places)) == set()


@pytest.mark.parametrize("bridge_nf", ["0", "1"])
def test_companions_hear_what_is_said_to_everybody(town, make_firewall, bridge_nf):
    """Broadcast and multicast stay on the sandbox's network and work there, also where frames within a
    bridge pass the packet filter."""
    town.host.run("modprobe", "br_netfilter", check=False)  # most machines have it already
    town.host.sysctl(**{"bridge__bridge-nf-call-iptables": bridge_nf})
    load(make_firewall, town)
    everybody = ("10.213.0.15", "255.255.255.255", "224.0.0.1")
    script = (
        "import socket, sys\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)\n"
        f"for a in sys.argv[1:]: s.sendto(f'say {{a}}'.encode(), (a, {PORT}))\n"
    )
    place = f"udp/0.0.0.0/{PORT}"
    with (
        town.companion.serving(place) as companion,
        town.neighbour.serving(place) as neighbour,
        town.host.serving(place) as host,
    ):
        town.sandbox.run(PYTHON, "-c", script, *everybody)
        for address in everybody:
            companion.wait_for_line(f"say {address}".__eq__, "what was said to all", 10)
        for other in (neighbour, host):
            assert not [line for line in other.lines() if line.startswith("say ")]


@pytest.mark.parametrize("state", ["only the plain tables", "after the daemon's death"])
def test_the_plain_tables_alone_are_enough(town, forbidden, make_firewall, state):
    assert out_of_reach(town.sandbox, forbidden + ALLOWED) == set()
    firewall = load(make_firewall, town)
    firewall.process.kill()
    name = "agents_sandbox_0a0b0c0d_owned"
    if state == "only the plain tables":
        town.host.nft(f"delete table inet {name}\ndelete table arp {name}\n")
    assert reached(town.sandbox.probe(forbidden)) == set()
    assert set(ALLOWED) - reached(town.sandbox.probe(ALLOWED)) == set()


STRANGERS = {
    "everything flushed": "flush ruleset",
    "the table removed": "delete table inet agents_sandbox_0a0b0c0d",
    "a chain flushed": "flush chain inet agents_sandbox_0a0b0c0d from_sandbox",
}


@pytest.mark.parametrize("stranger", STRANGERS)
def test_nothing_is_open_while_the_rules_are_put_back(town, services, make_firewall, stranger, say):
    watched = ["tcp/10.213.0.1/80", "udp/10.213.0.1/80", f"tcp/{LAN_NEIGHBOUR}/80",
               f"udp/{LAN_NEIGHBOUR}/80", "tcp/10.213.0.18/80", f"tcp/{ON_LINK_PUBLIC}/80"]
    assert out_of_reach(town.sandbox, watched) == set()
    firewall = load(make_firewall, town)
    with town.sandbox.probing(watched) as counts:
        for number in range(1, 6):
            town.host.nft(STRANGERS[stranger] + "\n")
            firewall.wait_for_repair(number)
    assert {place: open_ for place, (_, open_, _) in counts.items() if open_} == {}
    assert all(tries >= 3 for tries, *_ in counts.values()), counts
    say(f"{stranger}, five times: {sum(tries for tries, *_ in counts.values())} tries, 0 reached")


CHANGES = 40  # more than a hundred slip through where a daemon replaces both copies at once


@pytest.mark.parametrize("change", ["killed", "stopped", "flushed", "networks"])
def test_no_datagram_slips_through(town, services, make_firewall, change, say):
    """While one daemon follows another, while what was flushed is put back, and while networks of the
    host come and go: a moment is enough for one of thousands."""
    addresses = (LAN_NEIGHBOUR, ON_LINK_PUBLIC)  # which are closed by what is in a set
    places = [f"udp/{address}/{PORT}" for address in addresses]
    firewall = load(make_firewall, town)
    with town.sandbox.flooding("meanwhile", places) as sent:
        for number in range(CHANGES):
            told = len(firewall.process.lines())
            if change == "flushed":
                town.host.nft("flush ruleset\n")
                firewall.wait_for_repair(number + 1)
            elif change == "networks":
                town.host.ip(f"address {'delete' if number % 2 else 'add'} 192.0.2.2/24 dev lan0")
                firewall.process.wait_for_line(
                    lambda line: "follows this host's" in line, "the sets", 10, after=told
                )
            else:
                if change == "stopped":
                    firewall.process.close_input()
                    assert firewall.process.wait() == 0
                else:
                    firewall.process.kill()
                firewall = load(make_firewall, town)
    # Without the rules all of them arrive, and later than those before.
    firewall.process.kill()
    town.host.nft("flush ruleset\n")
    with town.sandbox.flooding("afterwards", places):
        for address in addresses:
            services.wait_for_line(f"say afterwards {address}".__eq__, "a datagram", 10)
    assert [line for line in services.lines() if line.startswith("say meanwhile")] == []
    say(f"{change}, {CHANGES} times: {sent[0]} datagrams, none arrived")


# Datagrams from each of these ports to the internet, each a connection of its own; how many are answered.
ASK_FROM_PORTS = f"""
import socket, sys
answered = 0
for port in range(int(sys.argv[1]), int(sys.argv[2])):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.bind(("", port))
        asker.settimeout(0.5)
        asker.connect(("{INTERNET}", {PORT}))
        try:
            asker.send(b"hello")
            answered += asker.recv(64) == b"hello"
        except OSError:
            pass
print(answered)
"""


def test_a_sandbox_and_its_companions_share_a_budget_of_connections(town, services, make_firewall):
    """The host's table of connections is everybody's."""
    town.host.sysctl(
        netfilter__nf_conntrack_udp_timeout="600", netfilter__nf_conntrack_udp_timeout_stream="600"
    )
    load(make_firewall, town)

    def answered(node, first: int, count: int) -> int:
        asked = node.run(PYTHON, "-c", ASK_FROM_PORTS, str(first), str(first + count))
        return int(asked.stdout)

    assert answered(town.sandbox, 10000, 8192) == 8192
    assert answered(town.sandbox, 20000, 3) == 0
    assert answered(town.companion, 20000, 3) == 0
    assert answered(town.sandbox, 10000, 3) == 3, "those that are there go on"
    assert answered(town.neighbour, 20000, 3) == 3


def test_a_public_network_that_comes_next_door_is_closed(town, services, make_firewall):
    """Until then it is the internet: only afterwards do its hosts count as neighbours."""
    firewall = load(make_firewall, town)
    town.router.ip("address add 192.0.2.9/24 dev eth0")
    with town.router.serving("tcp/192.0.2.9/80"):
        assert out_of_reach(town.sandbox, ["tcp/192.0.2.9/80"]) == set()
        seen = len(firewall.process.lines())
        town.host.ip("address add 192.0.2.2/24 dev lan0")
        firewall.process.wait_for_line(
            lambda line: "follows this host's networks" in line, "the new network", 10, after=seen
        )
        assert reached(town.sandbox.probe(["tcp/192.0.2.9/80"])) == set()


def test_what_was_opened_towards_a_sandbox_before_the_rules_is_cut(town, services, make_firewall):
    """A local neighbour's connection that is established already."""
    with town.router.running(PYTHON, str(HERE / "prober.py"), "hold", "tcp/10.213.0.2/80") as client:
        client.wait_for_line("answered".__eq__, "the first answer", 10)
        load(make_firewall, town)
        client.write_line("")
        client.wait_for_line("silent".__eq__, "the end of the connection", 10)


def test_forged_senders_do_not_leave_the_bridge(town, services, make_firewall):
    """A datagram with the address of somebody else, made by hand as with CAP_NET_RAW."""
    def send_forged(source: str, word: str) -> None:
        packet = forged_datagram(source, INTERNET, f"say {word}".encode())
        script = (
            "import socket, sys\n"
            "s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)\n"
            f"s.sendto(bytes.fromhex('{packet.hex()}'), ('{INTERNET}', 0))\n"
        )
        town.sandbox.run("/usr/bin/python3", "-c", script)

    def say_honestly(word: str) -> None:
        script = (
            "import socket\n"
            f"socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'say {word}', ('{INTERNET}', 80))\n"
        )
        town.sandbox.run("/usr/bin/python3", "-c", script)

    # The router must take it for an answerable one, or the control would show nothing.
    town.router.sysctl(ipv4__conf__all__rp_filter="0", ipv4__conf__eth0__rp_filter="0")
    town.host.sysctl(ipv4__conf__all__rp_filter="0", **{f"ipv4__conf__{town.bridge}__rp_filter": "0"})
    send_forged("198.51.100.99", "before")
    services.wait_for_line("say before".__eq__, "the forged datagram without the rules", 10)
    load(make_firewall, town)
    send_forged("198.51.100.99", "after")
    # What is sent later arrives later: once it is there, the forged one would be.
    say_honestly("honest")
    services.wait_for_line("say honest".__eq__, "the honest datagram", 10)
    assert "say after" not in services.lines()


def forged_datagram(source: str, destination: str, data: bytes, source_port: int = 7777) -> bytes:
    datagram = struct.pack("!HHHH", source_port, PORT, 8 + len(data), 0) + data
    return struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 20 + len(datagram), 1, 0, 64, socket.IPPROTO_UDP, 0,
        socket.inet_aton(source), socket.inet_aton(destination),
    ) + datagram


def test_a_vpn_that_takes_over_the_internet_keeps_it_open(town, services, make_firewall):
    """By two halves instead of a default route, as many do; and its own network stays closed."""
    town.vpn.ip(f"address add {INTERNET}/32 dev eth0")
    firewall = load(make_firewall, town)
    seen = len(firewall.process.lines())
    town.host.ip("route add 0.0.0.0/1 via 10.8.0.9 dev vpn0", "route add 128.0.0.0/1 via 10.8.0.9 dev vpn0")
    firewall.process.wait_for_line(
        lambda line: '"uplinks":2' in line, "the second uplink", 10, after=seen
    )
    with town.vpn.serving(f"tcp/{INTERNET}/8080"):  # only at this end of the way
        assert out_of_reach(town.sandbox, [f"tcp/{INTERNET}/8080"]) == set()
    assert reached(town.sandbox.probe(everywhere(VPN_PEER, "10.8.0.1"))) == set()


def test_forged_icmp_does_not_lower_the_path_mtu_of_the_host(town, services, make_firewall):
    """`Fragmentation needed` for a connection of the host's own, sent by a sandbox."""
    script = (
        "import socket, sys\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "s.bind(('192.168.77.2', 5555))\n"
        "s.connect((sys.argv[1], 80))\n"
        "s.send(b'hello')\n"
        "s.recv(64)\n"
        "print('connected', flush=True)\n"
        "sys.stdin.readline()\n"
        "print('mtu', s.getsockopt(socket.IPPROTO_IP, 14), flush=True)\n"  # IP_MTU
    )

    def mtu_after_forgery(destination: str) -> str:
        quoted = forged_datagram("192.168.77.2", destination, b"hello", source_port=5555)
        body = struct.pack("!BBHHH", 3, 4, 0, 0, 1000) + quoted + b"\0" * (len(quoted) % 2)
        message = body[:2] + struct.pack("!H", checksum(body)) + body[4:]
        forge = (
            "import socket\n"
            "s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)\n"
            f"s.sendto(bytes.fromhex('{message.hex()}'), ('192.168.77.2', 0))\n"
        )
        with town.host.running("/usr/bin/python3", "-c", script, destination) as connection:
            connection.wait_for_line("connected".__eq__, "the connection", 10)
            town.sandbox.run("/usr/bin/python3", "-c", forge)
            # What is sent later arrives later, and on the way from the sandbox nothing is queued.
            town.sandbox.probe([f"udp/{RESOLVER}/53"])
            connection.write_line("")
            return connection.wait_for_line(lambda line: line.startswith("mtu"), "the MTU", 10)

    assert mtu_after_forgery(INTERNET) == "mtu 1000", "the forgery has no effect anyhow"
    town.host.run("ip", "route", "flush", "cache")  # what it has learned
    load(make_firewall, town)
    assert mtu_after_forgery(INTERNET) == "mtu 1500"
