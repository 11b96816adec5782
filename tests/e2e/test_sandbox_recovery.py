# SPDX-License-Identifier: Apache-2.0
"""The daemon is killed, containers are killed, removed and paused, records are damaged: what must be
there afterwards is there, and nothing else."""

import contextlib
import os
import signal
import sqlite3

import grpc
import pytest
from support.execs import FAILED as EXEC_FAILED
from support.execs import FINISHED, RUNNING, Execs
from support.images import make_image
from support.sandboxes import (
    DELETED,
    FAILED,
    LABEL,
    PREPARING,
    READY,
    STOPPED,
    assert_one_history,
    bridge_of,
    connected,
    inspect,
    left_over,
    network,
    primary,
    restarted,
    started,
)


@pytest.fixture
def image(engine):
    return make_image(engine.api, "recovery:1")


def links_of(daemon):
    directory = daemon.directory / "data" / "agents-sandbox" / "state" / "links"
    return [entry.name for entry in directory.glob("*/*")]


def instance_of(daemon):
    with contextlib.closing(sqlite3.connect(daemon.store)) as store:
        return store.execute("SELECT instance_id FROM instance").fetchone()[0]


def damage(daemon, sql):
    """Between two runs of the daemon."""
    with contextlib.closing(sqlite3.connect(daemon.store)) as store:
        store.execute(sql)
        store.commit()
    if daemon.user:  # root has opened it
        for path in daemon.store.parent.glob("ids.db*"):
            os.chown(path, daemon.user.uid, daemon.user.gid)


SANDBOX_READY = 3  # the event


def restarts(events):
    """The events of restarts: all of the sandbox's own after it was ready first, until it is deleted."""
    own = [event for event in events if not event.HasField("exec")]
    first = [event.event_type for event in own].index(SANDBOX_READY)
    return [(event.event_type, event.sandbox_state, event.sandbox_phase.phase, event.sandbox_phase.error_message)
            for event in own[first + 1:]]


def container_of(engine, sandbox_id):
    seen = inspect(engine, primary(sandbox_id))
    return seen["Id"], seen["State"]["StartedAt"]


def killed_at(daemon, failpoint):
    """The next run of the daemon comes as far as there."""
    daemon.environment["AGBOX_FAILPOINTS"] = f"{failpoint}=kill"
    daemon.launch()
    assert daemon.wait() == -signal.SIGKILL
    return daemon


def works(sandboxes, sandbox_id, exec_id):
    execs = Execs(sandboxes, sandbox_id)
    execs.create("true", exec_id=exec_id)
    return execs.wait(exec_id).state == FINISHED


# --- the daemon is killed ---


@pytest.mark.engines("28")
def test_a_daemon_that_is_killed_under_load_loses_nothing(armed, engine, contract, image):
    daemon = started(armed())
    rounds = 4
    for number in range(rounds):
        with connected(daemon, contract) as sandboxes:
            steady, doomed = f"steady-{number}", f"doomed-{number}"
            sandboxes.create_ready(steady, image)
            sandboxes.create_ready(doomed, image)
            execs = Execs(sandboxes, steady)
            for i in range(3):
                command = f"echo {i}; read line < /tmp/go; exit {i}"
                execs.create("sh", "-c", f"mkfifo /tmp/go-{i}; {command.replace('go', f'go-{i}')}",
                             exec_id=f"exec-{number}-{i}")
            before = sandboxes.history(steady)
            sandboxes.create(f"under-way-{number}", image)
            sandboxes.delete(doomed)
            daemon.kill()
        with connected(restarted(daemon), contract) as sandboxes:
            execs = Execs(sandboxes, steady)
            assert sandboxes.history(steady)[: len(before)] == before
            assert sorted(execs.active()) == [f"exec-{number}-{i}" for i in range(3)]
            for i in range(3):
                # The command may not have made its pipe yet.
                wait = f"until [ -p /tmp/go-{i} ]; do :; done; echo > /tmp/go-{i}"
                engine.docker("exec", primary(steady), "sh", "-c", wait)
                assert execs.wait(f"exec-{number}-{i}").exit_code == i
            sandboxes.wait(f"under-way-{number}", READY)
            assert_one_history(sandboxes.wait(doomed, DELETED))
            assert_one_history(sandboxes.delete_wait(steady))
            assert_one_history(sandboxes.delete_wait(f"under-way-{number}"))
        assert left_over(engine) == []
        assert links_of(daemon) == []
    assert daemon.stop() == 0


