# SPDX-License-Identifier: Apache-2.0
"""Tests of the suite itself: each test plants a bug around a correct daemon, and fails if the check does not
name it."""

import contextlib
import shutil

import pytest
from robustness.clients import Client
from robustness.engine_gate import EngineGate, ForgetsNetworks
from robustness.rest import settle
from support.sandboxes import CONFIG, primary


@pytest.fixture
def run(make_fake_run):
    return make_fake_run()


def named(broken, *any_of):
    assert any(words in sentence for sentence in broken for words in any_of), broken


@contextlib.contextmanager
def planter(run, crowd):
    """A client with a sandbox `kept` that is unknown to the crowd, so that it stays unchanged."""
    client = Client("planter", run.daemon, run.contract, run.recorder)
    try:
        client.create("kept", run.image)
        crowd.asked.append("kept")
        yield client
    finally:
        client.close()


def test_a_daemon_without_a_bug_is_passed(run):
    with run.crowd():
        run.work(150)
    assert run.broken() == []


def test_an_event_that_is_shown_before_its_commit(run, directory):
    """A crash loses a commit that has not reached the disk: restores an earlier copy of the store."""
    store = run.daemon.store
    kept = directory / "store"
    with run.crowd():
        run.work(100)
        run.killer.kill()
        shutil.copytree(store.parent, kept, ignore=shutil.ignore_patterns("state", "exec-logs"))
        run.killer.start()
        run.work(100)
        run.killer.kill()
        for old in store.parent.glob("ids.db*"):
            old.unlink()
        for file in kept.iterdir():
            shutil.copy(file, store.parent / file.name)
        run.killer.start()
        run.work(50)
    run.recorder.history.engine_failed = True  # its containers have changed too
    broken = run.broken()
    # Observed events are gone, or their sequences were reused.
    named(broken, "is not there in the last look", "was another one", "lost in the last look")


def test_a_delete_that_forgets_the_network(make_fake_run, fake_engine, directory):
    gate = EngineGate(directory / "gate", fake_engine.socket, ForgetsNetworks)
    try:
        run = make_fake_run(gate.docker_host)
        with run.crowd():
            run.work(100)
        named(run.broken(), "the engine has 1 networks of it")
    finally:
        gate.end()


def test_a_replay_that_skips_one_event(run):
    def skip(_, anchor, messages):
        return (message for message in messages if anchor == 0 or message.sequence != anchor + 1)

    with run.crowd(tap=skip):
        for _ in range(4):
            run.work(60)
            run.killer.kill()
            run.killer.start()
        run.work(60)
    named(run.broken(), "comes next")


def test_a_command_that_runs_twice(run):
    with run.crowd() as crowd, planter(run, crowd) as client:
        run.work(50)
        settle(client, ["kept"])
        client.exec("kept", "twice", 0, 0)
        settle(client, ["kept"])
    container = run.engine.api.call("GET", f"/containers/{primary('kept')}/json").json()
    run.engine.run_again(container["Id"], "twice")
    named(run.broken(), "exec twice of kept: its command ran 2 times")


def test_a_clean_up_that_takes_what_is_not_ours(run):
    with run.crowd():
        run.work(20)
    run.engine.api.call("DELETE", "/containers/agbox-primary-foreign")
    named(run.broken(), "which is not ours")


@pytest.mark.engines("28")
def test_a_firewall_that_holds_nobody(make_real_run, engine_name):
    """Both copies lose every rule at the daemon's second verification, without a repair. Paused, no sandbox would show it."""
    run = make_real_run(engine_name, config=CONFIG + '[isolation]\non_failure = "report"\n')
    with run.crowd() as crowd, planter(run, crowd):
        run.work(20)
    run.look()  # at rest
    run.killer.kill()
    run.killer.start("isolation.watch=error;isolation.damage=error@2")
    run.daemon.wait_for_message("the isolation of a sandbox does not hold any more")
    broken = run.broken()
    named(broken, "firewall is broken: the sandbox firewall is not as expected")
    named(broken, "isolation is broken: sandbox kept: ")
    named(broken, "its command reached the host")
    assert not any("after one more restart: firewall" in sentence for sentence in broken), broken


@pytest.mark.engines("28")
def test_a_copy_of_the_firewall_that_stays_away(make_real_run, engine_name):
    run = make_real_run(engine_name)
    with run.crowd():
        run.work(20)
    run.look()
    run.killer.kill()
    run.killer.start("isolation.watch=error")
    loaded = run.daemon.wait_for_message("sandbox firewall loaded")
    run.engine.world.run("nft", "delete", "table", "inet", loaded["table"])
    broken = run.broken()
    named(broken, "the look at rest: the inet firewall is not there twice and alike: ")
    named(broken, f"table inet {loaded['table']} is missing")
