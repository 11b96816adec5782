# SPDX-License-Identifier: Apache-2.0
"""Fifty sandboxes asked for at once, beside fifty containers made by hand at once."""
import random
import statistics
import time

from engine_world import engine_world, side_by_side
from row import ENGINES, Aim, Gate, Measured, Row, Run

SANDBOXES = 50
OURS, RAW = "agboxd", "engine API by hand"


def measure(run: Run) -> Measured:
    measured = []
    with engine_world(run) as world:
        arms = {OURS: world.sandboxes, RAW: world.raw}
        for _ in range(run.rounds):
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
    title="fifty sandboxes at once, and fifty containers through the engine's API at once",
    rounds=5, check_rounds=2, setup_s=8, round_s=60,
    measure=measure,
    engines=ENGINES,
    gates=(Gate("wall_s", OURS, RAW, today=1.08, at_most=1.18),),
    # The engine does this work one after another either way, so without anything prepared half of the
    # wall time is the least that a p50 can be: that aim needs prepared networks.
    aims=(Aim("wall_s", OURS, RAW, at_most=1.05), Aim("p50_s", OURS, RAW, at_most=0.3)),
)
