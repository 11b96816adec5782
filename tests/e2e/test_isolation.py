# SPDX-License-Identifier: Apache-2.0
"""The firewall as sandboxes meet it, on real engines: what a command inside reaches and does not
reach, before and after crashes of the daemon and changes by other processes, and the verification before READY.
Every probe of a forbidden place gets through once the rules are gone."""

import contextlib
import json
import re
import shutil
import sqlite3

import grpc
import pytest
from robustness.fake_engine import IMAGE, FakeEngine
from support.execs import Execs, output
from support.images import make_image
from support.probed_host import (
    DOCKER0,
    FORWARDED_PORT,
    INTERNET,
    METADATA,
    PORT,
    ROUTER,
    UPLINK,
    ProbedHost,
)
from support.sandboxes import (
    CONFIG,
    FAILED,
    STOPPED,
    bridge_of,
    connected,
    inspect,
    left_over,
    primary,
    restarted,
    started,
    times_logged,
    wait_for_log,
)
from support.table_owner import owned_by_another_process

NEIGHBOUR_PORT = 7004
MARK = "answered"

# Prints for every NAME/ADDRESS/PORT whether data was echoed. A first packet that was lost is
# sent again after a second.
PROBE = f"""
for place in "$@"; do
  IFS=/ read -r name address port <<END
$place
END
  answer=$(echo {MARK} | timeout 5 nc -w 3 "$address" "$port" 2>/dev/null)
  if [ "$answer" = {MARK} ]; then echo "$name reached"; else echo "$name closed"; fi
done
"""


class Host(ProbedHost):
    def forbidden(self, sandbox_id, neighbour_id):
        """NAME/ADDRESS/PORT of what the first of them must not reach."""
        gateway = self.place(sandbox_id)["Gateway"]
        neighbour = self.place(neighbour_id)
        return [
            f"gateway/{gateway}/{PORT}",
            f"host/{DOCKER0}/{PORT}",
            f"uplink/{UPLINK}/{PORT}",
            f"loopback/{gateway}/{FORWARDED_PORT}",
            f"neighbours-gateway/{neighbour['Gateway']}/{PORT}",
            f"neighbour/{neighbour['IPAddress']}/{NEIGHBOUR_PORT}",
            f"router/{ROUTER}/{PORT}",
            f"metadata/{METADATA}/{PORT}",
        ]

    def probe_by_hand(self, sandbox_id, places):
        """Without the daemon."""
        command = ["exec", primary(sandbox_id), "sh", "-c", PROBE, "probe", *places]
        return _outcomes(self.engine.docker(*command).stdout)


def probe(sandboxes, sandbox_id, places):
    """From a command inside."""
    status = Execs(sandboxes, sandbox_id).run("sh", "-c", PROBE, "probe", *places)
    assert status.exit_code == 0, status
    return _outcomes(output(status))


def _outcomes(text):
    return dict(line.split() for line in text.splitlines())


def all_of(places, outcome):
    return {place.split("/")[0]: outcome for place in places}


@pytest.fixture
def host(make_engine, engine_name):
    with contextlib.ExitStack() as stack:
        yield Host(make_engine(engine_name), stack)


def listen_inside(sandboxes, sandbox_id):
    """An echo service in the sandbox; returns when it answers there."""
    execs = Execs(sandboxes, sandbox_id)
    execs.create("nc", "-ll", "-p", str(NEIGHBOUR_PORT), "-e", "cat")
    wait = f"until nc -w 1 127.0.0.1 {NEIGHBOUR_PORT} </dev/null; do :; done"
    assert execs.run("timeout", "20", "sh", "-c", wait).exit_code == 0


