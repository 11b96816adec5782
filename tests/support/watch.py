# SPDX-License-Identifier: Apache-2.0
"""Measures the latency of a daemon and of commands in a sandbox under load."""

import threading
import time
from statistics import median

from support.contract import Contract
from support.daemon import PrivateDaemon
from support.execs import FINISHED, Execs
from support.sandboxes import connected

_PAUSE = 0.02  # seconds between two requests
# Limits of slowdown(): for answers that wait for nothing else, and next to something that uses the whole machine. With
# tests/kit/test_watch.py a daemon that waits for something else exceeds both.
AS_QUICK = 5
ON_A_BUSY_MACHINE = 10


class Watch:
    """Queries the daemon about a sandbox continuously while open, and records each latency; with
    `runs_commands` also runs a command each time.

    with Watch(daemon, contract, "neighbour") as watch:
        ...
        watch.wait_for(50)
    """

    def __init__(
        self,
        daemon: PrivateDaemon,
        contract: Contract,
        sandbox_id: str,
        runs_commands: bool = False,
    ):
        self.daemon, self.contract, self.sandbox_id = daemon, contract, sandbox_id
        self.times: list[float] = []  # of Ping, ListSandboxes and GetSandbox together, in seconds
        self.command_times: list[float] = []
        self._runs_commands = runs_commands
        self._changed = threading.Condition()
        self._end = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._ask_on)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._end.set()
        self._thread.join()
        if self._failure:
            raise self._failure

    def wait_for(self, count: int, timeout: float = 60) -> None:
        """Waits for this many further answers."""
        with self._changed:
            wanted = len(self.times) + count
            is_enough = lambda: self._failure or len(self.times) >= wanted  # noqa: E731
            assert self._changed.wait_for(is_enough, timeout), f"{len(self.times)} answers"

    def slowdown(self, quiet: "Watch") -> float:
        """The slowdown of answers or commands compared with idle, whichever is worse."""
        ratios = [median(self.times) / median(quiet.times)]
        if self.command_times and quiet.command_times:
            ratios.append(median(self.command_times) / median(quiet.command_times))
        return max(ratios)

    def beside(self, quiet: "Watch") -> str:
        """A description for the test's output."""
        text = _compared("answers", self.times, quiet.times)
        if self.command_times and quiet.command_times:
            text += "; " + _compared("commands", self.command_times, quiet.command_times)
        return text

    def _ask_on(self) -> None:
        try:
            with connected(self.daemon, self.contract) as sandboxes:
                execs = Execs(sandboxes, self.sandbox_id)
                while not self._end.wait(_PAUSE):
                    before = time.monotonic()
                    sandboxes.stub.Ping(sandboxes.service.PingRequest(), timeout=10)
                    listed = {item.sandbox_id for item in sandboxes.page().sandboxes}
                    assert self.sandbox_id in listed
                    sandboxes.get(self.sandbox_id)
                    answered = time.monotonic()
                    if self._runs_commands:
                        assert execs.run("true").state == FINISHED
                        self.command_times.append(time.monotonic() - answered)
                    with self._changed:
                        self.times.append(answered - before)
                        self._changed.notify_all()
        except Exception as failure:  # reported to the test
            with self._changed:
                self._failure = failure
                self._changed.notify_all()


def _compared(name: str, now: list[float], before: list[float]) -> str:
    middle, usual = median(now) * 1000, median(before) * 1000
    return (
        f"{name} median {middle:.1f} ms, {middle / usual:.1f} times that of quiet, "
        f"slowest {max(now) * 1000:.0f} ms of {len(now)}"
    )
