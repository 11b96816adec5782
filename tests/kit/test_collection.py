# SPDX-License-Identifier: Apache-2.0
"""No test vanishes while tests are collected."""

from pathlib import Path

import pytest

from kit.inner_run import InnerRun
from support.process import run


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
