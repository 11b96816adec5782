# SPDX-License-Identifier: Apache-2.0
"""Kills a program that uses the store, at every failpoint and at random, and checks what is left; the same on a
full or read-only disk.

After each kill the next run first prints everything that is stored. Compared with what was acknowledged:
nothing is lost, sequences have no gap, an ID is never reused, no change is partial, and the order of all events
neither changes nor uses a position twice.

AGBOX_KILLS (default 500) is the number of random kills, AGBOX_KILL_SEED repeats a run's choices.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
BIN_DIR = Path(os.environ.get("AGBOX_BIN_DIR", REPOSITORY / "build/release/bin"))
DRIVER = BIN_DIR.parent / "tests" / "store_driver"
KILLS = int(os.environ.get("AGBOX_KILLS", "500"))
SEED = int(os.environ.get("AGBOX_KILL_SEED", str(random.SystemRandom().randrange(2**32))))
KILLS_PER_STORE = 25  # many, but the content is still quick to check


class Model:
    """What the store has acknowledged so far."""

    def __init__(self) -> None:
        self.created: set[str] = set()
        self.counted: dict[str, int] = defaultdict(int)
        self.started: set[str] = set()
        self.ended: set[str] = set()
        self.deleted: set[str] = set()
        self.purging: set[str] = set()  # requested, so it may be gone
        self.purged: set[str] = set()
        self.sequences: dict[tuple[str, int], str] = {}
        self.positions: dict[str, int] = {}  # by event ID
        self.newest = 0
        self.instance: str | None = None

    def acknowledge(self, line: str) -> None:
        word, *rest = line.split()
        if word == "created":
            self.created.add(rest[0])
            self.sequences[rest[0], int(rest[1])] = "create"
        elif word == "counted":
            sandbox, count = rest[0], int(rest[1])
            self.counted[sandbox] = max(self.counted[sandbox], count)
            self.sequences[sandbox, int(rest[2])] = f"{count}.first"
            self.sequences[sandbox, int(rest[3])] = f"{count}.last"
        elif word in ("started", "ended"):
            (self.started if word == "started" else self.ended).add(rest[0])
            sandbox = rest[0].removeprefix("e-").rsplit("-", 1)[0]
            self.sequences[sandbox, int(rest[1])] = f"{word}/{rest[0]}"
        elif word == "deleted":
            self.deleted.add(rest[0])
            self.sequences[rest[0], int(rest[1])] = "delete"
        elif word == "purging":
            self.purging.add(rest[0])
        elif word == "purged":
            self.purged.add(rest[0])
        elif word == "reused":
            raise AssertionError(f"id {rest[0]} was given twice")
        else:
            assert word in ("refused", "deleting", "passed"), line


class Stored:
    """The content that the store reports."""

    def __init__(self, lines: list[str]) -> None:
        self.sandboxes: dict[str, list[str]] = {}
        self.events: dict[str, list[tuple[int, str]]] = defaultdict(list)
        self.execs: dict[str, str] = {}
        self.order: list[tuple[int, str]] = []
        self.newest = 0
        self.instance = ""
        for line in lines:
            word, *rest = line.split()
            if word == "instance":
                self.instance = rest[0]
            elif word == "sandbox":
                assert rest[0] not in self.sandboxes, f"{rest[0]} is stored twice"
                self.sandboxes[rest[0]] = rest[1:]
            elif word == "event":
                assert rest[3] == f"{rest[0]}-{rest[1]}", line
                self.events[rest[0]].append((int(rest[1]), rest[2]))
            elif word == "exec":
                self.execs[rest[1]] = rest[2]
            elif word == "ordered":
                self.order.append((int(rest[0]), rest[1]))
            elif word == "newest":
                self.newest = int(rest[0])
            elif word == "reused":
                raise AssertionError(f"id {rest[0]} was given twice")
            else:
                raise AssertionError(line)

    def check(self, model: Model) -> None:
        assert model.instance in (None, self.instance), "the store has become another one"
        model.instance = self.instance
        for sandbox, fields in self.sandboxes.items():
            self._check_whole(sandbox, fields)
        self._check_nothing_lost(model)
        self._check_order(model)

    def _check_order(self, model: Model) -> None:
        positions = [position for position, _ in self.order]
        assert positions == sorted(set(positions)), "the order of all events is none"
        of_sandbox = [f"{sandbox}-{number}" for sandbox, events in self.events.items() for number, _ in events]
        assert sorted(event for _, event in self.order) == sorted(of_sandbox), "the order lacks events"
        own: dict[str, list[int]] = defaultdict(list)
        for _, event in self.order:
            sandbox, _, number = event.rpartition("-")
            own[sandbox].append(int(number))
        for sandbox, numbers in own.items():
            assert numbers == sorted(numbers), f"{sandbox} is out of order: {numbers}"
        for position, event in self.order:
            assert model.positions.get(event, position) == position, f"{event} has another position"
            assert event in model.positions or position > model.newest, f"{event} has a position that was used"
            model.positions[event] = position
        assert self.newest >= max([model.newest, *positions]), "positions go backwards"
        model.newest = self.newest

    def _check_whole(self, sandbox: str, fields: list[str]) -> None:
        """Each change is complete or absent."""
        attempts, changed_at, starts, life, image = fields
        tokens = [token for _, token in self.events[sandbox]]
        sequences = [sequence for sequence, _ in self.events[sandbox]]
        assert sequences == list(range(1, len(sequences) + 1)), f"{sandbox} has a gap: {sequences}"
        assert len(set(tokens)) == len(tokens), f"{sandbox} has an event twice: {tokens}"
        assert image == sandbox and tokens and tokens[0] == "create", f"{sandbox}: {tokens}"
        counts = [token for token in tokens if token.endswith((".first", ".last"))]
        highest = len(counts) // 2
        expected = [f"{k}.{end}" for k in range(1, highest + 1) for end in ("first", "last")]
        assert counts == expected, f"{sandbox} has half a change: {counts}"
        assert [attempts, changed_at, starts] == [str(highest)] * 3, f"{sandbox}: {fields}, {counts}"
        assert (life == "deleted") == ("delete" in tokens), f"{sandbox}: {life}, {tokens}"
        for word, states in (("started", ("running", "ended")), ("ended", ("ended",))):
            told = {token.split("/")[1] for token in tokens if token.startswith(word + "/")}
            held = {e for e, state in self.execs.items() if e.startswith(f"e-{sandbox}-") and state in states}
            assert told == held, f"{sandbox}: execs {word}: events say {told}, records {held}"

    def _check_nothing_lost(self, model: Model) -> None:
        for sandbox in model.purged:
            assert sandbox not in self.sandboxes, f"{sandbox} came back from its purge"
        gone = model.purging - self.sandboxes.keys()
        for sandbox in model.created - gone:
            assert sandbox in self.sandboxes, f"lost: {sandbox}"
        for (sandbox, sequence), token in model.sequences.items():
            if sandbox in gone:
                continue
            events = self.events[sandbox]
            assert sequence <= len(events), f"lost: event {sequence} ({token}) of {sandbox}"
            assert events[sequence - 1] == (sequence, token), f"changed: event {sequence} of {sandbox}"
        for sandbox in model.deleted - gone:
            assert self.sandboxes[sandbox][3] == "deleted", f"lost: the deletion of {sandbox}"


class Victim:
    """A store, the model of its expected content, and the runs that are killed."""

    def __init__(self, directory: Path, *options: str, wrapper: tuple[str, ...] = ()) -> None:
        self.path = directory / "data" / "ids.db"
        self.taken = directory.parent / f"{directory.name}.taken"
        self.options = options
        self.wrapper = wrapper
        self.model = Model()
        self.runs = 0

    def start(self, *options: str, failpoints: str = "") -> subprocess.Popen:
        self.runs += 1
        ids = sorted(self.model.created)
        self.taken.write_text("\n".join(random.sample(ids, min(10, len(ids)))))
        environment = {key: value for key, value in os.environ.items() if key != "AGBOX_FAILPOINTS"}
        if failpoints:
            environment["AGBOX_FAILPOINTS"] = failpoints
        command = [*self.wrapper, str(DRIVER), str(self.path), str(self.runs), f"taken={self.taken}"]
        return subprocess.Popen(
            [*command, *self.options, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def finish(self, process: subprocess.Popen, before: list[str] | None = None) -> tuple[int, str]:
        """Waits for the end and checks its output, of which `before` was already read; returns its exit code and
        stderr."""
        # Not communicate(), which misses what an earlier readline() left in the buffer. The driver ends by itself
        # after two minutes, so this does too.
        assert process.stdout and process.stderr
        with process:
            lines = (before or []) + process.stdout.read().splitlines()
            errors = process.stderr.read()
        if "go" in lines:
            begin = lines.index("go")
            Stored(lines[:begin]).check(self.model)
            for line in lines[begin + 1 :]:
                self.model.acknowledge(line)
        return process.returncode, errors

    def check(self) -> None:
        """Opens it once more without faults."""
        code, errors = self.finish(self.start("changes=1"))
        assert code == 0, errors


@pytest.fixture
def directory():
    path = Path(tempfile.mkdtemp(prefix="agbox-kills-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture(autouse=True)
def _seeded():
    if not DRIVER.exists():
        pytest.fail(f"{DRIVER} is missing: cmake --build --preset release --target store_driver")
    print(f"AGBOX_KILL_SEED={SEED}")
    random.seed(SEED)


def failpoints_in_source() -> set[str]:
    names = set()
    for source in (REPOSITORY / "src/store").glob("*.cpp"):
        names |= set(re.findall(r'AGBOX_FAILPOINT(?:_FAILS)?\("(store\.[a-z_.]+)"\)', source.read_text()))
    return names


CREATE = {name for name in failpoints_in_source() if name.startswith("store.create.")}
MIGRATE = {name for name in failpoints_in_source() if name.startswith("store.migrate.")}
BALLAST = {name for name in failpoints_in_source() if name.startswith("store.ballast.")}
WRITE = failpoints_in_source() - CREATE - MIGRATE - BALLAST


def kill_at(victim: Victim, failpoint: str, passage: int, *options: str) -> None:
    process = victim.start("changes=400", *options, failpoints=f"{failpoint}=kill@{passage}")
    code, errors = victim.finish(process)
    # A wrapper reports its child's signal as a shell does.
    assert code in (-signal.SIGKILL, 128 + signal.SIGKILL), f"{failpoint} was not passed: {errors}"


@pytest.mark.parametrize("failpoint", sorted(WRITE))
def test_killed_while_writing(directory: Path, failpoint: str) -> None:
    victim = Victim(directory / "store")
    for passage in (1, 2, random.randint(3, 8)):
        if "checkpoint" in failpoint:
            passage = min(passage, 2)
        kill_at(victim, failpoint, passage)
    victim.check()


@pytest.mark.parametrize("failpoint", sorted(CREATE | {"store.ballast.before_make", "store.ballast.after_make"}))
def test_killed_while_the_store_is_made(directory: Path, failpoint: str) -> None:
    victim = Victim(directory / "store")
    kill_at(victim, failpoint, 1)
    assert not victim.model.created
    victim.check()
    names = {path.name for path in victim.path.parent.iterdir()}
    assert names == {"ids.db", "ids.db.ballast"}


@pytest.mark.parametrize("failpoint", sorted(MIGRATE))
@pytest.mark.parametrize("step", [1, 2])
def test_killed_while_migrating(directory: Path, failpoint: str, step: int) -> None:
    victim = Victim(directory / "store")
    victim.finish(victim.start("changes=20"))
    kill_at(victim, failpoint, step, "plan=migrate")
    code, errors = victim.finish(victim.start("changes=5", "plan=migrate"))
    assert code == 0, errors
    # The backup before each step is a complete store; the first one has our own schema.
    copies = victim.path.parent.glob("ids.db.before-*")
    min(copies, key=lambda copy: int(copy.name.rpartition("-")[2])).rename(victim.path)
    other = Victim(directory / "store")
    code, errors = other.finish(other.start("changes=1"))
    assert code == 0, errors


class SmallDisk:
    """A private tmpfs, in a mount namespace that ends with it."""

    def __init__(self, directory: Path, size: str) -> None:
        self.directory = directory
        directory.mkdir()
        user = [] if os.geteuid() == 0 else ["-r"]
        script = f'mount -t tmpfs -o size={size},mode=700 none "$1" && echo ready && exec sleep 300'
        self.holder = subprocess.Popen(
            ["unshare", *user, "-m", "sh", "-c", script, "sh", str(directory)], stdout=subprocess.PIPE, text=True
        )
        assert self.holder.stdout and self.holder.stdout.readline() == "ready\n"
        enter = [] if os.geteuid() == 0 else ["-U", "--preserve-credentials"]
        self.wrapper = ("nsenter", "-t", str(self.holder.pid), "-m", *enter, "--")

    def run(self, *command: str) -> subprocess.CompletedProcess:
        return subprocess.run([*self.wrapper, *command], capture_output=True, text=True, timeout=60)

    def fill(self) -> None:
        self.run("sh", "-c", f"cat /dev/zero > {self.directory}/filler")

    def make_room(self) -> None:
        self.run("rm", "-f", f"{self.directory}/filler")

    def close(self) -> None:
        self.holder.kill()
        self.holder.communicate()


@pytest.fixture
def small_disk(directory: Path):
    disk = SmallDisk(directory / "disk", "2m")
    yield disk
    disk.close()


@pytest.fixture
def roomy_disk(directory: Path):
    disk = SmallDisk(directory / "disk", "64m")
    yield disk
    disk.close()


def read_until(process: subprocess.Popen, is_it, seconds: float = 60) -> list[str]:
    lines = []
    deadline = time.monotonic() + seconds
    assert process.stdout
    while time.monotonic() < deadline:
        line = process.stdout.readline().rstrip("\n")
        lines.append(line)
        if is_it(line):
            return lines
    raise AssertionError(f"not seen within {seconds} s; last: {lines[-5:]}")


@pytest.mark.parametrize("failpoint", sorted(BALLAST))
def test_killed_while_short_of_room(small_disk: SmallDisk, failpoint: str) -> None:
    victim = Victim(small_disk.directory / "store", "ballast=200000", wrapper=small_disk.wrapper)
    victim.check()
    making = "make" in failpoint
    if making:  # the ballast is released, and recreated when there is space
        small_disk.run("rm", f"{victim.path}.ballast")
    process = victim.start(failpoints=f"{failpoint}=kill@1")
    code, errors = victim.finish(process)
    assert code in (-signal.SIGKILL, 128 + signal.SIGKILL), errors
    small_disk.run("rm", "-f", f"{victim.path}.ballast")  # enough space to read the content
    process = victim.start("ballast=4096", "changes=0")
    code, errors = victim.finish(process)
    assert code == 0, errors


def test_a_full_disk_refuses_new_work_loses_nothing_and_recovers(roomy_disk: SmallDisk) -> None:
    # More than the log ever holds, so that a checkpoint does not look like free space.
    victim = Victim(roomy_disk.directory / "store", "ballast=8000000", wrapper=roomy_disk.wrapper)
    victim.check()
    has_ballast = ("test", "-e", f"{victim.path}.ballast")
    process = victim.start()
    roomy_disk.fill()
    lines = read_until(process, lambda line: line == "refused RESOURCE_EXHAUSTED")
    assert roomy_disk.run(*has_ballast).returncode != 0, "the ballast was not given up"
    roomy_disk.make_room()
    lines += read_until(process, lambda line: line.startswith("created "))
    assert roomy_disk.run(*has_ballast).returncode == 0, "the ballast was not made again"
    process.kill()
    victim.finish(process, lines)
    code, errors = victim.finish(victim.start("changes=0", "ballast=4096"))
    assert code == 0, errors


def test_accepted_work_waits_for_room_and_is_never_dropped(small_disk: SmallDisk) -> None:
    victim = Victim(small_disk.directory / "store", "ballast=100000", wrapper=small_disk.wrapper)
    victim.check()
    process = victim.start("insist=1")
    lines: list[str] = []
    assert process.stdout and process.stderr
    stdout = process.stdout
    reader = threading.Thread(target=lambda: lines.extend(line.rstrip("\n") for line in stdout))
    reader.start()
    small_disk.fill()  # the ballast is released, and used up by the driver itself
    errors = iter(process.stderr.readline, "")
    assert any("store cannot write, retrying" in line for line in errors), "it never ran out of room"
    small_disk.make_room()
    assert any("store can write again" in line for line in errors), "it never recovered"
    process.kill()
    reader.join()
    assert not [line for line in lines if "RESOURCE_EXHAUSTED" in line]
    victim.finish(process, lines)
    code, said = victim.finish(victim.start("changes=0", "ballast=4096"))
    assert code == 0, said


def test_a_full_disk_without_a_store_leaves_nothing(small_disk: SmallDisk) -> None:
    small_disk.fill()
    victim = Victim(small_disk.directory / "store", "ballast=400000", wrapper=small_disk.wrapper)
    code, errors = victim.finish(victim.start("changes=1"))
    assert code == 1
    assert "No space left on device" in errors
    assert small_disk.run("find", str(small_disk.directory), "-type", "f").stdout.split() == [
        f"{small_disk.directory}/filler"
    ]


def test_a_read_only_disk_is_refused_and_nothing_changes(small_disk: SmallDisk) -> None:
    victim = Victim(small_disk.directory / "store", "ballast=4096", wrapper=small_disk.wrapper)
    victim.check()
    before = small_disk.run("sh", "-c", f"cd {victim.path.parent} && sha256sum *").stdout
    assert before.count("\n") == 2
    assert small_disk.run("mount", "-o", "remount,ro", str(small_disk.directory)).returncode == 0
    code, errors = victim.finish(victim.start("changes=1"))
    assert code == 1
    assert "read-only file system" in errors
    assert small_disk.run("sh", "-c", f"cd {victim.path.parent} && sha256sum *").stdout == before
    other = Victim(small_disk.directory / "other", wrapper=small_disk.wrapper)
    code, errors = other.finish(other.start("changes=1"))
    assert code == 1
    assert "Read-only file system" in errors


def test_every_failpoint_of_the_store_is_killed_at(directory: Path, small_disk: SmallDisk) -> None:
    """The tests above take the names from the source; this checks that the runs pass them."""
    passed: set[str] = set()
    for options in (["changes=150"], ["changes=5", "plan=migrate"]):
        process = Victim(directory / "store").start(*options, "record=1")
        output, _ = process.communicate(timeout=120)
        passed |= {line.split()[1] for line in output.splitlines() if line.startswith("passed ")}
    assert failpoints_in_source() - BALLAST - passed == set()


def kill_at_random(directory: Path, kills: int, *options: str) -> None:
    acknowledged = 0
    victim = Victim(directory / "store-0", *options)
    for number in range(kills):
        if number % KILLS_PER_STORE == 0:
            victim = Victim(directory / f"store-{number}", *options)
        process = victim.start()
        before = []
        if random.random() < 0.8:  # the others are killed during start, open and load
            before = read_until(process, lambda line: line == "go")
        time.sleep(random.uniform(0, 0.04))  # the time of the power cut, not synchronisation
        process.kill()
        victim.finish(process, before)
        acknowledged += len(victim.model.sequences)
    victim.check()
    assert acknowledged > kills, "killed before there was anything to lose"


def test_killed_at_random(directory: Path) -> None:
    kill_at_random(directory, KILLS)


def test_killed_at_random_on_a_disk_that_forgets_what_was_not_synced(directory: Path) -> None:
    kill_at_random(directory, KILLS // 5, "vfs=forgetful")


def test_the_check_sees_a_missing_sync(directory: Path) -> None:
    """The same with a setting that is known to lose data: the check must detect it."""
    with pytest.raises(AssertionError, match="lost|twice|came back"):
        kill_at_random(directory, KILLS, "vfs=forgetful", "synchronous=NORMAL")
