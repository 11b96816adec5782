# SPDX-License-Identifier: Apache-2.0
"""A user for one test run: in the docker group, with its own directories, and with a copy of our programs
whose daemon has CAP_NET_ADMIN. Tests as root would not cover what ordinary users rely on."""

import os
import pwd
import secrets
import shutil
import subprocess
from pathlib import Path

from support.engine import docker_group
from support.engine_root import cache_directory, locked
from support.process import all_processes, base_environment, kill_and_wait, run
from support.run_directory import PREFIX, RunDirectory

# No process of a container has one of these by chance: images number their users as distributions do,
# and the ranges of user namespaces and directory services end below.
_IDS = range(2_010_000_000, 2_140_000_000)


class TestUser:
    """Created by the constructor; remove() removes the user, its processes and its directory."""

    __test__ = False  # not a test class, despite its name

    def __init__(self, run_directory: RunDirectory):
        self.name = f"agbx{run_directory.id}"
        self.directory = run_directory.new_directory("u")
        self.home = self.directory / "home"
        self.runtime_directory = self.directory / "run"
        self.uid = self.gid = _unused_id()
        try:
            edit_accounts(
                *("useradd", "--system", "--uid", str(self.uid)),
                *("--key", f"SYS_GID_MIN={self.gid}", "--key", f"SYS_GID_MAX={self.gid}"),
                "--no-log-init",  # the log has a record for every number below
                *("--no-create-home", "--home-dir", self.home, "--shell", "/usr/sbin/nologin"),
                *("--groups", str(docker_group()), self.name),
            )
            for directory in (self.home, self.runtime_directory):
                self.own(directory)
        except BaseException:
            self.remove()
            raise

    def own(self, directory: Path) -> Path:
        """Creates the directory if missing and makes it private to the user."""
        directory.mkdir(exist_ok=True)
        os.chown(directory, self.uid, self.gid)
        directory.chmod(0o700)
        return directory

    def share(self, directory: Path) -> None:
        """Lets the user, and no other than root, read and run what is in the directory."""
        run("chmod", "-R", "go=rX", directory)
        os.chown(directory, 0, self.gid)
        directory.chmod(0o750)

    @property
    def environment(self) -> dict[str, str]:
        return {
            **base_environment(),
            "HOME": str(self.home),
            "USER": self.name,
            "XDG_RUNTIME_DIR": str(self.runtime_directory),
        }

    def command(self, argv: list[str], ambient_capability: str | None = None) -> list[str]:
        """The command line that execs argv as the user."""
        become = ["setpriv", f"--reuid={self.uid}", f"--regid={self.gid}", "--init-groups"]
        capabilities = ["--inh-caps=-all"]
        if ambient_capability:
            own = f"-all,+{ambient_capability}"
            capabilities = [f"--inh-caps={own}", f"--ambient-caps={own}"]
        return [*become, *capabilities, "--", *argv]

    def run(self, *argv: str | os.PathLike, **options) -> subprocess.CompletedProcess:
        options.setdefault("env", self.environment)
        options.setdefault("cwd", self.home)
        return run(*self.command([os.fspath(part) for part in argv]), **options)

    def install(self, bin_dir: Path) -> Path:
        """A copy of our programs that the user may run, the daemon with its file capability.
        Returns the copy's bin directory."""
        if os.statvfs(self.directory).f_flag & os.ST_NOSUID:
            raise RuntimeError(
                f"{self.directory} is mounted nosuid, so file capabilities do not count there; set "
                "AGBOX_TEST_TMP to a short path on another filesystem"
            )
        prefix = self.directory / "programs"
        if not prefix.exists():
            prefix.mkdir(mode=0o700)
            shutil.copytree(bin_dir, prefix / "bin")
            if (bin_dir.parent / "libexec").is_dir():
                shutil.copytree(bin_dir.parent / "libexec", prefix / "libexec")
            self.share(prefix)
            run("setcap", "cap_net_admin+ep", prefix / "bin" / "agboxd")
        return prefix / "bin"

    def remove(self) -> None:
        remove_account(self.name, self.directory.parent)
        shutil.rmtree(self.directory)


def _unused_id() -> int:
    while True:
        number = secrets.choice(_IDS)
        if not any(_is_of(pid, number) for pid in all_processes()):
            return number


def remove_account(name: str, run_directory: Path) -> None:
    """Ends what the user runs for this test run and removes the user; does nothing if there is no such
    user. If another process has the user's number, userdel fails and names it."""
    try:
        uid = pwd.getpwnam(name).pw_uid
    except KeyError:
        return
    mark = run_directory.name.removeprefix(PREFIX)
    kill_and_wait(
        process.pid
        for process in all_processes().values()
        if _is_of(process.pid, uid)
        and (process.has_mark(mark) or process.works_in(run_directory))
    )
    edit_accounts("userdel", name)


def _is_of(pid: int, uid: int) -> bool:
    try:
        return os.stat(f"/proc/{pid}").st_uid == uid
    except FileNotFoundError:
        return False


def edit_accounts(*argv: str | os.PathLike) -> None:
    """useradd and userdel give up at once where another holds the lock of /etc/passwd, so the runs
    of this kit take turns."""
    with locked(cache_directory() / "accounts.lock"):
        run(*argv)
