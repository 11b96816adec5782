# SPDX-License-Identifier: Apache-2.0
"""scripts/tidy finds what is wrong, also where a build compiles files together, and looks again only
at what changed."""
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Clone:
    """A tree with our script and our rules, and a build that compiles its two files together."""

    def __init__(self, root: Path):
        self.root = root
        for name in ("scripts/tidy", "scripts/lib/changes.py", ".clang-tidy"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
        self.write("src/number.h", "#pragma once\nint number();\n")
        self.write("src/number.cpp", '#include "number.h"\nint number() { return 1; }\n')
        self.write("src/other.cpp", "int other() { return 2; }\n")
        unity = root / "build" / "asan" / "Unity" / "unity_0_cxx.cxx"
        self.write(unity, f'#include "{root}/src/number.cpp"\n#include "{root}/src/other.cpp"\n')
        self.compile(unity)

    def compile(self, *files: Path) -> None:
        self.write("build/asan/compile_commands.json", json.dumps(
            [{"directory": str(self.root), "file": str(file),
              "command": f"clang++-19 -I{self.root}/src -std=c++23 -c {file}"} for file in files]))

    def git(self, *arguments: str) -> None:
        identity = ("-c", "user.name=x", "-c", "user.email=x")
        subprocess.run(["git", "-C", str(self.root), *identity, *arguments], check=True,
                       env=os.environ | {"GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"})

    def write(self, name: str | Path, text: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def tidy(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(["scripts/tidy", *arguments], cwd=self.root, text=True, timeout=120,
                              env={**os.environ, "XDG_CACHE_HOME": str(self.root / "cache")},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_a_clean_tree_is_looked_at_once(clone: Clone) -> None:
    first = clone.tidy()
    assert (first.returncode, first.stdout) == (
        0, "clang-tidy: 2 files in 1 looks, 0 of them unchanged since they were clean, 0 with faults\n")
    assert "1 of them unchanged" in clone.tidy().stdout


@pytest.mark.parametrize("name", ["src/number.h", "src/other.cpp"])
def test_a_fault_that_comes_later_is_found(clone: Clone, name: str) -> None:
    assert clone.tidy().returncode == 0
    clone.write(name, (clone.root / name).read_text() + "inline int WrongName() { return 3; }\n")
    for _ in range(2):  # what is not clean is not remembered
        run = clone.tidy()
        assert run.returncode == 1
        assert f"{clone.root}/{name}" in run.stdout
        assert "invalid case style for function 'WrongName'" in run.stdout


def test_a_tree_without_a_build_is_refused(clone: Clone) -> None:
    shutil.rmtree(clone.root / "build")
    run = clone.tidy()
    assert run.returncode == 1
    assert "cmake --preset dev" in run.stdout


@pytest.mark.parametrize("changed, looks", [
    ("src/number.cpp", "1 files in 1 looks"),
    ("src/number.h", "2 files in 2 looks"),
    ("README.md", "0 files in 0 looks"),
    (".clang-tidy", "3 files in 3 looks"),
])
def test_only_what_changed_and_what_includes_it_is_looked_at(clone: Clone, changed: str, looks: str) -> None:
    clone.write("src/user.cpp", '#include "number.h"\nint user() { return number(); }\n')
    clone.compile(*(clone.root / "src" / name for name in ("number.cpp", "other.cpp", "user.cpp")))
    clone.git("init", "-q", "-b", "main")
    clone.git("add", "src", "scripts", ".clang-tidy")
    clone.git("commit", "-q", "-m", "all")
    clone.git("checkout", "-q", "-b", "work")
    # A branch without a commit of its own would be like main.
    clone.git("commit", "-q", "--allow-empty", "-m", "begin")
    path = clone.root / changed
    path.write_text((path.read_text() if path.exists() else "") + "\n")
    run = clone.tidy("--changed")
    assert run.returncode == 0, run.stdout
    assert looks in run.stdout
