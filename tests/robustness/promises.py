# SPDX-License-Identifier: Apache-2.0
"""Checks the guarantees that clients rely on against a recorded history. Pure: broken_promises() takes a
history and returns one sentence per violation. What clients read is in reads.py, calls in calls.py, and what a life
is in life.py."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from robustness import calls, reads
from robustness.history import REACHED, SERVICE, Call, Event, History, Look
from robustness.life import CRASHES_OF_A_CREATE, EXEC_ENDS, Life, Phase, faults_of, is_settled

_CONTAINER_ENDED = ("CONTAINER_EXITED", "CONTAINER_OOM")
_KILLED = (128 + 15, 128 + 9)  # by SIGTERM, by SIGKILL
# The daemon's sentences about an engine whose answer it does not have. What the engine itself says is a refusal.
_NO_ANSWER = (
    "cannot reach the container engine",
    "the engine gave no answer",
    "the engine closed the connection",
    "the engine's answer is not HTTP",
    "the connection to the engine failed",
    "the engine is unreachable",
    "another engine (",
)
_REFUSED = "Error response from daemon:"


def broken_promises(history: History) -> list[str]:
    """Empty if everything holds."""
    checks = (
        _complaints,
        *reads.CHECKS,
        *calls.CHECKS,
        _lives_are_lives,
        _sandboxes_fail_for_a_reason,
        _execs_end_once_and_say_how,
        _commands_run_once,
        _commands_see_the_files_of_their_sandbox,
        _everything_comes_to_rest,
        _the_engine_has_what_is_claimed,
        _containers_stay_the_same,
        _companions_live_with_their_sandbox,
        _companions_fail_for_a_reason,
        _required_services_are_ready_first,
        _hooks_run_once,
        _ports_belong_to_live_sandboxes,
        _no_guest_outlives_its_sandbox,
        _both_copies_of_the_firewall_are_whole,
        _every_live_sandbox_is_isolated,
        _commands_reach_nothing_of_the_host,
        _what_is_not_ours_is_untouched,
    )
    return [sentence for check in checks for sentence in check(history)]


def _complaints(history: History) -> Iterator[str]:
    yield from history.complaints


# --- the life of a sandbox -----------------------------------------------------------------------


def _lives_are_lives(history: History) -> Iterator[str]:
    for sandbox_id, events in history.seen_events().items():
        for event, fault in faults_of(events):
            yield f"sandbox {sandbox_id}: event {event.sequence}, {event.kind}, {fault}"


def _sandboxes_fail_for_a_reason(history: History) -> Iterator[str]:
    """With a working engine only a create can fail: by the third crash of the daemon during it, or what publishes a
    port that another sandbox has. If the engine fails, only what it definitely refused."""
    creates = history.creates()
    for sandbox_id, events in history.seen_events().items():
        life = Life()
        for event in events:
            life.follow(event)
            if event.kind != "SANDBOX_FAILED":
                continue
            said = f"sandbox {sandbox_id}: failed with {event.error_code}: {event.error_message!r}"
            is_create = event.error_code == "SANDBOX_CREATE_FAILED"
            if history.engine_failed:
                has_no_answer = any(words in event.error_message for words in _NO_ANSWER)
                if has_no_answer and _REFUSED not in event.error_message:
                    yield f"{said}, and no engine has refused it"
            elif event.error_code == calls.PORT_IN_USE:
                create = creates.get(sandbox_id)
                ports = create.attached.host_ports() if create else set()
                if not calls.port_holders(history, sandbox_id, ports):
                    yield f"{said}, and no other sandbox was to have one of the ports {sorted(ports)}"
            elif not is_create:
                yield f"{said} on an engine that works"
            elif life.attempts < CRASHES_OF_A_CREATE:
                yield f"{said} on an engine that works, at attempt {life.attempts} of its create"


# --- execs ---------------------------------------------------------------------------------------


def _execs_end_once_and_say_how(history: History) -> Iterator[str]:
    asked = {call.exec_id: call for call in history.calls if call.kind == "exec" and calls.may_be_done(call)}
    interrupted = {
        call.exec_id or call.sandbox_id
        for call in history.calls
        if call.kind in ("stop", "delete", "cancel") and calls.may_be_done(call)
    }
    for sandbox_id, events in history.events_at_rest().items():
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
        for sandbox_id, ids in (*look.ran.items(), *look.written.items()):
            if sandbox_id not in look.sandboxes:
                continue
            times = Counter(ids)
            of_sandbox = {e.exec_id for e in events.get(sandbox_id, ()) if e.exec_id}
            for exec_id in times.keys() - of_sandbox:
                yield f"exec {exec_id} of {sandbox_id}: its command ran, but it has no event"
            for exec_id in of_sandbox:
                fewest = 1 if exec_id in ends and _ended_by_itself(ends[exec_id]) else 0
                if not fewest <= times[exec_id] <= 1:
                    yield f"exec {exec_id} of {sandbox_id}: its command ran {times[exec_id]} times"


def _commands_see_the_files_of_their_sandbox(history: History) -> Iterator[str]:
    """A command prints its ID, and then what the mounts, copies and tools of its sandbox have."""
    creates = history.creates()
    for look in history.looks:
        events = (event for seen in look.sandboxes.values() for event in seen.events)
        ends = {event.exec_id: event for event in events if event.kind in EXEC_ENDS}
        for exec_id, seen in look.execs.items():
            if seen.output is None or exec_id not in ends:
                continue
            create = creates.get(seen.sandbox_id)
            whole = f"{exec_id}\n" + (create.attached.content if create else "")
            is_right = seen.output == whole
            if not _ended_by_itself(ends[exec_id]):
                is_right = whole.startswith(seen.output)
            if not is_right:
                yield f"exec {exec_id} of {seen.sandbox_id}: it wrote {seen.output!r} instead of {whole!r}"


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


def _containers_stay_the_same(history: History) -> Iterator[str]:
    """A resume or a restart starts the container that the create made."""
    first: dict[str, str] = {}
    for look in history.looks:
        for sandbox_id, container_id in look.container_ids.items():
            seen = look.sandboxes.get(sandbox_id)
            if seen is None or seen.state not in ("READY", "STOPPED"):
                continue
            before = first.setdefault(sandbox_id, container_id)
            if container_id != before:
                yield (
                    f"sandbox {sandbox_id}: {look.name}: its container is {container_id[:12]}, and "
                    f"was {before[:12]}"
                )


def _companions_live_with_their_sandbox(history: History) -> Iterator[str]:
    creates = history.creates()
    for look in history.looks:
        for sandbox_id in look.companions.keys() - look.sandboxes.keys():
            yield f"companions of {sandbox_id}: {look.name}: the daemon knows no such sandbox"
        for sandbox_id, seen in look.sandboxes.items():
            found = look.companions.get(sandbox_id, {})
            who = f"sandbox {sandbox_id}: {look.name}: {seen.state}"
            if seen.state == "DELETED" and found:
                yield f"{who}, and the engine has its companions {sorted(found)}"
            # An engine may have refused to create or to start one.
            if sandbox_id not in creates or seen.state not in ("READY", "STOPPED") or history.engine_failed:
                continue
            wanted = {name: seen.state == "READY" for name in creates[sandbox_id].companions}
            if found != wanted:
                yield f"{who}, and whether its companions run is {dict(sorted(found.items()))} instead of {wanted}"
            life = Life()
            for event in seen.events:
                life.follow(event)
            reported = {name: event.kind.rpartition("_")[2] for name, event in life.companions.items()}
            if seen.state == "READY" and dict(seen.companions) != reported:
                yield f"{who}, Get says {dict(seen.companions)} of its companions, and their last events {reported}"


def _companions_fail_for_a_reason(history: History) -> Iterator[str]:
    if history.engine_failed or history.firewall_changed:
        return
    for sandbox_id, events in history.seen_events().items():
        for event in events:
            if event.kind == "COMPANION_CONTAINER_FAILED" and (sandbox_id, event.companion) not in history.outages:
                yield (
                    f"sandbox {sandbox_id}: companion {event.companion} failed with {event.error_code}: "
                    f"{event.error_message!r} on an engine that works, and nobody ended it"
                )


def _required_services_are_ready_first(history: History) -> Iterator[str]:
    creates = history.creates()
    for sandbox_id, events in history.seen_events().items():
        create = creates.get(sandbox_id)
        life = Life()
        for event in events:
            is_start = life.phase in (Phase.CREATING, Phase.RESUMING)
            life.follow(event)
            if not create or SERVICE not in create.companions or not is_start or event.kind != "SANDBOX_READY":
                continue
            service = life.companions.get(SERVICE)
            if service is None or service.kind != "COMPANION_CONTAINER_READY":
                yield f"sandbox {sandbox_id}: event {event.sequence}, SANDBOX_READY, comes before {SERVICE} is ready"


def _hooks_run_once(history: History) -> Iterator[str]:
    """In one container, over all its starts. A create that starts over makes another one."""
    creates = history.creates()
    for look in history.looks:
        for sandbox_id, ran in look.hooked.items():
            seen, create = look.sandboxes.get(sandbox_id), creates.get(sandbox_id)
            if not seen or not create or seen.state not in ("READY", "STOPPED"):
                continue
            wanted = 1 if SERVICE in create.companions else 0
            if len(ran) != wanted:
                yield f"sandbox {sandbox_id}: {look.name}: the command of {SERVICE} ran {len(ran)} times"


def _ports_belong_to_live_sandboxes(history: History) -> Iterator[str]:
    creates = history.creates()
    for look in history.looks:
        if look.listening is None:
            continue
        wanted: dict[int, list[str]] = defaultdict(list)
        for sandbox_id, seen in look.sandboxes.items():
            create = creates.get(sandbox_id)
            for port in create.attached.host_ports() if create else ():
                if seen.state == "READY":
                    wanted[port].append(sandbox_id)
                elif seen.state == "FAILED" and sandbox_id in look.running:
                    wanted.setdefault(port, [])  # a stop or a delete that was refused
        for port, sandbox_ids in wanted.items():
            if len(sandbox_ids) > 1:
                yield f"{look.name}: {sandbox_ids} are READY and all have port {port}"
            if sandbox_ids and port not in look.listening:
                yield f"sandbox {sandbox_ids[0]}: {look.name}: READY, and its port {port} is not published"
        for port in sorted(look.listening - wanted.keys()):
            yield f"{look.name}: port {port} is published, and no live sandbox has it"


def _no_guest_outlives_its_sandbox(history: History) -> Iterator[str]:
    """A sandbox has a directory for the guest of its primary, and next to it one for those of its companions."""
    creates = history.creates()
    for look in history.looks:
        live = [sandbox_id for sandbox_id, seen in look.sandboxes.items() if seen.state != "DELETED"]
        with_companions = [sandbox_id for sandbox_id in live if sandbox_id not in creates or creates[sandbox_id].companions]
        of_companions = [name for name in look.guest_directories if name.endswith(".companions")]
        of_primaries = len(look.guest_directories) - len(of_companions)
        if of_primaries > len(live):
            yield f"{look.name}: {of_primaries} guest directories for {len(live)} sandboxes"
        if len(of_companions) > len(with_companions):
            yield (
                f"{look.name}: {len(of_companions)} directories of companions' guests for "
                f"{len(with_companions)} sandboxes with companions"
            )


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
