# SPDX-License-Identifier: Apache-2.0
"""Very many commands, fifty at a time: each has its own exit code, and none leaves anything."""

import os
import select
import time
from pathlib import Path

from support.execs import ENDS
from support.images import make_image
from support.process import all_processes, descendants, open_files, resident_bytes
from support.sandboxes import CONFIG, connected, left_over, started

BOX = "crowded"
AT_ONCE = 50
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


def resident_mib(pid: int) -> float:
    return resident_bytes(pid) / (1 << 20)


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
    make_daemon, daemon_user, engine, contract, pytestconfig
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
        before = {name: (descriptors(pid), resident_mib(pid)) for name, pid in look.items()}
        began = time.monotonic()
        codes = run_many(sandboxes, "many", count)
        seconds = time.monotonic() - began

        assert codes == {f"many-{number}": number % 100 for number in range(count)}
        assert settled(children, 0) == 0, "no process and no zombie"
        for name, pid in look.items():
            had, memory = before[name]
            assert settled(lambda pid=pid: descriptors(pid), had) == had, name
            print(f"{name}: {resident_mib(pid) - memory:+.1f} MiB")
            assert resident_mib(pid) - memory < 8, name
        print(f"{count / seconds:.0f} execs per second")

        logs = Path(sandboxes.stub.GetExec(
            sandboxes.service.GetExecRequest(exec_id="many-7"), timeout=30
        ).exec.stdout_log_path).parent
        for number in range(count):
            assert (logs / f"many-{number}.stdout.log").read_text() == f"{number}\n"
        assert len(os.listdir(logs)) == 2 * (count + 4 * AT_ONCE)
        sandboxes.delete_wait(BOX)
    assert left_over(engine) == []
