# SPDX-License-Identifier: Apache-2.0
"""Very many commands, fifty at a time: each has its own exit code, and none leaves anything."""

import os
import select
import time
from pathlib import Path
from statistics import median

import pytest

from support.execs import ENDS
from support.images import make_image
from support.process import all_processes, descendants, open_files, resident_bytes
from support.sandboxes import CONFIG, connected, left_over, started

BOX = "crowded"
AT_ONCE = 50
BATCHES = 5
MOST_KIB = {"daemon": 4.0, "guest": 0.1}  # of memory that an exec may leave
GRACE = 10.0


def run_many(sandboxes, name: str, count: int) -> dict[str, int]:
    """The exit code of each, by its id. A new one begins when one ends, so that many run at once."""
    service, stub = sandboxes.service, sandboxes.stub
    answers, codes = {}, {}

    def start(number: int) -> None:
        request = service.CreateExecRequest(
            sandbox_id=BOX,
            exec_id=f"{name}-{number}",
            command=["sh", "-c", f"echo {number}; exit {number % 100}"],
        )
        answers[request.exec_id] = stub.CreateExec.future(request, timeout=60)

    newest = sandboxes.get(BOX).last_event_sequence
    stream = sandboxes.subscribe(BOX, timeout=900, from_sequence=newest)
    for number in range(min(AT_ONCE, count)):
        start(number)
    begun = min(AT_ONCE, count)
    for event in stream:
        if event.event_type not in ENDS:
            continue
        assert event.exec.exec_id not in codes, "ended twice"
        assert answers.pop(event.exec.exec_id).result().exec_id == event.exec.exec_id
        codes[event.exec.exec_id] = event.exec.exit_code
        if len(codes) == count:
            break
        if begun < count:
            start(begun)
            begun += 1
    stream.cancel()
    return codes


def descriptors(pid: int) -> int:
    """How many it has open, without the empty files that the daemon keeps for execs to come."""
    return sum("/.spare-" not in name for name in open_files(pid))


def resident_kib(pid: int) -> float:
    return resident_bytes(pid) / 1024


def kib_per_exec(memory: list[float], batch: int) -> float:
    """The median of the batches: an allocator takes and returns memory in large pieces, a leak grows with each."""
    return median(after - before for before, after in zip(memory, memory[1:])) / batch


def guest_of(engine) -> int:
    processes = all_processes()
    found = [
        pid
        for pid in descendants(engine.processes(), processes)
        if processes[pid].name == ".agbox-guest"
    ]
    assert len(found) == 1
    return found[0]


def settled(look, expected):
    """Polls until the expected value: there is no notification when a process is reaped."""
    deadline = time.monotonic() + GRACE
    while (seen := look()) != expected and time.monotonic() < deadline:
        select.select([], [], [], 0.05)
    return seen


def test_thousands_of_execs_leave_nothing_behind(
    make_daemon, daemon_user, engine, contract, pytestconfig, say
):
    count = 20_000 if pytestconfig.getoption("--long") else 500
    image = make_image(engine.api, "crowd:1")
    config = CONFIG.replace("debug", "info")  # as users have it
    daemon = started(make_daemon(user=daemon_user, engine=engine, config=config))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready(BOX, image)
        guest = guest_of(engine)
        run_many(sandboxes, "warm", 4 * AT_ONCE)

        def children() -> int:
            return len(descendants([guest], all_processes()))

        assert settled(children, 0) == 0
        look = {"daemon": daemon.pid, "guest": guest}
        before = {name: descriptors(pid) for name, pid in look.items()}
        memory = {name: [resident_kib(pid)] for name, pid in look.items()}
        began = time.monotonic()
        codes = {}
        for batch in range(BATCHES):
            codes |= run_many(sandboxes, f"many-{batch}", count // BATCHES)
            for name, pid in look.items():
                memory[name].append(resident_kib(pid))
        seconds = time.monotonic() - began

        batch = count // BATCHES
        assert codes == {
            f"many-{which}-{number}": number % 100
            for which in range(BATCHES)
            for number in range(batch)
        }
        assert settled(children, 0) == 0, "no process and no zombie"
        for name, pid in look.items():
            had = before[name]
            assert settled(lambda pid=pid: descriptors(pid), had) == had, name
            kept = kib_per_exec(memory[name], batch)
            say(f"{name}: {kept:+.2f} KiB per exec: {[round(m / 1024, 1) for m in memory[name]]} MiB")
            assert kept < MOST_KIB[name], name
        say(f"{count / seconds:.0f} execs per second")

        logs = Path(sandboxes.stub.GetExec(
            sandboxes.service.GetExecRequest(exec_id="many-0-7"), timeout=30
        ).exec.stdout_log_path).parent
        for exec_id in codes:
            number = exec_id.rsplit("-", 1)[1]
            assert (logs / f"{exec_id}.stdout.log").read_text() == f"{number}\n"
        assert len(os.listdir(logs)) == 2 * (count + 4 * AT_ONCE)
        sandboxes.delete_wait(BOX)
    assert left_over(engine) == []


@pytest.mark.engines("28")
def test_a_guest_that_is_never_told_to_forget_an_exec_is_noticed(
    make_daemon, test_user, engine, contract, say
):
    """It keeps a little of each."""
    image, batch = make_image(engine.api, "crowd:1"), 100
    daemon = make_daemon(
        user=test_user,
        engine=engine,
        config=CONFIG.replace("debug", "info"),
        environment={"AGBOX_FAILPOINTS": "exec.forget.before=error"},
    )
    with connected(started(daemon), contract) as sandboxes:
        sandboxes.create_ready(BOX, image)
        guest = guest_of(engine)
        memory = [resident_kib(guest)]
        for which in range(BATCHES):
            run_many(sandboxes, f"many-{which}", batch)
            memory.append(resident_kib(guest))
        say(f"guest: {kib_per_exec(memory, batch):+.2f} KiB per exec: {memory} KiB")
        assert kib_per_exec(memory, batch) > MOST_KIB["guest"]
        sandboxes.delete_wait(BOX)
    assert left_over(engine) == []