@pytest.mark.engines("28")
def test_two_daemons_of_two_users_one_of_them_killed_again_and_again(
    armed, engine, contract, image
):
    quiet = started(armed(user=None))
    with connected(quiet, contract) as ours:
        ours.create_ready("quiet-1", image)
        execs = Execs(ours, "quiet-1")
        execs.create("sleep", "1000", exec_id="quiet-exec")
        before = container_of(engine, "quiet-1")
        history = ours.history("quiet-1")
        restless = started(armed())
        for number in range(5):
            with connected(restless, contract) as theirs:
                theirs.create(f"restless-{number}", image)
                restless.kill()
            with connected(started(restless), contract) as theirs:
                theirs.wait(f"restless-{number}", READY)
                theirs.delete(f"restless-{number}")
                restless.kill()
            started(restless)
        with connected(restless, contract) as theirs:
            for number in range(5):
                theirs.wait(f"restless-{number}", DELETED)
        assert container_of(engine, "quiet-1") == before
        assert execs.get("quiet-exec").state == RUNNING
        assert ours.history("quiet-1") == history
        assert works(ours, "quiet-1", "quiet-after")
        ours.delete_wait("quiet-1")
    assert left_over(engine) == []


# --- the container ends ---


def test_a_primary_that_is_killed_is_started_again(armed, engine, contract, image):
    daemon = started(armed())
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("killed-1", image)
        execs = Execs(sandboxes, "killed-1")
        execs.create("sleep", "1000", exec_id="lost-1")
        container, first_start = container_of(engine, "killed-1")
        engine.docker("kill", primary("killed-1"))
        lost = execs.wait("lost-1")
        assert (lost.state, lost.error_code) == (EXEC_FAILED, "CONTAINER_EXITED")
        assert "137" in lost.error
        assert works(sandboxes, "killed-1", "next-1")
        assert container_of(engine, "killed-1")[0] == container
        assert container_of(engine, "killed-1")[1] != first_start
        handle = sandboxes.get("killed-1")
        assert handle.state == READY and not handle.error_code
        assert (handle.restart_count, handle.last_exit) == (1, "exit code 137")
        assert restarts(sandboxes.history("killed-1")) == [
            (PREPARING, READY, "restart", "exit code 137"), (SANDBOX_READY, READY, "", "")]
        shown = daemon.agbox("sandbox", "get", "killed-1").stdout
        assert "restart_count=1\nlast_exit=exit code 137\n" in shown
        assert "SANDBOX_PREPARING           Ready     restart exit code 137\n" in (
            daemon.agbox("events", "killed-1").stdout)
        assert_one_history(sandboxes.delete_wait("killed-1"))
    assert left_over(engine) == []


@pytest.mark.engines("28")
@pytest.mark.parametrize("failpoint", [
    "inspect.container.before",
    "inspect.network.before",
    "inspect.network.after",
    "restart.ends.before",
    "resume.container.after",
    "start.container.before",
    "start.container.after",
    "start.hello.after",
    "start.entrypoint.before",
    "start.entrypoint.after",
    "restart.commit.before",
    "restart.commit.after",
])
def test_a_restart_goes_on_after_a_crash_anywhere(armed, engine, contract, image, failpoint):
    daemon = started(armed())
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("crash-1", image)
        Execs(sandboxes, "crash-1").create("sleep", "1000", exec_id="lost-1")
    daemon.stop()
    # So that the new daemon, too, finds it dead.
    engine.docker("kill", primary("crash-1"))
    with connected(restarted(killed_at(daemon, failpoint)), contract) as sandboxes:
        assert works(sandboxes, "crash-1", "next-1")
        assert Execs(sandboxes, "crash-1").get("lost-1").state == EXEC_FAILED
        assert sandboxes.get("crash-1").state == READY
        assert len(restarts(sandboxes.history("crash-1"))) == 2, "each event once"
        assert sandboxes.get("crash-1").restart_count == 1
        assert_one_history(sandboxes.delete_wait("crash-1"))
    assert left_over(engine) == []


