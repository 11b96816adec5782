# SPDX-License-Identifier: Apache-2.0
"""Programs that use the SDKs, run against a private daemon."""

import os
import subprocess
from pathlib import Path

import pytest

from support.daemon import PrivateDaemon
from support.process import base_environment
from support.sandboxes import started

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


def run_with_restarts(argv: list[str], daemon: PrivateDaemon) -> tuple[int, str]:
    """The exit code and output of a program of the daemon's user, for which the daemon is killed and started again when
    it prints "ask kill_daemon" and "ask start_daemon"; it reads "done" then."""
    output = []
    # Closes the pipes and waits; the stdin that it closes ends a program that waits for an answer.
    with subprocess.Popen(daemon.user.command(argv), env=daemon.environment, cwd=daemon.home, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            for line in process.stdout:
                output.append(line)
                if line == "ask kill_daemon\n":
                    daemon.kill()
                elif line == "ask start_daemon\n":
                    started(daemon)
                else:
                    continue
                print("done", file=process.stdin, flush=True)
        except BaseException:
            process.kill()
            raise
    return process.returncode, "".join(output)
