# SPDX-License-Identifier: Apache-2.0
"""scripts/check and scripts/test share one list of checks, and all of them are in it."""
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "lib"))

import checks  # noqa: E402
import test_run  # noqa: E402


def check(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([str(ROOT / "scripts" / "check"), *arguments], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60)


def test_every_check_is_in_the_list() -> None:
    assert test_run.CHECKS is checks.CHECKS
    named = {command[0] for command in checks.CHECKS.values()}
    assert {f"scripts/{path.name}" for path in (ROOT / "scripts").glob("check-*")} <= named


@pytest.mark.parametrize("second, code", [(["sh", "-c", "echo the reason; exit 3"], 1), (["true"], 0)])
def test_all_checks_run_and_one_that_fails_is_named(
        second: list[str], code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
        capsys: pytest.CaptureFixture) -> None:
    last = tmp_path / "last"
    monkeypatch.setattr(checks, "CHECKS", {"first": ["true"], "second": second, "third": ["touch", str(last)]})
    assert checks.main() == code
    assert last.exists()
    assert capsys.readouterr().out == ("" if code == 0 else f"the reason\nfailed: second ({' '.join(second)})\n")


def test_the_help_is_shown_and_nothing_runs() -> None:
    shown = check("--help")
    assert shown.returncode == 0 and shown.stdout.startswith("What to run before a commit")
    assert "==>" not in shown.stdout and "steps.sh" not in shown.stdout


def test_an_unknown_argument_is_refused() -> None:
    refused = check("--fast")
    assert refused.returncode == 1 and "--fast: unknown argument" in refused.stdout
