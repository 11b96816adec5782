# SPDX-License-Identifier: Apache-2.0
"""packaging/install.sh: installs the tarball for one user, asks first, refuses what was tampered with, and removes exactly
what it installed."""

import os
import pty
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.process import LoggedProcess, base_environment, run
from support.release import Release, next_tarball, rewrite_tarball, write_checksums
from support.user import TestUser

pytestmark = pytest.mark.xdist_group("packages")

NEXT = "0.999.0"


class Home:
    """A home directory of the test user, with the release next to it."""

    def __init__(self, directory: Path, user: TestUser, release: Release):
        self.user = user
        self.path = user.own(directory / "home")
        self.runtime = user.own(directory / "run")
        self.prefix = self.path / ".local"
        self.units = self.prefix / "share/systemd/user"
        self.downloads = directory / "downloads"
        shutil.copytree(release.directory, self.downloads)
        self.downloads.chmod(0o755)
        self.tarball = self.downloads / release.tarball.name
        self.search_path = "/usr/bin:/bin"

    @property
    def environment(self) -> dict[str, str]:
        return {**base_environment(), "PATH": self.search_path, "HOME": str(self.path),
                "XDG_RUNTIME_DIR": str(self.runtime)}

    def run(self, *argv: str | Path, **options) -> subprocess.CompletedProcess:
        """As the user, with everything that it prints in stdout."""
        return self.user.run(*argv, env=self.environment, cwd=self.path, check=False, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, **options)

    def install(self, *arguments: str | Path, script: Path | None = None) -> subprocess.CompletedProcess:
        return self.run("sh", script or self.downloads / "install.sh", *arguments)

    def installed(self, *arguments: str | Path, script: Path | None = None) -> str:
        done = self.install("--yes", *arguments, script=script)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def uninstall(self, *arguments: str) -> subprocess.CompletedProcess:
        return self.install("--uninstall", *arguments, script=self.prefix / "libexec/agents-sandbox/install.sh")

    def answer(self, text: str, *arguments: str) -> tuple[int, str]:
        """Runs the installer in a terminal, in which the user types this."""
        ours, theirs = pty.openpty()
        os.write(ours, text.encode())
        try:
            done = self.run("sh", self.downloads / "install.sh", *arguments, stdin=theirs, input=None)
        finally:
            os.close(ours)
            os.close(theirs)
        return done.returncode, done.stdout

    def files(self) -> dict[str, bytes | str]:
        """All that is in the home directory."""
        return {str(path.relative_to(self.path)): path.read_bytes() if path.is_file() else stat.filemode(path.stat().st_mode)
                for path in self.path.rglob("*")}


@pytest.fixture
def home(directory: Path, test_user: TestUser, release: Release) -> Home:
    return Home(directory, test_user, release)


def refused(home: Home, words: str, *arguments: str | Path) -> None:
    """And nothing has changed."""
    before = home.files()
    done = home.install("--yes", *arguments)
    assert done.returncode == 1 and words in done.stdout, done.stdout
    assert home.files() == before


# --- one life ---


