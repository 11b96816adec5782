# SPDX-License-Identifier: Apache-2.0
"""A planted leak of each kind is detected and named until it is removed."""

import contextlib
import fcntl
import os
import pwd
import re
import shutil
import subprocess
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import support.run_directory
from kit.inner_run import InnerRun
from support.abandoned import remove_abandoned
from support.engine import remove_cgroups
from support.host_engine import HostEngine
from support.images import Image, make_image
from support.leaks import LeakCheck
from support.process import LoggedProcess, base_environment, kill_and_wait, run
from support.run_directory import MARK, RunDirectory
from support.user import edit_accounts, remove_account

# With the machine's own engine, accounts and network: one after the other.
pytestmark = pytest.mark.xdist_group("host")

NAME = "agbxleak"


@pytest.fixture
def check(run_directory: RunDirectory) -> LeakCheck:
    """A separate check, strict regardless of options: everything on the host counts."""
    return LeakCheck(run_directory)


def assert_caught(
    check: LeakCheck, plant: Callable, remove: Callable, words: tuple[str, ...]
) -> None:
    """The planted leak is reported in a line with these words, only until it is removed."""

    def named_in(leaks: list[str]) -> bool:
        return any(all(word in leak for word in words) for leak in leaks)

    before = check.snapshot()
    plant()
    try:
        leaks = before.leaks_in(check.snapshot())
    finally:
        remove()
    assert named_in(leaks), leaks
    assert not named_in(check.leaks_since(before))


@pytest.fixture
def caught(check: LeakCheck) -> Callable:
    return lambda plant, remove, *words: assert_caught(check, plant, remove, words)


@pytest.fixture
def engine_caught(leak_check: LeakCheck) -> Callable:
    """With the check of the run, which watches the engines of the run."""
    return lambda plant, remove, *words: assert_caught(leak_check, plant, remove, words)


def test_a_test_that_leaves_nothing_is_not_blamed(check: LeakCheck, directory: Path):
    before = check.snapshot()
    (directory / "file").write_text("removed with its directory")
    run("true")
    assert [leak for leak in check.leaks_since(before) if str(directory) in leak] == []


# --- on the host ---------------------------------------------------------------------------------


def test_a_link_is_caught(caught):
    caught(
        lambda: run("ip", "link", "add", NAME, "type", "bridge"),
        lambda: run("ip", "link", "delete", NAME),
        *("link of host", NAME),
    )


def test_a_named_network_namespace_is_caught(caught):
    caught(
        lambda: run("ip", "netns", "add", NAME),
        lambda: run("ip", "netns", "delete", NAME),
        *("named network namespace", NAME),
    )


@pytest.mark.parametrize("family", ["ip", "ip6", "inet", "arp", "bridge", "netdev"])
def test_a_firewall_table_is_caught(caught, family):
    caught(
        lambda: run("nft", "add", "table", family, NAME),
        lambda: run("nft", "delete", "table", family, NAME),
        *("firewall table of host", f"{family} {NAME}"),
    )


@pytest.mark.parametrize("program", ["iptables", "ip6tables"])
def test_an_iptables_chain_is_caught(caught, program):
    caught(
        lambda: run(program, "-w", "-N", NAME),
        lambda: run(program, "-w", "-X", NAME),
        *(f"{program} chain of host", NAME),
    )


def test_a_mount_is_caught(caught, directory):
    caught(
        lambda: run("mount", "-t", "tmpfs", "tmpfs", directory),
        lambda: run("umount", directory),
        *("mount", str(directory)),
    )


def test_a_file_in_the_directory_of_the_run_is_caught(caught, run_directory):
    path = run_directory.path / "forgotten"
    caught(lambda: path.write_text(""), path.unlink, "file", str(path))


@pytest.mark.parametrize("name", ["agbx-forgotten", "agbox.sock", "agents-sandbox"])
def test_a_file_in_tmp_is_caught(caught, name):
    path = Path("/tmp") / f"{name}-{os.getpid()}"
    caught(lambda: path.write_text(""), path.unlink, "file", str(path))


