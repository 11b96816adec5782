# SPDX-License-Identifier: Apache-2.0
"""The check of histories, with hand-made histories: a valid one, and for every guarantee some that violate only
that one."""

import copy
from dataclasses import replace

import pytest
from robustness.history import (
    REACHED,
    Answer,
    Attachments,
    Call,
    Event,
    ExecSeen,
    Fixed,
    History,
    Listing,
    Look,
    Missing,
    Ordered,
    OutputRead,
    Reading,
    Recorder,
    SandboxSeen,
    Snapshot,
    Stream,
    StreamEnd,
)
from robustness.life import Life, is_settled
from robustness.promises import broken_promises

ACKNOWLEDGED, REFUSED, UNKNOWN = Answer.ACKNOWLEDGED, Answer.REFUSED, Answer.UNKNOWN

_PREPARING = ("SANDBOX_PREPARING", "PENDING", {"phase": "materialize"})
_LIFE = (
    ("SANDBOX_ACCEPTED", "PENDING", {}),
    _PREPARING,
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
_RESTART = (
    ("SANDBOX_PREPARING", "READY", {"phase": "restart"}),
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
    fixed = Fixed("image:1", (("team", "red"),), created_at=5)
    tables = {f"{family} rules{copy}": family for family in ("inet", "arp") for copy in ("", "_owned")}
    return History(
        calls=[
            Call("create", "box", UNKNOWN, image="image:1", labels=(("team", "red"),)),
            Call("create", "box", REFUSED, known=1, latest=1, reason="SANDBOX_ID_ALREADY_EXISTS"),
            Call("exec", "box", ACKNOWLEDGED, exec_id="exec-1", exit_code=3, known=3),
            Call("exec", "box", UNKNOWN, exec_id="exec-2", known=3),
            Call("exec", "box", REFUSED, exec_id="exec-3", known=7, latest=8, reason="SANDBOX_NOT_READY"),
            Call("cancel", "box", ACKNOWLEDGED, exec_id="exec-2", known=5),
            Call("cancel", "box", REFUSED, exec_id="exec-2", known=5, latest=8,
                 reason="EXEC_ALREADY_TERMINAL"),
            Call("stop", "box", REFUSED, known=8, latest=10, reason="SANDBOX_INVALID_STATE"),
            Call("stop", "box", ACKNOWLEDGED, known=6),
            Call("stop", "box", ACKNOWLEDGED, known=7),
            Call("resume", "box", ACKNOWLEDGED, known=9),
            Call("delete", "box", ACKNOWLEDGED, known=12, answered_at=100),
            Call("create", "never", REFUSED),
        ],
        streams=[
            Stream("reader", "box", 0, events[:5], 10, StreamEnd.BROKE, 20),
            Stream("reader", "box", 5, []),
            Stream("reader", "box", 5, events[5:]),
            Stream("another", "box", 3, events[3:9]),
        ],
        readings=[
            Reading("box", "READY", 4, known=3, asked_at=50, fixed=fixed, restarts=0),
            Reading("box", "DELETING", 13, known=12, asked_at=101, fixed=fixed, restarts=0),
        ],
        missing=[Missing("never", 0, at=3)],
        listings=[
            Listing((), ("box",), {"box": 3}, answered_at=3),
            Listing((("team", "red"),), (), {"box": 13}, answered_at=7),
        ],
        snapshots=[Snapshot("box", 5, "READY", frozenset(("exec-1", "exec-2")))],
        outputs=[
            OutputRead("exec-1", 0, "ex"),
            OutputRead("exec-1", 4, "-1\n", is_whole=True),
        ],
        mass_deletes=[((("team", "blue"),), {"box": 3})],
        ends_of_daemon=[22],
        looks=[
            Look(
                "the look before the deletes",
                sandboxes={"box": SandboxSeen("READY", len(alive), alive, fixed)},
                execs=execs,
                ran={"box": ["exec-1"]},
                containers=["box"],
                container_ids={"box": "c0ffee"},
                networks=["box"],
                running={"box"},
                foreign=foreign,
                tables=tables,
            ),
            Look(
                "the last look",
                sandboxes={"box": SandboxSeen("DELETED", len(events), tuple(events), fixed)},
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
    """Replaces the events consistently in every observation; what was read of the other life is dropped."""
    events = numbered(life)
    history.readings, history.listings, history.snapshots, history.outputs = [], [], [], []
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
    set_last_life(history, _LIFE[:2] + (("SANDBOX_READY", "STOPPED", {}),) + _LIFE[3:] + _END)


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
    history.calls = [c for c in history.calls if c.kind not in ("stop", "delete", "cancel")]


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


def ready_again_after_a_failure(history):
    failed = ("SANDBOX_FAILED", "FAILED", {"error_code": "CONTAINER_CRASHLOOP"})
    set_last_life(history, _LIFE + (failed, ("SANDBOX_READY", "READY", {})) + _END)


def resume_a_failed_one_without_containers(history):
    failed = ("SANDBOX_FAILED", "FAILED", {"error_code": "NETWORK_MISSING"})
    set_last_life(history, _LIFE + (failed, _LIFE[9], _LIFE[11]) + _END)


def be_ready_twice(history):
    set_last_life(history, _LIFE + (("SANDBOX_READY", "READY", {}),) + _END)


def prepare_a_ready_one_for_nothing(history):
    set_last_life(history, _LIFE + (("SANDBOX_PREPARING", "READY", {"phase": "pull"}),) + _END)


def announce_a_restart_twice(history):
    set_last_life(history, _LIFE + _RESTART[:1] + _RESTART + _END)


def miscount_a_restart(history):
    set_last_life(history, _LIFE + _RESTART + _END)
    history.readings[-1:] = [Reading("box", "READY", 14, restarts=0)]


def count_a_restart_before_it_is_done(history):
    set_last_life(history, _LIFE + _RESTART + _END)
    history.readings[-1:] = [Reading("box", "READY", 13, restarts=1)]


def end_an_exec_after_the_stop(history):
    set_last_life(history, _LIFE[:7] + (_LIFE[8], _LIFE[7]) + _LIFE[9:] + _END)


def start_an_exec_after_the_stop(history):
    started = ("EXEC_STARTED", "STOPPED", {"exec_id": "exec-2"})
    set_last_life(history, _LIFE[:4] + _LIFE[5:7] + (_LIFE[8], started) + _END)


def stop_without_a_request(history):
    set_last_life(history, _LIFE[:6] + _LIFE[7:] + _END)


def give_an_exec_event_a_wrong_state(history):
    set_last_life(history, _LIFE[:7] + (("EXEC_CANCELLED", "STOPPED", {"exec_id": "exec-2"}),)
                  + _LIFE[8:] + _END)


def begin_a_create_four_times(history):
    set_last_life(history, _LIFE[:2] + 3 * (_PREPARING,) + _LIFE[2:] + _END)


def fail_a_create_at_its_first_crash(history):
    failed = ("SANDBOX_FAILED", "FAILED", {"error_code": "SANDBOX_CREATE_FAILED"})
    set_last_life(history, _LIFE[:2] + (failed,) + _END)
    history.calls = history.calls[:1] + history.calls[-2:]
    history.looks[-1].execs = {}


def fail_because_the_engine_did_not_answer(history):
    message = "create container box: the engine gave no answer within 30 s"
    failed = ("SANDBOX_FAILED", "FAILED",
              {"error_code": "SANDBOX_CREATE_FAILED", "error_message": message})
    set_last_life(history, _LIFE[:2] + (failed,) + _END)
    history.engine_failed = True


def read_a_state_of_another_event(history):
    history.readings[0] = replace(history.readings[0], state="PENDING")


def end_a_stream(history):
    history.streams[3].end = StreamEnd.ENDED


def break_a_stream(history):
    history.ends_of_daemon = [9, 30]


def lose_what_was_seen(history):
    history.missing.append(Missing("box", 3, at=3))


def purge_early(history):
    history.retention = 5e-9
    history.missing.append(Missing("box", 14, at=9))


def change_the_time_of_creation(history):
    fixed = history.readings[1].fixed
    history.readings[1] = replace(history.readings[1], fixed=replace(fixed, created_at=6))


def lose_the_labels(history):
    seen = history.looks[-1].sandboxes["box"]
    history.looks[-1].sandboxes["box"] = replace(seen, fixed=replace(seen.fixed, labels=()))


def have_another_image_than_asked_for(history):
    history.calls[0] = replace(history.calls[0], image="image:2")


def list_one_twice(history):
    history.listings[0] = replace(history.listings[0], sandbox_ids=("box", "box"))


def leave_one_out_of_a_list(history):
    history.listings[0] = replace(history.listings[0], sandbox_ids=())


def list_a_deleted_one(history):
    history.listings[1] = replace(history.listings[1], sandbox_ids=("box",), known={"box": 14})


def list_one_with_other_labels(history):
    history.listings[0] = replace(history.listings[0], labels=(("team", "blue"),))


def leave_an_exec_out_of_a_snapshot(history):
    history.snapshots[0] = replace(history.snapshots[0], execs=frozenset(("exec-1",)))


def read_other_output(history):
    history.outputs[0] = replace(history.outputs[0], data="exec-2")


def end_a_followed_output_early(history):
    history.outputs[1] = replace(history.outputs[1], data="-1")


def leave_one_out_of_a_mass_delete(history):
    history.mass_deletes.append(((("team", "red"),), {"box": 3}))


def delete_one_with_other_labels(history):
    history.calls.append(Call("delete", "box", ACKNOWLEDGED, known=12, answered_at=100,
                              labels=(("team", "blue"),)))


def finish_a_long_command_that_was_cancelled(history):
    finished = ("EXEC_FINISHED", "READY", {"exec_id": "exec-2"})
    set_last_life(history, _LIFE[:7] + (finished,) + _LIFE[8:] + _END)
    history.calls[3] = replace(history.calls[3], seconds=600)


def refuse_an_exec_of_a_ready_sandbox(history):
    history.calls.append(Call("exec", "box", REFUSED, exec_id="exec-4", known=3, latest=6,
                              reason="SANDBOX_NOT_READY"))


def refuse_a_stop_of_a_ready_sandbox(history):
    history.calls.append(Call("stop", "box", REFUSED, known=12, latest=12,
                              reason="SANDBOX_INVALID_STATE"))


def refuse_a_resume_of_a_stopped_sandbox(history):
    history.calls.append(Call("resume", "box", REFUSED, known=9, latest=9,
                              reason="SANDBOX_INVALID_STATE"))


def refuse_a_cancel_of_a_running_exec(history):
    history.calls.append(Call("cancel", "box", REFUSED, exec_id="exec-2", known=5, latest=7,
                              reason="EXEC_ALREADY_TERMINAL"))


def not_find_an_exec_that_was_seen(history):
    history.calls.append(Call("cancel", "box", REFUSED, exec_id="exec-2", known=5, latest=7,
                              reason="EXEC_NOT_FOUND"))


def not_find_a_sandbox_that_was_seen(history):
    history.calls.append(Call("stop", "box", REFUSED, known=5, reason="SANDBOX_NOT_FOUND"))


def take_an_id_that_is_free(history):
    history.calls.append(Call("create", "free", REFUSED, reason="SANDBOX_ID_ALREADY_EXISTS"))


def replace_the_container(history):
    later = copy.deepcopy(history.looks[0])
    later.name, later.container_ids = "a later look", {"box": "decade"}
    history.looks.insert(1, later)


def stop_for_idleness(history, idle_ttl, at, execs=_LIFE[3:6]):
    """Its last exec ends at 10 s."""
    ended = ("EXEC_FINISHED", "READY", {"exec_id": "exec-2"})
    life = _LIFE[:3] + execs + (ended,) * bool(execs)
    life += (("SANDBOX_STOP_REQUESTED", "READY", {"reason": "idle_ttl"}), _LIFE[8])
    set_last_life(history, life + _END)
    events = [replace(e, at=int((10 if e.sequence <= 7 else at) * 1e9)) for e in history.streams[0].events]
    history.streams[0].events = events
    set_events(history, events, state="DELETED")
    history.calls = [history.calls[0], *history.calls[2:4], history.calls[-2]]
    history.calls[0] = replace(history.calls[0], idle_ttl=idle_ttl)
    history.looks[-1].execs = {}


def stop_for_idleness_early(history):
    stop_for_idleness(history, 1, 10.5)


def stop_for_idleness_without_a_time_to_live(history):
    stop_for_idleness(history, None, 12)


def clean_up_early(history):
    history.cleanup_ttl = 2
    history.calls = [call for call in history.calls if call.kind != "delete"]
    deleting = ("SANDBOX_DELETE_REQUESTED", "DELETING", {"reason": "cleanup_ttl"})
    set_last_life(history, _LIFE[:9] + (deleting, _END[1]))


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
        (give_an_event_a_wrong_state, "SANDBOX_READY, has the state STOPPED instead of READY"),
        (give_an_exec_event_a_wrong_state, "EXEC_CANCELLED, has the state STOPPED instead of READY"),
        (ready_again_after_a_failure, "event 14, SANDBOX_READY, comes while the sandbox is failed"),
        (resume_a_failed_one_without_containers, "is failed, without its containers"),
        (be_ready_twice, "event 13, SANDBOX_READY, comes while the sandbox is ready"),
        (prepare_a_ready_one_for_nothing, "of the phase 'pull' comes while the sandbox is ready"),
        (announce_a_restart_twice, "event 14, SANDBOX_PREPARING, comes while the sandbox is restarting"),
        (miscount_a_restart, "Get says 0 restarts at event 14, and there were 1"),
        (count_a_restart_before_it_is_done, "Get says 1 restarts at event 13, and there were 0"),
        (end_an_exec_after_the_stop, "EXEC_CANCELLED, of exec exec-2 comes while the sandbox is stopped"),
        (end_an_exec_after_the_stop, "SANDBOX_STOPPED, comes before the end of ['exec-2']"),
        (start_an_exec_after_the_stop, "EXEC_STARTED, of exec exec-2 comes while the sandbox is stopped"),
        (stop_without_a_request, "SANDBOX_STOPPED, comes while the sandbox is ready"),
        (begin_a_create_four_times, "is attempt 4 at the create"),
        (fail_a_create_at_its_first_crash, "on an engine that works, at attempt 1 of its create"),
        (fail_because_the_engine_did_not_answer, "and no engine has refused it"),
        (read_a_state_of_another_event, "Get says PENDING at event 4, EXEC_STARTED, after which it is READY"),
        (end_a_stream, "the stream of another ended after event 9, and its history was not purged"),
        (break_a_stream, "the stream of reader broke after event 5, and no daemon had ended"),
        (lose_what_was_seen, "NOT_FOUND after event 3 was seen"),
        (purge_early, "purged 0.0 s after its delete"),
        (change_the_time_of_creation, "created_at=6, mounts=(), copies=(), resources=(), ports=()), and it was"),
        (lose_the_labels, "the last look says Fixed(image='image:1', labels=()"),
        (have_another_image_than_asked_for, "and Fixed(image='image:2', labels="),
        (list_one_twice, "2 times in a list"),
        (leave_one_out_of_a_list, "not in a list with the labels {} after its event 3 was seen"),
        (list_a_deleted_one, "after it was seen to be deleted"),
        (list_one_with_other_labels, "in a list with the labels {'team': 'blue'}, and its own are"),
        (leave_an_exec_out_of_a_snapshot, "shows ['exec-1'], and ['exec-1', 'exec-2'] ran"),
        (read_other_output, "ReadExecOutput from byte 0 gave 'exec-2'"),
        (end_a_followed_output_early, "ReadExecOutput from byte 4 gave '-1'"),
        (leave_one_out_of_a_mass_delete, "READY, and a DeleteSandboxes"),
        (delete_one_with_other_labels, "deleted by a DeleteSandboxes with the labels"),
        (finish_a_long_command_that_was_cancelled, "exec exec-2: its cancel was acknowledged"),
        (refuse_an_exec_of_a_ready_sandbox, "and it was READY from event 3 to event 6"),
        (refuse_a_stop_of_a_ready_sandbox, "and it was READY from event 12 to event 12"),
        (refuse_a_resume_of_a_stopped_sandbox, "and it was STOPPED from event 9 to event 9"),
        (refuse_a_cancel_of_a_running_exec, "and at event 7 it had not ended"),
        (not_find_an_exec_that_was_seen, "EXEC_NOT_FOUND after its start was seen"),
        (not_find_a_sandbox_that_was_seen, "SANDBOX_NOT_FOUND after event 5 of the sandbox was seen"),
        (take_an_id_that_is_free, "and nothing else has asked for that id"),
        (replace_the_container, "its container is decade, and was c0ffee"),
        (stop_for_idleness_early, "for idle_ttl, 0.50 s after its last change instead of 1 s"),
        (stop_for_idleness_without_a_time_to_live, "but it has no such time to live"),
        (clean_up_early, "for cleanup_ttl, 0.00 s after its last change instead of 2 s"),
        (skip_one_event_of_a_replay, "got event 7 where 6 comes next"),
        (send_one_event_twice, "got event 4 where 5 comes next"),
        (resume_a_stream_in_the_wrong_place, "the recording itself is wrong"),
        (go_on_after_the_end, "event 15, SANDBOX_READY, comes while the sandbox is deleted"),
        (let_get_be_behind_an_event, "after 3 was seen"),
        (lose_an_acknowledged_stop, "its stop was acknowledged after event 12"),
        (lose_an_acknowledged_resume, "its resume was acknowledged after event 11"),
        (lose_an_acknowledged_exec, "its exec was acknowledged"),
        (lose_an_acknowledged_cancel, "its cancel was acknowledged"),
        (lose_an_acknowledged_delete, "its delete was acknowledged"),
        (begin_a_history_with_something_else, "its create was acknowledged"),
        (give_a_sandbox_id_twice, "was given 2 times"),
        (give_the_id_of_a_sandbox_that_was_seen, "created again after its event 1 was seen"),
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


@pytest.mark.parametrize(
    "life",
    [
        _LIFE + _RESTART + _END,
        _LIFE + 2 * _RESTART + _END,
        _LIFE + _RESTART[:1] + _LIFE[6:7] + _LIFE[8:9] + _END,  # stopped while it was down
        _LIFE + _RESTART[:1] + (("SANDBOX_FAILED", "FAILED", {"error_code": "CONTAINER_CRASHLOOP"}),)
        + _LIFE[9:] + _END,  # and resumed
        _LIFE + (("SANDBOX_STOP_REQUESTED", "READY", {"reason": "command_finished"}), _LIFE[8]) + _END,
        _LIFE[:1] + 3 * (_PREPARING,) + _LIFE[2:] + _END,  # killed twice during its create
    ],
    ids=["restart", "second-restart", "stop-of-a-restart", "resume-after-failure", "command-finished",
         "third-attempt"],
)
def test_a_life_may_go_like_this(good, life):
    set_last_life(good, life)
    good.engine_failed = True  # containers may end
    good.calls = [call for call in good.calls if call.answer is not REFUSED]
    assert broken_promises(good) == []


def test_the_third_crash_of_a_create_may_fail_it(good):
    failed = ("SANDBOX_FAILED", "FAILED", {"error_code": "SANDBOX_CREATE_FAILED"})
    set_last_life(good, _LIFE[:1] + 3 * (_PREPARING,) + (failed,) + _END)
    good.calls = [good.calls[0], good.calls[-2]]
    good.looks[-1].execs = {}
    assert broken_promises(good) == []


def test_an_idle_sandbox_may_be_stopped(good):
    stop_for_idleness(good, 1, 11)
    assert broken_promises(good) == []


def test_an_engine_may_refuse(good):
    message = "create container box: Error response from daemon: the engine closed the connection"
    failed = ("SANDBOX_FAILED", "FAILED",
              {"error_code": "SANDBOX_CREATE_FAILED", "error_message": message})
    set_last_life(good, _LIFE[:2] + (failed,) + _END)
    good.calls = [good.calls[0], good.calls[-2]]
    good.looks[-1].execs = {}
    good.engine_failed = True
    assert broken_promises(good) == []


# --- files and ports of the host -------------------------------------------------------------------

_CONTENT = "mounted\ncopied\n"
_ATTACHED = Attachments(
    mounts=(("/host/mounted", "/mounted", False), ("/host/written", "/written", True)),
    copies=(("/host/copied", "/copied"),),
    tools=("codex",),
    resources=((".codex", "/host/.codex", "/home/agbox/.codex"),),
    ports=((18200, 80),),
    files=("/mounted/value", "/copied/value"),
    content=_CONTENT,
    written="/written/ran",
)


@pytest.fixture
def attached(good):
    """The same life of a sandbox with mounts, a copy, a tool and a port."""
    good.calls[0] = replace(good.calls[0], attached=_ATTACHED)

    def with_them(seen):
        more = replace(
            seen.fixed,
            mounts=_ATTACHED.mounts,
            copies=_ATTACHED.copies,
            resources=_ATTACHED.resources,
            ports=_ATTACHED.ports,
        )
        return replace(seen, fixed=more)

    good.readings = [with_them(reading) for reading in good.readings]
    good.outputs = [OutputRead("exec-1", 4, f"-1\n{_CONTENT}", is_whole=True)]
    for look in good.looks:
        look.sandboxes["box"] = with_them(look.sandboxes["box"])
        look.execs["exec-1"] = replace(look.execs["exec-1"], output=f"exec-1\n{_CONTENT}")
        look.written = {"box": ["exec-1"]}
    good.looks[0].listening, good.looks[1].listening = {18200}, set()
    good.looks[0].guest_directories = ["9f3a"]
    return good


def refuse_a_port(history, port=18200, holder="sandbox box", **others):
    wanted = replace(_ATTACHED, ports=((port, 80),))
    words = f"host_port {port}/tcp on 127.0.0.1 is in use by {holder}; free it" if holder else "in use"
    history.calls.append(
        Call("create", "refused", REFUSED, attached=wanted, others=others, error=words, reason="PORT_IN_USE")
    )


def forget_the_mounts(history):
    seen = history.looks[-1].sandboxes["box"]
    history.looks[-1].sandboxes["box"] = replace(seen, fixed=replace(seen.fixed, mounts=()))


def have_another_port_than_asked_for(history):
    history.calls[0] = replace(history.calls[0], attached=replace(_ATTACHED, ports=((18201, 80),)))


def lose_the_copy(history):
    history.looks[-1].execs["exec-1"] = replace(history.looks[-1].execs["exec-1"], output="exec-1\nmounted\n")


def print_something_else_before_a_cancel(history):
    history.looks[-1].execs["exec-2"] = replace(history.looks[-1].execs["exec-2"], output="exec-2\nother\n")


def write_to_the_mount_twice(history):
    history.looks[-1].written["box"] *= 2


def never_write_to_the_mount(history):
    history.looks[-1].written["box"] = []


def keep_a_port_published(history):
    history.looks[-1].listening = {18200}


def not_publish_the_port(history):
    history.looks[0].listening = set()


def leave_the_directory_of_a_guest(history):
    history.looks[-1].guest_directories = ["9f3a"]


def leave_the_directory_of_companions(history):
    history.looks[-1].guest_directories = ["9f3a.companions"]


def refuse_a_port_that_is_free(history):
    refuse_a_port(history, 18201)


def refuse_the_port_of_a_deleted_sandbox(history):
    refuse_a_port(history, box=14)


def name_another_holder(history):
    refuse_a_port(history, holder="sandbox nobody")


def name_no_holder(history):
    refuse_a_port(history, holder="")


def fail_for_a_port_that_is_free(history):
    failed = ("SANDBOX_FAILED", "FAILED", {"error_code": "PORT_IN_USE"})
    set_last_life(history, _LIFE[:9] + _LIFE[9:11] + (failed,) + _END)


@pytest.mark.parametrize(
    "breaks, words",
    [
        (forget_the_mounts, "the last look says Fixed(image='image:1', labels=(('team', 'red'),), created_at=5, mounts=(), "),
        (have_another_port_than_asked_for, "ports=((18201, 80),)) was asked for"),
        (lose_the_copy, "it wrote 'exec-1\\nmounted\\n' instead of 'exec-1\\nmounted\\ncopied\\n'"),
        (print_something_else_before_a_cancel, "exec exec-2 of box: it wrote 'exec-2\\nother\\n' instead of"),
        (write_to_the_mount_twice, "its command ran 2 times"),
        (never_write_to_the_mount, "its command ran 0 times"),
        (keep_a_port_published, "the last look: port 18200 is published, and no live sandbox has it"),
        (not_publish_the_port, "READY, and its port 18200 is not published"),
        (leave_the_directory_of_a_guest, "the last look: 1 guest directories for 0 sandboxes"),
        (leave_the_directory_of_companions, "1 directories of companions' guests for 0 sandboxes with companions"),
        (refuse_a_port_that_is_free, "and no sandbox had one of the ports [18201]"),
        (refuse_the_port_of_a_deleted_sandbox, "and no sandbox had one of the ports [18200]"),
        (name_another_holder, "and not nobody had one of the ports [18200], but one of ['box']"),
        (name_no_holder, "and without the holder"),
        (fail_for_a_port_that_is_free, "and no other sandbox was to have one of the ports [18200]"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_broken_promise_about_the_host_is_seen(attached, breaks, words):
    breaks(attached)
    found = broken_promises(attached)
    assert any(words in sentence for sentence in found), found


def test_files_and_ports_of_the_host_are_passed(attached):
    refuse_a_port(attached, box=3)
    refuse_a_port(attached, holder="a process of user 0", box=3)
    cancelled = attached.looks[-1].execs["exec-2"]
    attached.looks[-1].execs["exec-2"] = replace(cancelled, output="exec-2\nmounted\n")
    assert broken_promises(attached) == []


def test_a_resume_may_fail_for_the_port_of_another_sandbox(attached):
    fail_for_a_port_that_is_free(attached)
    attached.calls.append(Call("create", "other", UNKNOWN, attached=_ATTACHED))
    assert not any("PORT_IN_USE" in sentence for sentence in broken_promises(attached))


@pytest.fixture
def ordered(good):
    """The same life, with the stream of all sandboxes, where the events of another sandbox come in between."""
    of_box = [Ordered("box", event) for event in events_of(good)]
    other = [Ordered("other", event) for event in numbered(_LIFE[:2])]
    good.ordered = [of_box[0], other[0], *of_box[1:3], other[1], *of_box[3:]]
    good.ordered_again = list(good.ordered)
    return good


def send_one_twice_to_all(history):
    history.ordered.insert(3, history.ordered[2])


def leave_one_out_for_all(history):
    del history.ordered[3]


def lose_the_newest_for_all(history):
    del history.ordered[-1], history.ordered_again[-1]


def send_another_event_to_all(history):
    history.ordered[3] = Ordered("box", replace(history.ordered[3].event, content=b"another"))


def order_them_in_another_way(history):
    first, second = history.ordered[:2]
    history.ordered[:2] = [second, first]


@pytest.mark.parametrize(
    "breaks, words",
    [
        (send_one_twice_to_all, "sandbox box: event 2 came after 2 in the stream of all sandboxes"),
        (leave_one_out_for_all, "sandbox box: event 4 came after 2 in the stream of all sandboxes"),
        (leave_one_out_for_all, "event 3, SANDBOX_READY, did not come in the stream of all sandboxes"),
        (lose_the_newest_for_all, "event 14, SANDBOX_DELETED, did not come in the stream of all sandboxes"),
        (send_another_event_to_all, "event 3 is another one in the stream of all sandboxes: b'another'"),
        (order_them_in_another_way, "event 1 was 1 of other, and is 1 of box for another reader"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_broken_promise_about_the_stream_of_all_sandboxes_is_seen(ordered, breaks, words):
    breaks(ordered)
    found = broken_promises(ordered)
    assert any(words in sentence for sentence in found), found


def test_the_stream_of_all_sandboxes_is_passed(ordered):
    assert broken_promises(ordered) == []


def test_the_stream_of_all_sandboxes_may_lack_what_is_purged(ordered):
    ordered.retention = ordered.cleanup_ttl = 1e-9
    ordered.looks[-1].sandboxes, ordered.looks[-1].execs = {}, {}
    ordered.looks.pop(0)
    ordered.streams[2].end = StreamEnd.ENDED
    ordered.missing.append(Missing("box", 14, at=9))
    del ordered.ordered[3]
    ordered.ordered_again = []
    assert broken_promises(ordered) == []
    send_one_twice_to_all(ordered)
    assert "sandbox box: event 2 came twice in the stream of all sandboxes" in broken_promises(ordered)


def of_companion(kind, name, state="READY", error_code=""):
    details = {"companion": name, "error_code": error_code}
    return (f"COMPANION_CONTAINER_{kind}", state, details)


_SERVICE_READY = of_companion("READY", "db", "PENDING")
_OUTAGE = (of_companion("FAILED", "side", error_code="CONTAINER_NOT_RUNNING"), of_companion("READY", "side"))
_WITH_COMPANIONS = (
    *_LIFE[:2], _SERVICE_READY, *_LIFE[2:6], of_companion("READY", "side"), *_OUTAGE,
    *_LIFE[6:11], _SERVICE_READY, _LIFE[11], of_companion("READY", "side"),
)


@pytest.fixture
def accompanied(good):
    """The same life of a sandbox with a service and a companion, which ends once."""
    good.calls = [replace(good.calls[0], companions=("db", "side")), good.calls[-2]]
    good.streams, good.readings, good.listings, good.snapshots, good.outputs = [], [], [], [], []
    good.calls[1] = replace(good.calls[1], known=len(_WITH_COMPANIONS))
    good.calls += [
        Call("exec", "box", ACKNOWLEDGED, exec_id="exec-1", exit_code=3, known=4),
        Call("exec", "box", UNKNOWN, exec_id="exec-2", known=4),
        Call("stop", "box", ACKNOWLEDGED, known=6),
        Call("resume", "box", ACKNOWLEDGED, known=13),
    ]
    good.outages = {("box", "side")}
    set_companions_life(good, _WITH_COMPANIONS)
    good.looks[0].companions = {"box": {"db": True, "side": True}}
    good.looks[0].hooked = {"box": ["hook-db"]}
    return good


def set_companions_life(history, life):
    events = tuple(numbered(life + _END))
    seen = (("db", "READY"), ("side", "READY"))
    first, last = history.looks[0].sandboxes["box"], history.looks[1].sandboxes["box"]
    history.looks[0].sandboxes["box"] = replace(
        first, sequence=len(life), events=events[: len(life)], companions=seen)
    history.looks[1].sandboxes["box"] = replace(last, sequence=len(events), events=events)


def test_a_life_with_companions_is_passed(accompanied):
    assert broken_promises(accompanied) == []


def report_an_outage_twice(history):
    set_companions_life(history, _WITH_COMPANIONS + _OUTAGE[:1] * 2 + _OUTAGE[1:])


def report_ready_twice(history):
    set_companions_life(history, _WITH_COMPANIONS + _OUTAGE[1:])


def report_a_companion_of_a_stopped_sandbox(history):
    at = _WITH_COMPANIONS.index(("SANDBOX_STOPPED", "STOPPED", {})) + 1
    late = of_companion("READY", "side", "STOPPED")
    set_companions_life(history, _WITH_COMPANIONS[:at] + (late,) + _WITH_COMPANIONS[at:])


def be_ready_before_the_service(history):
    set_companions_life(history, _WITH_COMPANIONS[:2] + _WITH_COMPANIONS[3:4] + (of_companion("READY", "db"),)
                        + _WITH_COMPANIONS[4:])


def never_end_an_outage(history):
    set_companions_life(history, _WITH_COMPANIONS + _OUTAGE[:1])


def fail_a_companion_for_no_reason(history):
    history.outages = set()


def not_run_a_companion(history):
    history.looks[0].companions["box"]["side"] = False


def lose_a_companion(history):
    del history.looks[0].companions["box"]["db"]


def leave_a_companion(history):
    history.looks[1].companions = {"box": {"side": False}}


def have_a_companion_of_nobody(history):
    history.looks[1].companions = {"nobody": {"side": True}}


def show_another_state_of_a_companion(history):
    seen = history.looks[0].sandboxes["box"]
    history.looks[0].sandboxes["box"] = replace(seen, companions=(("db", "READY"), ("side", "FAILED")))


def run_a_hook_twice(history):
    history.looks[0].hooked["box"] *= 2


def never_run_a_hook(history):
    history.looks[0].hooked["box"] = []


@pytest.mark.parametrize(
    "breaks, words",
    [
        (report_an_outage_twice, "COMPANION_CONTAINER_FAILED, of companion side comes twice for one outage"),
        (report_ready_twice, "COMPANION_CONTAINER_READY, of companion side comes twice for one outage"),
        (report_a_companion_of_a_stopped_sandbox, "of companion side comes while the sandbox is stopped"),
        (be_ready_before_the_service, "event 3, SANDBOX_READY, comes before db is ready"),
        (never_end_an_outage, "something is still under way"),
        (fail_a_companion_for_no_reason, "companion side failed with CONTAINER_NOT_RUNNING: '' on an engine that works"),
        (not_run_a_companion, "{'db': True, 'side': False} instead of {'db': True, 'side': True}"),
        (lose_a_companion, "{'side': True} instead of {'db': True, 'side': True}"),
        (leave_a_companion, "DELETED, and the engine has its companions ['side']"),
        (have_a_companion_of_nobody, "companions of nobody: the last look: the daemon knows no such sandbox"),
        (show_another_state_of_a_companion, "Get says {'db': 'READY', 'side': 'FAILED'} of its companions"),
        (run_a_hook_twice, "the command of db ran 2 times"),
        (never_run_a_hook, "the command of db ran 0 times"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_broken_promise_about_companions_is_seen(accompanied, breaks, words):
    breaks(accompanied)
    found = broken_promises(accompanied)
    assert any(words in sentence for sentence in found), found


@pytest.mark.parametrize("phase, refuses", [("create", True), ("resume", False)])
def test_only_a_resume_that_failed_for_a_port_may_be_repeated(phase, refuses):
    failed = ("SANDBOX_FAILED", "FAILED", {"error_code": "PORT_IN_USE"})
    life = Life()
    for event in numbered((_LIFE[:2] if phase == "create" else _LIFE[:11]) + (failed,)):
        life.follow(event)
    assert life.refuses("resume") == refuses


def test_a_purged_history_is_no_loss(good):
    good.retention = 1e-9
    good.looks[-1].sandboxes, good.looks[-1].execs = {}, {}
    good.streams[2].end = StreamEnd.ENDED
    good.missing.append(Missing("box", 14, at=9))
    assert broken_promises(good) == []


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
    assert recorder.all_known() == {"box": 3}
    assert recorder.entries() == 5
    assert not recorder.wait_for_entries(1, timeout=10, unless=lambda: True)
    assert not recorder.wait_for_entries(1, timeout=0)
