# SPDX-License-Identifier: Apache-2.0
"""An attacker on the host who replaces the source of a mount or of a copy all the time, by a link and by a
directory that no sandbox may see: a sandbox shows what was accepted, or does not start."""

import collections
import itertools
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from support.execs import run_in
from support.host_files import HostFiles, swapped
from support.images import make_image
from support.sandboxes import CONFIG, FAILED, READY, connected, left_over, started

pytestmark = pytest.mark.engines("28")

LANES = 4  # as many as the daemon starts at a time
SHORT_RACE = 12  # seconds
PATIENCE = 60  # more seconds, until every end was seen
# "changed" was seen before the container was created, or before the copy; "exposed" only by the guest.
EVERY_END = {"mount": {"refused", "changed", "exposed", "ready"}, "copy": {"refused", "changed", "ready"}}


class Race:
    def __init__(self, sandboxes, image, host, how):
        self.sandboxes, self.image, self.host, self.how = sandboxes, image, host, how
        self.ends = collections.Counter()
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    @property
    def has_seen_every_end(self) -> bool:
        return EVERY_END[self.how] <= self.ends.keys()

    def run(self, goes_on) -> None:
        """Creates one sandbox after the other in each lane while `goes_on(number)` holds."""

        def lane():
            for number in iter(lambda: next(self._numbers), None):
                if not goes_on(number):
                    return
                end = self._round(f"race-{number}")
                with self._lock:
                    self.ends[end] += 1

        with ThreadPoolExecutor(LANES) as lanes:
            for done in [lanes.submit(lane) for _ in range(LANES)]:
                done.result()

    def _round(self, sandbox_id: str) -> str:
        spec = self.sandboxes.spec
        raced = {"source": str(self.host.project), "target": "/x"}
        wanted = {"mounts": [spec.MountSpec(source=str(self.host.out), target="/out", writable=True)], "copies": []}
        if self.how == "mount":
            wanted["mounts"].append(spec.MountSpec(**raced))
        else:
            wanted["copies"].append(spec.CopySpec(**raced))
        try:
            self.sandboxes.create(sandbox_id, self.image, command=["sh", "-c", "cat /x/name >> /out/seen; sleep 1000"],
                                  **wanted)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
            return "refused"
        last = self.sandboxes.follow(sandbox_id, lambda event: event.sandbox_state in (READY, FAILED))[-1]
        if last.sandbox_state == READY:
            assert run_in(self.sandboxes, sandbox_id, "cat /x/name") == (0, "project\n")
            end = "ready"
        else:
            message = last.sandbox_phase.error_message
            assert str(self.host.project) in message, last
            assert last.sandbox_phase.error_code == "MOUNT_CHANGED" or self.how == "copy", last
            end = "exposed" if message.startswith("mount target ") else "changed"
        self.sandboxes.delete_wait(sandbox_id)
        return end


@pytest.fixture
def begin(make_daemon, test_user, engine, contract, directory):
    """begin(how, goes_on) -> the race, once it is over."""

    def run(how, goes_on):
        host = HostFiles(directory, test_user.uid)
        daemon = make_daemon(user=test_user, engine=engine, config=CONFIG)
        # The daemon's own, which is refused by its identity, also under another name.
        forbidden = daemon.config_file.parent
        shutil.copy(host.secret / "name", forbidden / "name")
        with connected(started(daemon), contract) as sandboxes:
            race = Race(sandboxes, make_image(engine.api, "races:1"), host, how)
            with swapped(host.project, host.link, forbidden):
                race.run(lambda number: goes_on(race, number))
            seen = (host.out / "seen").read_text().split()
            assert set(seen) <= {"project"}, collections.Counter(seen)
            print(f"{how}: {sum(race.ends.values())} rounds: {dict(race.ends)}")
            assert race.has_seen_every_end, race.ends
        assert left_over(engine) == []

    return run


@pytest.mark.parametrize("how", ["mount", "copy"])
def test_a_race_shows_no_other_file(begin, how):
    end = time.monotonic() + SHORT_RACE

    def goes_on(race, _):
        now = time.monotonic()
        return now < end or (now < end + PATIENCE and not race.has_seen_every_end)

    begin(how, goes_on)


@pytest.mark.long
@pytest.mark.parametrize("how", ["mount", "copy"])
def test_a_race_of_2000_rounds_shows_no_other_file(begin, how):
    begin(how, lambda _, number: number < 2000)
