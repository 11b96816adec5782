# SPDX-License-Identifier: Apache-2.0
"""The user and the timeout of a command, on a real engine."""

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from support.execs import CANCELLED, FAILED, Execs, errors, output
from support.images import make_image
from support.sandboxes import CONFIG, connected, left_over, restarted, started

WHO = "id -u; id -g; echo $HOME $USER"


@pytest.fixture
def execs(make_daemon, daemon_user, engine, contract):
    """The execs of a sandbox that is ready."""
    image = make_image(engine.api, "exec-options:1")
    daemon = started(make_daemon(user=daemon_user, engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        execs = Execs(sandboxes, "box-1")
        execs.daemon = daemon
        yield execs
        sandboxes.delete_wait("box-1")
    assert left_over(engine) == []


def test_a_command_runs_as_the_user_of_the_request(execs):
    def who(user):
        return output(execs.run("sh", "-c", WHO, user=user)).split()

    assert who("root") == ["0", "0", "/root", "root"]
    own = who("")
    assert own[2:] == ["/home/agbox", "agbox"]
    assert who("agbox") == who(own[0]) == own  # by number it is the same user
    assert who("4321:1234") == ["4321", "1234", "/", "4321"]
    status = execs.run("true", user="nobody-here")
    assert (status.state, status.exit_code) == (FAILED, 126)
    assert "user 'nobody-here'" in status.error
    assert errors(status) == status.error + "\n"
    with pytest.raises(grpc.RpcError) as refused:
        execs.run("true", user="no such")
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "user: the name" in refused.value.details()


def test_root_of_an_exec_has_what_the_container_grants(execs):
    script = "touch /etc/of-root && chown 4321 /etc/of-root && stat -c %u /etc/of-root"
    assert output(execs.run("sh", "-c", script, user="root")) == "4321\n"


def test_a_command_that_takes_too_long_is_ended_with_all_its_processes(execs):
    script = "trap '' TERM; (trap '' TERM; sleep 4321) & echo begun; sleep 4321"
    status = execs.run("sh", "-c", script, timeout=Duration(nanos=300_000_000))
    assert (status.state, status.error_code, status.exit_code) == (CANCELLED, "TIMEOUT", 0)
    assert status.error == "it took longer than its timeout of 300 ms"
    assert output(execs.run("sh", "-c", "ps | grep -c '[s]leep 4321'")) == "0\n"
    assert execs.events()[1] == f"EXEC_CANCELLED {status.exec_id}"


def test_a_restarted_daemon_enforces_the_timeout(execs):
    created = execs.create("sleep", "4321", exec_id="late", timeout=Duration(seconds=2))
    execs.daemon.kill()
    restarted(execs.daemon)
    ended = execs.daemon.agbox("attach", "--no-stdin", created.exec_id)
    assert (ended.returncode, ended.stdout) == (124, "")
    request = execs.service.GetExecRequest(exec_id=created.exec_id)
    status = execs.stub.GetExec(request, timeout=30, wait_for_ready=True).exec
    assert (status.state, status.error_code) == (CANCELLED, "TIMEOUT")
    took = status.ended_at.ToNanoseconds() - status.started_at.ToNanoseconds()
    assert took >= 2_000_000_000


def test_the_command_line_has_both(execs):
    daemon = execs.daemon
    ran = daemon.agbox("exec", "run", "box-1", "-u", "root", "--", "id", "-u")
    assert (ran.returncode, ran.stdout) == (0, "0\n")
    late = daemon.agbox("exec", "run", "box-1", "--timeout", "200ms", "--", "sleep", "4321")
    assert late.returncode == 124
    assert "ended as Cancelled: it took longer than its timeout of 200 ms" in late.stderr
    for wrong in ("0", "-1s", "soon"):
        refused = daemon.agbox("exec", "run", "box-1", "--timeout", wrong, "--", "true")
        assert refused.returncode == 2
        assert "--timeout must be a positive duration such as 30s or 1h30m" in refused.stderr
