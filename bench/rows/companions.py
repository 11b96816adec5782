# SPDX-License-Identifier: Apache-2.0
"""Services and companions of a sandbox.

`service`: from a required service that begins to answer its health check to SANDBOX_READY received, next
to the engine's own health check of the same container, both with an interval of one second. The service
begins to answer when the benchmark puts a file into its container, 0.5 to 1.5 s after its start. A round has
three, a third of the interval apart, because the engine's wait is anything up to an interval.

`companions`: from CreateSandbox sent until the sandbox and its three companions are ready, next to the
same containers made by hand, all at once."""
import random
import statistics
import time
from pathlib import Path

from engine_world import IMAGE, PATIENCE, EngineWorld, engine_world
from row import ENGINES, Aim, Gate, Measured, Row, Run

OURS, ENGINE, RAW = "agboxd", "engine's health check", "engine API by hand"
GATE = "/answers"  # the health check succeeds once this file exists
PROBE = ("CMD", "test", "-e", GATE)
NAMES = ("one", "two", "three")


def command(mark: str) -> list[str]:
    """Runs until it is killed, and is found by its mark."""
    return ["sh", "-c", "while :; do sleep 1000; done", mark]


def process_of(world: EngineWorld, mark: str) -> int:
    """Of the container, as the host knows it; waits until it runs."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for pid in world.processes():
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[:1] == [b"sh"] and mark.encode() in words:
                return pid
        time.sleep(0.005)
    raise RuntimeError(f"no process of a container has the mark {mark}")


def begin_to_answer(world: EngineWorld, mark: str, delay_s: float) -> float:
    """So long after the start, as a server that takes its time; when."""
    pid = process_of(world, mark)
    time.sleep(delay_s)  # what is measured, not waited for
    Path(f"/proc/{pid}/root{GATE}").touch()
    return time.monotonic()


def ours(world: EngineWorld, mark: str, delay_s: float) -> float:
    service = world.sandboxes.companion("service", *command(mark), probe=PROBE)
    name = world.sandboxes.begin(required_services=[service])
    began = begin_to_answer(world, mark, delay_s)
    sequence = world.sandboxes.wait_ready(name)
    ms = (time.monotonic() - began) * 1000
    world.sandboxes.delete_by_name(name, sequence)
    return ms


def by_the_engine(world: EngineWorld, mark: str, delay_s: float) -> float:
    check = {"Test": PROBE, "Interval": 1_000_000_000}
    body = {"Image": IMAGE, "Cmd": command(mark), "Healthcheck": check}
    made = world.api.call("POST", "/containers/create", json_body=body).json()["Id"]
    world.api.call("POST", f"/containers/{made}/start", timeout=PATIENCE)
    began = begin_to_answer(world, mark, delay_s)
    while world.api.call("GET", f"/containers/{made}/json").json()["State"]["Health"]["Status"] != "healthy":
        time.sleep(0.005)  # one hundredth of the median
    ms = (time.monotonic() - began) * 1000
    world.api.call("DELETE", f"/containers/{made}", query={"force": "true", "v": "true"}, timeout=PATIENCE)
    return ms


def measure_service(run: Run) -> Measured:
    measured = []
    with engine_world(run) as world:
        for number in range(run.rounds):
            phase = random.random()
            delays_s = [0.5 + (phase + third / 3) % 1 for third in range(3)]
            arms = [(OURS, ours), (ENGINE, by_the_engine)]
            measured.append({arm: {"ready_ms": statistics.mean(work(world, f"{arm}-{number}-{delay_s}", delay_s)
                                                               for delay_s in delays_s)}
                             for arm, work in random.sample(arms, 2)})
    return Measured(measured)


def measure_companions(run: Run) -> Measured:
    measured = []
    with engine_world(run) as world:
        def create() -> tuple[str, int, float]:
            companions = [world.sandboxes.companion(name, "sleep", "1000000") for name in NAMES]
            began = time.monotonic()
            name = world.sandboxes.begin(companion_containers=companions)
            sequence = world.sandboxes.wait_ready(name, NAMES)
            return name, sequence, (time.monotonic() - began) * 1000

        sample, sequence, _ = create()
        samples = [world.api.call("GET", f"/containers/agbox-cc-{sample}-{name}/json").json() for name in NAMES]

        def create_ours() -> float:
            name, sequence, ms = create()
            world.sandboxes.delete_by_name(name, sequence)
            return ms

        def create_by_hand() -> float:
            created = world.raw.create_with_companions(samples)
            world.raw.delete_with_companions(created, len(samples))
            return created.ms

        create_by_hand()  # once unmeasured, as the sample was
        for _ in range(run.rounds):
            arms = [(OURS, create_ours), (RAW, create_by_hand)]
            measured.append({arm: {"create_ms": work()} for arm, work in random.sample(arms, 2)})
        world.sandboxes.delete_by_name(sample, sequence)
    return Measured(measured)


SERVICE = Row(
    name="service",
    title="from a required service that answers to READY, and the engine's own health check every second",
    rounds=15, check_rounds=10, setup_s=8, round_s=13,
    measure=measure_service,
    engines=ENGINES,
    gates=(Gate("ready_ms", OURS, ENGINE, today=0.0735, at_most=0.2),),
)
COMPANIONS = Row(
    name="companions",
    title="one sandbox with three companions from create to all ready, and the engine's API",
    rounds=30, check_rounds=20, setup_s=10, round_s=5,
    measure=measure_companions,
    engines=ENGINES,
    gates=(Gate("create_ms", OURS, RAW, today=1.1, at_most=1.3),),
    aims=(Aim("create_ms", OURS, RAW, at_most=1.02),),
)
