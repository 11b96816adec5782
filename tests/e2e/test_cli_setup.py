# SPDX-License-Identifier: Apache-2.0
"""agbox setup of a user without the rights that it needs: it shows what it would run, and runs it only when asked to.
In place of sudo is a script that notes what it is to run."""

import os
import shutil
from pathlib import Path

import pytest
from support.tmux import Terminal

NOTES = "sudo.log"
# Where a word of the command is in the file `refused`, it fails.
SUDO = f'#!/bin/sh\necho "$*" >> "$HOME/{NOTES}"\n! grep -qwF "$1" "$HOME/refused" 2>/dev/null\n'


@pytest.fixture
def machine(make_daemon, test_user, bin_dir):
    """A daemon whose program has no capability, and that was not started."""
    made = make_daemon(user=test_user)
    programs = made.directory / "programs"
    programs.mkdir(mode=0o700)
    for name in ("agbox", "agboxd", "agbox-guest"):
        shutil.copy2(bin_dir / name, programs / name)
    for name, script in (("sudo", SUDO), ("systemctl", "#!/bin/sh\nexit 1\n")):
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)
    test_user.share(programs)
    made.bin_dir = programs
    made.environment["PATH"] = f"{programs}:{os.environ['PATH']}"
    return made


def noted(machine) -> list[str]:
    notes = Path(machine.home / NOTES)
    return notes.read_text().splitlines() if notes.exists() else []


def in_terminal(machine, directory, answer: str) -> str:
    command = machine.user.command([str(machine.bin_dir / "agbox"), "setup"])
    with Terminal(directory, command, machine.environment, (200, 50)) as tty:
        tty.wait_for("Run them? [y/N]")
        tty.enter(answer)
        return tty.wait_for("<code 1>")


def test_it_runs_what_it_shows_and_only_then(machine, tmp_path):
    program = machine.bin_dir / "agboxd"
    commands = [f"chown root:docker {program}", f"chmod 0750 {program}", f"setcap cap_net_admin+ep {program}"]
    shown = machine.agbox("setup", "--no-input")
    assert (shown.returncode, shown.stdout) == (1, "")
    assert [line.strip() for line in shown.stderr.splitlines() if line.startswith("  sudo")] == [
        f"sudo {command}" for command in commands
    ]
    assert machine.agbox("setup", input="y\n").returncode == 1, "no terminal"
    in_terminal(machine, tmp_path, "n")
    in_terminal(machine, tmp_path, "")
    assert noted(machine) == []
    in_terminal(machine, tmp_path, "y")
    assert noted(machine) == commands


def test_nothing_is_run_after_a_command_that_failed(machine, tmp_path):
    (machine.home / "refused").write_text("chown\n")
    screen = in_terminal(machine, tmp_path, "y")
    assert "ended with exit code 1; nothing after it was run" in screen
    assert [line.split()[0] for line in noted(machine)] == ["chown"]
