# SPDX-License-Identifier: Apache-2.0
"""Files and directories of the host that a create copies into its sandbox."""

import contextlib
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from support.execs import Execs, output
from support.host_files import own
from support.images import Image, make_image, program_files
from support.sandboxes import (
    CONFIG,
    DELETED,
    FAILED,
    PREPARING,
    READY,
    connected,
    crashing,
    inside,
    left_over,
    primary,
    restarted,
    started,
)

GIT = "/usr/bin/git"
MEMORY_KIB = 16384  # of the daemon, more than before: it does not depend on the tree


@pytest.fixture
def sandboxes(make_daemon, daemon_user, engine, contract):
    daemon = started(make_daemon(user=daemon_user, engine=engine, config=CONFIG))
    with connected(daemon, contract) as client:
        client.daemon = daemon
        client.image = make_image(engine.api, "copies:1")
        yield client


@pytest.fixture
def source(directory, daemon_user):
    """A directory of the daemon's user."""
    path = directory / "source"
    path.mkdir()
    return daemon_user.own(path) if daemon_user else path


def copy(client, source, target, **fields):
    return client.spec.CopySpec(source=str(source), target=target, **fields)


def failure(client, engine, *copies, sandbox_id="failing", image=None):
    """Why the create fails. It leaves nothing."""
    client.create(sandbox_id, image or client.image, copies=copies)
    events = client.follow(sandbox_id, lambda event: event.sandbox_state in {READY, FAILED})
    assert events[-1].sandbox_state == FAILED
    assert left_over(engine) == []
    client.delete(sandbox_id)
    return events[-1].sandbox_phase.error_message


def peak_memory_kib(daemon) -> int:
    status = Path(f"/proc/{daemon.pid}/status").read_text()
    assert status.startswith("Name:\tagboxd\n"), status
    return int(re.search(r"^VmHWM:\s+(\d+) kB$", status, re.M)[1])


def image_with_git(engine) -> str:
    files = program_files(GIT)
    return make_image(engine.api, "copies-git:1", Image(files=files))


def git_status(*prefix: str) -> list[str]:
    return [*prefix, GIT, "-c", "core.fsmonitor=false", "status", "--porcelain=v2", "--branch", "--ignored"]


def make_repository(path: Path) -> None:
    """With changes of every kind that are not committed."""

    def git(*arguments: str) -> None:
        identity = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
                    "GIT_COMMITTER_EMAIL": "a@b", "HOME": str(path), "PATH": "/usr/bin:/bin",
                    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        subprocess.run([GIT, "-c", "safe.directory=*", "-C", path, *arguments], check=True, env=identity,
                       stdout=subprocess.PIPE)

    git("init", "-q", "-b", "main")
    for name in ("kept", "changed", "staged", "removed", "tool.sh", "sub/deep/file"):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(f"{name}\n")
    (path / "tool.sh").chmod(0o755)
    (path / "link").symlink_to("sub/deep/file")
    (path / ".gitignore").write_text("ignored\nvenv/\n")
    git("add", "-A")
    git("commit", "-q", "-m", "first")
    (path / "changed").write_text("other\n")
    (path / "staged").write_text("staged\n")
    git("add", "staged")
    (path / "removed").unlink()
    (path / "kept").chmod(0o755)
    (path / "new file ä\n").write_text("untracked")
    (path / "ignored").write_text("ignored")


@pytest.mark.engines("20.10", "28")
def test_a_repository_with_changes_has_the_same_status_inside(sandboxes, engine, source, daemon_user):
    make_repository(source)
    own(daemon_user, source)
    run = daemon_user.run if daemon_user else lambda *a, **o: subprocess.run(a, check=True, **o)
    outside = run(*git_status(), cwd=source, stdout=subprocess.PIPE, text=True).stdout
    assert "changed" in outside and "? " in outside and "removed" in outside
    image = image_with_git(engine)
    sandboxes.create_ready("repository", image, copies=[copy(sandboxes, source, "/workspace")])
    execs = Execs(sandboxes, "repository")

    def listing(run_in, where):
        return run_in("find", where, "-exec", "busybox", "stat", "-c", "%n %a %s %Y %F", "{}", ";")

    # Modes, sizes, times and kinds, but for the directory itself, which belongs to the image.
    there = sorted(line.replace(str(source), "", 1) for line in listing(
        lambda *command: subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout,
        source).splitlines())
    here = sorted(line.replace("/workspace", "", 1) for line in listing(
        lambda *command: output(execs.run(*command)), "/workspace").splitlines())
    is_root = re.compile(r"^ \d+ \d+ \d+ directory$")
    assert [line for line in here if not is_root.match(line)] == \
        [line for line in there if not is_root.match(line)]
    # After the listing: it refreshes the index.
    assert output(execs.run(*git_status())) == outside
    owners = set(inside(engine, "repository", "find", "/workspace", "-exec", "stat", "-c", "%u:%g",
                        "{}", ";").split())
    assert owners == {f"{os.stat(source).st_uid}:{os.stat(source).st_gid}"}
    # They are the sandbox's own.
    assert output(execs.run("sh", "-c", "echo inside > kept; cat kept")) == "inside\n"
    assert (source / "kept").read_text() == "kept\n"
    sandboxes.delete_wait("repository")


