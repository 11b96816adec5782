# SPDX-License-Identifier: Apache-2.0
"""Recovery of 200 sandboxes that run on a real engine: the daemon is killed, and the next one on its store
has all their guests back. Beside it somebody who asks the engine for the same 200 containers, one after
the other over one connection."""
import json
import random
import time

from engine_world import CONFIG, EngineWorld, create_many, delete_many, engine_world
from row import Aim, Gate, Measured, Row, Run
from server import cpu_ms

SANDBOXES = 200
OURS, RAW = "agboxd, killed and started", "engine API, 200 inspections"
SERVING = "agboxd, serving"


def measure(run: Run) -> Measured:
    measured = []
    with engine_world(run) as world:
        # A guest that is back is a line of the debug log.
        world.daemon.write_config(CONFIG + '[runtime]\nlog_level = "debug"\n')
        made = create_many(world.sandboxes, SANDBOXES)
        names = [created.name for created in made]
        arms = [recover, inspect_all]
        for _ in range(run.rounds):
            results = {}
            for arm in random.sample(arms, len(arms)):
                results |= arm(world, names)
            measured.append(results)
        world.sandboxes.meet_again()
        delete_many(world.sandboxes, made)
    return Measured(measured)


def recover(world: EngineWorld, names: list[str]) -> dict[str, dict[str, float]]:
    """Until the last guest is back: from then on every sandbox runs execs again."""
    away = set(names)

    def is_the_last(line: str) -> bool:
        entry = json.loads(line)
        if entry["msg"] == "the guest is connected":
            away.discard(entry["sandbox_id"])
        return not away

    world.daemon.kill()
    began = time.monotonic()
    world.daemon.start()
    serving = time.monotonic()
    world.daemon.process.wait_for_line(is_the_last, "the last guest", 120)
    return {OURS: {"ms": (time.monotonic() - began) * 1000, "cpu_ms": cpu_ms(world.daemon.pid)},
            SERVING: {"ms": (serving - began) * 1000}}


def inspect_all(world: EngineWorld, names: list[str]) -> dict[str, dict[str, float]]:
    before = world.cpu_ms()
    began = time.monotonic()
    world.inspect(names)
    ended = time.monotonic()
    return {RAW: {"ms": (ended - began) * 1000, "cpu_ms": world.cpu_ms() - before}}


ROW = Row(
    name="recovery",
    title="200 sandboxes on a real engine back after kill -9, and 200 inspections by hand",
    rounds=5, check_rounds=3, setup_s=120, round_s=3,
    measure=measure,
    engines=("28",),
    # Guests try to reconnect a few times a second; what the daemon itself needs is far less.
    gates=(Gate("ms", OURS, RAW, today=3.13, at_most=3.6),),
    aims=(Aim("ms", OURS, at_most=2000), Aim("ms", SERVING, at_most=200)),
)
