# SPDX-License-Identifier: Apache-2.0
"""Guests that lie from the moment they are told to go. The daemon cuts them off; its memory, its
log and its time stay its own, and the sandbox next door notices nothing."""

import itertools
import shutil
import time

import grpc
import pytest
from support.images import Image, make_image
from support.process import cpu_seconds, resident_bytes, run
from support.sandboxes import CONFIG, connected, left_over, started
from support.watch import Watch

# What a guest says does not depend on the engine; its life on each is shown elsewhere.
pytestmark = pytest.mark.engines("28")

EXEC_RUNNING, EXEC_FAILED, EXEC_CANCELLED = 1, 3, 4  # the states
EXEC_ENDS = {10, 11, 12}  # the events
NEIGHBOURS_EXEC = "exec-of-the-neighbour"

# The lie, and what the daemon's log says of it.
LIES = {
    f"ends-others {NEIGHBOURS_EXEC}": "the end of an exec that it does not have",
    "floods": "an answer to a ping that was not sent",
    "too-long": "a frame that is empty or too long",
    "lists-without-end": "an endless list of execs",
    "no-secret": "no proof of this container start's secret",
    "comes-and-goes": "the guest closed it",
    "crowds": "too many are not authenticated yet",
}
# Lines like these are written at most once in this time per sandbox.
SECONDS_BETWEEN_LINES = 10


@pytest.fixture
def daemon(make_daemon, daemon_user, engine, bin_dir):
    """A daemon whose guest program is the hostile one. Where the image names no lie, that is the
    honest one."""
    config = CONFIG.replace("debug", "info")  # what is counted is what users get
    made = make_daemon(user=daemon_user, engine=engine, config=config)
    programs = made.directory / "programs"
    programs.mkdir(mode=0o700)
    for name in ("agbox", "agboxd"):
        shutil.copy2(made.bin_dir / name, programs / name)
    shutil.copy2(bin_dir.parent / "tests" / "hostile-guest", programs / "agbox-guest")
    if daemon_user:
        daemon_user.share(programs)
        run("setcap", "cap_net_admin+ep", programs / "agboxd")
    made.bin_dir = programs
    return started(made)


@pytest.fixture
def honest(engine):
    return make_image(engine.api, "honest:1")


@pytest.fixture
def lying(engine):
    """lying("floods"): an image whose guest behaves like this."""

    def make(lie):
        name = f"lies-{lie.split()[0]}:1"
        return make_image(engine.api, name, Image(files={"/lie": f"{lie}\n".encode()}))

    return make


def problems(daemon, sandbox_id):
    """What the log says went wrong with the sandbox's guest, oldest first."""
    return [
        line["problem"]
        for line in daemon.log()
        if line.get("sandbox_id") == sandbox_id and "problem" in line
    ]


def wait_for_problem(daemon, sandbox_id, problem, after=0):
    """A line of the log that says it, not among the first ones."""
    numbers = itertools.count()

    def is_it(text):
        is_later = next(numbers) >= after
        return is_later and f'"sandbox_id":"{sandbox_id}"' in text and problem in text

    daemon.process.wait_for_line(is_it, f"{sandbox_id}: {problem}", 60)


