# SPDX-License-Identifier: Apache-2.0
"""ReadContainerLogs and agbox logs --container on real engines: services, restarts, and the end."""

import grpc
import pytest
from support.companions import COMPANION_READY, companion_container
from support.images import make_image
from support.sandboxes import CONFIG, connected, restarted, started, wait_until

# Prints bytes of every kind, then prints more or exits on request.
TALK = r"""
printf 'begin \000\033[2J\377\n'
echo problem >&2
while :; do
  if [ -e /say ]; then cat /say; rm /say; fi
  if [ -e /end ]; then rm /end; exit 3; fi
  sleep 0.05
done
"""
BEGIN = b"begin \0\x1b[2J\xff\n"
STDOUT, STDERR = 1, 2


@pytest.fixture
def daemon(make_daemon, test_user, engine):
    return started(make_daemon(user=test_user, engine=engine, config=CONFIG))


@pytest.fixture
def sandboxes(daemon, contract, engine):
    image = make_image(engine.api, "logs:1")
    talker = contract.spec.CompanionContainerSpec(name="db", image=image, command=["sh", "-c", TALK])
    with connected(daemon, contract) as client:
        client.create_ready("log-1", image, optional_services=[talker], command=["sh", "-c", "echo own; sleep 1000000"])
        client.follow("log-1", lambda event: event.event_type == COMPANION_READY)
        yield client


def tell(engine, script: str) -> None:
    engine.docker("exec", companion_container("log-1", "db"), "sh", "-c", script)


def say(engine, words: str) -> None:
    tell(engine, f"echo {words} > /new; mv /new /say")


def opened(sandboxes, container: str, **request):
    request = sandboxes.service.ReadContainerLogsRequest(sandbox_id="log-1", container=container, **request)
    return sandboxes.stub.ReadContainerLogs(request, timeout=60)


def read(sandboxes, container: str, **request) -> bytes:
    return b"".join(piece.data for piece in opened(sandboxes, container, **request))


def read_until(stream, wanted: bytes) -> bytes:
    seen = b""
    for piece in stream:
        seen += piece.data
        if wanted in seen:
            return seen
    raise AssertionError(f"the log ended after {seen!r}")


def answers(sandboxes) -> bool:
    """The connection that clients of this process share may still be that to the earlier daemon."""
    try:
        return bool(sandboxes.get("log-1"))
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNAVAILABLE, error
        return False


def refused(sandboxes, container: str, **request) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as error:
        list(opened(sandboxes, container, **request))
    return error.value.code(), error.value.details()


@pytest.mark.engines("20.10", "28")
def test_a_follower_goes_on_with_the_next_start_and_ends_with_the_sandbox(sandboxes, engine, daemon, contract):
    wait_until(lambda: read(sandboxes, "db", stream=STDERR) == b"problem\n", "its first lines")
    assert read(sandboxes, "db", stream=STDOUT) == BEGIN
    wait_until(lambda: read(sandboxes, "", stream=STDOUT) == b"own\n", "the output of the primary")
    assert read(sandboxes, "primary", stream=STDOUT) == b"own\n"
    code, message = refused(sandboxes, "web")
    assert code == grpc.StatusCode.NOT_FOUND and message.endswith('no container "web"; its containers are: primary, db')

    everything = opened(sandboxes, "db", follow=True, stream=STDOUT)
    newest = opened(sandboxes, "db", follow=True, stream=STDOUT, tail=0)
    assert next(newest).data == b"", "the log is open"
    say(engine, "hello")
    assert read_until(everything, b"hello\n") == BEGIN + b"hello\n"
    assert read_until(newest, b"hello\n") == b"hello\n"

    # It ends and is restarted: each line comes once.
    tell(engine, "touch /end")
    assert read_until(everything, BEGIN) == BEGIN
    assert read_until(newest, BEGIN) == BEGIN
    sandboxes.stop_wait("log-1")
    sandboxes.resume_wait("log-1")
    assert read_until(newest, BEGIN) == BEGIN
    say(engine, "last")
    assert read_until(newest, b"last\n") == b"last\n"

    # By the command line, across a restart of the daemon: nothing is lost or repeated.
    shown = daemon.agbox("logs", "log-1", "--container", "db", "--tail", "1", "--stream", "stdout", text=False)
    assert (shown.returncode, shown.stdout) == (0, b"last\n")
    last = list(opened(sandboxes, "db", stream=STDOUT))[-1]
    assert last.stream == STDOUT and last.time.ToNanoseconds() > 0
    newest.cancel()
    everything.cancel()
    daemon.stop()
    say(engine, "unseen")
    restarted(daemon)
    with connected(daemon, contract) as later:
        wait_until(lambda: answers(later), "a client that notices the restart")
        more = opened(later, "db", follow=True, stream=STDOUT, cursor=last.cursor)
        assert read_until(more, b"unseen\n") == b"unseen\n"
        last_one = opened(later, "db", follow=True, tail=0)
        assert next(last_one).data == b""
        later.delete_wait("log-1")
        assert b"".join(piece.data for piece in last_one) == b"", "it ends, without an error"
        code, message = refused(later, "db")
        assert code == grpc.StatusCode.NOT_FOUND and "is deleted" in message
