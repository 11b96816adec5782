# SPDX-License-Identifier: Apache-2.0
"""Sandboxes that take whatever they can get: the engine's log, the guest's socket, the engine's disk.
The daemon and neighbours keep working; the slowdown is printed. Fork bombs and floods
of an exec's output are in test_exec_limits.py, guests that lie in test_hostile_guest.py."""

import contextlib
import json
import os
import signal
import time

import grpc
import pytest
from support.execs import FAILED as EXEC_FAILED
from support.execs import FINISHED, RUNNING, Execs, errors, output
from support.hostile_sandbox import guest_process, hostile_program
from support.images import Image, make_image
from support.loop_disk import loop_disk
from support.sandboxes import (
    CONFIG,
    FAILED,
    READY,
    connected,
    inside,
    inspect,
    left_over,
    primary,
    started,
    wait_until,
)
from support.watch import ON_A_BUSY_MACHINE, Watch

# What is tried does not depend on the engine; that it is held on each is in test_container_limits.py.
pytestmark = pytest.mark.engines("28")

MIB = 1 << 20
PROGRAM = "/hostile-sandbox"
ANSWERS = 30  # of a watch, idle and under attack


@pytest.fixture
def make_hostile_image(bin_dir):
    def make(engine):
        files = {PROGRAM: hostile_program(bin_dir).read_bytes()}
        return make_image(engine.api, "hostile-sandbox:1", Image(files=files))

    return make


def watched(daemon, contract) -> Watch:
    """Answers about the neighbour, and commands in it, when nothing else is going on."""
    with Watch(daemon, contract, "neighbour", runs_commands=True) as quiet:
        quiet.wait_for(ANSWERS)
    return quiet


def size_of_files(directory) -> int:
    """Of a directory in use by the engine: a file may disappear meanwhile."""
    size = 0
    for file in directory.iterdir():
        with contextlib.suppress(FileNotFoundError):
            size += file.stat().st_size
    return size


def test_what_a_container_writes_to_its_log_is_bounded(
    make_daemon, engine, contract, make_hostile_image, say
):
    image, written = make_hostile_image(engine), 64 * MIB
    daemon = started(make_daemon(engine=engine, config=CONFIG))
    # Not to be compressed much, in lines that are not too short for an engine to take so many.
    flood = f"base64 -w 1000 /dev/urandom | head -c {written}; touch /tmp/done; exec sleep 1000"
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("neighbour", image)
        quiet = watched(daemon, contract)
        sandboxes.create_ready("loud", image, command=["sh", "-c", flood])
        with Watch(daemon, contract, "neighbour", runs_commands=True) as beside:
            until_done = "until [ -e /tmp/done ]; do sleep 0.1; done"
            assert Execs(sandboxes, "loud").run("sh", "-c", until_done).state == FINISHED
            beside.wait_for(1)
        container = inspect(engine, primary("loud"))["Id"]
        logs = engine.directory / "data" / "containers" / container / "local-logs"
        kept = size_of_files(logs)
        say(f"beside a flood of the container's output: {beside.beside(quiet)}; {kept / MIB:.0f} MiB kept")
        # Three files of 10 MB each, whatever the engine counts as one, and the copy of one that it is
        # compressing right now: the file goes only when its copy is whole.
        assert 10 * MIB < kept < 41 * MIB
        assert beside.slowdown(quiet) < ON_A_BUSY_MACHINE
        for box in ("neighbour", "loud"):
            sandboxes.delete_wait(box)
    assert left_over(engine) == []


