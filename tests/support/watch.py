# SPDX-License-Identifier: Apache-2.0
"""How fast a daemon answers, and how fast a sandbox runs commands, while something else goes on."""

import threading
import time
from statistics import median

from support.contract import Contract
from support.daemon import PrivateDaemon
from support.execs import FINISHED, Execs
from support.sandboxes import connected

_PAUSE = 0.02  # seconds between two questions


class Watch:
    """Asks the daemon about a sandbox without a break while it is open, and knows how long each answer
    took; with `runs_commands` also runs one in it each time.

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
        """Until there are so many answers more than now."""
        with self._changed:
            wanted = len(self.times) + count
            is_enough = lambda: self._failure or len(self.times) >= wanted  # noqa: E731
            assert self._changed.wait_for(is_enough, timeout), f"{len(self.times)} answers"

    def slowdown(self, quiet: "Watch") -> float:
        """How many times slower than in quiet the daemon answered, or commands ran: the worse one."""
        ratios = [median(self.times) / median(quiet.times)]
        if self.command_times and quiet.command_times:
            ratios.append(median(self.command_times) / median(quiet.command_times))
        return max(ratios)

    def beside(self, quiet: "Watch") -> str:
        """What there is to tell of it."""
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
        except Exception as failure:  # told where the test can see it
            with self._changed:
                self._failure = failure
                self._changed.notify_all()


def _compared(name: str, now: list[float], before: list[float]) -> str:
    middle, usual = median(now) * 1000, median(before) * 1000
    return (
        f"{name} median {middle:.1f} ms, {middle / usual:.1f} times that of quiet, "
        f"slowest {max(now) * 1000:.0f} ms of {len(now)}"
    )
