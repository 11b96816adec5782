# SPDX-License-Identifier: Apache-2.0
"""Detects leaks of tests. A Snapshot lists by name everything that tests create outside of Python; two of
them are compared after every test, and each difference is one line of the failure.

The host and every private engine are inspected. On the host everything counts, whatever created it;
`beside_others` is for a machine in use by others: then the host's objects count only with the mark of
this run.
"""

import contextlib
import grp
import os
import pwd
import select
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from support.engine_api import EngineApi
from support.host_engine import DEFAULT_SOCKET
from support.process import all_processes, descendants, run
from support.run_directory import PREFIX, RunDirectory

# What Docker, Podman and iptables create once in a network namespace or on a host, and keep.
_STAYS_LINKS = {"docker0"}
_STAYS_TABLES = {"inet netavark"} | {
    f"{family} {table}" for family in ("ip", "ip6") for table in ("filter", "nat", "raw", "mangle")
}
_STAYS_MOUNTS = {"/run/docker/netns/default", "/run/netns"}  # the second is created by `ip netns`

# Unit tests run concurrently, and remove their own directories.
_OF_UNIT_TESTS = tuple(
    f"agbox-{kind}-"
    for kind in (
        *("auth", "fake", "guest-link-fuzz", "helper", "links", "preparation", "program", "sdk"),
        *("store", "supplemental", "test"),
    )
)

# Also compared: what an engine has cannot be seen while it does not answer.
_SILENT = "engine that does not answer"

# The kernel takes links, namespaces and killed processes away on its own time.
_GRACE = 3.0


class WatchedEngine(Protocol):
    """An engine whose objects are inspected. Its own processes are not leaks."""

    api: EngineApi

    def processes(self) -> set[int]:
        ...


class Snapshot:
    """Maps kinds ("link", "container of engine 28 …") to the names of existing objects."""

    def __init__(self) -> None:
        self.kinds: dict[str, set[str]] = {}

    def add(self, kind: str, names: Iterable[str]) -> None:
        self.kinds.setdefault(kind, set()).update(names)

    def leaks_in(self, later: "Snapshot") -> list[str]:
        """What is in the later one only. A kind that only one of them has is not compared: an
        engine that came in between brings its own, and one that went took its own along."""
        leaks = []
        for kind in sorted(self.kinds.keys() & later.kinds.keys()):
            leaks += [f"{kind}: {name}" for name in sorted(later.kinds[kind] - self.kinds[kind])]
        return leaks


