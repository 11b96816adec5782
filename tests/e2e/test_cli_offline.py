# SPDX-License-Identifier: Apache-2.0
"""agbox without a reachable daemon: help, versions, errors about a missing daemon, and closed output."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
START_IT = 'start it with "agbox daemon start"'
NOBODY = 65534


@pytest.fixture(scope="module")
def agbox() -> pathlib.Path:
    directory = pathlib.Path(os.environ.get("AGBOX_BIN_DIR") or REPOSITORY / "build/release/bin")
    program = directory / "agbox"
    assert program.exists(), (
        f"there is no agbox in {directory}; build it with `cmake --preset release && cmake --build "
        "--preset release`, or set AGBOX_BIN_DIR")
    return program.resolve()


@pytest.fixture
def runtime() -> Iterator[pathlib.Path]:
    """An empty XDG_RUNTIME_DIR with a short name: a socket's path has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="agbox-cli-", dir="/tmp") as directory:
        yield pathlib.Path(directory)


def run(program: pathlib.Path, *arguments: str, runtime: pathlib.Path | None = None,
        **options) -> subprocess.CompletedProcess:
    environment = {"PATH": os.environ["PATH"]}
    if runtime is not None:
        environment["XDG_RUNTIME_DIR"] = str(runtime)
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run([program, *arguments], env=environment, text=True, check=False,
                          timeout=30, stdin=subprocess.DEVNULL, **options)


def leave_stale_socket(path: pathlib.Path) -> None:
    path.parent.mkdir(exist_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()


def test_alone_it_says_who_it_is(agbox):
    result = run(agbox)
    name, version = result.stdout.splitlines()[0].split()
    assert name == "agbox"
    assert version.count(".") == 2
    assert result.stdout.splitlines()[1:] == ['Run "agbox --help" for usage information.']
    assert (result.returncode, result.stderr) == (0, "")


def test_help_names_every_command_and_each_command_helps(agbox):
    result = run(agbox, "--help")
    assert (result.returncode, result.stderr) == (0, "")
    for command in ("completion", "doctor", "ping", "version"):
        assert f"\n  {command} " in result.stdout
        own = run(agbox, command, "--help")
        assert (own.returncode, own.stderr) == (0, "")
        assert f"agbox {command}" in own.stdout


def test_usage_errors_are_exit_2_with_the_usage(agbox):
    result = run(agbox, "ping", "--frequency")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: unknown flag: --frequency\n\nUsage:\n  agbox ping")


def test_an_unknown_command_is_exit_2_without_usage(agbox):
    result = run(agbox, "pign")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == 'Error: unknown command "pign" for "agbox"\n\nDid you mean this?\n  agbox ping\n'


def test_version_without_a_daemon(agbox, runtime):
    result = run(agbox, "version", runtime=runtime)
    own = run(agbox, "--version").stdout.split()[1]
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"agbox: {own}\nagboxd: unavailable\n"
    as_json = run(agbox, "version", "--json", runtime=runtime)
    assert json.loads(as_json.stdout) == {"agbox": own, "agboxd": None}


def test_version_without_a_runtime_directory(agbox):
    result = run(agbox, "version")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.endswith("agboxd: unavailable\n")


def test_ping_without_a_daemon_says_how_to_start_it(agbox, runtime):
    result = run(agbox, "ping", runtime=runtime)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (f"ping: agboxd is not running: socket {runtime}/agbox/agboxd.sock does not "
                             f"exist; {START_IT}\n")


def test_ping_on_a_stale_socket(agbox, runtime):
    leave_stale_socket(runtime / "agbox" / "agboxd.sock")
    result = run(agbox, "ping", "--json", runtime=runtime)
    message = f"ping: agboxd is not running: no process listens on {runtime}/agbox/agboxd.sock; {START_IT}"
    assert (result.returncode, result.stderr) == (1, message + "\n")
    assert json.loads(result.stdout)["error"] == {"message": message, "code": "UNAVAILABLE", "reason": "",
                                                  "metadata": {}}


def test_ping_of_another_users_daemon(agbox, runtime):
    leave_stale_socket(runtime / "agbox" / "agboxd.sock")
    (runtime / "agbox").chmod(0o700)
    # A copy, because the build's parent directories may not be accessible to other users.
    shutil.copy(agbox, runtime / "agbox-copy")
    runtime.chmod(0o755)
    result = run(runtime / "agbox-copy", "ping", runtime=runtime,
                 user=NOBODY, group=NOBODY, extra_groups=[])
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"ping: cannot connect to agboxd at {runtime}/agbox/agboxd.sock: "
                                    "Permission denied; ")


