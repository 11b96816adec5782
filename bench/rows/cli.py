# SPDX-License-Identifier: Apache-2.0
"""The command lines: agbox ps, exec and run next to docker ps, exec and run --rm, from the start of the program to its
end. agbox run ends once the deletion is recorded; `gone_ms` is until nothing is left of either."""
import os
import random
import subprocess
import time

from engine_world import IMAGE, engine_world
from row import Aim, Measured, Row, Run
from rows.execs import container

OURS, CLI = "agbox", "docker"


def timed(command: list[str], environment: dict[str, str]) -> float:
    began = time.monotonic()
    subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True,
                   timeout=60)
    return (time.monotonic() - began) * 1000


def measure(run: Run) -> Measured:
    with engine_world(run) as world:
        created = world.sandboxes.create()
        agbox = str(run.build / "bin" / "agbox")
        docker = ["docker", "-H", world.engine.docker_host]
        names = iter(range(10 * run.rounds))

        def ours() -> dict[str, float]:
            name = f"cli-{next(names)}"
            environment = world.daemon.environment
            run_ms = timed([agbox, "run", "--name", name, IMAGE, "true"], environment)
            waited_ms = timed([agbox, "sandbox", "wait", "--for", "deleted", name], environment)
            return {"ps_ms": timed([agbox, "ps"], environment),
                    "exec_ms": timed([agbox, "exec", created.name, "true"], environment),
                    "run_ms": run_ms, "gone_ms": run_ms + waited_ms}

        def theirs() -> dict[str, float]:
            environment = dict(os.environ)
            run_ms = timed([*docker, "run", "--rm", IMAGE, "true"], environment)
            return {"ps_ms": timed([*docker, "ps"], environment),
                    "exec_ms": timed([*docker, "exec", container(created.name), "true"], environment),
                    "run_ms": run_ms, "gone_ms": run_ms}

        arms = {OURS: ours, CLI: theirs}
        measured = [{arm: arms[arm]() for arm in random.sample(list(arms), len(arms))} for _ in range(run.rounds)]
        world.sandboxes.delete(created)
        return Measured(measured)


ROW = Row(
    name="cli",
    title="agbox ps, exec and run, and docker ps, exec and run --rm",
    rounds=30, setup_s=8, round_s=3,
    measure=measure,
    engines=("28",),
    aims=(Aim("ps_ms", OURS, CLI, at_most=0.5), Aim("exec_ms", OURS, CLI, at_most=0.2),
          Aim("run_ms", OURS, CLI, at_most=1.0)),
)
