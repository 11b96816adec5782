# SPDX-License-Identifier: Apache-2.0
"""What a sandbox on a real engine reaches, what a container beside it reaches, and who reaches
them: over TCP, UDP and ICMP and with frames made by hand, tried without a pause while the host
changes underneath: its firewall, its addresses, its engine and the daemon itself. In the end the
rules are taken away, and every place is reached: none was closed for another reason.

Each walk through the states writes its rows of docs/results/isolation.md to build/reports."""

import contextlib
import json
import subprocess
import time
from statistics import median

import pytest
from support.contract import REPOSITORY
from support.images import make_image
from support.probed_host import (
    BEHIND_VPN,
    DOCKER0,
    FORWARDED_PORT,
    INTERNET,
    LAN,
    LONGEST_REFUSAL,
    LOOPBACK_PORT,
    METADATA,
    NEXT_DOOR,
    NFTABLES_BACKEND,
    NO_RESOLVER,
    PORT,
    RESOLVER,
    ROUTER,
    UPLINK,
    VPN_ADDRESS,
    VPN_PEER,
    VPN_PORT,
    ProbedHost,
    Vantage,
    as_name,
    everywhere,
    quickest_refusals,
    services,
)
from support.process import LoggedProcess, base_environment
from support.sandboxes import bridge_of, connected, inspect, network, primary, started

NEIGHBOUR_PORT = 7004  # published by a container on the neighbour's network, on every address
COMPANION_PORT = 7005  # published by the companion on 127.0.0.1
ADDED = "192.168.77.2"  # an address that the host gets while it is tried
ON_LINK = "192.0.2.2/24"  # another one, with which NEXT_DOOR is no longer behind a router
FORGED = ("203.0.113.77", "192.168.77.9")
EVERYBODY = ("255.255.255.255", "224.0.0.1")
NO_PROXY = "--userland-proxy=false"

LONGEST_OPEN_NEXT_DOOR = 100  # milliseconds, unless the machine is too busy to list the rules in that time

GROUPS = (
    "addresses of the host",
    "published ports",
    "local networks, metadata, VPN",
    "other containers",
    "services on loopback",
    "IPv6",
    "ARP",
    "forged senders",
    "names and DNS",
    "inwards",
)


def every_way(*addresses):
    """Over TCP, UDP and ICMP, and with frames."""
    return [*everywhere(*addresses), *(f"udp-frame/{address}/{PORT}" for address in addresses)]


def address_of(engine, container):
    networks = inspect(engine, container)["NetworkSettings"]["Networks"]
    return next(iter(networks.values()))["IPAddress"]


