# SPDX-License-Identifier: Apache-2.0
"""Options and fixtures of all Python tests; see support/README.md."""

import contextlib
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support import run_report, selection
from support.abandoned import remove_abandoned
from support.budget import read_budget
from support.contract import REPOSITORY, Contract
from support.daemon import PrivateDaemon
from support.engine import (
    DOCKER_KINDS,
    EVERYDAY_KIND,
    KINDS,
    OLDEST_KIND,
    PODMAN_REGISTRY_PORTS,
    EngineOptions,
    PrivateEngine,
)
from support.host_engine import HostEngine
from support.leaks import LeakCheck, Snapshot
from support.registry import Registry
from support.run_directory import RunDirectory
from support.user import TestUser


USERS = ("root", "user")  # that the daemon runs as


def pytest_addoption(parser: pytest.Parser) -> None:
    kit = parser.getgroup("agents-sandbox")
    kit.addoption(
        "--engines",
        help=f"private engines: all, or some of {','.join(KINDS)} (default {EVERYDAY_KIND}, and also "
        f"{OLDEST_KIND} for tests that name it)",
    )
    kit.addoption("--long", action="store_true", help="also run the long sizes")
    kit.addoption(
        "--robustness-seed",
        type=int,
        default=os.environ.get("AGBOX_ROBUSTNESS_SEED"),
        help="repeats the choices of a robustness test, which prints its seed (default a new one)",
    )
    kit.addoption(
        "--beside-others",
        action="store_true",
        help="someone else works on this machine: on the host, only what has our mark is a leak",
    )
    run_report.add_option(kit)


def pytest_configure(config: pytest.Config) -> None:
    if os.geteuid() != 0:
        raise pytest.UsageError("the tests make namespaces, engines and a user; run them as root")
    config.engine_names = _selected_engines(config)
    config.stash[_LEAKS_OF_RUN] = []
    run_report.install(config)
    config.pluginmanager.register(_SharedFixtures())
    # A script that starts us in the background makes us ignore it, and our children inherit that.
    # A worker of xdist may run on another thread, which receives no signal anyway.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup makes us ignore it


def _selected_engines(config: pytest.Config) -> list[str]:
    text = config.getoption("--engines")
    if not text:
        return list(KINDS) if config.getoption("--long") else [OLDEST_KIND, EVERYDAY_KIND]
    names = list(KINDS) if text == "all" else [name for name in text.split(",") if name]
    unknown = [name for name in names if name not in KINDS]
    if unknown or not names:
        raise pytest.UsageError(f"--engines {text}: expected all, or some of {','.join(KINDS)}")
    return names


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with `engine` or `engine_name` runs once for every selected engine that it is for."""
    mark = metafunc.definition.get_closest_marker("engines")
    if unknown := [name for name in (mark.args if mark else ()) if name not in KINDS]:
        raise pytest.Collector.CollectError(
            f"{metafunc.definition.nodeid}: engines {unknown}: expected some of {', '.join(KINDS)}"
        )
    wanted = {"engine", "engine_name"} & set(metafunc.fixturenames)
    if not wanted:
        return
    config = metafunc.config
    if mark:
        suitable = mark.args
    elif config.getoption("--engines"):
        suitable = config.engine_names
    elif config.getoption("--long"):
        suitable = DOCKER_KINDS
    else:
        suitable = (EVERYDAY_KIND,)
    names = [name for name in config.engine_names if name in suitable]
    # Without a parameter pytest would skip the test; deselect it instead.
    parameters = names or [pytest.param("none", marks=pytest.mark.not_selected)]
    metafunc.parametrize("engine_name", parameters, scope="session")


@pytest.hookimpl(trylast=True)  # pytest itself sorts by the parameters of session fixtures
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    is_long = config.getoption("--long")

    def selected(item: pytest.Item) -> bool:
        if item.get_closest_marker("not_selected"):
            return False
        return is_long or item.get_closest_marker("long") is None

    wanted = [item for item in items if selected(item)]
    wanted = wanted if is_long else selection.sampled(wanted)
    deselected = set(items) - set(wanted)
    items[:] = wanted
    if hasattr(config, "workerinput"):
        selection.longest_first(items, read_budget(REPOSITORY).tests)
    if deselected:
        config.hook.pytest_deselected(items=list(deselected))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    """A test that cannot run fails: a skip would hide what is missing on the machine."""
    report = (yield).get_result()
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: {reason} (a test must not skip: it runs, or it fails)"


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector):
    """So is a file that cannot run."""
    report = (yield).get_result()
    if report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid}: {report.longrepr[2]} (a file must not skip: its tests run, or it fails)"


# --- the run -------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def run_directory() -> Iterator[RunDirectory]:
    directory = RunDirectory()
    remove_abandoned()
    yield directory
    directory.remove()


_LEAK_CHECK = pytest.StashKey[LeakCheck]()
_LEAKS_OF_RUN = pytest.StashKey[list[str]]()


class _SharedFixtures:
    """Objects of session fixtures are not leaks of the next test. A plugin, because pytest does not call a
    conftest's hook for session fixtures."""

    def pytest_fixture_setup(self, fixturedef, request: pytest.FixtureRequest) -> None:
        if fixturedef.scope != "function" and _LEAK_CHECK in request.config.stash:
            request.config.stash[_LEAK_CHECK].kit_made_something()


