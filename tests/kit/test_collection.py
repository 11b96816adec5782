# SPDX-License-Identifier: Apache-2.0
"""No test vanishes while tests are collected."""

from pathlib import Path

import pytest

from kit.inner_run import InnerRun
from support.process import base_environment, run


@pytest.mark.parametrize(
    "tests, words",
    [
        ('pytest.importorskip("no_such_module")', "a file must not skip: its tests run, or it fails"),
        ('pytest.skip("not today", allow_module_level=True)', "not today"),
        (
            '@pytest.mark.engines("28", "28.0")\ndef test_typo(engine): pass',
            "engines ['28.0']: expected some of 20.10, 26, 28",
        ),
    ],
    ids=["importorskip", "skip", "engine"],
)
def test_what_cannot_be_collected_fails_the_run(directory: Path, tests: str, words: str):
    inner = InnerRun(directory, f"{tests}\ndef test_beside_it(): pass\n")
    done = run(*inner.command, check=False, cwd=directory)
    assert done.returncode != 0
    assert words in done.stdout


def selected(directory: Path, commit: str) -> set[str]:
    """What the everyday run of this commit would run."""
    inner = InnerRun(
        directory,
        """
        @pytest.mark.family(3)
        @pytest.mark.parametrize("number", range(10))
        def test_of_a_family(number): pass

        @pytest.mark.parametrize("number", range(30))
        def test_of_both_users(daemon_user, number): pass

        @pytest.mark.parametrize("number", range(10))
        def test_alone(number): pass
        """,
    )
    environment = {**base_environment(), "AGBOX_TEST_SAMPLE": commit}
    done = run(*inner.command, "--collect-only", "-qq", cwd=directory, env=environment)
    return {line.split("::")[1] for line in done.stdout.splitlines() if "::" in line}


def test_a_commit_selects_of_families_and_of_tests_as_root(directory: Path):
    everything = selected(directory, "")
    assert len(everything) == 10 + 60 + 10
    one, same, other = (selected(directory, commit) for commit in ("a", "a", "b"))
    assert one == same != other
    for chosen in (one, other):
        assert len([name for name in chosen if name.startswith("test_of_a_family")]) == 3
        assert len([name for name in chosen if name.startswith("test_alone")]) == 10
        of_users = [name for name in chosen if name.startswith("test_of_both_users")]
        assert len([name for name in of_users if "user" in name.partition("[")[2]]) == 30
        assert 1 <= len([name for name in of_users if "root" in name]) <= 20
    assert {name for name in one | other if "root" in name} > {name for name in one if "root" in name}
