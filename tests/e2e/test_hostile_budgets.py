# SPDX-License-Identifier: Apache-2.0
"""Sandboxes that use up what the kernel counts per user. They run as the daemon's user, and so does `agbox`: none
of them can keep a neighbour's exec from starting, its output from being followed, or daemon and CLI from
answering. Everything runs as one ordinary user; root may have more of most of it."""

import json

import pytest
from support.execs import CANCELLED, FAILED, FINISHED, STDOUT, Execs, output
from support.hostile_sandbox import hostile_program
from support.images import Image, make_image
from support.process import run
from support.sandboxes import CONFIG, connected, inside, left_over, started, wait_until
from support.watch import Watch

pytestmark = pytest.mark.engines("28")

PROGRAM = "/hostile-sandbox"
ANSWERS = 10  # of a watch
# What ping and doctor call it.
TITLES = {
    "descriptors": "descriptors in flight",
    "epoll-watches": "epoll watches",
    "inotify-instances": "inotify instances",
    "inotify-watches": "inotify watches",
}


@pytest.fixture
def image(bin_dir, engine):
    files = {PROGRAM: hostile_program(bin_dir).read_bytes()}
    return make_image(engine.api, "hostile-sandbox:1", Image(files=files))


@pytest.fixture
def daemon(make_daemon, test_user, engine):
    return started(make_daemon(user=test_user, engine=engine, config=CONFIG))


def hoard(sandboxes, budget: str) -> str:
    """Begins it in the sandbox `hostile`, and returns when nothing of it is left: how much it has."""
    execs = Execs(sandboxes, "hostile")
    execs.create(PROGRAM, "hoard", budget, exec_id="hoard")
    execs.wait_for_output("hoard", patience=180)
    return output(execs.get("hoard")).strip()


def check_commands(daemon, sandboxes, engine) -> None:
    """Of the neighbour: with the CLI, which follows their output, and with a client."""
    for number in range(3):
        ran = daemon.agbox("exec", "run", "neighbour", "--", "echo", f"hello {number}", timeout=60)
        assert (ran.returncode, ran.stdout) == (0, f"hello {number}\n"), ran.stderr
    neighbour = Execs(sandboxes, "neighbour")
    assert neighbour.run("true").state == FINISHED
    # What is written while a client follows arrives before the end.
    neighbour.run("sh", "-c", "rm -f /tmp/one /tmp/two; mkfifo /tmp/one /tmp/two")
    slow = neighbour.create("sh", "-c", "for i in one two; do echo $i; read x </tmp/$i; done").exec_id
    request = sandboxes.service.ReadExecOutputRequest(exec_id=slow, stream=STDOUT, follow=True)
    seen = b""
    for chunk in sandboxes.stub.ReadExecOutput(request, timeout=60):
        seen += chunk.data
        if chunk.data in (b"one\n", b"two\n"):
            inside(engine, "neighbour", "sh", "-c", f"echo >/tmp/{chunk.data.decode().strip()}")
    assert seen == b"one\ntwo\n"


def shortcoming(sandboxes) -> str:
    return sandboxes.stub.Ping(sandboxes.service.PingRequest(), timeout=10).limits_shortcoming


def findings(daemon) -> list[dict[str, str]]:
    answer = json.loads(daemon.agbox("doctor", "--json", timeout=120).stdout)
    return [finding for finding in answer["findings"] if finding["check"] == "user-limits"]


@pytest.mark.parametrize("budget", TITLES)
def test_a_sandbox_that_takes_all_of_a_budget_starves_no_one(
    daemon, engine, contract, image, budget, say
):
    with connected(daemon, contract) as sandboxes:
        for box in ("neighbour", "hostile"):
            sandboxes.create_ready(box, image)
        [before] = findings(daemon)
        assert before["verdict"] == "FINDING_VERDICT_OK", before
        say(f"{budget}: {hoard(sandboxes, budget)}")

    # New connections, new sandboxes, commands and their output, for clients and for the CLI.
    with connected(daemon, contract) as sandboxes:
        check_commands(daemon, sandboxes, engine)
        sandboxes.create_ready("late", image)
        with Watch(daemon, contract, "neighbour", runs_commands=True) as beside:
            beside.wait_for(ANSWERS)
        [finding] = findings(daemon)
        if budget == "descriptors":  # a container may have so few that the daemon has enough
            assert finding["verdict"] == "FINDING_VERDICT_OK", finding
        else:
            assert finding["verdict"] == "FINDING_VERDICT_WARNING", finding
            assert TITLES[budget] in finding["sentence"] and "sandbox hostile" in finding["sentence"]
            assert finding["remedy"] == "agbox sandbox stop hostile"
        if budget in ("descriptors", "inotify-instances"):  # the daemon has its own since its start
            assert shortcoming(sandboxes) == ""

    # A daemon that starts now gets nothing of it.
    assert daemon.stop() == 0
    started(daemon)
    with connected(daemon, contract) as sandboxes:
        check_commands(daemon, sandboxes, engine)
        if budget != "descriptors":
            wait_until(lambda: "sandbox hostile" in shortcoming(sandboxes), "ping names the sandbox")
            assert TITLES[budget] in shortcoming(sandboxes)
            assert "sandbox hostile" in daemon.agbox("ping").stdout
        # The kernel takes many seconds to free millions of watches, longer than engines wait for a container.
        hostile = Execs(sandboxes, "hostile")
        hostile.cancel("hoard")
        assert hostile.wait("hoard").state == CANCELLED
        [after] = findings(daemon)
        assert after["verdict"] == "FINDING_VERDICT_OK", after
        for box in ("hostile", "neighbour", "late"):
            sandboxes.delete_wait(box)
    assert daemon.stop() == 0
    assert left_over(engine) == []


def test_an_exec_that_cannot_be_handed_over_fails_with_the_reason(
    daemon, test_user, engine, contract, image
):
    """The daemon's limit is lowered below a container's: as for a user whose own limit is low."""
    with connected(daemon, contract) as sandboxes:
        for box in ("neighbour", "hostile"):
            sandboxes.create_ready(box, image)
        neighbour = Execs(sandboxes, "neighbour")
        run(*test_user.command(["prlimit", f"--pid={daemon.pid}", "--nofile=1024:"]))
        hoard(sandboxes, "descriptors")
        refused = [neighbour.create("true").exec_id for _ in range(3)]
        for exec_id in refused:
            status = neighbour.wait(exec_id)
            assert status.state == FAILED and status.error_code == "EXEC_RUN_FAILED"
            assert TITLES["descriptors"] in status.error
        wait_until(lambda: "sandbox hostile" in shortcoming(sandboxes), "ping names the sandbox")
        [finding] = findings(daemon)
        assert finding["verdict"] == "FINDING_VERDICT_BROKEN"
        assert TITLES["descriptors"] in finding["sentence"] and "sandbox hostile" in finding["sentence"]
        ran = daemon.agbox("exec", "run", "neighbour", "--", "true", timeout=60)
        assert ran.returncode != 0 and TITLES["descriptors"] in ran.stderr

        # Nothing is left of it once they are free.
        sandboxes.delete_wait("hostile")
        assert neighbour.run("true").state == FINISHED
        assert [finding["verdict"] for finding in findings(daemon)] == ["FINDING_VERDICT_OK"]
        sandboxes.delete_wait("neighbour")
    assert daemon.stop() == 0
    assert left_over(engine) == []
