# SPDX-License-Identifier: Apache-2.0
"""What a sandbox's container is made of, and what those inside may ask of the kernel, as the runtime
user and as container root, on real engines. The verdicts are those of
tests/hostile_sandbox/verdicts.txt, which a person wrote down from the profile."""

import os
import platform
import re
import shutil
from pathlib import Path

import pytest
from support.contract import REPOSITORY
from support.execs import FINISHED, Execs, output
from support.hostile_sandbox import PIDS_LIMIT, hostile_program, pids_group
from support.images import Image, make_image
from support.odd_images import make_debian_image
from support.sandboxes import CONFIG, emptied, inspect, primary, started

VERDICTS = REPOSITORY / "tests" / "hostile_sandbox" / "verdicts.txt"
PROGRAM = "/usr/local/bin/hostile-sandbox"
REFUSALS = {"EPERM", "ENOSYS", "SIGSYS"}
SUDO = ("sudo", "-n")

# CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID and SYS_CHROOT, as the kernel counts them.
CAPABILITIES = sum(1 << number for number in (0, 1, 3, 4, 5, 6, 7, 18))
GUEST_CAPABILITIES = sum(1 << number for number in (5, 6, 7))  # KILL, SETGID, SETUID
DEVICES = {"full", "null", "pts/ptmx", "random", "tty", "urandom", "zero"}
OUR_MOUNTS = {"/.agbox-guest", "/.agbox-link", "/var/log/agents-sandbox"}
ENGINE_MOUNTS = {"/", "/etc/hostname", "/etc/hosts", "/etc/resolv.conf"}
# Files that reveal or change the host, if this kernel has them.
MASKED = (
    "/proc/acpi /proc/kcore /proc/keys /proc/latency_stats /proc/sched_debug /proc/scsi "
    "/proc/timer_list /proc/timer_stats /sys/firmware /proc/interrupts /proc/kpagecgroup /proc/kpagecount "
    "/proc/kpageflags /proc/pagetypeinfo /proc/slabinfo /proc/vmallocinfo /sys/devices/virtual/powercap"
).split()
READ_ONLY = "/proc/bus /proc/fs /proc/irq /proc/sys /proc/sysrq-trigger /sys".split()


def verdicts() -> dict[str, tuple[str, str]]:
    """Call to what it answers to the runtime user and to container root."""
    rows, group = {}, ""
    for line in VERDICTS.read_text().splitlines():
        if line.startswith("["):
            group = line
        elif line and not line.startswith("#"):
            call, user, root = re.split("  +", line)
            if platform.machine() == "x86_64" or not group.startswith("[of x86-64 alone"):
                rows[call] = (user, root)
    return rows


def answers(text: str) -> dict[str, str]:
    return dict(line.split("\t") for line in text.splitlines())


def fits(answer: str, verdict: str) -> bool:
    return answer in REFUSALS if verdict == "refused" else answer == verdict


@pytest.fixture
def image(engine, say):
    """With sudo."""
    return make_debian_image(engine.api, say)


@pytest.fixture
def daemon(make_daemon, test_user, engine):
    """An ordinary user's: root's runtime user would be root itself."""
    return started(make_daemon(user=test_user, engine=engine, config=CONFIG))


@pytest.fixture
def sandboxes(daemon, contract, engine):
    with emptied(daemon, contract, engine) as client:
        yield client


@pytest.fixture
def box(sandboxes, image):
    sandboxes.create_ready("box-1", image)
    return Execs(sandboxes, "box-1")


def said(box: Execs, *command: str) -> str:
    status = box.run(*command)
    assert status.state == FINISHED, (status, Path(status.stderr_log_path).read_text())
    return output(status)


