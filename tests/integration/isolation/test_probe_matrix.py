# SPDX-License-Identifier: Apache-2.0
"""What a sandbox reaches, and what reaches it. Every forbidden place is first reached without the rules, as a
control."""

import pytest
from network import PYTHON, as_user
from network import PYTHON
from other_firewalls import FIREWALLD_LIKE, OTHER_FIREWALLS
from places import ALLOWED, FORBIDDEN, INTERNET, PORT, everywhere, load, out_of_reach, outcomes, reached
from support.probed_host import LONGEST_REFUSAL, quickest_refusals


@pytest.fixture
def forbidden(town, services):
    """With the link-local address of this run."""
    return FORBIDDEN + everywhere(f"{town.link_local(town.bridge)}%eth0")


def test_the_matrix(town, forbidden, make_firewall, say):
    assert out_of_reach(town.sandbox, forbidden + ALLOWED) == set(), "even without the rules"
    assert out_of_reach(town.companion, FORBIDDEN) == set(), "even without the rules"

    load(make_firewall, town)
    assert reached(town.sandbox.probe(forbidden)) == set()
    assert out_of_reach(town.sandbox, ALLOWED) == set()
    # The companion is isolated like the sandbox.
    assert reached(town.companion.probe(FORBIDDEN)) == set()

    # Refusals are immediate. Only IPv6, which no honest sandbox uses, and other bridges are silent.
    answered = quickest_refusals(town.sandbox.probe, [
        place
        for place in forbidden
        if place.startswith("tcp/") and ":" not in place and "/10.213.0.18/" not in place
    ])
    slow = {place: result for place, result in answered.items()
            if result[0] != "refused" or result[1] > LONGEST_REFUSAL}
    assert slow == {}
    longest = max(took for _, took in answered.values())
    say(f"{len(forbidden)} forbidden places, 0 reached; {len(ALLOWED)} allowed, all reached; "
        f"the slowest refusal over TCP took {longest} ms")


@pytest.mark.parametrize("other", OTHER_FIREWALLS)
def test_the_matrix_beside_another_firewall(town, forbidden, make_firewall, other):
    """What it accepts is blocked all the same, and what works with it keeps working."""
    town.host.nft(OTHER_FIREWALLS[other])
    assert out_of_reach(town.sandbox, ALLOWED) == set(), "even without the rules"
    if OTHER_FIREWALLS[other] == FIREWALLD_LIKE:  # the other one blocks much of it itself
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
    assert out_of_reach(town.host, inwards) == set()
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
    """As a transparent proxy does: the sandbox has connected to the internet."""
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
    """Broadcast and multicast stay on the sandbox's network and work there, also with bridge-nf."""
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


# Not prober.py, which another user may not be able to read. Prints an outcome per place.
ASK_AS_USER = """
import socket, sys
for place in sys.argv[1:]:
    kind, address, port = place.split("/")
    with socket.socket(type=socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM) as asker:
        asker.settimeout(5)
        try:
            asker.connect((address, int(port)))
            asker.send(b"hello")
            print("reached" if asker.recv(64) == b"hello" else "silent")
        except ConnectionRefusedError:
            print("refused")
        except OSError as error:
            print(type(error).__name__)
"""


def test_only_root_and_the_user_of_the_daemon_reach_into_a_sandbox(town, services, make_firewall):
    places = [f"{kind}/{a}/{PORT}" for a in ("10.213.0.2", "10.213.0.18") for kind in ("tcp", "udp")]

    def asked_by(*user: str) -> list[str]:
        return town.host.run(*user, PYTHON, "-c", ASK_AS_USER, *places).stdout.split()

    assert asked_by(*as_user(12345)) == ["reached"] * 4
    load(make_firewall, town)
    assert asked_by() == ["reached"] * 4
    of_another = asked_by(*as_user(12345))
    assert "reached" not in of_another
    assert of_another[0] == of_another[2] == "refused", "TCP at once"


@pytest.mark.parametrize("state", ["only the plain tables", "after the daemon's death"])
def test_the_plain_tables_alone_are_enough(town, forbidden, make_firewall, state):
    assert out_of_reach(town.sandbox, forbidden + ALLOWED) == set()
    firewall = load(make_firewall, town)
    firewall.process.kill()
    name = "agents_sandbox_0_0a0b0c0d_owned"
    if state == "only the plain tables":
        town.host.nft(f"delete table inet {name}\ndelete table arp {name}\n")
    assert reached(town.sandbox.probe(forbidden)) == set()
    assert out_of_reach(town.sandbox, ALLOWED) == set()
