# SPDX-License-Identifier: Apache-2.0
"""The workflows of CI: valid YAML, actions of a fixed version, least permissions, and scripts that can be
executed."""

import os
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SCRIPT = re.compile(r"(?<![\w/.])(?:scripts|\.ci)/[\w-]+(?:\.sh)?")


def steps_of(workflow: dict) -> list[dict]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_there_are_workflows() -> None:
    assert {path.name for path in WORKFLOWS} >= {"ci.yml", "release.yml"}


@pytest.fixture(params=WORKFLOWS, ids=lambda path: path.name)
def workflow(request) -> dict:
    return yaml.safe_load(request.param.read_text())


def test_it_has_the_parts_that_it_needs(workflow: dict) -> None:
    assert workflow["name"] and True in workflow, "on: is true in YAML 1.1"
    assert set(workflow["permissions"]) == {"contents"}, "no more than it needs"
    for name, job in workflow["jobs"].items():
        assert re.fullmatch(r"ubuntu-\d\d\.\d\d", job["runs-on"]), f"{name}: a fixed runner"
        assert 0 < job["timeout-minutes"] <= 360, name
        assert all(("run" in step) != ("uses" in step) for step in job["steps"]), name


def test_actions_have_a_version(workflow: dict) -> None:
    for step in steps_of(workflow):
        assert "uses" not in step or re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]), step


def test_the_scripts_exist(workflow: dict) -> None:
    named = {name for step in steps_of(workflow) for name in SCRIPT.findall(step.get("run", ""))}
    assert named
    for name in named:
        assert os.access(ROOT / name, os.X_OK), name


def test_no_expression_of_others_is_in_a_command(workflow: dict) -> None:
    """What others choose, such as the name of a branch, would be executed."""
    assert [step["run"] for step in steps_of(workflow) if "${{" in step.get("run", "")] == []
