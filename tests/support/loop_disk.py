# SPDX-License-Identifier: Apache-2.0
"""A small private filesystem that a test can fill."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from support.process import run


@contextlib.contextmanager
def loop_disk(directory: Path, size: int) -> Iterator[Path]:
    """Mounted in `directory`. An engine sees only what is mounted before it is created."""
    image, place = directory / "disk", directory / "mounted"
    with image.open("wb") as file:
        file.truncate(size)
    run("mkfs.ext4", "-q", "-m", "0", image)
    place.mkdir()
    run("mount", "-o", "loop", image, place)
    try:
        yield place
    finally:
        run("umount", place)