@pytest.mark.engines("28")
def test_one_that_is_removed_by_hand_fails(armed, engine, contract, image):
    daemon = started(armed())
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("removed-1", image)
        engine.docker("rm", "-f", primary("removed-1"))
        sandboxes.follow("removed-1", lambda event: event.sandbox_state == FAILED)
        handle = sandboxes.get("removed-1")
        assert handle.error_code == "CONTAINER_NOT_RUNNING"
        assert "it was removed" in handle.error_message
        sandboxes.delete_wait("removed-1")
    assert left_over(engine) == []


@pytest.mark.engines("28")
def test_one_that_is_paused_by_hand_stays_ready(armed, engine, contract, image):
    daemon = started(armed())
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("paused-1", image)
        start = container_of(engine, "paused-1")
        execs = Execs(sandboxes, "paused-1")
        execs.create("sh", "-c", "mkfifo /tmp/go; read line < /tmp/go; exit 4", exec_id="still-1")
        engine.docker("pause", primary("paused-1"))
    daemon.kill()
    with connected(restarted(daemon), contract) as sandboxes:
        execs = Execs(sandboxes, "paused-1")
        assert sandboxes.get("paused-1").state == READY
        execs.create("true", exec_id="later-1")
        assert execs.get("later-1").state == execs.get("still-1").state == RUNNING
        engine.docker("unpause", primary("paused-1"))
        assert execs.wait("later-1").state == FINISHED
        wait = "until [ -p /tmp/go ]; do :; done; echo > /tmp/go"
        engine.docker("exec", primary("paused-1"), "sh", "-c", wait)
        assert execs.wait("still-1").exit_code == 4
        assert container_of(engine, "paused-1") == start
        sandboxes.delete_wait("paused-1")
    assert left_over(engine) == []


# --- bad records ---


@pytest.mark.engines("28")
def test_damaged_sandboxes_say_so_and_the_others_serve(armed, engine, contract, image):
    names = ["good-1", "spec-1", "pruned-1", "directory-1", "removed-1"]
    daemon = started(armed())
    with connected(daemon, contract) as sandboxes:
        for name in names:
            sandboxes.create_ready(name, image)
        for name in ("pruned-1", "removed-1"):
            sandboxes.stop_wait(name)
    daemon.stop()
    damage(
        daemon,
        "UPDATE sandbox_origin SET spec = x'ff' WHERE sandbox ="
        " (SELECT number FROM sandbox WHERE sandbox_id = 'spec-1')",
    )
    engine.docker("network", "rm", network("pruned-1"))
    engine.docker("rm", primary("removed-1"))
    mounts = inspect(engine, primary("directory-1"))["Mounts"]
    link = next(m["Source"] for m in mounts if m["Destination"] == "/.agbox-link")
    for entry in (daemon.directory / "data").rglob(link.rsplit("/", 1)[1]):
        entry.rename(entry.with_name("moved-away"))
    with connected(restarted(daemon), contract) as sandboxes:
        expected = {
            "spec-1": ("RECORD_UNREADABLE", "CreateSpec"),
            "pruned-1": ("NETWORK_MISSING", "network"),
            "directory-1": ("GUEST_UNREACHABLE", "directory"),
            "removed-1": ("CONTAINER_NOT_RUNNING", "removed"),
        }
        for name, (code, words) in expected.items():
            sandboxes.follow(name, lambda event: event.sandbox_state == FAILED)
            handle = sandboxes.get(name)
            assert handle.error_code == code
            assert words in handle.error_message
        assert works(sandboxes, "good-1", "after-1")
        assert inspect(engine, primary("directory-1"))["State"]["Running"] is False
        for name in names:
            assert_one_history(sandboxes.delete_wait(name))
    assert left_over(engine) == []


