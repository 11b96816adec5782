# SPDX-License-Identifier: Apache-2.0
"""Raw frames, as a process with CAP_NET_RAW can send: without the routes, addresses and checks of the
sender's kernel. Each goes to the next hop, whatever its destination."""

import contextlib
import fcntl
import os
import random
import socket
import struct
import threading

EVERY_PROTOCOL = 3  # ETH_P_ALL
RECEIVE_BUFFER = 33  # SO_RCVBUFFORCE
IGNORE_OUTGOING = 23  # PACKET_IGNORE_OUTGOING
INTERFACE_ADDRESS = 0x8915  # SIOCGIFADDR
QUEUE = 4 << 20

IPV4, ARP, IPV6 = b"\x08\x00", b"\x08\x06", b"\x86\xdd"
CHECKSUM_AT = {socket.IPPROTO_UDP: 6, socket.IPPROTO_TCP: 16}  # in ICMP of both families at 2
NEIGHBOUR_SOLICITATION = 135
ECHO_REPLIES = {(socket.IPPROTO_ICMP, 0), (socket.IPPROTO_ICMPV6, 129)}
SHORTEST_ANSWER = 16  # a header of 8 bytes and a mark of 8
SYN, SYN_AND_ACK = 0x02, 0x12


def checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def packed(address: str) -> bytes:
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


def packet(protocol: int, source: bytes, destination: bytes, segment: bytes) -> bytes:
    """Fills in the checksum of the segment, which has an even length."""
    # The words of both families' pseudo headers, without zeros and order.
    covered = source + destination + struct.pack("!II", len(segment), protocol)
    value = checksum(segment if protocol == socket.IPPROTO_ICMP else covered + segment)
    at = CHECKSUM_AT.get(protocol, 2)
    segment = segment[:at] + struct.pack("!H", value) + segment[at + 2 :]
    if len(source) == 16:
        head = struct.pack("!IHBB", 6 << 28, len(segment), protocol, 255)
        return head + source + destination + segment
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(segment), 1, 0, 64, protocol, 0)
    head += source + destination
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + segment


def own_port() -> int:
    """Or an echo ID; unique for every attempt."""
    return random.randrange(1024, 65536)


def datagram(port: int, data: bytes) -> bytes:
    return struct.pack("!HHHH", own_port(), port, 8 + len(data), 0) + data


def answer_in(frame: bytes) -> bytes | None:
    """The mark of the request that it answers. A refusal quotes that mark too, but is no answer."""
    if frame[12:14] == ARP:
        return b"arp" + frame[28:32] if frame[20:22] == b"\0\2" else None
    if frame[12:14] == IPV4:
        protocol, segment = frame[23], frame[14 + (frame[14] & 15) * 4 :]
    elif frame[12:14] == IPV6:
        protocol, segment = frame[20], frame[54:]
    else:
        return None
    if len(segment) < SHORTEST_ANSWER:
        return None
    if protocol == socket.IPPROTO_TCP:
        return b"tcp" + segment[8:12] if segment[13] & SYN_AND_ACK == SYN_AND_ACK else None
    is_answer = protocol == socket.IPPROTO_UDP or (protocol, segment[0]) in ECHO_REPLIES
    return segment[8:16] if is_answer else None


