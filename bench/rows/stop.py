# SPDX-License-Identifier: Apache-2.0
"""A default sandbox stopped and resumed, beside the same container stopped and started by hand: from
StopSandbox sent to SANDBOX_STOPPED received, and from ResumeSandbox sent to SANDBOX_READY received."""
import random

from engine_world import engine_world
from row import ENGINES, Gate, Measured, Row, Run

OURS, RAW = "agboxd", "engine API by hand"


def measure(run: Run) -> Measured:
    measured = []
    with engine_world(run) as world:
        arms = {OURS: world.sandboxes, RAW: world.raw}
        boxes = {arm: arms[arm].create() for arm in arms}
        for _ in range(run.rounds):
            results = {}
            for arm in random.sample(list(arms), len(arms)):
                stopped = arms[arm].stop(boxes[arm])
                boxes[arm] = arms[arm].resume(stopped)
                results[arm] = {"stop_ms": stopped.ms, "resume_ms": boxes[arm].ms}
            measured.append(results)
        for arm, box in boxes.items():
            arms[arm].delete(box)
    return Measured(measured)


ROW = Row(
    name="stop",
    title="one sandbox stopped and resumed, and the engine's stop and start",
    rounds=30, check_rounds=15, setup_s=8, round_s=2,
    measure=measure,
    engines=ENGINES,
    # By hand it ends when the engine reports "started"; ours then waits for the guest, has the user
    # agbox run a program and runs the entrypoint.
    gates=(Gate("stop_ms", OURS, RAW, today=0.915, at_most=1.05),
           Gate("resume_ms", OURS, RAW, engine="20.10", today=1.07, at_most=1.2),
           Gate("resume_ms", OURS, RAW, engine="28", today=1.14, at_most=1.25)),
)
