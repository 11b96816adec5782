# SPDX-License-Identifier: Apache-2.0
"""The point in time until which an operation may take."""

from __future__ import annotations

import time
from dataclasses import dataclass

_SLACK = 0.05


@dataclass(frozen=True)
class Deadline:
    """`at` is a monotonic time, None means never; `what` names the operation in the error."""

    at: float | None
    what: str
    seconds: float | None = None

    @classmethod
    def after(cls, seconds: float | None, what: str) -> Deadline:
        return cls(None if seconds is None else time.monotonic() + seconds, what, seconds)

    def remaining(self, at_most: float | None = None) -> float | None:
        """Seconds, for the timeout of a call; raises TimeoutError if there are none."""
        if self.at is None:
            return at_most
        left = self.at - time.monotonic()
        if left <= 0:
            raise self.error()
        return left if at_most is None else min(left, at_most)

    def is_over(self) -> bool:
        """Or will be at once: a call that was limited by it may end a little earlier."""
        return self.at is not None and self.at - time.monotonic() <= _SLACK

    def error(self) -> TimeoutError:
        limit = "" if self.seconds is None else f" within {self.seconds:g} s"
        return TimeoutError(f"{self.what} did not end{limit}")
