# SPDX-License-Identifier: Apache-2.0
"""scripts/check-version and scripts/release-notes, and .ci/in-debian up to the call of docker."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHANGELOG = """# Changelog

## Unreleased

## 1.2.3 - 2026-12-01

### Added

- Something ([docs/a.md](docs/a.md#part), [elsewhere](https://example.com/x), [below](#here)).

## 1.2.2 - 2026-11-01

- Older.
"""


def run(script: str, root: Path, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / script), "--root", str(root), *arguments],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "sdk" / "python").mkdir(parents=True)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(agents-sandbox VERSION 1.2.3 LANGUAGES CXX)\n"
    )
    (tmp_path / "sdk" / "python" / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    return tmp_path


def test_one_version_passes_and_is_printed(tree: Path) -> None:
    checked = run("check-version", tree, "--tag", "v1.2.3", "--print")
    assert (checked.returncode, checked.stdout) == (0, "1.2.3\n")


@pytest.mark.parametrize(
    "name, old, new, words",
    [
        (
            "sdk/python/pyproject.toml",
            "1.2.3",
            "1.2.4",
            "sdk/python/pyproject.toml: has version 1.2.4, and CMakeLists.txt has 1.2.3\n",
        ),
        (
            "sdk/python/pyproject.toml",
            "version",
            "release",
            "sdk/python/pyproject.toml: has version nowhere, and CMakeLists.txt has 1.2.3\n",
        ),
        (
            "CMakeLists.txt",
            "VERSION 1.2.3",
            "",
            "check-version: CMakeLists.txt has no line project(agents-sandbox VERSION X.Y.Z ...)\n",
        ),
        (
            "CMakeLists.txt",
            "1.2.3",
            "1.2.4",
            "sdk/python/pyproject.toml: has version 1.2.3, and CMakeLists.txt has 1.2.4\n"
            "the tag is v1.2.3, and CMakeLists.txt has 1.2.4: it has to be v1.2.4\n"
            'CHANGELOG.md: has no section "## 1.2.4 - DATE"; rename "## Unreleased" to it\n',
        ),
    ],
)
def test_another_version_is_reported(tree: Path, name: str, old: str, new: str, words: str) -> None:
    text = (tree / name).read_text()
    (tree / name).write_text(text.replace(old, new))
    checked = run("check-version", tree, "--tag", "v1.2.3")
    assert (checked.returncode, checked.stdout) == (1, words)


def test_the_notes_are_the_section_with_links_that_work_elsewhere(tree: Path) -> None:
    notes = run("release-notes", tree, "1.2.3")
    assert (notes.returncode, notes.stdout) == (
        0,
        """### Added

- Something ([docs/a.md](https://github.com/1996fanrui/agents-sandbox/blob/v1.2.3/docs/a.md#part), [elsewhere](https://example.com/x), [below](#here)).
""",
    )


@pytest.mark.parametrize(
    "version, words",
    [
        ("1.2", 'release-notes: CHANGELOG.md has no section "## 1.2"\n'),
        ("Unreleased", 'release-notes: the section "## Unreleased" of CHANGELOG.md is empty\n'),
    ],
)
def test_a_section_that_is_missing_or_empty_is_an_error(tree: Path, version: str, words: str) -> None:
    notes = run("release-notes", tree, version)
    assert (notes.returncode, notes.stdout) == (1, words)


def test_a_command_runs_in_the_clone_and_gets_the_variables_of_ours(tmp_path: Path) -> None:
    """With a docker that prints its arguments, one per line."""
    docker = tmp_path / "docker"
    docker.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    docker.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CI": "true", "AGBOX_X": "1", "SECRET": "2"}
    ran = subprocess.run(
        [str(ROOT / ".ci" / "in-debian"), ".ci/run", "a b"],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
    )
    arguments = ran.stdout.splitlines()
    assert arguments[0] == "run" and arguments[-3:] == ["debian:12", ".ci/run", "a b"]
    assert arguments[arguments.index("--workdir") + 1] == str(ROOT)
    passed = [arguments[number + 1] for number, argument in enumerate(arguments) if argument == "--env"]
    assert sorted(name for name in passed if not name.startswith("GIT_CONFIG_")) == ["AGBOX_X", "CI"]


def test_it_needs_a_command() -> None:
    ran = subprocess.run([str(ROOT / ".ci" / "in-debian")], text=True, stderr=subprocess.PIPE, timeout=60)
    assert (ran.returncode, ran.stderr) == (2, "in-debian: name a command; see --help\n")
