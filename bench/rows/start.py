# SPDX-License-Identifier: Apache-2.0
"""From exec to serving, with 1,000 stored sandboxes and 100,000 events and with none, beside the
time that sqlite3 needs to read every row of the same file."""
import os
import random
import shutil
import subprocess
import time
from pathlib import Path

from row import Aim, Gate, Measured, Row, Run
from server import start_daemon, temporary_directory

SANDBOXES = 1000
EVENTS = 100_000
FULL = "agboxd, full store"
EMPTY = "agboxd, empty store"
READER = "sqlite3 reading the same file"
STORE = Path("data") / "agents-sandbox" / "ids.db"

def measure(run: Run) -> Measured:
    with temporary_directory(below="/var/tmp") as name:
        directory = Path(name)
        store = directory / "full" / STORE
        store.parent.mkdir(mode=0o700, parents=True)
        subprocess.run([str(run.build / "bench" / "store_generator"), "make", str(store), str(SANDBOXES),
                        str(EVENTS)], check=True, stdout=subprocess.DEVNULL, timeout=600)
        copy = directory / "copy.db"
        shutil.copy(store, copy)
        arms = {
            FULL: lambda: time_daemon(run.build, directory / "full"),
            EMPTY: lambda: time_daemon(run.build, directory / "empty"),
            READER: lambda: time_reader(copy),
        }
        for measure_once in arms.values():  # unmeasured: caches warm, empty store made
            measure_once()
        measured = []
        for _ in range(run.rounds):
            order = random.sample(list(arms), len(arms))
            measured.append({arm: arms[arm]() for arm in order})
        size = store.stat().st_size
    return Measured(measured, [f"the file: {SANDBOXES} sandboxes, {EVENTS} events, "
                               f"{size / 2**20:.1f} MiB"])


def time_daemon(build: Path, directory: Path) -> dict[str, float]:
    with start_daemon(build, directory) as server:
        if not server.has_open(directory / STORE):
            raise RuntimeError(f"agboxd serves without having opened its store {directory / STORE}")
        return {"ms": server.started_ms, "cpu_ms": server.cpu_ms()}


def time_reader(store: Path) -> dict[str, float]:
    """A new process as well, which opens the file and reads every column of every row."""
    script = "".join(f'SELECT * FROM "{table}";\n' for table in tables_of(store))
    began = time.monotonic()
    process = subprocess.Popen(["sqlite3", "-readonly", "-batch", str(store), script],
                               stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    milliseconds = (time.monotonic() - began) * 1000
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"sqlite3 ended with {process.returncode} on {store}")
    return {"ms": milliseconds, "cpu_ms": (usage.ru_utime + usage.ru_stime) * 1000}


def tables_of(store: Path) -> list[str]:
    listing = subprocess.run(
        ["sqlite3", "-readonly", "-batch", str(store),
         "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"],
        check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout
    return listing.split()


ROW = Row(
    name="start",
    title="start to serving with 1,000 sandboxes and 100,000 events, and sqlite3 reading their file",
    rounds=30, check_rounds=30, setup_s=5, round_s=0.5,
    measure=measure,
    # Beyond reading, the daemon checks every spec again and hashes the guest's program.
    gates=(Gate("ms", FULL, READER, today=0.966, at_most=1.1),),
    aims=(Aim("ms", FULL, at_most=200), Aim("ms", EMPTY, at_most=50)),
)
