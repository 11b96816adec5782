# SPDX-License-Identifier: Apache-2.0
"""Files into and out of a running sandbox, with `agbox cp` and the calls behind it."""

import io
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import tarfile
from pathlib import Path

import grpc
import pytest
from support.execs import Execs, output, run_in
from support.host_files import own
from support.images import make_image
from support.sandboxes import CONFIG, connected, inside, restarted, started, wait_until

pytestmark = pytest.mark.engines("28")

MEMORY_KIB = 24576  # of the daemon, more than before: it does not depend on what is copied
PER_SANDBOX = 8  # copies at a time


@pytest.fixture
def sandboxes(make_daemon, daemon_user, engine, contract):
    daemon = started(make_daemon(user=daemon_user, engine=engine, config=CONFIG))
    with connected(daemon, contract) as client:
        client.daemon = daemon
        client.image = make_image(engine.api, "cp:1")
        yield client


@pytest.fixture
def host(directory, daemon_user):
    """A directory of the daemon's user."""
    path = directory / "host"
    path.mkdir()
    return daemon_user.own(path) if daemon_user else path


def cp(client, source, target, *flags, **options):
    """Standard error of `agbox cp`, which succeeds."""
    done = client.daemon.agbox("cp", *flags, str(source), str(target), **options)
    assert done.returncode == 0, done.stderr
    return done.stderr


def refused(client, source, target, *flags, code=1, **options) -> str:
    done = client.daemon.agbox("cp", *flags, str(source), str(target), **options)
    assert done.returncode == code, done
    return done.stderr


def listing(root: Path) -> dict[str, tuple]:
    """Kind, mode, size, time in nanoseconds, owner and content of everything below."""
    found = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
        mode = 0 if path.is_symlink() else stat.S_IMODE(status.st_mode)
        found[str(path.relative_to(root))] = (stat.S_IFMT(status.st_mode), mode, status.st_mtime_ns,
                                              status.st_uid, status.st_gid, content)
    return found


def peak_memory_kib(daemon) -> int:
    status = Path(f"/proc/{daemon.pid}/status").read_text()
    return int(re.search(r"^VmHWM:\s+(\d+) kB$", status, re.M)[1])


def copiers(engine, sandbox_id) -> list[str]:
    """The processes inside that copy."""
    script = "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline 2>/dev/null; echo; done"
    lines = inside(engine, sandbox_id, "sh", "-c", script, user="root").splitlines()
    return [line for line in lines if line.startswith(("/.agbox-guest get", "/.agbox-guest put"))]


def test_a_tree_makes_the_round_trip(sandboxes, engine, host, daemon_user):
    tree = host / "project"
    (tree / "sub" / "empty").mkdir(parents=True)
    (tree / "a").write_text("hello")
    (tree / "sub" / "run.sh").write_text("#!/bin/sh\n")
    (tree / "sub" / "run.sh").chmod(0o751)
    (tree / "sub" / "closed").write_bytes(os.urandom(300_000))
    (tree / "sub" / "closed").chmod(0o400)
    Path(os.fsdecode(os.fsencode(tree) + b"/\xff\n \x1b")).write_text("bytes")
    (tree / ("n" * 200)).write_text("long")
    (tree / "inner").symlink_to("sub/run.sh")
    (tree / "outer").symlink_to("/etc/passwd")
    with (tree / "sparse").open("wb") as disk:
        disk.truncate(1 << 26)
        disk.write(b"begin")
    os.utime(tree / "a", ns=(1, 1_234_567_890_123_456_789))
    os.utime(tree / "sub", ns=(1, 987_654_321))
    (tree / "sub").chmod(0o550 if daemon_user is None else 0o750)
    own(daemon_user, tree)
    os.utime(tree / "sub", ns=(1, 987_654_321))
    sandboxes.create_ready("trip", sandboxes.image)
    assert "Copied " in cp(sandboxes, tree, "trip:/workspace")
    assert inside(engine, "trip", "stat", "-c", "%a", "/workspace/project/sub/run.sh") == "751"
    assert inside(engine, "trip", "cat", "/workspace/project/inner") == "#!/bin/sh"
    assert int(inside(engine, "trip", "du", "-k", "/workspace/project/sparse").split()[0]) < 1024
    owners = set(inside(engine, "trip", "find", "/workspace/project", "-exec", "stat", "-c", "%u", "{}", ";").split())
    assert owners == {str(tree.stat().st_uid)}
    summary = json.loads(sandboxes.daemon.agbox("cp", "--json", "trip:/workspace/project", str(host / "back")).stdout)
    assert summary["entries"] == str(len(listing(tree)) + 1), summary
    assert summary["notes"] == "0"
    assert listing(host / "back") == listing(tree)
    assert (host / "back" / "sparse").stat().st_blocks < 1024
    sandboxes.delete_wait("trip")