@pytest.fixture(scope="session", autouse=True)
def leak_check(run_directory: RunDirectory, pytestconfig: pytest.Config) -> Iterator[LeakCheck]:
    """Every session fixture requests this one, even if it does not use it: pytest then tears it down
    before the final check, which also detects leaks of the kit itself."""
    check = LeakCheck(run_directory, _is_one_of_several(pytestconfig))
    pytestconfig.stash[_LEAK_CHECK] = check
    before = check.snapshot()
    yield check
    # pytest would blame the last test, and that passes when it is run again.
    pytestconfig.stash[_LEAKS_OF_RUN] += check.leaks_since(before)


def _is_one_of_several(config: pytest.Config) -> bool:
    """True for one of several workers (`-n 3`)."""
    return config.getoption("--beside-others") or hasattr(config, "workerinput")


_WHOLE_RUN = pytest.StashKey[tuple[RunDirectory, LeakCheck, Snapshot]]()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compares the whole host before and after all workers, for leaks that no worker can attribute to a test."""
    has_workers = bool(session.config.getoption("numprocesses", None))
    if has_workers and not _is_one_of_several(session.config):
        directory = RunDirectory()
        check = LeakCheck(directory)
        session.config.stash[_WHOLE_RUN] = (directory, check, check.snapshot())


@pytest.hookimpl(optionalhook=True)  # of xdist
def pytest_testnodedown(node, error: object | None) -> None:
    if not error:
        node.config.stash[_LEAKS_OF_RUN] += node.workeroutput["leaks"]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    stash = session.config.stash
    leaks = stash[_LEAKS_OF_RUN]
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["leaks"] = leaks  # for the controller
        return
    if _WHOLE_RUN in stash:
        directory, check, before = stash[_WHOLE_RUN]
        leaks += check.leaks_since(before)
        directory.remove()
    if leaks:
        print("\nthis test run left behind:\n  " + "\n  ".join(leaks), file=sys.stderr)
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR  # no retry of a test can fix it


@pytest.fixture(autouse=True)
def leaves_nothing_behind(
    request: pytest.FixtureRequest, run_directory: RunDirectory, leak_check: LeakCheck
) -> Iterator[None]:
    # Engines and users of the whole run start before the first snapshot, not during a test.
    for name in ("engine", "host_engine", "test_user", "contract", "daemon_user"):
        if name in request.fixturenames:
            request.getfixturevalue(name)
    before = leak_check.before_a_test()
    yield
    if leaks := leak_check.leaks_since(before):
        names = "\n  ".join(leaks)
        pytest.fail(f"{request.node.nodeid} left behind:\n  {names}", pytrace=False)


@pytest.fixture
def directory(run_directory: RunDirectory) -> Iterator[Path]:
    """An empty directory with a short path, which every private engine sees under the same path."""
    made = run_directory.new_directory()
    yield made
    shutil.rmtree(made)


# --- engines -------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def say(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Prints to the terminal why it takes long."""
    output = pytestconfig.pluginmanager.getplugin("capturemanager")

    def tell(text: str) -> None:
        with output.global_and_fixture_disabled():
            print(f"\n{text}", file=sys.stderr, flush=True)

    return tell


