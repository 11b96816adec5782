# SPDX-License-Identifier: Apache-2.0
"""A test that failed half-way leaves its sandboxes in the engine that all tests share. They are
taken away, so that the next test fails for reasons of its own only."""

import pytest
from support.sandboxes import remove_left_overs

_HAS_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    report = (yield).get_result()
    if report.failed:
        item.stash[_HAS_FAILED] = True


@pytest.fixture(autouse=True)
def clears_up_after_a_failure(request: pytest.FixtureRequest, leaves_nothing_behind):
    """Asks for the leak check, so that it clears up before that looks."""
    yield
    if "engine" in request.fixturenames and request.node.stash.get(_HAS_FAILED, False):
        remove_left_overs(request.getfixturevalue("engine"))
