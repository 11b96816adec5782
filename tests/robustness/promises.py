# SPDX-License-Identifier: Apache-2.0
"""Checks the guarantees that clients rely on against a recorded history. Pure: broken_promises() takes a
history and returns one sentence per violation."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from robustness.history import REACHED, Answer, Call, Event, History, Look

_STATE_AFTER = {
    "SANDBOX_ACCEPTED": "PENDING",
    "SANDBOX_PREPARING": "PENDING",
    "SANDBOX_READY": "READY",
    "SANDBOX_FAILED": "FAILED",
    "SANDBOX_STOP_REQUESTED": "READY",
    "SANDBOX_STOPPED": "STOPPED",
    "SANDBOX_DELETE_REQUESTED": "DELETING",
    "SANDBOX_DELETED": "DELETED",
}
_UNDER_WAY = {
    "SANDBOX_ACCEPTED",
    "SANDBOX_PREPARING",
    "SANDBOX_STOP_REQUESTED",
    "SANDBOX_DELETE_REQUESTED",
}
EXEC_ENDS = {
    "EXEC_FINISHED": "FINISHED",
    "EXEC_FAILED": "FAILED",
    "EXEC_CANCELLED": "CANCELLED",
}
_WISH = {"SANDBOX_STOP_REQUESTED": "stop", "SANDBOX_DELETE_REQUESTED": "delete"}
_CONTAINER_ENDED = ("CONTAINER_EXITED", "CONTAINER_OOM")
_KILLED = (128 + 15, 128 + 9)  # by SIGTERM, by SIGKILL


def is_settled(events: list[Event]) -> bool:
    """Whether a sandbox with this history is at rest."""
    running: set[str] = set()
    under_way = True
    for event in events:
        if event.kind == "EXEC_STARTED":
            running.add(event.exec_id)
        elif event.kind in EXEC_ENDS:
            running.discard(event.exec_id)
        else:
            under_way = event.kind in _UNDER_WAY
    return not under_way and not running


def broken_promises(history: History) -> list[str]:
    """Empty if everything holds."""
    checks = (
        _complaints,
        _histories_have_no_gap_and_never_change,
        _streams_see_each_event_once,
        _nothing_comes_after_the_end,
        _times_never_go_back,
        _reads_are_never_behind,
        _acknowledged_calls_are_there,
        _ids_are_never_reused,
        _nothing_is_there_that_nobody_asked_for,
        _deleted_stays_deleted,
        _sandboxes_fail_for_a_reason,
        _execs_end_once_and_say_how,
        _commands_run_once,
        _everything_comes_to_rest,
        _the_engine_has_what_is_claimed,
        _both_copies_of_the_firewall_are_whole,
        _every_live_sandbox_is_isolated,
        _commands_reach_nothing_of_the_host,
        _what_is_not_ours_is_untouched,
    )
    return [sentence for check in checks for sentence in check(history)]


def _complaints(history: History) -> Iterator[str]:
    yield from history.complaints


# --- events --------------------------------------------------------------------------------------


def _histories_have_no_gap_and_never_change(history: History) -> Iterator[str]:
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
            expected = _STATE_AFTER.get(event.kind, event.state)
            if event.state != expected:
                yield (
                    f"sandbox {stream.sandbox_id}: event {event.sequence}, {event.kind}, has the "
                    f"state {event.state} instead of {expected}"
                )
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


def _streams_see_each_event_once(history: History) -> Iterator[str]:
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


def _nothing_comes_after_the_end(history: History) -> Iterator[str]:
    sequences = [(stream.sandbox_id, stream.events) for stream in history.streams]
    for look in history.looks:
        sequences += [(name, list(seen.events)) for name, seen in look.sandboxes.items()]
    for sandbox_id, events in sequences:
        for before, after in zip(events, events[1:]):
            if before.kind == "SANDBOX_DELETED":
                yield f"sandbox {sandbox_id}: {after.kind} comes after SANDBOX_DELETED"


def _times_never_go_back(history: History) -> Iterator[str]:
    for sandbox_id, events in _newest_events(history).items():
        for before, after in zip(events, events[1:]):
            if after.at < before.at:
                yield f"sandbox {sandbox_id}: event {after.sequence} has an earlier time than the one before it"


def _reads_are_never_behind(history: History) -> Iterator[str]:
    for reading in history.readings:
        if reading.sequence < reading.known:
            yield (
                f"sandbox {reading.sandbox_id}: Get says event {reading.sequence} is the newest "
                f"after {reading.known} was seen"
            )


# --- calls ---------------------------------------------------------------------------------------


def _newest_events(history: History) -> dict[str, tuple[Event, ...]]:
    events: dict[str, tuple[Event, ...]] = {}
    for look in history.looks:
        events |= {sandbox_id: seen.events for sandbox_id, seen in look.sandboxes.items()}
    return events


def _acknowledged_calls_are_there(history: History) -> Iterator[str]:
    for look in history.looks:
        for call in history.calls:
            if call.answer is Answer.ACKNOWLEDGED and call.sandbox_id not in look.sandboxes:
                yield f"sandbox {call.sandbox_id}: lost in {look.name}; its {call.kind} was acknowledged"
    events = _newest_events(history)
    for call in history.calls:
        if call.answer is not Answer.ACKNOWLEDGED or call.sandbox_id not in events:
            continue
        if not _is_effective(call, events[call.sandbox_id]):
            what = f"exec {call.exec_id}" if call.exec_id else f"sandbox {call.sandbox_id}"
            yield (
                f"{what}: its {call.kind} was acknowledged after event {call.known} and is not in "
                f"the history: {[event.kind for event in events[call.sandbox_id]]}"
            )


def _is_effective(call: Call, events: tuple[Event, ...]) -> bool:
    later = [event for event in events if event.sequence > call.known]
    kinds = {event.kind for event in events}
    if call.kind == "create":
        return bool(events) and events[0].kind == "SANDBOX_ACCEPTED"
    if call.kind == "exec":
        return any(e.kind == "EXEC_STARTED" and e.exec_id == call.exec_id for e in later)
    if call.kind == "resume":
        return any(event.kind == "SANDBOX_ACCEPTED" for event in later)
    if call.kind == "delete":
        return "SANDBOX_DELETED" in kinds
    if call.kind == "stop":
        # One that was already in progress counts too.
        known = [e.kind for e in events if e.sequence <= call.known and not e.exec_id]
        was_under_way = bool(known) and known[-1] == "SANDBOX_STOP_REQUESTED"
        return was_under_way or any(e.kind == "SANDBOX_STOP_REQUESTED" for e in later)
    if call.kind == "cancel":
        return any(e.kind in EXEC_ENDS and e.exec_id == call.exec_id for e in events)
    raise ValueError(f"call of the kind {call.kind}")


def _ids_are_never_reused(history: History) -> Iterator[str]:
    for kind in ("create", "exec"):
        given: Counter[str] = Counter()
        for call in history.calls:
            if call.kind != kind or call.answer is not Answer.ACKNOWLEDGED:
                continue
            name = call.exec_id if kind == "exec" else call.sandbox_id
            given[name] += 1
            if kind == "create" and call.known > 0:
                yield f"sandbox {name}: created anew after its event {call.known} was seen"
        for name, times in given.items():
            if times > 1:
                yield f"{kind} {name}: the id was given {times} times"


def _nothing_is_there_that_nobody_asked_for(history: History) -> Iterator[str]:
    sandboxes = {c.sandbox_id for c in history.calls if c.kind == "create" and _may_be_done(c)}
    wishes = {(call.kind, call.sandbox_id) for call in history.calls if _may_be_done(call)}
    execs = {c.exec_id for c in history.calls if c.kind == "exec" and _may_be_done(c)}
    for look in history.looks:
        for sandbox_id, seen in look.sandboxes.items():
            if sandbox_id not in sandboxes:
                yield f"sandbox {sandbox_id}: there in {look.name}, but every create was refused"
            for event in seen.events:
                if event.exec_id and event.exec_id not in execs:
                    yield f"exec {event.exec_id}: {event.kind} in {look.name}, but it was refused"
                wish = _WISH.get(event.kind)
                if wish and (wish, sandbox_id) not in wishes:
                    yield f"sandbox {sandbox_id}: {event.kind} in {look.name}, but nobody asked for it"


def _may_be_done(call: Call) -> bool:
    return call.answer is not Answer.REFUSED


def _deleted_stays_deleted(history: History) -> Iterator[str]:
    deleted_at: dict[str, float] = {}
    for call in history.calls:
        if call.kind == "delete" and call.answer is Answer.ACKNOWLEDGED:
            earliest = deleted_at.get(call.sandbox_id, call.answered_at)
            deleted_at[call.sandbox_id] = min(earliest, call.answered_at)
    for reading in history.readings:
        when = deleted_at.get(reading.sandbox_id)
        if when is not None and reading.asked_at > when:
            if reading.state not in ("DELETING", "DELETED"):
                yield f"sandbox {reading.sandbox_id}: {reading.state} after its delete was acknowledged"
    for sandbox_id, events in _newest_events(history).items():
        is_over = False
        for event in events:
            if is_over and event.kind != "SANDBOX_DELETED" and event.kind not in EXEC_ENDS:
                yield f"sandbox {sandbox_id}: {event.kind} comes after SANDBOX_DELETE_REQUESTED"
            is_over = is_over or event.kind == "SANDBOX_DELETE_REQUESTED"


def _sandboxes_fail_for_a_reason(history: History) -> Iterator[str]:
    """With a working engine only a create can fail: if the daemon was killed three times during it."""
    if history.engine_failed:
        return
    for sandbox_id, events in _newest_events(history).items():
        for event in events:
            if event.kind == "SANDBOX_FAILED" and event.error_code != "SANDBOX_CREATE_FAILED":
                yield f"sandbox {sandbox_id}: failed with {event.error_code} on an engine that works"


# --- execs ---------------------------------------------------------------------------------------


def _execs_end_once_and_say_how(history: History) -> Iterator[str]:
    asked = {call.exec_id: call for call in history.calls if call.kind == "exec" and _may_be_done(call)}
    interrupted = {
        call.exec_id or call.sandbox_id
        for call in history.calls
        if call.kind in ("stop", "delete", "cancel") and _may_be_done(call)
    }
    for sandbox_id, events in _newest_events(history).items():
        starts = Counter(event.exec_id for event in events if event.kind == "EXEC_STARTED")
        ends: dict[str, list[Event]] = defaultdict(list)
        for event in events:
            if event.kind in EXEC_ENDS:
                ends[event.exec_id].append(event)
        for exec_id in starts.keys() | ends.keys():
            if starts[exec_id] != 1 or len(ends[exec_id]) != 1:
                yield (
                    f"exec {exec_id} of {sandbox_id}: {starts[exec_id]} EXEC_STARTED and "
                    f"{len(ends[exec_id])} ends: {[end.kind for end in ends[exec_id]]}"
                )
                continue
            was_interrupted = bool({exec_id, sandbox_id} & interrupted)
            if exec_id in asked:
                fault = _fault_of_end(
                    ends[exec_id][0], asked[exec_id], was_interrupted, history.engine_failed
                )
                if fault:
                    yield f"exec {exec_id} of {sandbox_id}: {fault}"
    for look in history.looks:
        for exec_id, seen in look.execs.items():
            events = look.sandboxes[seen.sandbox_id].events if seen.sandbox_id in look.sandboxes else ()
            told = [
                (EXEC_ENDS[event.kind], event.exit_code, event.error_code)
                for event in events
                if event.exec_id == exec_id and event.kind in EXEC_ENDS
            ]
            if told != [(seen.state, seen.exit_code, seen.error_code)]:
                yield (
                    f"exec {exec_id}: {look.name}: GetExec says {seen.state}, exit code "
                    f"{seen.exit_code}, {seen.error_code or 'no error'}; its events say {told}"
                )


def _fault_of_end(end: Event, call: Call, was_interrupted: bool, engine_failed: bool) -> str:
    how = f"{end.kind}, exit code {end.exit_code}, {end.error_code or 'no error'}"
    if end.kind == "EXEC_CANCELLED":
        return "" if was_interrupted else f"{how}, but nobody ended it"
    if end.kind == "EXEC_FAILED" and end.error_code in _CONTAINER_ENDED:
        return "" if engine_failed else f"{how}, but nothing ended its container"
    if engine_failed and _ended_by_a_signal(end):
        return ""  # an engine that restarts without live-restore stops its containers with SIGTERM
    expected = ("EXEC_FINISHED", "") if call.exit_code == 0 else ("EXEC_FAILED", "EXEC_RUN_FAILED")
    if (end.kind, end.error_code) != expected or end.exit_code != call.exit_code:
        return f"{how}, but its command ends with {call.exit_code}"
    return ""


def _ended_by_a_signal(end: Event) -> bool:
    """No command of the crowd exits with one of these by itself."""
    return end.error_code == "EXEC_RUN_FAILED" and end.exit_code in _KILLED


def _ended_by_itself(end: Event) -> bool:
    is_over = end.kind == "EXEC_FINISHED" or end.error_code == "EXEC_RUN_FAILED"
    return is_over and not _ended_by_a_signal(end)


def _commands_run_once(history: History) -> Iterator[str]:
    for look in history.looks:
        events = {sandbox_id: seen.events for sandbox_id, seen in look.sandboxes.items()}
        ends = {e.exec_id: e for some in events.values() for e in some if e.kind in EXEC_ENDS}
        for sandbox_id, ids in look.ran.items():
            times = Counter(ids)
            of_sandbox = {e.exec_id for e in events.get(sandbox_id, ()) if e.exec_id}
            for exec_id in times.keys() - of_sandbox:
                yield f"exec {exec_id} of {sandbox_id}: its command ran, but it has no event"
            for exec_id in of_sandbox:
                fewest = 1 if exec_id in ends and _ended_by_itself(ends[exec_id]) else 0
                if not fewest <= times[exec_id] <= 1:
                    yield f"exec {exec_id} of {sandbox_id}: its command ran {times[exec_id]} times"
        for exec_id, seen in look.execs.items():
            if seen.output is None or exec_id not in ends:
                continue
            allowed = {f"{exec_id}\n"} | (set() if _ended_by_itself(ends[exec_id]) else {""})
            if seen.output not in allowed:
                yield f"exec {exec_id} of {seen.sandbox_id}: it wrote {seen.output!r}"


# --- at rest -------------------------------------------------------------------------------------


def _everything_comes_to_rest(history: History) -> Iterator[str]:
    for look in history.looks:
        for sandbox_id, seen in look.sandboxes.items():
            if seen.events and not is_settled(list(seen.events)):
                kinds = [event.kind for event in seen.events]
                yield f"sandbox {sandbox_id}: {look.name}: something is still under way: {kinds}"
            elif seen.events and seen.state != seen.events[-1].state:
                yield (
                    f"sandbox {sandbox_id}: {look.name}: Get says {seen.state}, its last event "
                    f"{seen.events[-1].state}"
                )


def _the_engine_has_what_is_claimed(history: History) -> Iterator[str]:
    for look in history.looks:
        for kind, found in (("container", look.containers), ("network", look.networks)):
            times = Counter(found)
            for sandbox_id in times.keys() - look.sandboxes.keys():
                yield f"{kind} of {sandbox_id}: {look.name}: the daemon knows no such sandbox"
            for sandbox_id, seen in look.sandboxes.items():
                yield from _judge_objects(look, kind, sandbox_id, seen.state, times[sandbox_id])
        if look.stray_links:
            yield f"{look.name}: bridges that no network has: {look.stray_links}"


def _judge_objects(look: Look, kind: str, sandbox_id: str, state: str, count: int) -> Iterator[str]:
    fewest = 1 if state in ("READY", "STOPPED") else 0
    most = 0 if state == "DELETED" else 1
    if not fewest <= count <= most:
        yield f"sandbox {sandbox_id}: {look.name}: {state}, and the engine has {count} {kind}s of it"
    elif kind == "container" and count and state in ("READY", "STOPPED"):
        if (sandbox_id in look.running) != (state == "READY"):
            runs = "runs" if sandbox_id in look.running else "does not run"
            yield f"sandbox {sandbox_id}: {look.name}: {state}, and its container {runs}"


# --- the isolation -------------------------------------------------------------------------------


def _both_copies_of_the_firewall_are_whole(history: History) -> Iterator[str]:
    for look in history.looks:
        if look.tables is None:
            continue
        for family in ("inet", "arp"):
            names = sorted(name for name in look.tables if name.startswith(f"{family} "))
            copies = [name.endswith("_owned") for name in names]
            rules = {look.tables[name] for name in names}
            if copies != [False, True] or len(rules) != 1 or "" in rules:
                yield f"{look.name}: the {family} firewall is not there twice and alike: {names}"


def _every_live_sandbox_is_isolated(history: History) -> Iterator[str]:
    for look in history.looks:
        for sentence in look.unproven:
            yield f"{look.name}: {sentence}"


def _commands_reach_nothing_of_the_host(history: History) -> Iterator[str]:
    for look in history.looks:
        for exec_id, seen in look.execs.items():
            if seen.output and REACHED in seen.output:
                yield f"exec {exec_id} of {seen.sandbox_id}: {look.name}: its command reached the host"


def _what_is_not_ours_is_untouched(history: History) -> Iterator[str]:
    for look in history.looks:
        for name, before in history.foreign.items():
            if look.foreign.get(name) != before:
                yield f"{name}, which is not ours: {look.name}: changed from {before!r} to {look.foreign.get(name)!r}"
