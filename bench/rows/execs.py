# SPDX-License-Identifier: Apache-2.0
"""Commands in a sandbox, through agboxd, the engine's own exec API and `docker exec` in the same container:
one at a time, many at once, what they cost, their output, and what a whole life of a sandbox with ten of them
costs."""
import contextlib
import json
import os
import random
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from engine_world import EngineWorld, engine_world
from row import ENGINES, Aim, Gate, Measured, Row, Run
from server import memory_kib

OURS, RAW, CLI = "agboxd", "engine API by hand", "docker exec"
# How many execs a round makes, through us and through each of the others.
CROWDS = {8: (1_000, 32), 32: (1_000, 64)}
# So many that a clock tick, 10 ms, is little of what they cost together.
CPU_EXECS, CPU_ENGINE_EXECS = 500, 25
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
def one_sandbox(run: Run) -> Iterator[tuple[EngineWorld, str]]:
    with engine_world(run) as world:
        created = world.sandboxes.create()
        yield world, created.name
        world.sandboxes.delete(created)


def measure_alone(run: Run) -> Measured:
    with one_sandbox(run) as (world, sandbox):
        measured = run_program(run.build, "alone", run.rounds, world, sandbox)
        return Measured(measured, [guest_note(run.build, world)])


def guest_note(build: Path, world: EngineWorld) -> str:
    size = (build / "bin" / "agbox-guest").stat().st_size
    memory = max(memory_kib(pid)["anonymous_kib"] for pid in world.guests())
    return (f"the guest: {size / 1024:,.0f} KiB on disk, {memory:,.0f} KiB of memory of its own "
            "after these execs")


def measure_crowds(run: Run) -> Measured:
    with one_sandbox(run) as (world, sandbox):
        by_crowd = {at_once: run_program(run.build, "crowd", run.rounds, world, sandbox, at_once, *counts)
                    for at_once, counts in CROWDS.items()}
    return Measured([{at_once_of(arm, at_once): by_crowd[at_once][number][arm]
                      for at_once in CROWDS for arm in (OURS, RAW, CLI)}
                     for number in range(run.rounds)])


def at_once_of(arm: str, count: int) -> str:
    return f"{arm}, {count} at once"


def measure_output(run: Run) -> Measured:
    """Program beside program: both write what the command wrote to a pipe."""
    command = ["head", "-c", str(OUTPUT_BYTES), "/dev/zero"]
    with one_sandbox(run) as (world, sandbox):
        arms = {OURS: ([str(run.build / "bin" / "agbox"), "exec", "run", sandbox, "--", *command],
                       world.daemon.environment),
                CLI: (["docker", "-H", world.engine.docker_host, "exec", container(sandbox), *command],
                      dict(os.environ))}
        measured = []
        for _ in range(run.rounds):
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


def measure_readers(run: Run) -> Measured:
    with one_sandbox(run) as (world, sandbox):
        arms = {ALONE: (0, 0), STOPPED: (0, 5), READ: (5, 5)}
        measured = [{arm: {"mib_per_second": written_beside(world, sandbox, *arms[arm])}
                     for arm in random.sample(list(arms), len(arms))} for _ in range(run.rounds)]
    return Measured(measured)


def written_beside(world: EngineWorld, sandbox: str, eager: int, stopped: int) -> float:
    """How fast a command can write while these read along; the stopped ones never take a byte."""
    # What it writes before it waits lets every reader see that its stream is open.
    script = f"echo; read go </tmp/go; exec head -c {OUTPUT_BYTES} /dev/zero"
    world.sandboxes.run(sandbox, "sh", "-c", "rm -f /tmp/go; mkfifo /tmp/go")
    running = world.sandboxes.start(sandbox, "sh", "-c", script)
    streams = [world.sandboxes.read(running) for _ in range(eager + stopped)]
    try:
        for stream in streams:
            stream.initial_metadata()  # waits for it
            if not stream.is_active():
                raise RuntimeError(f"a reader was refused: {stream.details()}")
        with ThreadPoolExecutor(eager + 1) as pool:
            readers = [pool.submit(bytes_of, stream) for stream in streams[:eager]]
            world.sandboxes.run(sandbox, "sh", "-c", "echo >/tmp/go")
            began = time.monotonic()
            world.sandboxes.wait(running)
            taken = time.monotonic() - began
        for reader in readers:
            if (received := reader.result()) != OUTPUT_BYTES + 1:
                raise RuntimeError(f"a reader received {received} bytes of {OUTPUT_BYTES + 1}")
    finally:
        for stream in streams:
            stream.cancel()
    return OUTPUT_BYTES / (1 << 20) / taken


