# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the guest's tests in real containers: images, a link daemon, sandboxes."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.engine import PrivateEngine
from support.images import make_image
from support.leaks import LeakCheck
from support.odd_images import odd_image
from support.run_directory import RunDirectory

sys.path.insert(0, str(Path(__file__).parent))

from execs import Execs  # noqa: E402
from link import LinkDaemon, new_state_root  # noqa: E402
from sandbox import Sandbox  # noqa: E402


@pytest.fixture(scope="session")
def guest_bin_dir(bin_dir: Path) -> Path:
    for program in (bin_dir / "agbox-guest", bin_dir.parent / "tests" / "guest_link_daemon"):
        if not program.exists():
            pytest.fail(
                f"there is no {program}; build it with `cmake --preset release && cmake --build "
                "--preset release`, or set AGBOX_BIN_DIR",
                pytrace=False,
            )
    return bin_dir


@pytest.fixture(scope="session")
def guest_directory(run_directory: RunDirectory, leak_check: LeakCheck) -> Iterator[Path]:
    # Readable for the link daemons' users; its content has its own permissions.
    directory = run_directory.new_directory("l")
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(scope="session")
def image(engine: PrivateEngine) -> Callable[[str], str]:
    """image("busybox"): the tag of one of the unusual images, created on first use."""
    made: dict[str, str] = {}

    def get(name: str) -> str:
        if name not in made:
            made[name] = make_image(engine.api, f"guest-test/{name}:1", odd_image(name))
        return made[name]

    return get


@pytest.fixture(scope="session")
def link_program(guest_bin_dir: Path, guest_directory: Path) -> Path:
    """A copy that every user can execute."""
    copy = guest_directory / "guest_link_daemon"
    shutil.copy2(guest_bin_dir.parent / "tests" / "guest_link_daemon", copy)
    shutil.copy2(guest_bin_dir / "agbox-guest", guest_directory / "agbox-guest")
    return copy


@pytest.fixture
def start_daemon(link_program: Path, guest_directory: Path) -> Iterator[Callable[[int], LinkDaemon]]:
    started: list[LinkDaemon] = []

    def start(uid: int) -> LinkDaemon:
        daemon = LinkDaemon(link_program, new_state_root(guest_directory, uid), uid)
        started.append(daemon)
        return daemon

    yield start
    for daemon in started:
        daemon.end()


@pytest.fixture(params=[0, 1000], ids=["root", "uid1000"])
def uid(request: pytest.FixtureRequest) -> int:
    """The daemon's user, which is HOST_UID."""
    return request.param


_numbers = itertools.count(1)


@pytest.fixture
def sandbox(
    engine: PrivateEngine,
    image: Callable[[str], str],
    start_daemon: Callable[[int], LinkDaemon],
    guest_directory: Path,
) -> Iterator[Callable[..., Sandbox]]:
    """sandbox("busybox", uid=1000): a created container that is not started."""
    made: list[Sandbox] = []

    def make(name: str, uid: int = 1000, **options) -> Sandbox:
        box = Sandbox(
            engine=engine,
            daemon=start_daemon(uid),
            name=f"guest-test-{os.getpid()}-{next(_numbers)}",
            image=image(name),
            image_user=odd_image(name).user,
            image_entrypoint=list(odd_image(name).entrypoint),
            program=guest_directory / "agbox-guest",
            **options,
        )
        made.append(box)
        return box

    yield make
    for box in made:
        box.remove()


@pytest.fixture
def execs(sandbox: Callable[..., Sandbox], guest_directory: Path) -> Callable[..., Execs]:
    """execs("busybox", uid=1000): the execs of a ready sandbox."""

    def make(name: str, uid: int = 1000, **options) -> Execs:
        box = sandbox(name, uid, **options)
        guest_pid = box.ready()["pid"]
        return Execs(box, guest_pid, guest_directory / f"logs-{box.name}")

    return make
