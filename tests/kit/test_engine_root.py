# SPDX-License-Identifier: Apache-2.0
"""The cache of engine roots: created once and atomically."""

import os
import stat
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support.engine_root import DebianRoot, cache_directory, cached, debian_mirror


@dataclass
class SlowRecipe:
    """Counts how often it is made; waits for `go` in the middle."""

    go: threading.Event = field(default_factory=threading.Event)
    made: int = 0
    failure: str = ""

    def name(self) -> str:
        return "slow"

    def recipe(self) -> str:
        return "the same every time"

    def make(self, directory: Path, say) -> None:
        self.made += 1
        (directory / "first").touch()
        assert self.go.wait(10)
        if self.failure:
            raise RuntimeError(self.failure)
        (directory / "second").touch()


@pytest.fixture(autouse=True)
def cache(directory, monkeypatch) -> Path:
    monkeypatch.setenv("AGBOX_TEST_CACHE", str(directory))
    return directory


def test_runs_that_want_the_same_root_at_once_make_it_once():
    recipe = SlowRecipe()
    found: list[Path] = []
    runs = [threading.Thread(target=lambda: found.append(cached(recipe, print))) for _ in range(4)]
    for run in runs:
        run.start()
    recipe.go.set()
    for run in runs:
        run.join(20)
    assert recipe.made == 1
    assert len(set(found)) == 1
    assert {entry.name for entry in found[0].iterdir()} == {"first", "second"}


def test_a_build_that_fails_leaves_no_root_and_the_next_one_works(cache):
    recipe = SlowRecipe(failure="the mirror is down")
    recipe.go.set()
    with pytest.raises(RuntimeError, match="the mirror is down"):
        cached(recipe, print)
    assert [entry.suffix for entry in cache.iterdir()] == [".lock"]
    recipe.failure = ""
    assert (cached(recipe, print) / "second").exists()


def test_what_a_killed_build_left_is_removed_by_the_next(cache):
    recipe = SlowRecipe()
    recipe.go.set()
    place = cached(recipe, print)
    place.rename(place.with_name(f"{place.name}.making-killed"))
    assert cached(recipe, print) == place
    assert sorted(entry.name for entry in cache.iterdir()) == [place.name, f"{place.name}.lock"]


def test_a_cache_that_others_may_write_to_is_refused(cache):
    recipe = SlowRecipe()
    recipe.go.set()
    place = cached(recipe, print)
    place.chmod(0o775)
    with pytest.raises(RuntimeError, match=f"{place} is not root's alone"):
        cached(recipe, print)
    os.chown(place, 65534, 65534)
    place.chmod(0o755)
    with pytest.raises(RuntimeError, match=f"{place} is not root's alone"):
        cached(recipe, print)
    cache.chmod(0o777)
    with pytest.raises(RuntimeError, match=f"{cache} is not root's alone"):
        cached(recipe, print)


def test_a_new_cache_is_roots_alone(cache, monkeypatch):
    monkeypatch.setenv("AGBOX_TEST_CACHE", str(cache / "new"))
    assert stat.S_IMODE(cache_directory().stat().st_mode) == 0o700


def test_another_recipe_is_another_root():
    assert DebianRoot("trixie").recipe() != DebianRoot("forky").recipe()


def test_the_mirror_is_the_one_that_the_machine_installs_from():
    assert "://" in debian_mirror()
