# SPDX-License-Identifier: Apache-2.0
"""A running sandbox whose isolation fails a later verification, on a real engine: its processes stand
still until it holds again, also if the daemon is killed in between."""

import contextlib
import time

import grpc
import pytest
from support.execs import RUNNING, Execs
from support.images import make_image
from support.sandboxes import (
    CONFIG,
    READY,
    bridge_of,
    connected,
    inspect,
    left_over,
    primary,
    started,
    wait_until,
)

# On the sandbox's bridge no rule would match it. Nothing restores that by itself.
FOREIGN_ADDRESS = "198.51.100.1/24"
# Ignores what asks it to end.
COUNT = "trap '' TERM; i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done"


@pytest.fixture
def image(engine):
    return make_image(engine.api, "isolation:1")


@pytest.fixture
def make_started(make_daemon, test_user, engine):
    def make(config=""):
        return started(make_daemon(user=test_user, engine=engine, config=CONFIG + config))

    return make


@contextlib.contextmanager
def foreign_address(engine, bridge):
    engine.world.run("ip", "address", "add", FOREIGN_ADDRESS, "dev", bridge)
    try:
        yield
    finally:
        engine.world.run("ip", "address", "del", FOREIGN_ADDRESS, "dev", bridge)


def make_it_verify(engine, daemon):
    """The daemon restores its table, and verifies every sandbox again."""
    plain = next(table for table in daemon.firewall_tables() if not table.endswith("_owned"))
    engine.world.run("nft", "delete", "table", *plain.split())


def is_paused(engine):
    return inspect(engine, primary("box-1"))["State"]["Paused"]


class Counter:
    """A command in the sandbox that writes a line every 50 ms."""

    def __init__(self, sandboxes):
        self.execs = Execs(sandboxes, "box-1")
        self.exec_id = self.execs.create("sh", "-c", COUNT, exec_id="counter").exec_id
        self.execs.wait_for_output(self.exec_id)

    def lines(self):
        with open(self.execs.get(self.exec_id).stdout_log_path, encoding="ascii") as log:
            return log.read().count("\n")

    def wait_moving(self):
        before = self.lines()
        wait_until(lambda: self.lines() > before, "the counter goes on")


def assert_stands_still(counter):
    lines = counter.lines()
    time.sleep(0.5)  # ten times as long as one step of it
    assert counter.lines() == lines


def refusal(sandboxes):
    with pytest.raises(grpc.RpcError) as refused:
        Execs(sandboxes, "box-1").create("true")
    assert refused.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    return refused.value.details()


def wait_verified(sandboxes):
    wait_until(lambda: not sandboxes.get("box-1").isolation_problem, "the isolation holds again")


@pytest.mark.engines("20.10", "28")
def test_a_sandbox_without_isolation_stands_still_until_it_holds_again(
    make_started, engine, contract, image
):
    daemon = make_started()
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        counter = Counter(sandboxes)
        with foreign_address(engine, bridge_of(engine, "box-1")):
            make_it_verify(engine, daemon)
            wait_until(lambda: sandboxes.get("box-1").paused, "the sandbox is paused")
            assert is_paused(engine)
            assert_stands_still(counter)
            handle = sandboxes.get("box-1")
            assert handle.state == READY
            assert "it has an address of 198.51.100.0/24" in handle.isolation_problem
            assert handle.isolation_problem in refusal(sandboxes)
            assert counter.execs.get(counter.exec_id).state == RUNNING
            shown = daemon.agbox("sandbox", "get", "box-1").stdout
            assert "paused=true\n" in shown and handle.isolation_problem in shown
            assert f"sandbox box-1 is paused: {handle.isolation_problem}" in daemon.agbox("ping").stdout
            diagnosis = daemon.agbox("doctor").stdout
            assert f"sandbox box-1 is paused: {handle.isolation_problem}" in diagnosis
        wait_verified(sandboxes)
        counter.wait_moving()
        handle = sandboxes.get("box-1")
        assert not handle.paused and not is_paused(engine)
        assert Execs(sandboxes, "box-1").run("true").exit_code == 0
        assert "isolation_problem" not in daemon.agbox("sandbox", "get", "box-1").stdout
        sandboxes.delete_wait("box-1")


@pytest.mark.engines("28")
def test_a_daemon_that_was_killed_unpauses_what_it_paused(make_started, engine, contract, image):
    daemon = make_started()
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        counter = Counter(sandboxes)
    with foreign_address(engine, bridge_of(engine, "box-1")):
        make_it_verify(engine, daemon)
        wait_until(lambda: is_paused(engine), "the sandbox is paused")
        daemon.kill()
        started(daemon)
        with connected(daemon, contract) as sandboxes:
            counter.execs = Execs(sandboxes, "box-1")
            # The first daemon may have been killed before it recorded that the engine had paused it.
            wait_until(lambda: sandboxes.get("box-1").paused, "the daemon knows that it is paused")
            assert_stands_still(counter)
            assert "198.51.100.0/24" in refusal(sandboxes)
    with connected(daemon, contract) as sandboxes:
        counter.execs = Execs(sandboxes, "box-1")
        wait_verified(sandboxes)
        counter.wait_moving()
        assert counter.execs.get(counter.exec_id).state == RUNNING
        sandboxes.delete_wait("box-1")


@pytest.mark.engines("28")
def test_a_paused_sandbox_can_be_stopped_resumed_and_deleted(make_started, engine, contract, image):
    daemon = make_started()
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        counter = Counter(sandboxes)
        bridge = bridge_of(engine, "box-1")
        with foreign_address(engine, bridge):
            make_it_verify(engine, daemon)
            wait_until(lambda: sandboxes.get("box-1").paused, "the sandbox is paused")
            lines = counter.lines()
            sandboxes.stop_wait("box-1")
            # About 35 in the two seconds that the guest gives its execs.
            assert counter.lines() - lines < 25, "it went on before it ended"
        sandboxes.resume_wait("box-1")
        assert Execs(sandboxes, "box-1").run("true").exit_code == 0
        # Removed with its bridge.
        engine.world.run("ip", "address", "add", FOREIGN_ADDRESS, "dev", bridge)
        make_it_verify(engine, daemon)
        wait_until(lambda: sandboxes.get("box-1").paused, "the sandbox is paused")
        sandboxes.delete_wait("box-1")
    assert left_over(engine) == []


@pytest.mark.engines("28")
def test_where_it_is_only_reported_a_sandbox_goes_on(make_started, engine, contract, image):
    daemon = make_started('[isolation]\non_failure = "report"\n')
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        counter = Counter(sandboxes)
        with foreign_address(engine, bridge_of(engine, "box-1")):
            make_it_verify(engine, daemon)
            wait_until(lambda: sandboxes.get("box-1").isolation_problem, "it is reported")
            counter.wait_moving()
            assert Execs(sandboxes, "box-1").run("true").exit_code == 0
            assert not sandboxes.get("box-1").paused and not is_paused(engine)
            assert "sandbox box-1: " in daemon.agbox("ping").stdout
        wait_verified(sandboxes)
        sandboxes.delete_wait("box-1")