def test_a_control_group_is_caught(caught, run_directory):
    name = f"{run_directory.path.name}-{NAME}"
    hierarchy = next(Path("/sys/fs/cgroup").glob("**/cgroup.procs")).parent
    caught(lambda: (hierarchy / name).mkdir(), lambda: remove_cgroups(name), "control group", name)


def test_an_account_is_caught(caught):
    caught(
        lambda: edit_accounts("useradd", "--system", "--no-create-home", NAME),
        lambda: edit_accounts("userdel", NAME),
        *("account", f"user {NAME}"),
    )


# --- processes -----------------------------------------------------------------------------------


@contextlib.contextmanager
def orphan(program: str | Path, environment: dict[str, str], **options) -> Iterator[int]:
    """Sleeps; no longer our child, and in its own session. Popen returns once the program is executed: before,
    the process would show what it was forked from."""
    script = textwrap.dedent(f"""
        from subprocess import DEVNULL, Popen
        print(Popen(["{program}", "600"], stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True).pid)
        """)
    pid = int(run("/usr/bin/python3", "-c", script, env=environment, **options).stdout)
    try:
        yield pid
    finally:
        kill_and_wait([pid])


@pytest.mark.parametrize("known_by", ["the mark", "the working directory", "the command line"])
def test_a_process_that_got_away_is_caught(check, directory, known_by):
    environment = base_environment()
    program, options = Path("/usr/bin/sleep"), {}
    if known_by != "the mark":
        environment = {"PATH": environment["PATH"]}
    if known_by == "the working directory":
        options["cwd"] = directory
    if known_by == "the command line":
        program = directory / "program"
        program.symlink_to("/usr/bin/sleep")
    before = check.snapshot()
    with orphan(program, environment, **options) as pid:
        leaks = before.leaks_in(check.snapshot())
    assert any(leak.startswith(f"process: pid {pid} ") for leak in leaks), leaks
    assert not any(f"pid {pid} " in leak for leak in check.leaks_since(before))


