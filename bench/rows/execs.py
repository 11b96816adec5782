# SPDX-License-Identifier: Apache-2.0
"""Commands in a sandbox, beside the engine's own exec API and `docker exec` in the same container:
one at a time, many at once, their output, and what a whole life of a sandbox with ten of them costs."""
import contextlib
import json
import os
import random
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from engine_world import EngineWorld, engine_world
from row import Goal, Measured, Row, Target
from server import memory_kib

OURS, RAW, CLI = "agboxd", "engine API by hand", "docker exec"
# How many execs a round makes, through us and through each of the others.
CROWDS = {8: (1_000, 32), 32: (1_000, 64)}
OUTPUT_BYTES = 256 << 20
ALONE, STOPPED, READ = "nobody reads", "5 stopped readers", "5 readers and 5 stopped ones"
EXECS_PER_LIFE = 10


def run_program(build: Path, mode: str, rounds: int, world: EngineWorld, sandbox: str,
                *arguments: object) -> list[dict]:
    command = [build / "bench" / "exec_bench", mode, rounds, world.daemon.socket, sandbox,
               world.engine.socket, container(sandbox), *arguments]
    output = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE,
                            text=True, timeout=3600).stdout
    return json.loads(output)["rounds"]


def container(sandbox: str) -> str:
    return f"agbox-primary-{sandbox}"


@contextlib.contextmanager
def one_sandbox(build: Path) -> Iterator[tuple[EngineWorld, str]]:
    with engine_world(build) as world:
        created = world.sandboxes.create()
        yield world, created.name
        world.sandboxes.delete(created)


def measure_alone(build: Path, rounds: int) -> Measured:
    with one_sandbox(build) as (world, sandbox):
        measured = run_program(build, "alone", rounds, world, sandbox)
        return Measured(measured, [guest_note(build, world)])


def guest_note(build: Path, world: EngineWorld) -> str:
    size = (build / "bin" / "agbox-guest").stat().st_size
    memory = max(memory_kib(pid)["anonymous_kib"] for pid in world.guests())
    return (f"the guest: {size / 1024:,.0f} KiB on disk, {memory:,.0f} KiB of memory of its own "
            "after these execs")


def measure_crowds(build: Path, rounds: int) -> Measured:
    with one_sandbox(build) as (world, sandbox):
        by_crowd = {at_once: run_program(build, "crowd", rounds, world, sandbox, at_once, *counts)
                    for at_once, counts in CROWDS.items()}
    return Measured([{at_once_of(arm, at_once): by_crowd[at_once][number][arm]
                      for at_once in CROWDS for arm in (OURS, RAW, CLI)}
                     for number in range(rounds)])


def at_once_of(arm: str, count: int) -> str:
    return f"{arm}, {count} at once"


def measure_output(build: Path, rounds: int) -> Measured:
    """Program beside program: both write what the command wrote to a pipe."""
    command = ["head", "-c", str(OUTPUT_BYTES), "/dev/zero"]
    with one_sandbox(build) as (world, sandbox):
        arms = {OURS: ([str(build / "bin" / "agbox"), "exec", "run", sandbox, "--", *command],
                       world.daemon.environment),
                CLI: (["docker", "-H", world.engine.docker_host, "exec", container(sandbox), *command],
                      dict(os.environ))}
        measured = []
        for _ in range(rounds):
            measured.append({arm: {"mib_per_second": throughput(*arms[arm])}
                             for arm in random.sample(list(arms), len(arms))})
    return Measured(measured)


def throughput(command: list[str], environment: dict[str, str]) -> float:
    began = time.monotonic()
    received = 0
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE) as process:
        while piece := os.read(process.stdout.fileno(), 1 << 20):
            received += len(piece)
    taken = time.monotonic() - began
    if process.returncode or received != OUTPUT_BYTES:
        raise RuntimeError(f"{command[0]}: ended with {process.returncode} after {received} bytes "
                           f"of {OUTPUT_BYTES}")
    return OUTPUT_BYTES / (1 << 20) / taken


