# SPDX-License-Identifier: Apache-2.0
"""Raw packets, as sent by a process with CAP_NET_RAW."""

import socket
import struct

from frames import checksum
from network import RESOLVER
from places import INTERNET, PORT, load


def test_forged_senders_do_not_leave_the_bridge(town, services, make_firewall):
    """A raw datagram with a forged source address."""
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

    # The router must accept it, otherwise the control shows nothing.
    town.router.sysctl(ipv4__conf__all__rp_filter="0", ipv4__conf__eth0__rp_filter="0")
    town.host.sysctl(ipv4__conf__all__rp_filter="0", **{f"ipv4__conf__{town.bridge}__rp_filter": "0"})
    send_forged("198.51.100.99", "before")
    services.wait_for_line("say before".__eq__, "the forged datagram without the rules", 10)
    load(make_firewall, town)
    send_forged("198.51.100.99", "after")
    # Packets arrive in order: once this one is there, the forged one would be.
    say_honestly("honest")
    services.wait_for_line("say honest".__eq__, "the honest datagram", 10)
    assert "say after" not in services.lines()


def forged_datagram(source: str, destination: str, data: bytes, source_port: int = 7777) -> bytes:
    datagram = struct.pack("!HHHH", source_port, PORT, 8 + len(data), 0) + data
    return struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 20 + len(datagram), 1, 0, 64, socket.IPPROTO_UDP, 0,
        socket.inet_aton(source), socket.inet_aton(destination),
    ) + datagram


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
            # Packets arrive in order, and nothing is queued on the way from the sandbox.
            town.sandbox.probe([f"udp/{RESOLVER}/53"])
            connection.write_line("")
            return connection.wait_for_line(lambda line: line.startswith("mtu"), "the MTU", 10)

    assert mtu_after_forgery(INTERNET) == "mtu 1000", "the forgery has no effect anyhow"
    town.host.run("ip", "route", "flush", "cache")  # the learned path MTU
    load(make_firewall, town)
    assert mtu_after_forgery(INTERNET) == "mtu 1500"
