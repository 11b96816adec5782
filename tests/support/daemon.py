# SPDX-License-Identifier: Apache-2.0
"""A private daemon: all its paths are in one directory, so it does not interfere with the developer's
daemon or other tests."""

import contextlib
import functools
import json
import mmap
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc

from support.process import LoggedProcess, base_environment, run
from support.run_directory import check_socket_path
from support.user import TestUser

_START_TIMEOUT = 30
_FIREWALL_FAULTS = ("isolation.damage", "isolation.blind", "isolation.watch")
_MOUNT = [
    *("sh", "-euc"),
    'while [ "$1" != -- ]; do mount --bind "$1" "$2"; shift 2; done; shift; exec "$@"',
    "mount",
]


class PrivateDaemon:
    """Not started by the constructor: start() runs agboxd and returns when it listens.

    `user` runs it as the test user instead of root, `network_namespace` puts it beside an engine
    (without one each start has a namespace of its own, so that the host's firewall is left alone),
    `docker_host` says which engine it talks to (none by default, and never the machine's own),
    `config` is the text of config.toml, `mounts` are files and directories that it sees in the place of
    the host's: {"/etc/resolv.conf": path}.

    A daemon that ends in another way than it was asked to fails its test.
    """

    def __init__(
        self,
        bin_dir: Path,
        directory: Path,
        user: TestUser | None = None,
        network_namespace: str | None = None,
        docker_host: str | None = None,
        config: str | None = None,
        environment: Mapping[str, str] | None = None,
        mounts: Mapping[str, Path] | None = None,
    ):
        self.bin_dir = user.install(bin_dir) if user else bin_dir
        self._test_programs = bin_dir.parent / "tests"
        self.directory = directory
        self.user = user
        self.network_namespace = network_namespace
        self.mounts = mounts or {}
        self.runtime_directory = self._own(directory / "r")
        self.home = self._own(directory / "home")
        self.config_file = directory / "config" / "agents-sandbox" / "config.toml"
        self.store = directory / "data" / "agents-sandbox" / "ids.db"
        self.socket = check_socket_path(self.runtime_directory / "agbox" / "agboxd.sock")
        self._own(directory / "config")
        self._own(directory / "data")
        if config is not None:
            self.write_config(config)
        self.environment = {
            **base_environment(),
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(self.runtime_directory),
            "XDG_CONFIG_HOME": str(directory / "config"),
            "XDG_DATA_HOME": str(directory / "data"),
            "XDG_STATE_HOME": str(directory / "data"),
            "XDG_CACHE_HOME": str(directory / "data"),
            "DOCKER_HOST": docker_host or f"unix://{directory}/no-engine.sock",
            **(environment or {}),
        }
        self._process: LoggedProcess | None = None
        self._expected_code: int | None = None  # of its end; None while nothing asked for one
        self._firewalls: set[str] = set()  # the names of its tables

    def __enter__(self) -> "PrivateDaemon":
        return self

    def __exit__(self, *_) -> None:
        self.end()

    @property
    def process(self) -> LoggedProcess:
        if self._process is None:
            raise RuntimeError("the daemon was not started")
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    def write_config(self, text: str) -> None:
        self._own(self.config_file.parent)
        self.config_file.write_text(text)
        if self.user:
            os.chown(self.config_file, self.user.uid, self.user.gid)

    def launch(self, *arguments: str) -> None:
        """Runs agboxd and returns immediately: for starts that are expected to fail."""
        if self._process is not None and self._process.returncode() is None:
            raise RuntimeError(f"the daemon (pid {self.pid}) runs already")
        self._check_end()
        self._note_firewalls()
        self._process = LoggedProcess(
            "agboxd", self.command(*arguments), self.environment, cwd=self.home
        )
        self._expected_code = None

    def command(self, *arguments: str) -> list[str]:
        """The command line that executes agboxd: each of its programs execs the next."""
        armed = self.environment.get("AGBOX_FAILPOINTS", "")
        argv = [str(self._armed_program(armed) if armed else self.bin_dir / "agboxd"), *arguments]
        if self.user:
            argv = self.user.command(argv, ambient_capability="net_admin" if armed else None)
        if self.mounts:
            pairs = [part for place, path in self.mounts.items() for part in (str(path), place)]
            argv = ["unshare", "--mount", "--", *_MOUNT, *pairs, "--", *argv]
        if self.network_namespace:
            return ["nsenter", f"--net={self.network_namespace}", "--", *argv]
        return ["unshare", "--net", "--", *argv]

    def _armed_program(self, failpoints: str) -> Path:
        """The released agboxd has no failpoints that weaken the firewall, and ignores all failpoints
        with a file capability: so use the test program, and a copy without capability."""
        weakens = any(name in failpoints for name in _FIREWALL_FAULTS)
        if not weakens and not self.user:
            return self.bin_dir / "agboxd"
        source = self._test_programs / "faulty_firewall_daemon" if weakens else self.bin_dir / "agboxd"
        place = self.directory / ("faulty" if weakens else "armed")
        if not place.exists():
            place.mkdir(mode=0o755)
            shutil.copy(source, place / "agboxd")
            shutil.copy(self.bin_dir / "agbox-guest", place / "agbox-guest")
        return place / "agboxd"

    def start(self) -> "PrivateDaemon":
        self.launch()
        self.wait_listening()
        return self

    def wait_listening(self, timeout: float = _START_TIMEOUT) -> dict[str, Any]:
        return self.wait_for_message("listening", timeout)

    def wait_for_message(self, message: str, timeout: float = _START_TIMEOUT) -> dict[str, Any]:
        """The first log line, past or future, with that `msg`."""
        line = self.process.wait_for_line(
            lambda text: (_parse(text) or {}).get("msg") == message,
            f"log line {message!r}",
            timeout,
        )
        return _parse(line)

    def log_lines(self) -> list[str]:
        """All output of the daemon since its last start, including lines that are not log lines."""
        return self.process.lines()

    def log(self) -> list[dict[str, Any]]:
        """The log since the last start; every line must be a JSON object."""
        parsed = []
        for line in self.log_lines():
            entry = _parse(line)
            if entry is None:
                raise AssertionError(f"agboxd wrote a line that is not a JSON object: {line!r}")
            parsed.append(entry)
        return parsed

    def wait(self, timeout: float = 30) -> int:
        """For an end that the test expects and checks."""
        self._expected_code = self.process.wait(timeout)
        return self._expected_code

    def stop(self, timeout: float = 10) -> int:
        """SIGTERM; the exit code."""
        self._expected_code = 0
        return self.process.stop(timeout)

    def kill(self) -> None:
        """SIGKILL: the daemon crashes."""
        self._expected_code = -signal.SIGKILL
        self.process.kill()

    def signal(self, number: signal.Signals) -> None:
        self.process.send(number)

    def restart(self) -> "PrivateDaemon":
        if self._process is not None and self._process.returncode() is None:
            self.stop()
        return self.start()

    @property
    def is_sanitized(self) -> bool:
        return _is_sanitized(self.bin_dir / "agboxd")

    def end(self) -> None:
        """After a test, however it went. A daemon that is killed, or has sandboxes left, leaves its
        firewall behind, and rightly so; nobody needs it any more."""
        try:
            if self._process is not None and self._process.returncode() is None:
                self._end_process()
        finally:
            for table in self.firewall_tables():
                self._nft("delete", "table", *table.split())
        self._check_end()

    def _end_process(self) -> None:
        if not self.is_sanitized:
            self.kill()
            return
        # Leaks are reported only by a process that exits.
        self.process.thaw()
        try:
            self.stop(timeout=60)
        except RuntimeError:
            self.kill()
            raise

    def _check_end(self) -> None:
        code = self._process.returncode() if self._process else None
        if code is not None and code != self._expected_code:
            expected = "by itself" if self._expected_code is None else f"not with {self._expected_code}"
            raise RuntimeError(
                f"agboxd ended with {code}, {expected}; its last lines:\n{self._process.tail()}"
            )

    def firewall_tables(self) -> list[str]:
        """Its existing tables in nft's syntax: "inet agents_sandbox_0_0a0b0c0d". The plain copy of each
        family comes first."""
        self._note_firewalls()
        if not self._firewalls or not self.network_namespace:
            return []
        if not os.path.exists(self.network_namespace):  # its engine has ended
            return []
        tables = [line.removeprefix("table ") for line in self._nft("list", "tables").splitlines()]
        return sorted(
            table
            for table in tables
            if table.split()[1].removesuffix("_owned") in self._firewalls
        )

    def _nft(self, *arguments: str) -> str:
        """The nft of its engine's root: an older one crashes on tables that the engine may have created."""
        namespaces = os.path.dirname(self.network_namespace)
        enter = [f"--net={namespaces}/net", f"--mount={namespaces}/mnt", "--"]
        return run("nsenter", *enter, "nft", *arguments).stdout

    def _note_firewalls(self) -> None:
        """Their names derive from the user and the instance ID, which is logged at each start. A killed daemon may
        have loaded them without logging it."""
        for line in self._process.lines() if self._process else []:
            entry = _parse(line) or {}
            if entry.get("msg") == "listening":
                uid = self.user.uid if self.user else os.getuid()
                self._firewalls.add(f"agents_sandbox_{uid}_{entry['instance_id'][:8]}")

    def agbox(self, *arguments: str, **options) -> subprocess.CompletedProcess:
        """Runs the CLI as the daemon's user against this daemon; does not check its exit code."""
        argv = [str(self.bin_dir / "agbox"), *arguments]
        if self.user:
            argv = self.user.command(argv)
        options.setdefault("env", self.environment)
        options.setdefault("cwd", self.home)
        options.setdefault("check", False)
        return run(*argv, **options)

    @contextlib.contextmanager
    def channel(self) -> Iterator[grpc.Channel]:
        with grpc.insecure_channel(f"unix://{self.socket}") as channel:
            yield channel

    def _own(self, directory: Path) -> Path:
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(0o700)
        if self.user:
            self.user.own(directory)
        return directory


@functools.cache
def _is_sanitized(program: Path) -> bool:
    with program.open("rb") as file:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(b"__asan_init") >= 0


def _parse(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except json.JSONDecodeError:
        return None
    return entry if isinstance(entry, dict) else None
