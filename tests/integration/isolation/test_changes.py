# SPDX-License-Identifier: Apache-2.0
"""What a sandbox reaches during changes: of the rules, the daemon, the host's networks."""

import pytest
from network import HERE, PYTHON
from places import (
    INTERNET,
    LAN_NEIGHBOUR,
    ON_LINK_PUBLIC,
    PORT,
    VPN_PEER,
    everywhere,
    load,
    out_of_reach,
    reached,
)
from support.probed_host import Vantage

FOREIGN_CHANGES = {
    "everything flushed": "flush ruleset",
    "the table removed": "delete table inet agents_sandbox_0_0a0b0c0d",
    "a chain flushed": "flush chain inet agents_sandbox_0_0a0b0c0d from_sandbox",
}


@pytest.mark.parametrize("change", FOREIGN_CHANGES)
def test_nothing_is_open_while_the_rules_are_put_back(town, services, make_firewall, change, say):
    watched = ["tcp/10.213.0.1/80", "udp/10.213.0.1/80", f"tcp/{LAN_NEIGHBOUR}/80",
               f"udp/{LAN_NEIGHBOUR}/80", "tcp/10.213.0.18/80", f"tcp/{ON_LINK_PUBLIC}/80"]
    assert out_of_reach(town.sandbox, watched) == set()
    firewall = load(make_firewall, town)
    with Vantage(town.sandbox.network_namespace).probing(watched) as loop:
        for number in range(1, 6):
            town.host.nft(FOREIGN_CHANGES[change] + "\n")
            firewall.wait_for_repair(number)
            counts = loop.round()
    assert {place: open_ for place, (_, open_, _) in counts.items() if open_} == {}
    say(f"{change}, five times: {sum(tries for tries, *_ in counts.values())} tries, 0 reached")


CHANGES = 40  # more than a hundred pass if a daemon replaces both copies at once


@pytest.mark.parametrize(
    "change", ["killed", "killed on an older kernel", "stopped", "flushed", "networks"]
)
def test_no_datagram_slips_through(town, services, make_firewall, change, say):
    """While a daemon replaces another, while flushed rules are restored, and while networks of the host
    change: a moment is enough for one of thousands."""
    addresses = (LAN_NEIGHBOUR, ON_LINK_PUBLIC)  # blocked by elements of a set
    places = [f"udp/{address}/{PORT}" for address in addresses]
    # With an owned copy that disappears with its owner.
    failpoints = "isolation.persist=error" if "older kernel" in change else ""
    firewall = load(make_firewall, town, failpoints=failpoints)
    with town.sandbox.flooding("meanwhile", places) as sent:
        for number in range(CHANGES):
            seen = len(firewall.process.lines())
            if change == "flushed":
                town.host.nft("flush ruleset\n")
                firewall.wait_for_repair(number + 1)
            elif change == "networks":
                town.host.ip(f"address {'delete' if number % 2 else 'add'} 192.0.2.2/24 dev lan0")
                firewall.process.wait_for_line(
                    lambda line: "follows the host's" in line, "the sets", 10, after=seen
                )
            else:
                if change == "stopped":
                    firewall.process.close_input()
                    assert firewall.process.wait() == 0
                else:
                    firewall.process.kill()
                firewall = load(make_firewall, town, failpoints=failpoints)
    # Without the rules all of them arrive, and later than those before.
    firewall.process.kill()
    town.host.nft("flush ruleset\n")
    with town.sandbox.flooding("afterwards", places):
        for address in addresses:
            services.wait_for_line(f"say afterwards {address}".__eq__, "a datagram", 10)
    assert [line for line in services.lines() if line.startswith("say meanwhile")] == []
    say(f"{change}, {CHANGES} times: {sent[0]} datagrams, none arrived")


def test_a_public_network_that_comes_next_door_is_closed(town, services, make_firewall):
    """Until then it is part of the internet: only afterwards its hosts are neighbours."""
    firewall = load(make_firewall, town)
    town.router.ip("address add 192.0.2.9/24 dev eth0")
    with town.router.serving("tcp/192.0.2.9/80"):
        assert out_of_reach(town.sandbox, ["tcp/192.0.2.9/80"]) == set()
        seen = len(firewall.process.lines())
        town.host.ip("address add 192.0.2.2/24 dev lan0")
        firewall.process.wait_for_line(
            lambda line: "follows the host's networks" in line, "the new network", 10, after=seen
        )
        assert reached(town.sandbox.probe(["tcp/192.0.2.9/80"])) == set()


def test_what_was_opened_towards_a_sandbox_before_the_rules_is_cut(town, services, make_firewall):
    """A local neighbour's connection that is established already."""
    with town.router.running(PYTHON, str(HERE / "prober.py"), "hold", "tcp/10.213.0.2/80") as client:
        client.wait_for_line("answered".__eq__, "the first answer", 10)
        load(make_firewall, town)
        client.write_line("")
        client.wait_for_line("silent".__eq__, "the end of the connection", 10)


def test_a_vpn_that_takes_over_the_internet_keeps_it_open(town, services, make_firewall):
    """By two half-routes instead of a default route, as many do; its own network stays blocked."""
    town.vpn.ip(f"address add {INTERNET}/32 dev eth0")
    firewall = load(make_firewall, town)
    seen = len(firewall.process.lines())
    town.host.ip("route add 0.0.0.0/1 via 10.8.0.9 dev vpn0", "route add 128.0.0.0/1 via 10.8.0.9 dev vpn0")
    firewall.process.wait_for_line(
        lambda line: '"uplinks":2' in line, "the second uplink", 10, after=seen
    )
    with town.vpn.serving(f"tcp/{INTERNET}/8080"):  # only at this end
        assert out_of_reach(town.sandbox, [f"tcp/{INTERNET}/8080"]) == set()
    assert reached(town.sandbox.probe(everywhere(VPN_PEER, "10.8.0.1"))) == set()
