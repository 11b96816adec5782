# SPDX-License-Identifier: Apache-2.0
"""Fifty sandboxes asked for at once, beside fifty containers made by hand at once."""
import random
import statistics
import time
from pathlib import Path

from engine_world import engine_world, side_by_side
from row import Goal, Measured, Row

SANDBOXES = 50
OURS, RAW = "agboxd", "engine API by hand"


def measure(build: Path, rounds: int) -> Measured:
    measured = []
    with engine_world(build) as world:
        arms = {OURS: world.sandboxes, RAW: world.raw}
        for _ in range(rounds):
            measured.append({arm: crowd(arms[arm]) for arm in random.sample(list(arms), len(arms))})
    return Measured(measured)


def crowd(arm) -> dict[str, float]:
    began = time.monotonic()
    created = side_by_side(lambda _: arm.create(), SANDBOXES)
    wall = time.monotonic() - began
    side_by_side(lambda i: arm.delete(created[i]), SANDBOXES)
    return {"wall_s": wall, "p50_s": statistics.median(one.ms for one in created) / 1000}


ROW = Row(
    name="fifty",
    title="fifty sandboxes at once, beside fifty containers through the engine's API at once",
    default_rounds=5,
    measure=measure,
    # The engine does this work one after another either way, so without something prepared half of the
    # wall time is the least that a p50 can be: this goal waits for prepared networks.
    goals=(Goal("wall_s", OURS, RAW, at_most=1.0), Goal("p50_s", OURS, RAW, at_most=0.3)),
)
