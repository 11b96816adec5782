# SPDX-License-Identifier: Apache-2.0
"""A run of the robustness suite: a daemon, a crowd of clients, faults, and the check of the history."""

import contextlib
import itertools
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from robustness.clients import AllReader, Client, Crowd, Tap, untapped
from robustness.fake_engine import IMAGE, FakeEngine, install_daemon
from robustness.faults import DaemonKiller
from robustness.history import Look, Recorder
from robustness.host_files import HostFiles
from robustness.host_service import host_service
from robustness.promises import broken_promises
from robustness.rest import (
    Foreign,
    Observer,
    RealSide,
    await_purge,
    has_repaired,
    prove_ready,
    removed_leftovers,
    settle,
    stop_and_resume,
)
from support.contract import REPOSITORY, Contract
from support.daemon import PrivateDaemon
from support.engine import PrivateEngine
from support.images import make_image
from support.run_directory import RunDirectory
from support.sandboxes import CONFIG, remove_left_overs, started
from support.user import TestUser

_LONGEST_WORK = 60  # seconds
_ROUNDS_TO_REST = 3
_REPORTS = REPOSITORY / "build" / "reports"


@pytest.fixture
def seed(request: pytest.FixtureRequest, say: Callable[[str], None]) -> int:
    given = request.config.getoption("--robustness-seed")
    number = random.SystemRandom().randrange(2**32) if given is None else given
    say(f"{request.node.name}: --robustness-seed {number}")
    return number


class Run:
    """One daemon on one engine from its first start to the last check.

    with run.crowd():
        ...faults...
    run.judge()
    """

    def __init__(
        self,
        name: str,
        seed: int,
        daemon: PrivateDaemon,
        engine: PrivateEngine | FakeEngine,
        contract: Contract,
        say: Callable[[str], None],
    ):
        self.name, self.seed, self._say = name, seed, say
        self.daemon, self.engine, self.contract = daemon, engine, contract
        self._is_fake = is_fake = isinstance(engine, FakeEngine)
        self.image = IMAGE if is_fake else make_image(engine.api, IMAGE)
        self._side = engine if is_fake else RealSide(engine)
        self.recorder = Recorder()
        self.recorder.progress = self._progress
        self.foreign = Foreign(engine.api, self.image)
        self.recorder.history.foreign = self.foreign.inspect()
        self.files = HostFiles(daemon, self.recorder)
        self.killer = DaemonKiller(daemon, self.recorder, self.rng("kills"))
        self._crowd: Crowd | None = None
        self.asked: list[str] = []  # sandboxes that may exist, besides those of the crowd
        self._probes = itertools.count()
        if is_fake:  # it has no firewall
            daemon.start()
            daemon.wait_for_message("engine is reachable")
        else:
            started(daemon)
        self._observer = Client("observer of all", daemon, contract, self.recorder)
        self._all_events = AllReader(self._observer)

    def close(self) -> None:
        self._all_events.close()
        self._observer.close()

    def rng(self, name: str) -> random.Random:
        """Derived from the seed, different for every name and test."""
        return random.Random(f"{self.seed}/{self.name}/{name}")

    def crowd(self, tap: Tap = untapped) -> Crowd:
        self._crowd = Crowd(
            f"{self.seed}/{self.name}",
            self.image,
            self.daemon,
            self.contract,
            self.recorder,
            self.files,
            self.engine.api,
            tap,
        )
        return self._crowd

    def work(self, entries: int) -> None:
        """Lets the clients work until this many more entries are recorded."""
        if not self.recorder.wait_for_entries(entries, _LONGEST_WORK):
            pytest.fail(f"seed {self.seed}: the clients did nothing for {_LONGEST_WORK} s")

    def look(self) -> Look:
        """Observes the state at rest; not part of the history."""
        client = Client("looker", self.daemon, self.contract, Recorder())
        try:
            settle(client, self._asked())
            return self._look(client, "a look aside")
        finally:
            client.close()

    def broken(self) -> list[str]:
        """Observes, deletes everything, observes again; returns the violated guarantees."""
        history = self.recorder.history
        client = Client("judge", self.daemon, self.contract, self.recorder)
        try:
            history.looks.append(self._look_at_rest(client, "the look at rest"))
            stop_and_resume(client, self._asked())
            self.killer.kill()
            self.killer.start()
            history.looks.append(self._look_at_rest(client, "the look after one more restart"))
            for sandbox_id in history.looks[-1].sandboxes:
                client.delete(sandbox_id)
            history.looks.append(self._look_at_rest(client, "the last look", "DELETED"))
            self._all_events.finish()
        finally:
            client.close()
        if not self._is_fake:
            self._end()
        return broken_promises(history)

    def broken_once_purged(self) -> list[str]:
        """Deletes everything and waits until its history is purged; returns the violated guarantees."""
        history = self.recorder.history
        client = Client("judge", self.daemon, self.contract, self.recorder)
        try:
            client.reconnect()
            for sandbox_id in self._asked():
                client.delete(sandbox_id)
            await_purge(client, self._asked())
            self.killer.kill()
            self.killer.start()
            history.looks.append(self._look(client, "the look after the purge"))
            self._all_events.finish()
        finally:
            client.close()
        files = (self.daemon.store.parent / "exec-logs").iterdir()
        outputs = sorted(file.name for file in files if not file.name.startswith(".spare-"))
        if outputs:
            self.recorder.complain(f"output of purged sandboxes is left: {outputs}")
        return broken_promises(history)

    def judge(
        self, other_faults: str = "", *, ready: int, at_failpoints: int = 0, is_purged: bool = False
    ) -> None:
        """Fails if a guarantee is violated, or if fewer sandboxes became READY or fewer kills were at failpoints: then
        the run has shown little."""
        broken = self.broken_once_purged() if is_purged else self.broken()
        killer, history = self.killer, self.recorder.history
        leftovers, latest = removed_leftovers([*killer.logs, "", *self.daemon.log_lines()])
        self._say(
            f"{self.name}, seed {self.seed}: {killer.kills} kills ({killer.killed_at_failpoints} at "
            f"failpoints){', ' if other_faults else ''}{other_faults}, {history.summary()}, "
            f"{leftovers} leftovers removed at most {latest:.1f} s after a start: "
            f"{len(broken)} broken promises"
        )
        if broken:
            report = self._report(broken)
            listed = "\n  ".join(broken[:20])
            pytest.fail(
                f"seed {self.seed}: {len(broken)} broken promises (all of it is in {report}):\n"
                f"  {listed}",
                pytrace=False,
            )
        assert history.ready() >= ready, f"seed {self.seed}: too few sandboxes became READY"
        assert killer.killed_at_failpoints >= at_failpoints, f"seed {self.seed}: too few at failpoints"

    def _end(self) -> None:
        """A daemon that is stopped without sandboxes removes its firewall."""
        code = self.daemon.stop()
        if code != 0:
            self.recorder.complain(f"the daemon ended with {code}:\n{self.daemon.process.tail()}")
        for table in self.daemon.firewall_tables():
            self.recorder.complain(f"table {table} is there after the last daemon was stopped")

    def _progress(self, sandbox_id: str) -> int:
        """Lines of the daemon's log about the sandbox, without those about calls."""
        lines = self.daemon.log_lines()
        return sum(f'"{sandbox_id}"' in line and '"msg":"gRPC ' not in line for line in lines)

    def _asked(self) -> list[str]:
        return [*self.asked, *(self._crowd.asked if self._crowd else [])]

    def _look_at_rest(self, client: Client, name: str, wanted: str = "") -> Look:
        """An engine may report the end of a container late, or finish a request of a dead daemon. If the
        daemon had to repair something meanwhile, it was not at rest; what it cannot repair in a few rounds
        is judged."""
        for _ in range(_ROUNDS_TO_REST):
            begun = len(self.daemon.log_lines())
            settle(client, self._asked(), wanted)
            prove_ready(client, self._asked(), f"probe-{next(self._probes)}")
            look = self._look(client, name)
            if not has_repaired(self.daemon.log_lines()[begun:]):
                break
        return look

    def _look(self, client: Client, name: str) -> Look:
        look = Observer(client, self.daemon, self._side, self.files).look(name)
        look.foreign = self.foreign.inspect() | self.files.inspect()
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
) -> Iterator[Callable[[PrivateDaemon, PrivateEngine | FakeEngine], Run]]:
    runs: list[Run] = []
    with contextlib.ExitStack() as stack:

        def make(daemon: PrivateDaemon, engine: PrivateEngine | FakeEngine) -> Run:
            if isinstance(engine, PrivateEngine):  # a service that no sandbox may reach
                stack.enter_context(host_service(engine))
            runs.append(Run(request.node.name, seed, daemon, engine, contract, say))
            return runs[-1]

        yield make
        for run in runs:
            run.close()
            run.daemon.end()
            if isinstance(run.engine, PrivateEngine):  # fakes end with their engine
                run.foreign.remove()
                remove_left_overs(run.engine)


