# SPDX-License-Identifier: Apache-2.0
"""Tries to reach places, from the network namespace in which it runs.

prober.py once PLACE...     all of them at the same time; prints one JSON object: place to
                            [outcome, milliseconds], the outcome being `reached`, `refused` or `silent`
prober.py loop PLACE...     each of them every 10 ms until its input ends; says `ready` after the first
                            round, prints place to [tries, reached] at the end

A place is tcp/ADDRESS/PORT, udp/ADDRESS/PORT or icmp/ADDRESS. Reached means that an answer came back.
"""

import json
import os
import socket
import struct
import sys
import threading
import time

PATIENCE = 1.0


def checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def try_icmp(address: str, patience: float) -> bool:
    """An echo request with a raw socket, as a process with CAP_NET_RAW sends it."""
    is_v6 = ":" in address
    family, protocol = (socket.AF_INET6, socket.IPPROTO_ICMPV6) if is_v6 else (
        socket.AF_INET, socket.IPPROTO_ICMP)
    request, reply = (128, 129) if is_v6 else (8, 0)
    mark = os.urandom(8)
    with socket.socket(family, socket.SOCK_RAW, protocol) as raw:
        raw.settimeout(patience)
        head = struct.pack("!BBHHH", request, 0, 0, 7, 1)
        if not is_v6:
            head = struct.pack("!BBHHH", request, 0, checksum(head + mark), 7, 1)
        raw.sendto(head + mark, socket.getaddrinfo(address, 0, family)[0][4])
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            packet = raw.recv(4096)
            message = packet if is_v6 else packet[(packet[0] & 15) * 4 :]
            if message[0] == reply and message.endswith(mark):
                return True
    return False


def try_stream(kind: int, address: str, port: str, patience: float) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    mark = os.urandom(8)
    with socket.socket(family, kind) as opened:
        opened.settimeout(patience)
        opened.connect(socket.getaddrinfo(address, int(port), family)[0][4])
        opened.send(mark)
        return opened.recv(64) == mark


def attempt(place: str, patience: float = PATIENCE) -> tuple[str, float]:
    protocol, address, *port = place.split("/")
    began = time.monotonic()
    try:
        if protocol == "icmp":
            outcome = "reached" if try_icmp(address, patience) else "silent"
        else:
            kind = socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM
            outcome = "reached" if try_stream(kind, address, port[0], patience) else "refused"
    except TimeoutError:
        outcome = "silent"
    except OSError:
        outcome = "refused"
    return outcome, round((time.monotonic() - began) * 1000, 1)


def once(places: list[str]) -> None:
    results: dict[str, tuple[str, float]] = {}
    threads = [
        threading.Thread(target=lambda place=place: results.update({place: attempt(place)}))
        for place in places
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(results))


def loop(places: list[str]) -> None:
    """A new connection for every try: an old one would be judged by its first packet."""
    counts = {place: [0, 0] for place in places}
    over = threading.Event()
    first_round = threading.Barrier(len(places) + 1)

    def keep_trying(place: str) -> None:
        while not over.is_set():
            outcome, _ = attempt(place, patience=0.1)
            counts[place][0] += 1
            counts[place][1] += outcome == "reached"
            if counts[place][0] == 1:
                first_round.wait()
            over.wait(0.01)

    threads = [threading.Thread(target=keep_trying, args=(place,)) for place in places]
    for thread in threads:
        thread.start()
    first_round.wait()
    print("ready", flush=True)
    while sys.stdin.buffer.read(1):
        pass
    over.set()
    for thread in threads:
        thread.join()
    print(json.dumps(counts))


if __name__ == "__main__":
    {"once": once, "loop": loop}[sys.argv[1]](sys.argv[2:])
