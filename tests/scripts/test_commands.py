# SPDX-License-Identifier: Apache-2.0
"""Commands of a test run come to their end, also if they are root's and the run is a user's."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "lib"))

import commands  # noqa: E402


def test_a_command_that_takes_too_long_is_ended() -> None:
    ended = commands.run_quietly(["sleep", "600"], timeout=0.2)
    assert ended.code != 0
    assert "sleep 600: still running after 0 s; ended" in ended.text


@pytest.mark.parametrize("in_own_group", [False, True])
def test_a_command_of_roots_is_ended_through_sudo(tmp_path, monkeypatch, in_own_group: bool) -> None:
    """This sudo runs the command as its child, as the real one does."""
    sudo = tmp_path / "sudo"
    sudo.write_text('#!/bin/sh\n[ "$1" != -- ] || shift\n"$@"\nexit $?\n')
    sudo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(subprocess.Popen, "send_signal", refuse)
    monkeypatch.setattr(os, "killpg", refuse)
    ended = commands.run_quietly(commands.as_root(["sleep", "600"]), timeout=0.5, idle=in_own_group)
    assert ended.code == 128 + 2
    assert "still running after 0 s; ended" in ended.text
