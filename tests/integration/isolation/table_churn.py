# SPDX-License-Identifier: Apache-2.0
"""Creates and removes a table continuously, each time in a transaction, until it is killed. `nft` would list
all tables before each of them, and be far slower."""

import socket
import struct
import time

NETFILTER = 12  # NETLINK_NETFILTER
NFTABLES = 10  # NFNL_SUBSYS_NFTABLES
BATCH_BEGIN, BATCH_END = 0x10, 0x11
NEW_TABLE, DELETE_TABLE = NFTABLES << 8, NFTABLES << 8 | 2
REQUEST, CREATE = 0x1, 0x400
TABLE_NAME = 1
PACE = 0.005  # in seconds: interrupts many dumps of thousands of tables, but not fifty in a row


def message(kind: int, flags: int, family: int, resource: int, attributes: bytes = b"") -> bytes:
    body = struct.pack("=BBH", family, 0, socket.htons(resource)) + attributes
    return struct.pack("=LHHLL", 16 + len(body), kind, REQUEST | flags, 0, 0) + body


def main() -> None:
    name = b"restless"
    attribute = struct.pack("=HH", 4 + len(name) + 1, TABLE_NAME) + name.ljust(12, b"\0")
    transactions = [
        message(BATCH_BEGIN, 0, 0, NFTABLES)
        + message(kind, flags, socket.AF_INET, 0, attribute)
        + message(BATCH_END, 0, 0, NFTABLES)
        for kind, flags in ((NEW_TABLE, CREATE), (DELETE_TABLE, 0))
    ]
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETFILTER) as kernel:
        print("ready", flush=True)
        while True:
            for transaction in transactions:
                kernel.send(transaction)
                time.sleep(PACE)


if __name__ == "__main__":
    main()
