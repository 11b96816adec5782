# SPDX-License-Identifier: Apache-2.0
"""Resident memory at rest: a daemon without a sandbox, after one answered Ping."""
import random
import subprocess
from pathlib import Path

from row import Goal, Measured, Row, Target
from server import Server, start_daemon, start_echo, temporary_folder


def measure(build: Path, rounds: int) -> Measured:
    measured = []
    arms = {"agboxd": start_daemon, "echo": start_echo}
    for _ in range(rounds):
        order = list(arms)
        random.shuffle(order)
        with temporary_folder() as folder:
            measured.append({arm: at_rest(build, arms[arm](build, Path(folder) / arm))
                             for arm in order})
    return Measured(measured)


def at_rest(build: Path, server: Server) -> dict[str, float]:
    with server:
        subprocess.run([str(build / "bench" / "ping_bench"), "1", f"arm={server.socket_path}"],
                       check=True, stdout=subprocess.DEVNULL, timeout=60)
        return server.memory_kib()


ROW = Row(
    name="memory",
    title="resident memory at rest, agboxd beside a bare gRPC echo",
    default_rounds=10,
    measure=measure,
    goals=(Goal("rss_kib", "agboxd", "echo", at_most=1.25),),
    targets=(Target("rss_kib", "agboxd", 0.5, at_most=12 * 1024),),
)