@pytest.fixture(scope="session")
def engines(
    run_directory: RunDirectory, leak_check: LeakCheck, say
) -> Iterator[Callable[[str], PrivateEngine]]:
    """Starts each private engine on first use; they run until the end of the run."""
    with contextlib.ExitStack() as stack:
        running: dict[str, PrivateEngine] = {}

        def get(name: str) -> PrivateEngine:
            if name not in running:
                engine = stack.enter_context(PrivateEngine(KINDS[name], run_directory, say=say))
                stack.enter_context(leak_check.watching(engine))
                running[name] = engine
            return running[name]

        yield get


@pytest.fixture(scope="session")
def engine(engine_name: str, engines: Callable[[str], PrivateEngine]) -> PrivateEngine:
    """A private engine, shared by the tests of the run: leave it running and empty."""
    return engines(engine_name)


@pytest.fixture
def make_engine(run_directory: RunDirectory, say) -> Iterator[Callable[..., PrivateEngine]]:
    """make_engine("28", live_restore=True): an engine that the test may break."""
    with contextlib.ExitStack() as stack:

        def make(name: str, **options) -> PrivateEngine:
            return stack.enter_context(
                PrivateEngine(KINDS[name], run_directory, EngineOptions(**options), say)
            )

        yield make


@pytest.fixture(scope="session")
def host_engine(leak_check: LeakCheck) -> Iterator[HostEngine]:
    engine = HostEngine()
    with leak_check.watching(engine):
        yield engine
    engine.end()


@pytest.fixture
def make_registry(run_directory: RunDirectory) -> Iterator[Callable[..., Registry]]:
    """make_registry(engine, credentials=("user", "password")): on the engine's loopback."""
    with contextlib.ExitStack() as stack:
        ports = iter(PODMAN_REGISTRY_PORTS)

        def make(engine: PrivateEngine, credentials: tuple[str, str] | None = None) -> Registry:
            place = run_directory.new_directory("g")
            stack.callback(shutil.rmtree, place)
            port = next(ports) if engine.kind.podman else 0
            return stack.enter_context(Registry(place, engine.network_namespace, credentials, port))

        yield make


# --- our programs --------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def bin_dir() -> Path:
    """The directory of the programs under test."""
    directory = Path(os.environ.get("AGBOX_BIN_DIR") or REPOSITORY / "build" / "release" / "bin")
    if not (directory / "agboxd").exists():
        pytest.fail(
            f"there is no agboxd in {directory}; build it with `cmake --preset release && cmake "
            "--build --preset release`, or set AGBOX_BIN_DIR",
            pytrace=False,
        )
    return directory.resolve()


@pytest.fixture(scope="session")
def contract(run_directory: RunDirectory, leak_check: LeakCheck) -> Iterator[Contract]:
    generated = run_directory.new_directory("c")
    yield Contract(generated)
    shutil.rmtree(generated)


@pytest.fixture(scope="session")
def test_user(run_directory: RunDirectory, leak_check: LeakCheck) -> Iterator[TestUser]:
    user = TestUser(run_directory)
    yield user
    user.remove()


@pytest.fixture(scope="session", params=USERS)
def daemon_user(request: pytest.FixtureRequest) -> TestUser | None:
    """Runs the test twice: with a daemon of root and one of the test user."""
    return request.getfixturevalue("test_user") if request.param == "user" else None


@pytest.fixture
def make_daemon(run_directory: RunDirectory, bin_dir: Path) -> Iterator[Callable[..., PrivateDaemon]]:
    """make_daemon(user=…, engine=…, config=…): a private daemon that is not started yet."""
    with contextlib.ExitStack() as stack:

        def make(
            user: TestUser | None = None,
            engine: PrivateEngine | HostEngine | None = None,
            **options,
        ) -> PrivateDaemon:
            place = run_directory.new_directory("d")
            stack.callback(shutil.rmtree, place)
            if engine is not None:
                options.setdefault("docker_host", engine.docker_host)
                options.setdefault("network_namespace", engine.network_namespace)
            return stack.enter_context(PrivateDaemon(bin_dir, place, user, **options))

        yield make


@pytest.fixture
def daemon(
    make_daemon: Callable[..., PrivateDaemon], daemon_user: TestUser | None
) -> PrivateDaemon:
    """A running private daemon, once as root and once as the test user."""
    return make_daemon(user=daemon_user).start()
