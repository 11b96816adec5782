# SPDX-License-Identifier: Apache-2.0
"""Commands that take all there is: their output's limit, the disk, every process. Whoever does that
meets a bound, and everybody else goes on."""

import contextlib
import os
import re
import time
from pathlib import Path

import grpc
import pytest
from support.execs import CANCELLED, FAILED, FINISHED, RUNNING, Execs, ends_of, errors, output
from support.hostile_sandbox import PIDS_LIMIT, hostile_program, pids_group
from support.images import Image, make_image
from support.loop_disk import loop_disk
from support.process import all_processes, descendants
from support.sandboxes import (
    CONFIG,
    connected,
    inside,
    inspect,
    left_over,
    primary,
    restarted,
    started,
    wait_until,
)
from support.watch import Watch

MIB = 1 << 20


def test_a_sandbox_at_its_output_limit_does_not_affect_others(
    make_daemon, daemon_user, engine, contract
):
    image = make_image(engine.api, "limits:1")
    config = f'{CONFIG}[artifacts]\nexec_output_max = "1MiB"\n'
    daemon = started(make_daemon(user=daemon_user, engine=engine, config=config))
    with connected(daemon, contract) as sandboxes:
        for box in ("loud", "quiet"):
            sandboxes.create_ready(box, image)
        loud, quiet = Execs(sandboxes, "loud"), Execs(sandboxes, "quiet")
        loud.create("sh", "-c", "yes | head -c 67108864; echo all of it >&2; exit 3", exec_id="much")
        status = quiet.run("sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x; exit 4")
        assert (status.exit_code, output(status)) == (4, "x" * 1_000_000)
        assert not status.output_truncated

        status = loud.wait("much")
        assert (status.exit_code, status.output_truncated) == (3, True)
        assert output(status) == "y\n" * (MIB // 2), "and not a byte from beyond the gap"
        assert errors(status) == "", "both streams share the limit"
        status = loud.run("echo", "on")
        assert (status.state, status.output_truncated, output(status)) == (FINISHED, False, "on\n")
        for box in ("loud", "quiet"):
            sandboxes.delete_wait(box)
    assert left_over(engine) == []


# --- a full disk ---------------------------------------------------------------------------------


@pytest.fixture
def small_disk(directory, test_user):
    """A filesystem of 64 MiB with nothing else on it, of the test user."""
    with loop_disk(directory, 64 * MIB) as place:
        yield test_user.own(place)


@pytest.fixture
def engine_with_disk(small_disk, make_engine):
    """Made after the disk, because an engine's world sees only what is mounted by then."""
    return make_engine("28")


@contextlib.contextmanager
def full(disk: Path):
    """Not a byte is left while the block lasts."""
    filler = os.open(disk / "filler", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        for size in (MIB, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    os.write(filler, b"x" * size)
        assert os.statvfs(disk).f_bavail == 0
        yield
    finally:
        os.close(filler)
        (disk / "filler").unlink()


def assert_refused(execs: Execs) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        execs.create("true", exec_id="too-much")
    assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    # The reserve for output is looked at first; the store's own is smaller.
    assert re.search("free some space there|free some space and try again", refused.value.details())


def test_on_a_full_disk_nothing_acknowledged_is_lost(
    small_disk, engine_with_disk, make_daemon, test_user, contract
):
    engine, acknowledged = engine_with_disk, {}
    image = make_image(engine.api, "limits:1")
    daemon = started(
        make_daemon(
            user=test_user,
            engine=engine,
            config=CONFIG,
            environment={"XDG_DATA_HOME": str(small_disk)},
        )
    )
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        execs = Execs(sandboxes, "box-1")
        for i in range(20):
            script = f"echo begin; until [ -e /tmp/go ]; do sleep 0.05; done; echo end; exit {i}"
            execs.create("sh", "-c", script, exec_id=f"exec-{i:02}")
            acknowledged[f"exec-{i:02}"] = i
        for exec_id in acknowledged:
            request = sandboxes.service.ReadExecOutputRequest(
                exec_id=exec_id, stream=1, follow=True
            )
            stream = sandboxes.stub.ReadExecOutput(request, timeout=30)
            assert next(stream).data == b"begin\n"
            stream.cancel()

    with full(small_disk):
        with connected(daemon, contract) as sandboxes:
            execs = Execs(sandboxes, "box-1")
            assert_refused(execs)
            # Running execs end all the same, and are reported.
            inside(engine, "box-1", "touch", "/tmp/go")
            for exec_id, code in acknowledged.items():
                assert execs.wait(exec_id).exit_code == code
        daemon.kill()
        with connected(restarted(daemon), contract) as sandboxes:
            execs = Execs(sandboxes, "box-1")
            assert {one.exec_id: one.exit_code for one in execs.all()} == acknowledged
            assert_refused(execs)

    with connected(daemon, contract) as sandboxes:
        execs = Execs(sandboxes, "box-1")
        status = execs.run("echo", "there is room", exec_id="too-much")
        assert (status.state, output(status)) == (FINISHED, "there is room\n")
        events = execs.events()
        for exec_id in acknowledged:
            assert ends_of(events, exec_id) == 1
            # Output to the full disk was dropped, and that was reported.
            status = execs.get(exec_id)
            assert output(status) == ("begin\n" if status.output_truncated else "begin\nend\n")

        # The disk can also be filled from inside: that ends at the reserve.
        status = execs.run("sh", "-c", f"head -c {128 * MIB} /dev/zero; exit 6", exec_id="fills")
        assert (status.state, status.exit_code, status.output_truncated) == (FAILED, 6, True)
        disk = os.statvfs(small_disk)
        assert disk.f_bavail * disk.f_frsize > disk.f_blocks * disk.f_frsize / 20 - 2 * MIB
        Path(status.stdout_log_path).unlink()
        assert execs.run("true").state == FINISHED
        sandboxes.delete_wait("box-1")
    assert left_over(engine) == []
    assert daemon.stop() == 0


# --- every process -------------------------------------------------------------------------------

def test_the_cancel_of_a_fork_bomb_leaves_nothing_alive(
    make_daemon, test_user, engine, contract, bin_dir, say
):
    """At the limit, where the processes leave the guest hardly any CPU time. Another exec of the
    sandbox goes on."""
    files = {"/hostile-sandbox": hostile_program(bin_dir).read_bytes()}
    image = make_image(engine.api, "fork-bomb:1", Image(files=files))
    daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        sandboxes.create_ready("box-2", image)
        with Watch(daemon, contract, "box-2", runs_commands=True) as quiet:
            quiet.wait_for(20)
        group = pids_group(engine, "box-1")
        limit = int((group / "pids.max").read_text())
        assert limit == inspect(engine, primary("box-1"))["HostConfig"]["PidsLimit"] == PIDS_LIMIT
        execs = Execs(sandboxes, "box-1")
        assert execs.run("mkfifo", "/tmp/go").state == FINISHED
        # Only with commands of the shell itself: a process can no longer be started then.
        execs.create("sh", "-c", "echo up; read x </tmp/go; exit 7", exec_id="bystander")
        execs.wait_for_output("bystander")
        execs.create("/hostile-sandbox", "multiply", exec_id="bomb")
        wait_until(lambda: int((group / "pids.current").read_text()) >= limit - 8, "a full group")
        with Watch(daemon, contract, "box-2", runs_commands=True) as beside:
            beside.wait_for(20)  # a neighbour keeps running
        say(f"beside a fork bomb of {limit} processes: {beside.beside(quiet)}")
        assert beside.slowdown(quiet) < 10

        cancelled_at = time.monotonic()
        execs.cancel("bomb")
        status = execs.wait("bomb")
        seconds = time.monotonic() - cancelled_at
        alive = living_below_the_guest(engine, group)
        say(f"a fork bomb of {limit} processes ended {seconds:.1f} s after its cancel")
        assert status.state == CANCELLED
        assert [name for name in alive if name != "sh"] == []
        assert seconds < 5, "the grace period of 2 s and 3 s; a starved guest took 30 to 100 s"
        assert execs.get("bystander").state == RUNNING
        assert execs.run("sh", "-c", "echo >/tmp/go").exit_code == 0
        assert execs.wait("bystander").exit_code == 7
        for box in ("box-1", "box-2"):
            sandboxes.delete_wait(box)
    assert left_over(engine) == []


def living_below_the_guest(engine, group: Path) -> list[str]:
    """Names of processes in the container besides the guest, without zombies."""
    processes = all_processes()
    inside_pids = {int(line) for line in (group / "cgroup.procs").read_text().split()}
    return [
        processes[pid].name
        for pid in inside_pids & descendants(engine.processes(), processes)
        if not processes[pid].zombie and processes[pid].name not in {".agbox-guest", "agbox-runner"}
    ]