class Matrix:
    """A host with sandboxes, other containers and all probed places; a row for each state."""

    def __init__(self, host, daemon, contract, stack):
        self.host, self.daemon, self.engine = host, daemon, host.engine
        self.rows = []
        image = make_image(self.engine.api, "matrix:1")
        with connected(daemon, contract) as sandboxes:
            for name in ("box-1", "box-2"):
                sandboxes.create_ready(name, image)
        self._run_beside(image, "companion", "--network", network("box-1"), "--dns", RESOLVER,
                         "--cap-add", "NET_RAW", "-p", f"127.0.0.1:{COMPANION_PORT}:{PORT}")
        self._run_beside(image, "neighbour", "--network", network("box-2"),
                         "-p", f"{NEIGHBOUR_PORT}:{PORT}")
        self._run_beside(image, "foreign")
        names = (primary("box-1"), "companion", "neighbour", "foreign")
        own, self.companion, self.neighbour, foreign = map(self._serve_in, names)
        host.open_barriers()

        gateway, other_gateway = (host.place(name)["Gateway"] for name in ("box-1", "box-2"))
        addresses = (gateway, other_gateway, DOCKER0, UPLINK, VPN_ADDRESS, ADDED)
        link_local = self._link_local_of_bridge()
        forbidden = {
            "addresses of the host": [
                *every_way(*addresses),
                *(f"udp-frame/{all_of_them}/{PORT}" for all_of_them in EVERYBODY),
            ],
            "published ports": [f"tcp/{address}/{NEIGHBOUR_PORT}" for address in addresses],
            "local networks, metadata, VPN": every_way(
                ROUTER, LAN, METADATA, VPN_PEER, BEHIND_VPN
            ),
            "other containers": every_way(self.neighbour, foreign),
            "services on loopback": [
                f"tcp/{gateway}/{FORWARDED_PORT}",
                f"tcp-frame/127.0.0.1/{LOOPBACK_PORT}",
                f"udp-frame/127.0.0.1/{LOOPBACK_PORT}",
            ],
            "IPv6": [
                f"icmp-frame/{link_local}",
                f"udp-frame/{link_local}/{PORT}",
                f"tcp-frame/{link_local}/{PORT}",
            ],
            "ARP": [f"arp/{address}" for address in (DOCKER0, UPLINK, VPN_ADDRESS, ADDED)],
            "forged senders": [
                f"forged/{sender}/{INTERNET}/{PORT}" for sender in (*FORGED, self.neighbour)
            ],
            "names and DNS": [
                *services(NO_RESOLVER, port=53),
                *services(RESOLVER),
                *(as_name(address) for address in (METADATA, LAN, gateway)),
            ],
        }
        inwards = {
            "inwards": [*every_way(own, self.companion), f"tcp-frame/127.0.0.1/{COMPANION_PORT}"]
        }
        self.primary = Vantage(host.network_namespace(primary("box-1")), gateway)
        self.beside = Vantage(host.network_namespace("companion"), gateway)
        self.outside = Vantage(host.outside.network_namespace, UPLINK)
        self.here = Vantage(self.engine.network_namespace)
        self.forbidden = (
            (self.primary, forbidden),
            (self.beside, forbidden),
            (self.outside, inwards),
        )
        works = [*everywhere(INTERNET), as_name(INTERNET), f"tcp/{RESOLVER}/53"]
        self.allowed = (
            (self.primary, [*works, *everywhere(self.companion)]),
            (self.beside, [*works, *everywhere(own)]),
            (self.here, everywhere(own, self.companion)),
        )
        self.published = f"tcp/127.0.0.1/{COMPANION_PORT}"
        self._loops = [
            stack.enter_context(vantage.probing(places_in(groups)))
            for vantage, groups in self.forbidden
        ]

    def _run_beside(self, image, name, *options):
        """A container that the daemon knows nothing of."""
        self.engine.docker("run", "-d", "--name", name, *options, image, "sleep", "1000000")

    def _serve_in(self, container):
        """On its own address alone, which is returned: calls to everybody are for the host."""
        address = address_of(self.engine, container)
        self.host.serve(self.host.network_namespace(container), *services(address))
        return address

    def _link_local_of_bridge(self):
        bridge = bridge_of(self.engine, "box-1")
        show = ["ip", "-j", "-6", "address", "show", "dev", bridge, "scope", "link"]
        return json.loads(self.engine.world.run(*show).stdout)[0]["addr_info"][0]["local"]

    @contextlib.contextmanager
    def state(self, name, is_published=True):
        """Nothing is reached on the way into that state and in it; and what must work does."""
        before = [loop.round() for loop in self._loops]
        yield
        after = [loop.round() for loop in self._loops]
        tries = dict.fromkeys(GROUPS, 0)
        for (_, groups), old, new in zip(self.forbidden, before, after, strict=True):
            reached = [place for place, (_, count, _) in new.items() if count]
            assert reached == [], name
            for group, places in groups.items():
                tries[group] += sum(new[place][0] - old[place][0] for place in places)
        assert self.host.overheard() == [], name
        with self.quiet():
            slowest = self._slowest_refusal(name)
            works = self._count_what_works(name, is_published)
        self.rows.append((name, *tries.values(), 0, works, slowest))

    @contextlib.contextmanager
    def quiet(self):
        """Nobody else tries anything: for what is measured."""
        with contextlib.ExitStack() as stack:
            for loop in self._loops:
                stack.enter_context(loop.pause())
            yield

    def _slowest_refusal(self, name):
        """Of TCP, in milliseconds. Traffic between sandboxes is dropped silently."""
        _, groups = self.forbidden[0]
        places = [
            place
            for place in places_in(groups)
            if place.startswith("tcp/") and f"/{self.neighbour}/" not in place
        ]
        results = quickest_refusals(self.primary.probe, places)
        slow = {place: result for place, result in results.items()
                if result[0] != "refused" or result[1] > LONGEST_REFUSAL}
        assert slow == {}, name
        return max(took for _, took in results.values())

    def _count_what_works(self, name, is_published):
        allowed = [*self.allowed, *([(self.here, [self.published])] if is_published else [])]
        for vantage, places in allowed:
            assert vantage.out_of_reach(places) == set(), f"{name}: cut off"
        return sum(len(places) for _, places in allowed)

    def put_back(self):
        """Returns when the daemon has undone what was done."""
        return self._answered_with("restored after a change by another process")

    @contextlib.contextmanager
    def _answered_with(self, message):
        seen = len(self.daemon.log_lines())
        yield
        self.daemon.process.wait_for_line(
            lambda line: message in line, f"'{message}'", 30, after=seen
        )

    def nft(self, *words):
        return self.engine.world.run("nft", *words).stdout

    def plain_table(self):
        tables = self.daemon.firewall_tables()
        return next(t for t in tables if t.startswith("inet") and not t.endswith("_owned")).split()

    def delete_a_rule(self):
        """That which closes the host's own addresses."""
        chain = (*self.plain_table(), "pre")
        shown = json.loads(self.nft("-j", "list", "chain", *chain))
        handles = [entry["rule"]["handle"] for entry in shown["nftables"] if "rule" in entry]
        self.nft("delete", "rule", *chain, "handle", str(handles[-1]))

    def restart_engine(self):
        """It puts its own rules back; containers live on."""
        self.engine.restart()
        self.host.open_barriers()

    def bridge_nf(self, value):
        """Whether frames within a bridge pass the packet filter too."""
        path = "/proc/sys/net/bridge/bridge-nf-call-iptables"
        self.engine.world.run("sh", "-euc", f"echo {value} > {path}")

    def add_address(self, address):
        self.engine.world.run("ip", "address", "add", f"{address}/24", "dev", "up0")

    def put_next_door_on_link(self):
        """How many milliseconds it stays open, and how many nft needs to list the tables next to that: the medians
        of three."""
        opened, listed = [], []
        for number in range(3):
            if number > 0:
                with self._answered_with("sandbox firewall follows the host's networks"):
                    self.engine.world.run("ip", "address", "del", ON_LINK, "dev", "up0")
            opened.append(self._milliseconds_open_next_door())
            began = time.monotonic()
            self.nft("list", "ruleset")
            listed.append((time.monotonic() - began) * 1000)
        return median(opened), median(listed)

    def _milliseconds_open_next_door(self):
        """From the moment that a public network is on-link until the last try that reached it."""
        place = f"tcp/{NEXT_DOOR}/{PORT}"
        # It waits for its command while the first tries are made.
        ip = LoggedProcess(
            "ip",
            self.engine.world.command(["ip", "-batch", "-"]),
            base_environment(),
            stdin=subprocess.PIPE,
        )
        with self.quiet(), self.primary.probing([place]) as loop:
            added = time.monotonic()
            ip.write_line(f"address add {ON_LINK} dev up0")
            counts, earlier = loop.round()[place], None
            assert counts[1] > 0, "it was the internet"
            while earlier is None or counts[1] != earlier[1]:
                counts, earlier = loop.round()[place], counts
                assert time.monotonic() - added < 5, "it stays open"
        ip.close_input()
        assert ip.wait() == 0, ip.tail()
        return max(0.0, round((counts[2] - added) * 1000, 1))

    def take_rules_away(self):
        self.daemon.kill()
        self.host.open_barriers()
        for table in self.daemon.firewall_tables():
            self.nft("delete", "table", *table.split())

    def assert_all_is_reached(self):
        """The control of every place."""
        next_door = f"tcp/{NEXT_DOOR}/{PORT}"
        for vantage, groups in self.forbidden:
            places = [place for place in places_in(groups) if not place.startswith("forged/")]
            assert vantage.out_of_reach(places) == set(), "even without the rules"
        assert self.primary.out_of_reach([next_door]) == set()
        for vantage, groups in self.forbidden[:2]:
            vantage.probe(groups["forged senders"])
        senders = [line.split()[2] for line in self.host.overheard()]
        assert sorted(senders) == sorted([*FORGED, self.neighbour] * 2)


