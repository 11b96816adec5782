# SPDX-License-Identifier: Apache-2.0
"""Requests, replies and observations of clients as plain values: recorded during a run and judged afterwards
(promises.py). No I/O."""

import enum
import itertools
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


# The companions of a sandbox that has some: a required service, which has a command for the primary, and a companion.
SERVICE, SIDE = "db", "side"
# Every command of the clients tries to reach the host, and prints this if it succeeds.
REACHED = "reached-the-host"


Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Fixed:
    """What never changes about a sandbox."""

    image: str
    labels: Labels = ()
    created_at: int = 0  # nanoseconds since 1970
    # As in Attachments.
    mounts: tuple[tuple[str, str, bool], ...] = ()
    copies: tuple[tuple[str, str], ...] = ()
    resources: tuple[tuple[str, str, str], ...] = ()
    ports: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Attachments:
    """What a create asks for of the host."""

    mounts: tuple[tuple[str, str, bool], ...] = ()  # source, target, writable
    copies: tuple[tuple[str, str], ...] = ()  # source, target
    tools: tuple[str, ...] = ()
    resources: tuple[tuple[str, str, str], ...] = ()  # of the tools: ID, source, target
    ports: tuple[tuple[int, int], ...] = ()  # of the host, of the container
    files: tuple[str, ...] = ()  # paths in the sandbox: every command prints them, after its ID
    content: str = ""  # that they have, one after the other
    written: str = ""  # path in the sandbox: every command appends its ID there, in a writable mount

    def host_ports(self) -> set[int]:
        return {of_host for of_host, _ in self.ports}


@dataclass(frozen=True)
class Call:
    """One request that changes something, and its answer."""

    kind: str  # create, stop, resume, delete, exec, cancel
    sandbox_id: str
    answer: Answer
    exec_id: str = ""
    exit_code: int = 0  # of an exec's command
    seconds: float = 0  # that the command takes
    image: str = ""  # of a create
    labels: Labels = ()
    idle_ttl: float | None = None  # in seconds
    attached: Attachments = Attachments()
    companions: tuple[str, ...] = ()  # names
    known: int = 0  # the sandbox's newest observed event at the time of the request
    # Its newest event according to a Get after the answer; None if there was no such Get.
    latest: int | None = None
    # The same as `known` of every sandbox, if it was refused because of a port.
    others: dict[str, int] = field(default_factory=dict)
    answered_at: float = 0
    client: str = ""
    error: str = ""  # "CODE: message"
    reason: str = ""  # of a refusal, for programs


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
    error_message: str = ""
    phase: str = ""  # of SANDBOX_PREPARING
    reason: str = ""  # of a stop or a delete
    companion: str = ""  # of COMPANION_CONTAINER_READY and COMPANION_CONTAINER_FAILED


class StreamEnd(enum.Enum):
    OPEN = "open"  # or closed by its reader
    BROKE = "broke"  # the connection
    ENDED = "ended"  # by the daemon, without an error


@dataclass
class Stream:
    """One subscription; a reader that reconnects has another."""

    reader: str
    sandbox_id: str
    anchor: int
    events: list[Event] = field(default_factory=list)
    opened_at: float = 0
    end: StreamEnd = StreamEnd.OPEN
    ended_at: float = 0


@dataclass(frozen=True)
class Ordered:
    """An event in the stream of all sandboxes."""

    sandbox_id: str
    event: Event


@dataclass(frozen=True)
class Reading:
    """A Get, or an item of a list. `known` is the newest event that the client had seen before."""

    sandbox_id: str
    state: str
    sequence: int
    known: int = 0
    asked_at: float = 0
    fixed: Fixed | None = None
    restarts: int | None = None


@dataclass(frozen=True)
class Missing:
    """A Get or a subscription that was answered with NOT_FOUND."""

    sandbox_id: str
    known: int  # the newest event that the client had seen before
    at: int  # nanoseconds since 1970


@dataclass(frozen=True)
class Listing:
    """All pages of a ListSandboxes without deleted ones."""

    labels: Labels
    sandbox_ids: tuple[str, ...]
    known: dict[str, int]  # every sandbox's newest observed event before the first page was asked for
    answered_at: int  # nanoseconds since 1970


@dataclass(frozen=True)
class Snapshot:
    """The beginning of a subscription with one."""

    sandbox_id: str
    sequence: int
    state: str
    execs: frozenset[str]  # that run


@dataclass(frozen=True)
class OutputRead:
    """Of an exec's standard output. `is_whole`: followed until the daemon ended the stream."""

    exec_id: str
    offset: int
    data: str
    is_whole: bool = False


