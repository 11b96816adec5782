# SPDX-License-Identifier: Apache-2.0
"""Commands in a sandbox on a real engine: what they get, how they end, and that each runs once."""

import os
import stat
from pathlib import Path

import grpc
import pytest
from support.execs import (
    CANCEL_FAILPOINTS,
    CANCELLED,
    EXEC_FAILPOINTS,
    FAILED,
    FINISHED,
    RUNNING,
    Execs,
    ends_of,
    errors,
    output,
)
from support.images import make_image
from support.odd_images import odd_image
from support.sandboxes import (
    CONFIG,
    DELETED,
    PREPARING,
    connected,
    crashing,
    inside,
    inspect,
    left_over,
    primary,
    restarted,
    started,
)

# A call that the daemon's death ends, also one that it was answering.
ENDED_CALL = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
# What a command has written and no file has yet: in its pipe, and in its runner's hands.
UNDER_WAY_BYTES = 2 * (64 << 10)


@pytest.fixture
def image(engine):
    return make_image(engine.api, "exec:1")


@pytest.fixture
def execs(make_daemon, daemon_user, engine, contract, image):
    """The execs of a sandbox that is ready."""
    daemon = started(make_daemon(user=daemon_user, engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image, envs={"A": "sandbox", "B": "sandbox"})
        execs = Execs(sandboxes, "box-1")
        execs.daemon = daemon
        yield execs
        sandboxes.delete_wait("box-1")
    assert left_over(engine) == []


def test_a_command_runs_and_its_output_is_where_it_says(execs):
    created = execs.create("sh", "-c", "echo out; echo err >&2", exec_id="first")
    assert created.exec_id == "first"
    status = execs.wait("first")
    assert (status.state, status.exit_code, status.error) == (FINISHED, 0, "")
    assert (output(status), errors(status)) == ("out\n", "err\n")
    assert status.stdout_log_path == created.stdout_log_path
    mode = os.stat(created.stdout_log_path).st_mode
    assert stat.S_IMODE(mode) == 0o600
    assert status.usage.peak_memory_bytes > 0
    assert status.ended_at.ToNanoseconds() >= status.started_at.ToNanoseconds() > 0
    assert execs.events() == ["EXEC_STARTED first", "EXEC_FINISHED first"]
    started_line = execs.daemon.wait_for_message("exec started")
    assert (started_line["sandbox_id"], started_line["exec_id"]) == ("box-1", "first")
    assert execs.daemon.wait_for_message("exec finished")["exit_code"] == 0


@pytest.mark.parametrize(
    "command, code, words",
    [
        (("true",), 0, ""),
        (("sh", "-c", "exit 3"), 3, "exit code 3"),
        (("sh", "-c", "kill -9 $$"), 137, "killed by signal 9"),
        (("sh", "-c", "kill -15 $$"), 143, "killed by signal 15"),
        (("no-such-program",), 127, "no-such-program"),
        (("/etc/passwd",), 126, "/etc/passwd"),
    ],
)
def test_how_a_command_ends_is_what_its_status_says(execs, command, code, words):
    status = execs.run(*command)
    assert status.exit_code == code
    assert status.state == (FINISHED if code == 0 else FAILED)
    assert status.error_code == ("EXEC_RUN_FAILED" if code else "")
    assert words in status.error


@pytest.mark.parametrize("command", [("no-such-program",), ("/etc/passwd",)])
def test_why_a_command_cannot_start_is_the_last_line_of_its_stderr(execs, command):
    status = execs.run(*command)
    assert errors(status) == status.error + "\n"
    assert output(status) == ""


def test_an_executable_file_without_an_interpreter_is_run_by_the_shell(execs):
    execs.run("sh", "-c", "printf 'echo $1\\nexit 7\\n' > /tmp/script; chmod +x /tmp/script")
    status = execs.run("/tmp/script", "an argument")
    assert (output(status), status.exit_code) == ("an argument\n", 7)


def test_a_command_that_runs_out_of_memory_says_so(make_daemon, daemon_user, engine, contract, image):
    daemon = started(make_daemon(user=daemon_user, engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("eats-1", image, memory_limit="64m")
        execs = Execs(sandboxes, "eats-1")
        status = execs.run("sh", "-c", "x=a; while :; do x=$x$x; done")
        assert (status.state, status.exit_code) == (FAILED, 137)
        count = "cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control 2> /dev/null"
        # Where the sandbox cannot see that the kernel counted it, nothing is claimed.
        if "oom_kill 1\n" in output(execs.run("sh", "-c", count)):
            assert status.error == (
                "killed by signal 9: out of memory: while it ran, the kernel killed 1 process of the "
                "sandbox, whose memory limit is 64 MiB"
            )
        else:
            assert status.error == "killed by signal 9"
        sandboxes.delete_wait("eats-1")
    assert left_over(engine) == []


def test_who_runs_where_with_which_environment(execs):
    status = execs.run("sh", "-c", "id -u; pwd; echo $HOME $USER $A $B", env={"B": "exec"})
    user = str(os.stat(status.stdout_log_path).st_uid)  # that of the daemon
    assert output(status).split() == [user, "/workspace", "/home/agbox", "agbox", "sandbox", "exec"]
    assert output(execs.run("pwd", cwd="/etc")) == "/etc\n"
    assert output(execs.run("sh", "-c", "echo $HOME", env={"HOME": "/tmp"})) == "/tmp\n"
    status = execs.run("true", cwd="/no/such/directory")
    assert (status.state, status.exit_code) == (FAILED, 126)
    assert "/no/such/directory" in status.error


def test_arguments_and_environments_of_any_size(execs):
    script = 'echo $#; [ -z "$1" ] && echo empty; echo ${#LARGE}'
    arguments = [""] + [str(i) for i in range(9_999)]
    status = execs.run("sh", "-c", script, "sh", *arguments, env={"LARGE": "x" * 100_000})
    assert output(status).split() == ["10000", "empty", "100000"]


def test_the_sandbox_cannot_touch_its_logs(execs):
    script = "ls /var/log/agents-sandbox/ && ! touch /var/log/agents-sandbox/x && ! rm /var/log/agents-sandbox/*"
    status = execs.run("sh", "-c", script, exec_id="looks")
    assert status.state == FINISHED, errors(status)
    assert "looks.stdout.log" in output(status)


def test_a_cancel_ends_the_whole_tree(execs, engine):
    # Deaf to SIGTERM, so that it still runs when the second cancel comes.
    deaf = "trap '' TERM; echo deaf; setsid sleep 1234 & sleep 1234"
    execs.create("sh", "-c", deaf, exec_id="tree")
    execs.wait_for_output("tree")
    execs.cancel("tree")
    execs.cancel("tree")
    status = execs.wait("tree")
    assert (status.state, status.exit_code, status.cancel_requested) == (CANCELLED, 0, True)
    assert "sleep 1234" not in inside(engine, "box-1", "ps", user="0")
    with pytest.raises(grpc.RpcError) as refused:
        execs.cancel("tree")
    assert refused.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    assert refused.value.details() == "exec tree is already terminal"
    assert execs.events() == ["EXEC_STARTED tree", "EXEC_CANCELLED tree"]


def test_lists_know_what_runs_and_what_ran(execs):
    execs.create("sleep", "1234", exec_id="zzzz")
    execs.run("true", exec_id="mmmm")
    execs.create("sleep", "1234", exec_id="aaaa")
    assert execs.active() == ["aaaa", "zzzz"]
    assert [(one.exec_id, one.state) for one in execs.all()] == [
        ("zzzz", RUNNING),
        ("mmmm", FINISHED),
        ("aaaa", RUNNING),
    ]
    stream = execs.sandboxes.subscribe("box-1", from_sequence=7, include_current_snapshot=True)
    seen = [next(stream) for _ in range(3)]
    stream.cancel()
    assert [event.snapshot for event in seen] == [True] * 3
    assert [event.event_id for event in seen[1:]] == ["box-1-snapshot-aaaa", "box-1-snapshot-zzzz"]
    for exec_id in ("zzzz", "aaaa"):
        execs.cancel(exec_id)
        execs.wait(exec_id)


@pytest.mark.parametrize(
    "request_fields, code, words",
    [
        ({"command": []}, "INVALID_ARGUMENT", "command must not be empty"),
        ({"exec_id": "abc"}, "INVALID_ARGUMENT", "exec_id must be at least 4 characters"),
        ({"cwd": "tmp"}, "INVALID_ARGUMENT", "cwd must be absolute"),
        ({"sandbox_id": "nobody"}, "NOT_FOUND", "sandbox nobody was not found"),
        ({"exec_id": "used"}, "ALREADY_EXISTS", "exec_id used already exists"),
    ],
)
def test_a_refusal_says_why_and_leaves_nothing(execs, request_fields, code, words):
    execs.run("true", exec_id="used")
    logs = sorted(Path(execs.get("used").stdout_log_path).parent.iterdir())
    fields = {"sandbox_id": "box-1", "command": ["true"]} | request_fields
    with pytest.raises(grpc.RpcError) as refused:
        execs.stub.CreateExec(execs.service.CreateExecRequest(**fields), timeout=30)
    assert refused.value.code().name == code
    assert words in refused.value.details()
    assert sorted(Path(execs.get("used").stdout_log_path).parent.iterdir()) == logs
    assert execs.events() == ["EXEC_STARTED used", "EXEC_FINISHED used"]


def test_a_delete_ends_what_runs(make_daemon, test_user, engine, contract, image):
    daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        execs = Execs(sandboxes, "box-1")
        execs.create("sh", "-c", "echo before; sleep 1234", exec_id="runs")
        events = sandboxes.delete_wait("box-1")
        assert [event.event_type for event in events[-3:]] == [7, 12, 8]
        status = execs.get("runs")
        assert (status.state, status.last_event_sequence) == (CANCELLED, events[-1].sequence)
        with pytest.raises(grpc.RpcError) as refused:
            execs.create("true")
        assert refused.value.details() == "sandbox box-1 is not ready: it is deleted; create another"
    assert left_over(engine) == []


def test_a_removed_container_ends_its_execs_first(make_daemon, test_user, engine, contract, image):
    daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        execs = Execs(sandboxes, "box-1")
        execs.create("sleep", "1234", exec_id="lost")
        engine.docker("rm", "-f", primary("box-1"))
        status = execs.wait("lost")
        assert (status.state, status.error_code) == (FAILED, "CONTAINER_EXITED")
        # An engine kills what it removes, and either may be seen first.
        assert "the sandbox's container did not live on" in status.error
        events = sandboxes.follow("box-1", lambda event: event.sandbox_state == 3)
        kinds = [event.event_type for event in events]
        # In between, the restart of a container that was only seen to be killed may have begun.
        assert kinds[-1] == 4 and kinds[kinds.index(11) + 1 : -1] in ([], [PREPARING]), kinds
        assert events[-1].sandbox_phase.error_code == "CONTAINER_NOT_RUNNING"
        assert "it was removed" in sandboxes.get("box-1").error_message
        sandboxes.delete_wait("box-1")
    assert left_over(engine) == []


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_execs_outlive_the_daemon(armed, engine, contract, image, end):
    """Twenty of them, half of which end while it is away; output, codes and events are whole."""
    daemon = started(armed())
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        execs = Execs(sandboxes, "box-1")
        for i in range(20):
            wait = "while [ ! -e /tmp/now ]; do sleep 0.05; done" if i % 2 else ":"
            script = f"echo begin {i}; {wait}; until [ -e /tmp/away ]; do sleep 0.05; done; echo end {i}; exit {i}"
            execs.create("sh", "-c", script, exec_id=f"exec-{i:02}")
        running = execs.active()
        assert len(running) == 20
    daemon.stop() if end == "stop" else daemon.kill()
    inside(engine, "box-1", "touch", "/tmp/away")
    with connected(restarted(daemon), contract) as sandboxes:
        execs = Execs(sandboxes, "box-1")
        inside(engine, "box-1", "touch", "/tmp/now")
        for i in range(20):
            status = execs.wait(f"exec-{i:02}")
            assert (status.exit_code, output(status)) == (i, f"begin {i}\nend {i}\n")
        events = execs.events()
        assert all(ends_of(events, f"exec-{i:02}") == 1 for i in range(20))
        assert execs.active() == []
        sandboxes.delete_wait("box-1")
    assert left_over(engine) == []


def test_a_daemon_that_hangs_holds_up_no_output(execs, engine, pytestconfig):
    size = (1 << 30) if pytestconfig.getoption("--long") else (64 << 20)
    inside(engine, "box-1", "mkfifo", "/tmp/up", "/tmp/go", "/tmp/done")
    script = f"echo >/tmp/up; read x </tmp/go; head -c {size} /dev/zero; echo >/tmp/done; exit 3"
    log = Path(execs.create("sh", "-c", script, exec_id="much").stdout_log_path)
    inside(engine, "box-1", "sh", "-c", "read x </tmp/up")
    execs.daemon.process.freeze()
    try:
        inside(engine, "box-1", "sh", "-c", "echo >/tmp/go; read x </tmp/done")
        assert log.stat().st_size >= size - UNDER_WAY_BYTES, "written while the daemon stands still"
    finally:
        execs.daemon.process.thaw()
    status = execs.wait("much")
    assert (status.exit_code, status.output_truncated) == (3, False)
    assert log.stat().st_size == size


def test_an_image_without_a_shell_runs_its_one_program(
    make_daemon, daemon_user, engine, contract
):
    image = make_image(engine.api, "exec-scratch:1", odd_image("scratch"))
    daemon = started(make_daemon(user=daemon_user, engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        execs = Execs(sandboxes, "box-1")
        status = execs.run("/busybox", "echo", "no shell")
        assert (status.state, output(status)) == (FINISHED, "no shell\n")
        assert execs.run("sh", "-c", "true").exit_code == 127
        sandboxes.delete_wait("box-1")
    assert left_over(engine) == []


def test_a_command_that_kills_all_it_may_ends_itself_alone(
    make_daemon, test_user, engine, contract, image
):
    """As an ordinary user; root in the container may kill what runs its commands too."""
    daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        execs = Execs(sandboxes, "box-1")
        start = inspect(engine, primary("box-1"))["State"]["StartedAt"]
        status = execs.run("sh", "-c", "env kill -9 -1; true")
        assert (status.state, status.exit_code) == (FAILED, 137)
        assert execs.run("sh", "-c", "exit 5").exit_code == 5
        assert inspect(engine, primary("box-1"))["State"]["StartedAt"] == start
        sandboxes.delete_wait("box-1")
    assert left_over(engine) == []


@pytest.mark.family(3)
@pytest.mark.parametrize("failpoint", EXEC_FAILPOINTS)
def test_an_exec_runs_exactly_once_wherever_the_daemon_dies(
    armed, engine, contract, image, failpoint
):
    daemon = started(armed(f"{failpoint}=kill"))
    acknowledged = False
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        with crashing(daemon, *ENDED_CALL):
            Execs(sandboxes, "box-1").create(
                "sh", "-c", "echo once >>/tmp/ran; exit 3", exec_id="once"
            )
            acknowledged = True
    with connected(restarted(daemon), contract) as sandboxes:
        execs = Execs(sandboxes, "box-1")
        known = [one.exec_id for one in execs.all()]
        # What was not acknowledged may be there or not; what was, is.
        assert known == ["once"] or (known == [] and not acknowledged)
        if known:
            assert execs.wait("once").exit_code == 3
            assert execs.events() == ["EXEC_STARTED once", "EXEC_FAILED once"]
        else:
            execs.run("sh", "-c", "echo once >>/tmp/ran", exec_id="once")  # the id is free
        assert inside(engine, "box-1", "cat", "/tmp/ran") == "once"
        assert sandboxes.delete_wait("box-1")[-1].sandbox_state == DELETED
    assert left_over(engine) == []


@pytest.mark.engines("28")
@pytest.mark.family(3)
@pytest.mark.parametrize("failpoint", CANCEL_FAILPOINTS)
def test_an_accepted_cancel_is_never_lost(armed, engine, contract, image, failpoint):
    daemon = started(armed(f"{failpoint}=kill"))
    acknowledged = False
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        execs = Execs(sandboxes, "box-1")
        execs.create("sleep", "1234", exec_id="cancelled")
        with crashing(daemon, *ENDED_CALL):
            execs.cancel("cancelled")
            acknowledged = True
    with connected(restarted(daemon), contract) as sandboxes:
        execs = Execs(sandboxes, "box-1")
        if not execs.get("cancelled").cancel_requested:
            assert not acknowledged
            execs.cancel("cancelled")
        assert execs.wait("cancelled").state == CANCELLED
        assert ends_of(execs.events(), "cancelled") == 1
        assert "sleep 1234" not in inside(engine, "box-1", "ps", user="0")
        sandboxes.delete_wait("box-1")
    assert left_over(engine) == []