def test_install_and_uninstall(home, release):
    said = home.installed()
    assert f"agents-sandbox {release.version} will be installed in {home.prefix}" in said
    # The one step of root is shown, with --yes it is not taken.
    assert f"sudo /usr/sbin/setcap cap_net_admin+ep {home.prefix}/bin/agboxd\n" in said
    assert f'export PATH="{home.prefix}/bin:$PATH"' in said

    version = home.run(home.prefix / "bin/agbox", "version").stdout
    assert version == f"agbox: {release.version}\nagboxd: unavailable\n"
    daemon = (home.prefix / "bin/agboxd").stat()
    assert (stat.S_IMODE(daemon.st_mode), daemon.st_uid) == (0o750, home.user.uid)
    assert (home.prefix / "bin/agboxd").group() == "docker"
    unit = (home.units / "agboxd.service").read_text()
    assert f"ExecStart={home.prefix}/bin/agboxd\n" in unit and "/usr/bin/" not in unit
    assert (home.prefix / "share/bash-completion/completions/agbox").is_file()
    assert not list(home.path.glob(".*rc")) + list(home.path.glob(".profile")), "no profile is written"
    data = home.prefix / "share/agents-sandbox"
    assert stat.S_IMODE(data.stat().st_mode) == 0o700, "the daemon keeps its data there"

    # A second time there is nothing to do.
    before = home.files()
    assert home.installed() == f"agents-sandbox {release.version} is installed in {home.prefix} already; nothing was changed.\n"
    assert home.files() == before

    # What the user made, and what the user's systemctl made of the unit.
    (data / "ids.db").write_text("sandboxes")
    wants = home.path / ".config/systemd/user/default.target.wants"
    wants.mkdir(parents=True)
    (wants / "agboxd.service").symlink_to(home.units / "agboxd.service")
    for path in [data / "ids.db", *home.path.glob(".config/**")]:
        os.chown(path, home.user.uid, home.user.gid)
    done = home.uninstall("--yes")
    assert done.returncode == 0, done.stdout
    assert {name for name, content in home.files().items() if isinstance(content, bytes)} == \
        {".local/share/agents-sandbox/ids.db"}
    assert not (wants / "agboxd.service").is_symlink()


def test_nothing_is_left_of_an_installation(home):
    other = home.path / "tools"
    home.installed("--prefix", other)
    assert (other / "bin/agbox").is_file() and (home.units / "agboxd.service").is_file()
    said = home.install("--uninstall", "--yes", "--prefix", other).stdout
    assert said.endswith("Removed.\n") and home.files() == {}


def test_an_upgrade_replaces_and_a_running_daemon_goes_on(home, release, make_daemon, directory):
    home.installed()
    dropped = "share/doc/agents-sandbox/SECURITY.md"
    assert (home.prefix / dropped).is_file()
    others = directory / "next"
    others.mkdir(mode=0o755)
    tarball = next_tarball(release, NEXT, others, without=dropped)

    daemon = make_daemon(user=home.user)
    daemon.environment["XDG_RUNTIME_DIR"] = str(home.runtime)
    daemon.socket = home.runtime / "agbox/agboxd.sock"
    daemon.start()
    said = home.installed(tarball, script=others / "install.sh")
    assert f"{NEXT} will be installed in {home.prefix}, in the place of {release.version}." in said
    assert f"agboxd {release.version} is running. It goes on" in said
    assert "agbox daemon stop && agbox daemon start" in said
    assert home.run(home.prefix / "bin/agbox", "ping").returncode == 0
    assert daemon.stop() == 0

    assert not (home.prefix / dropped).exists()
    # Not that of the daemon's own installation, which is elsewhere.
    assert home.uninstall("--yes").returncode == 0
    assert home.files() == {}


def test_a_daemon_that_runs_is_not_uninstalled(home):
    home.installed()
    program = home.prefix / "bin/agboxd"
    run("setcap", "cap_net_admin+ep", program)
    argv = ["unshare", "--net", "--", *home.user.command([str(program)])]
    environment = home.environment | {"DOCKER_HOST": f"unix://{home.path}/no-engine.sock"}
    daemon = LoggedProcess("agboxd", argv, environment)
    try:
        daemon.wait_for_line(lambda line: '"msg":"listening"' in line, "listening", timeout=30)
        before = set(home.files())
        done = home.uninstall("--yes")
        assert done.returncode == 1
        assert f"agboxd is running (process {daemon.pid})" in done.stdout and "agbox daemon stop" in done.stdout
        assert set(home.files()) >= before
    finally:
        assert daemon.stop() == 0
    assert home.uninstall("--yes").returncode == 0
    assert not program.exists()


# --- it asks ---


