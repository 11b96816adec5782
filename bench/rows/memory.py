# SPDX-License-Identifier: Apache-2.0
"""Resident memory: of a daemon that has just connected to its engine, after 60 sandboxes have lived in it
and run 1,000 commands, and with 1,000 subscribers, each next to a bare gRPC echo."""
import random
import subprocess
from pathlib import Path

from engine_world import (
    NO_IMAGE, PrivateEngine, Sandboxes, connected_daemon, engine_world, private_engine, side_by_side)
from row import Aim, Gate, Measured, Row, Run
from server import memory_kib, start_echo, subscribers, temporary_directory

SANDBOXES = 60
EXECS_EACH = 17  # a little more than 1,000
AT_ONCE = 4
SUBSCRIBERS = 1000
OURS, ECHO, CROWDED_ECHO = "agboxd", "echo", "echo, 1,000 subscribers"
USED, CROWDED = "agboxd, 60 lives and 1,000 execs", "agboxd, 1,000 subscribers"


def measure_at_rest(run: Run) -> Measured:
    measured = []
    with private_engine(run.engine) as (engine, directories):
        arms = {OURS: lambda: daemon_at_rest(run.build, engine, directories.new_directory("d")),
                ECHO: lambda: echo_at_rest(run.build, directories.new_directory("echo"))}
        for _ in range(run.rounds):
            measured.append({arm: arms[arm]() for arm in random.sample(list(arms), len(arms))})
    return Measured(measured)


def daemon_at_rest(build: Path, engine: PrivateEngine, directory: Path) -> dict[str, float]:
    with connected_daemon(build, engine, directory) as daemon:
        ping(build, daemon.socket)
        return memory_kib(daemon.pid)


def echo_at_rest(build: Path, directory: Path) -> dict[str, float]:
    with start_echo(build, directory) as echo:
        ping(build, echo.socket_path)
        return echo.memory_kib()


def ping(build: Path, socket_path: Path) -> None:
    subprocess.run([str(build / "bench" / "ping_bench"), "1", f"arm={socket_path}"], check=True,
                   stdout=subprocess.DEVNULL, timeout=60)


def measure_in_use(run: Run) -> Measured:
    measured = []
    for _ in range(run.rounds):
        with engine_world(run) as world, temporary_directory() as directory, \
                start_echo(run.build, Path(directory)) as echo:
            results = {ECHO: echo.memory_kib()}
            for _ in range(SANDBOXES // AT_ONCE):
                side_by_side(lambda _: live(world.sandboxes), AT_ONCE)
            results[USED] = memory_kib(world.daemon.pid)
            failed = world.sandboxes.create(NO_IMAGE)
            with subscribers(run.build, SUBSCRIBERS, world.daemon.socket, failed.name):
                results[CROWDED] = memory_kib(world.daemon.pid)
            world.sandboxes.delete(failed)
            with subscribers(run.build, SUBSCRIBERS, echo.socket_path, "idle"):
                results[CROWDED_ECHO] = echo.memory_kib()
            measured.append(results)
    return Measured(measured)


def live(sandboxes: Sandboxes) -> None:
    created = sandboxes.create()
    for _ in range(EXECS_EACH):
        sandboxes.run(created.name, "true")
    sandboxes.delete(created)


AT_REST = Row(
    name="memory",
    title="resident memory of a daemon that has just connected to its engine, and of a bare gRPC echo",
    rounds=10, check_rounds=5, setup_s=5, round_s=1.5,
    measure=measure_at_rest,
    engines=("28",),
    # SQLite, Asio and the engine's client are in the process too. The number that matters is the
    # absolute one; the ratio detects that something heavy is linked or made at the start.
    gates=(Gate("rss_kib", OURS, ECHO, today=1.64, at_most=1.75),),
    aims=(Aim("rss_kib", OURS, at_most=12 * 1024),),
)

IN_USE = Row(
    name="used",
    title="resident memory after 60 sandboxes with 1,000 execs, and with 1,000 subscribers, and of a bare "
          "gRPC echo",
    rounds=1, check_rounds=1, setup_s=0, round_s=60,
    measure=measure_in_use,
    engines=("28",),
    # A stream of ours also has its cursor and its place in the feed: 22 KiB where gRPC alone needs 17.
    # The execs brought two threads along, for their files and for the readers of their output.
    gates=(Gate("rss_kib", USED, ECHO, today=2.14, at_most=2.3),
           Gate("rss_kib", CROWDED, CROWDED_ECHO, today=1.52, at_most=1.65)),
    aims=(Aim("rss_kib", USED, at_most=14 * 1024), Aim("rss_kib", CROWDED, at_most=30 * 1024)),
)
