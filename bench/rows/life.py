# SPDX-License-Identifier: Apache-2.0
"""The life of one sandbox beside the same containers made by hand: from CreateSandbox sent to
SANDBOX_READY received, and from DeleteSandbox sent to SANDBOX_DELETED received."""
import random
from pathlib import Path

from engine_world import engine_world
from row import Goal, Measured, Row

OURS, RAW = "agboxd", "engine API by hand"


def measure(build: Path, rounds: int) -> Measured:
    measured = []
    spent = {OURS: 0.0, RAW: 0.0}
    with engine_world(build) as world:
        arms = {OURS: world.sandboxes, RAW: world.raw}
        for _ in range(rounds):
            results = {}
            for arm in random.sample(list(arms), len(arms)):
                before = world.cpu_ms()
                created = arms[arm].create()
                results[arm] = {"create_ms": created.ms, "delete_ms": arms[arm].delete(created)}
                spent[arm] += world.cpu_ms() - before
            measured.append(results)
    # A shim that has ended took its own share along, in both arms alike.
    notes = [f"CPU of daemon, engine and containerd per life: {arm} {ms / rounds:.0f} ms"
             for arm, ms in spent.items()]
    return Measured(measured, notes)


ROW = Row(
    name="life",
    title="one sandbox from create to ready and from delete to deleted, beside the engine's API",
    default_rounds=30,
    measure=measure,
    # Ours also reserves an id durably, hears from the guest and runs the entrypoint; by hand it ends
    # when the engine says "started".
    goals=(Goal("create_ms", OURS, RAW, at_most=1.02), Goal("delete_ms", OURS, RAW, at_most=0.95)),
)
