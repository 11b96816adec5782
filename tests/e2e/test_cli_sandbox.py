# SPDX-License-Identifier: Apache-2.0
"""agbox sandbox and agbox events against a real daemon on a real engine."""

import json
import re
import subprocess

import pytest

from support.images import make_image
from test_cli_daemon import run_agbox

IMAGE = "cli/busybox:1"


@pytest.fixture
def box_daemon(make_daemon, daemon_user, engine):
    """A running daemon that has met its engine, which has IMAGE."""
    make_image(engine.api, IMAGE)
    daemon = make_daemon(user=daemon_user, engine=engine).start()
    daemon.wait_for_message("engine is reachable")
    return daemon


def events_of(daemon, sandbox_id: str, *arguments: str) -> list[dict]:
    result = run_agbox(daemon, "events", sandbox_id, "--json", *arguments)
    assert (result.returncode, result.stderr) == (0, "")
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_sandbox_from_create_to_delete(box_daemon):
    created = run_agbox(box_daemon, "sandbox", "create", "--image", IMAGE, "--sandbox-id", "cli-life",
                        "--label", "b=2", "--label", "a=1")
    assert (created.returncode, created.stdout) == (0, "")
    assert re.fullmatch(
        r"Waiting for sandbox cli-life to be ready\.\.\.\n"
        r"Sandbox ready in \d+\.\ds\.\n"
        r"  Open a shell:       agbox exec -it cli-life\n"
        r"  Run a command:      agbox exec cli-life COMMAND\n"
        r"  Show sandbox:       agbox sandbox get cli-life\n"
        r"  Delete sandbox:     agbox sandbox delete cli-life\n", created.stderr)

    shown = run_agbox(box_daemon, "sandbox", "get", "cli-life")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert re.fullmatch(
        rf"sandbox_id=cli-life\nstate=Ready\nimage={IMAGE}\n"
        r"created_at=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n"
        r'labels=\{"a":"1","b":"2"\}\n', shown.stdout)

    listed = run_agbox(box_daemon, "sandbox", "list", "--label", "a=1")
    header, row = listed.stdout.splitlines()
    assert re.split(r"  +", header) == ["SANDBOX ID", "CREATED", "STATUS", "LABELS", "ERROR"]
    assert re.fullmatch(r"cli-life +\d+[sm] ago +Ready \d+[sm] +a=1,b=2 *", row)
    assert len(run_agbox(box_daemon, "sandbox", "list", "--label", "a=9").stdout.splitlines()) == 1

    # The follower sees the deletion and ends with it.
    command = [str(box_daemon.bin_dir / "agbox"), "events", "-f", "cli-life", "--json"]
    if box_daemon.user:
        command = box_daemon.user.command(command)
    with subprocess.Popen(command, env=box_daemon.environment, cwd=box_daemon.home, text=True,
                          stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as follower:
        deleted = run_agbox(box_daemon, "sandbox", "delete", "cli-life")
        assert (deleted.returncode, deleted.stdout) == (0, "")
        assert re.fullmatch(r"Waiting for sandbox cli-life to be deleted\.\.\.\n"
                            r"Sandbox deleted in \d+\.\ds\.\n", deleted.stderr)
        followed, _ = follower.communicate(timeout=30)
    assert follower.returncode == 0

    events = events_of(box_daemon, "cli-life")
    assert [event["sequence"] for event in events] == [str(n + 1) for n in range(len(events))]
    types = [event["event_type"] for event in events]
    assert types[0] == "SANDBOX_ACCEPTED"
    assert types[-3:] == ["SANDBOX_READY", "SANDBOX_DELETE_REQUESTED", "SANDBOX_DELETED"]
    assert [json.loads(line)["event_type"] for line in followed.splitlines()] == types
    assert events_of(box_daemon, "cli-life", "--from", str(len(events))) == []
    beyond = run_agbox(box_daemon, "events", "cli-life", "--from", "99")
    assert beyond.returncode == 1
    assert "event sequence 99 is outside retained history" in beyond.stderr

    assert "cli-life" not in run_agbox(box_daemon, "sandbox", "list").stdout
    everything = json.loads(
        run_agbox(box_daemon, "sandbox", "list", "--include-deleted", "--json").stdout)
    assert [box["state"] for box in everything["sandboxes"]] == ["SANDBOX_STATE_DELETED"]


def test_an_unknown_image_fails_with_the_engines_message(box_daemon):
    created = run_agbox(box_daemon, "sandbox", "create", "--sandbox-id", "cli-missing",
                        "--image", "127.0.0.1:1/agbox/missing:1")
    assert (created.returncode, created.stdout) == (1, "")
    assert re.search(r"\nsandbox cli-missing failed: .*127\.0\.0\.1:1", created.stderr)
    assert created.stderr.endswith("\n  Delete sandbox:     agbox sandbox delete cli-missing\n")

    shown = run_agbox(box_daemon, "sandbox", "get", "cli-missing").stdout
    assert "state=Failed\n" in shown
    assert "error_code=SANDBOX_CREATE_FAILED\n" in shown
    assert run_agbox(box_daemon, "sandbox", "delete", "cli-missing").returncode == 0


def test_stop_and_resume_wait_and_keep_the_sandbox(box_daemon):
    created = run_agbox(box_daemon, "sandbox", "create", "--image", IMAGE, "--sandbox-id", "cli-stop")
    assert created.returncode == 0, created.stderr
    stopped = run_agbox(box_daemon, "sandbox", "stop", "cli-stop")
    assert (stopped.returncode, stopped.stdout) == (0, "")
    assert re.fullmatch(r"Waiting for sandbox cli-stop to be stopped\.\.\.\n"
                        r"Sandbox stopped in \d+\.\ds\.\n", stopped.stderr)
    again = run_agbox(box_daemon, "sandbox", "stop", "cli-stop")
    assert (again.returncode, again.stderr) == (1, "stop sandbox: sandbox cli-stop is not ready\n")
    resumed = run_agbox(box_daemon, "sandbox", "resume", "cli-stop", "--json")
    assert re.fullmatch(r"Waiting for sandbox cli-stop to be resumed\.\.\.\n"
                        r"Sandbox resumed in \d+\.\ds\.\n", resumed.stderr)
    assert json.loads(resumed.stdout)["sandbox"]["state"] == "SANDBOX_STATE_READY"
    assert run_agbox(box_daemon, "sandbox", "delete", "cli-stop").returncode == 0
    types = [event["event_type"] for event in events_of(box_daemon, "cli-stop")]
    assert types[3:7] == ["SANDBOX_STOP_REQUESTED", "SANDBOX_STOPPED", "SANDBOX_ACCEPTED",
                          "SANDBOX_READY"]


def test_deletes_by_label_what_carries_it_and_nothing_else(box_daemon):
    for name, group in [("cli-one", "x"), ("cli-two", "x"), ("cli-three", "y")]:
        created = run_agbox(box_daemon, "sandbox", "create", "-q", "--image", IMAGE,
                            "--sandbox-id", name, "--label", f"group={group}")
        assert (created.returncode, created.stdout, created.stderr) == (0, f"{name}\n", "")

    deleted = run_agbox(box_daemon, "sandbox", "delete", "--label", "group=x")
    assert deleted.returncode == 0
    assert re.fullmatch(r"Waiting for 2 sandbox\(es\) to be deleted\.\.\.\n"
                        r"2 sandbox\(es\) deleted in \d+\.\ds\.\n", deleted.stderr)
    left = run_agbox(box_daemon, "sandbox", "list").stdout.splitlines()[1:]
    assert [row.split()[0] for row in left] == ["cli-three"]

    nobody = run_agbox(box_daemon, "sandbox", "delete", "--label", "group=x")
    assert (nobody.returncode, nobody.stderr) == (0, "No sandboxes matched the label selector.\n")
    assert run_agbox(box_daemon, "sandbox", "delete", "cli-three").returncode == 0
