# SPDX-License-Identifier: Apache-2.0
"""The engine contract test (tests/contract) against every selected real engine, each with the
oldest API version that it can be limited to."""

import re
import shutil
from pathlib import Path

import pytest
from support.images import Image, make_image
from support.process import base_environment, run

# Docker 29 accepts nothing older than 1.44 by default; this is its strictest setting.
STRICTEST = {"29": {"DOCKER_MIN_API_VERSION": "1.44"}}


@pytest.fixture
def strict_engine(engine, make_engine):
    name = engine.kind.name
    return make_engine(name, environment=STRICTEST[name]) if name in STRICTEST else engine


@pytest.mark.engines("20.10", "26", "28", "29")
def test_the_engine_behaves_as_the_client_relies_on(strict_engine, bin_dir, make_registry):
    program = bin_dir.parent / "tests" / "engine_contract_test"
    assert program.exists(), f"there is no {program}; build it with: cmake --build --preset release"
    image = make_image(strict_engine.api, "agbox-contract:latest", Image(command=["/bin/sleep", "1000"]))
    registry = make_registry(strict_engine)
    wanted = registry.push(strict_engine.api, "pullable:latest", Image(files={"/pull": b"me"}))
    # The engine sees its own directory of this machine, and no other.
    guest = Path(shutil.copy(bin_dir / "agbox-guest", strict_engine.directory))
    environment = {
        **base_environment(),
        "TMPDIR": str(strict_engine.directory),
        "AGBOX_ENGINE_SOCKET": str(strict_engine.socket),
        "AGBOX_ENGINE_IMAGE": image,
        "AGBOX_ENGINE_PULL_IMAGE": wanted,
        "AGBOX_ENGINE_SUBNET": "10.221.99",
        "AGBOX_GUEST_PROGRAM": str(guest),
    }
    done = run(program, "--gtest_filter=*Real*", env=environment, check=False, timeout=240)
    strict_engine.api.call("DELETE", f"/images/{wanted}", query={"force": "true"})
    assert done.returncode == 0, done.stdout[-8000:]
    assert "SKIPPED" not in done.stdout
    for suite in ("EngineContract", "EnginePort"):
        passed = rf"^\[       OK \] \w+/{suite}\.\w+/Real\b"
        assert re.search(passed, done.stdout, re.MULTILINE), f"no test of {suite} ran:\n{done.stdout[-8000:]}"
