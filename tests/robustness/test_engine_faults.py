# SPDX-License-Identifier: Apache-2.0
"""The engine is killed, hangs, or is reached through a socket that delays, cuts and garbles, while clients
work and the daemon is killed too."""

import pytest
from robustness.engine_gate import EngineGate, faithful, flaky
from robustness.faults import EngineBreaker
from support.sandboxes import CONFIG

EVERYDAY_FAULTS = 6
LONG_KILLS = 100
FLAKY_SHARE = 0.2  # of the connections


@pytest.fixture
def own_run(make_daemon, test_user, make_engine, make_run):
    """own_run("28", live_restore=True): with an engine that may be killed."""

    def make(name, live_restore):
        engine = make_engine(name, live_restore=live_restore)
        daemon = make_daemon(user=test_user, engine=engine, config=CONFIG)
        return make_run(daemon, engine)

    return make


@pytest.mark.engines("28")
@pytest.mark.parametrize("live_restore", [True, False], ids=["live-restore", "no-live-restore"])
def test_an_engine_that_crashes_and_hangs(own_run, engine_name, live_restore):
    run = own_run(engine_name, live_restore)
    breaker = EngineBreaker(run.engine, run.recorder, run.rng("engine"))
    rng = run.rng("rounds")
    with run.crowd():
        for _ in range(EVERYDAY_FAULTS):
            run.work(rng.randrange(20, 120))
            breaker.one_fault()
            if rng.random() < 0.4:
                run.killer.one_kill()
    run.judge()


@pytest.mark.long
@pytest.mark.parametrize("live_restore", [True, False], ids=["live-restore", "no-live-restore"])
def test_a_hundred_crashes_of_the_engine(own_run, engine_name, live_restore):
    run = own_run(engine_name, live_restore)
    breaker = EngineBreaker(run.engine, run.recorder, run.rng("engine"))
    rng = run.rng("rounds")
    with run.crowd():
        while breaker.kills < LONG_KILLS:
            run.work(rng.randrange(20, 200))
            breaker.kill()
            if rng.random() < 0.2:
                breaker.hang()
            if rng.random() < 0.2:
                run.killer.one_kill()
    run.judge()


@pytest.mark.engines("28")
def test_a_flaky_socket_of_the_engine(make_daemon, test_user, engine, make_run, folder):
    gate = EngineGate(folder / "gate", engine.socket)
    try:
        daemon = make_daemon(
            user=test_user, engine=engine, docker_host=gate.docker_host, config=CONFIG
        )
        run = make_run(daemon, engine)
        run.recorder.history.engine_failed = True
        gate.manners = flaky(run.rng("gate"), FLAKY_SHARE)
        rng = run.rng("rounds")
        with run.crowd():
            for _ in range(EVERYDAY_FAULTS):
                run.work(rng.randrange(50, 200))
                run.killer.one_kill()
        gate.manners = faithful
        run.judge()
    finally:
        gate.end()