class Frames:
    """On the interface that leads to the next hop."""

    def __init__(self, next_hop: str):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
            way.connect((next_hop, 9))
            self._address = packed(way.getsockname()[0])
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self._socket.setsockopt(socket.SOL_SOCKET, RECEIVE_BUFFER, QUEUE)
        self._socket.setsockopt(263, IGNORE_OUTGOING, 1)  # SOL_PACKET
        self._socket.bind((interface_with(self._address), EVERY_PROTOCOL))
        self._hardware = self._socket.getsockname()[4]
        self._address6 = b"\xfe\x80" + bytes(6) + self._hardware[:3] + b"\xff\xfe" + self._hardware[3:]
        self._awaited: dict[bytes, threading.Event] = {}
        self._hardware_of: dict[bytes, bytes] = {}
        threading.Thread(target=self._listen, daemon=True).start()
        self._next_hop = b""
        if not any(self._ask_for(packed(next_hop), 1.0) for _ in range(5)):
            raise LookupError(f"{next_hop} does not answer ARP, so no frame can be sent there")
        self._next_hop = self._hardware_of[packed(next_hop)]

    def attempt(self, kind: str, *place: str, patience: float) -> bool:
        """Whether arp/ADDRESS, icmp-frame/ADDRESS, udp-frame/ADDRESS/PORT or tcp-frame/ADDRESS/PORT was
        answered. forged/SENDER/ADDRESS/PORT cannot be answered."""
        if kind == "arp":
            return self._ask_for(packed(place[0]), patience)
        if kind == "forged":
            data = f"say forged {place[0]} ".encode()
            segment = datagram(int(place[2]), data + b" " * (len(data) % 2))
            self._send(packet(socket.IPPROTO_UDP, packed(place[0]), packed(place[1]), segment))
            return False
        destination = packed(place[0])
        is_v6 = len(destination) == 16
        mark = os.urandom(8)
        if kind == "icmp-frame":
            protocol = socket.IPPROTO_ICMPV6 if is_v6 else socket.IPPROTO_ICMP
            segment = struct.pack("!BBHHH", 128 if is_v6 else 8, 0, 0, own_port(), 1) + mark
        elif kind == "udp-frame":
            protocol, segment = socket.IPPROTO_UDP, datagram(int(place[1]), mark)
        else:
            protocol, number = socket.IPPROTO_TCP, struct.unpack("!I", mark[:4])[0]
            segment = struct.pack("!HHII", own_port(), int(place[1]), number, 0)
            segment += struct.pack("!BBHHH", 5 << 4, SYN, 64240, 0, 0)
            mark = b"tcp" + struct.pack("!I", (number + 1) & 0xFFFFFFFF)
        source = self._address6 if is_v6 else self._address
        with self._awaiting(mark) as came:
            if is_v6:  # otherwise the peer would have to resolve our address
                self._introduce(destination)
            self._send(packet(protocol, source, destination, segment))
            return came.wait(patience)

    def _introduce(self, destination: bytes) -> None:
        option = b"\1\1" + self._hardware
        solicitation = struct.pack("!BBHI", NEIGHBOUR_SOLICITATION, 0, 0, 0) + destination + option
        self._send(packet(socket.IPPROTO_ICMPV6, self._address6, destination, solicitation))

    def _ask_for(self, address: bytes, patience: float) -> bool:
        question = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1)
        question += self._hardware + self._address + bytes(6) + address
        with self._awaiting(b"arp" + address) as came:
            self._socket.send(b"\xff" * 6 + self._hardware + ARP + question)
            return came.wait(patience)

    def _send(self, content: bytes) -> None:
        kind = IPV6 if content[0] >> 4 == 6 else IPV4
        self._socket.send(self._next_hop + self._hardware + kind + content)

    @contextlib.contextmanager
    def _awaiting(self, answer: bytes):
        came = self._awaited[answer] = threading.Event()
        try:
            yield came
        finally:
            del self._awaited[answer]

    def _listen(self) -> None:
        while True:
            frame = self._socket.recv(65536)
            answer = answer_in(frame)
            if answer and answer.startswith(b"arp"):
                self._hardware_of[answer[3:]] = frame[22:28]
            if came := self._awaited.get(answer):
                came.set()


def interface_with(address: bytes) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # it has no address
                asked = struct.pack("16s24x", name.encode())
                if fcntl.ioctl(asker, INTERFACE_ADDRESS, asked)[20:24] == address:
                    return name
    raise LookupError(f"no interface has {socket.inet_ntoa(address)}")