def test_garbage_on_the_guests_socket_does_not_block_the_guest(
    make_daemon, engine, contract, make_hostile_image, pytestconfig, say
):
    """Anyone inside may connect while the guest is not: after a restart of the daemon, and for as long
    as the guest is held up. The runtime user of root's daemon is root, as the guest is; but none of it
    is the guest's process, so nothing that it says is read."""
    image = make_hostile_image(engine)
    connections = 1000 if pytestconfig.getoption("--long") else 50
    daemon = started(make_daemon(engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        for box in ("neighbour", "hostile"):
            sandboxes.create_ready(box, image)
        quiet = watched(daemon, contract)
        hostile = Execs(sandboxes, "hostile")
        assert hostile.run("mkfifo", "/tmp/up").state == FINISHED
        attack = f"echo >/tmp/up; exec {PROGRAM} garbage /.agbox-link/guest.sock {connections}"
        hostile.create("sh", "-c", attack, exec_id="garbage")
        # A guest that is held up before it has the order would not begin.
        inside(engine, "hostile", "sh", "-c", "read x </tmp/up")
    guest = guest_process(engine, "hostile")
    os.kill(guest, signal.SIGSTOP)
    try:
        daemon.kill()
        started(daemon)
        with connected(daemon, contract) as sandboxes:
            with Watch(daemon, contract, "neighbour", runs_commands=True) as beside:
                Execs(sandboxes, "hostile").wait_for_output("garbage", patience=180)
                beside.wait_for(1)
    finally:
        os.kill(guest, signal.SIGCONT)
    with connected(daemon, contract) as sandboxes:
        hostile = Execs(sandboxes, "hostile")
        status = hostile.wait("garbage")
        assert status.state == FINISHED
        say(f"beside garbage on a guest's socket: {beside.beside(quiet)}; {output(status).strip()}")
        assert output(status).startswith(f"{connections} connections")
        assert hostile.run("true").state == FINISHED, "the guest came in all the same"
        assert beside.slowdown(quiet) < ON_A_BUSY_MACHINE
        refusals = [line for line in daemon.log() if line["msg"].startswith("refused a connection")]
        assert refusals and all(line["sandbox_id"] == "hostile" for line in refusals)
        assert len(refusals) < 20, "a few lines, however many connections"
        assert all(line["problem"] == "it is another process's" for line in refusals)
        assert not [line for line in daemon.log() if line.get("library") == "protobuf"]
        for box in ("neighbour", "hostile"):
            sandboxes.delete_wait(box)
    assert left_over(engine) == []


def test_a_crowd_on_the_guests_socket_does_not_keep_the_guest_out(
    make_daemon, engine, contract, make_hostile_image, say
):
    """Root inside takes every connection that it can get when a daemon starts. What ended while no
    daemon ran is known all the same, about as soon as in a sandbox without a crowd."""
    image, racers = make_hostile_image(engine), 24
    daemon = started(make_daemon(engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        for box in ("neighbour", "hostile"):
            sandboxes.create_ready(box, image)
            execs = Execs(sandboxes, box)
            assert execs.run("mkfifo", "/tmp/end").state == FINISHED
            execs.create("sh", "-c", "echo up; read x </tmp/end; exit 7", exec_id=f"{box}-ends")
            execs.wait_for_output(f"{box}-ends")
        crowd = f"echo up; exec {PROGRAM} crowd /.agbox-link {racers}"
        Execs(sandboxes, "hostile").create("sh", "-c", crowd, exec_id="crowd")
        Execs(sandboxes, "hostile").wait_for_output("crowd")
    daemon.kill()
    for box in ("neighbour", "hostile"):
        inside(engine, box, "sh", "-c", "echo >/tmp/end")
    begin = time.monotonic()
    started(daemon)
    with connected(daemon, contract) as sandboxes:
        seconds = {}
        for box in ("neighbour", "hostile"):
            status = Execs(sandboxes, box).wait(f"{box}-ends")
            seconds[box] = time.monotonic() - begin
            assert (status.state, status.exit_code) == (EXEC_FAILED, 7)
        hostile = Execs(sandboxes, "hostile")
        assert hostile.get("crowd").state == RUNNING, "they still try"
        say(f"its end is known {seconds['hostile']:.2f} s after a start of the daemon, without a crowd"
            f" {seconds['neighbour']:.2f} s")
        assert seconds["hostile"] < max(10, 3 * seconds["neighbour"])
        for box in ("neighbour", "hostile"):
            sandboxes.delete_wait(box)
    assert left_over(engine) == []


def test_a_guest_that_does_not_answer_is_reported_until_it_does(make_daemon, engine, contract):
    """What keeps it from answering does not matter: here it is stopped, from outside."""
    image = make_image(engine.api, "silent-guest:1")
    daemon = started(make_daemon(engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("silent", image)
    guest = guest_process(engine, "silent")
    os.kill(guest, signal.SIGSTOP)
    try:
        daemon.kill()
        started(daemon)
        with connected(daemon, contract) as sandboxes:
            assert sandboxes.get("silent").isolation_unverified == "", "it may be about to connect"
            wait_until(lambda: sandboxes.get("silent").isolation_unverified, "the report")
            why = sandboxes.get("silent").isolation_unverified
            assert why.startswith("its guest has not answered for 30 s")
            assert sandboxes.get("silent").state == READY
            assert f"isolation: sandbox silent: {why}\n" in daemon.agbox("ping").stdout
            assert f"isolation_unverified={why}\n" in daemon.agbox("sandbox", "get", "silent").stdout
            [finding] = findings(daemon, "isolation")
            assert finding["verdict"] == "FINDING_VERDICT_BROKEN"
            assert finding["sentence"] == f"sandbox silent: {why}"
    finally:
        os.kill(guest, signal.SIGCONT)
    with connected(daemon, contract) as sandboxes:
        wait_until(lambda: not sandboxes.get("silent").isolation_unverified, "its verification", 20)
        assert "isolation: in place" in daemon.agbox("ping").stdout
        assert Execs(sandboxes, "silent").run("true").state == FINISHED
        sandboxes.delete_wait("silent")
    assert left_over(engine) == []


# --- what the engine opens -----------------------------------------------------------------------

# The engine opens both files at every start. A FIFO without a writer would block it forever, and
# with it every call about that container.
BLOCK_THE_ENGINE = "for f in passwd group; do rm /etc/$f; mkfifo /etc/$f; done"


def test_a_fifo_that_the_engine_would_open_at_the_next_start_is_replaced(
    make_daemon, engine, contract
):
    image = make_image(engine.api, "account-files:1")
    daemon = started(make_daemon(engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("hostile", image)
        execs = Execs(sandboxes, "hostile")
        # Root inside, and a process that would do it again during the shutdown.
        again = f"trap '{BLOCK_THE_ENGINE}' TERM; {BLOCK_THE_ENGINE}; echo up; while :; do sleep 1; done"
        execs.create("sh", "-c", again, exec_id="again")
        execs.wait_for_output("again")
        sandboxes.stop_wait("hostile")
        sandboxes.resume_wait("hostile")
        status = execs.run("sh", "-c", "test -f /etc/passwd -a -f /etc/group && id -un")
        assert (status.exit_code, output(status)) == (0, "root\n"), errors(status)
        sandboxes.delete_wait("hostile")
    assert left_over(engine) == []
    assert daemon.stop() == 0


# --- the engine's disk ---------------------------------------------------------------------------


@pytest.fixture
def engine_disk(directory):
    with loop_disk(directory, 256 * MIB) as disk:
        yield disk


def room(disk) -> int:
    """In bytes."""
    return os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize


def findings(daemon, check: str) -> list[dict[str, str]]:
    answer = json.loads(daemon.agbox("doctor", "--json", timeout=60).stdout)
    return [finding for finding in answer["findings"] if finding["check"] == check]


def test_a_sandbox_that_fills_the_engines_disk_does_not_stop_others(
    engine_disk, make_engine, make_daemon, test_user, contract, make_hostile_image, say
):
    engine = make_engine("28", arguments=("--data-root", str(engine_disk)))
    image = make_hostile_image(engine)
    daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
    # Before anything has happened the doctor says that it can.
    [quota] = findings(daemon, "layer-quota")
    assert quota["verdict"] == "FINDING_VERDICT_WARNING"
    assert f"in {engine_disk}): a sandbox can fill that disk" in quota["sentence"]
    with connected(daemon, contract) as sandboxes:
        for box in ("neighbour", "hostile"):
            sandboxes.create_ready(box, image)
        quiet = watched(daemon, contract)
        with Watch(daemon, contract, "neighbour", runs_commands=True) as beside:
            status = Execs(sandboxes, "hostile").run("sh", "-c", "cat /dev/zero > /tmp/fill")
            assert "No space left on device" in errors(status)
            assert room(engine_disk) < MIB
            beside.wait_for(ANSWERS)
        say(f"beside a full disk of the engine: {beside.beside(quiet)}")
        assert beside.slowdown(quiet) < ON_A_BUSY_MACHINE
        disks = [finding for finding in findings(daemon, "disk") if str(engine_disk) in finding["sentence"]]
        assert [disk["verdict"] for disk in disks] == ["FINDING_VERDICT_WARNING"]
        assert "has 0 MiB left" in disks[0]["sentence"]

        # There is no room for another one, and that is said; nothing of it is left.
        sandboxes.create("late", image)
        failed = sandboxes.follow("late", lambda event: event.sandbox_state in {READY, FAILED})[-1]
        assert failed.sandbox_state == FAILED
        told = failed.sandbox_phase.error_message
        assert told.endswith(f"; the engine's disk ({engine_disk}) has 0 MiB left: free some space there")
        sandboxes.delete_wait("late")
        sandboxes.delete_wait("hostile")
        assert room(engine_disk) > 64 * MIB
        sandboxes.create_ready("next", image)
        for box in ("neighbour", "next"):
            sandboxes.delete_wait(box)
    assert left_over(engine) == []
    assert daemon.stop() == 0


def test_a_disk_that_the_daemon_shares_with_the_engine_is_freed_by_a_delete(
    engine_disk, make_engine, make_daemon, test_user, contract, make_hostile_image, say
):
    """As on most machines. The culprit takes every block that becomes free, so the daemon has no more
    room than it set aside."""
    engine = make_engine("28", arguments=("--data-root", str(engine_disk / "engine")))
    image = make_hostile_image(engine)
    data = test_user.own(engine_disk / "daemon")
    environment = {"XDG_DATA_HOME": str(data)}
    daemon = make_daemon(user=test_user, engine=engine, config=CONFIG, environment=environment)
    started(daemon)
    with connected(daemon, contract) as sandboxes:
        for box in ("neighbour", "hostile"):
            sandboxes.create_ready(box, image)
        neighbour = Execs(sandboxes, "neighbour")
        neighbour.run("mkfifo", "/dev/shm/go")  # in memory: there will be no room anywhere else
        neighbour.create("sh", "-c", "read x < /dev/shm/go; exit 7", exec_id="goes-on")
        with Watch(daemon, contract, "neighbour") as quiet:
            quiet.wait_for(ANSWERS)
        Execs(sandboxes, "hostile").create(PROGRAM, "fill", "/tmp/fill")
        with Watch(daemon, contract, "neighbour") as beside:
            while room(engine_disk) > MIB / 8:
                beside.wait_for(1)
            for ask in (lambda: neighbour.create("true"), lambda: sandboxes.create("late", image)):
                with pytest.raises(grpc.RpcError) as refused:
                    ask()
                assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            [store] = findings(daemon, "store")
            assert store["verdict"] == "FINDING_VERDICT_BROKEN"
            assert "has no free space and refuses new work" in store["sentence"]
            beside.wait_for(ANSWERS)
        say(f"beside a full disk of engine and daemon: {beside.beside(quiet)}")
        assert beside.slowdown(quiet) < ON_A_BUSY_MACHINE
        # Running execs continue and their end is reported; and the culprit can be deleted.
        inside(engine, "neighbour", "sh", "-c", "echo > /dev/shm/go")
        assert neighbour.wait("goes-on").exit_code == 7
        sandboxes.delete_wait("hostile")
        daemon.wait_for_message("store's disk has free space again")
        assert neighbour.run("true").state == FINISHED
        sandboxes.delete_wait("neighbour")
    assert left_over(engine) == []
    assert daemon.stop() == 0
