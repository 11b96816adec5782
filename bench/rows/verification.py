# SPDX-License-Identifier: Apache-2.0
"""What verifying a sandbox's isolation costs, part by part, within a create that is measured with
the same containers made by hand. The daemon writes the parts into its log, at the level debug."""
import json
import random

from engine_world import EngineWorld, engine_world
from row import Aim, Measured, Row, Run

OURS, RAW = "agboxd", "engine API by hand"
LINE = "isolation verification timing"
# As the daemon calls them, and what they are.
PARTS = {
    "bridge_us": "bridge",  # routes, links and addresses read, the sandbox's bridge looked at
    "tables_us": "tables",  # both copies of the rules read back and compared
    "listener_us": "listener",  # somebody to reach, and the count begun
    "inside_us": "inside",  # the guest is asked, tries and tells
    "verdict_us": "verdict",  # the listener tried from the host, the count read and ended
    "whole_us": "whole",  # all of it, with the ways from one thread to the other
}


def measure(run: Run) -> Measured:
    measured = []
    with engine_world(run, log_level="debug") as world:
        arms = {OURS: world.sandboxes, RAW: world.raw}
        for _ in range(run.rounds):
            results = {}
            for arm in random.sample(list(arms), len(arms)):
                lines = len(world.daemon.log_lines())
                created = arms[arm].create()
                results[arm] = {"create_ms": created.ms}
                if arm == OURS:
                    results[arm] |= parts_of_verification(world, lines)
                arms[arm].delete(created)
            measured.append(results)
    return Measured(measured)


def parts_of_verification(world: EngineWorld, lines: int) -> dict[str, float]:
    """Of the one that was done since the log had so many lines."""
    line = json.loads(world.daemon.process.wait_for_line(
        lambda text: LINE in text, "the verification", timeout=10, after=lines))
    return {f"{name}_ms": line[key] / 1000 for key, name in PARTS.items()}


ROW = Row(
    name="verification",
    title="what each part of the verification of the isolation costs in a create",
    rounds=30, setup_s=8, round_s=2,
    measure=measure,
    engines=("28",),
    aims=(Aim("whole_ms", OURS, at_most=5),),
)