def test_paths_follow_the_rules_of_docker_cp(sandboxes, engine, host, daemon_user):
    (host / "d" / "sub").mkdir(parents=True)
    (host / "d" / "sub" / "x").write_text("x")
    (host / "f").write_text("f")
    own(daemon_user, host)
    sandboxes.create_ready("rules", sandboxes.image)

    def find(path):
        return sorted(inside(engine, "rules", "find", path).split())

    # In: a file.
    cp(sandboxes, host / "f", "rules:/workspace/new")
    cp(sandboxes, host / "f", "rules:/workspace")
    cp(sandboxes, host / "f", "rules:~/home")
    assert find("/workspace") == ["/workspace", "/workspace/f", "/workspace/new"]
    assert inside(engine, "rules", "cat", "/home/agbox/home") == "f"
    # A directory: new, into an existing one, its content.
    cp(sandboxes, host / "d", "rules:/workspace/made")
    assert find("/workspace/made") == ["/workspace/made", "/workspace/made/sub", "/workspace/made/sub/x"]
    cp(sandboxes, host / "d", "rules:/workspace/made")
    assert "/workspace/made/d/sub/x" in find("/workspace/made")
    cp(sandboxes, str(host / "d") + "/.", "rules:/workspace/made/sub")
    assert "/workspace/made/sub/sub/x" in find("/workspace/made")
    cp(sandboxes, ".", "rules:/workspace/here", cwd=host / "d")
    assert "/workspace/here/sub/x" in find("/workspace/here")
    # What does not fit.
    assert "a directory cannot replace" in refused(sandboxes, host / "d", "rules:/workspace/f")
    assert "/workspace/nothing: does not exist; create this directory first" in refused(
        sandboxes, host / "f", "rules:/workspace/nothing/x")
    assert "/workspace/nothing/: does not exist" in refused(sandboxes, host / "f", "rules:/workspace/nothing/")
    assert "is not a directory" in refused(sandboxes, host / "f", "rules:/workspace/f/")
    assert f"{host}/missing: No such file or directory" in refused(sandboxes, host / "missing", "rules:/workspace")
    # Out, the same.
    cp(sandboxes, "rules:/workspace/f", host / "out-file")
    assert (host / "out-file").read_text() == "f"
    cp(sandboxes, "rules:/workspace/f", ".", cwd=host / "d")
    assert (host / "d" / "f").read_text() == "f"
    cp(sandboxes, "rules:/workspace/made/sub", host / "out")
    cp(sandboxes, "rules:/workspace/made/sub", host / "out")
    cp(sandboxes, "rules:/workspace/made/.", host / "out")
    assert {"x", "sub/x", "sub/sub/x", "d/sub/x"} <= listing(host / "out").keys()
    assert "a directory cannot replace" in refused(sandboxes, "rules:/workspace/made", host / "out-file")
    assert "create this directory first" in refused(sandboxes, "rules:/workspace/f", host / "nothing" / "x")
    assert "/workspace/missing: No such file or directory" in refused(sandboxes, "rules:/workspace/missing", host)
    assert "filesystem of the kernel" in refused(sandboxes, "rules:/proc/cpuinfo", host)
    # A usage error.
    assert "one path must be SANDBOX:PATH" in refused(sandboxes, host / "f", host / "g", code=2)
    assert "must be absolute" in refused(sandboxes, host / "f", "rules:x", code=2)
    sandboxes.delete_wait("rules")


def test_a_tar_goes_through_a_pipe(sandboxes, engine, host):
    sandboxes.create_ready("pipe", sandboxes.image)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, text in (("a/b/c", b"deep"), ("d", b"flat")):
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text))
    cp(sandboxes, "-", "pipe:/workspace/new", input=archive.getvalue(), text=False)
    assert inside(engine, "pipe", "cat", "/workspace/new/a/b/c", "/workspace/new/d") == "deepflat"
    with (host / "out.tar").open("wb") as out:
        done = sandboxes.daemon.agbox("cp", "pipe:/workspace/new", "-", stdout=out)
    assert done.returncode == 0
    with tarfile.open(host / "out.tar") as tar:
        assert sorted(tar.getnames()) == ["new", "new/a", "new/a/b", "new/a/b/c", "new/d"]
    # Between sandboxes.
    sandboxes.create_ready("other", sandboxes.image)
    cp(sandboxes, "-", "other:/workspace", input=(host / "out.tar").read_bytes(), text=False)
    assert inside(engine, "other", "cat", "/workspace/new/d") == "flat"
    assert "not a tar archive" in refused(sandboxes, "-", "pipe:/workspace", input="x" * 1024)
    for sandbox_id in ("pipe", "other"):
        sandboxes.delete_wait(sandbox_id)