def test_it_asks_and_does_nothing_without_an_answer(home):
    before = home.files()
    code, said = home.answer("n\n")
    assert (code, "Go on? [y/N]" in said, "nothing was changed" in said) == (1, True, True)
    code, said = home.answer("\n")
    assert code == 1 and home.files() == before
    done = home.install()  # no terminal
    assert done.returncode == 1 and "pass --yes" in done.stdout
    assert home.files() == before


@pytest.mark.parametrize("answer", ["n", "y"])
def test_root_is_asked_for_separately(home, answer):
    """With a sudo that only writes down what it is to do."""
    programs = home.user.own(home.downloads.parent / "programs")
    done_as_root = programs / "done"
    (programs / "sudo").write_text(f'#!/bin/sh\necho "$@" >> {done_as_root}\n')
    (programs / "sudo").chmod(0o755)
    home.search_path = f"{programs}:{home.search_path}"
    code, said = home.answer(f"y\n{answer}\n")
    assert code == 0, said
    assert "Installed." in said and said.index("  sudo /usr/sbin/setcap") < said.index("Run this command now? [y/N]")
    if answer == "y":
        assert done_as_root.read_text() == f"-- /usr/sbin/setcap cap_net_admin+ep {home.prefix}/bin/agboxd\n"
    else:
        assert not done_as_root.exists() and "Run it before you start agboxd." in said


# --- what is refused ---


def change_a_program(home: Home) -> None:
    def flip(member, content):
        return content[:-1] + bytes([content[-1] ^ 1]) if member.name.endswith("bin/agboxd") else content

    rewrite_tarball(home.tarball, home.downloads / "changed", flip)
    (home.downloads / "changed").replace(home.tarball)


def cut(home: Home) -> None:
    with home.tarball.open("r+b") as file:
        file.truncate(home.tarball.stat().st_size - 1)


@pytest.mark.parametrize("tamper", [change_a_program, cut], ids=lambda function: function.__name__)
def test_a_tarball_that_was_tampered_with_is_refused(home, tamper: Callable[[Home], None]):
    tamper(home)
    refused(home, "it is damaged or was changed; nothing was installed")


def test_a_tarball_without_a_checksum_is_refused(home):
    (home.downloads / "SHA256SUMS").write_text("")
    refused(home, "has no line for agents-sandbox-")
    (home.downloads / "SHA256SUMS").unlink()
    refused(home, "SHA256SUMS does not exist; download it from the same release")


def test_the_tarball_of_another_machine_is_refused(home):
    other = home.downloads / "agents-sandbox-0.1.0-linux-sparc64.tar.gz"
    home.tarball.rename(other)
    write_checksums(other)
    refused(home, "is of another machine", other)
    refused(home, "there is no agents-sandbox-VERSION-linux-")


def test_files_of_others_are_not_overwritten(home):
    own = home.user.own(home.user.own(home.prefix) / "bin") / "agbox"
    own.write_text("#!/bin/sh\n")
    refused(home, f"{own} exists and was not installed by this script")


def test_a_file_that_was_changed_is_kept(home):
    home.installed()
    unit = home.units / "agboxd.service"
    unit.write_text(unit.read_text() + "# mine\n")
    done = home.uninstall("--yes")
    assert f"Kept, because it was changed: {unit}" in done.stdout
    assert [name for name, content in home.files().items() if isinstance(content, bytes)] == [str(unit.relative_to(home.path))]


@pytest.mark.parametrize(("arguments", "words"), [
    (("--prefix", "relative"), "expected an absolute path"),
    (("--prefix", "/tmp/with blank"), "expected an absolute path"),
    (("--prefix",), "--prefix needs a directory"),
    (("--force",), "--force: unknown option"),
    (("one.tar.gz", "two.tar.gz"), "only one tarball"),
    (("none.tar.gz",), "none.tar.gz does not exist"),
    (("--uninstall",), "this script has installed nothing in"),
])
def test_wrong_arguments_are_refused(home, arguments, words):
    refused(home, words, *arguments)