def test_a_child_without_a_mark_is_caught(check):
    before = check.snapshot()
    # Popen returns before the kernel shows the child's program; the child's output comes later.
    child = subprocess.Popen(
        ["/bin/sh", "-c", "echo here; read never"],
        env={},
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        child.stdout.readline()
        leaks = before.leaks_in(check.snapshot())
    finally:
        child.kill()
        child.communicate()
    assert any(leak.startswith(f"process: pid {child.pid} ") for leak in leaks), leaks


# --- on engines ----------------------------------------------------------------------------------


def test_a_container_is_caught(engine_caught, engine, image):
    engine_caught(
        lambda: engine.docker("create", "--name", NAME, image, "true"),
        lambda: engine.docker("rm", NAME),
        *(f"container of {engine}", NAME),
    )


def test_a_network_is_caught(engine_caught, engine):
    engine_caught(
        lambda: engine.docker("network", "create", NAME),
        lambda: engine.docker("network", "rm", NAME),
        *(f"network of {engine}", NAME),
    )


def test_a_volume_is_caught(engine_caught, engine):
    engine_caught(
        lambda: engine.docker("volume", "create", NAME),
        lambda: engine.docker("volume", "rm", NAME),
        *(f"volume of {engine}", NAME),
    )


def test_a_link_beside_an_engine_is_caught(engine_caught, engine):
    engine_caught(
        lambda: engine.world.run("ip", "link", "add", NAME, "type", "bridge"),
        lambda: engine.world.run("ip", "link", "delete", NAME),
        *(f"link of {engine}", NAME),
    )


def test_a_firewall_table_beside_an_engine_is_caught(engine_caught, engine):
    engine_caught(
        lambda: engine.world.run("nft", "add", "table", "inet", NAME),
        lambda: engine.world.run("nft", "delete", "table", "inet", NAME),
        *(f"firewall table of {engine}", NAME),
    )


def test_an_iptables_rule_on_one_of_our_bridges_is_caught(engine_caught, engine):
    rule = ("INPUT", "-i", "agbxtest0", "-j", "ACCEPT")
    engine_caught(
        lambda: engine.world.run("iptables", "-w", "-A", *rule),
        lambda: engine.world.run("iptables", "-w", "-D", *rule),
        *(f"iptables chain of {engine}", "agbxtest0"),
    )


def test_a_container_of_the_hosts_engine_is_caught(check: LeakCheck, host_engine: HostEngine):
    name = make_image(host_engine.api, f"{NAME}:1", Image())
    try:
        before = check.snapshot()
        host_engine.docker("create", "--name", NAME, name, "true")
        leaks = before.leaks_in(check.snapshot())
        host_engine.docker("rm", NAME)
    finally:
        host_engine.docker("rmi", name)
    assert any(leak.startswith(f"container of the host's engine: {NAME} ") for leak in leaks), leaks
    assert not any(NAME in leak for leak in check.leaks_since(before))


class ScriptedEngine:
    """Answers as the test wants it to, and has the containers that the test names."""

    socket = Path("/nowhere")

    def __init__(self, *answers: bool):
        self.api = self
        self.is_answering = True
        self.next_answers = list(answers)
        self.names: set[str] = set()

    def __repr__(self) -> str:
        return "scripted engine"

    def processes(self) -> set[int]:
        return set()

    def answers(self) -> bool:
        return self.next_answers.pop(0) if self.next_answers else self.is_answering

    def containers(self) -> set[str]:
        return self.names

    def networks(self) -> set[str]:
        return set()

    volumes = networks


@pytest.fixture
def scripted(run_directory: RunDirectory, monkeypatch) -> Iterator[tuple[LeakCheck, ScriptedEngine]]:
    monkeypatch.setattr("support.leaks._GRACE", 0.3)
    check, engine = LeakCheck(run_directory, beside_others=True), ScriptedEngine()
    with check.watching(engine):
        yield check, engine


def test_an_engine_that_is_silent_for_a_moment_is_looked_at_again(scripted):
    check, engine = scripted
    before = check.before_a_test()
    engine.names = {"forgotten"}
    engine.next_answers = [False]
    assert check.leaks_since(before) == ["container of scripted engine: forgotten"]


def test_an_engine_that_stays_silent_is_reported(scripted):
    check, engine = scripted
    before = check.before_a_test()
    engine.is_answering = False
    assert check.leaks_since(before) == ["engine that does not answer: scripted engine"]


def test_no_test_begins_without_the_answer_of_every_engine(scripted):
    check, engine = scripted
    engine.next_answers = [False]
    before = check.before_a_test()
    engine.names = {"forgotten"}
    assert check.leaks_since(before) == ["container of scripted engine: forgotten"]
    engine.is_answering = False
    with pytest.raises(RuntimeError, match="scripted engine: does not answer before the test"):
        check.before_a_test()


# --- as pytest sees it ---------------------------------------------------------------------------


def test_the_fixture_blames_the_test_that_left_something(directory):
    """A small pytest run: the leaking test fails, the next one does not."""
    inner = InnerRun(
        directory,
        """
        def test_leaks():
            subprocess.run(["sh", "-c", "sleep 601 >/dev/null 2>&1 &"], check=True)

        def test_clean():
            pass

        def test_skips():
            pytest.skip("nothing to run with")
        """,
    )
    done = run(*inner.command, check=False, cwd=directory)
    try:
        # What is still there at the end is the run's too.
        assert done.returncode == pytest.ExitCode.INTERNAL_ERROR, done.stdout + done.stderr
        assert "test_inner.py::test_leaks left behind:" in done.stdout
        assert "sleep 601" in done.stdout
        assert "test_inner.py::test_clean left behind" not in done.stdout
        assert "a test must not skip" in done.stdout
    finally:
        stray = re.findall(r"process: pid (\d+) .*sleep 601", done.stdout)
        kill_and_wait({int(pid) for pid in stray})


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_what_the_whole_run_left_is_not_blamed_on_its_last_test(directory, workers):
    inner = InnerRun(
        directory,
        """
        @pytest.fixture(scope="session")
        def careless(leak_check):
            yield
            subprocess.run(["sh", "-c", "sleep 602 >/dev/null 2>&1 &"], check=True)

        def test_passes(careless):
            pass
        """,
    )
    done = run(*inner.command, *workers, check=False, cwd=directory)
    stray = re.findall(r"process: pid (\d+) .*sleep 602", done.stdout + done.stderr)
    kill_and_wait({int(pid) for pid in stray})
    assert done.returncode == pytest.ExitCode.INTERNAL_ERROR, done.stdout + done.stderr
    assert "this test run left behind:" in done.stderr and stray
    assert "1 passed" in done.stdout and "error" not in done.stdout


@pytest.mark.engines("20.10")
def test_the_next_run_removes_leftovers_of_a_killed_run(
    directory, check, engine_name, monkeypatch
):
    monkeypatch.setenv("AGBOX_TEST_TMP", str(directory))
    before = check.snapshot()
    inner = InnerRun(
        directory,
        f"""
        def test_hangs(make_engine, test_user):
            engine = make_engine("{engine_name}")
            make_image(engine.api, "inner:1")
            engine.docker("run", "--detach", "inner:1", "sleep", "600")
            print("all is up", test_user.name, flush=True)
            os.read(os.pipe()[0], 1)
        """,
    )
    environment = {**base_environment(), "AGBOX_TEST_TMP": str(directory)}
    process = LoggedProcess("inner pytest", [*inner.command, "-s"], environment, cwd=directory)
    up = process.wait_for_line(lambda line: "all is up" in line, "the inner test", timeout=60)
    user = up.split()[-1]
    assert pwd.getpwnam(user)
    process.kill()
    remove_abandoned()
    assert list(directory.glob("agbx-*")) == []
    assert [leak for leak in check.leaks_since(before) if user in leak or str(directory) in leak] == []


def test_concurrent_starts_and_ends_of_runs(directory):
    """Every second one of each is abandoned."""
    rounds = """
        import os
        from support.abandoned import remove_abandoned
        from support.run_directory import RunDirectory
        for number in range(20):
            run = RunDirectory()
            remove_abandoned()
            if number % 2:
                run.remove()
            else:
                os.close(run._lock)
        remove_abandoned()
    """
    environment = {
        **base_environment(),
        "AGBOX_TEST_TMP": str(directory),
        "PYTHONPATH": str(Path(__file__).parents[1]),
    }
    command = ["/usr/bin/python3", "-c", textwrap.dedent(rounds)]
    runs = [LoggedProcess(f"run {number}", command, environment) for number in range(4)]
    assert [run.wait() for run in runs] == [0] * len(runs), [run.tail() for run in runs]
    assert list(directory.glob("agbx-*")) == []


def test_a_lock_on_the_directory_of_runs_holds_nobody_up(directory, monkeypatch):
    monkeypatch.setenv("AGBOX_TEST_TMP", str(directory))
    monkeypatch.setenv(MARK, os.environ[MARK])  # restored: the other run removes its own
    parent = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(parent, fcntl.LOCK_EX)
        RunDirectory().remove()
    finally:
        os.close(parent)


def test_a_run_that_cannot_begin_says_why(directory, monkeypatch):
    monkeypatch.setattr(support.run_directory, "_CHANGE_LOCK", directory / "lock")
    monkeypatch.setattr(support.run_directory, "_CHANGE_TIMEOUT", 0.1)
    with (directory / "lock").open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(RuntimeError, match="lock is still locked after 0.1 s"):
            RunDirectory()


def test_a_directory_that_goes_while_abandoned_ones_are_looked_for_harms_nothing(directory, monkeypatch):
    monkeypatch.setattr(Path, "glob", lambda *_: [directory / "agbx-gone"])
    remove_abandoned()


def test_an_abandoned_user_goes_also_if_its_directory_went_before(directory):
    name, directory = "agbx00beef", directory / "agbx-00beef"
    home = directory / "u0" / "home"
    edit_accounts("useradd", "--system", "--no-create-home", "--home-dir", home, name)
    try:
        home.mkdir(parents=True)
        remove_abandoned()
        assert pwd.getpwnam(name), "its run may be alive"
        shutil.rmtree(directory)
        remove_abandoned()
        with pytest.raises(KeyError):
            pwd.getpwnam(name)
    finally:
        remove_account(name, directory)
