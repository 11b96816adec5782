# SPDX-License-Identifier: Apache-2.0
"""Durable appends: our store beside a plain loop with one transaction per event."""
import json
import subprocess

from row import Aim, Gate, Measured, Row, Run
from server import temporary_directory


def measure(run: Run) -> Measured:
    # Not below /tmp, which may live in memory: an fsync there proves nothing.
    with temporary_directory(below="/var/tmp") as directory:
        output = subprocess.run([str(run.build / "bench" / "store_bench"), str(run.rounds), directory],
                                check=True, stdout=subprocess.PIPE, text=True, timeout=1800).stdout
    return Measured(json.loads(output)["rounds"])


ROW = Row(
    name="store",
    title="durable appends, our store and one SQLite transaction per event",
    rounds=30, check_rounds=15, setup_s=1, round_s=1.5,
    measure=measure,
    # One sync serves all writers that wait, but each append still costs its share of SQLite. Alone, an
    # append also crosses to the writer thread and back.
    gates=(Gate("appends_per_second", "store 32 writers", "plain 32 writers", today=3.79, at_least=3.2),
           Gate("p50_us", "store alone", "plain alone", today=1.84, at_most=2.1)),
    aims=(Aim("appends_per_second", "store 32 writers", at_least=20_000),),
)
