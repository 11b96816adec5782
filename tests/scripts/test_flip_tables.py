# SPDX-License-Identifier: Apache-2.0
"""scripts/flip-tables with programs of tests that are made for the purpose: what counts as caught, and what
is named as a fault."""
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "flip-tables"
# Speaks like GoogleTest. Its tests differ in what they do with a flip.
PROGRAM = """#!/usr/bin/python3
import os, sys
test = next(argument.split("=", 1)[1] for argument in sys.argv if argument.startswith("--gtest_filter="))
flip, log = os.environ.get("AGBOX_FLIP", ""), os.environ["AGBOX_FLIP_LOG"]
if test == "Fake.Unknown":
    print("[  PASSED  ] 0 tests.")
    sys.exit(0)
if test == "Fake.RefusesTheOrder":
    print("AGBOX_FLIP: there is no such event")
    sys.exit(3)
print(f"[ RUN      ] {test}", flush=True)
if test == "WorkTest.*":
    open(log, "a").write("work 0,0,0,0\\n")
if flip and test != "Fake.FailsAnyhow":
    open(log, "a").write("flipped\\n")
if test == "Fake.Dies":
    os.abort()
if test in ("Fake.Notices", "Fake.FailsAnyhow"):
    print(f"[  FAILED  ] {test}")
    sys.exit(1)
print("[  PASSED  ] 1 test.")
"""


@pytest.fixture(autouse=True)
def all_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGBOX_TEST_SAMPLE", raising=False)


@pytest.fixture
def build(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    for name in ("control_test", "model_test"):
        program = tmp_path / "tests" / name
        program.write_text(PROGRAM)
        program.chmod(0o755)
    return tmp_path


@pytest.fixture
def judge(tmp_path: Path, build: Path):
    def run(*lines: str) -> list[str]:
        """What is said of these flips, without what is said of rows that have none."""
        listing = tmp_path / "flips.txt"
        listing.write_text("# a comment\n" + "\n".join(lines) + "\n")
        done = subprocess.run([str(SCRIPT), "--build", str(tmp_path), "--list", str(listing)], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        assert done.returncode == 1, "most rows have no test here"
        return [line for line in done.stderr.splitlines() if "no test is named" not in line]

    return run


@pytest.mark.parametrize("test", ["Fake.Notices", "Fake.Dies"])
def test_a_test_that_ends_badly_after_the_wrong_verdict_has_caught_it(judge, test: str) -> None:
    assert judge(f"decide Stop:Ready nothing {test}") == []


@pytest.mark.parametrize("test, words", [
    ("Fake.Passes", "passes"),
    ("Fake.FailsAnyhow", "failed without having got"),
    ("Fake.Unknown", "does not exist"),
    ("Fake.RefusesTheOrder", "there is no such event"),
])
def test_anything_else_is_named(judge, test: str, words: str) -> None:
    [fault] = judge(f"plan Ready:Exited:no_network Adopt {test}")
    assert "Ready:Exited:no_network" in fault and words in fault


def test_the_everyday_run_draws_some_and_every_commit_others(judge, monkeypatch: pytest.MonkeyPatch) -> None:
    flips = [f"decide {command}:{state} nothing Fake.Passes" for command in ("Stop", "Resume", "Delete")
             for state in ("Creating", "Ready", "Stopping", "Stopped", "Resuming", "Failed", "Deleting", "Deleted")]
    drawn = []
    for commit in ("one", "two"):
        monkeypatch.setenv("AGBOX_TEST_SAMPLE", commit)
        drawn.append(set(judge(*flips)))
    assert drawn[0] != drawn[1]
    assert all(0 < len(some) < len(flips) for some in drawn)


def test_a_row_that_is_gone_is_named(judge) -> None:
    [fault] = judge("decide Stop:Napping nothing Fake.Notices")
    assert "decide Stop:Napping: there is no such row any more" in fault


def test_every_row_needs_a_test(tmp_path: Path, build: Path) -> None:
    """The rows come from the headers: states by commands, and states by what is seen; those of the work table from its
    own tests."""
    (tmp_path / "flips.txt").write_text("")
    done = subprocess.run([str(SCRIPT), "--build", str(tmp_path), "--list", str(tmp_path / "flips.txt")],
                          text=True, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 1
    missing = {line.split(": no test")[0] for line in done.stderr.splitlines()}
    assert {"decide Stop:Creating", "decide LosePrimary:Deleted", "plan Creating:seen",
            "plan Stopped:Foreign:no_network:no_directory", "apply Deleted",
            "work Creating/Idle/None:Accept"} <= missing
