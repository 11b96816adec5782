# SPDX-License-Identifier: Apache-2.0
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def release_build() -> Path:
    """The release build that the run tests; AGBOX_BIN_DIR names its bin directory."""
    build = Path(os.environ.get("AGBOX_BIN_DIR", ROOT / "build" / "release" / "bin")).parent
    if not (build / "bench" / "echo_server").is_file():
        pytest.fail(f"{build} is not built; run: cmake --preset release && cmake --build --preset release")
    return build
