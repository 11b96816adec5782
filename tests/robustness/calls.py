# SPDX-License-Identifier: Apache-2.0
"""Guarantees about calls: what was acknowledged is done, what was refused is not, and neither happens without a
reason. Pure; promises.py calls it."""

import re
from collections import Counter
from collections.abc import Iterator

from robustness.history import Answer, Call, Event, History
from robustness.life import EXEC_ENDS, STATES, Life, Phase, lives_between

_NANOSECONDS = 1e9
_SLACK = 0.05  # seconds between the two clocks that a time to live is measured with
_WISH = {"SANDBOX_STOP_REQUESTED": "stop", "SANDBOX_DELETE_REQUESTED": "delete"}
PORT_IN_USE = "PORT_IN_USE"  # the reason of a refusal, and the code of a failure
_NAMED_HOLDER = re.compile(r"is in use by sandbox (\S+);")
LONG = 600  # seconds: a command that nothing but its end from outside can end during a run


def may_be_done(call: Call) -> bool:
    return call.answer is not Answer.REFUSED


def acknowledged_calls_are_there(history: History) -> Iterator[str]:
    for look in history.looks:
        for call in history.calls:
            if call.answer is not Answer.ACKNOWLEDGED or call.sandbox_id in look.sandboxes:
                continue
            if not history.may_be_purged(call.sandbox_id):
                yield f"sandbox {call.sandbox_id}: lost in {look.name}; its {call.kind} was acknowledged"
    last = history.looks[-1].sandboxes if history.looks else {}
    events = {
        sandbox_id: seen
        for sandbox_id, seen in history.events_at_rest().items()
        if sandbox_id in last or not history.may_be_purged(sandbox_id)
    }
    commands = {call.exec_id: call for call in history.calls if call.kind == "exec"}
    for call in history.calls:
        if call.answer is not Answer.ACKNOWLEDGED or call.sandbox_id not in events:
            continue
        seen = events[call.sandbox_id]
        if call.kind == "cancel":  # it ends the exec, and not what came later
            whole = [look.sandboxes.get(call.sandbox_id) for look in history.looks]
            seen = next((w.events for w in whole if w and _has_started(call, w.events)), seen)
        if not _is_effective(call, seen, commands):
            what = f"exec {call.exec_id}" if call.exec_id else f"sandbox {call.sandbox_id}"
            yield (
                f"{what}: its {call.kind} was acknowledged after event {call.known} and is not in "
                f"the history: {[event.kind for event in seen]}"
            )


def _has_started(call: Call, events: tuple[Event, ...]) -> bool:
    return any(event.exec_id == call.exec_id for event in events)


def _is_effective(call: Call, events: tuple[Event, ...], commands: dict[str, Call]) -> bool:
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
        ends = [e for e in events if e.kind in EXEC_ENDS and e.exec_id == call.exec_id]
        command = commands.get(call.exec_id)
        by_itself = command is not None and command.seconds >= LONG and any(
            end.kind == "EXEC_FINISHED" for end in ends
        )
        return bool(ends) and not by_itself
    raise ValueError(f"call of the kind {call.kind}")


def refusals_fit_the_state(history: History) -> Iterator[str]:
    """A call is refused only for a state that the sandbox had between the newest event that its caller knew and the
    newest one after the answer."""
    events = history.seen_events()
    created = history.creates()
    for call in history.calls:
        if call.answer is not Answer.REFUSED:
            continue
        what = f"exec {call.exec_id}" if call.exec_id else f"sandbox {call.sandbox_id}"
        said = f"{what}: its {call.kind} was refused with {call.reason}"
        seen = events.get(call.sandbox_id, ())
        if call.reason == "SANDBOX_NOT_FOUND":
            if call.known and not history.may_be_purged(call.sandbox_id):
                yield f"{said} after event {call.known} of the sandbox was seen"
        elif call.reason == "SANDBOX_ID_ALREADY_EXISTS":
            if call.sandbox_id not in created:
                yield f"{said}, and nothing else has asked for that id"
        elif call.reason == PORT_IN_USE:
            yield from _judge_taken_port(history, call, said, events)
        elif call.reason == "EXEC_NOT_FOUND":
            was_seen = any(e.exec_id == call.exec_id and e.sequence <= call.known for e in seen)
            if was_seen and not history.may_be_purged(call.sandbox_id):
                yield f"{said} after its start was seen"
        elif call.latest is None or max(call.latest, call.known) > len(seen):
            continue  # what it was refused for may not have been observed
        elif call.reason == "EXEC_ALREADY_TERMINAL":
            until = [e for e in seen if e.exec_id == call.exec_id and e.sequence <= call.latest]
            if not any(event.kind in EXEC_ENDS for event in until):
                yield f"{said}, and at event {call.latest} it had not ended"
        elif call.reason in ("SANDBOX_INVALID_STATE", "SANDBOX_NOT_READY"):
            if "isolation holds again" in call.error:
                continue
            lives = lives_between(seen, call.known, call.latest)
            if not any(life.refuses(call.kind) for life in lives):
                state = seen[call.known - 1].state if call.known else "not known"
                yield f"{said}, and it was {state} from event {call.known} to event {call.latest}"


