# SPDX-License-Identifier: Apache-2.0
"""scripts/results fills README.md from result files, and notices a table that is out of date."""

import importlib.machinery
import json
import subprocess
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from rows import ROWS  # noqa: E402

README = "".join(
    f"# {name}\n<!-- results:{name} -->\n<!-- /results -->\n" for name in ("speed", "isolation", "survival")
)
ISOLATION = """
| Engine | State | Host | LAN | Reached | Works | Refusal |
|---|---|---|---|---|---|---|
| 28 | as it starts | 700 | 300 | 0 | 23 | 1.3 |
| 28 | flushed | 10 | 20 | 2 | 22 | 4.5 |
| 29 | as it starts | 5 | 6 | 0 | 23 | 1.0 |
"""
SURVIVAL = """
| Scenario | Engine | Date | Seeds | Kills | Lost | Gaps |
|---|---|---|---|---|---|---|
| daemon killed | fakes | 2026-11-16 | 1 | 10,013 (2 at failpoints) | 0 | 1 |
"""


def results(root: Path, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "results"), "--root", str(root), *arguments],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "README.md").write_text(README)
    (tmp_path / "docs" / "results").mkdir(parents=True)
    (tmp_path / "docs" / "results" / "isolation.md").write_text(ISOLATION)
    (tmp_path / "docs" / "results" / "robustness.md").write_text(SURVIVAL)
    return tmp_path


def measured(benchmark: str, engine: str | None, arms: dict[str, dict[str, float]]) -> dict:
    """As scripts/bench --json prints a row."""
    return {
        "benchmark": benchmark,
        "engine": engine,
        "arms": {
            arm: {metric: {"p50": p50, "p99": 2 * p50} for metric, p50 in metrics.items()}
            for arm, metrics in arms.items()
        },
    }


def run_of(*rows: dict) -> str:
    return json.dumps({"machine": {"cores": 2, "cpu": "a processor", "kernel": "6.1", "load": 0.1}, "rows": rows})


def test_attempts_and_kills_are_added_up(tree: Path) -> None:
    assert results(tree).returncode == 0
    text = (tree / "README.md").read_text()
    assert "| 28 | 2 | 1,030 | 2 | 4.5 ms |\n| 29 | 1 | 11 | 0 | 1.0 ms |\n" in text
    assert "| daemon killed | fakes | 10,013 (2 at failpoints) | 1 |\n" in text


def test_speed_is_that_of_the_newest_engine_and_only_what_was_measured(tree: Path) -> None:
    assert "No run on a quiet machine" in speed_table(tree)
    (tree / "docs" / "results" / "speed.json").write_text(
        run_of(
            measured(
                "life",
                "20.10",
                {"agboxd": {"create_ms": 9, "delete_ms": 9}, "engine API by hand": {"create_ms": 9, "delete_ms": 9}},
            ),
            measured(
                "life",
                "28",
                {
                    "agboxd": {"create_ms": 412.4, "delete_ms": 80},
                    "engine API by hand": {"create_ms": 400, "delete_ms": 100},
                },
            ),
        )
    )
    text = speed_table(tree)
    assert "| a sandbox, from create to ready | 412 ms | 400 ms (engine API by hand) | 1 |\n" in text
    assert "| its deletion | 80.0 ms | 100 ms (engine API by hand) | 0.8 |\n" in text
    assert "docker exec" not in text and "on Docker 28, 2 cores of a processor, kernel 6.1" in text


def speed_table(tree: Path) -> str:
    assert results(tree).returncode == 0
    return (tree / "README.md").read_text().partition("# isolation")[0]


def test_a_table_that_is_out_of_date_fails_the_check(tree: Path) -> None:
    results(tree)
    assert results(tree, "--check").returncode == 0
    (tree / "docs" / "results" / "isolation.md").write_text(ISOLATION.replace("| 700 |", "| 701 |"))
    checked = results(tree, "--check")
    assert (checked.returncode, checked.stdout) == (
        1,
        "README.md: its tables are not what docs/results has; run scripts/results\n",
    )
    assert "1,030" in (tree / "README.md").read_text()


@pytest.mark.parametrize(
    "name, text, words",
    [
        ("README.md", "# without tables\n", "README.md has tables for nothing"),
        ("docs/results/isolation.md", "nothing\n", 'no table whose first column is "Engine"'),
        ("docs/results/speed.json", run_of(measured("ping", None, {})), "has none of the benchmarks cli, copies, exec"),
        ("docs/results/speed.json", "{", "JSONDecodeError"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(tree: Path, name: str, text: str, words: str) -> None:
    (tree / name).write_text(text)
    before = (tree / "README.md").read_text()
    ran = results(tree)
    assert ran.returncode == 1 and words in ran.stdout
    assert (tree / "README.md").read_text() == before


def test_every_benchmark_of_the_table_exists() -> None:
    loader = importlib.machinery.SourceFileLoader("results", str(ROOT / "scripts" / "results"))
    script = types.ModuleType("results")
    loader.exec_module(script)
    assert {speed.benchmark for speed in script.SPEEDS} <= {row.name for row in ROWS}
