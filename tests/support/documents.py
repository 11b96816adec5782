# SPDX-License-Identifier: Apache-2.0
"""The examples of the documents: their blocks, and sessions in a shell that are run again and compared."""

import re
from pathlib import Path

from support.contract import REPOSITORY
from support.daemon import PrivateDaemon
from support.process import run

# What differs from run to run: generated IDs, times, and how wide a table is.
_CHANGING = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "<id>"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "<time>"),
    (re.compile(r"\d+(\.\d+)?(ms|s)\b"), "<duration>"),
    (re.compile(r" +"), " "),
)
_END = "\x1e"  # of the output of one command


def blocks(document: str, language: str) -> list[str]:
    text = (REPOSITORY / document).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def commands_of(session: str) -> list[str]:
    return [line.removeprefix("$ ") for line in session.splitlines() if line.startswith("$ ")]


def run_session(daemon: PrivateDaemon, session: str) -> str:
    """Its commands, one after another in one shell, each followed by what it prints, without trailing blanks."""
    commands = commands_of(session)
    # The end of each command is marked, and $? stays what it left.
    script = "".join(f"{command}\n_code=$?; printf '\\036'; (exit $_code)\n" for command in commands)
    printed = run_script(daemon, f"exec 2>&1\n{script}", check=False).split(_END)
    assert len(printed) == len(commands) + 1, f"the shell ended early:\n{commands}\n{printed}"
    transcript = "".join(f"$ {command}\n{output}" for command, output in zip(commands, printed))
    return re.sub(r" +$", "", transcript.replace(str(daemon.home), "/home/me"), flags=re.M)


def run_script(daemon: PrivateDaemon, script: str, check: bool = True) -> str:
    """In the home directory of the daemon's user, up to the first command that fails."""
    argv = ["env", f"PATH={daemon.bin_dir}:{daemon.environment['PATH']}", "bash", "-c" if not check else "-ec", script]
    if daemon.user:
        argv = daemon.user.command(argv)
    return run(*argv, env=daemon.environment, cwd=daemon.home, check=check, timeout=120).stdout


def differences(shown: str, transcript: str) -> list[str]:
    """The lines that the document shows and the session did not print there; a line "..." stands for any lines."""
    found = [_unchanging(line) for line in transcript.splitlines()]
    wrong, anything = [], False
    position = 0
    for line in shown.splitlines():
        if line == "...":
            anything = True
            continue
        expected = _unchanging(line)
        if anything and expected in found[position:]:
            position = found.index(expected, position)
        if position >= len(found) or found[position] != expected:
            wrong.append(line)
        position += 1
        anything = False
    if not anything and position < len(found):
        wrong.append(f"and nothing about: {found[position:]}")
    return wrong


def _unchanging(line: str) -> str:
    for pattern, name in _CHANGING:
        line = pattern.sub(name, line)
    return line.rstrip()


def replace_block(document: str, language: str, old: str, new: str) -> None:
    path: Path = REPOSITORY / document
    text = path.read_text()
    before = f"```{language}\n{old}```"
    assert text.count(before) == 1, f"{document} has this block not exactly once:\n{old}"
    path.write_text(text.replace(before, f"```{language}\n{new}```"))
