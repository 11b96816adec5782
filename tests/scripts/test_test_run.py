# SPDX-License-Identifier: Apache-2.0
"""The counting behind scripts/test: nothing that failed, broke or was left out counts as passed."""
import argparse
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "lib"))

import test_run  # noqa: E402
from junit import Tally, read_tally, tally_of_run  # noqa: E402

REPORT = """<testsuites><testsuite>
  <testcase classname="a" name="good" status="run"/>
  <testcase classname="a" name="bad"><failure message="1 != 2"/></testcase>
  <testcase classname="a" name="broken"><error message="teardown"/></testcase>
  <testcase classname="a" name="broken"><error message="and its leak check"/></testcase>
  <testcase classname="a" name="skipped"><skipped message="no engine"/></testcase>
  <testcase name="program_NOT_BUILT" status="notrun"/>
</testsuite></testsuites>"""


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.xml"
    path.write_text(REPORT)
    return path


def test_every_outcome_is_counted(report: Path) -> None:
    tally = read_tally(report)
    assert tally.passed == 1
    assert tally.failed == ["a.bad", "a.broken"]
    assert tally.skipped == ["a.skipped", "program_NOT_BUILT"]
    assert tally.line() == "1 passed, 2 failed, 2 skipped"


@pytest.mark.parametrize("text, code, failure", [
    (None, 0, "step: ended with 0 and without a report"),
    ("<testsuites", 0, "step: its report cannot be read"),
    ("<testsuite/>", 0, "step: ran no test"),
    ('<testsuite><testcase name="x"/></testsuite>', 8, "step: ended with 8"),
])
def test_a_runner_that_broke_is_a_failure(tmp_path: Path, text: str | None, code: int,
                                          failure: str) -> None:
    path = tmp_path / "report.xml"
    if text is not None:
        path.write_text(text)
    tally = tally_of_run("step", path, code)
    assert len(tally.failed) == 1 and tally.failed[0].startswith(failure)


@pytest.mark.parametrize("tally, ci, code", [
    (Tally(passed=3), "true", 0),
    (Tally(passed=3, skipped=["x"]), "", 0),
    (Tally(passed=3, skipped=["x"]), "true", 1),
    (Tally(passed=3, failed=["x"]), "", 1),
    (Tally(), "", 1),
])
def test_the_exit_code_follows_the_tally(tally: Tally, ci: str, code: int,
                                         monkeypatch: pytest.MonkeyPatch,
                                         capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setenv("CI", ci)
    run = test_run.Run(argparse.Namespace(k="", long=False))
    run.tally = tally
    assert run.finish() == code
    assert capsys.readouterr().out.splitlines()[-1] == tally.line()


def test_a_failed_command_shows_its_words_and_a_good_one_does_not(capfd: pytest.CaptureFixture) -> None:
    assert test_run.call(["sh", "-c", "echo fine"], quiet=True) == 0
    assert test_run.call(["sh", "-c", "echo the reason; exit 3"], quiet=True) == 3
    assert capfd.readouterr().out == "the reason\n"


def test_a_command_that_never_ends_is_ended(capfd: pytest.CaptureFixture) -> None:
    assert test_run.call(["sleep", "600"], quiet=True, timeout=0.2) != 0
    assert "still running after" in capfd.readouterr().out


def test_a_check_beside_other_steps_takes_idle_time_and_speaks_after_them(
        tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    os.mkfifo(tmp_path / "met")
    run = test_run.Run(argparse.Namespace(k="", long=False))
    with run.check_beside("idle", ["sh", "-c", f"chrt -p $$; : > {tmp_path}/met; exit 1"]):
        (tmp_path / "met").read_text()  # ends only if the check runs now
        run.step("other", lambda: Tally(passed=1))
    said = capfd.readouterr().out
    assert said.index("other: 1 passed") < said.index("SCHED_IDLE")
    assert (run.tally.passed, run.tally.failed) == (1, ["check idle"])


def test_words_for_pytest_become_a_pattern_for_ctest() -> None:
    assert test_run.as_name_pattern("store and not (x") == r"store|\(x"
