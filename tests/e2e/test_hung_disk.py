# SPDX-License-Identifier: Apache-2.0
"""A disk that does not respond any more, as one of the network does whose server is gone: it costs the sandboxes
that need it, and no other one, nor the end of the daemon."""

from pathlib import Path

import grpc
import pytest
from support.execs import run_in
from support.host_files import HostFiles
from support.hung_disk import hung_disk
from support.images import make_image
from support.sandboxes import CONFIG, DELETED, FAILED, READY, connected, left_over, started

pytestmark = pytest.mark.engines("28")

TURNS = 4  # copies that the daemon begins at a time


@pytest.fixture
def host(directory, test_user):
    return HostFiles(directory, test_user.uid)


@pytest.fixture
def disk(directory, test_user):
    with hung_disk(directory / "disk", test_user.uid) as disk:
        yield disk


@pytest.fixture
def daemon(make_daemon, test_user, engine):
    return started(make_daemon(user=test_user, engine=engine, config=CONFIG))


@pytest.fixture
def image(engine):
    return make_image(engine.api, "hung:1")


def waiting_for_disks(daemon) -> int:
    """Threads that wait for a filesystem of the test's kind."""
    return sum("fuse" in task.joinpath("stack").read_text() for task in Path(f"/proc/{daemon.pid}/task").iterdir())


def stops_while_it_hangs(daemon) -> None:
    # LeakSanitizer would wait for the thread that hangs.
    if not daemon.is_sanitized:
        assert daemon.stop() == 0


def test_a_mount_source_that_does_not_respond_is_refused_by_name_and_delays_no_other(
    daemon, contract, image, host, disk
):
    with connected(daemon, contract) as sandboxes:
        def mount(source):
            return [sandboxes.spec.MountSpec(source=str(source), target="/x")]

        disk.hang()
        hanging = sandboxes.begin_create("hanging", image, mounts=mount(disk.path))
        disk.wait_for_request()
        sandboxes.create_ready("healthy", image, mounts=mount(host.project))
        assert not hanging.done()
        assert run_in(sandboxes, "healthy", "cat /x/name") == (0, "project\n")

        expected = f"mount source {disk.path} has not been inspected within 15 s: its disk does not respond"
        refused = hanging.exception()
        assert refused.code() == grpc.StatusCode.FAILED_PRECONDITION and refused.details().startswith(expected), refused
        # From then on no thread more waits for it.
        assert waiting_for_disks(daemon) == 1
        for _ in range(3):
            with pytest.raises(grpc.RpcError) as again:
                sandboxes.create("hanging", image, mounts=mount(disk.path))
            assert again.value.details() == refused.details()
        assert waiting_for_disks(daemon) == 1
        # Nothing was reserved.
        assert [one.sandbox_id for one in sandboxes.page(include_deleted=True).sandboxes] == ["healthy"]
        sandboxes.delete_wait("healthy")
    stops_while_it_hangs(daemon)


def test_copies_that_do_not_respond_delay_no_other_and_are_deleted(daemon, engine, contract, image, host, disk):
    with connected(daemon, contract) as sandboxes:
        def copy(source):
            return [sandboxes.spec.CopySpec(source=str(source), target="/x")]

        disk.hang_at_content()
        hanging = [f"hanging-{number}" for number in range(TURNS)]
        for sandbox_id, file in zip(hanging, disk.files, strict=False):
            sandboxes.create(sandbox_id, image, copies=copy(file))
        for _ in hanging:
            disk.wait_for_reader()
        sandboxes.create_ready("healthy", image, copies=copy(host.project))
        assert run_in(sandboxes, "healthy", "cat /x/name") == (0, "project\n")
        for sandbox_id in hanging:
            sandboxes.delete(sandbox_id)
        for sandbox_id in hanging:
            sandboxes.wait(sandbox_id, DELETED)
        sandboxes.delete_wait("healthy")
    assert left_over(engine) == []
    stops_while_it_hangs(daemon)


@pytest.mark.long  # a disk has 90 s to respond
def test_a_copy_that_does_not_respond_fails_its_create_by_name(daemon, engine, contract, image, disk):
    with connected(daemon, contract) as sandboxes:
        disk.hang_at_content()
        copy = sandboxes.spec.CopySpec(source=str(disk.files[0]), target="/x")
        sandboxes.create("hanging", image, copies=[copy])
        last = sandboxes.follow("hanging", lambda event: event.sandbox_state in (READY, FAILED), timeout=300)[-1]
        expected = f"copy source {disk.files[0]}: nothing could be read for 90 s: its disk does not respond"
        assert expected in last.sandbox_phase.error_message, last
        assert left_over(engine) == []
        sandboxes.delete_wait("hanging")
    stops_while_it_hangs(daemon)
