# SPDX-License-Identifier: Apache-2.0
"""How much of the host's connection table, which everything on it shares, one sandbox can take."""

import time

from network import PYTHON, Node
from places import INTERNET, PORT, load
from support.sandboxes import wait_until

# Those of the rules.
BUDGET = 8192
BURST = 4096
PER_SECOND = 200

# Sends a datagram from each of these ports to a place, each a separate connection; prints how many are
# answered in time.
ASK_FROM_PORTS = """
import socket, sys
first, count, patience, address, port = sys.argv[1:]
answered = 0
for source in range(int(first), int(first) + int(count)):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.bind(("", source))
        asker.settimeout(float(patience))
        asker.connect((address, int(port)))
        try:
            asker.send(b"hello")
            answered += asker.recv(64) == b"hello"
        except OSError:
            pass
print(answered)
"""

# Begins connections without waiting for any, and holds them until the input ends.
BEGIN_MANY = """
import resource, socket, sys
address, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, count + 100))
held = [socket.socket() for _ in range(count)]
for one in held:
    one.setblocking(False)
    one.connect_ex((address, port))
print("begun", flush=True)
sys.stdin.read()
"""

# Opens connections and closes each at once; prints how many, and the seconds it took.
OPEN_AND_CLOSE = """
import socket, sys, time
address, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
began = time.monotonic()
opened = 0
for _ in range(count):
    socket.create_connection((address, port), 20).close()
    opened += 1
print(opened, time.monotonic() - began)
"""


def answered(node: Node, first: int, count: int, patience: float = 20, place=(INTERNET, PORT)) -> int:
    arguments = (first, count, patience, *place)
    return int(node.run(PYTHON, "-c", ASK_FROM_PORTS, *map(str, arguments)).stdout)


def open_and_close(node: Node, count: int, place=(INTERNET, PORT)) -> float:
    """The seconds it took."""
    done = node.run(PYTHON, "-c", OPEN_AND_CLOSE, *map(str, (*place, count)))
    opened, seconds = done.stdout.split()
    assert int(opened) == count, "clients are slowed down, not failed"
    return float(seconds)


def tracked(node: Node) -> int:
    return int(node.run("cat", "/proc/sys/net/netfilter/nf_conntrack_count").stdout)


def keep_datagrams_tracked(node: Node) -> None:
    node.sysctl(
        netfilter__nf_conntrack_udp_timeout="600", netfilter__nf_conntrack_udp_timeout_stream="600"
    )


def test_a_sandbox_and_its_companions_share_a_budget_of_connections(town, services, make_firewall):
    keep_datagrams_tracked(town.host)
    load(make_firewall, town)
    assert answered(town.sandbox, 10000, BUDGET) == BUDGET
    assert answered(town.sandbox, 20000, 3, patience=0.5) == 0
    assert answered(town.companion, 20000, 3, patience=0.5) == 0
    assert answered(town.sandbox, 10000, 3) == 3, "those that are there go on"
    assert answered(town.neighbour, 20000, 3) == 3


def test_questions_to_a_resolver_on_the_host_are_within_the_budget(town, services, make_firewall):
    keep_datagrams_tracked(town.host)
    firewall = load(make_firewall, town)
    resolver = ("10.213.0.1", 53)
    with town.host.serving("udp/10.213.0.1/53"):
        assert firewall.ask("resolvers 10.213.0.1") == "ok"
        assert answered(town.sandbox, 10000, BUDGET, place=resolver) == BUDGET
        assert answered(town.sandbox, 20000, 3, patience=0.5, place=resolver) == 0
        assert answered(town.sandbox, 20010, 3, patience=0.5) == 0, "one budget for everything"
        assert answered(town.sandbox, 10000, 3, place=resolver) == 3
        assert tracked(town.host) < BUDGET + 100


def test_new_connections_have_a_rate(town, services, make_firewall):
    load(make_firewall, town)
    began = time.monotonic()
    arguments = map(str, (INTERNET, PORT, BUDGET - 1000))
    with town.sandbox.running(PYTHON, "-c", BEGIN_MANY, *arguments) as sandbox:
        sandbox.wait_for_line("begun".__eq__, "the connections", timeout=60)
        assert BURST <= tracked(town.host) <= BURST + PER_SECOND * (time.monotonic() - began) + 100
        assert open_and_close(town.neighbour, 100) < 20, "another bridge has its own rate"


def test_ended_connections_leave_the_table(town, services, make_firewall):
    """They do not count as open, and the kernel would track them for another two minutes."""
    load(make_firewall, town)
    open_and_close(town.sandbox, 1000)
    assert tracked(town.host) > 100
    wait_until(lambda: tracked(town.host) < 100, "the end of ended connections", timeout=60)
