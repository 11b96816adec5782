# SPDX-License-Identifier: Apache-2.0
"""Tests of the suite itself: each plants a bug in the daemon (planted_bugs.cpp, or a failpoint), and fails if the
check does not name it. The same steps without a bug violate nothing."""

import contextlib

import pytest
from robustness.calls import LONG
from robustness.clients import Client, Reader, end_companion
from robustness.engine_gate import CutsOnce, EngineGate
from robustness.history import Attachments
from robustness.host_files import PORTS
from robustness.rest import settle
from robustness.test_fake_engine_kills import PURGES, RETENTION
from support.sandboxes import primary, wait_until

RED, BLUE, GREY = ((("team", color),) for color in ("red", "blue", "grey"))
_PATIENCE = 5  # seconds; with a bug something may never come to rest

# What is planted, and the sentence that names it.
BUGS = {
    "a create fails at its first crash": "sandbox box-crashed: failed with SANDBOX_CREATE_FAILED: 'the daemon ended 3 times "
    "while it created this sandbox; see its log' on an engine that works, at attempt 1 of its create",
    "a stop is not announced": "SANDBOX_STOPPED, comes while the sandbox is ready",
    "a stop that is requested counts as done": "SANDBOX_STOP_REQUESTED, has the state STOPPED instead of READY",
    "a stop of a ready sandbox is refused": "its stop was refused with SANDBOX_INVALID_STATE, and it was READY",
    "execs outlive the stop": "SANDBOX_STOPPED, comes before the end of ['stopped']",
    "a resume makes another container": "sandbox box-red: the look after one more restart: its container is",
    "a delete is forgotten over a restart": "sandbox box-blue: the look at rest: something is still under way",
    "an idle sandbox is stopped early": "sandbox box-idle: SANDBOX_STOP_REQUESTED for idle_ttl, 0.",
    "the janitor removes what is in use": "sandbox box-red: failed with CONTAINER_NOT_RUNNING",
    "a copy is empty after a crash during its create": "of box-crashed: it wrote 'probe-0-0-box-crashed\\nread-only of "
    "box-crashed\\nwritable of box-crashed\\ntool\\n' instead of ",
    "ports are forgotten over a restart": "ports=()), and ",
    "labels are forgotten over a restart": "sandbox box-red: Get says Fixed(image='robust:1', labels=()",
    "a sandbox is younger after a restart": ", and it was Fixed(image='robust:1', labels=(('team', 'red'),), created_at=",
    "Get shows the state of an earlier event": "Get says PENDING at event",
    "the last sandbox of a page is left out": "not in a list with the labels {} after its event",
    "an id is given twice": "sandbox box-red: created again after its event",
    "DeleteSandboxes deletes nothing": "READY, and a DeleteSandboxes with the labels {'team': 'grey'} was acknowledged",
    "the two streams of an exec are confused": "exec short: ReadExecOutput from byte 0 gave ''",
    "a stream ends after a stop": "sandbox box-blue: the stream of reader ended after event",
    "a stream skips the start of an exec": "sandbox box-red: reader, subscribed after event 0, got event",
    "a snapshot shows no exec": "shows [], and ['long'] ran",
    "the stream of all sandboxes skips the start of an exec": "EXEC_STARTED, did not come in the stream of all sandboxes",
    "a cursor resumes one event too early": "in the stream of all sandboxes",
    "a companion that ends is not noticed": "{'db': True, 'side': False} instead of {'db': True, 'side': True}",
    "an outage of a companion is reported twice": "of companion side comes twice for one outage",
    "hooks are forgotten over a restart": "sandbox box-kept: the look at rest: the command of db ran ",
}
FAILPOINTS = {
    "exec.cancel_send.before=error": "exec long: its cancel was acknowledged after event",
    "exec.end.before=error": "sandbox box-red: the look at rest: something is still under way",
}


def named(broken, words):
    assert any(words in sentence for sentence in broken), broken


@contextlib.contextmanager
def telling(run):
    """A client, and another one for its readers."""
    client = Client("teller", run.daemon, run.contract, run.recorder)
    observer = Client("observer", run.daemon, run.contract, run.recorder)
    readers = []

    def create(sandbox_id, labels, idle_ttl=None, attached=Attachments(), has_companions=False):
        client.create(sandbox_id, run.image, labels, idle_ttl, attached, has_companions)
        run.asked.append(sandbox_id)
        readers.append(Reader(observer, sandbox_id))

    try:
        yield client, create
    finally:
        for reader in readers:
            reader.close()
        observer.close()
        client.close()