@pytest.mark.engines("28")
def test_another_engine_behind_the_socket_is_not_the_sandboxs(
    armed, engine, make_engine, contract, image
):
    daemon = started(armed())
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("loyal-1", image)
    daemon.stop()
    own = daemon.environment["DOCKER_HOST"]
    other = make_engine("28")
    daemon.environment["DOCKER_HOST"] = other.docker_host
    with connected(restarted(daemon), contract) as sandboxes:
        assert sandboxes.get("loyal-1").state == READY
        with pytest.raises(grpc.RpcError) as refused:
            sandboxes.stop("loyal-1")
        assert refused.value.code() == grpc.StatusCode.UNAVAILABLE
        assert "but the daemon is connected to engine" in refused.value.details()
    daemon.stop()
    daemon.environment["DOCKER_HOST"] = own
    with connected(restarted(daemon), contract) as sandboxes:
        assert works(sandboxes, "loyal-1", "after-1")
        sandboxes.delete_wait("loyal-1")
    assert left_over(engine) == []


# --- orphans ---


@pytest.mark.engines("28")
def test_unclaimed_objects_are_removed_and_foreign_ones_stay(armed, engine, contract, image):
    daemon = started(armed())
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("claimed-1", image)
    daemon.stop()
    instance = instance_of(daemon)

    def add(name, component, owner):
        labels = {
            f"{LABEL}.instance": owner,
            f"{LABEL}.sandbox-id": name,
            f"{LABEL}.component": component,
        }
        query = {"name": f"orphan-{name}"}
        body = {"Image": image, "Cmd": ["true"], "Labels": labels}
        engine.api.call("POST", "/containers/create", query=query, json_body=body)
        engine.api.call(
            "POST", "/networks/create", json_body={"Name": f"orphan-{name}", "Labels": labels}
        )

    add("lost-1", "companion", instance)
    add("backup-1", "primary", instance)
    add("foreign-1", "companion", "11111111-2222-4333-8444-555555555555")
    try:
        restarted(daemon)
        removed = daemon.wait_for_message("orphaned container is removed")
        assert removed["sandbox_id"] == "lost-1" and removed["reason"]
        removed = daemon.wait_for_message("orphaned network is removed")
        assert removed["sandbox_id"] == "lost-1" and removed["reason"]
        with connected(daemon, contract) as sandboxes:
            assert works(sandboxes, "claimed-1", "after-1")
            sandboxes.delete_wait("claimed-1")
        left = "\n".join(left_over(engine))
        assert "lost-1" not in left
        assert left.count("backup-1") == left.count("foreign-1") == 2
        reported = [line for line in daemon.log() if line["msg"].startswith("unknown primary")]
        assert [line["sandbox_id"] for line in reported] == ["backup-1"]
    finally:
        for name in ("backup-1", "foreign-1"):
            engine.docker("rm", "-f", f"orphan-{name}")
            engine.docker("network", "rm", f"orphan-{name}")


@pytest.mark.engines("20.10", "28")
def test_what_the_engine_makes_after_the_delete_goes_at_once(armed, engine, contract, image):
    """As it does for a daemon that was killed while it asked: the next one has looked by then."""
    daemon = started(armed())
    daemon.wait_for_message("orphans were swept")
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("late-1", image)
        sandboxes.delete_wait("late-1")
    labels = {
        f"{LABEL}.instance": instance_of(daemon),
        f"{LABEL}.sandbox-id": "late-1",
        f"{LABEL}.component": "primary",
    }
    calls = [
        ("/networks/create", {}, {"Name": network("late-1"), "Labels": labels}),
        (
            "/containers/create",
            {"name": primary("late-1")},
            {"Image": image, "Cmd": ["true"], "Labels": labels},
        ),
    ]
    for path, query, body in calls:
        before = len(daemon.log_lines())
        engine.api.call("POST", path, query=query, json_body=body)
        daemon.process.wait_for_line(
            lambda line: "orphans were swept" in line, "the sweep", timeout=20, after=before
        )
        assert left_over(engine) == []


