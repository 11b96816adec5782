# SPDX-License-Identifier: Apache-2.0
"""Events on their way to subscribers, beside bare gRPC streams: how long one takes, how many arrive
when one, a hundred or a thousand subscribers read long histories, and what a thousand cost that have
nothing to read."""
import json
import random
import subprocess
import time
from pathlib import Path

from engine_world import NO_IMAGE, engine_world
from row import Goal, Measured, Row, Target
from server import cpu_ms, start_daemon, start_echo, subscribers, temporary_folder

HISTORY = 20_000
# How many events each of so many subscribers takes.
CROWDS = {1: 20_000, 100: 1_000, 1000: 100}
IDLE_SUBSCRIBERS = 1000
IDLE_SECONDS = 3.0
SANDBOX = "generated-sandbox-0"
STORE = Path("data") / "agents-sandbox" / "ids.db"
OURS, ECHO, POLLER = "agboxd", "echo", "a 10 ms poller"


def run_program(build: Path, *arguments: object) -> list[dict]:
    output = subprocess.run([str(build / "bench" / "event_bench"), *map(str, arguments)],
                            check=True, stdout=subprocess.PIPE, text=True, timeout=1800).stdout
    return json.loads(output)["rounds"]


def measure_latency(build: Path, rounds: int) -> Measured:
    with engine_world(build) as world, temporary_folder() as folder, \
            start_echo(build, Path(folder)) as echo:
        return Measured(run_program(build, "latency", rounds, world.daemon.socket, echo.socket_path,
                                    NO_IMAGE))


def measure_deliveries(build: Path, rounds: int) -> Measured:
    with temporary_folder(below="/var/tmp") as name:
        folder = Path(name)
        store = folder / STORE
        store.parent.mkdir(mode=0o700, parents=True)
        subprocess.run([str(build / "bench" / "store_generator"), "make", str(store), "1",
                        str(HISTORY)], check=True, stdout=subprocess.DEVNULL, timeout=600)
        with start_daemon(build, folder) as daemon, start_echo(build, folder / "echo") as echo:
            by_crowd = {count: run_program(build, "flood", rounds, daemon.socket_path,
                                           echo.socket_path, SANDBOX, count, events)
                        for count, events in CROWDS.items()}
            peak = daemon.memory_kib()["rss_kib"]
    measured = [{deliveries(arm, count): by_crowd[count][number][arm]
                 for count in CROWDS for arm in (OURS, ECHO)} for number in range(rounds)]
    return Measured(measured, [f"resident memory of agboxd afterwards: {peak:,.0f} KiB"])


def measure_idle(build: Path, rounds: int) -> Measured:
    measured = []
    with engine_world(build) as world, temporary_folder() as folder, \
            start_echo(build, Path(folder)) as echo:
        failed = world.sandboxes.create(NO_IMAGE)
        arms = {OURS: (world.daemon.pid, world.daemon.socket, failed.name),
                POLLER: (echo.process.pid, echo.socket_path, "poll")}
        for _ in range(rounds):
            results = {}
            for arm in random.sample(list(arms), len(arms)):
                pid, socket_path, sandbox = arms[arm]
                with subscribers(build, IDLE_SUBSCRIBERS, socket_path, sandbox):
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
    title="from a create to its acceptance, and from a change of state to its arrival at a subscriber, "
          "beside a log file and a bare stream",
    default_rounds=300,
    measure=measure_latency,
    # Both are on disk before anybody sees them: ours in SQLite, the echo's appended to a plain file.
    goals=(Goal("ms", OURS, ECHO, at_most=2.5),),
    targets=(Target("accepted_ms", OURS, 0.5, at_most=0.8),
             Target("ms", OURS, 0.5, at_most=0.5), Target("ms", OURS, 0.99, at_most=3)),
)

DELIVERIES = Row(
    name="deliver",
    title="deliveries per second of stored events, beside a bare gRPC stream of one event",
    default_rounds=10,
    measure=measure_deliveries,
    # Ours reads its history from the store; a thousand readers do so a thousand times, while the
    # echo repeats one event out of memory.
    goals=tuple(Goal("per_second", deliveries(OURS, count), deliveries(ECHO, count), at_least=share)
                for count, share in {1: 1.0, 100: 1.0, 1000: 0.5}.items()),
    targets=tuple(Target("per_second", deliveries(OURS, count), 0.5, at_least=aim)
                  for count, aim in {1: 200_000, 100: 200_000, 1000: 80_000}.items()),
)

IDLE = Row(
    name="idle",
    title="CPU of a server whose 1,000 subscribers have nothing to read, beside polling every 10 ms",
    default_rounds=3,
    measure=measure_idle,
    goals=(Goal("cpu_percent", OURS, POLLER, at_most=0.01),),
    targets=(Target("cpu_percent", OURS, 0.5, at_most=0.1),),
)