def tell(run):
    """Everything that a bug is planted in, with kills during a create and a delete."""
    with telling(run) as (client, create):
        create("box-red", RED)
        create("box-blue", BLUE)
        create("box-kept", BLUE, has_companions=True)
        create("box-grey", GREY)
        create("box-idle", RED, idle_ttl=1)
        settle(client, run.asked)
        client.create("box-red", run.image)  # refused
        client.exec("box-red", "short", 3, 0)
        settle(client, ["box-red"])
        client.read_output("short", 0, follow=True)
        client.exec("box-red", "long", 0, LONG)
        client.snapshot("box-red", client.get("box-red").sequence)
        client.cancel("box-red", "long")
        client.exec("box-blue", "stopped", 0, LONG)
        client.stop("box-blue")
        settle(client, ["box-red", "box-blue"])
        client.resume("box-blue")
        settle(client, ["box-blue"])
        end_companion(run.engine.api, run.recorder, "box-kept")
        client.list_all(())
        client.delete_all(GREY, ["box-grey"])
        attached = run.files.attachments("box-crashed", PORTS[0])
        run.killer.kill_during("create.network.after", lambda: create("box-crashed", RED, attached=attached))
        settle(client, ["box-crashed"])
        # Refused, because of the port.
        client.create("box-refused", run.image, RED, attached=run.files.attachments("box-refused", PORTS[0]))
        for sandbox_id in run.asked:
            client.get(sandbox_id)
        run.killer.kill_during("delete.containers.before", lambda: client.delete("box-blue"))
        settle(client, run.asked)


def run_with(make_fake_run, bug, **options):
    options.setdefault("environment", {})
    run = make_fake_run(program="planted_bugs_daemon", **options)
    if bug:
        run.recorder.patience = _PATIENCE
    return run


def test_the_same_daemon_without_a_bug_is_passed(make_fake_run):
    run = run_with(make_fake_run, "")
    tell(run)
    assert run.broken() == []


@pytest.mark.family(4)
@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_of_the_daemon_is_named(make_fake_run, bug):
    run = run_with(make_fake_run, bug, environment={"AGBOX_PLANTED_BUG": bug})
    tell(run)
    named(run.broken(), BUGS[bug])


@pytest.mark.parametrize(
    "failpoint",
    # Without the end of an exec every wait lasts as long as patience does.
    [pytest.param(f, marks=[pytest.mark.long] * f.startswith("exec.end.")) for f in FAILPOINTS],
)
def test_a_step_that_is_left_out_is_named(make_fake_run, failpoint):
    run = run_with(make_fake_run, failpoint, environment={"AGBOX_FAILPOINTS": failpoint})
    tell(run)
    named(run.broken(), FAILPOINTS[failpoint])


@pytest.mark.parametrize("bug", ["", "an engine that does not answer has refused"], ids=["right", "bug"])
def test_a_failure_that_no_engine_has_caused(make_fake_run, fake_engine, directory, bug):
    cut = CutsOnce(b"/networks/create")
    gate = EngineGate(directory / "gate", fake_engine.socket, cut.manners)
    try:
        run = run_with(
            make_fake_run, bug, docker_host=gate.docker_host, environment={"AGBOX_PLANTED_BUG": bug}
        )
        run.recorder.history.engine_failed = True
        with telling(run) as (client, create):
            create("box-red", RED)
            settle(client, run.asked)
        broken = run.broken()
    finally:
        gate.end()
    assert cut.is_done
    if bug:
        named(broken, "the engine closed the connection', and no engine has refused it")
    else:
        assert broken == []


RESTART_BUGS = {
    "": "",
    "a restart is announced twice": "SANDBOX_PREPARING, comes while the sandbox is restarting",
    "a restart is not counted": "sandbox box-red: Get says 0 restarts at event",
}


@pytest.mark.parametrize("bug", RESTART_BUGS, ids=["right", "twice", "uncounted"])
def test_a_restart_that_is_reported_wrongly(make_fake_run, fake_engine, bug):
    run = run_with(make_fake_run, bug, environment={"AGBOX_PLANTED_BUG": bug})
    run.recorder.history.engine_failed = True  # its containers end
    with telling(run) as (client, create):
        create("box-red", RED)
        settle(client, run.asked)
        before = client.get("box-red").sequence
        fake_engine.api.call("POST", f"/containers/{primary('box-red')}/kill")
        wait_until(lambda: client.get("box-red").sequence >= before + 2, "its restart")
        settle(client, run.asked)
        run.killer.kill()
        run.killer.start()
        settle(client, run.asked)
    broken = run.broken()
    if bug:
        named(broken, RESTART_BUGS[bug])
    else:
        assert broken == []


@pytest.mark.parametrize("bug", ["", "a history is purged early"], ids=["right", "bug"])
def test_a_history_that_is_purged_early(make_fake_run, bug):
    run = run_with(make_fake_run, bug, runtime=PURGES, environment={"AGBOX_PLANTED_BUG": bug})
    run.recorder.history.retention = RETENTION
    with telling(run) as (client, create):
        create("box-red", RED)
        settle(client, run.asked)
    broken = run.broken_once_purged()
    if bug:
        named(broken, "s after its delete, not after 2 s")
    else:
        assert broken == []
