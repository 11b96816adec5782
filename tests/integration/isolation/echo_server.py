# SPDX-License-Identifier: Apache-2.0
"""Answers on every given place: echo_server.py tcp/10.0.0.1/80 udp/fd00::1/53 ...

Prints `ready` when all of them listen. A datagram that begins with `say ` is printed on a line instead of
being answered, for packets that must not arrive at all. dns/10.0.0.1/53 is a resolver: the address of
169-254-169-254.test is 169.254.169.254, and so on; it prints a line for every query.
"""

import selectors
import socket
import sys

IP_PKTINFO = 8  # the module has no name for it


def open_place(place: str) -> socket.socket:
    protocol, address, port = place.split("/")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    kind = socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM
    opened = socket.socket(family, kind)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    if (family, kind) == (socket.AF_INET, socket.SOCK_DGRAM):
        opened.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
    opened.bind(socket.getaddrinfo(address, int(port), family, kind)[0][4])
    if kind == socket.SOCK_STREAM:
        opened.listen(64)
    return opened


def from_there(addresses: list) -> list:
    """Answers come from the address of the request, also with a wildcard socket; from that of the interface
    for broadcasts."""
    return [
        (level, kind, bytes(4) + info[4:8] + bytes(4))  # struct in_pktinfo
        for level, kind, info in addresses
        if (level, kind) == (socket.IPPROTO_IP, IP_PKTINFO)
    ]


def resolved(query: bytes) -> bytes:
    """The answer to a query for one address."""
    label = query[13 : 13 + query[12]].decode()
    question = query[12 : query.index(b"\0", 12) + 5]
    record = b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + socket.inet_aton(label.replace("-", "."))
    return query[:2] + b"\x81\x80\0\1\0\1\0\0\0\0" + question + record


def main() -> None:
    ready = selectors.DefaultSelector()
    for place in sys.argv[1:]:
        opened = open_place(place)
        ready.register(opened, selectors.EVENT_READ, place.split("/")[0])
    print("ready", flush=True)
    while True:
        for key, _ in ready.select():
            if key.data == "tcp":
                connection, _ = key.fileobj.accept()
                ready.register(connection, selectors.EVENT_READ, "connection")
            elif key.data == "connection":
                try:
                    data = key.fileobj.recv(4096)
                    key.fileobj.sendall(data)
                except OSError:
                    data = b""
                if not data:
                    ready.unregister(key.fileobj)
                    key.fileobj.close()
            else:
                data, addresses, _, peer = key.fileobj.recvmsg(4096, 64)
                if data.startswith(b"say "):
                    print(data.decode(), flush=True)
                    continue
                if key.data == "dns":
                    print("asked", flush=True)
                    data = resolved(data)
                key.fileobj.sendmsg([data], from_there(addresses), 0, peer)


main()
