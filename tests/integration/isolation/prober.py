# SPDX-License-Identifier: Apache-2.0
"""Probes places from the network namespace in which it runs.

prober.py once PLACE...     all of them at the same time; prints one JSON object: place to
                            [outcome, milliseconds], the outcome being `reached`, `refused` or `silent`
prober.py loop PLACE...     each of them 10 ms after its last outcome, until the input ends; prints `ready`
                            after the first round. For every line of its input, and at its end, it
                            prints place to [attempts, reached, begin of the last attempt that
                            reached it]: for a line when every place was probed again since.
prober.py flood WORD PLACE... datagrams to each of them in turn, without a pause and without waiting for answers,
                            until the input ends; prints `ready` at first and the count at the end. A
                            receiver prints the word and its address: see echo_server.py
prober.py hold PLACE        one TCP connection; prints `answered` or `silent` for what it sends there at
                            first and for every line of its input

A place is tcp/ADDRESS/PORT, udp/ADDRESS/PORT, icmp/ADDRESS, name/NAME/PORT (over TCP, resolved by the
engine's resolver) or, after `--via NEXT_HOP`, a raw frame of frames.py. Reached means that an answer
came back.
"""

import contextlib
import json
import os
import socket
import struct
import sys
import threading
import time

sys.dont_write_bytecode = True  # runs as root in a user's clone
from frames import Frames, checksum, own_port  # noqa: E402

PATIENCE = 1.0
EMBEDDED_RESOLVER = ("127.0.0.11", 53)  # the engine's own, in every container

frames: Frames | None = None


def try_icmp(address: str, patience: float) -> bool:
    """An echo request with a raw socket, as a process with CAP_NET_RAW sends it."""
    is_v6 = ":" in address
    family, protocol = (socket.AF_INET6, socket.IPPROTO_ICMPV6) if is_v6 else (
        socket.AF_INET, socket.IPPROTO_ICMP)
    request, reply = (128, 129) if is_v6 else (8, 0)
    mark = os.urandom(8)
    number = own_port()
    with socket.socket(family, socket.SOCK_RAW, protocol) as raw:
        raw.settimeout(patience)
        head = struct.pack("!BBHHH", request, 0, 0, number, 1)
        if not is_v6:
            head = struct.pack("!BBHHH", request, 0, checksum(head + mark), number, 1)
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


def look_up(name: str, patience: float) -> str:
    labels = b"".join(bytes([len(label)]) + label for label in name.encode().split(b"."))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.settimeout(patience)
        asker.connect(EMBEDDED_RESOLVER)
        asker.send(os.urandom(2) + b"\1\0\0\1" + bytes(6) + labels + b"\0\0\1\0\1")
        answer = asker.recv(512)
    if answer[6:8] != b"\0\1":
        raise OSError(f"{EMBEDDED_RESOLVER[0]} has no address for {name}")
    return socket.inet_ntoa(answer[-4:])


def attempt(place: str, patience: float = PATIENCE) -> tuple[str, float]:
    protocol, address, *port = place.split("/")
    began = time.monotonic()
    try:
        if protocol == "icmp":
            outcome = "reached" if try_icmp(address, patience) else "silent"
        elif protocol in ("tcp", "udp"):
            kind = socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM
            outcome = "reached" if try_stream(kind, address, port[0], patience) else "refused"
        elif protocol == "name":
            found = look_up(address, patience)
            is_reached = try_stream(socket.SOCK_STREAM, found, port[0], patience)
            outcome = "reached" if is_reached else "refused"
        else:
            is_reached = frames.attempt(protocol, address, *port, patience=patience)
            outcome = "reached" if is_reached else "silent"
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
    """A new connection for every attempt: an old one is judged by its first packet."""
    counts = {place: [0, 0, 0.0] for place in places}
    over = threading.Event()
    tried = threading.Condition()

    def keep_trying(place: str) -> None:
        count = counts[place]
        while not over.is_set():
            began = time.monotonic()
            outcome, _ = attempt(place, patience=0.1)
            with tried:
                count[0] += 1
                if outcome == "reached":
                    count[1:] = count[1] + 1, began
                tried.notify_all()
            over.wait(0.01)

    def wait_for_tries(number: int) -> None:
        with tried:
            goals = {place: count[0] + number for place, count in counts.items()}
            tried.wait_for(lambda: all(counts[place][0] >= goals[place] for place in places))

    threads = [threading.Thread(target=keep_trying, args=(place,)) for place in places]
    for thread in threads:
        thread.start()
    wait_for_tries(1)
    print("ready", flush=True)
    for _ in sys.stdin:
        wait_for_tries(2)  # the first of them may have begun before
        print(json.dumps(counts), flush=True)
    over.set()
    for thread in threads:
        thread.join()
    print(json.dumps(counts))


def flood(arguments: list[str]) -> None:
    word, *places = arguments
    targets = [(address, int(port)) for _, address, port in (place.split("/") for place in places)]
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set())).start()
    print("ready", flush=True)
    sent = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        while not over.is_set():
            for address, port in targets:
                with contextlib.suppress(OSError):  # the previous one was refused
                    sender.sendto(f"say {word} {address}".encode(), (address, port))
                sent += 1
    print(sent)


def hold(places: list[str]) -> None:
    _, address, port = places[0].split("/")
    with socket.create_connection((address, int(port)), 5) as held:
        held.settimeout(2)

        def ask() -> None:
            try:
                held.send(b"hello")
                outcome = "answered" if held.recv(64) == b"hello" else "silent"
            except OSError:
                outcome = "silent"
            print(outcome, flush=True)

        ask()
        for _ in sys.stdin:
            ask()


def main() -> None:
    global frames
    command, *places = sys.argv[1:]
    if places[0] == "--via":
        frames = Frames(places[1])
        places = places[2:]
    {"once": once, "loop": loop, "flood": flood, "hold": hold}[command](places)


if __name__ == "__main__":
    main()
