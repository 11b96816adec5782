# SPDX-License-Identifier: Apache-2.0
"""A real terminal: one window of a private tmux, whose keys a test types and whose screen it reads."""

import contextlib
import itertools
import os
import re
import select
import shlex
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from support.process import all_processes, descendants


_numbers = itertools.count()
_CURSOR_REPORT = re.compile(r"\^\[\[\d+;\d+R")


class Terminal:
    """The window shows the exit code of the command, and the settings that it left, when it has ended."""

    def __init__(self, directory: Path, argv: Sequence[str], environment: Mapping[str, str], size: tuple[int, int]):
        # A server that ends may still have its socket when the next one starts.
        self._socket = directory / f"tmux-{next(_numbers)}"
        columns, rows = size
        script = f"{shlex.join(argv)}; echo \"<code $?>\"; stty -a | grep -ow -e '-\\?icanon' -e '-\\?echo'; cat"
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), "sh", "-c", script,
                   env=dict(environment) | {"TERM": "screen"})

    def _tmux(self, *arguments: str, **options) -> str:
        argv = ["tmux", "-S", str(self._socket), *arguments]
        return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=30, **options).stdout

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_) -> None:
        """What ran in the window has ended afterwards: a shell still writes its history when its terminal is gone."""
        pane = int(self._tmux("display-message", "-p", "#{pane_pid}"))
        ends = []
        for pid in {pane} | descendants([pane], all_processes()):
            with contextlib.suppress(ProcessLookupError):
                ends.append(os.pidfd_open(pid))
        try:
            self._tmux("kill-server")
            for end in ends:
                assert select.select([end], [], [], 30)[0], "a program in the window ignores the end of its terminal"
        finally:
            for end in ends:
                os.close(end)

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)

    def enter(self, text: str) -> None:
        self.type(text)
        self.press("Enter")

    def press(self, *keys: str) -> None:
        """By their names: C-c, Enter, ..."""
        self._tmux("send-keys", *keys)

    def resize(self, columns: int, rows: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self) -> str:
        """All that it showed, without trailing spaces."""
        return self._tmux("capture-pane", "-p", "-S", "-")

    def visible(self) -> str:
        """What it shows now, without trailing spaces and empty lines at the end."""
        lines = [line.rstrip() for line in self._tmux("capture-pane", "-p").splitlines()]
        return "\n".join(lines).rstrip("\n")

    def wait_for(self, text: str, timeout: float = 30) -> str:
        """Until a line of the screen is this text; tmux has no event for it. Busybox's shell asks where the cursor is: an
        answer that comes after it has left its line editor is echoed, in front of what a command prints."""
        deadline = time.monotonic() + timeout
        while text not in _CURSOR_REPORT.sub("", screen := self.screen()).splitlines():
            assert time.monotonic() < deadline, f"no line {text!r} in {timeout} s on the screen:\n{screen}"
            time.sleep(0.05)
        return screen