class LeakCheck:
    def __init__(self, run_directory: RunDirectory, beside_others: bool = False):
        self._run_directory = run_directory
        self._beside_others = beside_others
        self._engines: list[WatchedEngine] = []
        self._latest: Snapshot | None = None

    @contextlib.contextmanager
    def watching(self, engine: WatchedEngine) -> Iterator[None]:
        """Inspects the engine's objects too, while it runs."""
        self._engines.append(engine)
        try:
            yield
        finally:
            self._engines.remove(engine)

    def snapshot(self) -> Snapshot:
        snapshot = Snapshot()
        snapshot.add(_SILENT, ())
        snapshot.add("process", self._processes())
        snapshot.add("file", self._files())
        snapshot.add("control group", self._cgroups())
        snapshot.add("account", self._accounts())
        snapshot.add("mount", self._mounts())
        if not self._beside_others:
            snapshot.add("named network namespace", _entries(Path("/run/netns")))
            _add_network(snapshot, "host", Path("/proc/self/net/dev"), lambda *argv: run(*argv))
            if not any(engine.api.socket == DEFAULT_SOCKET for engine in self._engines):
                _add_engine(snapshot, EngineApi(DEFAULT_SOCKET), "the host's engine")
        for engine in self._engines:
            _add_engine(snapshot, engine.api, str(engine))
            world = getattr(engine, "world", None)
            if world is not None:
                _add_network(snapshot, str(engine), Path(f"/proc/{world.init}/net/dev"), world.run)
        return snapshot

    def before_a_test(self) -> Snapshot:
        """What the test before this one left is what this one finds, unless the kit made something since. Every engine
        of ours has to answer, or its part could not be compared."""
        deadline = time.monotonic() + _GRACE
        while self._latest is None:
            snapshot = self.snapshot()
            silent = snapshot.kinds[_SILENT] & {str(engine) for engine in self._engines}
            if not silent:
                self._latest = snapshot
            elif time.monotonic() > deadline:
                raise RuntimeError(f"{', '.join(sorted(silent))}: does not answer before the test")
            else:
                _wait_to_look_again()
        return self._latest

    def kit_made_something(self) -> None:
        self._latest = None

    def leaks_since(self, before: Snapshot) -> list[str]:
        """What exists now and did not before, after a grace period for the kernel."""
        deadline = time.monotonic() + _GRACE
        while True:
            later = self.snapshot()
            leaks = before.leaks_in(later)
            if not leaks or time.monotonic() > deadline:
                self._latest = later if not leaks else None  # then the next test looks for itself
                return leaks
            _wait_to_look_again()

    def _processes(self) -> Iterator[str]:
        """Our descendants, and processes with the mark of the run or in its directory."""
        processes = all_processes()
        of_engines: set[int] = set()
        for engine in self._engines:
            of_engines |= engine.processes()
        of_engines |= descendants(of_engines, processes)
        ours = descendants([os.getpid()], processes)
        for process in processes.values():
            if process.zombie or process.pid == os.getpid() or process.pid in of_engines:
                continue
            if (
                process.pid in ours
                or process.has_mark(self._run_directory.id)
                or process.works_in(self._run_directory.path)
            ):
                # Created by the snapshot itself, or just ended.
                command = process.command()
                if command:
                    yield f"pid {process.pid} (started {process.started}): {_first_line(command)}"

    def _files(self) -> Iterator[str]:
        """The run's directory, and default paths that our programs might use by mistake."""
        run_directory = self._run_directory.path
        yield from _entries(run_directory)
        if self._beside_others:
            return
        for parent in {Path("/tmp"), Path("/var/tmp"), Path("/run"), run_directory.parent}:
            yield from (
                name
                for name in _entries(parent)
                if Path(name).name.startswith((PREFIX, "agbox", "agents-sandbox"))
                and not Path(name).name.startswith(_OF_UNIT_TESTS)
            )
        for home in {Path.home(), Path("/root")}:
            for place in (".config", ".local/share", ".local/state"):
                yield from (name for name in _entries(home / place) if "agents-sandbox" in name)
        for runtime in _entries(Path("/run/user")):
            yield from (
                name for name in _entries(Path(runtime)) if Path(name).name.startswith("agbox")
            )

    def _cgroups(self) -> Iterator[str]:
        prefix = self._run_directory.path.name if self._beside_others else PREFIX
        # An engine creates the parent group with its first container, and keeps it.
        of_engines = {getattr(engine, "cgroup", None) for engine in self._engines}
        top = Path("/sys/fs/cgroup")
        for pattern in (f"{prefix}*", f"*/{prefix}*"):
            for group in top.glob(pattern):
                if group.name not in of_engines and not group.is_symlink():
                    yield str(group)

    def _accounts(self) -> Iterator[str]:
        for kind, names in (
            ("user", (entry.pw_name for entry in pwd.getpwall())),
            ("group", (entry.gr_name for entry in grp.getgrall())),
        ):
            for name in names:
                if not self._beside_others or self._run_directory.id in name:
                    yield f"{kind} {name}"

    def _mounts(self) -> Iterator[str]:
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            left, _, right = line.partition(" - ")
            place = left.split()[4]
            if place in _STAYS_MOUNTS:
                continue
            if not self._beside_others or f"{self._run_directory.path}/" in f"{line}/":
                yield f"{place} ({right.split()[0]})"


def _add_engine(snapshot: Snapshot, api: EngineApi, name: str) -> None:
    if not api.answers():
        snapshot.add(_SILENT, [name])
        return
    snapshot.add(f"container of {name}", api.containers())
    snapshot.add(f"network of {name}", api.networks())
    snapshot.add(f"volume of {name}", api.volumes())


def _add_network(snapshot: Snapshot, name: str, devices: Path, run_there: Callable) -> None:
    """Links and firewall of one network namespace."""
    links = [line.split(":")[0].strip() for line in devices.read_text().splitlines()[2:]]
    snapshot.add(f"link of {name}", set(links) - _STAYS_LINKS)
    # One shell instead of three programs: this runs twice for every test.
    script = "nft list tables && echo %% && iptables-save && echo %% && ip6tables-save"
    listed, *saved = run_there("sh", "-c", script).stdout.split("%%\n")
    tables = {line.removeprefix("table ") for line in listed.splitlines()}
    snapshot.add(f"firewall table of {name}", tables - _STAYS_TABLES)
    for program, text in zip(("iptables", "ip6tables"), saved, strict=True):
        snapshot.add(f"{program} chain of {name}", _chains(text))


def _chains(saved: str) -> Iterator[str]:
    """The chains of an iptables-save except built-in ones and Docker's, and the rules that name our
    bridges. Not the masquerading of a network: Docker 28 sometimes leaves it when a client is killed
    during a create, which no client can detect or prevent."""
    table = ""
    for line in saved.splitlines():
        if line.startswith("*"):
            table = line[1:]
        elif line.startswith(":"):
            chain, policy = line[1:].split()[:2]
            if policy == "-" and not chain.startswith("DOCKER"):
                yield f"{table} {chain}"
        elif line.startswith("-A") and "agbx" in line and not line.endswith("-j MASQUERADE"):
            yield f"{table} rule {line}"


def _wait_to_look_again() -> None:
    """Nothing reports that a link or a namespace has gone or that an engine is back."""
    select.select([], [], [], 0.05)


def _first_line(text: str) -> str:
    return text.splitlines()[0][:200]


def _entries(directory: Path) -> list[str]:
    try:
        return [str(entry) for entry in directory.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
