# SPDX-License-Identifier: Apache-2.0
"""Requests, replies and observations of clients as plain values: recorded during a run and judged afterwards
(promises.py). No I/O."""

import enum
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


class Answer(enum.Enum):
    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    # The connection broke: the outcome is unknown.
    UNKNOWN = "unknown"


# Every command of the clients tries to reach the host, and prints this if it succeeds.
REACHED = "reached-the-host"


@dataclass(frozen=True)
class Call:
    """One request that changes something, and its answer."""

    kind: str  # create, stop, resume, delete, exec, cancel
    sandbox_id: str
    answer: Answer
    exec_id: str = ""
    exit_code: int = 0  # of an exec's command
    known: int = 0  # the sandbox's newest observed event at the time of the request
    answered_at: float = 0
    client: str = ""
    error: str = ""  # "CODE: message"


@dataclass(frozen=True)
class Event:
    sequence: int
    kind: str  # SANDBOX_READY …
    state: str  # READY …
    content: bytes  # everything but `replay`
    at: int = 0  # nanoseconds since 1970
    exec_id: str = ""
    exit_code: int = 0
    error_code: str = ""


@dataclass
class Stream:
    """One subscription; a reader that reconnects has another."""

    reader: str
    sandbox_id: str
    anchor: int
    events: list[Event] = field(default_factory=list)


@dataclass(frozen=True)
class Reading:
    """A Get. `known` is the newest event that the client had seen before."""

    sandbox_id: str
    state: str
    sequence: int
    known: int = 0
    asked_at: float = 0


@dataclass(frozen=True)
class SandboxSeen:
    state: str
    sequence: int
    events: tuple[Event, ...]


@dataclass(frozen=True)
class ExecSeen:
    sandbox_id: str
    state: str
    exit_code: int
    error_code: str
    output: str | None = None  # None: not read


@dataclass
class Look:
    """The state at rest, according to the daemon and the engine."""

    name: str
    sandboxes: dict[str, SandboxSeen] = field(default_factory=dict)
    execs: dict[str, ExecSeen] = field(default_factory=dict)
    # Per sandbox whose file was read: the IDs that its execs wrote when they ran.
    ran: dict[str, list[str]] = field(default_factory=dict)
    containers: list[str] = field(default_factory=list)  # sandbox IDs of the labels
    networks: list[str] = field(default_factory=list)
    stray_links: list[str] = field(default_factory=list)  # our bridges without a network
    running: set[str] = field(default_factory=set)
    foreign: dict[str, dict[str, Any]] = field(default_factory=dict)  # foreign objects, as inspected
    # The daemon's tables in nft's syntax, with their rules; None without a firewall.
    tables: dict[str, str] | None = None
    # The daemon's findings about the isolation.
    unproven: list[str] = field(default_factory=list)


@dataclass
class History:
    calls: list[Call] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    foreign: dict[str, dict[str, Any]] = field(default_factory=dict)  # before the run
    # Other failures: a forbidden answer, a timeout.
    complaints: list[str] = field(default_factory=list)
    # The engine was killed or its answers modified: containers may end, operations may fail.
    engine_failed: bool = False

    def summary(self) -> str:
        answers = {one: sum(call.answer is one for call in self.calls) for one in Answer}
        told = ", ".join(f"{count} {answer.value}" for answer, count in answers.items())
        kinds = ", ".join(
            f"{sum(call.kind == kind for call in self.calls)} {kind}s"
            for kind in ("create", "exec", "cancel", "stop", "resume", "delete")
        )
        events = sum(len(stream.events) for stream in self.streams)
        return (
            f"{len(self.calls)} calls ({kinds}; {told}), {events} events in {len(self.streams)} streams, "
            f"{len(self.readings)} reads"
        )


class Recorder:
    """Records a history, on any thread."""

    def __init__(self) -> None:
        self.history = History()
        self._changed = threading.Condition()
        self._entries = 0
        self._known: dict[str, int] = {}

    def call(self, call: Call) -> None:
        self._add(self.history.calls.append, call)

    def stream(self, reader: str, sandbox_id: str, anchor: int) -> Stream:
        stream = Stream(reader, sandbox_id, anchor)
        self._add(self.history.streams.append, stream)
        return stream

    def event(self, stream: Stream, event: Event) -> None:
        self._add(stream.events.append, event)
        self._learn(stream.sandbox_id, event.sequence)

    def reading(self, reading: Reading) -> None:
        self._add(self.history.readings.append, reading)
        self._learn(reading.sandbox_id, reading.sequence)

    def complain(self, text: str) -> None:
        self._add(self.history.complaints.append, text)

    def known(self, sandbox_id: str) -> int:
        """Its newest observed event."""
        with self._changed:
            return self._known.get(sandbox_id, 0)

    def entries(self) -> int:
        with self._changed:
            return self._entries

    def wait_for_entries(
        self, count: int, timeout: float, unless: Callable[[], bool] = lambda: False
    ) -> bool:
        """Until this many more are recorded; False on a timeout, or if `unless` is true, which is
        evaluated with each entry and each wake()."""
        deadline = time.monotonic() + timeout
        with self._changed:
            wanted = self._entries + count
            while self._entries < wanted:
                left = deadline - time.monotonic()
                if left <= 0 or unless():
                    return False
                self._changed.wait(left)
        return True

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _add(self, append: Callable, entry: object) -> None:
        with self._changed:
            append(entry)
            self._entries += 1
            self._changed.notify_all()

    def _learn(self, sandbox_id: str, sequence: int) -> None:
        with self._changed:
            self._known[sandbox_id] = max(sequence, self._known.get(sandbox_id, 0))
