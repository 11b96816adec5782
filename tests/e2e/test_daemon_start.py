# SPDX-License-Identifier: Apache-2.0
"""How agboxd starts, and how it refuses to: each time one clear sentence, the right exit code, and
nothing destroyed."""

import json
import os
import signal
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from support.daemon import PrivateDaemon
from support.process import open_files, run

USAGE_ERROR = 2
FAILURE = 1


def ended(daemon: PrivateDaemon, *arguments: str) -> tuple[int, str]:
    """Starts a daemon that is meant to refuse; its exit code and everything that it wrote."""
    daemon.launch(*arguments)
    code = daemon.wait(timeout=10)
    return code, "\n".join(daemon.log_lines())


def error_of(daemon: PrivateDaemon) -> str:
    """The sentence of the one error in the log of a daemon that had a log already."""
    (error,) = [entry["error"] for entry in daemon.log() if entry["level"] == "ERROR"]
    return error


def ping(daemon: PrivateDaemon, contract):
    with daemon.channel() as channel:
        return contract.stub(channel).Ping(contract.service.PingRequest(), timeout=10)


# --- a good start --------------------------------------------------------------------------------


def test_it_says_who_it_is(daemon, contract):
    answer = ping(daemon, contract)
    assert answer.daemon == "agboxd"
    assert answer.version
    assert len(answer.instance_id) == 36
    assert "health" in answer.features


def test_its_log_is_json_lines_with_fixed_fields(daemon):
    daemon.stop()
    for entry in daemon.log():
        assert list(entry)[:5] == ["time", "level", "msg", "daemon", "version"]
        assert entry["daemon"] == "agboxd"
    entries = [entry for entry in daemon.log() if entry["msg"] in ("starting", "listening", "shutting down")]
    assert [entry["msg"] for entry in entries] == ["starting", "listening", "shutting down"]
    assert {entry["level"] for entry in entries} == {"INFO"}
    assert entries[0]["socket_path"] == str(daemon.socket)
    assert entries[0]["id_store_path"] == str(daemon.store)
    assert entries[0]["idle_ttl"] == 30 * 60 * 10**9
    assert entries[0]["cleanup_ttl"] == 360 * 3600 * 10**9
    assert entries[1]["socket_path"] == str(daemon.socket)


def test_what_it_makes_is_for_its_user_alone(daemon):
    for path in [daemon.socket.parent, daemon.socket, daemon.socket.parent / "agboxd.lock"]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
        assert path.stat().st_uid == (daemon.user.uid if daemon.user else 0)
    assert (daemon.socket.parent / "agboxd.lock").read_text() == f"{daemon.pid}\n"


def test_it_listens_on_its_socket_and_nowhere_else(daemon):
    held = open_files(daemon.pid)
    sockets = {name[len("socket:[") : -1] for name in held if name.startswith("socket:[")}
    assert sockets
    for protocol in ("tcp", "tcp6", "udp", "udp6"):
        lines = Path(f"/proc/{daemon.pid}/net/{protocol}").read_text().splitlines()[1:]
        assert not sockets & {line.split()[9] for line in lines}, protocol
    listening = []
    for line in Path(f"/proc/{daemon.pid}/net/unix").read_text().splitlines()[1:]:
        _, _, _, flags, _, _, inode, *path = line.split()
        if inode in sockets and int(flags, 16) & 0x10000:  # it accepts connections
            listening.append("".join(path))
    assert listening == [str(daemon.socket)]


def test_the_configuration_is_read(make_daemon):
    daemon = make_daemon(config='[runtime]\nidle_ttl = "5m"\nlog_level = "DEBUG"\n').start()
    (starting,) = [entry for entry in daemon.log() if entry["msg"] == "starting"]
    assert starting["idle_ttl"] == 5 * 60 * 10**9
    assert any(entry["level"] == "DEBUG" for entry in daemon.log())


def test_wider_permissions_of_the_runtime_directory_are_restricted(make_daemon):
    daemon = make_daemon()
    daemon.socket.parent.mkdir()
    daemon.socket.parent.chmod(0o777)
    daemon.start()
    assert stat.S_IMODE(daemon.socket.parent.stat().st_mode) == 0o700
    assert any(entry["level"] == "WARN" and "0700" in entry["msg"] for entry in daemon.log())


def test_a_stale_socket_is_replaced(daemon, contract):
    daemon.kill()
    assert daemon.socket.is_socket()
    daemon.start()
    ping(daemon, contract)


def test_the_socket_goes_and_the_lock_file_stays(daemon):
    assert daemon.stop() == 0
    assert not daemon.socket.exists()
    assert (daemon.socket.parent / "agboxd.lock").exists()


# --- arguments and capability --------------------------------------------------------------------


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_questions_are_answered_without_capability_or_environment(bin_dir, argument):
    answer = run("setpriv", "--bounding-set=-net_admin", bin_dir / "agboxd", argument, env={})
    assert answer.stdout.startswith("agboxd ")
    assert answer.stderr == ""