def test_ping_of_what_is_not_a_socket(agbox, runtime):
    (runtime / "agbox").mkdir()
    (runtime / "agbox" / "agboxd.sock").write_text("")
    result = run(agbox, "ping", runtime=runtime)
    assert result.returncode == 1
    assert f"{runtime}/agbox/agboxd.sock is not a socket" in result.stderr


def test_ping_with_a_socket_path_that_is_too_long(agbox, runtime):
    result = run(agbox, "ping", runtime=runtime / ("x" * 90))
    assert result.returncode == 1
    assert "the limit is 107; set XDG_RUNTIME_DIR to a shorter path" in result.stderr


def test_ping_without_a_runtime_directory_names_the_variable(agbox):
    result = run(agbox, "ping")
    assert result.returncode == 1
    assert "XDG_RUNTIME_DIR is required" in result.stderr
    assert result.stderr.count("\n") == 1


def test_ping_of_a_peer_that_is_no_daemon(agbox, runtime):
    """Connections are taken and closed at once, as the daemon does with other users' ones."""
    path = runtime / "agbox" / "agboxd.sock"
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        process = subprocess.Popen([agbox, "ping"], env={"XDG_RUNTIME_DIR": str(runtime)},
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        listener.settimeout(0.05)
        while process.poll() is None:
            try:
                listener.accept()[0].close()
            except TimeoutError:
                pass
        output, errors = process.communicate(timeout=30)
    assert (process.returncode, output) == (1, "")
    assert errors.startswith(f"ping: lost the connection to agboxd at {path} (")
    assert errors.count("\n") == 1


def test_a_silent_peer_is_given_up_after_the_timeout(agbox, runtime):
    path = runtime / "agbox" / "agboxd.sock"
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        result = run(agbox, "ping", runtime=runtime)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == f"ping: agboxd at {path} did not respond within 5000 ms\n"


@pytest.mark.parametrize("arguments", [["--help"], ["version"], ["completion", "bash"], []])
def test_a_full_or_closed_stdout_is_an_error(agbox, runtime, arguments):
    with open("/dev/full", "w") as full:
        result = run(agbox, *arguments, runtime=runtime, stdout=full)
    assert (result.returncode, result.stderr) == (1, "write to stdout: No space left on device\n")

    reader, writer = os.pipe()
    os.close(reader)
    result = run(agbox, *arguments, runtime=runtime, stdout=writer)
    os.close(writer)
    assert (result.returncode, result.stderr) == (1, ""), "its reader wants no more, as head does"

    closed = subprocess.run(["sh", "-c", '"$0" "$@" >&-', agbox, *arguments], check=False, timeout=30,
                            env={"XDG_RUNTIME_DIR": str(runtime)}, stderr=subprocess.PIPE, text=True)
    assert (closed.returncode, closed.stderr) == (1, "write to stdout: Bad file descriptor\n")


def test_a_closed_stderr_keeps_the_exit_code(agbox, runtime):
    closed = subprocess.run(["sh", "-c", '"$0" ping 2>&-', agbox], check=False, timeout=30,
                            env={"XDG_RUNTIME_DIR": str(runtime)}, stdout=subprocess.PIPE)
    assert (closed.returncode, closed.stdout) == (1, b"")


def test_output_has_no_colour(agbox, runtime):
    """Not even on a terminal, as long as nothing needs it."""
    for arguments in (["--help"], ["version"], ["ping"], ["nope"]):
        leader, follower = os.openpty()
        run(agbox, *arguments, runtime=runtime, stdout=follower, stderr=follower)
        text = os.read(leader, 65536)
        os.close(leader)
        os.close(follower)
        assert text and b"\x1b" not in text