def places_in(groups):
    return [place for places in groups.values() for place in places]


def walk(matrix):
    """Through all states; the milliseconds that an on-link network was open."""
    with matrix.state("as it starts"):
        pass
    for value in (0, 1):
        with matrix.state(f"bridge-nf {value}"):
            matrix.bridge_nf(value)
    with matrix.state("one rule deleted by hand"), matrix.put_back():
        matrix.delete_a_rule()
    # Published ports are not forwarded until the engine restarts.
    with matrix.state("tables flushed by another process", is_published=False):
        with matrix.put_back():
            matrix.nft("delete", "table", *matrix.plain_table())
        with matrix.put_back():
            matrix.nft("flush", "ruleset")
    with matrix.state("daemon stopped, tables flushed", is_published=False):
        matrix.daemon.process.freeze()
        matrix.nft("flush", "ruleset")
    with matrix.put_back():
        matrix.daemon.process.thaw()
    with matrix.state("dockerd restarted"):
        matrix.restart_engine()
    with matrix.state("address and on-link network added"):
        matrix.add_address(ADDED)
        opened, listed = matrix.put_next_door_on_link()
        assert opened <= max(LONGEST_OPEN_NEXT_DOOR, listed)
    with matrix.state("daemon dead, dockerd restarted"):
        matrix.daemon.kill()
        matrix.restart_engine()
    with matrix.state("daemon started again"):
        started(matrix.daemon)
    return f"{opened:.1f} ms, as nft listed the tables in {listed:.1f} ms"


