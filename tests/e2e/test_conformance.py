# SPDX-License-Identifier: Apache-2.0
"""Every client does what tests/conformance says, on a real engine and across a kill of the daemon."""

import json
import subprocess
from collections.abc import Callable

import pytest
from support.daemon import PrivateDaemon
from support.images import make_image
from support.sandboxes import CONFIG, emptied, started
from support.sdk import REPOSITORY, sdk_environment, sdk_go_program, sdk_python

CONFORMANCE = REPOSITORY / "tests" / "conformance"
CLIENTS: dict[str, Callable[[], list[str]]] = {
    "python": lambda: [sdk_python(), str(CONFORMANCE / "python" / "runner.py")],
    "python-sync": lambda: [sdk_python(), str(CONFORMANCE / "python" / "runner_sync.py")],
    "go": lambda: [sdk_go_program("conformance")],
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_conforms(client: str, make_daemon, engine, contract, pytestconfig: pytest.Config) -> None:
    daemon = started(make_daemon(engine=engine, config=CONFIG))
    image = make_image(engine.api, "conformance:1")
    command = [*CLIENTS[client](), str(CONFORMANCE / "scenarios.json"), f"c-{client}", image]
    command += ["--long"] if pytestconfig.getoption("--long") else []
    # Closes the pipes and waits; the stdin that it closes ends a runner that waits for an answer.
    with subprocess.Popen(command, env=sdk_environment(daemon), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as runner:
        try:
            outcomes = converse(runner, daemon)
        except BaseException:
            runner.kill()
            raise
    assert runner.returncode == 0
    failed = "\n".join(f"{name}: {error}" for name, error in outcomes.items() if error)
    assert not failed, failed
    table = json.loads((CONFORMANCE / "scenarios.json").read_text())["scenarios"]
    is_long = pytestconfig.getoption("--long")
    assert list(outcomes) == [one["name"] for one in table if is_long or not one.get("long")]
    with emptied(daemon, contract, engine) as sandboxes:
        assert len(sandboxes.page().sandboxes) == 0


def converse(runner: subprocess.Popen, daemon: PrivateDaemon) -> dict[str, str | None]:
    """What became of each scenario; does what the runner asks for."""
    outcomes = {}
    for line in runner.stdout:
        message = json.loads(line)
        if "scenario" in message:
            outcomes[message["scenario"]] = message["error"]
            continue
        if message["ask"] == "kill_daemon":
            daemon.kill()
        else:
            daemon.start()
        print("done", file=runner.stdin, flush=True)
    return outcomes
