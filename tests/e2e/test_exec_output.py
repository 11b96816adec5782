# SPDX-License-Identifier: Apache-2.0
"""ReadExecOutput on a real engine: every byte, in order, to every reader, without affecting the writer."""

import concurrent.futures
import hashlib
import os
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from support.images import Image, make_image
from support.process import run
from support.sandboxes import CONFIG, DELETED, Sandboxes, connected, primary, started

IMAGE = "exec/output:1"
BOX = "output-box"
STDOUT, STDERR = 1, 2
RUNNING, FINISHED, FAILED = 1, 2, 3


class Execs:
    """What a client does with the execs of BOX."""

    def __init__(self, sandboxes: Sandboxes):
        self.service, self.stub, self.sandboxes = sandboxes.service, sandboxes.stub, sandboxes

    def begin(self, *command: str, exec_id: str = "") -> Any:
        request = self.service.CreateExecRequest(sandbox_id=BOX, command=command, exec_id=exec_id)
        return self.stub.CreateExec(request, timeout=30)

    def get(self, exec_id: str) -> Any:
        return self.stub.GetExec(self.service.GetExecRequest(exec_id=exec_id), timeout=30).exec

    def wait(self, exec_id: str) -> Any:
        """Its last event."""
        ended = lambda event: event.exec.exec_id == exec_id and event.exec.exec_state > RUNNING  # noqa: E731
        return self.sandboxes.follow(BOX, ended)[-1]

    def stream(self, exec_id: str, stream: int = STDOUT, timeout: float = 120, **request) -> Any:
        message = self.service.ReadExecOutputRequest(exec_id=exec_id, stream=stream, **request)
        return self.stub.ReadExecOutput(message, timeout=timeout)

    def read(self, exec_id: str, stream: int = STDOUT, **request) -> bytes:
        pieces, offset = [], request.get("offset", 0)
        for answer in self.stream(exec_id, stream, **request):
            assert answer.offset == offset
            pieces.append(answer.data)
            offset += len(answer.data)
        return b"".join(pieces)

    def refusal(self, exec_id: str, stream: int = STDOUT, **request) -> grpc.StatusCode:
        with pytest.raises(grpc.RpcError) as refused:
            self.read(exec_id, stream, **request)
        return refused.value.code()


@pytest.fixture
def daemon(make_daemon, daemon_user, engine):
    make_image(engine.api, IMAGE)
    return started(make_daemon(user=daemon_user, engine=engine, config=CONFIG))


@pytest.fixture
def execs(daemon, contract) -> Iterator[Execs]:
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready(BOX, IMAGE)
        yield Execs(sandboxes)
    # On a connection of its own: a test that restarts the daemon leaves the other one broken.
    with connected(daemon, contract) as sandboxes:
        sandboxes.delete_wait(BOX)


def test_both_streams_from_any_offset(execs: Execs) -> None:
    execs.begin("mkfifo", "/tmp/go", exec_id="make-go")
    execs.wait("make-go")
    execs.begin("sh", "-c", "echo out; echo err >&2; read x </tmp/go; echo more; exit 3", exec_id="both")
    live = execs.stream("both", follow=True, offset=1)
    assert next(live).data == b"ut\n"
    live_errors = execs.stream("both", STDERR, follow=True)
    assert next(live_errors).data == b"err\n"
    live_errors.cancel()
    assert execs.read("both", STDERR) == b"err\n"
    execs.begin("sh", "-c", "echo >/tmp/go", exec_id="go-on")
    assert b"".join(answer.data for answer in live) == b"more\n", "and then it ends"
    status = execs.get("both")
    assert (status.state, status.exit_code) == (FAILED, 3)
    assert execs.read("both", follow=True) == b"out\nmore\n"
    assert execs.read("both", offset=9) == b""
    assert execs.refusal("both", offset=10) == grpc.StatusCode.OUT_OF_RANGE
    assert execs.refusal("both", offset=10, follow=True) == grpc.StatusCode.OUT_OF_RANGE
    assert execs.refusal("both", 0) == grpc.StatusCode.INVALID_ARGUMENT
    assert execs.refusal("no-such-exec") == grpc.StatusCode.NOT_FOUND


def test_one_that_is_never_started_says_why_before_its_stream_ends(
    make_daemon, daemon_user, engine, contract
) -> None:
    make_image(engine.api, IMAGE)
    armed = {"AGBOX_FAILPOINTS": "exec.send.before=error"}  # no guest gets it
    daemon = started(make_daemon(user=daemon_user, engine=engine, config=CONFIG, environment=armed))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready(BOX, IMAGE)
        execs = Execs(sandboxes)
        execs.begin("true", exec_id="unsent")
        live = execs.stream("unsent", STDERR, follow=True)
        engine.docker("rm", "--force", primary(BOX))
        end = execs.wait("unsent").exec
        assert (end.exec_state, end.error_code) == (FAILED, "CONTAINER_EXITED")
        reason = f"{end.error_message}\n".encode()
        assert b"".join(answer.data for answer in live) == reason
        assert execs.read("unsent", STDERR) == reason
        assert execs.read("unsent", STDOUT) == b""
        sandboxes.delete_wait(BOX)


def test_what_a_background_child_writes_later_is_read_by_offset(execs: Execs) -> None:
    execs.begin("mkfifo", "/tmp/go", exec_id="make-go")
    execs.wait("make-go")
    late = "(read x </tmp/go; head -c 1048576 /dev/zero; echo >/tmp/go) & echo early; exit 3"
    execs.begin("sh", "-c", late, exec_id="parent")
    assert execs.read("parent", follow=True) == b"early\n", "it ends although the child lives"
    assert execs.wait("parent").exec.exit_code == 3
    execs.begin("sh", "-c", "echo >/tmp/go; read x </tmp/go", exec_id="wake")
    execs.wait("wake")
    # The child has written all of it; what is not in the file yet is in its pipe.
    data = execs.read("parent", offset=6)
    assert len(data) > 1 << 19 and not data.strip(b"\0")