@pytest.mark.engines("20.10", "28")
def test_a_file_lands_where_the_target_says(sandboxes, engine, source, daemon_user):
    (source / "config.yaml").write_text("a: 1\n")
    own(daemon_user, source)
    file = source / "config.yaml"
    targets = ["/home/agbox/settings.yaml", "/home/agbox/.config/app/", "/workspace", "/opt/x/y/z.yaml",
               "~/tilde.yaml"]
    sandboxes.create_ready("files", sandboxes.image, copies=[copy(sandboxes, file, t) for t in targets])
    for path in ("/home/agbox/settings.yaml", "/home/agbox/.config/app/config.yaml",
                 "/workspace/config.yaml", "/opt/x/y/z.yaml", "/home/agbox/tilde.yaml"):
        assert inside(engine, "files", "cat", path) == "a: 1"
        # Of a daemon of root, the user agbox is another name of root.
        assert inside(engine, "files", "stat", "-c", "%U", path) == ("agbox" if daemon_user else "root")
    assert [(c.source, c.target) for c in sandboxes.get("files").copies][0] == (str(file), targets[0])
    # They stay over a stop, and what was changed inside is not copied again.
    inside(engine, "files", "sh", "-c", "echo changed > /workspace/config.yaml")
    sandboxes.stop_wait("files")
    sandboxes.resume_wait("files")
    assert inside(engine, "files", "cat", "/workspace/config.yaml") == "changed"
    sandboxes.delete_wait("files")


@pytest.mark.engines("28")
def test_what_the_image_makes_impossible_fails_the_create_with_its_path(sandboxes, engine, source,
                                                                         daemon_user):
    (source / "bin").mkdir()
    (source / "etc").write_text("x")
    own(daemon_user, source)
    image = make_image(engine.api, "copies-odd:1", Image(files={"/etc/app/bin": b"x", "/srv/etc/y": b"y"}))
    assert "/etc/app/bin: is a directory in the copy, but not in the image" in failure(
        sandboxes, engine, copy(sandboxes, source, "/etc/app"), sandbox_id="impossible-1", image=image)
    assert "/srv/etc: is a directory in the image, but not in the copy" in failure(
        sandboxes, engine, copy(sandboxes, source, "/srv"), sandbox_id="impossible-2", image=image)
    assert "/etc/app/bin/below: is not a directory in the image" in failure(
        sandboxes, engine, copy(sandboxes, source, "/etc/app/bin/below"), sandbox_id="impossible-3",
        image=image)


@pytest.mark.engines("28")
def test_hostile_trees_are_refused_by_name_or_copied_exactly(sandboxes, engine, source, daemon_user,
                                                             directory):
    def refusal(number):
        own(daemon_user, source)
        return failure(sandboxes, engine, copy(sandboxes, source, "/workspace"), sandbox_id=f"tree-{number}")

    os.mkfifo(source / "a\n\x1b[31m")
    assert f"copy source contains a FIFO: {source}/a\\x0a\\x1b[31m" in refusal(1)
    (source / "a\n\x1b[31m").unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(source / "s"))
        assert f"copy source contains a socket: {source}/s" in refusal(2)
    (source / "s").unlink()
    os.mknod(source / "null", 0o020666, os.makedev(1, 3))
    assert f"copy source contains a device: {source}/null" in refusal(3)
    (source / "null").unlink()
    (source / "out").symlink_to("/etc/passwd")
    assert f"copy source contains external symlink: {source}/out" in refusal(4)
    (source / ".gitignore").write_text("out\n")
    if daemon_user:
        (source / "closed").mkdir()
        own(daemon_user, source)
        (source / "closed").chmod(0)
        assert f"copy source cannot be read: {source}/closed: Permission denied" in failure(
            sandboxes, engine, copy(sandboxes, source, "/workspace"), sandbox_id="tree-5")
        (source / "closed").rmdir()
        (source / "secret").write_text("x")
        (source / "secret").chmod(0o600)  # root's
        assert f"copy source cannot be read: {source}/secret: Permission denied" in failure(
            sandboxes, engine, copy(sandboxes, source, "/workspace"), sandbox_id="tree-6")
        (source / "secret").unlink()

    # Whatever is left is copied: a loop, a sparse file of a tebibyte, any bytes in a name.
    (source / "loop").symlink_to("loop")
    (source / "absolute").symlink_to(source / "disk")
    with open(source / "disk", "wb") as disk:
        disk.truncate(1 << 40)
        disk.seek(1 << 39)
        disk.write(b"middle")
    Path(os.fsdecode(os.fsencode(source) + b"/\xff\n")).write_text("bytes")
    (source / "setuid").write_text("x")
    own(daemon_user, source)
    (source / "setuid").chmod(0o6755)
    memory_before = peak_memory_kib(sandboxes.daemon)
    sandboxes.create_ready("exact", sandboxes.image, copies=[copy(sandboxes, source, "/workspace")])
    shown = inside(engine, "exact", "sh", "-c",
                   "cd /workspace; ls -A | wc -l; readlink loop; readlink absolute; stat -c %s disk; "
                   "du -k disk | cut -f1; stat -c %a setuid; cat $(printf '\\377\\n'; echo x)* 2>/dev/null; "
                   "dd if=disk bs=6 count=1 iflag=skip_bytes skip=549755813888 2>/dev/null").split("\n")
    assert shown[0:4] == ["6", "loop", "disk", str(1 << 40)]
    assert int(shown[4]) < 1024
    assert shown[5] == "755"
    assert shown[-1].endswith("middle")
    assert peak_memory_kib(sandboxes.daemon) - memory_before < MEMORY_KIB
    sandboxes.delete_wait("exact")


