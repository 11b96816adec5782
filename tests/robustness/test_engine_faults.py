# SPDX-License-Identifier: Apache-2.0
"""The engine is killed, hangs, or has a socket that delays, cuts and corrupts, or another process changes the
firewall of its host, under load with kills of the daemon."""

import pytest
from robustness.engine_gate import EngineGate, NetworkTurns, faithful, flaky
from robustness.faults import EngineBreaker, FirewallChanger
from support.sandboxes import CONFIG

EVERYDAY_KILLS = 4  # of the daemon
LONG_KILLS = 25  # of each engine, with live-restore and without: a hundred in all
FLAKY_SHARE = 0.2  # of the connections
LONG_CHANGES = 100  # of the firewall


@pytest.mark.engines("28")
@pytest.mark.parametrize("live_restore", [True, False], ids=["live-restore", "no-live-restore"])
def test_an_engine_that_crashes_and_hangs(make_real_run, engine_name, live_restore):
    run = make_real_run(engine_name, live_restore=live_restore)
    breaker = EngineBreaker(run.engine, run.recorder, run.rng("engine"))
    rng = run.rng("rounds")
    with run.crowd():
        for fault in (breaker.kill, breaker.hang, run.killer.one_kill, breaker.kill):
            run.work(rng.randrange(20, 120))
            fault()
    run.judge(f"{breaker.kills} kills of the engine", ready=1)


@pytest.mark.long
@pytest.mark.engines("28")
@pytest.mark.parametrize("live_restore", [True, False], ids=["live-restore", "no-live-restore"])
def test_many_crashes_of_the_engine(make_real_run, engine_name, live_restore):
    run = make_real_run(engine_name, live_restore=live_restore)
    crash_the_engine(run, EngineBreaker(run.engine, run.recorder, run.rng("engine")))


@pytest.mark.long
@pytest.mark.engines("20.10")
@pytest.mark.parametrize("live_restore", [True, False], ids=["live-restore", "no-live-restore"])
def test_many_crashes_of_an_old_engine(
    make_daemon, test_user, make_engine, engine_name, make_run, directory, live_restore
):
    engine = make_engine(engine_name, live_restore=live_restore)
    turns = NetworkTurns()
    gate = EngineGate(directory / "gate", engine.socket, turns.manners)
    try:
        daemon = make_daemon(
            user=test_user, engine=engine, docker_host=gate.docker_host, config=CONFIG
        )
        run = make_run(daemon, engine)
        breaker = EngineBreaker(engine, run.recorder, run.rng("engine"), turns.nobody)
        crash_the_engine(run, breaker)
    finally:
        gate.end()


def crash_the_engine(run, breaker):
    rng = run.rng("rounds")
    with run.crowd():
        while breaker.kills < LONG_KILLS:
            run.work(rng.randrange(20, 200))
            breaker.kill()
            if rng.random() < 0.2:
                breaker.hang()
            if rng.random() < 0.2:
                run.killer.one_kill()
    run.judge(f"{breaker.kills} kills of the engine", ready=1)


@pytest.mark.engines("28")
def test_a_flaky_socket_of_the_engine(
    make_daemon, test_user, make_engine, engine_name, make_run, directory
):
    engine = make_engine(engine_name)
    gate = EngineGate(directory / "gate", engine.socket)
    try:
        daemon = make_daemon(
            user=test_user, engine=engine, docker_host=gate.docker_host, config=CONFIG
        )
        run = make_run(daemon, engine)
        run.recorder.history.engine_failed = True
        gate.manners = flaky(run.rng("gate"), FLAKY_SHARE)
        rng = run.rng("rounds")
        with run.crowd():
            for _ in range(EVERYDAY_KILLS):
                run.work(rng.randrange(50, 200))
                run.killer.one_kill()
        gate.manners = faithful
        run.judge(ready=1)
    finally:
        gate.end()


@pytest.mark.engines("28")
def test_firewall_changes_by_another_process(make_real_run, engine_name):
    """With live-restore: commands keep trying to reach the host while the engine restarts."""
    run = make_real_run(engine_name, live_restore=True)
    changer = FirewallChanger(run.daemon, run.engine, run.recorder, run.rng("firewall changer"))
    rng = run.rng("rounds")
    with run.crowd():
        for fault in (
            changer.change,
            run.killer.one_kill,
            changer.flush,
            changer.change,
            run.killer.one_kill,
            changer.change,
        ):
            run.work(rng.randrange(20, 120))
            fault()
    run.judge(f"{changer.changes} changes of the firewall", ready=1)


@pytest.mark.long
@pytest.mark.engines("28")
def test_many_firewall_changes_by_another_process(make_real_run, engine_name):
    run = make_real_run(engine_name, live_restore=True)
    changer = FirewallChanger(run.daemon, run.engine, run.recorder, run.rng("firewall changer"))
    rng = run.rng("rounds")
    with run.crowd():
        while changer.changes < LONG_CHANGES:
            run.work(rng.randrange(5, 60))
            if rng.random() < 0.2:
                run.killer.one_kill()
            if rng.random() < 0.1:
                changer.flush()
            else:
                changer.change()
    run.judge(f"{changer.changes} changes of the firewall", ready=1)
