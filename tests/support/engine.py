# SPDX-License-Identifier: Apache-2.0
"""Private engines: Docker and Podman of several versions, each in its own namespaces, with its state in
a directory of the run. The host's engine, network and firewall are not touched."""

import contextlib
import grp
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from support.engine_api import EngineApi
from support.engine_root import DebianHost, DebianRoot, MobyPrograms, Say, cached, say_on_stderr
from support.process import LoggedProcess, base_environment, run
from support.run_directory import RunDirectory, check_socket_path
from support.world import Outside, World, child_of


@dataclass(frozen=True)
class EngineKind:
    """An engine version and its source. A kind without a root is this machine's own package."""

    name: str
    # The expected version: detects a mirror that has moved on.
    version: str
    root: DebianRoot | DebianHost | None = None
    programs: MobyPrograms | None = None
    podman: bool = False


_TRIXIE = DebianRoot("trixie")
_FORKY = DebianRoot("forky", ('--aptopt=Acquire::Check-Valid-Until "false"',))

KINDS = {
    kind.name: kind
    for kind in (
        EngineKind("20.10", "20.10."),
        EngineKind("26", "26.", root=_TRIXIE),
        EngineKind("28", "28.", root=_FORKY),
        EngineKind(
            "29",
            "29.",
            root=_FORKY,
            programs=MobyPrograms("github.com/moby/moby/v2@v2.0.0-beta.24", "29.8.1"),
        ),
        EngineKind("podman", "5.", root=_FORKY, podman=True),
    )
}
DOCKER_KINDS = tuple(name for name, kind in KINDS.items() if not kind.podman)
# The default engines of tests: the most common one, and the oldest supported one.
EVERYDAY_KIND, OLDEST_KIND = "28", "20.10"

# Docker trusts every registry on loopback, Podman only those that its configuration names.
PODMAN_REGISTRY_PORTS = range(5000, 5004)


@dataclass
class EngineOptions:
    live_restore: bool = False
    # More arguments for dockerd, for example --userland-proxy=false.
    arguments: tuple[str, ...] = ()
    # For example DOCKER_MIN_API_VERSION.
    environment: Mapping[str, str] = field(default_factory=dict)
    # Its root file system may be changed, as by an installation.
    has_writable_root: bool = False


