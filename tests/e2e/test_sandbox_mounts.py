# SPDX-License-Identifier: Apache-2.0
"""Files of the host in a sandbox: what is mounted, what never is, and that every start shows what was accepted."""

import os
import signal
from pathlib import Path

import pytest
from support.execs import run_in
from support.host_files import HostFiles, exchange
from support.images import Image, make_image
from support.sandboxes import (
    CONFIG,
    FAILED,
    READY,
    connected,
    crashing,
    inspect,
    invalid,
    left_over,
    primary,
    restarted,
    started,
)

pytestmark = pytest.mark.engines("28")


@pytest.fixture
def host(directory, test_user):
    return HostFiles(directory, test_user.uid)


@pytest.fixture
def image(engine):
    return make_image(engine.api, "mounts:1")


def mount(sandboxes, source, target, writable=False):
    return sandboxes.spec.MountSpec(source=str(source), target=target, writable=writable)


def test_files_are_seen_from_both_sides_and_belong_to_the_user(
    make_daemon, daemon_user, engine, contract, directory, image
):
    uid = daemon_user.uid if daemon_user else 0
    host = HostFiles(directory, uid)
    daemon = started(make_daemon(user=daemon_user, engine=engine, config=CONFIG))
    (daemon.home / "notes").mkdir()
    os.chown(daemon.home / "notes", uid, uid)
    (host.root / "way").symlink_to(host.root)
    with connected(daemon, contract) as sandboxes:
        mounts = [
            mount(sandboxes, host.root / "way" / "project", "/workspace/", writable=True),
            mount(sandboxes, host.secret / "name", "/srv/deep/name"),
            mount(sandboxes, "~/notes", "~/notes", writable=True),
        ]
        sandboxes.create_ready("files", image, mounts=mounts)
        assert run_in(sandboxes, "files", "cat name /srv/deep/name; echo from inside > new; echo x > ~/notes/y") == (
            0, "project\nsecret\n")
        (host.project / "name").write_text("changed outside\n")
        assert run_in(sandboxes, "files", "cat name") == (0, "changed outside\n")
        for made in (host.project / "new", daemon.home / "notes" / "y"):
            assert (made.stat().st_uid, made.stat().st_gid) == (uid, uid)
        assert (host.project / "new").read_text() == "from inside\n"
        code, _ = run_in(sandboxes, "files", "echo x > /srv/deep/name")
        assert code != 0 and (host.secret / "name").read_text() == "secret\n"
        # No owner of the host's files was changed.
        assert host.project.stat().st_uid == uid and host.secret.stat().st_uid == uid
        seen = [(one.source, one.target, one.writable) for one in sandboxes.get("files").mounts]
        assert seen == [
            (str(host.project), "/workspace", True),
            (str(host.secret / "name"), "/srv/deep/name", False),
            (str(daemon.home / "notes"), "/home/agbox/notes", True),
        ]
        text = daemon.agbox("sandbox", "get", "files").stdout
        assert f"\nmount={host.project} -> /workspace (writable)\n" in text
        assert f"\nmount={host.secret}/name -> /srv/deep/name (read-only)\n" in text
        config = inspect(engine, primary("files"))["HostConfig"]
        assert not config["Binds"]
        sandboxes.stop_wait("files")
        sandboxes.resume_wait("files")
        assert run_in(sandboxes, "files", "cat new") == (0, "from inside\n")
        sandboxes.delete_wait("files")
    assert sorted(os.listdir(host.project)) == ["name", "new"]


def test_the_cli_mounts_as_docker_does(make_daemon, test_user, engine, host, image):
    daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
    created = daemon.agbox("sandbox", "create", "-q", "--image", image, "--sandbox-id", "typed", "-e", "A=b",
                           "-v", f"{host.project}:/workspace", "--mount", f"{host.secret}:/secret")
    assert created.returncode == 0, created.stderr
    done = daemon.agbox("exec", "run", "typed", "--", "sh", "-c", "echo $A > new; cat /secret/name; echo x > /secret/name")
    assert done.returncode != 0 and done.stdout == "secret\n"
    assert (host.project / "new").read_text() == "b\n"
    assert daemon.agbox("sandbox", "delete", "typed").returncode == 0


def test_what_no_sandbox_may_see_is_refused_however_it_is_named(
    make_daemon, test_user, engine, contract, directory, host, image
):
    bound = {name: host.root / f"bound-{name}" for name in ("proc", "run", "part", "ours", "host")}
    for path in bound.values():
        path.mkdir()
    below = host.project / "sub"
    below.mkdir()
    daemon = make_daemon(user=test_user, engine=engine, config=CONFIG)
    daemon.mounts = {
        str(bound["proc"]): Path("/proc"),
        str(bound["run"]): Path("/run"),
        str(bound["part"]): Path("/run/lock"),
        str(bound["ours"]): daemon.directory / "data",
        str(bound["host"]): Path("/"),
        str(below): Path("/proc"),
    }
    started(daemon)
    (host.root / "way").symlink_to("/run")
    (host.root / "ours").symlink_to(daemon.directory)
    data = daemon.store.parent
    sources = {
        "/": "root directory of this host",
        "/proc": "/proc",
        "/proc/self": "must not be a symlink",
        "/sys/kernel": "sysfs",
        "/dev": "/dev",
        "/run": "/run",
        "/run/lock": "/run",
        host.root / "way" / "lock": "/run",
        bound["proc"]: "proc",
        bound["run"]: "/run",
        bound["part"]: "/run",
        bound["ours"]: str(data),
        bound["host"]: "contains",
        host.project: "a proc filesystem",  # of what is mounted below it
        data: str(data),
        data / "state": str(data),
        daemon.directory / "data": "contains",
        daemon.directory: "contains",
        daemon.directory.parent: "contains",
        host.root / "ours" / "data": "contains",
        daemon.socket.parent: str(daemon.socket.parent),
        daemon.config_file.parent: "agents-sandbox",
        engine.socket: "Unix socket",
        engine.socket.parent: str(engine.socket),
    }
    with connected(daemon, contract) as sandboxes:
        for source, words in sources.items():
            said = invalid(
                sandboxes.create, "never", image, mounts=[mount(sandboxes, source, "/x")]
            )
            assert said.startswith("mount source ") and words in said, (source, said)
        renamed = host.root / "renamed"
        data.rename(renamed)
        said = invalid(sandboxes.create, "never", image, mounts=[mount(sandboxes, renamed, "/x")])
        assert f"it is {data}, which no sandbox may see" in said
        renamed.rename(data)
        assert list(sandboxes.page(include_deleted=True).sandboxes) == []
        sandboxes.create_ready("never", image, mounts=[mount(sandboxes, host.secret, "/x")])
        sandboxes.delete_wait("never")
    assert left_over(engine) == []


