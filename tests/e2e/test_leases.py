# SPDX-License-Identifier: Apache-2.0
"""What becomes of the sandbox of `agbox run` if its client, the daemon or both are killed."""

import contextlib
import subprocess
from collections.abc import Iterator

import pytest
from support.daemon import PrivateDaemon
from support.images import make_image
from support.sandboxes import CONFIG, DELETED, READY, connected, left_over, started

pytestmark = pytest.mark.engines("28")

IMAGE = "cli/lease:1"


@pytest.fixture
def daemon(make_daemon, daemon_user, engine) -> PrivateDaemon:
    make_image(engine.api, IMAGE)
    return started(make_daemon(user=daemon_user, engine=engine, config=CONFIG))


@contextlib.contextmanager
def running(daemon: PrivateDaemon, name: str, script: str) -> Iterator[subprocess.Popen]:
    """agbox run, whose command runs."""
    argv = [str(daemon.bin_dir / "agbox"), "run", "--name", name, IMAGE, "sh", "-c", f"echo up; {script}"]
    with subprocess.Popen(daemon.user.command(argv) if daemon.user else argv, env=daemon.environment,
                          cwd=daemon.home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as run:
        try:
            assert run.stdout.readline() == "up\n"
            yield run
        finally:
            run.kill()


def deletion(sandboxes, name: str) -> tuple[str, float]:
    """The reason, and how many seconds after READY it was requested."""
    events = sandboxes.wait(name, DELETED)
    kinds = sandboxes.contract.event.EventType
    asked = [event for event in events if event.event_type == kinds.SANDBOX_DELETE_REQUESTED]
    ready = next(event for event in events if event.event_type == kinds.SANDBOX_READY)
    assert len(asked) == 1 and events[-1].sandbox_phase.reason == asked[0].sandbox_phase.reason
    elapsed = asked[0].occurred_at.ToNanoseconds() - ready.occurred_at.ToNanoseconds()
    return asked[0].sandbox_phase.reason, elapsed / 1e9


def test_the_sandbox_of_a_client_that_is_killed_is_deleted(daemon, engine, contract):
    with connected(daemon, contract) as sandboxes, running(daemon, "killed", "exec sleep 86400") as run:
        assert "lease_ttl=10s\n" in daemon.agbox("sandbox", "get", "killed").stdout
        run.kill()
        run.wait()
        reason, elapsed = deletion(sandboxes, "killed")
        assert reason == "lease_expired" and elapsed >= 9.99
    assert left_over(engine) == []


def test_a_run_survives_the_daemon_and_a_killed_run_does_not(daemon, engine, contract):
    wait_for_go = "while [ ! -e /tmp/go ]; do sleep 0.05; done; echo end; exit 4"
    with running(daemon, "goes-on", wait_for_go) as kept, running(daemon, "orphan", "exec sleep 86400") as orphan:
        assert daemon.stop() == 0, "the open calls do not delay it"
        started(daemon)
        daemon.kill()
        orphan.kill()
        orphan.wait()
        with connected(started(daemon), contract) as sandboxes:
            assert deletion(sandboxes, "orphan")[0] == "lease_expired"
            # The leases of both began at the same time.
            assert sandboxes.get("goes-on").state == READY
            assert daemon.agbox("exec", "goes-on", "touch", "/tmp/go").returncode == 0
            assert kept.communicate(timeout=60)[0] == "end\n"
            assert kept.returncode == 4
            assert deletion(sandboxes, "goes-on")[0] == "delete_requested"
    assert left_over(engine) == []
