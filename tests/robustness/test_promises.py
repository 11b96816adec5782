# SPDX-License-Identifier: Apache-2.0
"""The check of histories, with hand-made histories: a valid one, and for every guarantee some that violate only
that one."""

import copy
from dataclasses import replace

import pytest
from robustness.history import (
    REACHED,
    Answer,
    Call,
    Event,
    ExecSeen,
    History,
    Look,
    Reading,
    Recorder,
    SandboxSeen,
    Stream,
)
from robustness.promises import broken_promises, is_settled

ACKNOWLEDGED, REFUSED, UNKNOWN = Answer.ACKNOWLEDGED, Answer.REFUSED, Answer.UNKNOWN

_LIFE = (
    ("SANDBOX_ACCEPTED", "PENDING", {}),
    ("SANDBOX_PREPARING", "PENDING", {}),
    ("SANDBOX_READY", "READY", {}),
    ("EXEC_STARTED", "READY", {"exec_id": "exec-1"}),
    ("EXEC_STARTED", "READY", {"exec_id": "exec-2"}),
    ("EXEC_FAILED", "READY", {"exec_id": "exec-1", "exit_code": 3, "error_code": "EXEC_RUN_FAILED"}),
    ("SANDBOX_STOP_REQUESTED", "READY", {}),
    ("EXEC_CANCELLED", "READY", {"exec_id": "exec-2"}),
    ("SANDBOX_STOPPED", "STOPPED", {}),
    ("SANDBOX_ACCEPTED", "PENDING", {}),
    ("SANDBOX_PREPARING", "PENDING", {}),
    ("SANDBOX_READY", "READY", {}),
)
_END = (("SANDBOX_DELETE_REQUESTED", "DELETING", {}), ("SANDBOX_DELETED", "DELETED", {}))


