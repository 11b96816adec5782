# SPDX-License-Identifier: Apache-2.0
"""The rules as listed by `nft`, and that they stay in place despite other processes, other tables and changes of
the host's networks."""

import datetime
import json
import os
import shutil
import time
from pathlib import Path

import pytest
from network import HERE, PYTHON, RESOLVER, as_user
from other_firewalls import OTHER_FIREWALLS
from support.table_owner import owned_by_another_process

GOLDEN = Path(__file__).parent / "ruleset.golden"
NAME = "agents_sandbox_0_0a0b0c0d"
TABLES = [f"{family} {NAME}{copy}" for copy in ("", "_owned") for family in ("inet", "arp")]
OTHER_INSTANCE = "deadbeef-1111-4222-8333-444455556666"

# What iptables-nft, ufw and Docker leave in a host.
FOREIGN_TABLES = """
table ip filter {
    chain DOCKER-USER { counter return; }
    chain INPUT { type filter hook input priority filter; policy accept; counter jump ufw-input; }
    chain FORWARD { type filter hook forward priority filter; policy drop; jump DOCKER-USER; }
    chain ufw-input { ip saddr 192.168.77.9 counter drop; }
}
table ip nat {
    chain POSTROUTING {
        type nat hook postrouting priority srcnat; policy accept;
        ip saddr 10.213.0.0/16 masquerade
    }
}
table inet firewalld {
    set trusted { type ipv4_addr; flags interval; elements = { 192.168.0.0/16 }; }
    chain filter_INPUT { type filter hook input priority filter + 10; ip saddr @trusted accept; }
}
"""


def listing(node, tables=TABLES) -> str:
    return "".join(node.run("nft", "list", "table", *table.split()).stdout for table in tables)


def without_counts(text: str) -> str:
    """Removes counters, which the host's own IPv6 traffic might change."""
    words = text.split(" ")
    return " ".join(
        "N" if index and words[index - 1] in ("packets", "bytes") else word
        for index, word in enumerate(words)
    )


@pytest.fixture
def host(clean_host):
    return clean_host


@pytest.fixture
def firewall(make_firewall, host):
    made = make_firewall(host)
    made.wait_until_loaded()
    return made


def test_the_rules_are_those_of_the_golden_file(host, firewall):
    listed = listing(host)
    if os.environ.get("AGBOX_WRITE_GOLDEN"):
        GOLDEN.write_text(listed)
    assert listed == GOLDEN.read_text(), "AGBOX_WRITE_GOLDEN=1 writes it again: read the difference"
    assert firewall.ask("health") == "ok 0"


