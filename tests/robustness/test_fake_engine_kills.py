# SPDX-License-Identifier: Apache-2.0
"""Many kills in little time: the daemon's store, control plane and server on a fake engine, with the same clients
and checks as for a real engine."""

import pytest

EVERYDAY_KILLS = 60
LONG_RUNS = 10
LONG_KILLS = 1000  # in each
RETENTION = 2  # seconds
PURGES = f'cleanup_ttl = "{RETENTION}s"\nevent_retention_ttl = "{RETENTION}s"\n'
KILLS_AMONG_PURGES = 15


def kill_under_load(run, kills):
    run.killer.pause = (1, 10, 40)
    with run.crowd():
        for _ in run.killer.rounds(kills):
            pass
    run.judge(ready=kills // 10, at_failpoints=kills // 13)


def test_kills_on_an_engine_of_fakes(make_fake_run):
    kill_under_load(make_fake_run(), EVERYDAY_KILLS)


def test_kills_while_histories_are_purged(make_fake_run):
    run = make_fake_run(runtime=PURGES)
    run.recorder.history.cleanup_ttl = run.recorder.history.retention = RETENTION
    run.killer.pause = (10, 40)
    run.killer.also = run.killer.of_a_purge
    with run.crowd():
        for _ in run.killer.rounds(KILLS_AMONG_PURGES):
            pass
    run.judge(ready=KILLS_AMONG_PURGES // 5, at_failpoints=1, is_purged=True)


@pytest.mark.long
@pytest.mark.parametrize("number", range(LONG_RUNS))
def test_ten_thousand_kills_on_an_engine_of_fakes(make_fake_run, number):
    kill_under_load(make_fake_run(), LONG_KILLS)
