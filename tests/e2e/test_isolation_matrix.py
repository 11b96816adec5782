# SPDX-License-Identifier: Apache-2.0
"""What a sandbox on a real engine reaches, over TCP, UDP and ICMP and with raw sockets, while it is
tried without a pause and the host changes underneath: its firewall, its addresses, its engine and the
daemon itself. In the end the rules are taken away, and every place is reached: none was closed
for another reason."""

import contextlib

import pytest
from support.images import make_image
from support.probed_host import (
    DOCKER0,
    FORWARDED_PORT,
    INTERNET,
    METADATA,
    PORT,
    ROUTER,
    UPLINK,
    ProbedHost,
    probe,
    probing,
)
from support.sandboxes import CONFIG, connected, network, primary, started

PUBLISHED_PORT = 7004  # of a container that is none of ours, on every address of the host
ADDED = "192.168.77.2"  # an address that the host gets while it is tried

STATES = {
    "proxy": {},
    "no-proxy": {"arguments": ("--userland-proxy=false",)},
}


def everywhere(*addresses):
    return [
        place
        for address in addresses
        for place in (f"tcp/{address}/{PORT}", f"udp/{address}/{PORT}", f"icmp/{address}")
    ]


@pytest.fixture(params=["proxy", pytest.param("no-proxy", marks=pytest.mark.long)])
def host(make_engine, engine_name, request):
    with contextlib.ExitStack() as stack:
        engine = make_engine(engine_name, live_restore=True, **STATES[request.param])
        yield ProbedHost(engine, stack)


def run_beside(engine, image, name, *options):
    """A container that the daemon knows nothing of; it answers on PORT, and ends with its engine."""
    serve = f"nc -ll -p {PORT} -e cat"
    engine.docker("run", "-d", "--name", name, *options, image, "sh", "-c", serve)


def bridge_nf(engine, value):
    path = "/proc/sys/net/bridge/bridge-nf-call-iptables"
    engine.world.run("sh", "-c", f"test ! -e {path} || echo {value} > {path}")


def test_nothing_is_reached_whatever_becomes_of_the_host(host, make_daemon, test_user, contract, say):
    engine = host.engine
    image = make_image(engine.api, "matrix:1")
    daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
    run_beside(engine, image, "foreign", "-p", f"{PUBLISHED_PORT}:{PORT}")
    with connected(daemon, contract) as sandboxes:
        for name in ("box-1", "box-2"):
            sandboxes.create_ready(name, image)
    # A second container on the same network is held like the first, and the first may speak to it.
    run_beside(engine, image, "companion", "--network", network("box-1"))
    run_beside(engine, image, "neighbour", "--network", network("box-2"))
    places_of = {
        name: inspect_address(engine, name, net)
        for name, net in (("companion", network("box-1")), ("neighbour", network("box-2")))
    }
    own, other = host.place("box-1"), host.place("box-2")
    forbidden = [
        *everywhere(own["Gateway"], other["Gateway"], DOCKER0, UPLINK, ADDED),
        *everywhere(ROUTER, METADATA),
        f"tcp/{own['Gateway']}/{FORWARDED_PORT}",
        f"tcp/{UPLINK}/{PUBLISHED_PORT}",
        f"tcp/{own['Gateway']}/{PUBLISHED_PORT}",
        f"tcp/{places_of['neighbour']}/{PORT}",
        f"icmp/{other['IPAddress']}",
    ]
    allowed = [*everywhere(INTERNET), f"tcp/{places_of['companion']}/{PORT}"]
    inside = host.network_namespace(primary("box-1"))
    beside = host.network_namespace("companion")
    assert probe(inside, forbidden + allowed) == set(allowed)
    assert probe(beside, forbidden) == set()

    with probing(inside, forbidden) as tries:
        plain = next(t for t in daemon.firewall_tables() if not t.endswith("_owned"))
        engine.world.run("nft", "delete", "table", *plain.split())
        daemon.wait_for_message("the firewall of the sandboxes was changed and is put back")
        engine.world.run("nft", "flush", "chain", *plain.split(), "to_host")
        bridge_nf(engine, 0)
        engine.world.run("ip", "address", "add", f"{ADDED}/24", "dev", "up0")
        engine.world.run("nft", "flush", "ruleset")
        engine.restart()  # it puts its own rules back; containers live on
        host.open_barriers()
        bridge_nf(engine, 1)
        daemon.kill()
        engine.restart()
        host.open_barriers()
    reached = {place: count for place, (_, count) in tries.items() if count}
    assert reached == {}
    assert min(count for count, _ in tries.values()) >= 10, tries
    say(f"{len(forbidden)} places, {sum(count for count, _ in tries.values())} tries, 0 reached")

    assert probe(inside, forbidden + allowed) == set(allowed)
    daemon.start()
    daemon.wait_for_message("the firewall of the sandboxes is loaded")
    assert probe(inside, forbidden + allowed) == set(allowed)
    assert probe(beside, forbidden) == set()
    daemon.kill()
    host.open_barriers()
    for table in daemon.firewall_tables():
        engine.world.run("nft", "delete", "table", *table.split())
    assert probe(inside, forbidden + allowed) == set(forbidden + allowed)


def inspect_address(engine, container, network_name):
    found = engine.docker(
        "inspect",
        "--format",
        f'{{{{(index .NetworkSettings.Networks "{network_name}").IPAddress}}}}',
        container,
    )
    return found.stdout.strip()
