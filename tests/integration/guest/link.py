# SPDX-License-Identifier: Apache-2.0
"""The test's daemon: guest_link_daemon as a subprocess, controlled by JSON lines."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from pathlib import Path


class LinkError(Exception):
    """The daemon's error for a failed request."""


class LinkDaemon:
    def __init__(self, program: Path, state_root: Path, uid: int):
        self.uid = uid
        with open(state_root / "log", "ab") as log:
            self._process = subprocess.Popen(
                [program, state_root],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                user=uid,
                group=uid,
                extra_groups=[],
            )
        self._next = 0
        self._answers: dict[int, queue.Queue] = {}
        self.events: queue.Queue = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stdout:
            message = json.loads(line)
            if "event" in message:
                self.events.put((time.monotonic(), message))
            else:
                self._answers[message["id"]].put(message)

    def ask(self, verb: str, sandbox: str = "", **fields) -> dict:
        self._next += 1
        answers = self._answers[self._next] = queue.Queue()
        request = {"id": self._next, "do": verb, "sandbox": sandbox, **fields}
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        answer = answers.get(timeout=60)
        if "error" in answer:
            raise LinkError(answer["error"])
        return answer

    def wait_event(self, kind: str, timeout: float = 20) -> tuple[float, dict]:
        deadline = time.monotonic() + timeout
        while True:
            when, event = self.events.get(timeout=max(0.01, deadline - time.monotonic()))
            if event["event"] == kind:
                return when, event

    def kill(self) -> None:
        self._process.kill()
        self._close()

    def end(self) -> None:
        """Ends it by closing its stdin, if it still runs."""
        if self._process.stdin.closed:
            return
        self._process.stdin.close()
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self._close()
        assert code == 0, f"the link daemon ended with {code}"

    def _close(self) -> None:
        self._process.wait()
        if not self._process.stdin.closed:
            self._process.stdin.close()
        self._reader.join()
        self._process.stdout.close()


def new_state_root(directory: Path, uid: int) -> Path:
    root = directory / f"state-{uid}"
    root.mkdir(mode=0o700, exist_ok=True)
    os.chown(root, uid, uid)
    return root
