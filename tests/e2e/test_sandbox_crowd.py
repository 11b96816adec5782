# SPDX-License-Identifier: Apache-2.0
"""Many sandboxes at once, next to foreign objects in the engine."""

import json
import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.images import make_image
from support.sandboxes import (
    CONFIG,
    FAILED,
    LABEL,
    READY,
    assert_one_history,
    connected,
    left_over,
    network,
    primary,
    started,
)

DELETE_REQUESTED = 7  # the event


@pytest.fixture
def daemon(make_daemon, test_user, engine):
    return started(make_daemon(user=test_user, engine=engine, config=CONFIG))


@pytest.fixture
def image(engine):
    return make_image(engine.api, "crowd:1")


class ForeignObjects:
    """Foreign containers and networks, with names and labels similar to ours."""

    def __init__(self, engine, image):
        self.engine, self.image = engine, image
        self.containers, self.networks = [], []

    def add_container(self, name, labels):
        body = {"Image": self.image, "Cmd": ["sleep", "100000"], "Labels": labels}
        made = self.engine.api.call(
            "POST", "/containers/create", query={"name": name}, json_body=body
        )
        self.containers.append(made.json()["Id"])
        return self.containers[-1]

    def add_network(self, name, labels):
        body = {"Name": name, "Labels": labels}
        made = self.engine.api.call("POST", "/networks/create", json_body=body)
        self.networks.append(made.json()["Id"])
        return self.networks[-1]

    def look(self):
        """All that the engine says about them, byte by byte."""
        paths = [f"/containers/{name}/json" for name in self.containers]
        paths += [f"/networks/{name}" for name in self.networks]
        return {path: self.engine.api.call("GET", path).body for path in paths}

    def remove(self):
        for name in self.containers:
            self.engine.api.call("DELETE", f"/containers/{name}", query={"force": "true"})
        for name in self.networks:
            self.engine.api.call("DELETE", f"/networks/{name}")


@pytest.fixture
def foreign(engine, image):
    made = ForeignObjects(engine, image)
    yield made
    made.remove()


@pytest.mark.engines("28")
def test_fifty_creates_each_deleted_at_a_random_moment_leave_nothing(
    daemon, engine, contract, image, foreign
):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    names = [f"crowd-{number}" for number in range(50)]
    # Another instance's sandbox, one without an instance, and one with our kind of name.
    theirs = {f"{LABEL}.instance": "someone", f"{LABEL}.sandbox-id": "crowd-1"}
    running = foreign.add_container("agbox-primary-crowd-0x", theirs)
    engine.api.call("POST", f"/containers/{running}/start")
    foreign.add_container("agbox-primary-crowd", {f"{LABEL}.sandbox-id": "crowd-2"})
    foreign.add_container("not-agbox-primary-crowd-3", {})
    foreign.add_network("agbox-net-crowd", theirs)
    foreign.add_network("agbox-net-crowd-50", {f"{LABEL}.sandbox-id": "crowd-3"})
    before = foreign.look()

    with connected(daemon, contract) as sandboxes:
        delays = {name: moments.uniform(0, 2) for name in names}

        def live(name):
            sandboxes.create(name, image)
            if name in names[:5]:  # however slow the machine is, some are deleted after they were ready
                sandboxes.wait(name, READY)
            time.sleep(delays[name])  # the moment of its delete, not a wait for anything
            return sandboxes.delete_wait(name)

        with ThreadPoolExecutor(len(names)) as pool:
            histories = list(pool.map(live, names))
        for events in histories:
            assert_one_history(events)
            assert [event.event_type for event in events].count(DELETE_REQUESTED) == 1
        # Otherwise no delete would have met a create in progress.
        assert any(READY not in {event.sandbox_state for event in events} for events in histories)
        assert list(sandboxes.page().sandboxes) == []
        assert len(sandboxes.page(include_deleted=True).sandboxes) == len(names)
    assert foreign.look() == before
    foreign.remove()
    foreign.containers, foreign.networks = [], []
    assert left_over(engine) == []
    assert daemon.stop() == 0
    links = daemon.directory / "data" / "agents-sandbox" / "state" / "links"
    assert list(links.glob("*/*")) == []


@pytest.mark.parametrize("what", ["container", "network"])
def test_a_foreign_object_with_our_name_fails_the_create_and_is_named(
    daemon, engine, contract, image, foreign, what
):
    name = primary("taken") if what == "container" else network("taken")
    labels = {f"{LABEL}.sandbox-id": "taken", f"{LABEL}.instance": "someone"}
    add = foreign.add_container if what == "container" else foreign.add_network
    holder = add(name, labels)
    before = foreign.look()
    with connected(daemon, contract) as sandboxes:
        sandboxes.create("taken", image)
        phase = sandboxes.follow("taken", lambda e: e.sandbox_state == FAILED)[-1].sandbox_phase
        assert phase.error_code == "SANDBOX_CREATE_FAILED"
        assert f"{what} {name} exists already (id {holder[:12]})" in phase.error_message
        sandboxes.delete_wait("taken")
    assert foreign.look() == before
    mine = json.dumps({"name": ["taken"]})
    query = {"filters": mine, "all": "true"}
    assert len(engine.api.call("GET", "/containers/json", query=query).json()) <= 1
    assert len(engine.api.call("GET", "/networks", query=query).json()) <= 1
