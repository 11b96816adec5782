# SPDX-License-Identifier: Apache-2.0
"""Steps of a user who lets an agent work on a project: the project, the terminal, and the session that is recorded."""

import os
import subprocess
from pathlib import Path

from support.daemon import PrivateDaemon
from support.tmux import Terminal

SIZE = (240, 60)  # no line wraps, however long the path of a directory is


def agbox(daemon: PrivateDaemon, *arguments: str, **options) -> tuple[int, str, str]:
    done = daemon.agbox(*arguments, **options)
    return done.returncode, done.stdout, done.stderr


def as_user(daemon: PrivateDaemon, *argv: str, **options) -> subprocess.CompletedProcess:
    options = {"cwd": daemon.home, "check": True} | options
    return subprocess.run(daemon.user.command(list(argv)), env=daemon.environment, capture_output=True, text=True,
                          timeout=60, stdin=subprocess.DEVNULL, **options)


def git(daemon: PrivateDaemon, directory: Path, *arguments: str) -> str:
    settings = ["-c", "user.name=me", "-c", "user.email=me@example.com"]
    return as_user(daemon, "git", *settings, *arguments, cwd=directory).stdout


def project(daemon: PrivateDaemon, name: str, files: dict[str, str], repository: bool = True) -> Path:
    directory = daemon.home / name
    for path, content in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(content)
    for place, _, names in os.walk(directory):
        for path in (place, *(os.path.join(place, each) for each in names)):
            os.chown(path, daemon.user.uid, daemon.user.gid)
    if repository:
        git(daemon, directory, "init", "--quiet")
        git(daemon, directory, "add", "--all")
        git(daemon, directory, "commit", "--quiet", "--message", "begin")
    return directory


def session(daemon: PrivateDaemon, place: Path, directory: Path, *arguments: str) -> Terminal:
    """agbox with a terminal of its own, in a directory."""
    argv = ["env", "-C", str(directory), str(daemon.bin_dir / "agbox"), *arguments]
    return Terminal(place, daemon.user.command(argv), daemon.environment, SIZE)


def last_session(daemon: PrivateDaemon) -> str:
    return agbox(daemon, "diff", "--list", "-q")[1].splitlines()[0]