def _judge_taken_port(
    history: History, call: Call, said: str, events: dict[str, tuple[Event, ...]]
) -> Iterator[str]:
    create = call if call.kind == "create" else history.creates().get(call.sandbox_id, call)
    ports = sorted(create.attached.host_ports())
    holders = port_holders(history, call.sandbox_id, create.attached.host_ports())
    # Those that had been seen to be deleted had lost it.
    live = {
        holder
        for holder in holders
        if not any(
            event.kind == "SANDBOX_DELETED" and event.sequence <= call.others.get(holder, 0)
            for event in events.get(holder, ())
        )
    }
    named = _NAMED_HOLDER.search(call.error)
    if not live:
        yield f"{said}, and no sandbox had one of the ports {ports}: {call.error}"
    elif named and named[1] not in live:
        yield f"{said}, and not {named[1]} had one of the ports {ports}, but one of {sorted(live)}"
    elif "is in use by" not in call.error:
        yield f"{said}, and without the holder: {call.error}"


def port_holders(history: History, sandbox_id: str, ports: set[int]) -> set[str]:
    """The other sandboxes that were to have one of these ports. One whose create was refused may have had it
    until then."""
    return {
        call.sandbox_id
        for call in history.calls
        if call.kind == "create" and call.sandbox_id != sandbox_id and call.attached.host_ports() & ports
    }


def ids_are_never_reused(history: History) -> Iterator[str]:
    for kind in ("create", "exec"):
        given: Counter[str] = Counter()
        for call in history.calls:
            if call.kind != kind or call.answer is not Answer.ACKNOWLEDGED:
                continue
            name = call.exec_id if kind == "exec" else call.sandbox_id
            given[name] += 1
            if kind == "create" and call.known > 0:
                yield f"sandbox {name}: created again after its event {call.known} was seen"
        for name, times in given.items():
            if times > 1:
                yield f"{kind} {name}: the id was given {times} times"


def nothing_is_there_that_nobody_asked_for(history: History) -> Iterator[str]:
    created = history.creates()
    wishes = {(call.kind, call.sandbox_id) for call in history.calls if may_be_done(call)}
    execs = {c.exec_id for c in history.calls if c.kind == "exec" and may_be_done(c)}
    for sandbox_id, events in history.seen_events().items():
        if sandbox_id not in created:
            yield f"sandbox {sandbox_id}: it is there, but every create was refused"
            continue
        life = Life()
        quiet_since = 0
        for event in events:
            if event.exec_id and event.exec_id not in execs:
                yield f"exec {event.exec_id}: {event.kind} is in the history, but it was refused"
            wish = _WISH.get(event.kind)
            if wish and event.reason in ("idle_ttl", "cleanup_ttl"):
                fault = _fault_of_deadline(history, event, life, created[sandbox_id], quiet_since)
                if fault:
                    yield f"sandbox {sandbox_id}: {event.kind} for {event.reason}, {fault}"
            elif wish and event.reason != "command_finished" and (wish, sandbox_id) not in wishes:
                yield f"sandbox {sandbox_id}: {event.kind} is in the history, but nobody asked for it"
            before = STATES[life.phase]
            life.follow(event)
            if STATES[life.phase] != before or event.kind in EXEC_ENDS:
                quiet_since = event.at


def _fault_of_deadline(
    history: History, event: Event, life: Life, create: Call, quiet_since: int
) -> str:
    is_idle = event.reason == "idle_ttl"
    ttl = create.idle_ttl if is_idle else history.cleanup_ttl
    if ttl is None:
        return "but it has no such time to live"
    if is_idle and (life.phase is not Phase.READY or life.running):
        return f"while it was {life.phase.value} with {len(life.running)} execs"
    if not is_idle and life.phase not in (Phase.STOPPED, Phase.FAILED):
        return f"while it was {life.phase.value}"
    age = (event.at - quiet_since) / _NANOSECONDS
    if not history.clock_jumps and age < ttl - _SLACK:
        return f"{age:.2f} s after its last change instead of {ttl} s"
    return ""


def deleted_stays_deleted(history: History) -> Iterator[str]:
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
    for sandbox_id, events in history.seen_events().items():
        is_over = False
        for event in events:
            if is_over and event.kind != "SANDBOX_DELETED" and event.kind not in EXEC_ENDS:
                yield f"sandbox {sandbox_id}: {event.kind} comes after SANDBOX_DELETE_REQUESTED"
            is_over = is_over or event.kind == "SANDBOX_DELETE_REQUESTED"


def mass_deletes_delete_what_matches(history: History) -> Iterator[str]:
    creates = history.creates()
    for labels, known in history.mass_deletes:
        for look in history.looks:
            for sandbox_id, seen in look.sandboxes.items():
                call = creates.get(sandbox_id)
                matches = call is not None and set(labels) <= set(call.labels)
                if matches and known.get(sandbox_id) and seen.state != "DELETED":
                    yield (
                        f"sandbox {sandbox_id}: {look.name}: {seen.state}, and a DeleteSandboxes "
                        f"with the labels {dict(labels)} was acknowledged"
                    )
    # The ids that it returned are recorded as deletes.
    for call in history.calls:
        if call.kind != "delete" or not call.labels or not may_be_done(call):
            continue
        create = creates.get(call.sandbox_id)
        if create is not None and not set(call.labels) <= set(create.labels):
            yield (
                f"sandbox {call.sandbox_id}: deleted by a DeleteSandboxes with the labels "
                f"{dict(call.labels)}, and its own are {dict(create.labels)}"
            )


CHECKS = (
    acknowledged_calls_are_there,
    refusals_fit_the_state,
    ids_are_never_reused,
    nothing_is_there_that_nobody_asked_for,
    deleted_stays_deleted,
    mass_deletes_delete_what_matches,
)
