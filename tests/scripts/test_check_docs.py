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


def test_a_link_to_a_heading_that_does_not_exist_is_reported(documents: Path) -> None:
    (documents / "README.md").write_text("[a](docs/a.md#what-is-c), [b](docs/a.md#none), [here](#there)\n")
    (documents / "docs" / "a.md").write_text("## What is C?\n\n```\n# None\n```\n")
    assert check(documents).stdout == ("README.md: links to docs/a.md#none, but there is no such heading\n"
                                       "README.md: links to #there, but there is no such heading\n")


NO_TEST = ("README.md:3: no test runs this example: name the test in scripts/lib/documented_examples.txt, or write "
           "<!-- not run: REASON --> before it\n")


NO_LANGUAGE = ('README.md:3: the language "shell" is none of cmake, console, cpp, dockerfile, go, python, sh, text, toml, '
               "yaml\n")


@pytest.mark.parametrize("before, language, words", [
    ("Text.", "sh", NO_TEST),
    ("<!-- not run: -->", "sh", NO_TEST),
    ("<!-- not run: needs two machines -->", "sh", ""),
    ("Text.", "text", ""),
    ("Text.", "shell", NO_LANGUAGE),
])
def test_every_example_runs_or_says_why_not(documents: Path, before: str, language: str, words: str) -> None:
    (documents / "README.md").write_text(f"{before}\n\n```{language}\ntrue\n```\n")
    assert check(documents).stdout == words


@pytest.mark.parametrize("row, words", [
    ("README.md sh tests/test_it.py", ""),
    ("README.md sh tests/none.py", "scripts/lib/documented_examples.txt: tests/none.py does not exist\n"),
    ("docs/a.md go tests/test_it.py", "scripts/lib/documented_examples.txt: docs/a.md has no example in go\n"),
])
def test_the_table_of_examples_names_tests_that_exist(documents: Path, row: str, words: str) -> None:
    exemption = "<!-- not run: why -->" if " go " in row else ""
    (documents / "README.md").write_text(f"{exemption}\n\n```sh\ntrue\n```\n")
    for name, text in (("scripts/lib/documented_examples.txt", f"# comment\n{row}\n"), ("tests/test_it.py", "")):
        (documents / name).parent.mkdir(parents=True, exist_ok=True)
        (documents / name).write_text(text)
    assert check(documents).stdout == words


UNKNOWN = "is in no source; a name of others goes into NAMES_OF_OTHERS of scripts/lib/document_words.py"


@pytest.mark.parametrize("text, words", [
    ("`create_sandbox()` and `kLimit` and EXEC_GONE", f"README.md: EXEC_GONE {UNKNOWN}\n"),
    ("`creat_sandbox` and `Limits::kLimits`", f"README.md: creat_sandbox {UNKNOWN}\nREADME.md: kLimits {UNKNOWN}\n"),
    ("`runtime.idle_ttl` and `runtime.idle_tl`",
     f"README.md: idle_tl {UNKNOWN}\nREADME.md: runtime.idle_tl is no configuration key\n"),
    ("a create_sandbx without quotes", ""),
])
def test_names_in_documents_exist(documents: Path, text: str, words: str) -> None:
    for name, source in (("src/limits.h", "create_sandbox kLimit"),
                         ("src/daemon/configuration_key.cpp", '{.table = "runtime",\n .name = "idle_ttl", idle_ttl')):
        (documents / name).parent.mkdir(parents=True, exist_ok=True)
        (documents / name).write_text(source)
    (documents / "README.md").write_text(text + "\n")
    assert check(documents).stdout == words


def test_what_the_api_has_is_documented(documents: Path) -> None:
    for name, source in (("api/agbox/v1/service.proto", "  rpc Ping(A) returns (B);\n  rpc Pong(A) returns (B);\n"),
                         ("src/model/reasons.h", 'kGone{ErrorCode::NotFound, "EXEC_GONE"};')):
        (documents / name).parent.mkdir(parents=True, exist_ok=True)
        (documents / name).write_text(source)
    (documents / "README.md").write_text("`Ping`\n")
    assert check(documents).stdout == ("api/agbox/v1/service.proto: no document mentions Pong\n"
                                       "src/model/reasons.h: no document mentions EXEC_GONE\n")


def test_a_table_that_lists_everything_is_compared_with_the_sources(documents: Path) -> None:
    source = documents / "src" / "control" / "doctor" / "diagnosis.cpp"
    source.parent.mkdir(parents=True)
    source.write_text('#include "control/doctor.h"\n    {"engine", "live-restore",\n     "disk"});\n')
    (documents / "docs" / "doctor.md").write_text(
        "| Check | Checks | Result if it fails |\n|---|---|---|\n| `engine` | it | broken |\n| `disc` | it | broken |\n\n"
        "| `no` |\n")
    table = 'docs/doctor.md: the table "| Check | Checks | Result if it fails |"'
    assert check(documents).stdout == (f"{table} has no row for disk\n{table} has no row for live-restore\n"
                                       f"{table} has a row for disc, which does not exist\n")
