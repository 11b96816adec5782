# SPDX-License-Identifier: Apache-2.0
"""How fast the machine is during a run, compared with the one that tests/budget.toml was measured on.

Budgets are seconds, and seconds depend on what else the machine does. So one small piece of work is repeated as long as
the tests run and timed like them; if it takes longer than usual, so do the tests, and their budgets are stretched.
"""
import statistics
import subprocess
import threading
import time
from collections.abc import Callable

from commands import PYTHON

INTERVAL = 5.0
# However slow the machine is: a longer budget would allow anything.
LONGEST_STRETCH = 3.0
# Like a test: it starts a process, which computes. Long enough to lose its turn on a busy machine: the kernel lets a short
# burst through at once.
_WORK = [PYTHON, "-I", "-S", "-c", "import hashlib; hashlib.pbkdf2_hmac('sha256', b'', b'', 400000)"]


def time_work() -> float:
    began = time.monotonic()
    subprocess.run(_WORK, stdin=subprocess.DEVNULL, check=True)
    return time.monotonic() - began


class Pace:
    """A context: the machine is measured inside it."""

    def __init__(self, usual_seconds: float, measure: Callable[[], float] = time_work, interval: float = INTERVAL):
        self._usual = usual_seconds
        self._measure = measure
        self._interval = interval
        self._seconds: list[float] = []
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Pace":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._has_ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._has_ended.is_set():
            self._seconds.append(self._measure())
            self._has_ended.wait(self._interval)

    @property
    def slowdown(self) -> float:
        """1.0 on a usual machine, and if nothing was measured yet."""
        seconds = list(self._seconds)
        return statistics.median(seconds) / self._usual if seconds else 1.0

    @property
    def stretch(self) -> float:
        """By which budgets are multiplied; a fast machine does not shrink them."""
        return min(max(self.slowdown, 1.0), LONGEST_STRETCH)
