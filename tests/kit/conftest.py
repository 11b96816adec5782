# SPDX-License-Identifier: Apache-2.0
"""Fixtures shared by the kit's tests."""

from collections.abc import Iterator

import pytest

from support.engine import PrivateEngine
from support.images import Image, make_image

IMAGE = "kit/shell:1"


@pytest.fixture
def image(engine: PrivateEngine) -> str:
    return make_image(engine.api, IMAGE, Image())


@pytest.fixture
def running_container(engine: PrivateEngine, image: str) -> Iterator[str]:
    """A container on the shared engine that sleeps until the end of the test."""
    yield start_sleeper(engine, image)
    engine.docker("rm", "--force", "kit-sleeper")


def start_sleeper(engine: PrivateEngine, image: str) -> str:
    # PID 1 ignores SIGTERM; SIGKILL avoids the wait.
    options = ("--detach", "--name", "kit-sleeper", "--stop-signal", "KILL")
    engine.docker("run", *options, image, "sleep", "600")
    return "kit-sleeper"