@pytest.fixture
def image(engine):
    return make_image(engine.api, "copies:1")


@pytest.mark.engines("28")
@pytest.mark.parametrize("files", [5_000, pytest.param(200_000, marks=pytest.mark.long)])
def test_a_tree_of_many_long_names_arrives_whole_in_bounded_memory(
    armed, engine, contract, image, directory, test_user, files
):
    """Paths of almost 4000 bytes: to keep them would take more than the daemon may."""
    source = directory / "source"
    deep = source.joinpath(*("d" * 250 for _ in range(14)))
    deep.mkdir(parents=True)
    here = os.open(deep, os.O_RDONLY)
    for number in range(files):
        os.close(os.open(f"{number}-{'n' * 240}", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    own(test_user, source)
    daemon = started(armed())
    with connected(daemon, contract) as client:
        memory_before = peak_memory_kib(daemon)
        client.create_ready("many", image, copies=[copy(client, source, "/workspace")])
        grown = peak_memory_kib(daemon) - memory_before
        # The names, without what they have in common.
        names = "cd /workspace; while cd d* 2>/dev/null; do :; done; find . -type f | cut -d - -f 1 | sort | uniq | wc -l"
        assert inside(engine, "many", "sh", "-c", names) == str(files)
        print(f"{files} files: {grown} KiB more")
        assert grown < MEMORY_KIB
        client.delete_wait("many")


@pytest.fixture
def large_file(directory, test_user):
    """More than the pipe holds."""
    path = directory / "large"
    path.write_bytes(b"x" * (4 << 20))
    own(test_user, path)
    return path


@contextlib.contextmanager
def stopped_in_a_copy(daemon, client, sandbox_id, image, *copies):
    """Meanwhile the daemon is stopped at a failpoint, where the create leads."""
    created = client.begin_create(sandbox_id, image, copies=copies)
    os.waitid(os.P_PID, daemon.pid, os.WSTOPPED)
    yield
    daemon.signal(signal.SIGCONT)
    created.result()


@pytest.mark.engines("28")
@pytest.mark.parametrize(("size", "later"), [(100_000, 100_001), (4 << 20, 0)], ids=["grows", "shrinks"])
def test_a_file_that_changes_while_it_is_copied_fails_the_create(
    armed, engine, contract, image, large_file, size, later
):
    os.truncate(large_file, size)  # the first is read at once, the second is not
    daemon = started(armed("copy.part=stop"))
    with connected(daemon, contract) as client:
        with stopped_in_a_copy(daemon, client, "changing", image, copy(client, large_file, "/x")):
            os.truncate(large_file, later)
        events = client.follow("changing", lambda event: event.sandbox_state in {READY, FAILED})
        assert f"copy source changed while it was copied: {large_file}; try again" in (
            events[-1].sandbox_phase.error_message)
        assert left_over(engine) == []


# Prints how many it killed: those that unpack a copy in a container.
KILL_RECEIVERS = """
count=0
for process in /proc/[0-9]*; do
  tr '\\0' ' ' < $process/cmdline | grep -q '^/.agbox-guest receive ' || continue
  kill -9 ${process#/proc/} && count=$((count + 1))
done
echo $count
"""


@pytest.mark.engines("28")
def test_a_receiver_that_is_killed_fails_the_create_and_leaves_nothing(
    armed, engine, contract, image, large_file
):
    daemon = started(armed("copy.part=stop@8"))
    with connected(daemon, contract) as client:
        with stopped_in_a_copy(daemon, client, "killed", image, copy(client, large_file, "/x")):
            assert inside(engine, "killed", "sh", "-c", KILL_RECEIVERS, user="root") == "1"
        events = client.follow("killed", lambda event: event.sandbox_state in {READY, FAILED})
        assert "/x: the receiver was killed by signal 9" in events[-1].sandbox_phase.error_message
        assert left_over(engine) == []


@pytest.mark.engines("28")
def test_a_daemon_that_is_killed_in_a_copy_makes_it_again(armed, engine, contract, image, directory, test_user):
    source = directory / "source"
    source.mkdir()
    for number in range(300):
        (source / str(number)).write_text(f"{number}\n" * 2000)
    own(test_user, source)
    daemon = started(armed("copy.part=kill@200"))
    with connected(daemon, contract) as client, crashing(daemon):
        client.create("crash", image, copies=[copy(client, source, "/workspace")])
    first = engine.api.call("GET", f"/containers/{primary('crash')}/json").json()["Id"]
    with connected(restarted(daemon), contract) as client:
        client.wait("crash", READY)
        # Nothing of the first try is in it: it is another container.
        assert engine.api.call("GET", f"/containers/{primary('crash')}/json").json()["Id"] != first
        whole = sum(path.stat().st_size for path in source.iterdir())
        assert inside(engine, "crash", "sh", "-c", "cd /workspace; ls | wc -l; cat * | wc -c").split() == [
            "300", str(whole)]
        client.delete_wait("crash")
    assert left_over(engine) == []


@pytest.mark.engines("28")
def test_exclude_patterns_leave_out_what_they_match(sandboxes, engine, source, daemon_user):
    for path in ("node_modules/x/y.js", "src/main.c", "src/main.o", "src/node_modules/z", "a.log", "keep.log"):
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text("x")
    own(daemon_user, source)
    patterns = ["node_modules", "**/*.o", "*.log", "!keep.log"]
    sandboxes.create_ready("excluded", sandboxes.image,
                           copies=[copy(sandboxes, source, "/workspace", exclude_patterns=patterns)])
    found = inside(engine, "excluded", "find", "/workspace", "-type", "f").split()
    assert sorted(found) == ["/workspace/keep.log", "/workspace/src/main.c"]
    sandboxes.delete_wait("excluded")


@pytest.mark.engines("28")
def test_a_large_tree_reports_progress_and_a_delete_does_not_wait_for_it(sandboxes, engine, source,
                                                                         daemon_user):
    # Links of one file: much faster to make and to remove, and copied as files of their own.
    first = source / "first"
    first.write_text("x" * 100)
    for number in range(60000):
        if number % 1000 == 0:
            (source / str(number // 1000)).mkdir()
        os.link(first, source / str(number // 1000) / str(number))
    own(daemon_user, source)
    memory_before = peak_memory_kib(sandboxes.daemon)
    sandboxes.create("large", sandboxes.image, copies=[copy(sandboxes, source, "/workspace")])
    phase = re.compile(r"copy to /workspace: \d+ entries, \d+ MiB")
    events = sandboxes.follow("large", lambda event: bool(phase.fullmatch(event.sandbox_phase.phase))
                              or event.sandbox_state in {READY, FAILED})
    assert events[-1].event_type == PREPARING, events[-1]
    sandboxes.delete("large")
    sandboxes.wait("large", DELETED)
    assert left_over(engine) == []
    assert peak_memory_kib(sandboxes.daemon) - memory_before < MEMORY_KIB


@pytest.mark.engines("28")
def test_the_command_line_and_the_yaml_file_copy_too(sandboxes, engine, source, daemon_user, directory):
    (source / "a").write_text("from the host")
    own(daemon_user, source)
    agbox = sandboxes.daemon.agbox
    done = agbox("sandbox", "create", "--image", sandboxes.image, "--sandbox-id", "cli-1",
                 "--copy", f"{source}:/workspace", "--copy", f"{source}/a:/opt/b")
    assert done.returncode == 0, done.stderr
    assert inside(engine, "cli-1", "cat", "/workspace/a", "/opt/b") == "from the hostfrom the host"
    shown = agbox("sandbox", "get", "cli-1").stdout
    assert f"copy={source} -> /workspace\n" in shown
    sandboxes.delete_wait("cli-1")
    yaml = f"image: {sandboxes.image}\ncopies:\n- source: {source}\n  target: /y\n  exclude_patterns: [b]\n"
    request = sandboxes.service.CreateSandboxRequest(sandbox_id="yaml", config_yaml=yaml.encode())
    sandboxes.stub.CreateSandbox(request, timeout=30)
    sandboxes.wait("yaml", READY)
    assert inside(engine, "yaml", "cat", "/y/a") == "from the host"
    sandboxes.delete_wait("yaml")