def test_an_answer_that_cannot_be_written_is_a_failure(bin_dir):
    with open("/dev/full", "w") as full:
        answer = run(bin_dir / "agboxd", "--help", stdout=full, check=False)
    assert answer.returncode == FAILURE


def test_any_other_argument_is_refused(make_daemon):
    code, text = ended(make_daemon(), "--socket", "/tmp/x.sock")
    assert code == USAGE_ERROR
    assert text == "agboxd does not accept CLI path overrides: [--socket /tmp/x.sock]"


@pytest.mark.parametrize("arguments", [[], ["--socket", "x"]])
def test_without_the_capability_it_refuses_before_anything_else(bin_dir, directory, arguments):
    answer = run(
        *("setpriv", "--bounding-set=-net_admin", bin_dir / "agboxd", *arguments),
        env={"XDG_RUNTIME_DIR": str(directory), "HOME": str(directory)},
        check=False,
    )
    assert answer.returncode == FAILURE
    assert answer.stderr == (
        "AgentsSandbox daemon requires CAP_NET_ADMIN for sandbox network isolation.\n"
        "Grant it with: sudo setcap cap_net_admin+ep $(which agboxd)\n"
    )
    assert list(directory.iterdir()) == []


# --- paths and configuration: exit code 2, a plain sentence, and no trace -------------------------


def test_a_missing_runtime_variable_says_what_to_set(make_daemon):
    daemon = make_daemon()
    del daemon.environment["XDG_RUNTIME_DIR"]
    code, text = ended(daemon)
    assert code == USAGE_ERROR
    assert text.startswith("resolve runtime path: XDG_RUNTIME_DIR is required on linux")
    assert "set it to" in text


@pytest.mark.parametrize(
    "config, sentence",
    [
        ('[runtime]\nidle_tll = "1m"\n', 'line 2: unknown key "runtime.idle_tll"; the nearest known one is runtime.idle_ttl'),
        ("[runtime]\nidle_ttl = 30\n", "line 2: runtime.idle_ttl must be a string, but is an integer"),
        ('[runtime]\nidle_ttl = "-1s"\n', "is negative"),
        ("[runtime\n", "line 1, column"),
        ('[artifacts]\nexec_output_template = "{exec_id}"\n', "does not begin with {sandbox_id}/"),
    ],
)
def test_a_wrong_configuration_is_named(make_daemon, config, sentence):
    daemon = make_daemon(config=config)
    code, text = ended(daemon)
    assert code == USAGE_ERROR
    assert sentence in text
    assert str(daemon.config_file) in text
    assert "\n" not in text
    assert not daemon.socket.parent.exists()


def test_a_pool_with_a_route_in_any_table_is_refused(make_daemon):
    """WireGuard, Tailscale and policy routing keep their routes out of the main table."""
    first = make_daemon().start()
    namespace = f"/proc/{first.pid}/ns/net"
    enter = ["nsenter", f"--net={namespace}"]
    run(*enter, "ip", "route", "add", "blackhole", "10.201.7.0/24", "table", "51820")
    sentence = "network.address_pool 10.201.0.0/16 overlaps this host's route to 10.201.7.0/24"

    findings = json.loads(first.agbox("doctor", "--json").stdout)["findings"]
    (pool,) = [finding for finding in findings if finding["check"] == "address-pool"]
    assert sentence in pool["sentence"]
    second = make_daemon(network_namespace=namespace)
    code, _ = ended(second)
    assert code == FAILURE
    assert sentence in error_of(second)


def test_an_armed_failpoint_is_an_error_in_the_log(make_daemon):
    daemon = make_daemon(environment={"AGBOX_FAILPOINTS": "nobody.passes=error"}).start()
    (error,) = [entry for entry in daemon.log() if entry["level"] == "ERROR"]
    assert "AGBOX_FAILPOINTS" in error["msg"]
    assert error["failpoint"] == "nobody.passes"


def test_failpoints_are_ignored_under_a_file_capability(make_daemon, test_user):
    def ended(daemon):
        """With a user, of the program with the capability."""
        environment = {**daemon.environment, "AGBOX_FAILPOINTS": "no failpoints"}
        return run(*daemon.command("--help"), env=environment, timeout=20, check=False)

    assert ended(make_daemon()).returncode == -signal.SIGABRT
    ignored = ended(make_daemon(user=test_user))
    assert (ignored.returncode, ignored.stderr) == (0, "")


def test_the_program_that_users_run_has_no_failpoint_that_weakens_the_firewall(bin_dir):
    content = (bin_dir / "agboxd").read_bytes()
    assert b"isolation.before_repair" in content, "names of failpoints can be found"
    for name in (b"isolation.damage", b"isolation.blind", b"isolation.watch"):
        assert name not in content


