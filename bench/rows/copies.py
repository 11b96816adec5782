# SPDX-License-Identifier: Apache-2.0
"""A project tree copied into a new sandbox, and the same tree by `tar | docker cp` into a container that
runs: 50,000 small files, and 1 GiB in ten files.

Ours is the difference between a create with the copy and one without, each from CreateSandbox sent to
SANDBOX_READY received. Neither arm pays for the one before: what that one wrote is on the disk, and its many
files are deleted after the last round only, because ext4 does not use an inode again for some minutes, and
searches for another one past all that were deleted in that time."""
import os
import random
import shlex
from pathlib import Path

from engine_world import Created, EngineWorld, engine_world
from row import ENGINES, Aim, Gate, Measured, Row, Run
from rows.cli import timed
from rows.execs import container, one_sandbox
from server import peak_memory_kib

OURS, RAW = "agboxd", "tar | docker cp"
FILES, GIB = "files_ms", "gib_ms"
OUR_CP, DOCKER_CP = "agbox cp", "docker cp"
FILES_OUT, GIB_OUT = "files_out_ms", "gib_out_ms"


def make_files(root: Path) -> Path:
    for directory in range(500):
        path = root / f"{directory // 50}" / f"{directory}"
        path.mkdir(parents=True)
        for number in range(100):
            (path / f"{number}.txt").write_bytes(b"x" * (500 + 37 * number))
    return root


def make_gib(root: Path) -> Path:
    root.mkdir()
    chunk = random.Random(1).randbytes(1 << 20)
    for number in range(10):
        with open(root / str(number), "wb") as file:
            for _ in range(1024 // 10 + (number < 1024 % 10)):
                file.write(chunk)
    return root


def ours(world: EngineWorld, source: Path) -> tuple[Created, float]:
    plain = world.sandboxes.create()
    world.sandboxes.delete(plain)
    copied = world.sandboxes.create(copies=[(str(source), "/workspace")])
    return copied, copied.ms - plain.ms


def raw(world: EngineWorld, source: Path) -> tuple[Created, float]:
    container = world.raw.create()
    docker = f"docker -H {world.engine.docker_host} cp - {container.name}:/workspace"
    return container, world.timed("sh", "-c", f"tar -C {shlex.quote(str(source))} -cf - . | {docker}")


def make_sources(world: EngineWorld) -> dict[str, Path]:
    return {FILES: make_files(world.sandboxes.directory / "files"), GIB: make_gib(world.sandboxes.directory / "gib")}


def measure(run: Run) -> Measured:
    measured, made = [], []
    with engine_world(run) as world:
        sources = make_sources(world)
        before = peak_memory_kib(world.daemon.pid)
        for _ in range(run.rounds):
            results = {OURS: {}, RAW: {}}
            for metric, source in sources.items():
                for arm, work in random.sample([(OURS, ours), (RAW, raw)], 2):
                    os.sync()
                    created, results[arm][metric] = work(world, source)
                    owner = world.sandboxes if arm == OURS else world.raw
                    if metric == FILES:
                        made.append((owner, created))
                    else:
                        owner.delete(created)
            measured.append(results)
        grown = peak_memory_kib(world.daemon.pid) - before
        for owner, created in made:
            owner.delete(created)
    return Measured(measured, [f"peak memory of the daemon: {grown} KiB more than before the first copy"])


def measure_cp(run: Run) -> Measured:
    measured = []
    with one_sandbox(run) as (world, sandbox):
        sources = make_sources(world)
        before = peak_memory_kib(world.daemon.pid)
        arms = {OUR_CP: ([str(run.build / "bin" / "agbox"), "cp"], world.daemon.environment, sandbox),
                DOCKER_CP: (["docker", "-H", world.engine.docker_host, "cp"], dict(os.environ), container(sandbox))}
        for number in range(run.rounds):
            results = {arm: {} for arm in arms}
            for metric, source in sources.items():
                out_metric = {FILES: FILES_OUT, GIB: GIB_OUT}[metric]
                for arm in random.sample(list(arms), len(arms)):
                    command, environment, name = arms[arm]
                    slug = f"{Path(command[0]).name}-{metric}-{number}"
                    inside, outside = f"{name}:/tmp/{slug}", world.sandboxes.directory / slug
                    os.sync()
                    results[arm][metric] = timed([*command, str(source), inside], environment)
                    os.sync()
                    results[arm][out_metric] = timed([*command, inside, str(outside)], environment)
                    if (arrived := size_of(outside)) != size_of(source):
                        raise RuntimeError(f"{arm}: {arrived} arrived of {source}")
            measured.append(results)
        grown = peak_memory_kib(world.daemon.pid) - before
    return Measured(measured, [f"peak memory of the daemon: {grown} KiB more than before the first copy"])


def size_of(tree: Path) -> tuple[int, int]:
    """How many files it has, and how many bytes they have."""
    sizes = [path.stat().st_size for path in tree.rglob("*") if path.is_file()]
    return len(sizes), sum(sizes)


ROW = Row(
    name="copies",
    title="50,000 files, and 1 GiB in ten files, copied at create, and tar | docker cp",
    rounds=5, check_rounds=3, setup_s=30, round_s=40,
    measure=measure,
    engines=ENGINES,
    gates=(Gate(FILES, OURS, RAW, today=0.4, at_most=0.8), Gate(GIB, OURS, RAW, today=0.403, at_most=0.8)),
)

CP = Row(
    name="cp",
    title="50,000 files, and 1 GiB in ten files, into and out of a sandbox that runs, by agbox cp and docker cp",
    rounds=3, check_rounds=3, setup_s=30, round_s=60,
    measure=measure_cp,
    engines=("28",),
    gates=tuple(Gate(metric, OUR_CP, DOCKER_CP, today=today, at_most=at_most) for metric, today, at_most in
                ((FILES, 0.244, 0.8), (FILES_OUT, 0.129, 0.8), (GIB, 0.839, 1), (GIB_OUT, 0.458, 0.8))),
    aims=(Aim(GIB, OUR_CP, DOCKER_CP, at_most=0.8),),
)
