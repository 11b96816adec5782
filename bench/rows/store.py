# SPDX-License-Identifier: Apache-2.0
"""Durable appends: our store beside a plain loop with one transaction per event."""
import json
import subprocess
from pathlib import Path

from row import Goal, Measured, Row, Target
from server import temporary_folder


def measure(build: Path, rounds: int) -> Measured:
    # Not below /tmp, which may live in memory: an fsync there proves nothing.
    with temporary_folder(below="/var/tmp") as folder:
        output = subprocess.run([str(build / "bench" / "store_bench"), str(rounds), folder],
                                check=True, stdout=subprocess.PIPE, text=True, timeout=1800).stdout
    return Measured(json.loads(output)["rounds"])


ROW = Row(
    name="store",
    title="durable appends, our store beside one SQLite transaction per event",
    default_rounds=30,
    measure=measure,
    # One sync carries all writers that wait, but each append still costs its share of SQLite: about
    # 4 on 2 cores. Alone, an append also crosses to the writer thread and back: about 1.6.
    goals=(Goal("appends_per_second", "store 32 writers", "plain 32 writers", at_least=3),
           Goal("p50_us", "store alone", "plain alone", at_most=2)),
    targets=(Target("appends_per_second", "store 32 writers", 0.5, at_least=20_000),),
)
