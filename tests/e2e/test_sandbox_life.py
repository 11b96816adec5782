# SPDX-License-Identifier: Apache-2.0
"""The first life of a sandbox on a real engine: create, look, follow, delete."""

import pytest
from support.images import Image, make_image

READY, FAILED, DELETED = 2, 3, 6
CONFIG = '[network]\ndns = ["192.0.2.53"]\n'


@pytest.fixture
def stub(make_daemon, daemon_user, engine, contract):
    daemon = make_daemon(user=daemon_user, engine=engine, config=CONFIG).start()
    with daemon.channel() as channel:
        stub = contract.stub(channel)
        stub.daemon = daemon
        yield stub


def follow(stub, contract, sandbox_id, states):
    """Every event until one of the states is reached."""
    request = contract.service.SubscribeSandboxEventsRequest(sandbox_id=sandbox_id)
    events = []
    for event in stub.SubscribeSandboxEvents(request, timeout=60):
        events.append(event)
        if event.sandbox_state in states:
            return events
    raise AssertionError("the stream ended")


@pytest.mark.engines("20.10", "26", "28", "29")
def test_a_life(stub, contract, engine):
    make_image(engine.api, "life:test", Image())
    service, spec = contract.service, contract.spec
    request = service.CreateSandboxRequest(create_spec=spec.CreateSpec(image="life:test"), sandbox_id="life-1")
    created = stub.CreateSandbox(request, timeout=10).sandbox
    assert created.last_event_sequence == 1
    events = follow(stub, contract, "life-1", {READY, FAILED})
    assert events[-1].sandbox_state == READY, events[-1]
    assert [event.sequence for event in events] == [1, 2, 3]
    stub.DeleteSandbox(service.DeleteSandboxRequest(sandbox_id="life-1"), timeout=10)
    events = follow(stub, contract, "life-1", {DELETED})
    assert [event.sequence for event in events] == [1, 2, 3, 4, 5]