def test_liars_of_every_kind_at_once_cost_the_daemon_little(
    daemon, engine, contract, honest, lying
):
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("neighbour", honest)
        liars = {f"liar-{lie.split()[0]}": lie for lie in LIES}
        images = {liar: lying(lie) for liar, lie in liars.items()}
        memory = resident_bytes(daemon.pid)
        for liar, image in images.items():
            sandboxes.create_ready(liar, image)
        for liar, lie in liars.items():
            wait_for_problem(daemon, liar, LIES[lie])

        lines, cpu, start = len(daemon.log_lines()), cpu_seconds(daemon.pid), time.monotonic()
        with Watch(daemon, contract, "neighbour") as watch:
            for liar, lie in liars.items():
                wait_for_problem(daemon, liar, LIES[lie], after=lines)
        seconds = time.monotonic() - start
        cpu = cpu_seconds(daemon.pid) - cpu
        slowest = sorted(watch.times)
        print(
            f"{seconds:.1f} s, {len(daemon.log_lines()) - lines} lines, "
            f"{(resident_bytes(daemon.pid) - memory) >> 20} MiB more, {cpu / seconds:.0%} of a core; "
            f"{len(slowest)} answers, median {slowest[len(slowest) // 2] * 1000:.1f} ms, "
            f"slowest {slowest[-1] * 1000:.1f} ms"
        )
        # Not the slowest of all: the whole machine may stand still for a moment.
        assert slowest[len(slowest) * 95 // 100] < 1
        assert resident_bytes(daemon.pid) - memory < 64 << 20
        kinds = 2  # of lines: about connections that are refused, and about those that end
        bound = len(liars) * kinds * (1 + seconds / SECONDS_BETWEEN_LINES)
        assert len(daemon.log_lines()) - lines <= bound
        assert not problems(daemon, "neighbour")

        for sandbox in ("neighbour", *liars):
            sandboxes.delete_wait(sandbox)
        assert left_over(engine) == []


class Execs:
    """The exec calls of a client."""

    def __init__(self, sandboxes):
        self.stub, self.service = sandboxes.stub, sandboxes.service
        self.sandboxes = sandboxes

    def start(self, sandbox_id, exec_id, *command, **request):
        message = self.service.CreateExecRequest(
            sandbox_id=sandbox_id, exec_id=exec_id, command=command, **request
        )
        return self.stub.CreateExec(message, timeout=30)

    def get(self, exec_id):
        return self.stub.GetExec(self.service.GetExecRequest(exec_id=exec_id), timeout=10).exec

    def cancel(self, exec_id):
        self.stub.CancelExec(self.service.CancelExecRequest(exec_id=exec_id), timeout=10)

    def wait_end(self, sandbox_id, exec_id):
        self.sandboxes.follow(
            sandbox_id,
            lambda event: event.event_type in EXEC_ENDS and event.exec.exec_id == exec_id,
        )
        return self.get(exec_id)


def test_a_guest_cannot_end_the_exec_of_a_neighbour(daemon, contract, honest, lying):
    lie = f"ends-others {NEIGHBOURS_EXEC}"
    with connected(daemon, contract) as sandboxes:
        execs = Execs(sandboxes)
        sandboxes.create_ready("neighbour", honest)
        execs.start("neighbour", NEIGHBOURS_EXEC, "/bin/sleep", "1000")
        sandboxes.create_ready("liar", lying(lie))
        # By its second line it has come back several times and claimed to have the exec.
        wait_for_problem(daemon, "liar", LIES[lie])
        wait_for_problem(daemon, "liar", LIES[lie], after=len(daemon.log_lines()))
        assert execs.get(NEIGHBOURS_EXEC).state == EXEC_RUNNING
        assert not execs.get(NEIGHBOURS_EXEC).output_truncated
        execs.cancel(NEIGHBOURS_EXEC)
        assert execs.wait_end("neighbour", NEIGHBOURS_EXEC).state == EXEC_CANCELLED
        execs.start("neighbour", "exec-after", "/bin/sh", "-c", "exit 9")
        assert execs.wait_end("neighbour", "exec-after").exit_code == 9
        for sandbox in ("neighbour", "liar"):
            sandboxes.delete_wait(sandbox)


def test_a_false_end_is_told_once_and_harms_the_liar_alone(daemon, contract, honest, lying):
    with connected(daemon, contract) as sandboxes:
        execs = Execs(sandboxes)
        sandboxes.create_ready("neighbour", honest)
        sandboxes.create_ready("liar", lying("ends-running"))
        execs.start("liar", "exec-of-liar", "/bin/sleep", "1000")
        ended = execs.wait_end("liar", "exec-of-liar")
        assert (ended.state, ended.exit_code) == (EXEC_FAILED, 42)
        wait_for_problem(daemon, "liar", "the end of an exec that it does not have")
        execs.start("neighbour", "exec-after", "/bin/sh", "-c", "exit 9")
        assert execs.wait_end("neighbour", "exec-after").exit_code == 9
        ends = [event for event in sandboxes.history("liar") if event.event_type in EXEC_ENDS]
        assert [event.exec.exec_id for event in ends] == ["exec-of-liar"]
        for sandbox in ("neighbour", "liar"):
            sandboxes.delete_wait(sandbox)


def test_orders_for_a_guest_that_never_reads_are_answered_and_bounded(
    daemon, contract, honest, lying
):
    large = {"BIG": "x" * 100_000, **{f"BIG{i}": "x" * 100_000 for i in range(30)}}
    with connected(daemon, contract) as sandboxes:
        execs = Execs(sandboxes)
        sandboxes.create_ready("neighbour", honest)
        sandboxes.create_ready("liar", lying("deaf"))
        memory = resident_bytes(daemon.pid)
        given, refusals = 0, set()
        for number in range(40):
            try:
                execs.start("liar", f"exec-{number}", "/bin/true", env_overrides=large)
                given += 1
            except grpc.RpcError as error:
                refusals.add(error.code())
        assert 0 < given < 10
        assert refusals == {grpc.StatusCode.RESOURCE_EXHAUSTED}
        print(f"{given} orders, {(resident_bytes(daemon.pid) - memory) >> 20} MiB more")
        assert resident_bytes(daemon.pid) - memory < 128 << 20
        execs.start("neighbour", "exec-after", "/bin/sh", "-c", "exit 9")
        assert execs.wait_end("neighbour", "exec-after").exit_code == 9
        for sandbox in ("neighbour", "liar"):
            sandboxes.delete_wait(sandbox)
