# SPDX-License-Identifier: Apache-2.0
"""The daemon is killed at random and at its failpoints under load: afterwards everything that it reported to
clients is true."""

import pytest

EVERYDAY_KILLS = 40
LONG_RUNS = 4
LONG_KILLS = 250  # in each


def kill_under_load(run, kills):
    with run.crowd():
        for _ in run.killer.rounds(kills):
            pass
    run.judge(ready=kills // 10, at_failpoints=kills // 13)
    assert run.killer.kills >= kills


@pytest.mark.engines("28")
def test_kills_under_load(make_real_run, engine_name):
    kill_under_load(make_real_run(engine_name), EVERYDAY_KILLS)


@pytest.mark.long
@pytest.mark.engines("28")
@pytest.mark.parametrize("number", range(LONG_RUNS))
def test_a_thousand_kills_under_load(make_real_run, engine_name, number):
    kill_under_load(make_real_run(engine_name), LONG_KILLS)