def measure_readers(build: Path, rounds: int) -> Measured:
    with one_sandbox(build) as (world, sandbox):
        arms = {ALONE: (0, 0), STOPPED: (0, 5), READ: (5, 5)}
        measured = [{arm: {"mib_per_second": written_beside(world, sandbox, *arms[arm])}
                     for arm in random.sample(list(arms), len(arms))} for _ in range(rounds)]
    return Measured(measured)


def written_beside(world: EngineWorld, sandbox: str, eager: int, stopped: int) -> float:
    """How fast a command can write while these read along; the stopped ones never take a byte."""
    script = f"read go </tmp/go; exec head -c {OUTPUT_BYTES} /dev/zero"
    world.sandboxes.run(sandbox, "sh", "-c", "rm -f /tmp/go; mkfifo /tmp/go")
    running = world.sandboxes.start(sandbox, "sh", "-c", script)
    streams = [world.sandboxes.read(running) for _ in range(eager + stopped)]
    readers = [threading.Thread(target=lambda stream=stream: [None for _ in stream])
               for stream in streams[:eager]]
    for reader in readers:
        reader.start()
    world.sandboxes.run(sandbox, "sh", "-c", "echo >/tmp/go")
    began = time.monotonic()
    world.sandboxes.wait(running)
    taken = time.monotonic() - began
    for reader in readers:
        reader.join()
    for stream in streams:
        stream.cancel()
    return OUTPUT_BYTES / (1 << 20) / taken


def measure_effort(build: Path, rounds: int) -> Measured:
    measured = []
    with engine_world(build) as world:
        arms = {OURS: world.sandboxes, RAW: world.raw}
        for _ in range(rounds):
            measured.append({arm: {"cpu_ms": effort(world, arms[arm])}
                             for arm in random.sample(list(arms), len(arms))})
    return Measured(measured)


def effort(world: EngineWorld, arm) -> float:
    before = world.whole_cpu_ms()
    created = arm.create()
    for _ in range(EXECS_PER_LIFE):
        arm.run(created.name, "true")
    arm.delete(created)
    return world.whole_cpu_ms() - before


EXEC = Row(
    name="exec",
    title="one command from CreateExec to its terminal event, beside the engine's API and docker exec",
    default_rounds=1000,
    measure=measure_alone,
    # The aim is 2.5 ms; engines take 34 to 77 ms for the same, by machine and version.
    goals=(Goal("ms", OURS, RAW, at_most=0.08), Goal("ms", OURS, CLI, at_most=0.06)),
    targets=(Target("ms", OURS, 0.5, at_most=2.5), Target("ms", OURS, 0.99, at_most=8)),
)

CROWD = Row(
    name="execs",
    title="commands per second with 8 and 32 at once, beside the engine's API and docker exec",
    default_rounds=10,
    measure=measure_crowds,
    goals=tuple(Goal("per_second", at_once_of(OURS, at_once), at_once_of(beside, at_once),
                     at_least=20) for at_once in CROWDS for beside in (RAW, CLI)),
    targets=tuple(Target("per_second", at_once_of(OURS, at_once), 0.5, at_least=600)
                  for at_once in CROWDS),
)

OUTPUT = Row(
    name="output",
    title="256 MiB of output through agbox exec run, beside docker exec of the same command",
    default_rounds=30,
    measure=measure_output,
    # Ours is also in a file by then.
    goals=(Goal("mib_per_second", OURS, CLI, at_least=1),),
)

READERS = Row(
    name="readers",
    title="256 MiB written by a command, without and with readers that have stopped reading",
    default_rounds=30,
    measure=measure_readers,
    # Eager readers take their share of the cores; stopped ones must not take anything.
    goals=(Goal("mib_per_second", STOPPED, ALONE, at_least=0.9),),
)

EFFORT = Row(
    name="effort",
    title="CPU of one sandbox's life: create, ten commands, delete; beside the engine's API",
    default_rounds=30,
    measure=measure_effort,
    goals=(Goal("cpu_ms", OURS, RAW, at_most=0.6),),
)
