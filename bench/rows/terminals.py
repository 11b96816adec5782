# SPDX-License-Identifier: Apache-2.0
"""Terminals in a sandbox: from a key to its echo through `agbox exec -it`, next to `docker exec -it` in the same
container, and what a daemon spends on 1,000 attached terminals that nobody types in."""
import contextlib
import os
import pty
import random
import select
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from engine_world import PATIENCE, EngineWorld, engine_world
from row import ENGINES, Aim, Gate, Measured, Row, Run
from rows.execs import container, one_sandbox
from server import cpu_ms, start_echo, subscribers, temporary_directory

OURS, CLI, POLLER = "agboxd", "docker exec -it", "10 ms poller"
KEYS = 50  # per round; its line must stay below the 4096 bytes that a terminal takes
READY, END_OF_INPUT = b"ready", b"\x04"
IDLE_TERMINALS, TERMINALS_PER_SANDBOX = 1_000, 250
IDLE_SECONDS = 5.0


class Typist:
    """A user at a terminal whose program echoes what is typed."""

    def __init__(self, command: list[str], environment: dict[str, str]):
        self._screen, programs_side = pty.openpty()
        try:
            self._process = subprocess.Popen(command, env=environment, stdin=programs_side, stdout=programs_side,
                                             stderr=programs_side, start_new_session=True)
        finally:
            os.close(programs_side)

    def __enter__(self) -> "Typist":
        self._read_until(READY)
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            if exception[0] is None:
                os.write(self._screen, b"\n" + END_OF_INPUT)
                if code := self._process.wait(PATIENCE):
                    raise RuntimeError(f"{self._process.args[0]}: ended with {code}")
        finally:
            os.close(self._screen)
            self._process.kill()
            self._process.wait()

    def echo_ms(self) -> float:
        """The median of some keys."""
        times = [self._press() for _ in range(KEYS)]
        os.write(self._screen, b"\n")
        self._read_until(b"x" * KEYS)  # what the program does with the line
        return statistics.median(times)

    def _press(self) -> float:
        began = time.monotonic()
        os.write(self._screen, b"x")
        self._read_until(b"x")
        return (time.monotonic() - began) * 1000

    def _read_until(self, wanted: bytes) -> None:
        seen = b""
        while wanted not in seen:
            if not select.select([self._screen], [], [], PATIENCE)[0]:
                raise RuntimeError(f"{self._process.args[0]}: {wanted!r} was not shown: {seen!r}")
            seen += os.read(self._screen, 1 << 16)


def measure_keystroke(run: Run) -> Measured:
    shell = ["sh", "-c", f"echo {READY.decode()}; exec cat"]
    with one_sandbox(run) as (world, sandbox):
        ours = Typist([str(run.build / "bin" / "agbox"), "exec", "-it", sandbox, *shell],
                      world.daemon.environment | {"TERM": "xterm"})
        theirs = Typist(["docker", "-H", world.engine.docker_host, "exec", "-it", container(sandbox), *shell],
                        dict(os.environ) | {"TERM": "xterm"})
        with ours, theirs:
            arms = {OURS: ours, CLI: theirs}
            measured = [{arm: {"echo_ms": arms[arm].echo_ms()} for arm in random.sample(list(arms), len(arms))}
                        for _ in range(run.rounds)]
    return Measured(measured)


@contextlib.contextmanager
def attached_terminals(world: EngineWorld, sandboxes: list[str]) -> Iterator[None]:
    """So many in each that read and write, and of which each shows nothing any more."""
    over = threading.Event()
    try:
        streams = [world.sandboxes.attach(world.sandboxes.start_terminal(name, "cat"), over)
                   for name in sandboxes for _ in range(TERMINALS_PER_SANDBOX)]
        for stream in streams:
            if (first := next(stream)).WhichOneof("message") != "attached":
                raise RuntimeError(f"a terminal was not attached: {first}")
        yield
    finally:
        over.set()


def measure_idle(run: Run) -> Measured:
    measured = []
    with engine_world(run) as world, temporary_directory() as directory, \
            start_echo(run.build, Path(directory)) as echo:
        made = [world.sandboxes.create() for _ in range(IDLE_TERMINALS // TERMINALS_PER_SANDBOX)]
        with attached_terminals(world, [created.name for created in made]), \
                subscribers(run.build, IDLE_TERMINALS, echo.socket_path, "poll"):
            time.sleep(0.5)  # what opening them set in motion comes to rest
            for _ in range(run.rounds):
                arms = {OURS: world.daemon.pid, POLLER: echo.process.pid}
                before = {arm: cpu_ms(pid) for arm, pid in arms.items()}
                time.sleep(IDLE_SECONDS)  # the time over which it is measured
                measured.append({arm: {"cpu_percent": (cpu_ms(pid) - before[arm]) / IDLE_SECONDS / 10}
                                 for arm, pid in arms.items()})
        for created in made:
            world.sandboxes.delete(created)
    return Measured(measured)


KEYSTROKE = Row(
    name="keystroke",
    title="from a key to its echo in agbox exec -it, and in docker exec -it",
    rounds=30, check_rounds=30, setup_s=8, round_s=0.1,
    measure=measure_keystroke,
    engines=ENGINES,
    # Ours is also in a file by then, and any number of clients can follow it.
    gates=(Gate("echo_ms", OURS, CLI, today=0.981, at_most=1.2),),
    aims=(Aim("echo_ms", OURS, CLI, at_most=0.5),),
)

IDLE = Row(
    name="idle-terminals",
    title="CPU of a daemon with 1,000 attached terminals in which nothing happens, and of a server that polls every 10 ms",
    rounds=3, check_rounds=3, setup_s=20, round_s=5,
    measure=measure_idle,
    engines=("28",),
    gates=(Gate("cpu_percent", OURS, POLLER, today=0.0061, at_most=0.01),),
    aims=(Aim("cpu_percent", OURS, at_most=0.2),),
)
