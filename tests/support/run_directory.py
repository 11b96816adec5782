# SPDX-License-Identifier: Apache-2.0
"""The directory of a test run, and the mark that identifies everything of the run.

Paths are short, because socket paths are limited to 107 bytes. Every process that the kit starts inherits
the mark in its environment, so that the leak check finds it.
"""

import contextlib
import fcntl
import itertools
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

PREFIX = "agbx-"
MARK = "AGBOX_TEST_RUN"
LONGEST_SOCKET_PATH = 107
# Root's alone: whoever may open a file may lock it, and would hold up every test run.
_CHANGE_LOCK = Path("/run/agents-sandbox-tests.lock")
_CHANGE_TIMEOUT = 60


class RunDirectory:
    """A directory in /tmp (or AGBOX_TEST_TMP) for the duration of the test run."""

    def __init__(self) -> None:
        self.id = secrets.token_hex(3)
        self.path = parent_directory() / f"{PREFIX}{self.id}"
        with only_this_run_changes():
            self.path.mkdir()
            # The test user can traverse to its own directories and sees no others.
            self.path.chmod(0o711)
            self._lock = lock_of(self.path)
        self._numbers = itertools.count()
        os.environ[MARK] = self.id

    def new_directory(self, name: str = "t") -> Path:
        """A new directory with a short path, for example /tmp/agbx-1a2b3c/t4."""
        directory = self.path / f"{name}{next(self._numbers)}"
        directory.mkdir()
        directory.chmod(0o711)
        return directory

    def remove(self) -> None:
        with only_this_run_changes():
            shutil.rmtree(self.path)
        os.close(self._lock)
        del os.environ[MARK]


def parent_directory() -> Path:
    return Path(os.environ.get("AGBOX_TEST_TMP", "/tmp"))


@contextlib.contextmanager
def only_this_run_changes() -> Iterator[None]:
    """Runs begin and end next to each other: no other run's directory comes, goes or is taken for an
    abandoned one in the block."""
    lock = os.open(_CHANGE_LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        # The program, because it has a time limit. The lock is that of the open file, so it stays.
        # Without the mark of a run, by which the program would be killed with an abandoned one.
        command = ["flock", "--timeout", str(_CHANGE_TIMEOUT), str(lock)]
        if subprocess.run(command, pass_fds=[lock], env={}).returncode != 0:
            raise RuntimeError(
                f"{_CHANGE_LOCK} is still locked after {_CHANGE_TIMEOUT} s; `fuser -v {_CHANGE_LOCK}` "
                "shows the test run that holds it"
            )
        yield
    finally:
        os.close(lock)


def check_socket_path(path: Path) -> Path:
    length = len(os.fsencode(path))
    if length > LONGEST_SOCKET_PATH:
        raise ValueError(
            f"socket path {path} has {length} bytes, more than the {LONGEST_SOCKET_PATH} that fit; "
            "take a directory of RunDirectory.new_directory()"
        )
    return path


def lock_of(directory: Path) -> int | None:
    """The acquired lock of a run's directory, or None if its run is alive."""
    lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock
