# SPDX-License-Identifier: Apache-2.0
"""Guarantees about what clients read: events, Gets, lists, snapshots and output agree with each other and with the
history, and stay as they were. Pure; promises.py calls it."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator

from robustness.history import Call, Event, Fixed, History, Look, Ordered, StreamEnd
from robustness.life import restarts_of
from robustness.life import Life

_NANOSECONDS = 1e9
# A stream that ends because its daemon was killed may be seen before the end of the daemon is.
_SLACK = 5  # seconds


def histories_have_no_gap_and_never_change(history: History) -> Iterator[str]:
    content: dict[tuple[str, int], tuple[bytes, str]] = {}

    def compare(sandbox_id: str, event: Event, where: str) -> Iterator[str]:
        first, place = content.setdefault((sandbox_id, event.sequence), (event.content, where))
        if first != event.content:
            yield (
                f"sandbox {sandbox_id}: event {event.sequence} is {event.kind} in {where} and was "
                f"another one in {place}: {first!r}, then {event.content!r}"
            )

    for number, stream in enumerate(history.streams):
        for event in stream.events:
            yield from compare(stream.sandbox_id, event, f"stream {number} of {stream.reader}")
    for look in history.looks:
        for sandbox_id, seen in look.sandboxes.items():
            sequences = [event.sequence for event in seen.events]
            if sequences != list(range(1, len(sequences) + 1)):
                yield f"sandbox {sandbox_id}: {look.name}: its history has a gap: {sequences}"
            if seen.sequence != len(sequences):
                yield (
                    f"sandbox {sandbox_id}: {look.name}: Get says event {seen.sequence} is the "
                    f"newest, its history has {len(sequences)}"
                )
            for event in seen.events:
                yield from compare(sandbox_id, event, look.name)
    # Whatever was observed was on disk before.
    last = history.looks[-1] if history.looks else Look("no look")
    for (sandbox_id, sequence), (_, place) in content.items():
        if sandbox_id in last.sandboxes and sequence > len(last.sandboxes[sandbox_id].events):
            yield (
                f"sandbox {sandbox_id}: event {sequence}, seen in {place}, is not there in "
                f"{last.name}"
            )


def streams_see_each_event_once(history: History) -> Iterator[str]:
    for stream in history.streams:
        for position, event in enumerate(stream.events):
            expected = stream.anchor + 1 + position
            if event.sequence != expected:
                yield (
                    f"sandbox {stream.sandbox_id}: {stream.reader}, subscribed after event "
                    f"{stream.anchor}, got event {event.sequence} where {expected} comes next"
                )
                break
    # A reader that reconnects continues where it was.
    last: dict[tuple[str, str], int] = {}
    for stream in history.streams:
        key = (stream.reader, stream.sandbox_id)
        if key in last and stream.anchor != last[key]:
            yield (
                f"sandbox {stream.sandbox_id}: {stream.reader} resumed after event "
                f"{stream.anchor} but had seen {last[key]}: the recording itself is wrong"
            )
        last[key] = stream.events[-1].sequence if stream.events else stream.anchor


def streams_last_as_long_as_their_daemon(history: History) -> Iterator[str]:
    for stream in history.streams:
        newest = stream.events[-1].sequence if stream.events else stream.anchor
        who = f"sandbox {stream.sandbox_id}: the stream of {stream.reader}"
        if stream.end is StreamEnd.ENDED and not history.may_be_purged(stream.sandbox_id):
            yield f"{who} ended after event {newest}, and its history was not purged"
        if stream.end is StreamEnd.BROKE and not any(
            stream.opened_at <= end <= stream.ended_at + _SLACK for end in history.ends_of_daemon
        ):
            yield f"{who} broke after event {newest}, and no daemon had ended"


def one_stream_has_every_event_once(history: History) -> Iterator[str]:
    """The stream of all sandboxes: each event once, of a sandbox in the order of its history, and for every reader in
    the same order."""
    if history.ordered is None:
        return
    where = "the stream of all sandboxes"
    newest: dict[str, int] = defaultdict(int)
    seen: dict[str, dict[int, Event]] = defaultdict(dict)
    for sandbox_id, event in ((one.sandbox_id, one.event) for one in history.ordered):
        if event.sequence != newest[sandbox_id] + 1 and not history.may_be_purged(sandbox_id):
            yield f"sandbox {sandbox_id}: event {event.sequence} came after {newest[sandbox_id]} in {where}"
        elif event.sequence <= newest[sandbox_id]:
            yield f"sandbox {sandbox_id}: event {event.sequence} came twice in {where}"
        newest[sandbox_id] = event.sequence
        seen[sandbox_id][event.sequence] = event
    for sandbox_id, events in history.events_at_rest().items():
        for event in events:
            found = seen[sandbox_id].get(event.sequence)
            if found is None:
                yield f"sandbox {sandbox_id}: event {event.sequence}, {event.kind}, did not come in {where}"
            elif found.content != event.content:
                yield f"sandbox {sandbox_id}: event {event.sequence} is another one in {where}: {found.content!r}"
    if history.ordered_again is None:
        return
    kept = set((one.sandbox_id, one.event.sequence) for one in history.ordered_again)
    first = [one for one in history.ordered if (one.sandbox_id, one.event.sequence) in kept]
    if history.retention is None:
        first = history.ordered
    for number, (before, after) in enumerate(itertools.zip_longest(first, history.ordered_again)):
        if before != after:
            yield f"{where}: event {number + 1} was {_name(before)}, and is {_name(after)} for another reader"
            return


def _name(ordered: Ordered | None) -> str:
    return f"{ordered.event.sequence} of {ordered.sandbox_id}" if ordered else "none"


def times_never_go_back(history: History) -> Iterator[str]:
    for sandbox_id, events in history.seen_events().items():
        for before, after in zip(events, events[1:]):
            if after.at < before.at:
                yield f"sandbox {sandbox_id}: event {after.sequence} has an earlier time than the one before it"


def reads_are_never_behind(history: History) -> Iterator[str]:
    for reading in history.readings:
        if reading.sequence < reading.known:
            yield (
                f"sandbox {reading.sandbox_id}: Get says event {reading.sequence} is the newest "
                f"after {reading.known} was seen"
            )


def states_belong_to_their_sequence(history: History) -> Iterator[str]:
    """State and sequence are read together: a client that continues from the sequence misses nothing."""
    events = history.seen_events()
    said: set[tuple[str, int, str]] = set()
    for reading in history.readings:
        known = events.get(reading.sandbox_id, ())
        seen = (reading.sandbox_id, reading.sequence, reading.state)
        if not 0 < reading.sequence <= len(known) or seen in said:
            continue
        said.add(seen)
        event = known[reading.sequence - 1]
        if event.state != reading.state:
            yield (
                f"sandbox {reading.sandbox_id}: Get says {reading.state} at event {reading.sequence}, "
                f"{event.kind}, after which it is {event.state}"
            )


def restarts_are_counted(history: History) -> Iterator[str]:
    """The count is read together with the sequence, and survives restarts of the daemon."""
    events = history.seen_events()
    said: set[tuple[str, int, int]] = set()
    for reading in history.readings:
        known = events.get(reading.sandbox_id, ())
        seen = (reading.sandbox_id, reading.sequence, reading.restarts)
        if reading.restarts is None or reading.sequence > len(known) or seen in said:
            continue
        said.add(seen)
        restarts = restarts_of(known[: reading.sequence])
        if reading.restarts != restarts:
            yield (
                f"sandbox {reading.sandbox_id}: Get says {reading.restarts} restarts at event "
                f"{reading.sequence}, and there were {restarts}"
            )


def what_was_seen_is_found(history: History) -> Iterator[str]:
    events = history.seen_events()
    for missing in history.missing:
        if missing.known == 0:
            continue
        who = f"sandbox {missing.sandbox_id}: NOT_FOUND after event {missing.known} was seen"
        if not history.may_be_purged(missing.sandbox_id):
            yield who
            continue
        for event in events.get(missing.sandbox_id, ()):
            age = (missing.at - event.at) / _NANOSECONDS
            if event.kind == "SANDBOX_DELETED" and age < history.retention:
                yield f"{who}: purged {age:.1f} s after its delete, not after {history.retention} s"


def fixed_fields_never_change(history: History) -> Iterator[str]:
    """Over restarts of the daemon too."""
    first: dict[str, Fixed] = {}
    asked = history.creates()
    reported: set[str] = set()
    seen = [(reading.sandbox_id, reading.fixed, "Get") for reading in history.readings]
    for look in history.looks:
        seen += [(sandbox_id, one.fixed, look.name) for sandbox_id, one in look.sandboxes.items()]
    for sandbox_id, fixed, where in seen:
        if fixed is None or sandbox_id in reported:
            continue
        before = first.setdefault(sandbox_id, fixed)
        call = asked.get(sandbox_id)
        if fixed != before:
            yield f"sandbox {sandbox_id}: {where} says {fixed}, and it was {before}"
        elif call is not None and fixed != _asked_for(call, fixed):
            yield (
                f"sandbox {sandbox_id}: {where} says {fixed}, and {_asked_for(call, fixed)} was "
                "asked for"
            )
        else:
            continue
        reported.add(sandbox_id)


def _asked_for(call: Call, fixed: Fixed) -> Fixed:
    attached = call.attached
    return Fixed(
        call.image,
        call.labels,
        fixed.created_at,
        attached.mounts,
        attached.copies,
        attached.resources,
        attached.ports,
    )


def lists_are_complete(history: History) -> Iterator[str]:
    if history.clock_jumps:  # when something was deleted is a matter of the clock
        return
    events, creates = history.seen_events(), history.creates()
    ends = {
        sandbox_id: some[-1]
        for sandbox_id, some in events.items()
        if some and some[-1].kind == "SANDBOX_DELETED"
    }
    for listing in history.listings:
        wanted = f"a list with the labels {dict(listing.labels)}"
        for sandbox_id, times in Counter(listing.sandbox_ids).items():
            if times > 1:
                yield f"sandbox {sandbox_id}: {times} times in {wanted}"
            call = creates.get(sandbox_id)
            if call is not None and not set(listing.labels) <= set(call.labels):
                yield f"sandbox {sandbox_id}: in {wanted}, and its own are {dict(call.labels)}"
            end = ends.get(sandbox_id)
            if end is not None and end.sequence <= listing.known.get(sandbox_id, 0):
                yield f"sandbox {sandbox_id}: in {wanted} after it was seen to be deleted"
        for sandbox_id, known in listing.known.items():
            call = creates.get(sandbox_id)
            if known == 0 or call is None or sandbox_id in listing.sandbox_ids:
                continue
            if not set(listing.labels) <= set(call.labels):
                continue
            end = ends.get(sandbox_id)
            is_purged = sandbox_id not in events or history.may_be_purged(sandbox_id)
            if not is_purged and (end is None or end.at > listing.answered_at):
                yield f"sandbox {sandbox_id}: not in {wanted} after its event {known} was seen"


def snapshots_show_what_runs(history: History) -> Iterator[str]:
    events = history.seen_events()
    by_sandbox = defaultdict(list)
    for snapshot in history.snapshots:
        by_sandbox[snapshot.sandbox_id].append(snapshot)
    for sandbox_id, snapshots in by_sandbox.items():
        running: dict[int, frozenset[str]] = {}
        life = Life()
        for event in events.get(sandbox_id, ()):
            life.follow(event)
            running[event.sequence] = frozenset(life.running)
        for snapshot in snapshots:
            expected = running.get(snapshot.sequence)
            if expected is not None and snapshot.execs != expected:
                yield (
                    f"sandbox {sandbox_id}: the snapshot at event {snapshot.sequence} shows "
                    f"{sorted(snapshot.execs)}, and {sorted(expected)} ran"
                )


def output_is_read_as_it_was_written(history: History) -> Iterator[str]:
    written = {
        exec_id: seen.output
        for look in history.looks
        for exec_id, seen in look.execs.items()
        if seen.output is not None
    }
    for read in history.outputs:
        if read.exec_id not in written:
            continue
        rest = written[read.exec_id][read.offset :]
        is_right = rest == read.data if read.is_whole else rest.startswith(read.data)
        if not is_right:
            yield (
                f"exec {read.exec_id}: ReadExecOutput from byte {read.offset} gave {read.data!r}, "
                f"and its file has {rest!r}"
            )


CHECKS = (
    histories_have_no_gap_and_never_change,
    streams_see_each_event_once,
    one_stream_has_every_event_once,
    streams_last_as_long_as_their_daemon,
    times_never_go_back,
    reads_are_never_behind,
    states_belong_to_their_sequence,
    restarts_are_counted,
    what_was_seen_is_found,
    fixed_fields_never_change,
    lists_are_complete,
    snapshots_show_what_runs,
    output_is_read_as_it_was_written,
)
