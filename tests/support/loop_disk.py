# SPDX-License-Identifier: Apache-2.0
"""A small filesystem of a test's own, to be filled without harm."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from support.process import run


@contextlib.contextmanager
def loop_disk(folder: Path, size: int) -> Iterator[Path]:
    """Mounted in `folder`. An engine's world sees only what is mounted before it is made."""
    image, place = folder / "disk", folder / "mounted"
    with image.open("wb") as file:
        file.truncate(size)
    run("mkfs.ext4", "-q", "-m", "0", image)
    place.mkdir()
    run("mount", "-o", "loop", image, place)
    try:
        yield place
    finally:
        run("umount", place)
