# SPDX-License-Identifier: Apache-2.0
"""The root file systems of private engines, created once and cached outside the clone.

A tree is keyed by the hash of its recipe. It is created next to its final path and renamed when complete,
under a lock, so killed builds and concurrent runs do no harm.
"""

import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from support.process import run

Say = Callable[[str], None]

_PACKAGES = (
    "docker.io,containerd,runc,crun,podman,netavark,aardvark-dns,conmon,iptables,nftables,"
    "iproute2,procps,tini,docker-cli"
)


@dataclass(frozen=True)
class DebianRoot:
    """A minimal Debian with the engines of one release."""

    suite: str
    # For an unreleased version, outdated indexes are acceptable.
    options: tuple[str, ...] = ()

    def name(self) -> str:
        return f"debian-{self.suite}"

    def command(self, directory: Path) -> list[str]:
        return [
            "mmdebstrap",
            "--variant=minbase",
            f"--include={_PACKAGES}",
            '--aptopt=APT::Install-Recommends "false"',
            "--dpkgopt=path-exclude=/usr/share/doc/*",
            "--dpkgopt=path-exclude=/usr/share/man/*",
            "--dpkgopt=path-exclude=/usr/share/locale/*",
            *self.options,
            self.suite,
            os.fspath(directory),
        ]

    def recipe(self) -> str:
        return " ".join(self.command(Path("ROOT")))

    def make(self, directory: Path, say: Say) -> None:
        say(f"making a Debian {self.suite} root for private engines (once, about a minute)")
        run_build([*self.command(directory), debian_mirror()])


@dataclass(frozen=True)
class DebianHost:
    """A machine of a Debian user with an engine, where our package can be installed: other than the roots of engines, it
    has the documents of its packages."""

    suite: str = "bookworm"
    packages: str = "docker.io,iptables,nftables,iproute2,procps,tini,libcap2-bin"

    def name(self) -> str:
        return f"host-{self.suite}"

    def command(self, directory: Path) -> list[str]:
        include = f"--include={self.packages}"
        return ["mmdebstrap", "--variant=minbase", include, self.suite, os.fspath(directory)]

    def recipe(self) -> str:
        return " ".join(self.command(Path("ROOT")))

    def make(self, directory: Path, say: Say) -> None:
        say(f"making a Debian {self.suite} machine for installations (once, about a minute)")
        _run_build([*self.command(directory), debian_mirror()])


@dataclass(frozen=True)
class DebianArchive:
    """A minimal Debian with some packages as `tree.tar`, for an image."""

    suite: str = "bookworm"
    packages: str = "gosu,sudo"
    options: tuple[str, ...] = ()

    def name(self) -> str:
        return f"image-{self.suite}"

    def command(self, directory: Path) -> list[str]:
        return [
            *("mmdebstrap", "--variant=minbase", f"--include={self.packages}"),
            '--aptopt=APT::Install-Recommends "false"',
            *(f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("doc", "man", "locale")),
            *self.options,
            *(self.suite, os.fspath(directory / "tree.tar")),
        ]

    def recipe(self) -> str:
        return " ".join(self.command(Path("DIRECTORY")))

    def make(self, directory: Path, say: Say) -> None:
        say(f"making a Debian {self.suite} image with {self.packages} (once, about a minute)")
        run_build([*self.command(directory), debian_mirror()])


@dataclass(frozen=True)
class MobyPrograms:
    """dockerd and docker-proxy of one release, compiled from the Go module."""

    module: str
    version: str

    def name(self) -> str:
        return f"moby-{self.version}"

    def recipe(self) -> str:
        return f"{self.module} {self.version}"

    def make(self, directory: Path, say: Say) -> None:
        go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
        if go is None:
            raise RuntimeError(f"Docker {self.version} is compiled from source; install Go first")
        say(f"compiling Docker {self.version} (once, about five minutes)")
        module, _, release = self.module.partition("@")
        stamp = f"-X {module}/dockerversion.Version={self.version}"
        with tempfile.TemporaryDirectory(prefix=f"{directory.name}-go-", dir=directory.parent) as work:
            environment = {
                **os.environ,
                "CGO_ENABLED": "0",
                "GOTOOLCHAIN": "local",
                "GOBIN": os.fspath(directory),
                "GOCACHE": f"{work}/build",
                "GOPATH": f"{work}/path",
                # The module cache is read-only by default, and could not be removed.
                "GOFLAGS": "-modcacherw",
            }
            for program in ("dockerd", "docker-proxy"):
                package = f"{module}/cmd/{program}@{release}"
                run_build([go, "install", "-ldflags", f"-s -w {stamp}", package], environment)


Recipe = DebianRoot | DebianHost | DebianArchive | MobyPrograms


def cache_directory() -> Path:
    home_cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    directory = Path(os.environ.get("AGBOX_TEST_CACHE") or Path(home_cache) / "agents-sandbox-tests")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return _trusted(directory)


def _trusted(directory: Path) -> Path:
    """What is in the cache runs as root, so nobody else may have put it there."""
    status = directory.stat()
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise RuntimeError(
            f"{directory} is not root's alone to write to; remove it, or set AGBOX_TEST_CACHE to another "
            "directory"
        )
    return directory


def cached(recipe: Recipe, say: Say) -> Path:
    """The finished directory of the recipe; creates it if missing."""
    digest = hashlib.sha256(f"{platform.machine()} {recipe.recipe()}".encode()).hexdigest()[:12]
    place = cache_directory() / f"{recipe.name()}-{digest}"
    if place.is_dir():
        return _trusted(place)
    with locked(place.with_name(f"{place.name}.lock")):
        if place.is_dir():  # another run made it while we waited
            return _trusted(place)
        for abandoned in place.parent.glob(f"{place.name}.making-*"):
            shutil.rmtree(abandoned)
        making = Path(tempfile.mkdtemp(prefix=f"{place.name}.making-", dir=place.parent))
        try:
            making.chmod(0o755)
            recipe.make(making, say)
        except BaseException:
            shutil.rmtree(making)
            raise
        making.rename(place)
    return place


def debian_mirror() -> str:
    """The mirror that this machine installs from, in any format of its sources."""
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    targets = run(
        *("apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)"),
        "Created-By: Packages",
    ).stdout
    for line in targets.splitlines():
        suite, component, address = line.split(maxsplit=2)
        if suite == release and component == "main":
            return address
    raise RuntimeError(f"apt has no source for {release} main; add one to /etc/apt/sources.list")


def run_build(command: list[str], environment: dict[str, str] | None = None) -> None:
    """A program that makes a part of a recipe, with this machine's own settings."""
    if shutil.which(command[0]) is None:
        raise RuntimeError(
            f"{command[0]} is not there; install it with: apt-get install {command[0]}"
        )
    run(*command, env=environment or dict(os.environ), timeout=1800)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Among all runs of this kit."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def say_on_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
