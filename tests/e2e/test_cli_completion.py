# SPDX-License-Identifier: Apache-2.0
"""The completion scripts, loaded by the shells themselves."""

import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import time

import pytest

from test_cli_offline import agbox, run  # noqa: F401 (agbox is a fixture)

SHELLS = ["bash", "zsh", "fish"]


def commands_of(agbox: pathlib.Path, *path: str) -> list[str]:
    """What the help of a command lists: the truth that completion must agree with."""
    text = run(agbox, *path, "--help").stdout
    section = text.split("\nCommands:\n")[1].split("\n\n")[0] if "\nCommands:\n" in text else ""
    return [line.split()[0] for line in section.splitlines()]


def flags_of(agbox: pathlib.Path, *path: str) -> list[str]:
    section = run(agbox, *path, "--help").stdout.split("\nFlags:\n")[1].split("\n\n")[0]
    names = [re.match(r" +((?:--?[\w-]+(?:, )?)+)", line)[1] for line in section.splitlines()]
    return [name for each in names for name in each.split(", ")]


def complete_in_bash(agbox: pathlib.Path, *words: str) -> list[str]:
    """The candidates of bash's completion for the last word."""
    script = 'source <("$0" completion bash) && COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) && ' \
             '$(complete -p agbox | grep -q -- "-F _agbox agbox" && echo _agbox) && ' \
             'printf "%s\\n" "${COMPREPLY[@]}"'
    result = subprocess.run(["bash", "--norc", "-euc", script, agbox, "agbox", *words],
                            capture_output=True, text=True, check=True, timeout=30)
    assert result.stderr == ""
    return [line for line in result.stdout.splitlines() if line]


def test_bash_offers_every_command_and_flag(agbox):
    everything = commands_of(agbox) + flags_of(agbox)
    assert sorted(complete_in_bash(agbox, "")) == sorted(everything)
    for command in commands_of(agbox):
        expected = commands_of(agbox, command) + flags_of(agbox, command)
        assert sorted(complete_in_bash(agbox, command, "")) == sorted(expected)


def test_bash_completes_the_word_that_was_begun(agbox):
    assert complete_in_bash(agbox, "pi") == ["ping"]
    assert complete_in_bash(agbox, "ping", "--j") == ["--json"]
    assert complete_in_bash(agbox, "completion", "z") == ["zsh"]
    assert complete_in_bash(agbox, "nonsense") == []


def test_bash_offers_the_values_of_a_flag(agbox):
    tools = ["claude", "codex", "git", "uv", "npm", "apt", "opencode"]
    assert complete_in_bash(agbox, "sandbox", "create", "--builtin-tool", "") == tools
    assert complete_in_bash(agbox, "sandbox", "create", "--builtin-tool", "c") == ["claude", "codex"]
    assert "--builtin-tool" in complete_in_bash(agbox, "sandbox", "create", "--builtin-tool", "git", "--b")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_good_syntax_for_its_shell(agbox, shell):
    script = run(agbox, "completion", shell)
    assert (script.returncode, script.stderr) == (0, "")
    checked = subprocess.run([shell, "-n"], input=script.stdout, capture_output=True, text=True,
                             check=False, timeout=30)
    assert (checked.returncode, checked.stderr) == (0, "")


START = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'source <("$AGBOX" completion bash)'),
    "zsh": (["zsh", "-f", "-i"],
            'autoload -Uz compinit; compinit -u -D; source <("$AGBOX" completion zsh)'),
    "fish": (["fish", "--no-config", "--interactive"], '"$AGBOX" completion fish | source'),
}


def read_until(terminal: int, wanted: bytes, seconds: float = 60) -> bytes:
    """The terminal's output up to `wanted`; fails if that does not appear."""
    shown, deadline = b"", time.monotonic() + seconds
    while wanted not in shown:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([terminal], [], [], left)[0]:
            pytest.fail(f"the shell never showed {wanted!r}, but {shown!r}")
        shown += os.read(terminal, 4096)
    return shown


@pytest.mark.parametrize("shell", SHELLS)
def test_the_tab_key_completes_in_a_terminal(agbox, shell, tmp_path):
    command, load = START[shell]
    environment = {"PATH": f"{agbox.parent}:{os.environ['PATH']}", "AGBOX": str(agbox), "PS1": "$ ",
                   "HOME": str(tmp_path), "TERM": "dumb", "XDG_RUNTIME_DIR": str(tmp_path)}
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(tmp_path)
        os.execvpe(command[0], command, environment)
    try:
        # The answer is computed, so that it is not the echo of what we typed.
        os.write(terminal, f"{load}; printf 'loaded-%s\\n' done\n".encode())
        read_until(terminal, b"loaded-done")
        os.write(terminal, b"agbox comp\tfi\t --he\t\n")
        read_until(terminal, b"agbox completion fish [flags]")
        os.write(terminal, b"agbox sandbox create --builtin-tool opencode --builtin-tool clau\t --he\t\n")
        read_until(terminal, b"agbox sandbox create [flags]")
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(terminal)
