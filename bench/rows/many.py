# SPDX-License-Identifier: Apache-2.0
"""A daemon with many sandboxes: what 200 cost that nobody uses, beside somebody who asks the engine for them
every 15 seconds, and how long one more takes when 0, 100 or 300 are there, beside the engine's API among
the same."""
import random
import time
from pathlib import Path

from engine_world import EngineWorld, create_many, delete_many, engine_world
from row import Aim, Gate, Measured, Row, Run
from server import cpu_ms, memory_kib, start_echo, temporary_directory

ASLEEP_SANDBOXES = 200
ASLEEP_SECONDS = 15.0  # how often somebody looks who has no events to wait for
OURS, ECHO, POLLER = "agboxd, 200 sandboxes", "echo", "asking for each, every 15 s"

CROWDS = (0, 100, 300)


def measure_asleep(run: Run) -> Measured:
    measured = []
    with engine_world(run) as world, temporary_directory() as directory, \
            start_echo(run.build, Path(directory)) as echo:
        alone = memory_kib(world.daemon.pid)["rss_kib"]
        made = create_many(world.sandboxes, ASLEEP_SANDBOXES)
        names = [created.name for created in made]
        arms = {OURS: lambda: asleep(world), POLLER: lambda: asked(world, names),
                ECHO: echo.memory_kib}
        for _ in range(run.rounds):
            measured.append({arm: arms[arm]() for arm in random.sample(list(arms), len(arms))})
        each = (memory_kib(world.daemon.pid)["rss_kib"] - alone) / ASLEEP_SANDBOXES
        delete_many(world.sandboxes, made)
    return Measured(measured, [f"resident memory of agboxd per sandbox: {each:.1f} KiB"])


def asleep(world: EngineWorld) -> dict[str, float]:
    before = cpu_ms(world.daemon.pid)
    time.sleep(ASLEEP_SECONDS)  # the time over which it is measured
    spent = cpu_ms(world.daemon.pid) - before
    return memory_kib(world.daemon.pid) | {"cpu_ms": spent, "cpu_percent": spent / ASLEEP_SECONDS / 10}


def asked(world: EngineWorld, names: list[str]) -> dict[str, float]:
    """What it costs the engine; whoever asks spends something too, which is not counted."""
    before = world.engine_cpu_ms()
    world.inspect(names)
    return {"cpu_ms": world.engine_cpu_ms() - before}


def measure_crowded(run: Run) -> Measured:
    measured = [{} for _ in range(run.rounds)]
    made = []
    with engine_world(run) as world:
        for crowd in CROWDS:
            made += create_many(world.sandboxes, crowd - len(made))
            arms = {ours(crowd): world.sandboxes, by_hand(crowd): world.raw}
            for results in measured:
                for arm in random.sample(list(arms), len(arms)):
                    created = arms[arm].create()
                    arms[arm].delete(created)
                    results[arm] = {"create_ms": created.ms}
                own, raw = results[ours(crowd)], results[by_hand(crowd)]
                own["create_over_raw"] = own["create_ms"] / raw["create_ms"]
        delete_many(world.sandboxes, made)
    return Measured(measured)


def ours(crowd: int) -> str:
    return f"agboxd, {crowd} others"


def by_hand(crowd: int) -> str:
    return f"engine API, {crowd} others"


ASLEEP = Row(
    name="asleep",
    title="memory and CPU of a daemon with 200 idle sandboxes, a bare gRPC echo, and inspecting each of them "
          "every 15 s",
    rounds=5, check_rounds=5, setup_s=120, round_s=16,
    measure=measure_asleep,
    engines=("28",),
    gates=(Gate("rss_kib", OURS, ECHO, today=2.35, at_most=2.5),
           Gate("cpu_ms", OURS, POLLER, at_most=0.05)),
    aims=(Aim("rss_kib", OURS, at_most=16 * 1024), Aim("cpu_percent", OURS, at_most=0.1)),
)

CROWDED = Row(
    name="crowded",
    title="one more sandbox from create to ready when 0, 100 or 300 exist, and the engine's API among the same",
    rounds=10, check_rounds=5, setup_s=180, round_s=6,
    measure=measure_crowded,
    engines=("28",),
    # What the engine itself takes longer with every network is in both.
    gates=(*(Gate("create_ms", ours(crowd), by_hand(crowd), today=1.03, at_most=1.15) for crowd in CROWDS),
           Gate("create_over_raw", ours(CROWDS[-1]), ours(CROWDS[0]), today=1.04, at_most=1.15)),
)