def test_the_user_has_no_more_rights_than_its_own(sandboxes, engine, host, daemon_user):
    (host / "f").write_text("f")
    own(daemon_user, host)
    sandboxes.create_ready("rights", sandboxes.image)
    if daemon_user:  # of a daemon of root, the user agbox is another name of root
        why = refused(sandboxes, host / "f", "rights:/etc/f")
        assert "/etc/f: Permission denied" in why and "--as-root" in why
        inside(engine, "rights", "sh", "-c", "echo secret > /etc/closed; chmod 600 /etc/closed", user="root")
        assert "/etc/closed: Permission denied" in refused(sandboxes, "rights:/etc/closed", host)
    cp(sandboxes, host / "f", "rights:/etc/f", "--as-root")
    assert inside(engine, "rights", "stat", "-c", "%u", "/etc/f") == "0"
    cp(sandboxes, "rights:/etc/f", host / "g", "--as-root")
    assert (host / "g").stat().st_uid == host.stat().st_uid
    sandboxes.delete_wait("rights")


def test_a_full_disk_leaves_no_half_file(sandboxes, engine, host, daemon_user):
    (host / "large").write_bytes(b"x" * (80 << 20))  # more than /dev/shm of a container has
    own(daemon_user, host)
    sandboxes.create_ready("full", sandboxes.image)
    why = refused(sandboxes, host / "large", "full:/dev/shm/large")
    assert "No space left on device" in why and "/dev/shm" in why
    assert inside(engine, "full", "ls", "-A", "/dev/shm") == ""
    (host / "small").write_text("x")
    own(daemon_user, host)
    cp(sandboxes, host / "small", "full:/dev/shm/small")
    sandboxes.delete_wait("full")


def test_a_sandbox_that_does_not_run_says_so(sandboxes, host, daemon_user):
    (host / "f").write_text("f")
    own(daemon_user, host)
    sandboxes.create_ready("stopped", sandboxes.image)
    sandboxes.stop_wait("stopped")
    assert "it is stopped" in refused(sandboxes, host / "f", "stopped:/workspace")
    assert "resume it" in refused(sandboxes, "stopped:/workspace", host)
    assert "Sandbox nowhere not found" in refused(sandboxes, "nowhere:/workspace", host)
    sandboxes.resume_wait("stopped")
    cp(sandboxes, host / "f", "stopped:/workspace")
    sandboxes.delete_wait("stopped")


def out_request(client, sandbox_id, path):
    return client.contract.files.CopyOutRequest(sandbox_id=sandbox_id, path=path)


def test_a_client_that_stalls_or_leaves_blocks_no_one(sandboxes, engine, host):
    """Its copies end inside when it leaves, and when the daemon is killed."""
    for sandbox_id in ("stalled", "other"):
        sandboxes.create_ready(sandbox_id, sandboxes.image)
    run_in(sandboxes, "stalled", "dd if=/dev/zero of=/workspace/large bs=1M count=64 2>/dev/null")
    calls = [sandboxes.stub.CopyOut(out_request(sandboxes, "stalled", "/workspace/large")) for _ in range(PER_SANDBOX)]
    for call in calls:
        assert next(call).data
    with pytest.raises(grpc.RpcError) as too_many:
        next(sandboxes.stub.CopyOut(out_request(sandboxes, "stalled", "/workspace")))
    assert too_many.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "at a time" in too_many.value.details()
    cp(sandboxes, "other:/etc/passwd", host / "passwd")
    assert run_in(sandboxes, "stalled", "echo works")[1] == "works\n"
    assert len(copiers(engine, "stalled")) == PER_SANDBOX
    for call in calls[1:]:
        call.cancel()
    wait_until(lambda: len(copiers(engine, "stalled")) == 1, "the copies of the client end")
    cp(sandboxes, "stalled:/etc/passwd", host / "passwd")
    # One that writes nothing, which a killed daemon ends with the other.
    target = sandboxes.contract.files.CopyInTarget(sandbox_id="stalled", path="/workspace/new")
    files = sandboxes.contract.files

    def forever():
        yield files.CopyInRequest(target=target)
        wait_until(lambda: not sandboxes.daemon_lives, "the daemon is killed")

    sandboxes.daemon_lives = True
    writing = sandboxes.stub.CopyIn.future(forever())
    wait_until(lambda: len(copiers(engine, "stalled")) == 2, "both copies run")
    sandboxes.daemon.kill()
    sandboxes.daemon_lives = False
    wait_until(lambda: copiers(engine, "stalled") == [], "both copies end")
    for call in (calls[0], writing):
        assert call.code() == grpc.StatusCode.UNAVAILABLE
    restarted(sandboxes.daemon)
    with connected(sandboxes.daemon, sandboxes.contract) as again:
        again.wait("stalled", again.get("stalled").state)
        assert run_in(again, "stalled", "ls /workspace")[1] == "large\n"
        for sandbox_id in ("stalled", "other"):
            again.delete_wait(sandbox_id)


