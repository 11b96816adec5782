# SPDX-License-Identifier: Apache-2.0
"""A stranger who owns an nftables table, so that the kernel refuses it to everybody else."""

import contextlib
import subprocess
from collections.abc import Iterator

from support.process import LoggedProcess, base_environment


@contextlib.contextmanager
def owned_by_a_stranger(network_namespace: str, table: str) -> Iterator[None]:
    """A plain table is taken from whoever has it, in one transaction. It goes with the stranger, and
    the kernel tells nobody of that."""
    stranger = LoggedProcess(
        "stranger",
        ["nsenter", f"--net={network_namespace}", "--", "stdbuf", "-oL", "nft", "-i"],
        base_environment(),
        stdin=subprocess.PIPE,
    )
    try:
        stranger.write_line(
            f"add table {table}; delete table {table}; add table {table} {{ flags owner; }}"
        )
        stranger.write_line(f"list table {table}")
        stranger.wait_for_line(lambda line: line.strip() == "flags owner", "the table", timeout=10)
        yield
    finally:
        stranger.kill()
