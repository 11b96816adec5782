# SPDX-License-Identifier: Apache-2.0
"""A process that owns an nftables table, so that the kernel refuses it to others."""

import contextlib
import subprocess
from collections.abc import Iterator

from support.process import LoggedProcess, base_environment


@contextlib.contextmanager
def owned_by_another_process(network_namespace: str, table: str) -> Iterator[None]:
    """Replaces a plain table in one transaction. The table disappears with its owner, without an event."""
    owner = LoggedProcess(
        "owner",
        ["nsenter", f"--net={network_namespace}", "--", "stdbuf", "-oL", "nft", "-i"],
        base_environment(),
        stdin=subprocess.PIPE,
    )
    try:
        owner.write_line(
            f"add table {table}; delete table {table}; add table {table} {{ flags owner; }}"
        )
        owner.write_line(f"list table {table}")
        owner.wait_for_line(lambda line: line.strip() == "flags owner", "the table", timeout=10)
        yield
    finally:
        owner.kill()
