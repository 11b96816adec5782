# SPDX-License-Identifier: Apache-2.0
"""What the engine opens when it starts a container: /etc/passwd and /etc/group, which root in a sandbox
can replace. A FIFO there would block the engine forever, and with it every call about that container."""

import io
import tarfile

import grpc
import pytest
from support.execs import FINISHED, Execs, errors
from support.images import Image, make_image
from support.sandboxes import (
    CONFIG,
    FAILED,
    connected,
    left_over,
    primary,
    started,
)

pytestmark = pytest.mark.engines("20.10", "28")

UNSAFE = "ACCOUNT_FILE_UNSAFE"
# How root inside prepares the next start, and what the daemon says of it.
TRAPS = {
    "fifo": ("rm /etc/passwd; mkfifo /etc/passwd", "/etc/passwd is a FIFO"),
    "group": ("rm /etc/group; mkfifo /etc/group", "/etc/group is a FIFO"),
    "link": ("mkfifo /tmp/pipe; ln -sf /tmp/pipe /etc/passwd", "leads to /tmp/pipe, which is a FIFO"),
    "device": ("ln -sf /dev/urandom /etc/passwd", "leads to /dev/urandom"),
    "volume": ("mkfifo /data/pipe; ln -sf /data/pipe /etc/passwd", "leads to /data/pipe"),
    "endless": ("rm /etc/passwd; truncate -s 100G /etc/passwd", "/etc/passwd has 107374182400 bytes"),
}
PATIENCE = 20  # seconds, for what takes one or two; a blocked engine takes minutes


@pytest.fixture
def own_engine(make_engine, engine_name):
    """A trap that works blocks the engine."""
    return make_engine(engine_name)


def failed(sandboxes, sandbox_id, after=0, patience=PATIENCE):
    """The event."""
    return sandboxes.follow(
        sandbox_id, lambda event: event.sequence > after and event.sandbox_state == FAILED,
        timeout=patience)[-1]


def test_a_container_whose_account_files_would_block_the_engine_is_not_started(
    make_daemon, own_engine, contract
):
    image = make_image(own_engine.api, "account-files:1", Image(volumes=["/data"]))
    daemon = started(make_daemon(engine=own_engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("neighbour", image)
        for box, (trap, words) in TRAPS.items():
            sandboxes.create_ready(box, image)
            status = Execs(sandboxes, box).run("sh", "-c", trap)
            assert status.exit_code == 0, errors(status)
            # At once: a guest that ends in peace puts the files back.
            own_engine.docker("kill", primary(box))
            event = failed(sandboxes, box)
            assert event.sandbox_phase.error_code == UNSAFE, event
            assert words in event.sandbox_phase.error_message, event
        # The same for every start, and it is reported why nothing runs.
        so_far = sandboxes.get("fifo").last_event_sequence
        sandboxes.resume("fifo")
        again = failed(sandboxes, "fifo", after=so_far)
        assert again.sandbox_phase.error_code == UNSAFE, again
        with pytest.raises(grpc.RpcError) as refused:
            Execs(sandboxes, "fifo").create("true")
        assert f"it has failed ({UNSAFE})" in refused.value.details()
        # Nothing hangs: neither the engine nor anything of others.
        assert Execs(sandboxes, "neighbour").run("true").state == FINISHED
        sandboxes.create_ready("late", image)
        # What root inside did can be undone from outside.
        own_engine.api.call("PUT", f"/containers/{primary('fifo')}/archive", query={"path": "/etc"},
                            body=archive("passwd", b"root:x:0:0:root:/root:/bin/sh\n"))
        sandboxes.resume_wait("fifo")
        for box in ("neighbour", "late", *TRAPS):
            sandboxes.delete_wait(box)
    assert left_over(own_engine) == []
    assert daemon.stop() == 0


def test_an_image_with_a_fifo_that_the_engine_would_open_is_refused(make_daemon, own_engine, contract):
    make_image(own_engine.api, "account-files:1")
    image = make_image(own_engine.api, "account-fifo:1",
                       Image(more=["RUN rm /etc/passwd && mkfifo /etc/passwd"]))
    daemon = started(make_daemon(engine=own_engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create("image", image)
        event = failed(sandboxes, "image")
        assert event.sandbox_phase.error_code == UNSAFE, event
        assert left_over(own_engine) == []
        sandboxes.delete_wait("image")
    assert daemon.stop() == 0


@pytest.mark.long
def test_a_delete_of_a_container_that_the_engine_hangs_over_has_an_end(
    make_daemon, own_engine, contract
):
    """Another program starts it, which nothing prevents."""
    image = make_image(own_engine.api, "account-files:1")
    daemon = started(make_daemon(engine=own_engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("hung", image)
        assert Execs(sandboxes, "hung").run("sh", "-c", TRAPS["fifo"][0]).exit_code == 0
        own_engine.docker("kill", primary("hung"))
        so_far = failed(sandboxes, "hung").sequence
        with pytest.raises(TimeoutError):
            own_engine.api.call("POST", f"/containers/{primary('hung')}/start", timeout=3)
        sandboxes.delete("hung")
        # Others do not notice.
        sandboxes.create_ready("neighbour", image)
        assert Execs(sandboxes, "neighbour").run("true").state == FINISHED
        sandboxes.delete_wait("neighbour")
        event = failed(sandboxes, "hung", after=so_far, patience=170)
        assert event.sandbox_phase.error_code == "SANDBOX_DELETE_FAILED", event
        assert "not removed within 120 s" in event.sandbox_phase.error_message, event
        assert "restart the engine" in event.sandbox_phase.error_message, event
        own_engine.kill9()
        own_engine.start()
        sandboxes.delete_wait("hung")
    assert left_over(own_engine) == []
    assert daemon.stop() == 0


def archive(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tree:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        tree.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
