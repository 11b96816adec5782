# SPDX-License-Identifier: Apache-2.0
"""The events of all sandboxes in one stream: every one once, in one order, across crashes of the daemon."""

import collections
import json

import grpc
import pytest
from support.images import make_image
from support.sandboxes import CONFIG, DELETED, READY, connected, left_over, restarted, started, wait_until

pytestmark = pytest.mark.engines("28")

NOW, OLDEST = 1, 2
SANDBOXES = [f"all-{number:02}" for number in range(20)]


@pytest.fixture
def daemon(make_daemon, test_user, engine):
    return started(make_daemon(user=test_user, engine=engine, config=CONFIG))


@pytest.fixture
def image(engine):
    return make_image(engine.api, "all-events:1")


class Reader:
    """Remembers all events and the cursor, as a client that is killed and started again would."""

    def __init__(self):
        self.cursor = ""
        self.events = []

    def read(self, sandboxes, is_done):
        """Until `is_done()`, which is asked after every message; or until the daemon is gone."""
        start = {"cursor": self.cursor} if self.cursor else {"start": OLDEST}
        stream = sandboxes.stub.SubscribeEvents(
            sandboxes.service.SubscribeEventsRequest(**start), timeout=90
        )
        try:
            for message in stream:
                self.cursor = message.cursor
                assert not message.events_missing
                if message.HasField("event"):
                    self.events.append(message.event)
                if is_done(message):
                    return
        finally:
            stream.cancel()

    def count(self, state):
        return len({event.sandbox_id for event in self.events if event.sandbox_state == state})


def without_replay(event):
    copy = type(event).FromString(event.SerializeToString())
    copy.replay = False
    return copy.SerializeToString(deterministic=True)


def test_one_stream_has_the_events_of_all_sandboxes_once_across_crashes(
    daemon, contract, image, engine
):
    reader = Reader()
    for life in range(3):
        with connected(daemon, contract) as sandboxes:
            for sandbox_id in SANDBOXES[life::3]:
                sandboxes.create(sandbox_id, image, labels={"wave": str(life)})
            # Not all of it: the rest happens, or is read, after the next crash.
            reader.read(sandboxes, lambda _, wanted=2 * (life + 1): reader.count(READY) >= wanted)
        daemon.kill()
        restarted(daemon)
    with connected(daemon, contract) as sandboxes:
        for life in range(3):
            request = sandboxes.service.DeleteSandboxesRequest(label_selector={"wave": str(life)})
            sandboxes.stub.DeleteSandboxes(request, timeout=30)
        reader.read(sandboxes, lambda _: reader.count(DELETED) == len(SANDBOXES))
        of_sandbox = collections.defaultdict(list)
        for event in reader.events:
            of_sandbox[event.sandbox_id].append(without_replay(event))
        assert dict(of_sandbox) == {
            sandbox_id: [without_replay(event) for event in sandboxes.history(sandbox_id)]
            for sandbox_id in SANDBOXES
        }
        again = Reader()
        again.read(sandboxes, lambda message: message.caught_up)
        assert [without_replay(event) for event in again.events] == [
            without_replay(event) for event in reader.events
        ]
        assert all(event.replay for event in again.events)
        assert again.cursor == reader.cursor
        # What a killed daemon had requested of the engine may be made late; then it is removed.
        wait_until(lambda: left_over(engine) == [], "the engine to have nothing left")


def test_the_command_line_filters_and_resumes(daemon, contract, image, engine):
    with connected(daemon, contract) as sandboxes:
        def printed(*arguments):
            out = daemon.agbox("events", "--all", "--json", *arguments).stdout
            return [json.loads(line) for line in out.splitlines()]

        [now] = printed("--since-cursor", "now")
        assert now["event"] is None and now["caught_up"]
        sandboxes.create_ready("red-1", image, labels={"team": "red"})
        sandboxes.create_ready("blue-1", image, labels={"team": "blue"})
        since = printed("--since-cursor", now["cursor"])
        types = [(line["event"]["sandbox_id"], line["event"]["sequence"]) for line in since[:-1]]
        assert sorted(types) == [(box, str(n)) for box in ("blue-1", "red-1") for n in (1, 2, 3)]
        ready = printed("--label", "team=red", "--type", "SANDBOX_READY")
        assert [line["event"]["event_id"] for line in ready[:-1]] == ["red-1-3"]
        assert printed("--since-cursor", since[2]["cursor"]) == since[3:]
        lines = daemon.agbox("events", "--all", "--label", "team=blue").stdout.splitlines()
        assert [line.split()[0] for line in lines] == ["blue-1"] * 3

        request = sandboxes.service.SubscribeEventsRequest(cursor="00000000-1")
        with pytest.raises(grpc.RpcError) as refused:
            next(sandboxes.stub.SubscribeEvents(request, timeout=30))
        assert refused.value.code() == grpc.StatusCode.OUT_OF_RANGE
        for sandbox_id in ("red-1", "blue-1"):
            sandboxes.delete_wait(sandbox_id)
    assert left_over(engine) == []