def test_ten_readers_agree_though_five_stall(execs: Execs, pytestconfig) -> None:
    size = (2 << 30) if pytestconfig.getoption("--long") else (256 << 20)
    expected = hashlib.sha256()
    for _ in range(size >> 20):
        expected.update(b"0123456789abcde\n" * (1 << 16))
    script = f"while :; do echo 0123456789abcde; done | head -c {1 << 20} >/tmp/piece; " + (
        f"read x </tmp/go; for i in $(seq {size >> 20}); do cat /tmp/piece; done")
    execs.begin("mkfifo", "/tmp/go", exec_id="make-go")
    execs.wait("make-go")
    execs.begin("sh", "-c", script, exec_id="much")

    def digest(stream) -> str:
        read = hashlib.sha256()
        for answer in stream:
            read.update(answer.data)
        return read.hexdigest()

    # The last ones are read when the others have ended.
    streams = [execs.stream("much", follow=True, timeout=900) for _ in range(10)]
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        eager = [pool.submit(digest, stream) for stream in streams[:5]]
        execs.begin("sh", "-c", "echo >/tmp/go", exec_id="go-on")
        assert execs.wait("much").exec.exec_state == FINISHED, "though five have not read a byte"
        assert os.path.getsize(execs.get("much").stdout_log_path) == size
        assert {future.result() for future in eager} == {expected.hexdigest()}
    assert {digest(stream) for stream in streams[5:]} == {expected.hexdigest()}


def test_the_file_is_whole_when_the_end_is_told(execs: Execs, pytestconfig) -> None:
    count = 1000 if pytestconfig.getoption("--long") else 100
    sizes: dict[str, int] = {}
    paths = {}
    events = execs.sandboxes.subscribe(BOX)
    for number in range(count):
        begun = execs.begin("head", "-c", str(1 << 20), "/dev/zero", exec_id=f"whole-{number}")
        paths[begun.exec_id] = begun.stdout_log_path
        for event in events:
            if event.exec.exec_state > RUNNING:
                assert event.exec.exec_state == FINISHED, event
                sizes[event.exec.exec_id] = os.path.getsize(paths[event.exec.exec_id])
                break
    events.cancel()
    assert sizes == {f"whole-{number}": 1 << 20 for number in range(count)}


# Whoever opens a file under a lease waits for its holder, for up to 45 seconds; the kernel takes the
# lower half of the register for the command.
LEASE = r"""
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>

int main(int, char** arguments) {
  const int log = open(arguments[1], O_RDONLY);
  if (log < 0) return 1;
  for (const long command : {1L * F_SETLEASE, 1L << 32 | F_SETLEASE, 1L * F_DUPFD_CLOEXEC}) {
    const long done = syscall(SYS_fcntl, log, command, F_WRLCK);
    puts(done < 0 ? strerror(errno) : "done");
  }
}
"""


def test_a_sandbox_takes_no_lease_on_its_logs(daemon, engine, contract, tmp_path) -> None:
    run("clang++-19", "-static", "-x", "c++", "-", "-o", tmp_path / "lease", input=LEASE)
    make_image(engine.api, "exec/lease:1", Image(files={"/lease": (tmp_path / "lease").read_bytes()}))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready(BOX, "exec/lease:1")
        execs = Execs(sandboxes)
        execs.begin("echo", "whole", exec_id="ended")
        execs.wait("ended")
        execs.begin("/lease", "/var/log/agents-sandbox/ended.stdout.log", exec_id="lease")
        refused = "Operation not permitted\n"
        assert execs.read("lease", follow=True).decode() == f"{refused}{refused}done\n"
        assert execs.read("ended") == b"whole\n"
        sandboxes.delete_wait(BOX)


def test_streams_do_not_hold_up_a_shutdown(execs: Execs, daemon) -> None:
    execs.begin("sh", "-c", "head -c 16777216 /dev/zero; echo up >&2; sleep 300", exec_id="open")
    waits = execs.stream("open", STDERR, follow=True)
    assert next(waits).data == b"up\n"
    stalls = execs.stream("open", follow=True)
    assert next(stalls).data[:1] == b"\0"
    began = time.monotonic()
    assert daemon.stop() == 0
    assert time.monotonic() - began < 5
    for stream in (waits, stalls):
        with pytest.raises(grpc.RpcError):
            list(stream)
    started(daemon)  # for the delete; the exec runs on


def test_after_the_purge_there_is_no_output(make_daemon, engine, contract) -> None:
    make_image(engine.api, IMAGE)
    config = CONFIG.replace("[runtime]\n", '[runtime]\nevent_retention_ttl = "1s"\n')
    daemon = started(make_daemon(engine=engine, config=config))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready(BOX, IMAGE)
        execs = Execs(sandboxes)
        path = execs.begin("echo", "x", exec_id="gone").stdout_log_path
        execs.wait("gone")
        # Open before the delete: a second after it none can be opened any more.
        events = sandboxes.subscribe(BOX)
        next(events)
        sandboxes.delete(BOX)
        assert any(event.sandbox_state == DELETED for event in events)
        daemon.wait_for_message("sandbox history purged")
        assert execs.refusal("gone") == grpc.StatusCode.NOT_FOUND
        assert not os.path.exists(path)
