# SPDX-License-Identifier: Apache-2.0
"""A Debian 12 machine with a Docker Engine, on which a test installs our package as its administrator and uses it as one of
its users. It is in namespaces of its own, and its files are a layer over a tree that others share."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from support.engine import EngineKind, EngineOptions, PrivateEngine
from support.engine_root import DebianHost, Say
from support.process import LoggedProcess, base_environment
from support.run_directory import RunDirectory
from support.sandboxes import CONFIG

_KIND = EngineKind("debian-12", "20.10.", root=DebianHost())
_USER, _UID = "ada", 2_009_999_999
_HOME, _RUNTIME = f"/home/{_USER}", f"/run/user/{_UID}"
_SYSTEM_FILES = ("var/lib/dpkg", "var/lib/apt", "var/lib/docker", "var/cache", "var/log", "var/run", "var/tmp", "run", "tmp")


class PackagedHost:
    """`engine` is its engine, at the default socket too. Its user is in the group docker, and not logged in."""

    def __init__(self, run_directory: RunDirectory, say: Say):
        self.engine = PrivateEngine(_KIND, run_directory, EngineOptions(has_writable_root=True), say)
        self._incoming = self.engine.directory / "packages"  # seen inside under the same path
        self._incoming.mkdir()
        try:
            self.run("ln", "-s", self.engine.socket, "/run/docker.sock")
            self.run("chgrp", "docker", self.engine.socket)
            self.run("useradd", "--uid", str(_UID), "--create-home", "--groups", "docker", "--shell", "/bin/sh", _USER)
            self.run("install", "-d", "-m", "0700", "-o", _USER, "-g", _USER, "/run/user", _RUNTIME)
            self.run("chown", "root:root", "/run/user")
            self.run("chmod", "0755", "/run/user")
        except BaseException:
            self.engine.end()
            raise

    def __enter__(self) -> "PackagedHost":
        return self

    def __exit__(self, *_) -> None:
        self.engine.end()

    # --- the administrator ---

    def run(self, *argv: str | os.PathLike, **options) -> subprocess.CompletedProcess:
        return self.engine.world.run(*argv, **options)

    def apt_get(self, *arguments: str | os.PathLike, check: bool = True) -> str:
        """All that it prints, and the maintainer scripts of packages."""
        environment = base_environment() | {"DEBIAN_FRONTEND": "noninteractive"}
        return self.run("apt-get", "--quiet", "--yes", *arguments, check=check, env=environment,
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout

    def bring(self, package: Path) -> Path:
        """The path of a file inside."""
        return Path(shutil.copy(package, self._incoming))

    def install(self, package: Path, *options: str) -> str:
        return self.apt_get("install", *options, self.bring(package))

    def path(self, inside: str) -> Path:
        """Of a file, as seen from outside."""
        return Path(f"/proc/{self.engine.world.init}/root{inside}")

    def changes(self) -> set[str]:
        """The files that differ from those of the fresh machine, but for what every installation of any package changes."""
        top = self.engine.directory / "root" / "files"
        found = {str(path.relative_to(top)) for path in top.rglob("*") if not path.is_dir() or path.is_symlink()}
        return {name for name in found if not name.startswith(_SYSTEM_FILES)}

    # --- the user ---

    @property
    def environment(self) -> dict[str, str]:
        return {
            **base_environment(),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": _HOME,
            "USER": _USER,
            "XDG_RUNTIME_DIR": _RUNTIME,
        }

    def as_user(self, *argv: str | os.PathLike) -> list[str]:
        """The command line that runs argv as the user, in the home directory."""
        become = ["setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--init-groups", "--inh-caps=-all", "--"]
        there = ["sh", "-c", f'cd {_HOME} && exec "$@"', "as_user"]
        return self.engine.world.command([*become, *there, *argv])

    def agbox(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess:
        argv = self.as_user("agbox", *arguments)
        done = subprocess.run(argv, env=self.environment, text=True, timeout=120, stdin=subprocess.DEVNULL, capture_output=True)
        assert not check or done.returncode == 0, (arguments, done.returncode, done.stdout, done.stderr)
        return done

    def begin(self, *arguments: str) -> LoggedProcess:
        """An agbox in the background."""
        return LoggedProcess("agbox", self.as_user("agbox", *arguments), self.environment)

    def write_config(self) -> None:
        directory = f"{_HOME}/.config/agents-sandbox"
        self.run("install", "-d", "-o", _USER, "-g", _USER, f"{_HOME}/.config", directory)
        self.path(f"{directory}/config.toml").write_text(CONFIG)

    def daemon_process(self) -> str:
        """The PID of the user's daemon, as the machine has it."""
        return json.loads(self.agbox("daemon", "status", "--json").stdout)["process"]