@pytest.mark.engines("20.10", "26", "28", "29")
def test_a_sandbox_reaches_the_internet_and_nothing_of_the_host(
    host, make_daemon, daemon_user, contract
):
    image = make_image(host.engine.api, "isolation:1")
    daemon = started(make_daemon(user=daemon_user, engine=host.engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        for name in ("box-1", "box-2"):
            sandboxes.create_ready(name, image)
        listen_inside(sandboxes, "box-2")
        places = host.forbidden("box-1", "box-2")
        internet = [f"internet/{INTERNET}/{PORT}"]
        closed, reached = all_of(places, "closed"), all_of(places, "reached")
        opened = all_of(internet, "reached")
        assert probe(sandboxes, "box-1", places + internet) == closed | opened
        assert ping(sandboxes).isolation_shortcoming == ""
    tables = daemon.firewall_tables()
    assert len(tables) == 4
    # A crash opens nothing.
    daemon.kill()
    assert host.probe_by_hand("box-1", places + internet) == closed | opened
    # Without the rules every probe gets through, so each has shown something.
    host.open_barriers()
    for table in daemon.firewall_tables():
        host.engine.world.run("nft", "delete", "table", *table.split())
    assert host.probe_by_hand("box-1", places + internet) == reached | opened
    started(daemon)
    with connected(daemon, contract) as sandboxes:
        assert probe(sandboxes, "box-1", places + internet) == closed | opened
        # A daemon that ends leaves the rules to the sandboxes that it leaves, ...
        assert daemon.stop() == 0
        assert host.probe_by_hand("box-1", places + internet) == closed | opened
    started(daemon)
    with connected(daemon, contract) as sandboxes:
        assert probe(sandboxes, "box-1", places) == closed
        for name in ("box-1", "box-2"):
            sandboxes.delete_wait(name)
    # ... and takes them away with the last one.
    assert daemon.stop() == 0
    assert daemon.firewall_tables() == []
    assert left_over(host.engine) == []


def ping(sandboxes):
    return sandboxes.stub.Ping(sandboxes.service.PingRequest(), timeout=10)


@pytest.fixture
def image(engine):
    return make_image(engine.api, "isolation:1")


@pytest.fixture
def make_started(make_daemon, test_user, engine):
    """make_started("isolation.watch=error"): a daemon that has met its engine."""

    def make(failpoints=""):
        environment = {"AGBOX_FAILPOINTS": failpoints}
        return started(
            make_daemon(user=test_user, engine=engine, config=CONFIG, environment=environment)
        )

    return make


def listed(engine, tables):
    """The content of the tables, without counters, handles, and bridges under verification."""
    shown = [engine.world.run("nft", "-s", "list", "table", *table.split()) for table in tables]
    return re.sub(r'\n\s*elements = { "agbx[^}]*}', "", "".join(done.stdout for done in shown))


@pytest.mark.engines("28")
def test_flushed_tables_are_restored_and_reported(make_started, engine, contract, image):
    daemon = make_started()
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        tables = daemon.firewall_tables()
        before = listed(engine, tables)
        plain = next(table for table in tables if not table.endswith("_owned"))
        engine.world.run("nft", "delete", "table", *plain.split())
        repair = daemon.wait_for_message(
            "sandbox firewall restored after a change by another process"
        )
        assert repair["program"] == "nft"
        assert listed(engine, tables) == before
        sandboxes.create_ready("box-2", image)
        answer = ping(sandboxes)
        assert answer.isolation_shortcoming == "" and answer.isolation_repairs == 1
        assert f"table {plain} is missing" in answer.isolation_last_repair
        assert "restored once: " in daemon.agbox("ping").stdout
        for name in ("box-1", "box-2"):
            sandboxes.delete_wait(name)


@pytest.mark.engines("28")
def test_a_create_fails_by_name_where_the_rules_are_not_those_that_should_be(
    make_started, engine, contract, image
):
    """No other process can change the owned copy, so the daemon damages both itself; its monitor, which
    ignores its own changes, is disabled too."""
    # The first verification is that of the start.
    daemon = make_started("isolation.watch=error;isolation.damage=error@2")
    with connected(daemon, contract) as sandboxes:
        sandboxes.create("box-1", image)
        sandboxes.wait("box-1", FAILED)
        problem = sandboxes.get("box-1").error_message
        assert "the sandbox firewall is not as expected: " in problem
        assert "chain refuse has 0 rules instead of 2" in problem
        for table in daemon.firewall_tables():
            if table.startswith("inet"):
                shown = engine.world.run("nft", "list", "chain", *table.split(), "refuse").stdout
                assert "reject" not in shown
        assert left_over(engine) == []
    assert daemon.stop() == 0
    restarted(daemon)
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-2", image)
        for name in ("box-1", "box-2"):
            sandboxes.delete_wait(name)


@pytest.mark.engines("28")
def test_the_sandbox_itself_notices_that_it_is_not_held(make_started, engine, contract, image):
    """All rules are gone, and the daemon's check reports them as present."""
    daemon = make_started("isolation.damage=error@2;isolation.blind=error@2")
    with connected(daemon, contract) as sandboxes:
        sandboxes.create("box-1", image)
        sandboxes.wait("box-1", FAILED)
        problem = sandboxes.get("box-1").error_message
        assert "the sandbox is not isolated: a connection from the sandbox to " in problem
        assert left_over(engine) == []
        sandboxes.delete_wait("box-1")


FOREIGN_TABLE = """
table ip foreign {
    chain pre {
        type filter hook prerouting priority -400;
        iifname "agbx*" fib daddr type local meta l4proto tcp reject with tcp reset
    }
}
"""


@pytest.mark.engines("28")
def test_a_refusal_of_another_firewall_is_no_proof(make_started, engine, contract, image):
    daemon = make_started()
    with connected(daemon, contract) as sandboxes:
        engine.world.run("nft", "-f", "-", input=FOREIGN_TABLE)
        try:
            sandboxes.create("box-1", image)
            sandboxes.wait("box-1", FAILED)
        finally:
            engine.world.run("nft", "delete", "table", "ip", "foreign")
        problem = sandboxes.get("box-1").error_message
        assert "was refused, but not by the sandbox firewall" in problem
        sandboxes.create_ready("box-2", image)
        for name in ("box-1", "box-2"):
            sandboxes.delete_wait(name)


@pytest.mark.engines("28")
def test_a_create_fails_while_a_foreign_change_is_not_undone(
    make_started, engine, contract, image
):
    daemon = make_started("isolation.watch=error")
    with connected(daemon, contract) as sandboxes:
        plain = next(name for name in daemon.firewall_tables() if name.startswith("inet"))
        engine.world.run("nft", "flush", "chain", *plain.split(), "from_sandbox")
        sandboxes.create("box-1", image)
        sandboxes.wait("box-1", FAILED)
        problem = sandboxes.get("box-1").error_message
        assert f"table {plain}: chain from_sandbox has 0 rules" in problem
        assert left_over(engine) == []
        sandboxes.delete_wait("box-1")


@pytest.mark.engines("28")
def test_every_resume_proves_it_again(make_started, engine, contract, image):
    daemon = make_started("isolation.damage=error@3")  # after the start's and the create's
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        sandboxes.stop_wait("box-1")
        sandboxes.resume("box-1")
        sandboxes.wait("box-1", FAILED)
        problem = sandboxes.get("box-1").error_message
        assert "the sandbox firewall is not as expected: " in problem
        assert inspect(engine, primary("box-1"))["State"]["Running"] is False
        sandboxes.delete_wait("box-1")


@pytest.mark.engines("28")
def test_nothing_runs_again_before_the_isolation_is_proven(
    make_engine, engine_name, make_daemon, test_user, contract
):
    engine = make_engine(engine_name)
    image = make_image(engine.api, "isolation:1")
    # The verifications of the start and of the create succeed.
    failpoints = {"AGBOX_FAILPOINTS": "isolation.damage=error@3"}
    daemon = started(
        make_daemon(user=test_user, engine=engine, config=CONFIG, environment=failpoints)
    )
    command = ["sh", "-c", "echo begun; exec sleep 1000000"]
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image, command=command)
        wait_for_log(engine, "box-1", "begun")
        engine.restart()
        # The engine, just back, may refuse it at first for reasons of its own.
        again = "the container could not be started and is tried again"
        problem = "the sandbox firewall is not as expected"
        daemon.process.wait_for_line(
            lambda line: again in line and problem in line, "the refusal", timeout=30
        )
    daemon.kill()
    engine.restart()  # without a daemon nothing begins either
    assert inspect(engine, primary("box-1"))["State"]["Running"] is False
    assert times_logged(engine, "box-1", "begun") == 1
    restarted(daemon)
    with connected(daemon, contract) as sandboxes:
        daemon.wait_for_message("the container was started again")
        wait_for_log(engine, "box-1", "begun", times=2)
        assert times_logged(engine, "box-1", "begun") == 2
        sandboxes.delete_wait("box-1")


@pytest.mark.engines("28")
def test_where_the_rules_cannot_be_loaded_nothing_starts_until_they_can(
    make_started, engine, contract, image
):
    daemon = make_started()
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        sandboxes.stop_wait("box-1")
    tables = daemon.firewall_tables()
    assert daemon.stop() == 0
    assert daemon.firewall_tables() == tables  # a sandbox is left
    for table in tables:
        engine.world.run("nft", "delete", "table", *table.split())
    with owned_by_another_process(engine.network_namespace, tables[-1]):
        daemon.start()
        daemon.wait_for_message("sandboxes cannot be isolated, so none is created or started")
        daemon.wait_for_message("engine is reachable")
        with connected(daemon, contract) as sandboxes:
            for ask in (lambda: sandboxes.create("box-2", image), lambda: sandboxes.resume("box-1")):
                with pytest.raises(grpc.RpcError) as refused:
                    ask()
                assert refused.value.code() == grpc.StatusCode.UNAVAILABLE
                assert "sandboxes cannot be isolated" in refused.value.details()
                assert tables[-1] in refused.value.details()
            assert sandboxes.get("box-1").state == STOPPED
            assert ping(sandboxes).isolation_shortcoming == refused.value.details()
        diagnosis = daemon.agbox("doctor")
        assert diagnosis.returncode == 1
        assert refused.value.details() in diagnosis.stdout
    daemon.wait_for_message("sandboxes can be isolated now")
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-2", image)
        sandboxes.resume_wait("box-1")
        assert ping(sandboxes).isolation_shortcoming == ""
        for sandbox in ("box-1", "box-2"):
            sandboxes.delete_wait(sandbox)


@pytest.mark.engines("28")
def test_two_daemons_of_one_host_do_not_meet(make_started, engine, contract, image):
    first, second = make_started(), make_started()
    assert set(first.firewall_tables()).isdisjoint(second.firewall_tables())
    with connected(first, contract) as sandboxes, connected(second, contract) as others:
        sandboxes.create_ready("box-1", image)
        others.create_ready("box-2", image)
        kept = listed(engine, second.firewall_tables())
        sandboxes.delete_wait("box-1")
        assert first.stop() == 0
        assert first.firewall_tables() == []
        assert listed(engine, second.firewall_tables()) == kept
        others.delete_wait("box-2")
    assert second.stop() == 0
    assert second.firewall_tables() == []


@pytest.fixture
def stub_engine(bin_dir, run_directory, test_user):
    """An engine that has nothing, of a user who may not use the real one."""
    directory = run_directory.new_directory("stub")
    engine = FakeEngine(bin_dir.parent / "tests", directory)
    for path in (engine.socket.parent, engine.socket):
        shutil.chown(path, test_user.uid, test_user.gid)
    yield engine
    engine.end()
    shutil.rmtree(directory)


@pytest.mark.engines("28")
def test_a_daemon_of_another_user_with_our_instance_id_changes_nothing_of_ours(
    host, stub_engine, make_daemon, test_user, contract
):
    """It has and deletes a sandbox of the same name too, so all that names derive from is the same but the user."""
    engine = host.engine
    image = make_image(engine.api, "isolation:1")
    daemon = started(make_daemon(engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        for name in ("box-1", "box-2"):
            sandboxes.create_ready(name, image)
        listen_inside(sandboxes, "box-2")
        places = host.forbidden("box-1", "box-2")
    daemon.kill()  # nobody puts anything back
    tables, links = daemon.firewall_tables(), bridges(engine)
    before = listed(engine, tables)
    assert len(tables) == 4 and bridge_of(engine, "box-1") in links

    other = make_daemon(
        user=test_user,
        network_namespace=engine.network_namespace,
        docker_host=stub_engine.docker_host,
        config=CONFIG,
    )
    started(other)
    assert other.stop() == 0
    with open_store(daemon) as ours, open_store(other) as forged:
        (instance_id,) = ours.execute("SELECT instance_id FROM instance").fetchone()
        assert forged.execute("UPDATE instance SET instance_id = ?", (instance_id,)).rowcount == 1
        forged.commit()
    started(other)
    assert other.wait_listening()["instance_id"] == instance_id
    assert set(other.firewall_tables()).isdisjoint(tables)
    with connected(other, contract) as others:
        others.create("box-1", IMAGE)
        others.wait("box-1", FAILED)  # an engine that only pretends starts no guest
        others.delete_wait("box-1")
        assert listed(engine, tables) == before
        assert host.probe_by_hand("box-1", places) == all_of(places, "closed")
    assert other.stop() == 0
    assert listed(engine, tables) == before
    assert bridges(engine) == links
    assert host.probe_by_hand("box-1", places) == all_of(places, "closed")

    started(daemon)
    with connected(daemon, contract) as sandboxes:
        assert Execs(sandboxes, "box-1").run("true").exit_code == 0
        for name in ("box-1", "box-2"):
            sandboxes.delete_wait(name)
    assert left_over(engine) == []


def bridges(engine):
    shown = engine.world.run("ip", "-json", "link", "show", "type", "bridge").stdout
    return [link["ifname"] for link in json.loads(shown)]


def open_store(daemon):
    return contextlib.closing(sqlite3.connect(daemon.store))
