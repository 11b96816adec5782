# SPDX-License-Identifier: Apache-2.0
"""scripts/check-spdx finds every kind of source file, and only sources."""
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "check-spdx"


def check(root: Path, *names: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, str(SCRIPT), "--root", str(root), *names], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)


def test_a_file_without_the_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "good.cpp").write_text("// SPDX-License-Identifier: Apache-2.0\nint x;\n")
    (tmp_path / "bad.h").write_text("#pragma once\n")
    (tmp_path / "script").write_text("#!/bin/sh\ntrue\n")
    (tmp_path / "notes.md").write_text("# Notes\n")
    run = check(tmp_path, "good.cpp", "bad.h", "script", "notes.md")
    assert run.returncode == 1
    assert [line.split(":")[0] for line in run.stdout.splitlines()] == ["bad.h", "script"]


def test_the_line_must_be_at_the_top(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text("\n" * 5 + "# SPDX-License-Identifier: Apache-2.0\n")
    assert check(tmp_path, "late.py").returncode == 1


def test_looking_at_nothing_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n")
    assert check(tmp_path, "notes.md").returncode == 1
