# SPDX-License-Identifier: Apache-2.0
"""scripts/quickstart from the point where everything is built: it shows its result, and neither its
end nor an interruption leaves anything behind."""
import glob
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

# With the machine's own engine, accounts and network: one after the other.
pytestmark = pytest.mark.xdist_group("host")

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [str(ROOT / "scripts" / "with-engine"), str(ROOT / "scripts" / "quickstart"), "--with-engine"]


def leftovers() -> tuple[set[str], set[str], set[str]]:
    """Directories of a quickstart, processes that work in them, and bridges of its sandboxes."""
    processes = set()
    for environment in glob.glob("/proc/[0-9]*/environ"):
        try:
            if b"/tmp/agbox-quickstart." in Path(environment).read_bytes():
                processes.add(environment.split("/")[2])
        except OSError:
            continue  # ended meanwhile
    bridges = set(glob.glob("/sys/class/net/agbx*"))
    return set(glob.glob("/tmp/agbox-quickstart.*")), processes, bridges


@pytest.fixture(autouse=True)
def nothing_is_left(release_build: Path):
    before = leftovers()
    yield
    for left, known in zip(leftovers(), before):
        assert left <= known


def test_it_shows_the_daemon_at_work() -> None:
    run = subprocess.run(COMMAND, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         env=os.environ | {"HOME": "/nonexistent"}, timeout=180)
    assert run.returncode == 0, run.stdout
    for shown in ("agbox ping", "Sandbox ready in", "as agbox in /workspace", "EXEC_FINISHED", "Sandbox deleted in"):
        assert shown in run.stdout, run.stdout
    assert run.stdout.count("    took ") == 5, "every step of the main job says how long it took"
    assert run.stdout.rstrip().endswith("Done: it works here")


def test_a_users_daemon_is_a_private_copy_with_the_capability(tmp_path: Path) -> None:
    """`id` says that we are a user, and sudo writes down what it is asked for."""
    for name, script in {"id": "echo 1000", "sudo": f'echo "$@" >>{tmp_path}/asked; shift; exec "$@"'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    run = subprocess.run(COMMAND, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}, timeout=180)
    assert run.returncode == 0, run.stdout
    asked = r"-- /usr/sbin/setcap cap_net_admin\+ep .*/build/quickstart\.\w+/bin/agboxd\n"
    assert re.fullmatch(asked, (tmp_path / "asked").read_text())


@pytest.mark.family(3)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["Starting a private daemon", "agbox sandbox create",
                                    "agbox exec run", "agbox sandbox delete"])
def test_an_interruption_cleans_up(moment: str, number: signal.Signals) -> None:
    # In a session of its own, so that SIGINT reaches the whole group as from a terminal.
    process = subprocess.Popen(COMMAND, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True)
    try:
        for line in process.stdout:
            if moment in line:
                break
        if number == signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        output, _ = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert process.returncode != 0, output
    assert "Done" not in output