class PrivateEngine:
    """A running engine. The constructor returns when it is reachable; end() removes everything.

    with PrivateEngine(KINDS["28"], run_directory) as engine:
        engine.docker("run", "--rm", image, "true")
    """

    def __init__(
        self,
        kind: EngineKind,
        run_directory: RunDirectory,
        options: EngineOptions | None = None,
        say: Say = say_on_stderr,
    ):
        self.kind = kind
        self.options = options or EngineOptions()
        tree = cached(kind.root, say) if kind.root else _this_machine()
        programs = cached(kind.programs, say) if kind.programs else None
        self.directory = run_directory.new_directory("e")
        changes = self.directory / "root" if self.options.has_writable_root else None
        self._place = (tree, run_directory.path, programs, changes)
        self.socket = check_socket_path(self.directory / "s")
        self.api = EngineApi(self.socket)
        self.cgroup = f"{run_directory.path.name}-{self.directory.name}"
        self._world: World | None = None
        self._outside: Outside | None = None
        self._process: LoggedProcess | None = None
        try:
            # 20.10 writes a key into /etc by default.
            config = (
                {"deprecated-key-path": f"{self.directory}/key.json"} if kind.version == "20.10." else {}
            )
            (self.directory / "config.json").write_text(json.dumps(config))
            (self.directory / "registries.conf").write_text(
                "".join(
                    f'[[registry]]\nlocation = "127.0.0.1:{port}"\ninsecure = true\n'
                    for port in PODMAN_REGISTRY_PORTS
                )
            )
            self._world = World(*self._place)
            self.start()
            self._check_version()
        except BaseException:
            self.end()
            raise

    def __enter__(self) -> "PrivateEngine":
        return self

    def __exit__(self, *_) -> None:
        self.end()

    def __repr__(self) -> str:
        return f"engine {self.kind.name} at {self.socket}"

    @property
    def docker_host(self) -> str:
        return f"unix://{self.socket}"

    @property
    def world(self) -> World:
        if self._world is None:
            raise RuntimeError(f"{self!r} has ended")
        return self._world

    @property
    def network_namespace(self) -> str:
        return self.world.network_namespace

    @property
    def pid(self) -> int:
        """The PID of the engine in the host's namespace."""
        if self._process is None:
            raise RuntimeError(f"{self!r} is not running")
        return child_of(self._process.pid)

    def docker(self, *arguments: str, **options) -> subprocess.CompletedProcess:
        """Runs the `docker` CLI of the engine's own root."""
        return self.world.run("docker", "-H", self.docker_host, *arguments, **options)

    def log(self) -> list[str]:
        return self._process.lines() if self._process else []

    def start(self) -> None:
        self.socket.unlink(missing_ok=True)
        argv = self._podman_command() if self.kind.podman else self._dockerd_command()
        environment = {
            **base_environment(),
            "CONTAINERS_REGISTRIES_CONF": f"{self.directory}/registries.conf",
            **self.options.environment,
        }
        self._process = LoggedProcess(repr(self), self.world.command(argv), environment)
        listening = "API service listening on" if self.kind.podman else "API listen on"
        self._process.wait_for_line(lambda line: listening in line, "its API", timeout=60)
        if self.kind.podman:  # it has no option for the socket's group
            os.chown(self.socket, 0, docker_group())
            self.socket.chmod(0o660)

    def stop(self) -> None:
        """Stops the engine, as a service manager does."""
        os.kill(self.pid, signal.SIGTERM)
        self._process.wait(timeout=60)
        self._process = None

    def kill9(self) -> None:
        """The engine crashes, even if frozen. Its containers and their shims keep running."""
        os.kill(self.pid, signal.SIGKILL)
        self._process.thaw()  # nsenter, which must notice it
        self._process.wait()
        self._process = None

    def restart(self) -> None:
        if self._process is not None:
            self.stop()
        self.start()

    def reboot(self) -> None:
        """Simulates a power cut: every process, link, firewall rule, mount and runtime file is gone,
        files are kept. Only the engine is started. Its network namespace is a new one."""
        if self.kind.podman:
            raise NotImplementedError("Podman's runtime files are not sorted from the others")
        self._end_processes()
        shutil.rmtree(self.directory / "exec")
        (self.directory / "pid").unlink(missing_ok=True)
        self._world = World(*self._place)
        self.start()

    def freeze(self) -> None:
        """The engine hangs: connections are accepted by the kernel and never answered."""
        os.kill(self.pid, signal.SIGSTOP)
        # nsenter stops once its child has stopped: until then a thread may still answer.
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)
        self._process.send(signal.SIGCONT)

    def connect_outside(self) -> Outside:
        """An uplink to a namespace that plays the outside world; it ends with the engine."""
        self._outside = Outside()
        self.world.connect_outside(self._outside)
        return self._outside

    def processes(self) -> set[int]:
        """Every process of this engine, including its containers."""
        found = self._world.processes() if self._world else set()
        if self._outside:
            found |= self._outside.processes()
        if self._process and self._process.returncode() is None:
            found |= {self._process.pid, self.pid}
        return found

    def end(self) -> None:
        """Removes processes, namespaces, control groups and files, even after a partial start."""
        self._end_processes()
        if self.kind.podman:
            # All Podman engines share this parent; the last one removes it.
            with contextlib.suppress(OSError):
                remove_cgroups("libpod_parent")
        if self.directory.exists():
            shutil.rmtree(self.directory)

    def _end_processes(self) -> None:
        if self._process:
            # The world ends when its engine is reaped: by nsenter unless that is frozen, otherwise by
            # the host's PID 1, which not every system does.
            self._process.thaw()
        if self._world:
            self._world.end()
            self._world = None
        if self._process:
            self._process.wait()
            self._process = None
        if self._outside:
            self._outside.end()
            self._outside = None
        remove_cgroups(self.cgroup)

    def _check_version(self) -> None:
        version = self.api.version()["Version"]
        if not version.startswith(self.kind.version):
            raise RuntimeError(
                f"engine {self.kind.name} calls itself {version}; its source has moved on, so "
                "change its recipe or its name in tests/support/engine.py"
            )

    def _dockerd_command(self) -> list[str]:
        command = [
            "dockerd",
            *("--host", self.docker_host),
            *("--group", str(docker_group())),
            *("--data-root", f"{self.directory}/data"),
            *("--exec-root", f"{self.directory}/exec"),
            *("--pidfile", f"{self.directory}/pid"),
            *("--config-file", f"{self.directory}/config.json"),
            *("--cgroup-parent", f"/{self.cgroup}"),
            *("--exec-opt", "native.cgroupdriver=cgroupfs"),
            *("--bip", "172.30.0.1/24"),
            *("--default-address-pool", "base=172.31.0.0/16,size=24"),
        ]
        if self.options.live_restore:
            command.append("--live-restore")
        return [*command, *self.options.arguments]

    def _podman_command(self) -> list[str]:
        return [
            "podman",
            *("--root", f"{self.directory}/data"),
            *("--runroot", f"{self.directory}/exec"),
            *("--tmpdir", f"{self.directory}/tmp"),
            *("--network-config-dir", f"{self.directory}/net"),
            "--cgroup-manager=cgroupfs",
            "--events-backend=file",
            "--log-level=info",
            *self.options.arguments,
            *("system", "service", "-t", "0", self.docker_host),
        ]


def docker_group() -> int:
    """The group with access to an engine; created by Debian's package."""
    try:
        return grp.getgrnam("docker").gr_gid
    except KeyError:
        raise RuntimeError("there is no group docker; install Debian's docker.io") from None


def remove_cgroups(pattern: str) -> None:
    """Removes the control groups of that name, with their children, in every hierarchy."""
    top = Path("/sys/fs/cgroup")
    for group in [*top.glob(pattern), *top.glob(f"*/{pattern}")]:
        if not group.is_dir() or group.is_symlink():
            continue
        for directory, _, _ in os.walk(group, topdown=False):
            os.rmdir(directory)


def _this_machine() -> Path:
    installed = run("dpkg-query", "--show", "--showformat=${Version}", "docker.io", check=False)
    if installed.returncode != 0:
        raise RuntimeError(
            "engine 20.10 is Debian 12's docker.io; install it with: apt-get install docker.io"
        )
    return Path("/")
