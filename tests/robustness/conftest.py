# SPDX-License-Identifier: Apache-2.0
"""A run of the robustness suite: a daemon, a crowd of clients, faults in between, and the judgement."""

import random
from collections.abc import Callable, Iterator

import pytest
from robustness.clients import Client, Crowd, Tap, untapped
from robustness.faults import DaemonKiller
from robustness.history import Look, Recorder
from robustness.promises import broken_promises
from robustness.rest import Foreign, Observer, prove_ready, settle
from support.contract import REPOSITORY, Contract
from support.daemon import PrivateDaemon
from support.engine import PrivateEngine
from support.images import make_image
from support.sandboxes import remove_left_overs, started

_LONGEST_WORK = 60  # seconds
_REPORTS = REPOSITORY / "build" / "reports"


@pytest.fixture
def seed(request: pytest.FixtureRequest, say: Callable[[str], None]) -> int:
    given = request.config.getoption("--robustness-seed")
    number = random.SystemRandom().randrange(2**32) if given is None else given
    say(f"{request.node.name}: --robustness-seed {number}")
    return number


class Run:
    """One daemon on one engine from its first start to the last judgement.

    with run.crowd():
        ...faults...
    run.judge()
    """

    def __init__(
        self,
        name: str,
        seed: int,
        daemon: PrivateDaemon,
        engine: PrivateEngine,
        contract: Contract,
        say: Callable[[str], None],
    ):
        self.name, self.seed, self._say = name, seed, say
        self.daemon, self.engine, self.contract = daemon, engine, contract
        self.recorder = Recorder()
        self.image = make_image(engine.api, "robust:1")
        self.foreign = Foreign(engine, self.image)
        self.recorder.history.foreign = self.foreign.inspect()
        self.killer = DaemonKiller(daemon, self.recorder, self.rng("kills"))
        self._crowd: Crowd | None = None
        started(daemon)

    def rng(self, name: str) -> random.Random:
        return random.Random(f"{self.seed}/{name}")

    def crowd(self, tap: Tap = untapped) -> Crowd:
        self._crowd = Crowd(
            str(self.seed), self.image, self.daemon, self.contract, self.recorder, tap
        )
        return self._crowd

    def work(self, entries: int) -> None:
        """Lets the clients work until so much more is written down."""
        if not self.recorder.wait_for_entries(entries, _LONGEST_WORK):
            pytest.fail(f"seed {self.seed}: the clients did nothing for {_LONGEST_WORK} s")

    def look(self) -> Look:
        """At what there is once nothing is under way; not part of the history."""
        client = Client("looker", self.daemon, self.contract, Recorder())
        try:
            settle(client, self._crowd.asked if self._crowd else [])
            return self._look(Observer(client, self.daemon, self.engine), "a look aside")
        finally:
            client.close()

    def broken(self) -> list[str]:
        """Takes the looks, deletes everything, looks again; the promises that did not hold."""
        history = self.recorder.history
        client = Client("judge", self.daemon, self.contract, self.recorder)
        try:
            sandboxes = self._crowd.asked if self._crowd else []
            settle(client, sandboxes)
            prove_ready(client, sandboxes, "probe")
            observer = Observer(client, self.daemon, self.engine)
            history.looks.append(self._look(observer, "the look at rest"))
            self.killer.kill()
            self.killer.start()
            settle(client, sandboxes)
            prove_ready(client, sandboxes, "probe-again")
            history.looks.append(self._look(observer, "the look after one more restart"))
            for sandbox_id in history.looks[-1].sandboxes:
                client.delete(sandbox_id)
            settle(client, sandboxes, "DELETED")
            history.looks.append(self._look(observer, "the last look"))
        finally:
            client.close()
        if history.engine_failed:
            # An engine that is killed while it makes a network forgets that network's bridge.
            history.looks[-1].links.clear()
        return broken_promises(history)

    def judge(self) -> None:
        broken = self.broken()
        self._say(
            f"{self.name}, seed {self.seed}: {self.killer.kills} kills "
            f"({self.killer.killed_at_failpoints} at failpoints), "
            f"{self.recorder.history.summary()}: {len(broken)} broken promises"
        )
        if broken:
            report = self._report(broken)
            listed = "\n  ".join(broken[:20])
            pytest.fail(
                f"seed {self.seed}: {len(broken)} broken promises (all of it is in {report}):\n"
                f"  {listed}",
                pytrace=False,
            )

    def _look(self, observer: Observer, name: str) -> Look:
        look = observer.look(name)
        look.foreign = self.foreign.inspect()
        return look

    def _report(self, broken: list[str]) -> str:
        _REPORTS.mkdir(parents=True, exist_ok=True)
        path = _REPORTS / f"robustness-{self.seed}.txt"
        history = self.recorder.history
        parts = [
            *broken,
            *map(str, history.calls),
            *map(str, history.streams),
            *map(str, history.looks),
            *self.killer.logs,
            *self.daemon.log_lines(),
        ]
        path.write_text("\n".join(parts) + "\n", encoding="utf-8")
        return str(path)


@pytest.fixture
def make_run(
    request: pytest.FixtureRequest, seed: int, contract: Contract, say: Callable[[str], None]
) -> Iterator[Callable[[PrivateDaemon, PrivateEngine], Run]]:
    runs: list[Run] = []

    def make(daemon: PrivateDaemon, engine: PrivateEngine) -> Run:
        runs.append(Run(request.node.name, seed, daemon, engine, contract, say))
        return runs[-1]

    yield make
    for run in runs:
        run.daemon.end()
        run.foreign.remove()
        remove_left_overs(run.engine)