MUTATIONS = {
    "one rule deleted": "delete rule inet {name} forward handle {handle}",
    "one rule added": "insert rule inet {name} from_sandbox accept",
    "a chain flushed": "flush chain inet {name} from_sandbox",
    "the table flushed": "flush table inet {name}",
    "the table removed": "delete table inet {name}",
    "the table asleep": "add table inet {name} {{ flags dormant; }}",
    "the table of ARP removed": "delete table arp {name}",
    "an element removed": "delete element inet {name} blocked {{ 10.0.0.0/8 }}",
    "an element added": "add element inet {name} uplinks {{ docker0 }}",
    "a timeout added": "add ct timeout inet {name} mine {{ protocol udp; }}",
    "a policy changed": "add chain inet {name} input {{ policy drop; }}",
    "everything flushed": "flush ruleset",
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_changes_by_another_process_are_undone(host, firewall, mutation, record_property, say):
    before = listing(host)
    command = MUTATIONS[mutation].format(name=NAME, handle=handle_of_first_rule(host))
    began = time.time()
    host.nft(command + "\n")
    repair = firewall.wait_for_repair(1)
    assert without_counts(listing(host)) == without_counts(before)
    assert repair["program"] == "nft" and repair["pid"] > 0
    assert firewall.ask("health") == "ok 1"
    put_back = datetime.datetime.fromisoformat(repair["time"]).timestamp()
    milliseconds = round((put_back - began) * 1000, 1)
    record_property("milliseconds", milliseconds)
    say(f"{mutation}: put back {milliseconds} ms after the other nft was started")


def test_a_change_is_reported_even_if_networks_change_with_it(host, firewall):
    """The daemon gets the network event first, and the sets to update are gone."""
    firewall.process.freeze()
    host.ip("address add 198.51.100.7/25 dev lan0")
    host.nft(f"delete table inet {NAME}\n")
    firewall.process.thaw()
    repair = firewall.wait_for_repair(1)
    assert repair["difference"] == f"table inet {NAME} is missing"
    assert repair["program"] == "nft"


def handle_of_first_rule(host) -> int:
    shown = json.loads(host.run("nft", "-j", "list", "chain", "inet", NAME, "forward").stdout)
    return next(entry["rule"]["handle"] for entry in shown["nftables"] if "rule" in entry)


@pytest.mark.parametrize("command", ["delete table", "flush table"])
def test_no_other_process_can_change_the_owned_copy(host, firewall, command):
    tried = host.run("nft", *command.split(), "inet", NAME + "_owned", check=False)
    assert tried.returncode != 0 and "Operation not permitted" in tried.stderr
    host.nft("flush ruleset\n")
    firewall.wait_for_repair(1)
    assert "forward" in listing(host, [f"inet {NAME}_owned"])


def test_repeated_changes_are_undone_each_time(host, firewall):
    for number in range(1, 21):
        host.nft(f"delete table inet {NAME}\n")
        firewall.wait_for_repair(number)
    assert without_counts(listing(host)) == without_counts(GOLDEN.read_text())


def test_lost_events_cause_a_check(host, firewall):
    """So many changes while the daemon is stopped that its event queue overflows."""
    firewall.process.freeze()
    flood = "add table ip flood\nadd set ip flood numbers { type ipv4_addr; }\n"
    numbers = ", ".join(f"10.{n >> 8}.{n & 255}.1" for n in range(8000))
    host.nft(f"{flood}add element ip flood numbers {{ {numbers} }}\n")
    for _ in range(4):
        host.nft("flush set ip flood numbers\n"
                 f"add element ip flood numbers {{ {numbers} }}\n")
    host.nft(f"delete table inet {NAME}\n")
    lost = sum(int(line.split()[8]) for line in dropped_lines(host))
    firewall.process.thaw()
    repair = firewall.wait_for_repair(1)
    assert lost > 0, "the queue did not run over, so this test has shown nothing"
    assert repair["difference"] == f"table inet {NAME} is missing"


def dropped_lines(host) -> list[str]:
    return host.run("cat", "/proc/net/netlink").stdout.splitlines()[1:]


def test_the_sets_follow_the_host(host, firewall):
    def follow(*commands: str) -> None:
        seen = len(firewall.process.lines())
        host.ip(*commands)
        firewall.process.wait_for_line(
            lambda line: "follows the host's networks" in line, str(commands), 10, after=seen
        )

    def elements(name: str) -> set[str]:
        both = []
        for table in (NAME, NAME + "_owned"):
            shown = json.loads(host.run("nft", "-j", "list", "set", "inet", table, name).stdout)
            found = shown["nftables"][1]["set"].get("elem", [])
            both.append({
                f"{e['prefix']['addr']}/{e['prefix']['len']}" if isinstance(e, dict) else e
                for e in found
            })
        assert both[0] == both[1]
        return both[0]

    assert elements("uplinks") == {"lan0"} and elements("onlink") == {"203.0.113.0/24"}
    follow("address add 198.51.100.7/25 dev lan0")
    assert elements("onlink") == {"203.0.113.0/24", "198.51.100.0/25"}
    follow("address delete 198.51.100.7/25 dev lan0")
    assert elements("onlink") == {"203.0.113.0/24"}
    # A VPN that takes over the internet with two half-routes, and disappears with its link.
    follow("link add vpn0 type veth peer name vpn1", "link set vpn0 up", "link set vpn1 up",
           "route add 0.0.0.0/1 dev vpn0", "route add 128.0.0.0/1 dev vpn0")
    assert elements("uplinks") == {"lan0", "vpn0"}
    follow("link delete vpn0")
    assert elements("uplinks") == {"lan0"}
    assert firewall.ask("resolvers 9.9.9.9 192.168.77.1") == "ok"
    assert elements("resolvers") == {"9.9.9.9", "192.168.77.1"}
    assert firewall.ask("health") == "ok 0"


def test_bridges_of_sandboxes_change_nothing(host, firewall):
    before = listing(host)
    prefix = before.split('iifname "')[1].split("*")[0]
    host.ip(f"link add {prefix}123456 type bridge", f"link set {prefix}123456 up",
            f"address add 203.0.113.129/28 dev {prefix}123456")
    answer = firewall.ask(f"prove {prefix}123456")
    assert "an address of 203.0.113.128/28" in answer
    assert listing(host) == before


def test_what_is_judged_of_a_bridge(host, firewall):
    prefix = listing(host).split('iifname "')[1].split("*")[0]
    bridge = f"{prefix}123456"
    assert "not in the daemon's network namespace" in firewall.ask(f"prove {bridge}")
    host.ip(f"link add {bridge} type bridge", f"link set {bridge} up")
    assert "it has no address of this host" in firewall.ask(f"prove {bridge}")
    host.ip(f"address add 10.213.0.1/28 dev {bridge}")
    assert "could not be verified" in firewall.ask(f"prove {bridge}")  # without a guest inside
    assert "its name does not begin with" in firewall.ask("prove lan0")


@pytest.fixture
def prove(town, make_firewall):
    """prove(): verifies the isolation of the town's sandbox from inside."""

    def make(failpoints: str = ""):
        firewall = make_firewall(town.host, failpoints=failpoints)
        firewall.wait_until_loaded()
        where = f"{town.bridge} {town.sandbox.network_namespace}"
        return lambda how="": firewall.ask(f"prove {where} {how}")

    return make


def before_our_rules(verdict: str) -> str:
    return f"""
        table ip foreign {{
            chain pre {{
                type filter hook prerouting priority -400;
                iifname "agbx*" ip daddr 10.213.0.1 meta l4proto tcp {verdict}
            }}
        }}
        """


def test_isolation_is_verified_from_inside(town, prove):
    ask = prove()
    before = listing(town.host)
    assert [ask() for _ in range(3)] == ["ok"] * 3
    assert without_counts(listing(town.host)) == without_counts(before)


def test_the_probe_from_inside_detects_what_the_rules_do_not_show(town, prove):
    """The firewall removes all its rules, and its own check reports them as present."""
    assert "is not isolated: a connection from the sandbox to 10.213.0.1" in prove(
        "isolation.damage=error@2;isolation.blind=error@2"
    )()


def test_a_refusal_by_another_firewall_does_not_count(town, prove):
    ask = prove()
    town.host.nft(before_our_rules("reject with tcp reset"))
    assert "was refused, but not by the sandbox firewall" in ask()
    town.host.nft("delete table ip foreign")
    assert ask() == "ok"


def test_a_timeout_does_not_count(town, prove):
    ask = prove()
    town.host.nft(before_our_rules("drop"))
    assert "could not be verified" in ask()


def test_an_unreachable_listener_does_not_count(town, prove):
    ask = prove()
    town.host.nft(
        """
        table ip foreign {
            chain in {
                type filter hook input priority 0;
                iifname "lo" ip daddr 10.213.0.1 meta l4proto tcp reject with tcp reset
            }
        }
        """
    )
    assert "does not answer the daemon either" in ask()


def test_refused_changes_are_retried_and_block_verification(town, make_firewall):
    firewall = make_firewall(town.host)
    firewall.wait_until_loaded()
    before = without_counts(listing(town.host))
    prove = f"prove {town.bridge} {town.sandbox.network_namespace}"
    with owned_by_another_process(town.host.network_namespace, f"inet {NAME}"):
        firewall.process.wait_for_line(
            lambda line: "no sandbox is created or started" in line, "the refusal", timeout=10
        )
        other_resolver = "192.168.77.54"
        for command in (prove, "health", f"resolvers {other_resolver}"):
            answer = firewall.ask(command)
            assert answer.startswith(f"error sandbox firewall: delete table inet {NAME}")
            assert "another process owns the table: end it" in answer
    firewall.process.wait_for_line(
        lambda line: "in place again" in line, "the end of the refusal", timeout=20
    )
    after = without_counts(listing(town.host))
    assert after.replace(other_resolver, RESOLVER) == before != after
    assert firewall.ask(prove) == "ok"
    assert firewall.ask("health") == "ok 1"


def test_a_reached_listener_counts_even_without_a_report(town, prove):
    answer = prove("isolation.damage=error@2;isolation.blind=error@2")("silent")
    assert "is not isolated: a connection from the sandbox to 10.213.0.1" in answer


def test_connections_of_other_users_of_the_host_do_not_count(town, prove):
    """Any local user finds the listener in /proc/net/tcp and can connect to it."""
    town.host.sysctl(core__somaxconn="16")  # so that they also fill its queue
    ask = prove()
    assert [ask("visited") for _ in range(3)] == ["ok"] * 3


def test_a_reached_listener_counts_among_connections_of_other_users(town, prove):
    answer = prove("isolation.damage=error@2;isolation.blind=error@2")("visited")
    assert "is not isolated: a connection from the sandbox to 10.213.0.1" in answer


def test_without_a_report_the_outcome_is_unknown(town, prove):
    assert prove()("silent") == "error nobody tells"


@pytest.mark.parametrize("other", OTHER_FIREWALLS)
def test_isolation_is_verified_next_to_another_firewall(town, prove, other):
    town.host.nft(OTHER_FIREWALLS[other])
    assert prove()() == "ok"


def test_beside_the_tables_of_others(host, make_firewall):
    host.nft(FOREIGN_TABLES)
    foreign = ["ip filter", "ip nat", "inet firewalld"]
    before = listing(host, foreign)
    firewall = make_firewall(host)
    firewall.wait_until_loaded()
    assert listing(host) == GOLDEN.read_text()
    host.nft("insert rule ip filter DOCKER-USER counter\ndelete rule ip filter DOCKER-USER handle "
             f"{first_docker_handle(host)}\n")
    host.nft(f"delete table inet {NAME}\n")
    firewall.wait_for_repair(1)
    assert len(listing(host, foreign).splitlines()) == len(before.splitlines())
    assert firewall.ask("remove") == "ok"
    assert firewall.process.wait() == 0
    tables = host.run("nft", "list", "tables").stdout.split("\n")
    assert sorted(filter(None, tables)) == sorted(f"table {name}" for name in foreign)


def first_docker_handle(host) -> int:
    shown = json.loads(host.run("nft", "-j", "list", "chain", "ip", "filter", "DOCKER-USER").stdout)
    return next(entry["rule"]["handle"] for entry in shown["nftables"] if "rule" in entry)


def test_two_daemons_do_not_interfere(host, firewall, make_firewall):
    ours = listing(host)
    other = make_firewall(host, instance=OTHER_INSTANCE)
    prefix = other.wait_until_loaded()
    theirs_named = [table.replace("0a0b0c0d", "deadbeef") for table in TABLES]
    theirs = listing(host, theirs_named)
    assert f'"{prefix}*"' in theirs and f'"{prefix}*"' not in ours
    host.nft("flush ruleset\n")
    firewall.wait_for_repair(1)
    other.wait_for_repair(1)
    assert listing(host) == ours and listing(host, theirs_named) == theirs
    assert other.ask("remove") == "ok"
    assert firewall.ask("health") == "ok 1"
    assert listing(host) == ours


@pytest.mark.parametrize("state", ["both run", "ours is dead"])
def test_a_daemon_of_another_user_cannot_name_what_is_ours(
    host, firewall, make_firewall, directory, bin_dir, state
):
    """Every user can run the daemon, and can give it the instance ID of another user's."""
    prefix = firewall.wait_until_loaded()
    bridge = f"{prefix}123456"
    host.ip(f"link add {bridge} type bridge", f"link set {bridge} up")
    plain = [table for table in TABLES if "_owned" not in table]
    before = listing(host, plain)
    if state == "ours is dead":
        firewall.process.kill()
    directory.chmod(0o755)
    program = Path(shutil.copy(bin_dir.parent / "tests" / "firewall_daemon", directory))
    program.chmod(0o755)
    other = make_firewall(host, program=program, prefix=as_user(12345, "net_admin"))
    prefix_of_other = other.wait_until_loaded()
    assert not bridge.startswith(prefix_of_other)
    assert "its name does not begin with" in other.ask(f"prove {bridge}")
    assert listing(host, plain) == before
    assert other.ask("remove") == "ok"
    assert listing(host, plain) == before
    host.ip(f"link delete {bridge}")


def test_the_rules_outlive_the_daemon_and_the_next_one_takes_them_over(host, firewall, make_firewall):
    firewall.process.kill()
    plain = [table for table in TABLES if "_owned" not in table]
    assert listing(host, plain) == "".join(golden_tables()[:2])
    following = make_firewall(host)
    following.wait_until_loaded()
    assert listing(host) == GOLDEN.read_text()
    assert following.ask("health") == "ok 0"


def test_it_is_loaded_while_others_change_theirs(host, make_firewall):
    """Dumps of many tables come in parts, and any change in between interrupts them."""
    host.nft("".join(f"table ip crowd{number} {{}}\n" for number in range(2000)))
    with host.running(PYTHON, str(HERE / "table_churn.py")) as other:
        other.wait_for_line("ready".__eq__, "the other process", timeout=20)
        for _ in range(20):
            firewall = make_firewall(host)
            firewall.wait_until_loaded()
            firewall.process.kill()


def test_a_kernel_that_does_not_keep_the_owned_copy(host, make_firewall):
    """Before 6.9 it disappears with its owner; the plain one stays."""
    firewall = make_firewall(host, failpoints="isolation.persist=error")
    firewall.wait_until_loaded()
    assert listing(host) == GOLDEN.read_text()  # which has no such flag either
    assert firewall.ask("health") == "ok 0"
    host.nft("flush ruleset\n")
    firewall.wait_for_repair(1)
    assert listing(host) == GOLDEN.read_text()
    firewall.process.kill()
    plain = [table for table in TABLES if "_owned" not in table]
    assert listing(host, plain) == "".join(golden_tables()[:2])
    tables = host.run("nft", "list", "tables").stdout.splitlines()
    assert sorted(tables) == sorted(f"table {table}" for table in plain)


def test_a_kernel_without_timeouts_for_connections(host, make_firewall):
    firewall = make_firewall(host, failpoints="isolation.timeouts=error")
    firewall.wait_until_loaded()
    assert "ct timeout" not in listing(host)
    assert "limit rate over" in listing(host)
    assert firewall.ask("health") == "ok 0"
    host.nft("flush ruleset\n")
    firewall.wait_for_repair(1)
    assert "limit rate over" in listing(host)


def test_the_rules_stay_where_a_bridge_is_left_that_needs_them(host, firewall, make_firewall):
    """For example of a container that is missing in the store."""
    bridge = firewall.wait_until_loaded() + "123456"
    host.ip(f"link add {bridge} type bridge", f"link set {bridge} up")
    assert firewall.ask("remove") == "ok"
    assert firewall.process.wait() == 0
    plain = [table for table in TABLES if "_owned" not in table]
    assert listing(host, plain) == "".join(golden_tables()[:2])
    host.ip(f"link delete {bridge}")
    following = make_firewall(host)
    following.wait_until_loaded()
    assert following.ask("remove") == "ok"
    assert following.process.wait() == 0
    assert host.run("nft", "list", "tables").stdout == ""


def test_a_daemon_that_dies_before_it_repairs_leaves_it_to_the_next(host, make_firewall):
    firewall = make_firewall(host, failpoints="isolation.before_repair=kill")
    firewall.wait_until_loaded()
    host.nft(f"delete table inet {NAME}\n")
    assert firewall.process.wait() == -9
    following = make_firewall(host)
    following.wait_until_loaded()
    assert listing(host) == GOLDEN.read_text()


def golden_tables() -> list[str]:
    """The tables of the golden file, in the order of TABLES."""
    parts = GOLDEN.read_text().split("\ntable ")
    return [("table " if index else "") + part + ("\n" if index < len(parts) - 1 else "")
            for index, part in enumerate(parts)]


def test_without_the_capability_it_says_what_is_missing(host, make_firewall):
    dropped = ("setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin")
    firewall = make_firewall(host, prefix=dropped)
    assert firewall.process.wait() == 1
    assert firewall.process.lines()[-1].endswith(
        "Operation not permitted; the daemon needs CAP_NET_ADMIN: "
        "sudo setcap cap_net_admin+ep $(which agboxd)"
    )
    assert host.run("nft", "list", "tables").stdout == ""


def test_a_table_of_the_same_name_that_another_process_owns(host, firewall, make_firewall):
    second = make_firewall(host)
    assert second.process.wait() == 1
    assert "another process owns the table" in second.process.lines()[-1]
    assert firewall.ask("health") == "ok 0"
    assert RESOLVER in listing(host)
