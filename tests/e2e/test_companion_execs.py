# SPDX-License-Identifier: Apache-2.0
"""Commands in services and companions on real engines: they have the guarantees of those in the primary."""

import grpc
import pytest
from support.companions import companion_container, health_check, statuses
from support.companions import READY as COMPANION_READY
from support.execs import CANCELLED, FAILED, FINISHED, RUNNING, Execs, errors, output
from support.images import make_image
from support.sandboxes import (
    CONFIG,
    connected,
    inspect,
    left_over,
    primary,
    restarted,
    started,
    wait_until,
)

BOX = "execs-1"
DB = companion_container(BOX, "db")
# As the image of a database: its own user and directory.
DB_USER, DB_UID = "keeper", 4321
SERVE = f"""
echo '{DB_USER}:x:{DB_UID}:{DB_UID}::/var/lib/db:/bin/sh' >> /etc/passwd
mkdir -p /var/lib/db && chown {DB_UID} /var/lib/db
exec sleep 1000000
"""


@pytest.fixture
def execs(make_daemon, test_user, engine, contract):
    """The execs of a ready sandbox with a service `db`."""
    image = make_image(engine.api, "companion-execs:1")
    daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        db = contract.spec.CompanionContainerSpec(
            name="db",
            image=image,
            command=["sh", "-c", SERVE],
            envs={"SECRET": "of-db"},
            healthcheck=health_check(contract, "CMD", "test", "-d", "/var/lib/db"),
        )
        sandboxes.create_ready(BOX, image, required_services=[db])
        execs = Execs(sandboxes, BOX)
        execs.daemon, execs.engine = daemon, engine
        yield execs
        sandboxes.delete_wait(BOX)
    assert left_over(engine) == []


def in_db(execs, script, **options):
    return execs.run("sh", "-c", script, container="db", **options)


def state_of(execs, exec_id):
    """None while the daemon is away."""
    try:
        return execs.get(exec_id).state
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNAVAILABLE
        return None


def is_running(execs, words):
    """Whether a process of the service has these words in its command line."""
    listed = in_db(execs, "ps -o pid,args", user="root")
    return any(words in line for line in output(listed).splitlines() if "ps -o" not in line)


@pytest.mark.engines("20.10", "28")
def test_a_command_runs_in_the_service_with_the_guarantees_of_an_exec(execs):
    status = in_db(execs, "hostname; echo $SECRET; id -u; pwd; echo to-err >&2; exit 7")
    host = inspect(execs.engine, DB)["Config"]["Hostname"]
    assert output(status).split() == [host, "of-db", "0", "/"]
    assert errors(status) == "to-err\n"
    assert (status.state, status.exit_code, status.container) == (FAILED, 7, "db")

    def who(**options):
        return output(in_db(execs, "id -u; echo $HOME $USER", **options)).split()

    assert who(user=DB_USER) == who(user=str(DB_UID)) == [str(DB_UID), "/var/lib/db", DB_USER]
    assert output(in_db(execs, "pwd", cwd="/var/lib")) == "/var/lib\n"
    assert output(in_db(execs, "echo $SECRET", env={"SECRET": "own"})) == "own\n"
    assert in_db(execs, "true", user="nobody-here").exit_code == 126
    assert execs.run("no-such-program", container="db").exit_code == 127
    # Its output is on disk while it runs.
    running = execs.create("sh", "-c", "echo begun; sleep 4321", container="db", exec_id="live")
    execs.wait_for_output("live")
    assert output(running) == "begun\n"
    assert execs.active() == ["live"]
    # All of its processes are gone when it is cancelled, and nothing else is.
    script = "trap '' TERM; setsid sleep 5432 & (trap '' TERM; sleep 5432) & echo begun; sleep 5432"
    execs.create("sh", "-c", script, container="db", exec_id="tree")
    execs.wait_for_output("tree")
    assert is_running(execs, "sleep 5432")
    execs.cancel("tree")
    assert execs.wait("tree").state == CANCELLED
    assert not is_running(execs, "sleep 5432")
    assert is_running(execs, "sleep 4321")
    assert statuses(execs.sandboxes.get(BOX))["db"].restart_count == 0
    execs.cancel("live")
    assert execs.wait("live").state == CANCELLED
    # A background process lives on, as after an exec in the primary.
    assert in_db(execs, "sleep 6543 >/dev/null 2>&1 &").state == FINISHED
    assert is_running(execs, "sleep 6543")


def test_what_runs_there_is_confined_as_the_service_is(execs):
    script = "grep -E '^(Cap...|Seccomp|NoNewPrivs)' /proc/self/status; readlink /proc/self/ns/net"
    of_db = output(in_db(execs, script, user="root"))
    of_itself = execs.engine.docker("exec", "-u", "root", DB, "sh", "-c", script)
    assert of_db.splitlines()[-1] == of_itself.stdout.splitlines()[-1], "the network of the service"
    limits = output(execs.run("sh", "-c", script, user="root")).splitlines()[:-1]
    assert [line for line in of_db.splitlines()[:-1] if "CapBnd" in line or "Seccomp" in line] == [
        line for line in limits if "CapBnd" in line or "Seccomp" in line
    ], "as in the primary"
    # Neither the output of the primary's commands nor its files.
    assert in_db(execs, "ls /var/log/agents-sandbox").exit_code != 0
    mounts = {mount["Destination"]: mount["RW"] for mount in inspect(execs.engine, DB)["Mounts"]}
    assert mounts == {"/.agbox-guest": False, "/.agbox-link": False}


