# SPDX-License-Identifier: Apache-2.0
"""Execs of one sandbox, through the link, with their log files in a temporary directory."""

from __future__ import annotations

import os
import queue
import time
from dataclasses import dataclass
from pathlib import Path

from sandbox import Sandbox


@dataclass
class Done:
    how: str
    code: int
    detail: str
    out: str
    err: str
    end: dict


class Execs:
    def __init__(self, box: Sandbox, guest_pid: int, directory: Path):
        self.box = box
        self.guest_pid = guest_pid  # in the test's namespace
        self.directory = directory
        self.truncated: list[str] = []
        self.ends: dict[str, list[dict]] = {}
        self._number = 0
        directory.mkdir(mode=0o700)
        os.chown(directory, box.daemon.uid, box.daemon.uid)

    def start(self, *command: str, cwd: str = "/workspace", **fields) -> str:
        self._number += 1
        exec_id = f"exec-{self._number}"
        files = {"out": str(self.directory / f"{exec_id}.out"), "err": str(self.directory / f"{exec_id}.err")}
        self.box.daemon.ask(
            "start_exec", self.box.name, exec=exec_id, command=list(command), cwd=cwd, **files, **fields
        )
        return exec_id

    def shell(self, script: str, **fields) -> str:
        return self.start("sh", "-c", script, **fields)

    def run(self, *command: str, **fields) -> Done:
        return self.wait(self.start(*command, **fields))

    def run_shell(self, script: str, **fields) -> Done:
        return self.wait(self.shell(script, **fields))

    def wait(self, exec_id: str, timeout: float = 30) -> Done:
        deadline = time.monotonic() + timeout
        while exec_id not in self.ends:
            try:
                _, event = self.box.daemon.events.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"{exec_id} has not ended in {timeout} s") from None
            self._take(event)
        end = self.ends[exec_id][0]
        out, err = self.out(exec_id), self.err(exec_id)
        return Done(end["how"], end["code"], end["detail"], out, err, end)

    def _take(self, event: dict) -> None:
        if event["event"] == "exec_ended":
            self.ends.setdefault(event["exec"], []).append(event)
        elif event["event"] == "exec_truncated":
            self.truncated.append(event["exec"])

    def has_ended(self, exec_id: str) -> bool:
        """According to all messages that the guest sent before it answers a ping."""
        self.box.daemon.ask("ping", self.box.name)
        while not self.box.daemon.events.empty():
            self._take(self.box.daemon.events.get()[1])
        return exec_id in self.ends

    def cancel(self, exec_id: str, grace_ms: int = 2000) -> None:
        self.box.daemon.ask("cancel_exec", self.box.name, exec=exec_id, grace_ms=grace_ms)

    def forget(self, exec_id: str) -> None:
        self.box.daemon.ask("forget_exec", self.box.name, exec=exec_id)

    def out(self, exec_id: str) -> str:
        return (self.directory / f"{exec_id}.out").read_bytes().decode()

    def err(self, exec_id: str) -> str:
        return (self.directory / f"{exec_id}.err").read_bytes().decode()

    def wait_out(self, exec_id: str, text: str) -> None:
        deadline = time.monotonic() + 20
        while text not in self.out(exec_id):
            assert time.monotonic() < deadline, f"{text!r} is not in {self.out(exec_id)!r}"
            time.sleep(0.005)