# What takes each other's place inside while it is copied out: files, directories, and links to files
# and directories of the host, by absolute and relative names.
RACER = """
cd /workspace/tree
while :; do
  mv d e; ln -s {outside} d; ln -s {outside}/secret f; ln -s ../../../../../../../..{outside} r
  rm -f d f r; mkdir f r; echo inside > f/secret; echo inside > r/secret; rm -rf f r
  echo inside > f; mv e d; rm -f f; mkfifo f; rm -f f
done
"""


@pytest.mark.parametrize("rounds", [100, pytest.param(2_000, marks=pytest.mark.long)])
def test_a_race_inside_reads_and_writes_nothing_outside(sandboxes, host, daemon_user, contract, rounds):
    outside = host / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret of the host")
    own(daemon_user, host)
    before = listing(outside)
    sandboxes.create_ready("race", sandboxes.image)
    run_in(sandboxes, "race", "mkdir -p /workspace/tree/d/x; echo inside > /workspace/tree/d/x/secret")
    execs = Execs(sandboxes, "race")
    racer = execs.create("sh", "-c", RACER.format(outside=outside))
    racer = getattr(racer, "exec_id", racer)
    done = 0
    for number in range(rounds):
        target = host / f"out-{number % 7}"  # some are new, some have what an earlier round left
        copied = sandboxes.daemon.agbox("cp", "race:/workspace/tree", str(target))
        # A target that an earlier round has filled may not fit.
        if copied.returncode == 0:
            done += 1
        else:
            assert re.search("cannot replace|is not a directory|one is copied there", copied.stderr), copied.stderr
    for path in host.rglob("secret"):
        if path.parent != outside and not any(p.is_symlink() for p in (path, *path.parents) if p != host):
            assert path.read_text() in {"", "inside\n"}, path  # empty: not written yet when it was copied
    assert done > rounds / 4
    assert listing(outside) == before
    execs.cancel(racer)
    execs.wait(racer)
    sandboxes.delete_wait("race")


@pytest.mark.parametrize("files, megabytes", [(2_000, 96), pytest.param(50_000, 1024, marks=pytest.mark.long)])
def test_a_larger_tree_goes_both_ways_in_bounded_memory(sandboxes, engine, host, daemon_user, files, megabytes):
    tree = host / "large"
    for number in range(files):
        directory = tree / str(number % 50)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / str(number)).write_text(f"file {number}\n")
    block = os.urandom(1 << 20)
    with (tree / "blob").open("wb") as blob:
        for _ in range(megabytes):
            blob.write(block)
    own(daemon_user, tree)
    sandboxes.create_ready("large", sandboxes.image)
    before = peak_memory_kib(sandboxes.daemon)
    cp(sandboxes, tree, "large:/workspace")
    cp(sandboxes, "large:/workspace/large", host / "back")
    assert peak_memory_kib(sandboxes.daemon) - before < MEMORY_KIB
    differences = subprocess.run(["diff", "-r", tree, host / "back"], check=False, stdout=subprocess.PIPE)
    assert differences.stdout == b"" and differences.returncode == 0
    for path in (tree, host / "back"):
        shutil.rmtree(path)
    sandboxes.delete_wait("large")


def test_an_interrupt_ends_the_copy(sandboxes, engine, daemon_user):
    sandboxes.create_ready("interrupted", sandboxes.image)
    argv = [str(sandboxes.daemon.bin_dir / "agbox"), "cp", "-", "interrupted:/workspace/new"]
    if daemon_user:
        argv = daemon_user.command(argv)
    # Nothing comes through the pipe.
    reading, writing = os.pipe()
    with subprocess.Popen(argv, env=sandboxes.daemon.environment, stdin=reading, stderr=subprocess.PIPE,
                          text=True, cwd=sandboxes.daemon.home) as process:
        os.close(reading)
        wait_until(lambda: copiers(engine, "interrupted"), "the copy runs")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        os.close(writing)
    assert (process.returncode, errors) == (130, "Copy cancelled; files that were complete stay.\n")
    wait_until(lambda: copiers(engine, "interrupted") == [], "the copy ends")
    assert output(Execs(sandboxes, "interrupted").run("ls", "/workspace")) == ""
    sandboxes.delete_wait("interrupted")