@pytest.mark.engines("20.10", "28")
def test_it_survives_the_daemon_and_ends_with_its_container(execs):
    execs.create("sh", "-c", "echo begun; while ! test -e /go; do sleep 0.05; done; echo end; exit 5",
                 container="db", exec_id="lives")
    execs.wait_for_output("lives")
    execs.daemon.kill()
    restarted(execs.daemon)
    wait_until(lambda: state_of(execs, "lives") == RUNNING, "the client's channel to connect again")
    assert execs.run("touch", "/go", container="db").state == FINISHED
    ended = execs.wait("lives")
    assert (ended.state, ended.exit_code, output(ended)) == (FAILED, 5, "begun\nend\n")
    # The end of the container, which is then restarted, is that of its commands alone.
    execs.create("sleep", "4321", container="db", exec_id="dies")
    execs.create("sleep", "4321", exec_id="stays")
    wait_until(lambda: "sleep 4321" in str(execs.engine.docker("top", DB).stdout), "it runs")
    execs.engine.docker("kill", DB)
    died = execs.wait("dies")
    assert (died.state, died.error_code) == (FAILED, "CONTAINER_EXITED")
    assert execs.get("stays").state == RUNNING

    def is_back():  # its command may have ended before its own state says so
        db = statuses(execs.sandboxes.get(BOX))["db"]
        return (db.restart_count, db.state) == (1, COMPANION_READY)

    wait_until(is_back, "the service is back")
    assert execs.run("true", container="db").state == FINISHED
    # A stop cancels them, and the resumed sandbox takes others.
    execs.create("sleep", "4321", container="db", exec_id="stopped")
    execs.sandboxes.stop_wait(BOX)
    assert execs.get("stopped").state == CANCELLED
    execs.sandboxes.resume_wait(BOX)
    assert execs.run("true", container="db").state == FINISHED


def test_root_of_the_service_can_end_its_commands_and_nothing_more(execs):
    """It reads, kills and stops what runs them."""
    execs.create("sleep", "4321", container="db", exec_id="victim")
    execs.create("sleep", "4321", exec_id="primary")
    # From outside, as the service's own programs would.
    attack = """
    for guest in $(pidof .agbox-guest); do
      cat /proc/$guest/environ && exit 1
      dd if=/proc/$guest/mem count=1 && exit 1
      for fd in /proc/$guest/fd/*; do
        readlink $fd && exit 1
        sh -c "echo forged >> $fd" && exit 1
      done
    done 2>/dev/null
    kill -9 $(pidof .agbox-guest)
    """
    wait_until(lambda: "sleep 4321" in execs.engine.docker("top", DB).stdout, "it runs")
    assert execs.engine.docker("exec", "-u", "root", DB, "sh", "-c", attack).returncode == 0
    victim = execs.wait("victim")
    assert (victim.state, victim.error_code) == (FAILED, "CONTAINER_EXITED")
    assert execs.get("primary").state == RUNNING
    assert output(in_db(execs, "echo again")) == "again\n"
    # Stopped, it would never end what is cancelled.
    execs.create("sleep", "4321", container="db", exec_id="stopped")
    wait_until(lambda: "sleep 4321" in execs.engine.docker("top", DB).stdout, "it runs")
    freeze = "kill -STOP $(pidof .agbox-guest)"
    assert execs.engine.docker("exec", "-u", "root", DB, "sh", "-c", freeze).returncode == 0
    execs.cancel("stopped")
    stopped = execs.wait("stopped")
    assert (stopped.state, stopped.error_code) == (FAILED, "CONTAINER_EXITED")
    assert output(in_db(execs, "echo again")) == "again\n"


def test_the_command_line_names_the_container(execs):
    daemon = execs.daemon
    ran = daemon.agbox("exec", "run", BOX, "--container", "db", "--", "sh", "-c", "hostname; exit 3")
    assert (ran.returncode, ran.stdout) == (3, inspect(execs.engine, DB)["Config"]["Hostname"] + "\n")
    tty = daemon.agbox("exec", "run", BOX, "--container", "db", "-t", "--", "sh", "-c", "test -t 1 && echo terminal")
    assert (tty.returncode, tty.stdout) == (0, "terminal\n")
    of_primary = daemon.agbox("exec", "run", BOX, "--container", "primary", "--", "hostname")
    assert of_primary.stdout == inspect(execs.engine, primary(BOX))["Config"]["Hostname"] + "\n"
    unknown = daemon.agbox("exec", "run", BOX, "--container", "cache", "--", "true")
    assert unknown.returncode != 0
    assert 'has no container "cache"; its containers are: primary, db' in unknown.stderr
    with pytest.raises(grpc.RpcError) as refused:
        execs.create("true", container="cache")
    assert refused.value.code() == grpc.StatusCode.NOT_FOUND
