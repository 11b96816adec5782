# SPDX-License-Identifier: Apache-2.0
"""scripts/check-docs finds dead links and decisions that the index does not list."""
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINE = "| 0001 | [A choice](0001-a-choice.md) | why | in force |\n"


def check(root: Path) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, str(ROOT / "scripts" / "check-docs"), "--root", str(root)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """A tree without a fault: one decision, and the index that lists it."""
    decisions = tmp_path / "docs" / "decisions"
    decisions.mkdir(parents=True)
    table = subprocess.run([sys.executable, str(ROOT / "scripts" / "check-layers"), "--table"], check=True, text=True,
                           stdout=subprocess.PIPE, timeout=60).stdout
    (tmp_path / "docs" / "architecture.md").write_text(table)
    (decisions / "README.md").write_text(LINE)
    (decisions / "0001-a-choice.md").write_text("# 0001: A choice\n\nText.\n")
    assert (check(tmp_path).returncode, check(tmp_path).stdout) == (0, "")
    return tmp_path


def test_a_link_to_nothing_is_reported(documents: Path) -> None:
    (documents / "README.md").write_text("[more](docs/none.md)\n")
    run = check(documents)
    assert (run.returncode, run.stdout) == (1, "README.md: links to docs/none.md, which does not exist\n")


@pytest.mark.parametrize("index", ["", LINE.replace("A choice", "Another title"), LINE.replace("0001 ", "0002 ")])
def test_a_decision_that_is_not_listed_as_it_is_called_is_reported(documents: Path, index: str) -> None:
    (documents / "docs" / "decisions" / "README.md").write_text(index)
    run = check(documents)
    assert run.returncode == 1
    assert run.stdout == ("docs/decisions/README.md: has no line \"| 0001 | [A choice](0001-a-choice.md) |\"\n")


def test_without_an_index_every_decision_is_reported(documents: Path) -> None:
    (documents / "docs" / "decisions" / "README.md").unlink()
    assert check(documents).returncode == 1


def test_the_heading_of_a_decision_has_its_number(documents: Path) -> None:
    (documents / "docs" / "decisions" / "0001-a-choice.md").write_text("# A choice\n")
    run = check(documents)
    assert (run.returncode, run.stdout) == (
        1, "docs/decisions/0001-a-choice.md: its heading has to be \"# 0001: TITLE\"\n")