def test_a_mount_that_commands_could_not_write_is_refused_with_the_remedy(
    make_daemon, test_user, engine, contract, host, image
):
    os.chown(host.project, 0, 0)
    daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        wanted = mount(sandboxes, host.project, "/workspace", writable=True)
        said = invalid(sandboxes.create, "owned", image, mounts=[wanted])
        assert f"commands run as uid {test_user.uid}" in said and "change its owner or mode" in said
        # Root in the container could read it.
        host.project.chmod(0o700)
        said = invalid(sandboxes.create, "owned", image, mounts=[mount(sandboxes, host.project, "/workspace")])
        assert f"mount source {host.project} cannot be read by the daemon's user" in said


def changed(sandboxes, sandbox_id):
    events = sandboxes.follow(sandbox_id, lambda event: event.sandbox_state in (READY, FAILED))
    assert events[-1].sandbox_phase.error_code == "MOUNT_CHANGED", events[-1]
    return events[-1].sandbox_phase.error_message


# Of the second the engine itself has opened the link: only the guest sees it.
@pytest.mark.parametrize("failpoint", ["create.mounts.before", "create.mounts.after"])
def test_a_source_that_becomes_a_link_before_the_start_is_not_mounted(
    armed, engine, contract, host, image, failpoint
):
    daemon = started(armed(f"{failpoint}=stop"))
    with connected(daemon, contract) as sandboxes:
        mounts = [mount(sandboxes, host.project, "/x"), mount(sandboxes, host.out, "/out", writable=True)]
        command = ["sh", "-c", "cat /x/name > /out/seen; sleep 1000"]
        created = sandboxes.begin_create("swapped", image, mounts=mounts, command=command)
        os.waitid(os.P_PID, daemon.pid, os.WSTOPPED)
        exchange(host.project, host.link)
        daemon.signal(signal.SIGCONT)
        created.result()
        assert str(host.project) in changed(sandboxes, "swapped")
        assert left_over(engine) == []
    assert os.listdir(host.out) == []


def test_every_later_start_shows_what_was_accepted(make_daemon, test_user, engine, contract, host, image):
    daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("later", image, mounts=[mount(sandboxes, host.project, "/x")])
        sandboxes.stop_wait("later")
        exchange(host.project, host.secret)
        newest = sandboxes.get("later").last_event_sequence
        sandboxes.resume("later")
        events = sandboxes.follow(
            "later", lambda event: event.sequence > newest and event.sandbox_state in (READY, FAILED))
        assert events[-1].sandbox_phase.error_code == "MOUNT_CHANGED", events[-1]
        exchange(host.project, host.secret)
        sandboxes.resume_wait("later")
        assert run_in(sandboxes, "later", "cat /x/name") == (0, "project\n")
        # A restart of its container, too.
        exchange(host.project, host.secret)
        newest = sandboxes.get("later").last_event_sequence
        engine.docker("kill", primary("later"))
        events = sandboxes.follow(
            "later", lambda event: event.sequence > newest and event.sandbox_state == FAILED)
        assert events[-1].sandbox_phase.error_code == "MOUNT_CHANGED", events[-1]
        sandboxes.delete_wait("later")
    assert left_over(engine) == []


@pytest.mark.family(3)
@pytest.mark.parametrize("failpoint", ["create.mounts.before", "create.mounts.after", "create.container.after",
                                       "start.container.before", "start.container.after", "start.hello.before",
                                       "start.hello.after", "start.verify.before"])
def test_a_create_with_mounts_starts_over_after_a_crash(armed, engine, contract, host, image, failpoint):
    daemon = started(armed(f"{failpoint}=kill"))
    with connected(daemon, contract) as sandboxes:
        with crashing(daemon):
            sandboxes.create("crash", image, mounts=[mount(sandboxes, host.project, "/x")])
    with connected(restarted(daemon), contract) as sandboxes:
        sandboxes.wait("crash", READY)
        assert run_in(sandboxes, "crash", "cat /x/name") == (0, "project\n")
        sandboxes.delete_wait("crash")
    assert left_over(engine) == []
    assert sorted(os.listdir(host.project)) == ["name"]


def test_an_image_with_a_volume_there_does_not_take_the_owner_away(
    make_daemon, engine, contract, directory
):
    # As root, whose runtime user is root: another user owns the source.
    host = HostFiles(directory, 4242)
    image = make_image(engine.api, "volumes:1", Image(volumes=["/workspace"]))
    daemon = started(make_daemon(engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("owner", image, mounts=[mount(sandboxes, host.project, "/workspace", writable=True)])
        assert run_in(sandboxes, "owner", "cat name") == (0, "project\n")
        sandboxes.delete_wait("owner")
    assert host.project.stat().st_uid == 4242
