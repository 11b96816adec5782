# SPDX-License-Identifier: Apache-2.0
"""Images that the engine has not got yet, from a real registry."""

import base64
import json
import os
import re
import time

import pytest
from support.images import Image
from support.sandboxes import (
    CONFIG,
    FAILED,
    PREPARING,
    READY,
    connected,
    left_over,
    started,
)

pytestmark = pytest.mark.engines("28")


@pytest.fixture
def daemon(make_daemon, test_user, engine):
    return make_daemon(user=test_user, engine=engine, config=CONFIG)


@pytest.fixture
def forget_image(engine):
    """Takes pulled images away again: the next test is to miss them."""
    pulled = []
    yield pulled.append
    for reference in pulled:
        engine.api.call("DELETE", f"/images/{reference}", query={"force": "true"})


def requests_for_layers(registry):
    return [line for line in registry.log() if "GET /v2/" in line and "/blobs/" in line]


def test_twenty_creates_of_one_missing_image_pull_it_once(
    daemon, engine, contract, make_registry, forget_image
):
    registry = make_registry(engine)
    image = registry.push(engine.api, "wanted:1", Image(files={"/once": b"one"}))
    forget_image(image)
    names = [f"once-{number}" for number in range(20)]
    with connected(started(daemon), contract) as sandboxes:
        registry.freeze()  # all twenty wait for the same pull
        for name in names:
            sandboxes.create(name, image)
        for name in names:
            sandboxes.follow(name, lambda event: event.event_type == PREPARING)
        registry.thaw()
        for name in names:
            sandboxes.wait(name, READY)
        pulls = [entry for entry in daemon.log() if entry["msg"] == "pulling image"]
        assert len(pulls) == 1
        # The configuration and the one layer, each once.
        assert len(requests_for_layers(registry)) == 2, requests_for_layers(registry)
        for name in names:
            sandboxes.delete(name)
        for name in names:
            sandboxes.delete_wait(name)
    assert left_over(engine) == []


@pytest.mark.parametrize("fault", ["unknown", "broken"])
def test_a_failing_pull_is_told_in_the_registrys_words(
    daemon, engine, contract, make_registry, fault
):
    registry = make_registry(engine)
    image = registry.push(engine.api, "broken:1", Image(files={"/broken": fault.encode()}))
    if fault == "broken":
        registry.lose_layers()
    else:
        image = image.replace("broken:1", "nobody-made-it:7")
    with connected(started(daemon), contract) as sandboxes:
        sandboxes.create("failing", image)
        failed = sandboxes.follow("failing", lambda event: event.sandbox_state == FAILED)[-1]
        phase = failed.sandbox_phase
        assert phase.error_code == "SANDBOX_CREATE_FAILED"
        assert image in phase.error_message
        words = "unknown" if fault == "unknown" else "blob"
        assert words in phase.error_message.lower(), phase.error_message
        assert sandboxes.get("failing").error_message == phase.error_message
        assert left_over(engine) == []
        sandboxes.delete_wait("failing")


def test_credentials_come_from_the_docker_configuration(
    daemon, test_user, engine, contract, make_registry, forget_image
):
    registry = make_registry(engine, credentials=("agent", "secret word"))
    image = registry.push(engine.api, "private:1", Image(files={"/private": b"p"}))
    with connected(started(daemon), contract) as sandboxes:
        sandboxes.create("locked-out", image)
        failed = sandboxes.follow("locked-out", lambda event: event.sandbox_state == FAILED)[-1]
        assert "no basic auth credentials" in failed.sandbox_phase.error_message
        directory = test_user.own(daemon.home / ".docker")
        token = base64.b64encode(b"agent:secret word").decode()
        config = directory / "config.json"
        config.write_text(json.dumps({"auths": {registry.address: {"auth": token}}}))
        os.chown(config, test_user.uid, test_user.gid)
        forget_image(image)
        sandboxes.create_ready("let-in", image)
        assert not any("secret word" in line or token in line for line in daemon.log_lines())
        sandboxes.delete_wait("let-in")
        sandboxes.delete_wait("locked-out")


def test_a_long_pull_reports_at_most_once_a_second(
    daemon, engine, contract, make_registry, forget_image
):
    registry = make_registry(engine)
    files = {f"/noise-{number}": os.urandom(8 << 20) for number in range(4)}
    image = registry.push(engine.api, "large:1", Image(files=files))
    forget_image(image)
    with connected(started(daemon), contract) as sandboxes:
        registry.freeze()
        sandboxes.create("patient", image)
        daemon.wait_for_message("pulling image")
        time.sleep(1.1)  # a pull that takes less is not worth a report
        registry.thaw()
        events = sandboxes.wait("patient", READY)
        reports = [event for event in events if "pulling" in event.sandbox_phase.phase]
        assert reports
        for event in reports:
            assert event.event_type == PREPARING
            assert re.fullmatch(rf"pulling {re.escape(image)}: \d+ of \d+ layers(, \d+ of \d+ MiB)?",
                                event.sandbox_phase.phase)
        moments = [event.occurred_at.ToNanoseconds() for event in [events[1], *reports]]
        gaps = [after - before for before, after in zip(moments, moments[1:])]
        assert all(gap >= 0.95e9 for gap in gaps), gaps
        sandboxes.delete_wait("patient")


def test_a_delete_cancels_a_pull_without_other_waiters(
    daemon, engine, contract, make_registry
):
    registry = make_registry(engine)
    image = registry.push(engine.api, "unwanted:1", Image(files={"/unwanted": b"u"}))
    with connected(started(daemon), contract) as sandboxes:
        registry.freeze()
        sandboxes.create("unwanted", image)
        daemon.wait_for_message("pulling image")
        sandboxes.delete_wait("unwanted")
        registry.thaw()
    assert daemon.stop() == 0
