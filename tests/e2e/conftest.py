# SPDX-License-Identifier: Apache-2.0
"""Daemons with failpoints, and a clean engine for the next test."""

import pytest
from support.sandboxes import CONFIG, remove_left_overs

_HAS_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    report = (yield).get_result()
    if report.failed:
        item.stash[_HAS_FAILED] = True


@pytest.fixture(autouse=True)
def clears_up_after_a_failure(request: pytest.FixtureRequest, leaves_nothing_behind):
    """A test that failed half-way leaves its sandboxes in the engine that all tests share. They are
    taken away, so that the next test fails for reasons of its own only; before the leak check looks,
    because this asks for it."""
    yield
    if "engine" in request.fixturenames and request.node.stash.get(_HAS_FAILED, False):
        remove_left_overs(request.getfixturevalue("engine"))


@pytest.fixture
def armed(make_daemon, test_user, engine):
    """armed("create.image.before=hold"): a daemon that was not started yet."""

    def make(failpoints="", user=test_user):
        environment = {"AGBOX_FAILPOINTS": failpoints}
        return make_daemon(user=user, engine=engine, config=CONFIG, environment=environment)

    return make
