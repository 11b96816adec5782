# SPDX-License-Identifier: Apache-2.0
"""The package on a fresh Debian 12: installed by its administrator, used by one of its users, removed and purged; and
upgraded and downgraded while commands run."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.engine_root import debian_mirror
from support.images import make_image
from support.packaged_host import PackagedHost
from support.process import run
from support.release import next_package
from support.run_directory import RunDirectory
from support.sandboxes import inspect, left_over, primary

pytestmark = pytest.mark.xdist_group("packages")

CAPABILITY = "/usr/bin/agboxd cap_net_admin=ep\n"


@pytest.fixture(scope="module")
def fresh(run_directory: RunDirectory, leak_check, say) -> Iterator[PackagedHost]:
    with PackagedHost(run_directory, say) as host, leak_check.watching(host.engine):
        yield host


@pytest.fixture
def host(fresh: PackagedHost) -> Iterator[PackagedHost]:
    """Without the package, before and after."""
    fresh.write_config()
    yield fresh
    if fresh.path("/usr/bin/agbox").exists():
        fresh.agbox("daemon", "stop")
    fresh.run("dpkg", "--purge", "agents-sandbox")
    fresh.run("rm", "-rf", "/home/ada/.local", "/home/ada/.config")


def mode_of(host: PackagedHost) -> str:
    return host.run("stat", "--format=%U:%G %a", "/usr/bin/agboxd").stdout.strip()


def test_install_use_remove_and_purge(host, release, say):
    image = make_image(host.engine.api, "packaged:1")
    before = host.changes()

    said = host.install(release.package)
    assert "no group docker" not in said
    assert mode_of(host) == "root:docker 750"
    assert host.run("getcap", "/usr/bin/agboxd").stdout == CAPABILITY

    # The first command of a user starts the daemon.
    done = host.agbox("run", image, "--", "sh", "-c", "echo hello from $(whoami); exit 7", check=False)
    assert (done.returncode, done.stdout) == (7, "hello from agbox\n"), done.stderr
    version = host.agbox("version").stdout
    assert version == f"agbox: {release.version}\nagboxd: {release.version}\n"
    findings = [line.split() for line in host.agbox("doctor").stdout.splitlines() if not line.startswith(" ")]
    verdicts = {words[1]: words[0] for words in findings}
    assert verdicts["capability"] == verdicts["engine"] == verdicts["firewall"] == "ok"
    assert "broken" not in verdicts.values()

    # Removed while its daemon runs: it is named, and goes on.
    process = host.daemon_process()
    said = host.apt_get("remove", "agents-sandbox")
    assert f"agboxd of ada (process {process}) and its sandboxes go on. To end it: sudo kill {process}" in said
    assert host.path(f"/proc/{process}").exists()
    assert not host.path("/usr/bin/agbox").exists()
    said = host.apt_get("purge", "agents-sandbox")
    assert ".local/share/agents-sandbox" in said, "the purge says what it keeps"
    host.run("sh", "-c", f"kill {process}; tail --pid={process} -f /dev/null", timeout=30)

    left = host.changes() - before
    of_user = {name for name in left if name.startswith("home/ada/.local/share/agents-sandbox/")}
    assert left - of_user == set()
    assert before - host.changes() == set()
    assert left_over(host.engine) == []


def test_an_engine_that_comes_after_the_package(host, release):
    """Without the group docker only root may run agboxd; when an engine brings it, that changes by itself."""
    gid = host.run("getent", "group", "docker").stdout.split(":")[2]
    host.run("groupdel", "docker")
    said = host.install(release.package)
    assert said.count("there is no group docker, so only root can run /usr/bin/agboxd") == 1
    assert mode_of(host) == "root:root 750"
    assert host.run("getcap", "/usr/bin/agboxd").stdout == ""

    # As docker.io does: its program is unpacked, and then the group is made.
    host.run("dpkg-trigger", "--by-package=docker.io", "--no-await", "/usr/sbin/dockerd")
    host.run("groupadd", "--gid", gid, "docker")
    host.run("gpasswd", "--add", "ada", "docker")
    host.run("dpkg", "--triggers-only", "--pending")
    assert mode_of(host) == "root:docker 750"
    assert host.run("getcap", "/usr/bin/agboxd").stdout == CAPABILITY


def test_an_override_of_the_administrator_is_kept(host, release):
    host.run("dpkg-statoverride", "--add", "root", "adm", "0750", "/usr/bin/agboxd")
    try:
        host.install(release.package)
        host.apt_get("install", "--reinstall", host.bring(release.package))
        assert mode_of(host) == "root:adm 750"
        assert host.run("getcap", "/usr/bin/agboxd").stdout == CAPABILITY
    finally:
        host.run("dpkg-statoverride", "--remove", "/usr/bin/agboxd")


# --- upgrade ---

STEADY = r"""
i=0
until [ -e /tmp/enough ]; do i=$((i + 1)); echo "$0 line $i"; usleep 20000; done
echo "$0 ended after $i"
exit "$1"
"""


def guest_of(host: PackagedHost, sandbox: str) -> str:
    """The directory of the guest program that its container has."""
    mounts = inspect(host.engine, primary(sandbox))["Mounts"]
    (source,) = [mount["Source"] for mount in mounts if mount["Source"].endswith("/agbox-guest")]
    return Path(source).parent.name


def restart_daemon(host: PackagedHost) -> None:
    host.agbox("daemon", "stop")
    host.agbox("daemon", "start")


@pytest.mark.parametrize("count", [4, pytest.param(20, marks=pytest.mark.long)])
def test_an_upgrade_under_load_loses_nothing(host, release, directory, count):
    """Commands write while the package is replaced and the daemon restarted, and one of them is begun in between: every
    line and every exit code arrives at the clients that wait for them."""
    image = make_image(host.engine.api, "packaged:1")
    host.install(release.package)
    host.agbox("daemon", "start")
    names = [f"box-{number}" for number in range(count)]
    for name in names:
        host.agbox("sandbox", "create", "--quiet", "--image", image, "--sandbox-id", name)
    clients = {}
    for number, name in enumerate(names):
        clients[name] = host.begin("exec", name, "sh", "-c", STEADY, name, str(10 + number))
    for name, client in clients.items():
        client.wait_for_line(lambda line, name=name: line == f"{name} line 3", "output", timeout=60)
    old_guest = guest_of(host, names[0])

    said = host.install(next_package(release, "0.999.0", directory))
    assert f"agboxd of ada (process {host.daemon_process()}) goes on as it is." in said
    assert host.run("getcap", "/usr/bin/agboxd").stdout == CAPABILITY
    assert mode_of(host) == "root:docker 750"
    # The old daemon still does everything.
    assert host.agbox("exec", names[0], "echo", "before the restart").stdout == "before the restart\n"
    restart_daemon(host)
    shown = {name: len(client.lines()) for name, client in clients.items()}
    assert host.agbox("exec", names[-1], "echo", "after the restart").stdout == "after the restart\n"
    for name, client in clients.items():
        client.wait_for_line(lambda line: "line" in line, "output after the restart", timeout=60, after=shown[name])

    # New sandboxes have the new guest; those of before keep theirs, also when they are resumed.
    host.agbox("sandbox", "create", "--quiet", "--image", image, "--sandbox-id", "new-box")
    assert guest_of(host, "new-box") != old_guest
    for name in names:
        host.agbox("exec", name, "touch", "/tmp/enough")
    for number, name in enumerate(names):
        assert clients[name].wait(60) == 10 + number
        lines = clients[name].lines()
        total = len(lines) - 1
        assert lines == [f"{name} line {i}" for i in range(1, total + 1)] + [f"{name} ended after {total}"]
    host.agbox("stop", names[0])
    host.agbox("start", names[0])
    assert guest_of(host, names[0]) == old_guest
    assert host.agbox("exec", names[0], "echo", "resumed").stdout == "resumed\n"

    # And back: the schema of the store is the same.
    host.install(release.package, "--allow-downgrades")
    restart_daemon(host)
    assert host.agbox("version").stdout.endswith(f"agboxd: {release.version}\n")
    assert host.agbox("exec", "new-box", "echo", "downgraded").stdout == "downgraded\n"
    host.agbox("rm", *names, "new-box")
    assert left_over(host.engine) == []


def test_the_maintainer_scripts_can_run_again(host, release):
    """dpkg runs them again after a failure."""
    host.install(release.package)
    for _ in range(2):
        host.run("/var/lib/dpkg/info/agents-sandbox.postinst", "configure", release.version)
        assert host.run("getcap", "/usr/bin/agboxd").stdout == CAPABILITY


@pytest.mark.long
def test_apt_brings_what_the_package_needs(release):
    """On a Debian that has nothing, with the engine in the same command: apt may configure it later, and it makes the
    group."""
    inside = f"/{release.package.name}"
    commands = (
        f"apt-get --quiet --yes --no-install-recommends install {inside} docker.io",
        "agbox version",
        "stat --format='%U:%G %a' /usr/bin/agboxd",
        "getcap /usr/bin/agboxd",
    )
    argv = ["mmdebstrap", "--variant=minbase", "--format=null", f"--customize-hook=upload {release.package} {inside}",
            *(f'--customize-hook=chroot "$1" {command}' for command in commands), "bookworm", "/dev/null", debian_mirror()]
    done = run(*argv, timeout=1200, env=dict(os.environ), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert f"agbox: {release.version}\n" in done.stdout
    assert "root:docker 750\n" in done.stdout and CAPABILITY in done.stdout, done.stdout[-4000:]
    assert "there is no group docker" not in done.stdout