def bytes_of(stream) -> int:
    return sum(len(response.data) for response in stream)


def measure_effort(run: Run) -> Measured:
    measured = []
    with engine_world(run) as world:
        arms = {OURS: world.sandboxes, RAW: world.raw}
        for _ in range(run.rounds):
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


def measure_cpu(run: Run) -> Measured:
    with one_sandbox(run) as (world, sandbox):
        arms = {OURS: ("ours", CPU_EXECS, world.daemon.socket, sandbox),
                RAW: ("engine", CPU_ENGINE_EXECS, world.engine.socket, container(sandbox))}
        for arm in arms.values():  # once unmeasured
            cpu_per_exec(run.build, world, *arm)
        return Measured([{arm: {"cpu_ms": cpu_per_exec(run.build, world, *arms[arm])}
                          for arm in random.sample(list(arms), len(arms))} for _ in range(run.rounds)])


def cpu_per_exec(build: Path, world: EngineWorld, mode: str, execs: int, socket: Path, name: str) -> float:
    before = world.whole_cpu_ms()
    subprocess.run([str(build / "bench" / "exec_bench"), mode, str(execs), str(socket), name], check=True,
                   timeout=600)
    return (world.whole_cpu_ms() - before) / execs


EXEC = Row(
    name="exec",
    title="one command from CreateExec to its terminal event, the engine's API and docker exec",
    rounds=1000, check_rounds=1000, setup_s=8, round_s=0.11,
    measure=measure_alone,
    engines=ENGINES,
    gates=(Gate("ms", OURS, RAW, engine="20.10", today=0.0775, at_most=0.0845),
           Gate("ms", OURS, RAW, engine="28", today=0.0773, at_most=0.0845)),
    aims=(Aim("ms", OURS, RAW, at_most=0.035),
          Aim("ms", OURS, at_most=1.4), Aim("ms", OURS, quantile=0.99, at_most=8)),
)

CPU = Row(
    name="exec-cpu",
    title="CPU of one command, in the daemon, the engine and the container; the engine's API",
    rounds=10, check_rounds=10, setup_s=8, round_s=3,
    measure=measure_cpu,
    engines=ENGINES,
    gates=(Gate("cpu_ms", OURS, RAW, engine="20.10", today=0.0607, at_most=0.068),
           Gate("cpu_ms", OURS, RAW, engine="28", today=0.06, at_most=0.068)),
)

CROWD = Row(
    name="execs",
    title="commands per second with 8 and 32 at once, the engine's API and docker exec",
    rounds=10, check_rounds=5, setup_s=8, round_s=11,
    measure=measure_crowds,
    engines=ENGINES,
    gates=tuple(Gate("per_second", at_once_of(OURS, at_once), at_once_of(RAW, at_once), engine=engine,
                     today=today, at_least=at_least)
                for engine, at_once, today, at_least in (("20.10", 8, 28.8, 24), ("20.10", 32, 39.1, 34),
                                                         ("28", 8, 15.3, 12), ("28", 32, 19.9, 17.5))),
    aims=tuple(Aim("per_second", at_once_of(OURS, at_once), at_least=1500) for at_once in CROWDS),
)

OUTPUT = Row(
    name="output",
    title="256 MiB of output through agbox exec run, and docker exec of the same command",
    rounds=30, check_rounds=10, setup_s=8, round_s=1.5,
    measure=measure_output,
    engines=("28",),
    # Ours is also in a file by then.
    gates=(Gate("mib_per_second", OURS, CLI, today=1.36, at_least=1.1),),
)

READERS = Row(
    name="readers",
    title="256 MiB written by a command, without and with readers that have stopped reading",
    rounds=30, check_rounds=10, setup_s=8, round_s=3,
    measure=measure_readers,
    engines=("28",),
    # Eager readers take their share of the cores; stopped ones must not take anything.
    gates=(Gate("mib_per_second", STOPPED, ALONE, today=0.964, at_least=0.9),),
)

EFFORT = Row(
    name="effort",
    title="CPU of one sandbox's life: create, ten commands, delete; the engine's API",
    rounds=30, check_rounds=10, setup_s=8, round_s=3,
    measure=measure_effort,
    engines=ENGINES,
    gates=(Gate("cpu_ms", OURS, RAW, engine="20.10", today=0.593, at_most=0.67),
           Gate("cpu_ms", OURS, RAW, engine="28", today=0.523, at_most=0.6),),
    aims=(Aim("cpu_ms", OURS, RAW, at_most=0.6),),
)