def numbered(life):
    return [
        Event(number, kind, state, f"{number} {kind}".encode(), at=number // 2, **details)
        for number, (kind, state, details) in enumerate(life, start=1)
    ]


@pytest.fixture
def good():
    """One sandbox from create to delete, with two execs, a stop, a resume, a reader that reconnects twice, a
    call whose answer was lost and one that was refused."""
    events = numbered(_LIFE + _END)
    alive = tuple(events[: len(_LIFE)])
    execs = {
        "exec-1": ExecSeen("box", "FAILED", 3, "EXEC_RUN_FAILED", "exec-1\n"),
        "exec-2": ExecSeen("box", "CANCELLED", 0, "", ""),
    }
    foreign = {"container other": {"State": "created"}}
    tables = {f"{family} rules{copy}": family for family in ("inet", "arp") for copy in ("", "_owned")}
    return History(
        calls=[
            Call("create", "box", UNKNOWN),
            Call("create", "box", REFUSED, known=1),
            Call("exec", "box", ACKNOWLEDGED, exec_id="exec-1", exit_code=3, known=3),
            Call("exec", "box", UNKNOWN, exec_id="exec-2", known=3),
            Call("exec", "box", REFUSED, exec_id="exec-3", known=7),
            Call("stop", "box", ACKNOWLEDGED, known=6),
            Call("stop", "box", ACKNOWLEDGED, known=7),
            Call("resume", "box", ACKNOWLEDGED, known=9),
            Call("delete", "box", ACKNOWLEDGED, known=12, answered_at=100),
            Call("create", "never", REFUSED),
        ],
        streams=[
            Stream("reader", "box", 0, events[:5]),
            Stream("reader", "box", 5, []),
            Stream("reader", "box", 5, events[5:]),
            Stream("another", "box", 3, events[3:9]),
        ],
        readings=[
            Reading("box", "READY", 4, known=3, asked_at=50),
            Reading("box", "DELETING", 13, known=12, asked_at=101),
        ],
        looks=[
            Look(
                "the look before the deletes",
                sandboxes={"box": SandboxSeen("READY", len(alive), alive)},
                execs=execs,
                ran={"box": ["exec-1"]},
                containers=["box"],
                networks=["box"],
                running={"box"},
                foreign=foreign,
                tables=tables,
            ),
            Look(
                "the last look",
                sandboxes={"box": SandboxSeen("DELETED", len(events), tuple(events))},
                execs=dict(execs),
                foreign=dict(foreign),
                tables=dict(tables),
            ),
        ],
        foreign=dict(foreign),
    )


def test_a_good_history_is_passed(good):
    assert broken_promises(good) == []


def test_a_command_that_runs_between_two_looks_is_no_fault_of_the_first(good):
    at_first = good.looks[0].sandboxes["box"]
    good.looks[0].sandboxes["box"] = SandboxSeen("READY", 3, at_first.events[:3])
    good.looks[0].execs = {}
    good.looks[0].ran = {"box": []}
    assert broken_promises(good) == []


# --- violations: each modifies a valid history -----------------------------------------------------


def events_of(history, look=-1):
    return history.looks[look].sandboxes["box"].events


def set_events(history, events, look=-1, state=None):
    seen = history.looks[look].sandboxes["box"]
    history.looks[look].sandboxes["box"] = SandboxSeen(
        state or seen.state, len(events), tuple(events)
    )


def set_last_life(history, life):
    """Replaces the events consistently in every observation."""
    events = numbered(life)
    history.streams = [Stream("reader", "box", 0, events)]
    history.looks = history.looks[-1:]
    set_events(history, events, state=events[-1].state)


def lose_a_sandbox(history):
    del history.looks[-1].sandboxes["box"]


def lose_the_newest_event(history):
    """An event that was published before its commit, after a crash."""
    set_events(history, events_of(history)[:-1])


def give_a_sequence_to_another_event(history):
    events = list(events_of(history))
    events[4] = replace(events[4], content=b"another")
    set_events(history, events)


def change_an_event_between_two_streams(history):
    history.streams[3].events[0] = replace(history.streams[3].events[0], content=b"later")


def make_a_gap(history):
    events = list(events_of(history))
    del events[3]
    set_events(history, events)


def let_get_be_ahead_of_the_history(history):
    seen = history.looks[-1].sandboxes["box"]
    history.looks[-1].sandboxes["box"] = replace(seen, sequence=seen.sequence + 1)


def give_an_event_a_wrong_state(history):
    for holder in (history.streams[0].events, history.streams[3].events):
        holder[:] = [replace(e, state="STOPPED") if e.kind == "SANDBOX_READY" else e for e in holder]


def skip_one_event_of_a_replay(history):
    del history.streams[2].events[0]


def send_one_event_twice(history):
    history.streams[3].events.insert(1, history.streams[3].events[0])


def resume_a_stream_in_the_wrong_place(history):
    history.streams[1].anchor = 4


def go_on_after_the_end(history):
    set_last_life(history, _LIFE + _END + (("SANDBOX_READY", "READY", {}),))


def let_get_be_behind_an_event(history):
    history.readings[0] = replace(history.readings[0], sequence=2)


def lose_an_acknowledged_stop(history):
    history.calls.append(Call("stop", "box", ACKNOWLEDGED, known=12))


def lose_an_acknowledged_resume(history):
    history.calls.append(Call("resume", "box", ACKNOWLEDGED, known=11))


def lose_an_acknowledged_exec(history):
    history.calls.append(Call("exec", "box", ACKNOWLEDGED, exec_id="exec-9", known=3))


def lose_an_acknowledged_cancel(history):
    history.calls.append(Call("cancel", "box", ACKNOWLEDGED, exec_id="exec-9", known=3))


def lose_an_acknowledged_delete(history):
    set_last_life(history, _LIFE)
    history.looks[-1].containers = history.looks[-1].networks = ["box"]
    history.looks[-1].running = {"box"}
    history.readings.pop()


def begin_a_history_with_something_else(history):
    history.calls[0] = Call("create", "box", ACKNOWLEDGED)
    set_last_life(history, _LIFE[1:] + _END)


def give_a_sandbox_id_twice(history):
    history.calls[:2] = [Call("create", "box", ACKNOWLEDGED), Call("create", "box", ACKNOWLEDGED)]


def give_the_id_of_a_sandbox_that_was_seen(history):
    history.calls[1] = Call("create", "box", ACKNOWLEDGED, known=1)


def give_an_exec_id_twice(history):
    history.calls.append(history.calls[2])


def show_a_sandbox_whose_create_was_refused(history):
    history.calls[0] = Call("create", "box", REFUSED)


def run_an_exec_that_was_refused(history):
    history.calls[3] = replace(history.calls[3], answer=REFUSED)


def read_a_deleted_sandbox_as_ready(history):
    history.readings[1] = replace(history.readings[1], state="READY")


def bring_a_deleted_sandbox_back_to_life(history):
    set_last_life(history, _LIFE + (_END[0], ("SANDBOX_READY", "READY", {}), _END[1]))


def end_an_exec_twice(history):
    set_last_life(history, _LIFE[:9] + (_LIFE[7],) + _LIFE[9:] + _END)


def never_end_an_exec(history):
    set_last_life(history, _LIFE[:7] + _LIFE[8:] + _END)


def tell_another_exit_code(history):
    history.calls[2] = replace(history.calls[2], exit_code=4)


def tell_that_a_failed_command_finished(history):
    finished = ("EXEC_FINISHED", "READY", {"exec_id": "exec-1"})
    set_last_life(history, _LIFE[:5] + (finished,) + _LIFE[6:] + _END)


def cancel_what_nobody_ended(history):
    history.calls = [c for c in history.calls if c.kind not in ("stop", "delete")]


def kill_a_command_for_no_reason(history):
    killed = ("EXEC_FAILED", "READY", {"exec_id": "exec-1", "error_code": "EXEC_RUN_FAILED",
                                       "exit_code": 143})
    set_last_life(history, _LIFE[:5] + (killed,) + _LIFE[6:] + _END)


def lose_a_container_for_no_reason(history):
    lost = ("EXEC_FAILED", "READY", {"exec_id": "exec-1", "error_code": "CONTAINER_EXITED"})
    set_last_life(history, _LIFE[:5] + (lost,) + _LIFE[6:] + _END)


def let_the_status_differ_from_the_event(history):
    history.looks[-1].execs["exec-1"] = ExecSeen("box", "FINISHED", 0, "")


def run_a_command_twice(history):
    history.looks[0].ran["box"] = ["exec-1", "exec-1"]


def run_a_cancelled_command_twice(history):
    history.looks[0].ran["box"] = ["exec-2", "exec-1", "exec-2"]


def never_run_a_command(history):
    history.looks[0].ran["box"] = []


def run_a_command_without_an_event(history):
    history.looks[0].ran["box"].append("exec-3")


def write_the_output_twice(history):
    seen = history.looks[-1].execs["exec-1"]
    history.looks[-1].execs["exec-1"] = replace(seen, output="exec-1\nexec-1\n")


def lose_the_output(history):
    seen = history.looks[-1].execs["exec-1"]
    history.looks[-1].execs["exec-1"] = replace(seen, output="")


def stay_under_way(history):
    set_last_life(history, _LIFE + _END[:1])


def let_the_state_differ_from_the_event(history):
    history.looks[0].sandboxes["box"] = replace(history.looks[0].sandboxes["box"], state="STOPPED")
    history.looks[0].running = set()


def forget_the_container(history):
    history.looks[-1].containers = ["box"]


def forget_the_network(history):
    history.looks[-1].networks = ["box"]


def forget_the_link(history):
    history.looks[0].stray_links = ["agbx1"]


def lose_the_network_of_a_ready_sandbox(history):
    history.looks[0].networks = []


def have_two_containers_of_one_sandbox(history):
    history.looks[0].containers = ["box", "box"]


def have_a_container_of_nobody(history):
    history.looks[0].containers = ["box", "ghost"]


def be_ready_without_a_running_container(history):
    history.looks[0].running = set()


def let_time_go_back(history):
    events = list(events_of(history))
    events[6] = replace(events[6], at=1)
    set_events(history, events)


def stop_what_nobody_stops(history):
    history.calls = [call for call in history.calls if call.kind != "stop"]


def delete_what_nobody_deletes(history):
    history.calls = [call for call in history.calls if call.kind != "delete"]


def fail_a_ready_sandbox(history):
    failed = ("SANDBOX_FAILED", "FAILED", {"error_code": "NETWORK_MISSING"})
    set_last_life(history, _LIFE + (failed,) + _END)


def touch_what_is_not_ours(history):
    history.looks[-1].foreign["container other"] = {"State": "exited"}


def remove_what_is_not_ours(history):
    history.looks[-1].foreign = {}


def lose_a_table(history):
    del history.looks[0].tables["arp rules"]


def lose_every_table(history):
    history.looks[0].tables = {}


def keep_a_table_of_another_daemon(history):
    history.looks[0].tables["inet others"] = "inet"


def let_the_copies_differ(history):
    history.looks[-1].tables["inet rules_owned"] = "inet with less"


def empty_both_copies(history):
    history.looks[0].tables |= {"inet rules": "", "inet rules_owned": ""}


def find_a_sandbox_that_is_not_held(history):
    history.looks[0].unproven = ["isolation is broken: sandbox box: it is not isolated"]


def reach_the_host(history):
    seen = history.looks[-1].execs["exec-2"]
    history.looks[-1].execs["exec-2"] = replace(seen, output=f"exec-2\n{REACHED}\n")


def complain(history):
    history.complaints.append("GetSandbox: INTERNAL: this should not be said: a read failed")


@pytest.mark.parametrize(
    "breaks, words",
    [
        (lose_a_sandbox, "lost in the last look"),
        (lose_the_newest_event, "event 14, seen in stream 2 of reader, is not there in the last look"),
        (give_a_sequence_to_another_event, "was another one"),
        (change_an_event_between_two_streams, "was another one"),
        (make_a_gap, "has a gap"),
        (let_get_be_ahead_of_the_history, "Get says event 15 is the newest"),
        (give_an_event_a_wrong_state, "has the state STOPPED instead of READY"),
        (skip_one_event_of_a_replay, "got event 7 where 6 comes next"),
        (send_one_event_twice, "got event 4 where 5 comes next"),
        (resume_a_stream_in_the_wrong_place, "the recording itself is wrong"),
        (go_on_after_the_end, "comes after SANDBOX_DELETED"),
        (let_get_be_behind_an_event, "after 3 was seen"),
        (lose_an_acknowledged_stop, "its stop was acknowledged after event 12"),
        (lose_an_acknowledged_resume, "its resume was acknowledged after event 11"),
        (lose_an_acknowledged_exec, "its exec was acknowledged"),
        (lose_an_acknowledged_cancel, "its cancel was acknowledged"),
        (lose_an_acknowledged_delete, "its delete was acknowledged"),
        (begin_a_history_with_something_else, "its create was acknowledged"),
        (give_a_sandbox_id_twice, "was given 2 times"),
        (give_the_id_of_a_sandbox_that_was_seen, "created anew after its event 1 was seen"),
        (give_an_exec_id_twice, "was given 2 times"),
        (show_a_sandbox_whose_create_was_refused, "every create was refused"),
        (run_an_exec_that_was_refused, "but it was refused"),
        (read_a_deleted_sandbox_as_ready, "READY after its delete was acknowledged"),
        (bring_a_deleted_sandbox_back_to_life, "comes after SANDBOX_DELETE_REQUESTED"),
        (end_an_exec_twice, "1 EXEC_STARTED and 2 ends"),
        (never_end_an_exec, "1 EXEC_STARTED and 0 ends"),
        (tell_another_exit_code, "but its command ends with 4"),
        (tell_that_a_failed_command_finished, "but its command ends with 3"),
        (cancel_what_nobody_ended, "but nobody ended it"),
        (kill_a_command_for_no_reason, "exit code 143, EXEC_RUN_FAILED, but its command ends with 3"),
        (lose_a_container_for_no_reason, "but nothing ended its container"),
        (let_the_status_differ_from_the_event, "GetExec says FINISHED"),
        (run_a_command_twice, "its command ran 2 times"),
        (run_a_cancelled_command_twice, "its command ran 2 times"),
        (never_run_a_command, "its command ran 0 times"),
        (run_a_command_without_an_event, "its command ran, but it has no event"),
        (write_the_output_twice, "it wrote 'exec-1\\nexec-1\\n'"),
        (lose_the_output, "it wrote ''"),
        (stay_under_way, "something is still under way"),
        (let_the_state_differ_from_the_event, "Get says STOPPED, its last event READY"),
        (forget_the_container, "the engine has 1 containers of it"),
        (forget_the_network, "the engine has 1 networks of it"),
        (forget_the_link, "bridges that no network has: ['agbx1']"),
        (lose_the_network_of_a_ready_sandbox, "the engine has 0 networks of it"),
        (have_two_containers_of_one_sandbox, "the engine has 2 containers of it"),
        (have_a_container_of_nobody, "the daemon knows no such sandbox"),
        (be_ready_without_a_running_container, "its container does not run"),
        (let_time_go_back, "has an earlier time"),
        (stop_what_nobody_stops, "but nobody asked for it"),
        (delete_what_nobody_deletes, "but nobody asked for it"),
        (fail_a_ready_sandbox, "failed with NETWORK_MISSING"),
        (touch_what_is_not_ours, "which is not ours"),
        (remove_what_is_not_ours, "which is not ours"),
        (lose_a_table, "the arp firewall is not there twice and alike: ['arp rules_owned']"),
        (lose_every_table, "the inet firewall is not there twice and alike: []"),
        (keep_a_table_of_another_daemon, "the inet firewall is not there twice and alike"),
        (let_the_copies_differ, "the last look: the inet firewall is not there twice and alike"),
        (empty_both_copies, "the inet firewall is not there twice and alike"),
        (find_a_sandbox_that_is_not_held, "sandbox box: it is not isolated"),
        (reach_the_host, "exec exec-2 of box: the last look: its command reached the host"),
        (complain, "INTERNAL"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_broken_promise_is_seen(good, breaks, words):
    broken = copy.deepcopy(good)
    breaks(broken)
    found = broken_promises(broken)
    assert any(words in sentence for sentence in found), found


def test_an_engine_that_failed_may_end_containers(good):
    lose_a_container_for_no_reason(good)
    good.engine_failed = True
    good.looks[-1].execs["exec-1"] = ExecSeen("box", "FAILED", 0, "CONTAINER_EXITED", "exec-1\n")
    assert broken_promises(good) == []


def test_an_engine_of_fakes_has_no_firewall(good):
    for look in good.looks:
        look.tables = None
    assert broken_promises(good) == []


def test_a_create_that_was_never_done_is_no_loss(good):
    good.calls.append(Call("create", "unborn", UNKNOWN))
    assert broken_promises(good) == []


@pytest.mark.parametrize("length, settled", [(0, False), (1, False), (3, True), (5, False), (7, False), (9, True)])
def test_when_nothing_is_under_way(length, settled):
    assert is_settled(numbered(_LIFE[:length])) == settled


def test_the_recorder_knows_what_anybody_was_told():
    recorder = Recorder()
    stream = recorder.stream("reader", "box", 0)
    for event in numbered(_LIFE[:3]):
        recorder.event(stream, event)
    recorder.reading(Reading("box", "READY", 2))
    assert recorder.known("box") == 3
    assert recorder.known("other") == 0
    assert recorder.entries() == 5
    assert not recorder.wait_for_entries(1, timeout=10, unless=lambda: True)
    assert not recorder.wait_for_entries(1, timeout=0)
