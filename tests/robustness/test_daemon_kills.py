# SPDX-License-Identifier: Apache-2.0
"""The daemon is killed at random and at its failpoints while clients work with it: afterwards everything
that they were told is true."""

import pytest
from support.sandboxes import CONFIG

EVERYDAY_KILLS = 60
LONG_KILLS = 1000


def kill_under_load(run, kills):
    with run.crowd():
        for _ in run.killer.rounds(kills):
            pass
    run.judge()
    assert run.killer.kills >= kills


@pytest.mark.engines("28")
def test_kills_under_load(make_daemon, test_user, engine, make_run):
    daemon = make_daemon(user=test_user, engine=engine, config=CONFIG)
    kill_under_load(make_run(daemon, engine), EVERYDAY_KILLS)


@pytest.mark.long
def test_a_thousand_kills_under_load(make_daemon, test_user, engine, make_run):
    daemon = make_daemon(user=test_user, engine=engine, config=CONFIG)
    kill_under_load(make_run(daemon, engine), LONG_KILLS)