def test_every_system_call_has_the_expected_result(box, engine, directory, bin_dir):
    wanted = verdicts()
    shutil.copy(hostile_program(bin_dir), directory / "hostile-sandbox")
    engine.docker("cp", str(directory / "hostile-sandbox"), f"{primary('box-1')}:{PROGRAM}")
    as_user = answers(said(box, PROGRAM, "calls"))
    as_root = answers(said(box, *SUDO, PROGRAM, "calls"))
    assert as_user.keys() == as_root.keys() == wanted.keys()
    wrong = [
        f"{call}: {as_user[call]} to the user, {as_root[call]} to root, not {user} and {root}"
        for call, (user, root) in wanted.items()
        if not (fits(as_user[call], user) and fits(as_root[call], root))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.engines("28")  # it is the machine that answers
def test_whatever_is_refused_is_answered_where_nothing_holds_a_container(engine, bin_dir, say):
    """The same calls in a container that may do everything: what a sandbox is refused is not refused
    by the machine."""
    content = hostile_program(bin_dir).read_bytes()
    image = make_image(engine.api, "limits-control:1", Image(files={PROGRAM: content}))
    done = engine.docker(
        *("run", "--rm", "--privileged", "--security-opt", "seccomp=unconfined"),
        *("--sysctl", "net.ipv6.conf.all.disable_ipv6=0"),
        *(image, "sh", "-c", f"{PROGRAM} calls; exit $?"),  # which is not the first process itself
    )
    control = answers(done.stdout)
    refused = {call: root for call, (_, root) in verdicts().items() if root != "ok"}
    same = {call for call, verdict in refused.items() if fits(control[call], verdict)}
    absent = {call for call in same if control[call] == "ENOSYS"}
    say(f"{len(refused)} refusals; not on this kernel: {', '.join(sorted(absent)) or 'none'}")
    assert same == absent


def test_what_a_container_is_made_of(box, engine, sandboxes):
    def status_of(process: str, *how: str) -> dict[str, int]:
        fields = dict(re.findall(r"(\w+):\t(\w+)\n", said(box, *how, "cat", f"/proc/{process}/status")))
        names = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")
        return {name: int(fields[name], 16) for name in names}

    # Without no-new-privileges, or sudo would not work.
    everywhere = {"CapInh": 0, "CapBnd": CAPABILITIES, "CapAmb": 0, "NoNewPrivs": 0, "Seccomp": 2}
    for process, how, has in (
        ("self", (), 0),
        ("self", SUDO, CAPABILITIES),
        ("1", SUDO, GUEST_CAPABILITIES),
    ):
        assert status_of(process, *how) == {**everywhere, "CapPrm": has, "CapEff": has}

    assert (pids_group(engine, "box-1") / "pids.max").read_text().strip() == str(PIDS_LIMIT)
    assert said(box, *SUDO, "sh", "-c", "ulimit -Hc; ulimit -Sc") == "0\n0\n"
    found = said(box, *SUDO, "find", "/dev", "-type", "c", "-o", "-type", "b")
    assert set(found.split()) == {f"/dev/{name}" for name in DEVICES}
    assert said(box, "cat", "/proc/net/if_inet6") == "", "no address over IPv6"

    namespaces = [f"/proc/self/ns/{name}" for name in ("ipc", "mnt", "net", "pid", "uts")]
    own = said(box, *SUDO, "readlink", *namespaces).split()
    engines = [os.readlink(path.replace("self", str(engine.world.init))) for path in namespaces]
    assert len(own) == len(namespaces)
    assert not set(own) & {*map(os.readlink, namespaces), *engines}


def test_all_that_the_engine_masks_is_masked(box, engine, image):
    own = inspect(engine, primary("box-1"))["HostConfig"]["MaskedPaths"]
    created = engine.docker("create", image, "true").stdout.strip()
    try:
        engines = inspect(engine, created)["HostConfig"]["MaskedPaths"]
    finally:
        engine.docker("rm", created)
    assert engines and set(engines) <= set(own)


def test_the_kernels_files_tell_and_take_nothing(box):
    listing = 'for p; do if [ -d "$p" ]; then ls -A "$p"; elif [ -e "$p" ]; then head -c 1 "$p"; fi; done'
    assert said(box, *SUDO, "sh", "-c", listing, "masked", *MASKED) == ""
    assert any(os.path.isfile(path) and _first_byte(path) for path in MASKED), "the host has them"

    mounts, kinds = {}, {}
    for line in said(box, "cat", "/proc/self/mountinfo").splitlines():
        fields = line.split()
        mounts[fields[4]] = set(fields[5].split(","))
        kinds[fields[4]] = fields[fields.index("-") + 1]
    there = said(box, "sh", "-c", 'for p; do [ -e "$p" ] && echo "$p"; done; true', "", *READ_ONLY)
    kernels = [path for path, kind in kinds.items() if kind.startswith(("cgroup", "sysfs"))]
    for path in [*there.split(), *OUR_MOUNTS, *kernels]:
        assert "ro" in mounts[path], path
    others = {path for path in mounts if not path.startswith(("/dev", "/proc", "/sys"))}
    assert others == OUR_MOUNTS | ENGINE_MOUNTS


def _first_byte(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(1)


# Each line of it must fail; those that do not are printed.
REACH = r"""
attempt() { if "$@" >/dev/null 2>&1; then echo "$*"; fi; }
for place; do
  attempt test -e "$place"
  attempt test -e "/proc/1/root$place"
done
logs=/var/log/agents-sandbox
own=$(ls $logs | head -n 1)
attempt touch $logs/new
attempt rm -f $logs/$own
attempt mv $logs/$own /tmp/own
attempt ln $logs/$own /tmp/own
attempt chmod 777 $logs/$own
attempt truncate -s 0 $logs/$own
for ours in $logs /.agbox-link /.agbox-guest; do
  attempt chown 12345 $ours
  attempt rm -rf $ours
  attempt mv $ours /tmp/moved
  attempt umount $ours
  attempt mount -o remount,rw $ours
done
attempt touch /.agbox-link/guest.sock
attempt sh -c 'echo x > /proc/1/fd/1'
attempt sh -c 'echo x >> /.agbox-guest'
"""


def test_nothing_of_the_host_the_engine_or_a_neighbour_is_within_reach(
    sandboxes, box, image, engine, daemon
):
    sandboxes.create_ready("neighbour", image)
    neighbours = Execs(sandboxes, "neighbour").run("echo", "a secret", exec_id="of-the-neighbour")
    said(box, "true")  # so that there is a log
    own = box.run("echo", "own", exec_id="of-its-own")
    host_paths = [
        "/var/run/docker.sock",
        str(engine.socket),
        str(daemon.socket),
        str(daemon.store),
        own.stdout_log_path,
        neighbours.stdout_log_path,
        *map(str, (daemon.directory / "data/agents-sandbox/state/links").glob("*/*")),
    ]
    assert all(os.path.exists(path) for path in host_paths[1:])
    for how in ((), SUDO):
        assert said(box, *how, "sh", "-c", REACH, "reach", *host_paths) == ""
        sockets = "find / -path /proc -prune -o -type s -print 2>/dev/null; true"
        assert said(box, *how, "sh", "-c", sockets) == ""
        listed = said(box, *how, "ls", "/var/log/agents-sandbox").split()
        assert {name.rpartition(".std")[0] for name in listed} == {one.exec_id for one in box.all()}
        unix = said(box, *how, "cat", "/proc/net/unix")
        assert not re.search("docker|containerd|agbox", unix), unix
    # Not even its own container's root ends the guest.
    assert said(box, *SUDO, "sh", "-c", "kill -KILL 1; kill -STOP 1; echo alive") == "alive\n"
    assert output(box.get("of-its-own")) == "own\n"
    assert sandboxes.get("box-1").state == sandboxes.get("neighbour").state
