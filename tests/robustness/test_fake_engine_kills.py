# SPDX-License-Identifier: Apache-2.0
"""Many kills in little time: the daemon's store, control plane and server on a fake engine, with the same clients
and checks as for a real engine."""

import pytest

EVERYDAY_KILLS = 60
LONG_RUNS = 10
LONG_KILLS = 1000  # in each


def kill_under_load(run, kills):
    run.killer.pause = (1, 10, 40)
    with run.crowd():
        for _ in run.killer.rounds(kills):
            pass
    run.judge()


def test_kills_on_an_engine_of_fakes(make_fake_run):
    kill_under_load(make_fake_run(), EVERYDAY_KILLS)


@pytest.mark.long
@pytest.mark.parametrize("number", range(LONG_RUNS))
def test_ten_thousand_kills_on_an_engine_of_fakes(make_fake_run, number):
    kill_under_load(make_fake_run(), LONG_KILLS)
