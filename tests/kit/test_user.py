# SPDX-License-Identifier: Apache-2.0
"""The test user is an ordinary one: not root, in the docker group, with its own directories and programs."""

import grp
import os
import pwd
import shutil
import stat
import subprocess

import pytest

from support.process import SYSTEM_PATH, run
from support.run_directory import RunDirectory
from support.user import TestUser


def test_it_is_no_root_and_in_the_docker_group(test_user):
    assert test_user.run("id", "-u").stdout.strip() == str(test_user.uid) != "0"
    assert set(test_user.run("id", "-Gn").stdout.split()) == {test_user.name, "docker"}
    capabilities = test_user.run("grep", "CapEff", "/proc/self/status").stdout
    assert int(capabilities.split()[1], 16) == 0


def test_its_directories_are_its_own(test_user):
    for directory in (test_user.home, test_user.runtime_directory):
        status = directory.stat()
        assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (test_user.uid, 0o700)
    assert test_user.run("sh", "-c", "echo $XDG_RUNTIME_DIR").stdout.strip() == str(
        test_user.runtime_directory
    )


def test_it_cannot_see_what_is_not_its_own(test_user, directory):
    secret = directory / "secret"
    secret.write_text("of root")
    secret.chmod(0o600)
    assert test_user.run("cat", secret, check=False).returncode == 1
    assert test_user.run("ls", directory.parent, check=False).returncode == 2


def test_it_may_use_a_private_engine(test_user, engine):
    answer = test_user.run(
        "curl", "--silent", "--unix-socket", engine.socket, "http://docker/_ping"
    )
    assert answer.stdout == "OK"


def test_its_copy_of_the_daemon_has_the_capability(run_directory, directory):
    # Not agboxd: the kit sets the file capability, and any program shows it.
    shutil.copy("/usr/bin/cat", directory / "agboxd")
    user = TestUser(RunDirectoryOf(run_directory))
    try:
        program = user.install(directory) / "agboxd"
        status = user.run(program, "/proc/self/status").stdout
        effective = next(line for line in status.splitlines() if line.startswith("CapEff"))
        assert int(effective.split()[1], 16) == 1 << 12, "CAP_NET_ADMIN and nothing else"
    finally:
        user.remove()


def test_no_other_user_may_run_its_programs(run_directory, directory):
    shutil.copy("/usr/bin/cat", directory / "agboxd")
    user = TestUser(RunDirectoryOf(run_directory))
    try:
        program = user.install(directory) / "agboxd"
        nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        # By a shell: setpriv itself still has root's capabilities when it looks for the program.
        shell = ("sh", "-c", 'exec "$0" /dev/null', program)
        refused = run(*nobody, *shell, check=False, cwd="/")
        assert refused.returncode == 126 and "Permission denied" in refused.stderr
    finally:
        user.remove()


def test_its_number_is_no_containers(test_user):
    assert test_user.uid == test_user.gid > 2_000_000_000
    entry = pwd.getpwnam(test_user.name)
    assert (entry.pw_uid, entry.pw_gid) == (test_user.uid, test_user.gid)


def test_a_process_of_another_run_with_its_number_is_not_killed(run_directory):
    user = TestUser(RunDirectoryOf(run_directory))
    become = ["setpriv", f"--reuid={user.uid}", "--clear-groups", "--"]
    shell = ["sh", "-c", "echo here; read never"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([*become, *shell], env={"PATH": SYSTEM_PATH}, cwd="/", **pipes) as other:
        assert other.stdout.readline() == b"here\n"
        with pytest.raises(RuntimeError, match=f"used by process {other.pid}"):
            user.remove()
        assert other.poll() is None
        other.stdin.close()
    user.remove()


def test_removed_it_is_gone_with_its_processes(run_directory, leak_check):
    before = leak_check.snapshot()
    user = TestUser(RunDirectoryOf(run_directory))
    user.run("sh", "-c", "setsid sleep 600 >/dev/null 2>&1 &")
    user.remove()
    with pytest.raises(KeyError):
        pwd.getpwnam(user.name)
    with pytest.raises(KeyError):
        grp.getgrnam(user.name)
    assert not user.directory.exists()
    assert leak_check.leaks_since(before) == []


class RunDirectoryOf:
    """A second user of the same run needs another name."""

    def __init__(self, run_directory: RunDirectory):
        self.id = f"{run_directory.id}x{os.urandom(2).hex()}"
        self.new_directory = run_directory.new_directory
