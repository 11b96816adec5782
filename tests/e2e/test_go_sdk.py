# SPDX-License-Identifier: Apache-2.0
"""The Go SDK's own tests with a real daemon and engine, with the race detector: sdk/go/client/daemon_test.go."""

import re
import shutil
from pathlib import Path

import pytest
from support.daemon import PrivateDaemon
from support.images import make_image
from support.sandboxes import CONFIG, left_over, started
from support.sdk import REPOSITORY, run_with_restarts, sdk_go_program

SOURCE = REPOSITORY / "sdk" / "go" / "client" / "daemon_test.go"
TESTS = re.findall(r"^func (Test\w+)", SOURCE.read_text(), re.M)


@pytest.fixture
def program(test_user, directory) -> Path:
    """The tests, where the test user can run them."""
    test_user.share(directory)
    return Path(shutil.copy(sdk_go_program("client.test"), directory))


@pytest.fixture
def daemon(make_daemon, test_user, engine) -> PrivateDaemon:
    make_image(engine.api, "debian:12")  # by name; the tests need only a shell
    return started(make_daemon(user=test_user, engine=engine, config=CONFIG))


def test_all_of_them(daemon, program, engine) -> None:
    argv = [str(program), "-test.v", "-test.timeout=120s", f"-test.run=^({'|'.join(TESTS)})$"]
    code, text = run_with_restarts(argv, daemon)
    assert code == 0, text
    passed = re.findall(r"^--- PASS: (\w+)", text, re.M)
    assert sorted(passed) == sorted(TESTS), text
    assert left_over(engine) == []
