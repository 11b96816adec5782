# SPDX-License-Identifier: Apache-2.0
"""Files of the host that enter sandboxes, and a process that replaces them all the time."""

import contextlib
import ctypes
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from support.process import LoggedProcess, base_environment
from support.user import TestUser

_RENAME_EXCHANGE = 2
_AT_FDCWD = -100

# Lets the first path change places with each of the others in turn, and back, until SIGTERM: half of the
# time it is itself.
_SWAP = f"""
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
source, *others = map(os.fsencode, sys.argv[1:])
ends = []
signal.signal(signal.SIGTERM, lambda *_: ends.append(True))
print("swaps", flush=True)
while not ends:
    for other in others:
        for _ in range(2):
            if libc.renameat2({_AT_FDCWD}, source, {_AT_FDCWD}, other, {_RENAME_EXCHANGE}) != 0:
                raise OSError(ctypes.get_errno(), f"exchange {{source}} and {{other}}")
"""


def own(user: TestUser | None, path: Path) -> None:
    """Everything below it belongs to the user."""
    if user:
        subprocess.run(["chown", "-Rh", f"{user.uid}:{user.gid}", path], check=True)


def exchange(one: Path, other: Path) -> None:
    """Both names change places at once."""
    libc = ctypes.CDLL(None, use_errno=True)
    paths = os.fsencode(one), os.fsencode(other)
    if libc.renameat2(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), f"exchange {one} and {other}")


@contextlib.contextmanager
def swapped(source: Path, *others: Path) -> Iterator[None]:
    """Meanwhile the source and each of the others change places all the time; afterwards it is itself."""
    argv = ["/usr/bin/python3", "-c", _SWAP, str(source), *map(str, others)]
    attacker = LoggedProcess("swapper", argv, base_environment())
    try:
        attacker.wait_for_line("swaps".__eq__, "its beginning", timeout=20)
        yield
        assert attacker.returncode() is None, attacker.tail()
    finally:
        attacker.stop()


class HostFiles:
    """A user's files: a project to mount, a secret next to it, and a link to the secret."""

    def __init__(self, directory: Path, uid: int):
        self.root = directory / "files"
        self.project, self.secret, self.out = (self.root / name for name in ("project", "secret", "out"))
        self.link = self.root / "link"
        for path in (self.root, self.project, self.secret, self.out):
            path.mkdir()
        (self.project / "name").write_text("project\n")
        (self.secret / "name").write_text("secret\n")
        self.link.symlink_to(self.secret)
        for path in (self.root, *self.root.rglob("*")):
            os.chown(path, uid, uid, follow_symlinks=False)
