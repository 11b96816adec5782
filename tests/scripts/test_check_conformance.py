# SPDX-License-Identifier: Apache-2.0
"""scripts/check-conformance finds calls without a step, and steps that mean nothing."""
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def check(root: Path) -> list[str]:
    run = subprocess.run([sys.executable, str(ROOT / "scripts" / "check-conformance"), "--root", str(root)], text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    assert run.returncode == bool(run.stdout)
    return [line.removeprefix("tests/conformance: ") for line in run.stdout.splitlines()]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Ours, without a fault."""
    shutil.copytree(ROOT / "api" / "agbox", tmp_path / "api" / "agbox")
    shutil.copytree(ROOT / "tests" / "conformance", tmp_path / "tests" / "conformance")
    assert check(tmp_path) == []
    return tmp_path


def change(tree: Path, step: dict) -> None:
    path = tree / "tests" / "conformance" / "scenarios.json"
    table = json.loads(path.read_text())
    table["scenarios"][0]["steps"].append(step)
    path.write_text(json.dumps(table))


def test_a_new_call_needs_a_step_that_succeeds(tree: Path) -> None:
    service = tree / "api" / "agbox" / "v1" / "service.proto"
    text = service.read_text()
    service.write_text(text.replace("  rpc Ping(", "  rpc Fly(PingRequest) returns (PingResponse);\n  rpc Ping("))
    assert check(tree) == ["Fly has no step that succeeds; add one"]
    change(tree, {"rpc": "Fly", "error": {"type": "refused"}})
    assert check(tree) == ["Fly has no step that succeeds; add one"]
    change(tree, {"rpc": "Fly", "response": {}})
    assert check(tree) == []


@pytest.mark.parametrize("step, fault", [
    ({"rpc": "Fly", "response": {}}, "Fly is no call of the API"),
    ({"do": "fly"}, "the daemon says who and how it is: fly is no action of the README"),
    ({}, "the daemon says who and how it is: None is no action of the README"),
])
def test_a_step_without_meaning_is_reported(step: dict, fault: str, tree: Path) -> None:
    change(tree, step)
    assert check(tree) == [fault]
