# SPDX-License-Identifier: Apache-2.0
"""The commands and flags of agbox that documents mention exist. They are compared with the man page,
which agbox makes of its own commands."""

import re
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "SECURITY.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
# Of scripts, of CMake and of Docker.
FLAGS_OF_OTHERS = {"--component", "--machine-settings", "--network", "--prefix"}
# What follows their ID or image is another program's.
TAKE_A_COMMAND = {"agbox exec", "agbox exec run", "agbox sandbox exec", "agbox run", "agbox sandbox create"}
EVERYWHERE = {"-h", "--help", "--version"}


class Command(NamedTuple):
    flags: set[str]
    with_value: set[str]


def manual(agbox: Path) -> dict[str, Command]:
    """The commands, and the groups of commands, which have no flags."""
    text = subprocess.run([str(agbox), "manual"], check=True, text=True, stdout=subprocess.PIPE, timeout=60).stdout
    text = text.replace("\\-", "-")
    commands: dict[str, Command] = {}
    for section in text.split("\n.SS ")[1:]:
        usage, _, rest = section.partition("\n")
        path = re.match(r"agbox( [a-z]+)*", usage)[0]
        command = commands[path] = Command(set(EVERYWHERE), set())
        for line in re.findall(r"^\.B (-.*)$", rest, re.M):
            flags = re.findall(r"(?:^|, )(-[\w-]*)", line)
            command.flags.update(flags)
            if re.search(r"[\w-] \S", line.replace(", ", ",")):
                command.with_value.update(flags)
        while path := path.rpartition(" ")[0]:
            commands.setdefault(path, Command(set(EVERYWHERE), set()))
    return commands | {"agbox help": Command(set(EVERYWHERE), set()), "agbox manual": Command(set(EVERYWHERE), set())}


@pytest.fixture(scope="module")
def commands(release_build: Path) -> dict[str, Command]:
    found = manual(release_build / "bin" / "agbox")
    assert "--keep" in found["agbox run"].flags and "-e" in found["agbox exec"].with_value
    return found


def code_of(document: str) -> list[str]:
    """The lines of blocks, in sessions only what is typed, and code spans."""
    lines = []
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```", document, re.M | re.S):
        lines += [line for line in block.splitlines() if language != "console" or line.startswith("$ ")]
    return lines + re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", document, flags=re.M | re.S))


def faults_of(code: str, commands: dict[str, Command]) -> list[str]:
    faults = []
    for match in re.finditer(r"(?:^|[\s(])agbox (?=[a-z-])", code):
        words = words_of(code[match.end() :].replace("\\|", "|"))
        path = "agbox"
        while words and f"{path} {words[0]}" in commands:
            path = f"{path} {words.pop(0)}"
        is_group = any(other.startswith(f"{path} ") for other in commands) and not commands[path].flags - EVERYWHERE
        if is_group and words and re.fullmatch(r"[a-z]+", words[0]):
            faults.append(f"{code}: there is no command {path} {words[0]}")
            continue
        faults += [f"{code}: {path} has no flag {flag}" for flag in unknown_flags(path, words, commands[path])]
    return faults


def words_of(text: str) -> list[str]:
    """Up to the end of the command, which in a table may be a list of alternatives: agbox sandbox create | list."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|;&")
    lexer.whitespace_split = True
    words = []
    try:
        for word in lexer:
            if set(word) <= set("|;&"):
                break
            words.append(word)
    except ValueError:  # a quote that another line closes
        pass
    return words


def unknown_flags(path: str, words: list[str], command: Command) -> list[str]:
    unknown, arguments = [], 0
    words = list(words)
    while words:
        word = words.pop(0)
        if word == "--" or word.startswith((")", ">")):
            break
        if not word.startswith("-") or word == "-":
            arguments += 1
            if path in TAKE_A_COMMAND and arguments == 2:
                break
            continue
        flag, equals, _ = word.partition("=")
        letters = [f"-{letter}" for letter in flag[1:]] if not flag.startswith("--") else []
        unknown += [flag] if flag not in command.flags and not (letters and set(letters) <= command.flags) else []
        if flag in command.with_value and not equals and words:
            words.pop(0)
    return unknown


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_and_their_flags_exist(document: Path, commands: dict[str, Command]) -> None:
    assert [fault for code in code_of(document.read_text()) for fault in faults_of(code, commands)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_flags_that_are_named_alone_are_those_of_a_command(document: Path, commands: dict[str, Command]) -> None:
    known = set().union(*(command.flags for command in commands.values())) | FLAGS_OF_OTHERS
    alone = {re.split(r"[ =\[]", code)[0] for code in code_of(document.read_text()) if re.match(r"--[a-z]", code)}
    assert alone - known == set()


@pytest.mark.parametrize(
    "code, fault",
    [
        ("agbox rnu debian:12", "there is no command agbox rnu"),
        ("agbox sandbox crate", "there is no command agbox sandbox crate"),
        ("x=$(agbox exec run --kwd /tmp box-1 -- ls -l)", "agbox exec run has no flag --kwd"),
        ("agbox exec box-1 ls --all; agbox ps --al", "agbox ps has no flag --al"),
        ("agbox run -itz debian:12 -- ls -Z", "agbox run has no flag -itz"),
    ],
)
def test_a_command_that_does_not_exist_is_found(code: str, fault: str, commands: dict[str, Command]) -> None:
    assert [found.removeprefix(f"{code}: ") for found in faults_of(code, commands)] == [fault]
