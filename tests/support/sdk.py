# SPDX-License-Identifier: Apache-2.0
"""Programs that use the SDKs, run against a private daemon."""

import os
from pathlib import Path

import pytest

from support.daemon import PrivateDaemon
from support.process import base_environment

REPOSITORY = Path(__file__).resolve().parents[2]
_GO_PROGRAMS = REPOSITORY / "build" / "go" / "bin"
_PYTHON = REPOSITORY / "build" / "tools" / "python" / "bin" / "python"


def sdk_python() -> str:
    """The interpreter that has what the Python SDK depends on."""
    if not _PYTHON.exists():
        pytest.fail(f"there is no {_PYTHON}; run scripts/install-packages --for sdk", pytrace=False)
    return str(_PYTHON)


def sdk_go_program(name: str) -> str:
    """A program with the race detector, which uses the Go SDK."""
    program = _GO_PROGRAMS / name
    if not program.is_file():
        pytest.fail(f"there is no {program}; build it with scripts/test-go --build", pytrace=False)
    return str(program)


def sdk_environment(daemon: PrivateDaemon | None = None) -> dict[str, str]:
    """For a program that uses the Python SDK, from the tree."""
    runtime = {} if daemon is None else {"XDG_RUNTIME_DIR": str(daemon.runtime_directory)}
    return {
        **base_environment(),
        "PYTHONPATH": str(REPOSITORY / "sdk" / "python" / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": os.environ.get("HOME", "/"),
        **runtime,
    }