@dataclass(frozen=True)
class SandboxSeen:
    state: str
    sequence: int
    events: tuple[Event, ...]
    fixed: Fixed | None = None
    companions: tuple[tuple[str, str], ...] = ()  # name and state


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
    # The commands of services that ran in the same containers.
    hooked: dict[str, list[str]] = field(default_factory=dict)
    # The same from the writable mounts, which outlive their sandboxes.
    written: dict[str, list[str]] = field(default_factory=dict)
    # Ports of the run that something of the engine's host listens on; None on a fake engine.
    listening: set[int] | None = None
    guest_directories: list[str] = field(default_factory=list)
    containers: list[str] = field(default_factory=list)  # of primaries: sandbox IDs of the labels
    companions: dict[str, dict[str, bool]] = field(default_factory=dict)  # by sandbox: name, whether it runs
    container_ids: dict[str, str] = field(default_factory=dict)  # by sandbox
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
    # The stream of all sandboxes, as one reader got it over all restarts, and as another got it at the end. None: it
    # was not read.
    ordered: list[Ordered] | None = None
    ordered_again: list[Ordered] | None = None
    readings: list[Reading] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    listings: list[Listing] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)
    outputs: list[OutputRead] = field(default_factory=list)
    # The labels of each acknowledged DeleteSandboxes, with every sandbox's newest observed event before it.
    mass_deletes: list[tuple[Labels, dict[str, int]]] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    # When a daemon was seen to have ended, however it did.
    ends_of_daemon: list[float] = field(default_factory=list)
    foreign: dict[str, dict[str, Any]] = field(default_factory=dict)  # before the run
    # Companions that a client killed: sandbox and name.
    outages: set[tuple[str, str]] = field(default_factory=set)
    # Other failures: a forbidden answer, a timeout.
    complaints: list[str] = field(default_factory=list)
    # The engine was killed or its answers modified: containers may end, operations may be refused.
    engine_failed: bool = False
    # Another program changed the firewall: the daemon stops companions until their network is isolated again.
    firewall_changed: bool = False
    # Times of events cannot be compared with each other.
    clock_jumps: bool = False
    # After how many seconds the daemon deletes what is stopped or failed, and purges what is deleted.
    cleanup_ttl: float | None = None
    retention: float | None = None

    def summary(self) -> str:
        answers = {one: sum(call.answer is one for call in self.calls) for one in Answer}
        told = ", ".join(f"{count} {answer.value}" for answer, count in answers.items())
        kinds = ", ".join(
            f"{sum(call.kind == kind for call in self.calls)} {kind}s"
            for kind in ("create", "exec", "cancel", "stop", "resume", "delete")
        )
        events = sum(len(stream.events) for stream in self.streams)
        attached = [call for call in self.calls if call.kind == "create" and call.attached.files]
        taken = sum(call.reason == "PORT_IN_USE" for call in self.calls)
        return (
            f"{len(attached)} creates with mounts, copies and a tool, {taken} refusals of a port, "
            f"{sum(bool(call.companions) for call in self.calls)} creates with companions, {len(self.outages)} companions ended, "
            f"{len(self.calls)} calls ({kinds}; {told}), {events} events in {len(self.streams)} streams, "
            f"{len(self.ordered or ())} in the stream of all sandboxes, {self.ready()} times READY, {len(self.readings)} reads, {len(self.listings)} lists, "
            f"{len(self.snapshots)} snapshots, {len(self.outputs)} reads of output"
        )

    def events_at_rest(self) -> dict[str, tuple[Event, ...]]:
        """Whole histories, of every sandbox that was observed at rest."""
        events: dict[str, tuple[Event, ...]] = {}
        for look in self.looks:
            events |= {sandbox_id: seen.events for sandbox_id, seen in look.sandboxes.items()}
        return events

    def seen_events(self) -> dict[str, tuple[Event, ...]]:
        """Also the beginnings of histories that only readers have seen, up to their first gap."""
        by_sequence: dict[str, dict[int, Event]] = {}
        for stream in self.streams:
            of_sandbox = by_sequence.setdefault(stream.sandbox_id, {})
            for event in stream.events:
                of_sandbox.setdefault(event.sequence, event)
        beginnings = {
            sandbox_id: tuple(
                events[sequence]
                for sequence in itertools.takewhile(events.__contains__, itertools.count(1))
            )
            for sandbox_id, events in by_sequence.items()
        }
        return beginnings | self.events_at_rest()

    def creates(self) -> dict[str, Call]:
        """The create of each sandbox that may exist."""
        asked: dict[str, Call] = {}
        for call in self.calls:
            if call.kind == "create" and call.answer is not Answer.REFUSED:
                asked.setdefault(call.sandbox_id, call)
        return asked

    def may_be_purged(self, sandbox_id: str) -> bool:
        """Whether its whole history may be gone."""
        if self.retention is None:
            return False
        deletes = (c for c in self.calls if c.kind == "delete" and c.answer is not Answer.REFUSED)
        return self.cleanup_ttl is not None or any(c.sandbox_id == sandbox_id for c in deletes)

    def ready(self) -> int:
        """How often a sandbox became READY."""
        seen = {
            (stream.sandbox_id, event.sequence)
            for stream in self.streams
            for event in stream.events
            if event.kind == "SANDBOX_READY"
        }
        return len(seen)


