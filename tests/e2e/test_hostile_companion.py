# SPDX-License-Identifier: Apache-2.0
"""Companions that are attacked: what their health check prints, how long it takes and how often they end
harms neither the daemon nor a terminal."""

import time
from pathlib import Path

import pytest
from support.companions import (
    COMPANION_FAILED,
    FAILED,
    companion_container,
    health_check,
    kinds,
    of_companion,
    statuses,
)
from support.execs import FINISHED, Execs
from support.images import make_image
from support.sandboxes import CONFIG, connected, left_over, started, wait_until

ESCAPES = r"\033]0;owned\007\033[2J\r\233"


@pytest.fixture
def hostile(make_daemon, test_user, engine, contract):
    """hostile("sh", "-c", ...): a ready sandbox with a companion whose health check is this."""
    image = make_image(engine.api, "hostile-companion:1")
    daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:

        def create(*test, command=("sleep", "1000000"), **check):
            evil = contract.spec.CompanionContainerSpec(
                name="evil", image=image, command=command,
                healthcheck=health_check(contract, "CMD", *test, **check),
            )
            sandboxes.create_ready("hostile-1", image, optional_services=[evil])
            return sandboxes

        create.daemon = daemon
        yield create
        sandboxes.delete_wait("hostile-1")
    assert left_over(engine) == []


def wait_failed(sandboxes):
    wait_until(lambda: statuses(sandboxes.get("hostile-1"))["evil"].state == FAILED, "its failure")
    return statuses(sandboxes.get("hostile-1"))["evil"]


def test_a_check_that_prints_without_end(hostile):
    sandboxes = hostile("yes", "gigabytes", interval=0.5, timeout=2, retries=1)
    execs = Execs(sandboxes, "hostile-1")
    slowest = 0.0
    while statuses(sandboxes.get("hostile-1"))["evil"].state != FAILED:
        began = time.monotonic()
        assert execs.run("true").state == FINISHED
        slowest = max(slowest, time.monotonic() - began)
    assert slowest < 5, "the daemon answers meanwhile"
    shown = wait_failed(sandboxes)
    assert shown.error_code == "CONTAINER_UNHEALTHY"
    assert len(shown.error_message) < 8192
    status = Path(f"/proc/{hostile.daemon.pid}/status").read_text()
    peak_kib = int(status.split("VmHWM:")[1].split()[0])
    assert peak_kib < 400 << 10


def test_a_check_that_never_ends_runs_once_of_ours(hostile, engine):
    sandboxes = hostile("sleep", "7654", interval=0.5, timeout=1, retries=2)
    assert "healthy" in wait_failed(sandboxes).error_message
    listed = engine.docker("top", companion_container("hostile-1", "evil")).stdout
    # The engine ends its own at their timeout.
    assert listed.count("sleep 7654") <= 2, listed


def test_no_terminal_interprets_what_a_companion_prints(hostile):
    sandboxes = hostile("sh", "-c", f"printf '{ESCAPES}'; exit 1", interval=0.3, timeout=2, retries=1)
    message = wait_failed(sandboxes).error_message
    assert "owned" in message
    texts = [message, hostile.daemon.agbox("sandbox", "get", "hostile-1").stdout,
             hostile.daemon.agbox("events", "hostile-1").stdout]
    for text in texts:
        assert "owned" in text
        assert not any(ord(letter) < 0x20 and letter != "\n" or 0x7F <= ord(letter) < 0xA0 for letter in text), text


def test_one_that_ends_at_once_does_not_keep_the_daemon_busy(hostile):
    sandboxes = hostile("true", command=("sh", "-c", "printf 'a%.0s' $(seq 5000); exit 9"))
    shown = wait_failed(sandboxes)
    assert len(shown.error_message) < 8192
    # By backoff: 0.1 s, 0.2 s, 0.4 s and so on.
    time.sleep(3)  # what is counted is what happens in this time
    assert statuses(sandboxes.get("hostile-1"))["evil"].restart_count <= 6
    assert kinds(of_companion(sandboxes.history("hostile-1"), "evil")) == [COMPANION_FAILED]
