# SPDX-License-Identifier: Apache-2.0
"""Events on their way to subscribers, next to bare gRPC streams: how long one takes, how many arrive
when one, a hundred or a thousand subscribers read long histories, what a hundred cost that have stopped
reading, and what a thousand cost that have nothing to read."""
import json
import random
import subprocess
import time
from pathlib import Path

from engine_world import NO_IMAGE, engine_world
from row import Aim, Gate, Measured, Row, Run
from server import Server, cpu_ms, start_daemon, start_echo, subscribers, temporary_directory

HISTORY = 20_000
# How many events each of so many subscribers takes.
CROWDS = {1: 20_000, 100: 1_000, 1000: 100}
STALLED_SUBSCRIBERS = 100
STALLED_SECONDS = 3.0
IDLE_SUBSCRIBERS = 1000
IDLE_SECONDS = 3.0
SANDBOX = "generated-sandbox-0"
STORE = Path("data") / "agents-sandbox" / "ids.db"
OURS, ECHO, POLLER = "agboxd", "echo", "a 10 ms poller"


def run_program(build: Path, *arguments: object) -> list[dict]:
    output = subprocess.run([str(build / "bench" / "event_bench"), *map(str, arguments)],
                            check=True, stdout=subprocess.PIPE, text=True, timeout=1800).stdout
    return json.loads(output)["rounds"]


def measure_latency(run: Run) -> Measured:
    with engine_world(run) as world, temporary_directory() as directory, \
            start_echo(run.build, Path(directory)) as echo:
        return Measured(run_program(run.build, "latency", run.rounds, world.daemon.socket, echo.socket_path,
                                    NO_IMAGE))


def measure_deliveries(run: Run) -> Measured:
    with temporary_directory(below="/var/tmp") as name:
        directory = Path(name)
        make_history(run.build, directory)
        with start_daemon(run.build, directory) as daemon, start_echo(run.build, directory / "echo") as echo:
            by_crowd = {count: run_program(run.build, "flood", run.rounds, daemon.socket_path,
                                           echo.socket_path, SANDBOX, count, events)
                        for count, events in CROWDS.items()}
            peak = daemon.memory_kib()["rss_kib"]
    measured = [{deliveries(arm, count): by_crowd[count][number][arm]
                 for count in CROWDS for arm in (OURS, ECHO)} for number in range(run.rounds)]
    return Measured(measured, [f"resident memory of agboxd afterwards: {peak:,.0f} KiB"])


def measure_stalled(run: Run) -> Measured:
    measured = []
    with temporary_directory(below="/var/tmp") as name:
        directory = Path(name)
        make_history(run.build, directory)
        arms = {OURS: lambda: stalled(run.build, start_daemon(run.build, directory), SANDBOX, 0),
                ECHO: lambda: stalled(run.build, start_echo(run.build, directory / "echo"), "flood", HISTORY)}
        for _ in range(run.rounds):
            measured.append({arm: arms[arm]() for arm in random.sample(list(arms), len(arms))})
    return Measured(measured)


def stalled(build: Path, server: Server, sandbox: str, from_sequence: int) -> dict[str, float]:
    with server, subscribers(build, STALLED_SUBSCRIBERS, server.socket_path, sandbox, mode="stall",
                             from_sequence=from_sequence):
        time.sleep(STALLED_SECONDS)  # the time in which a server without a limit would read it all
        return server.memory_kib()


def make_history(build: Path, directory: Path) -> None:
    """A store with one sandbox and its events."""
    store = directory / STORE
    store.parent.mkdir(mode=0o700, parents=True)
    subprocess.run([str(build / "bench" / "store_generator"), "make", str(store), "1", str(HISTORY)],
                   check=True, stdout=subprocess.DEVNULL, timeout=600)


def measure_idle(run: Run) -> Measured:
    measured = []
    with engine_world(run) as world, temporary_directory() as directory, \
            start_echo(run.build, Path(directory)) as echo:
        failed = world.sandboxes.create(NO_IMAGE)
        arms = {OURS: (world.daemon.pid, world.daemon.socket, failed.name),
                POLLER: (echo.process.pid, echo.socket_path, "poll")}
        for _ in range(run.rounds):
            results = {}
            for arm in random.sample(list(arms), len(arms)):
                pid, socket_path, sandbox = arms[arm]
                with subscribers(run.build, IDLE_SUBSCRIBERS, socket_path, sandbox):
                    time.sleep(0.5)  # what opening them set in motion comes to rest
                    before = cpu_ms(pid)
                    time.sleep(IDLE_SECONDS)  # the time over which it is measured
                    spent = cpu_ms(pid) - before
                results[arm] = {"cpu_percent": spent / IDLE_SECONDS / 10}
            measured.append(results)
        world.sandboxes.delete(failed)
    return Measured(measured)


def deliveries(arm: str, count: int) -> str:
    return f"{arm}, {count:,} subscribers"


LATENCY = Row(
    name="event",
    title="from a create to its acceptance, and from a change of state to its arrival at a subscriber; a log "
          "file and a bare stream",
    rounds=300, check_rounds=300, setup_s=8, round_s=0.03,
    measure=measure_latency,
    engines=("28",),
    # Both are on disk before a client sees them: ours in SQLite, the echo's appended to a plain file.
    gates=(Gate("accepted_ms", OURS, ECHO, today=1.79, at_most=2),
           Gate("ms", OURS, ECHO, today=1.54, at_most=1.8)),
    aims=(Aim("accepted_ms", OURS, at_most=0.8),
          Aim("ms", OURS, at_most=0.5), Aim("ms", OURS, quantile=0.99, at_most=3)),
)

DELIVERIES = Row(
    name="deliver",
    title="deliveries per second of stored events, and a bare gRPC stream of one event",
    rounds=10, check_rounds=10, setup_s=5, round_s=3,
    measure=measure_deliveries,
    # Ours reads its history from the store; a thousand readers do so a thousand times, while the
    # echo repeats one event out of memory.
    gates=tuple(Gate("per_second", deliveries(OURS, count), deliveries(ECHO, count), today=today, at_least=at_least)
                for count, today, at_least in ((1, 0.965, 0.8), (100, 1.15, 1.0), (1000, 0.962, 0.8))),
    aims=tuple(Aim("per_second", deliveries(OURS, count), at_least=aim)
               for count, aim in ((1, 200_000), (100, 200_000), (1000, 80_000))),
)

STALLED = Row(
    name="stalled",
    title=f"resident memory with {STALLED_SUBSCRIBERS} subscribers that have {HISTORY:,} events to read and "
          "read none, and of a bare gRPC echo with the same",
    rounds=5, check_rounds=5, setup_s=2, round_s=7,
    measure=measure_stalled,
    gates=(Gate("rss_kib", OURS, ECHO, today=2.35, at_most=2.6),),
    # Their history is ten times that: it must not be kept for them.
    aims=(Aim("rss_kib", OURS, at_most=30 * 1024),),
)

IDLE = Row(
    name="idle",
    title="CPU of a server whose 1,000 subscribers have nothing to read, and of one that polls every 10 ms",
    rounds=3, check_rounds=3, setup_s=8, round_s=8,
    measure=measure_idle,
    engines=("28",),
    gates=(Gate("cpu_percent", OURS, POLLER, today=0.0025, at_most=0.01),),
    aims=(Aim("cpu_percent", OURS, at_most=0.1),),
)