class Recorder:
    """Records a history, on any thread."""

    # In seconds: how long nothing may happen with a sandbox that is not at rest. The daemon pauses for at most a minute
    # before it starts a container again.
    patience = 75.0

    def __init__(self) -> None:
        self.history = History()
        # How much has happened with a sandbox, besides its events: a number that grows.
        self.progress: Callable[[str], int] = lambda sandbox_id: 0
        self.restless: set[str] = set()  # sandboxes for which it was not enough; nobody waits for them again
        self._changed = threading.Condition()
        self._entries = 0
        self._known: dict[str, int] = {}
        self._attached: dict[str, Attachments] = {}

    def call(self, call: Call) -> None:
        self._add(self.history.calls.append, call)

    def stream(self, reader: str, sandbox_id: str, anchor: int) -> Stream:
        stream = Stream(reader, sandbox_id, anchor, opened_at=time.monotonic())
        self._add(self.history.streams.append, stream)
        return stream

    def event(self, stream: Stream, event: Event) -> None:
        self._add(stream.events.append, event)
        self._learn(stream.sandbox_id, event.sequence)

    def reading(self, reading: Reading) -> None:
        self._add(self.history.readings.append, reading)
        self._learn(reading.sandbox_id, reading.sequence)

    def ordered(self, ordered: Ordered) -> None:
        """Not an entry: kills wait for what the clients do."""
        with self._changed:
            if self.history.ordered is None:
                self.history.ordered = []
            self.history.ordered.append(ordered)

    def stream_end(self, stream: Stream, end: StreamEnd) -> None:
        with self._changed:
            stream.end, stream.ended_at = end, time.monotonic()

    def missing(self, missing: Missing) -> None:
        self._add(self.history.missing.append, missing)

    def listing(self, listing: Listing) -> None:
        self._add(self.history.listings.append, listing)

    def snapshot(self, snapshot: Snapshot) -> None:
        self._add(self.history.snapshots.append, snapshot)
        self._learn(snapshot.sandbox_id, snapshot.sequence)

    def output(self, output: OutputRead) -> None:
        self._add(self.history.outputs.append, output)

    def mass_delete(self, labels: Labels, known: dict[str, int]) -> None:
        self._add(self.history.mass_deletes.append, (labels, known))

    def end_of_daemon(self) -> None:
        """Wakes those who wait."""
        with self._changed:
            self.history.ends_of_daemon.append(time.monotonic())
            self._changed.notify_all()

    def attach(self, sandbox_id: str, attached: Attachments) -> None:
        """Before its create: commands that run in it use this."""
        with self._changed:
            self._attached.setdefault(sandbox_id, attached)

    def attached(self, sandbox_id: str) -> Attachments:
        with self._changed:
            return self._attached.get(sandbox_id, Attachments())

    def outage(self, sandbox_id: str, companion: str) -> None:
        """Before it is ended."""
        with self._changed:
            self.history.outages.add((sandbox_id, companion))

    def foreign(self, name: str, seen: dict[str, Any]) -> None:
        """Something that must stay as it is."""
        with self._changed:
            self.history.foreign[name] = seen

    def complain(self, text: str) -> None:
        self._add(self.history.complaints.append, text)

    def known(self, sandbox_id: str) -> int:
        """Its newest observed event."""
        with self._changed:
            return self._known.get(sandbox_id, 0)

    def all_known(self) -> dict[str, int]:
        with self._changed:
            return dict(self._known)

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

    def _add(self, append: Callable, entry: object) -> None:
        with self._changed:
            append(entry)
            self._entries += 1
            self._changed.notify_all()

    def _learn(self, sandbox_id: str, sequence: int) -> None:
        with self._changed:
            self._known[sandbox_id] = max(sequence, self._known.get(sandbox_id, 0))
