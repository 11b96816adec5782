# SPDX-License-Identifier: Apache-2.0
"""The life of one sandbox beside the same containers made by hand: from CreateSandbox sent to
SANDBOX_READY received, and from DeleteSandbox sent to SANDBOX_DELETED received."""
import random

from engine_world import engine_world
from row import ENGINES, Aim, Gate, Measured, Row, Run

OURS, RAW = "agboxd", "engine API by hand"


def measure(run: Run) -> Measured:
    measured = []
    spent = {OURS: 0.0, RAW: 0.0}
    with engine_world(run) as world:
        arms = {OURS: world.sandboxes, RAW: world.raw}
        for _ in range(run.rounds):
            results = {}
            for arm in random.sample(list(arms), len(arms)):
                before = world.cpu_ms()
                created = arms[arm].create()
                results[arm] = {"create_ms": created.ms, "delete_ms": arms[arm].delete(created)}
                spent[arm] += world.cpu_ms() - before
            measured.append(results)
    # A shim that has ended took its own share along, in both arms alike.
    notes = [f"CPU of daemon, engine and containerd per life: {arm} {ms / run.rounds:.0f} ms"
             for arm, ms in spent.items()]
    return Measured(measured, notes)


ROW = Row(
    name="life",
    title="one sandbox from create to ready and from delete to deleted, and the engine's API",
    rounds=30, check_rounds=30, setup_s=8, round_s=2,
    measure=measure,
    engines=ENGINES,
    # Ours also reserves an id durably, waits for the guest and runs the entrypoint; by hand it ends
    # when the engine reports "started".
    gates=(Gate("create_ms", OURS, RAW, engine="20.10", today=1.01, at_most=1.1),
           Gate("create_ms", OURS, RAW, engine="28", today=1.05, at_most=1.15),
           Gate("delete_ms", OURS, RAW, engine="20.10", today=0.75, at_most=0.87),
           Gate("delete_ms", OURS, RAW, engine="28", today=0.78, at_most=0.87)),
    aims=(Aim("create_ms", OURS, RAW, at_most=0.35), Aim("delete_ms", OURS, RAW, at_most=0.45)),
)