def test_a_configuration_that_the_user_may_not_read(make_daemon, test_user):
    daemon = make_daemon(user=test_user, config="")
    os.chown(daemon.config_file, 0, 0)
    daemon.config_file.chmod(0o600)
    code, text = ended(daemon)
    assert code == USAGE_ERROR
    assert text == f"read daemon config file {daemon.config_file}: Permission denied"


# --- lock and socket: exit code 1, the sentence in the log ----------------------------------------


def test_of_twenty_daemons_one_serves(make_daemon, contract):
    first, *others = [make_daemon() for _ in range(20)]
    for other in others:
        other.environment = first.environment
    everyone = [first, *others]
    for daemon in everyone:
        daemon.launch()
    refused = []
    winner = None
    for daemon in everyone:
        # Each either listens or ends; whichever comes first is a line of its log.
        line = daemon.process.wait_for_line(
            lambda text: json.loads(text)["msg"] in ("listening", "failed to acquire lock"), "a decision", 30
        )
        if json.loads(line)["msg"] == "listening":
            assert winner is None
            winner = daemon
        else:
            refused.append(daemon)
    assert len(refused) == 19
    lock = first.socket.parent / "agboxd.lock"
    for daemon in refused:
        assert daemon.wait(timeout=10) == FAILURE
        assert error_of(daemon) == (
            f"agboxd host lock {lock} is already held; refuse to start a second daemon on this machine"
        )
    assert lock.read_text() == f"{winner.pid}\n"
    ping(first, contract)
    assert winner.stop() == 0


def test_on_a_terminal_the_sentence_stands_alone_as_well(make_daemon):
    daemon = make_daemon().start()
    person, terminal = os.openpty()
    with open(person, "rb", buffering=0) as screen:
        with open(terminal, "wb", buffering=0) as stderr:
            second = subprocess.run([daemon.bin_dir / "agboxd"], env=daemon.environment, stderr=stderr, timeout=10)
        shown = b""
        with pytest.raises(OSError, match="Input/output error"):  # the end of a terminal
            while True:
                shown += screen.read(4096)
    assert second.returncode == FAILURE
    assert b"\r\nagboxd: agboxd host lock " in shown


@pytest.mark.parametrize("name", ["agboxd.lock", "agboxd.sock"])
def test_a_symbolic_link_is_not_followed(make_daemon, directory, name):
    daemon = make_daemon()
    target = directory / "target"
    target.write_text("precious")
    daemon.socket.parent.mkdir(mode=0o700)
    link = daemon.socket.parent / name
    link.symlink_to(target)
    code, _ = ended(daemon)
    assert code == FAILURE
    assert str(link) in error_of(daemon)
    assert target.read_text() == "precious"
    assert link.is_symlink()


def test_a_link_in_place_of_the_runtime_directory_is_not_followed(make_daemon, directory):
    daemon = make_daemon()
    daemon.socket.parent.symlink_to(directory)
    code, _ = ended(daemon)
    assert code == FAILURE
    assert "symbolic link" in error_of(daemon)
    assert list(directory.iterdir()) == []


def test_a_runtime_directory_of_another_user_is_refused(make_daemon, test_user):
    daemon = make_daemon()
    daemon.socket.parent.mkdir(mode=0o700)
    os.chown(daemon.socket.parent, test_user.uid, test_user.gid)
    code, _ = ended(daemon)
    assert code == FAILURE
    assert f"belongs to user {test_user.uid}" in error_of(daemon)


def test_a_directory_in_place_of_the_socket_is_left_alone(make_daemon):
    daemon = make_daemon()
    (daemon.socket / "inside").mkdir(parents=True)
    code, _ = ended(daemon)
    assert code == FAILURE
    assert error_of(daemon).startswith(f"listen on {daemon.socket}: something that is not a socket is there")
    assert (daemon.socket / "inside").is_dir()


def test_a_socket_path_of_108_bytes_is_refused_with_the_remedy(make_daemon):
    def daemon_with_socket_path_of(length: int) -> PrivateDaemon:
        daemon = make_daemon()
        runtime = str(daemon.runtime_directory) + "/"
        runtime += "x" * (length - len(runtime) - len("/agbox/agboxd.sock"))
        daemon.environment["XDG_RUNTIME_DIR"] = runtime
        daemon.socket = Path(runtime) / "agbox" / "agboxd.sock"
        assert len(str(daemon.socket)) == length
        return daemon

    code, _ = ended(daemon := daemon_with_socket_path_of(108))
    assert code == FAILURE
    assert "has 108 bytes, but a Unix socket's path is limited to 107" in error_of(daemon)
    assert "XDG_RUNTIME_DIR" in error_of(daemon)

    longest = daemon_with_socket_path_of(107).start()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(longest.socket))
    assert longest.stop() == 0