@pytest.mark.engines("28")
@pytest.mark.parametrize("is_used", [False, True], ids=["of-nobody", "of-another-network"])
def test_a_bridge_that_the_engine_forgot_goes_with_its_sandbox(
    armed, engine, contract, image, is_used
):
    with connected(started(armed()), contract) as sandboxes:
        sandboxes.create_ready("bridged-1", image)
        bridge = bridge_of(engine, "bridged-1")
        sandboxes.stop_wait("bridged-1")
        engine.docker("rm", primary("bridged-1"))
        engine.docker("network", "rm", network("bridged-1"))
        if is_used:
            option = f"com.docker.network.bridge.name={bridge}"
            engine.docker("network", "create", "--opt", option, "theirs")
        else:
            engine.world.run("ip", "link", "add", bridge, "type", "bridge")
        sandboxes.delete_wait("bridged-1")
    if is_used:
        assert left_over(engine) == [f"link {bridge}"]
        engine.docker("network", "rm", "theirs")
    assert left_over(engine) == []


@pytest.mark.engines("28")
def test_the_bridge_of_a_deleted_sandbox_is_removed_at_the_start(armed, engine, contract, image):
    daemon = started(armed())
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("bridged-1", image)
        sandboxes.create_ready("gone-1", image)
        bridge, of_the_deleted = bridge_of(engine, "bridged-1"), bridge_of(engine, "gone-1")
        sandboxes.delete_wait("gone-1")
        daemon.stop()
        of_nobody = f"{bridge[:10]}other"  # the prefix has at most so many characters here
        for name in (of_the_deleted, of_nobody):
            engine.world.run("ip", "link", "add", name, "type", "bridge")
        try:
            removed = restarted(daemon).wait_for_message("bridge that the engine forgot is removed")
            daemon.wait_for_message("orphans were swept")
        finally:
            engine.world.run("ip", "link", "delete", of_nobody)
        assert removed["bridge"] == of_the_deleted
    with connected(daemon, contract) as sandboxes:
        assert works(sandboxes, "bridged-1", "after-1")
        sandboxes.delete_wait("bridged-1")
    assert left_over(engine) == []


@pytest.mark.engines("28")
@pytest.mark.parametrize("failpoint", [
    "janitor.containers.before",
    "janitor.containers.after",
    "janitor.remove_container.before",
    "janitor.remove_container.after",
    "janitor.networks.before",
    "janitor.networks.after",
    "janitor.remove_network.before",
    "janitor.remove_network.after",
])
def test_a_sweep_goes_on_after_a_crash_anywhere(armed, engine, contract, image, failpoint):
    daemon = started(armed())
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("claimed-1", image)
    daemon.stop()
    labels = {
        f"{LABEL}.instance": instance_of(daemon),
        f"{LABEL}.sandbox-id": "lost-1",
        f"{LABEL}.component": "companion",
    }
    body = {"Image": image, "Cmd": ["true"], "Labels": labels}
    engine.api.call("POST", "/containers/create", query={"name": "orphan"}, json_body=body)
    engine.api.call("POST", "/networks/create", json_body={"Name": "orphan", "Labels": labels})
    with connected(restarted(killed_at(daemon, failpoint)), contract) as sandboxes:
        daemon.wait_for_message("orphans were swept")
        assert works(sandboxes, "claimed-1", "after-1")
        sandboxes.stop_wait("claimed-1")
        assert sandboxes.get("claimed-1").state == STOPPED
        sandboxes.delete_wait("claimed-1")
    assert left_over(engine) == []