@pytest.fixture
def make_real_run(
    make_daemon: Callable[..., PrivateDaemon],
    test_user: TestUser,
    make_engine: Callable[..., PrivateEngine],
    make_run: Callable[..., Run],
) -> Callable[..., Run]:
    """make_real_run("28", live_restore=True): with its own engine, which may be killed; an engine whose client
    is killed while it creates a network keeps that network's iptables rules forever."""

    def make(name: str, user: TestUser | None = test_user, **options) -> Run:
        live_restore = options.pop("live_restore", False)
        engine = make_engine(name, live_restore=live_restore)
        options.setdefault("config", CONFIG)
        return make_run(make_daemon(user=user, engine=engine, **options), engine)

    return make


@pytest.fixture
def fake_engine(bin_dir: Path, directory: Path) -> Iterator[FakeEngine]:
    engine = FakeEngine(bin_dir.parent / "tests", directory)
    yield engine
    engine.end()


@pytest.fixture
def make_fake_run(
    fake_engine: FakeEngine,
    run_directory: RunDirectory,
    bin_dir: Path,
    directory: Path,
    make_run: Callable[..., Run],
) -> Iterator[Callable[..., Run]]:
    """make_fake_run(): on a fake engine; `docker_host` may be a proxy, `runtime` has lines of that table of
    config.toml."""
    with contextlib.ExitStack() as stack:

        def make(
            docker_host: str = fake_engine.docker_host,
            runtime: str = "",
            program: str = "fake_engine_daemon",
            environment: Mapping[str, str] | None = None,
        ) -> Run:
            programs = install_daemon(bin_dir.parent / "tests" / program, directory / "bin")
            place = run_directory.new_directory("d")
            stack.callback(shutil.rmtree, place)
            # Fake guests use the daemon's socket paths, which must be short.
            config = CONFIG.replace("[network]", f'state_root = "{place}/s"\n{runtime}[network]')
            daemon = PrivateDaemon(
                programs, place, docker_host=docker_host, config=config, environment=environment
            )
            return make_run(stack.enter_context(daemon), fake_engine)

        yield make