def assert_cut_and_closed_by_the_next_start(matrix):
    """What a neighbour had opened before, and everything else."""
    with matrix.outside.holding(f"tcp/{matrix.companion}/{PORT}") as connection:
        matrix.daemon.start()
        matrix.daemon.wait_for_message("sandbox firewall loaded")
        connection.write_line("")
        connection.wait_for_line("silent".__eq__, "the end of the connection", timeout=10)
    for vantage, groups in matrix.forbidden:
        assert vantage.reached(places_in(groups)) == set()


def assert_a_vpn_that_takes_over_keeps_the_internet(matrix):
    """With two halves instead of a default route, as many do; its own network stays closed."""
    for half in ("0.0.0.0/1", "128.0.0.0/1"):
        matrix.engine.world.run("ip", "route", "add", half, "via", VPN_PEER)
    matrix.daemon.process.wait_for_line(
        lambda line: '"uplinks":2' in line, "the second uplink", timeout=10
    )
    assert matrix.primary.out_of_reach([f"tcp/{INTERNET}/{VPN_PORT}"]) == set()
    assert matrix.primary.reached(everywhere(VPN_PEER, VPN_ADDRESS)) == set()


def write_report(title, rows, say):
    directory = REPOSITORY / "build" / "reports"
    directory.mkdir(parents=True, exist_ok=True)
    lines = ["| " + " | ".join(map(str, (title, *row))) + " |\n" for row in rows]
    name = title.replace(",", "").replace(" ", "-")
    (directory / f"isolation-matrix-{name}.md").write_text("".join(lines))
    say(f"{title}: {sum(sum(row[1:-3]) for row in rows)} tries in {len(rows)} states, 0 reached; "
        f"slowest refusal {max(row[-1] for row in rows)} ms")


@pytest.fixture
def walk_through(make_engine, engine_name, make_daemon, test_user, contract, say):
    """walk_through("no userland proxy", "--userland-proxy=false"): on an engine of its own."""

    def make(title, *arguments):
        with contextlib.ExitStack() as stack:
            engine = make_engine(engine_name, live_restore=True, arguments=arguments)
            host = ProbedHost(engine, stack)
            config = f'[runtime]\nlog_level = "debug"\n[network]\ndns = ["{RESOLVER}"]\n'
            daemon = started(make_daemon(user=test_user, engine=engine, config=config))
            with contextlib.ExitStack() as loops:
                matrix = Matrix(host, daemon, contract, loops)
                window = walk(matrix)
            matrix.take_rules_away()
            matrix.assert_all_is_reached()
            assert_cut_and_closed_by_the_next_start(matrix)
            assert_a_vpn_that_takes_over_keeps_the_internet(matrix)
            write_report(f"{engine_name}, {title}", matrix.rows, say)
            say(f"{engine_name}, {title}: a network next door was open for {window}")

    return make


@pytest.mark.engines("20.10")
def test_nothing_is_reached_beside_dockers_userland_proxy(walk_through):
    walk_through("userland proxy")


@pytest.mark.long
@pytest.mark.engines("20.10", "26", "28", "29")
def test_nothing_is_reached_without_the_userland_proxy(walk_through):
    walk_through("no userland proxy", NO_PROXY)


@pytest.mark.long
@pytest.mark.engines("29")
def test_nothing_is_reached_beside_dockers_own_nftables(walk_through):
    walk_through("nftables, no userland proxy", NFTABLES_BACKEND, NO_PROXY)
