# SPDX-License-Identifier: Apache-2.0
"""Clients that record all requests, replies and observations: the calls of one client, a reader that follows a
sandbox through every restart, and a crowd with random requests."""

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import grpc
from robustness.calls import LONG, PORT_IN_USE
from robustness.history import (
    REACHED,
    SERVICE,
    SIDE,
    Answer,
    Attachments,
    Call,
    Event,
    Fixed,
    Labels,
    Listing,
    Missing,
    Ordered,
    OutputRead,
    Reading,
    Recorder,
    Snapshot,
    StreamEnd,
)
from robustness.host_files import HostFiles
from robustness.host_service import ADDRESS, PORT
from support.contract import Contract
from support.daemon import PrivateDaemon
from support.engine_api import EngineApi, EngineRefused

# The daemon answers immediately, even without an engine; this long only if something hangs.
_PATIENCE = 60
_RECONNECT_AT_ONCE = [
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.min_reconnect_backoff_ms", 20),
    ("grpc.max_reconnect_backoff_ms", 100),
    # Otherwise clients in one process share one connection.
    ("grpc.use_local_subchannel_pool", 1),
]
_CONNECTION_BROKE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
_REFUSALS = (
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.OUT_OF_RANGE,
)
# Refusals that depend on the state: a Get follows, so that it can be judged.
_BY_STATE = ("SANDBOX_INVALID_STATE", "SANDBOX_NOT_READY", "EXEC_ALREADY_TERMINAL")
_PAGE = 2  # sandboxes
RAN_FILE = "/tmp/ran"  # in every sandbox: one line for each exec whose command ran, and for each hook
HOOK = f"hook-{SERVICE}"  # what the service's command for the primary writes; fake_engine.cpp does the same
# Arguments: ID, duration, exit code, and in a sandbox with files of the host one to write to and those to print;
# fake_engine.cpp does the same without a shell. In between it tries to reach a service of the host.
_SCRIPT = f"""
echo "$0" >>{RAN_FILE}
echo "$0"
seconds=$1 code=$2
if [ $# -gt 2 ]; then echo "$0" >>"$3"; shift 3; cat "$@"; fi
answer=$(echo "$0" | nc -w 1 {ADDRESS} {PORT} 2>/dev/null)
if [ "$answer" = "$0" ]; then echo {REACHED}; fi
sleep "$seconds"
exit "$code"
"""


class Client:
    """One client of the daemon, with its own connection that reconnects after every restart."""

    def __init__(self, name: str, daemon: PrivateDaemon, contract: Contract, recorder: Recorder):
        self.name = name
        self.recorder = recorder
        self.contract = contract
        self.service = contract.service
        self.channel = grpc.insecure_channel(f"unix://{daemon.socket}", options=_RECONNECT_AT_ONCE)
        self.stub = contract.stub(self.channel)
        self._reads = 0

    def close(self) -> None:
        self.channel.close()

    def reconnect(self) -> str:
        """Returns the instance ID when the current daemon answers on this connection. The connection to
        a killed one may break only now, and then once."""
        request = self.service.PingRequest()
        for _ in range(2):
            try:
                answer = self.stub.Ping(request, timeout=_PATIENCE, wait_for_ready=True)
                return answer.instance_id
            except grpc.RpcError as error:
                if error.code() not in _CONNECTION_BROKE:
                    raise
        raise RuntimeError(f"{self.name}: the connection to the daemon broke twice")

    # --- calls that change something; each is recorded with its answer ---

    def create(
        self,
        sandbox_id: str,
        image: str,
        labels: Labels = (),
        idle_ttl: int | None = None,
        attached: Attachments = Attachments(),
        has_companions: bool = False,
    ) -> Answer:
        self.recorder.attach(sandbox_id, attached)
        messages = self.contract.spec
        spec = messages.CreateSpec(
            image=image,
            labels=dict(labels),
            mounts=[messages.MountSpec(source=s, target=t, writable=w) for s, t, w in attached.mounts],
            copies=[messages.CopySpec(source=s, target=t) for s, t in attached.copies],
            builtin_tools=attached.tools,
            ports=[messages.PortMapping(host_port=h, container_port=c) for h, c in attached.ports],
        )
        if has_companions:
            self._add_companions(spec, image)
        if idle_ttl is not None:
            spec.idle_ttl.seconds = idle_ttl
        request = self.service.CreateSandboxRequest(create_spec=spec, sandbox_id=sandbox_id)
        call = Call(
            "create",
            sandbox_id,
            Answer.UNKNOWN,
            image=image,
            labels=labels,
            idle_ttl=idle_ttl,
            attached=attached,
            companions=(SERVICE, SIDE) if has_companions else (),
        )
        return self._change(call, self.stub.CreateSandbox, request)

    def _add_companions(self, spec: Any, image: str) -> None:
        messages = self.contract.spec
        sleep = ["sleep", "100000"]
        check = messages.HealthcheckConfig(test=["CMD", "true"])
        spec.required_services.add(
            name=SERVICE,
            image=image,
            command=sleep,
            healthcheck=check,
            post_start_on_primary=[f"echo {HOOK} >>{RAN_FILE}"],
        )
        spec.companion_containers.add(name=SIDE, image=image, command=sleep, healthcheck=check)

    def stop(self, sandbox_id: str) -> Answer:
        request = self.service.StopSandboxRequest(sandbox_id=sandbox_id)
        call = Call("stop", sandbox_id, Answer.UNKNOWN)
        return self._change(call, self.stub.StopSandbox, request)

    def resume(self, sandbox_id: str) -> Answer:
        request = self.service.ResumeSandboxRequest(sandbox_id=sandbox_id)
        call = Call("resume", sandbox_id, Answer.UNKNOWN)
        return self._change(call, self.stub.ResumeSandbox, request)

    def delete(self, sandbox_id: str) -> Answer:
        request = self.service.DeleteSandboxRequest(sandbox_id=sandbox_id)
        call = Call("delete", sandbox_id, Answer.UNKNOWN)
        return self._change(call, self.stub.DeleteSandbox, request)

    def exec(self, sandbox_id: str, exec_id: str, exit_code: int, seconds: float) -> Answer:
        """A command that writes its ID to the sandbox and to its output, once per run."""
        command = ["sh", "-c", _SCRIPT, exec_id, f"{seconds:.2f}", str(exit_code)]
        attached = self.recorder.attached(sandbox_id)
        if attached.files:
            command += [attached.written, *attached.files]
        request = self.service.CreateExecRequest(
            sandbox_id=sandbox_id, exec_id=exec_id, command=command
        )
        call = Call(
            "exec", sandbox_id, Answer.UNKNOWN, exec_id=exec_id, exit_code=exit_code, seconds=seconds
        )
        return self._change(call, self.stub.CreateExec, request)

    def cancel(self, sandbox_id: str, exec_id: str) -> Answer:
        request = self.service.CancelExecRequest(exec_id=exec_id)
        call = Call("cancel", sandbox_id, Answer.UNKNOWN, exec_id=exec_id)
        return self._change(call, self.stub.CancelExec, request)

    def delete_all(self, labels: Labels, candidates: Iterable[str]) -> None:
        """DeleteSandboxes. Recorded as a delete of each sandbox that it returned, or may have deleted: the
        candidates."""
        known = self.recorder.all_known()
        request = self.service.DeleteSandboxesRequest(label_selector=dict(labels))
        answer = Answer.UNKNOWN
        try:
            response = self.stub.DeleteSandboxes(request, timeout=_PATIENCE, wait_for_ready=True)
            candidates = response.deleted_sandbox_ids
            answer = Answer.ACKNOWLEDGED
        except grpc.RpcError as error:
            self._judge(f"DeleteSandboxes with {dict(labels)}", error)
        now = time.monotonic()
        for sandbox_id in candidates:
            self.recorder.call(
                Call(
                    "delete",
                    sandbox_id,
                    answer,
                    labels=labels,
                    known=known.get(sandbox_id, 0),
                    answered_at=now,
                    client=self.name,
                )
            )
        if answer is Answer.ACKNOWLEDGED:
            self.recorder.mass_delete(labels, known)

    def _change(self, call: Call, method: Callable, request: Any) -> Answer:
        all_known = self.recorder.all_known()
        known = all_known.get(call.sandbox_id, 0)
        answer, words, reason = Answer.ACKNOWLEDGED, "", ""
        try:
            method(request, timeout=_PATIENCE, wait_for_ready=True)
        except grpc.RpcError as error:
            answer, words = self._judge(f"{call.kind} of {call.exec_id or call.sandbox_id}", error)
            reason = self._reason(error)
        answered_at = time.monotonic()
        after = self.get(call.sandbox_id, known) if reason in _BY_STATE else None
        self.recorder.call(
            replace(
                call,
                answer=answer,
                known=known,
                latest=after.sequence if after else None,
                others=all_known if reason == PORT_IN_USE else {},
                answered_at=answered_at,
                client=self.name,
                error=words,
                reason=reason,
            )
        )
        return answer

    def _reason(self, error: grpc.RpcError) -> str:
        """Of a refusal by the daemon; empty for an error of gRPC itself."""
        trailers = dict(error.trailing_metadata() or ())
        packed = trailers.get("grpc-status-details-bin")
        if packed is None:
            return ""
        details = self.contract.error_details
        return details.ErrorInfo.FromString(details.Status.FromString(packed).details[0].value).reason

    def _judge(self, what: str, error: grpc.RpcError) -> tuple[Answer, str]:
        words = f"{error.code().name}: {error.details()}"
        # Errors of the daemon have details; gRPC's own for a broken connection have none.
        said = {key for key, _ in error.trailing_metadata() or ()}
        if error.code() in _REFUSALS:
            return Answer.REFUSED, words
        if error.code() in _CONNECTION_BROKE:
            is_said = "grpc-status-details-bin" in said
            return (Answer.REFUSED if is_said else Answer.UNKNOWN), words
        self.recorder.complain(f"{what}: {words}")
        return Answer.UNKNOWN, words

    # --- reads ---

    def get(self, sandbox_id: str, known: int = 0) -> Reading | None:
        """The recorded result of Get; None if there is no such sandbox or the connection broke."""
        asked_at = time.monotonic()
        request = self.service.GetSandboxRequest(sandbox_id=sandbox_id)
        try:
            answer = self.stub.GetSandbox(request, timeout=_PATIENCE, wait_for_ready=True).sandbox
        except grpc.RpcError as error:
            if self._judge(f"Get of {sandbox_id}", error)[0] is Answer.REFUSED:
                self.recorder.missing(Missing(sandbox_id, known, time.time_ns()))
            return None
        reading = self._reading(answer, known, asked_at)
        self.recorder.reading(reading)
        return reading

    def _reading(self, handle: Any, known: int, asked_at: float) -> Reading:
        return Reading(
            handle.sandbox_id,
            self.state_name(handle.state),
            handle.last_event_sequence,
            known,
            asked_at,
            fixed_of(handle),
            handle.restart_count,
        )

    def list_all(self, labels: Labels) -> None:
        """Every page of a list."""
        known, asked_at = self.recorder.all_known(), time.monotonic()
        listed: list[Reading] = []
        token = ""
        while True:
            request = self.service.ListSandboxesRequest(
                label_selector=dict(labels), page_size=_PAGE, page_token=token
            )
            try:
                page = self.stub.ListSandboxes(request, timeout=_PATIENCE, wait_for_ready=True)
            except grpc.RpcError as error:
                self._judge(f"a list with the labels {dict(labels)}", error)
                return
            listed += [self._reading(one, known.get(one.sandbox_id, 0), asked_at) for one in page.sandboxes]
            token = page.next_page_token
            if not token:
                break
        for reading in listed:
            self.recorder.reading(reading)
        ids = tuple(reading.sandbox_id for reading in listed)
        self.recorder.listing(Listing(labels, ids, known, time.time_ns()))

    def snapshot(self, sandbox_id: str, newest: int) -> None:
        """What a subscription with a snapshot begins with. The event before the newest one follows it."""
        if newest < 2:
            return
        request = self.service.SubscribeSandboxEventsRequest(
            sandbox_id=sandbox_id, from_sequence=newest - 2, include_current_snapshot=True
        )
        call = self.stub.SubscribeSandboxEvents(request, timeout=_PATIENCE, wait_for_ready=True)
        shown: list[Any] = []
        try:
            for message in call:
                if not message.snapshot:
                    first = shown[0]
                    execs = frozenset(one.exec.exec_id for one in shown[1:])
                    state = self.state_name(first.sandbox_state)
                    self.recorder.snapshot(Snapshot(sandbox_id, first.sequence, state, execs))
                    return
                shown.append(message)
        except grpc.RpcError as error:
            self._judge(f"a snapshot of {sandbox_id}", error)
        finally:
            call.cancel()

    def read_output(self, exec_id: str, offset: int, follow: bool) -> None:
        request = self.service.ReadExecOutputRequest(
            exec_id=exec_id,
            stream=self.contract.exec.OutputStream.OUTPUT_STREAM_STDOUT,
            offset=offset,
            follow=follow,
        )
        data = b""
        is_whole = False
        try:
            for part in self.stub.ReadExecOutput(request, timeout=_PATIENCE, wait_for_ready=True):
                data += part.data
            is_whole = follow
        except grpc.RpcError as error:
            if self._judge(f"output of {exec_id}", error)[0] is Answer.REFUSED:
                return
        self.recorder.output(OutputRead(exec_id, offset, data.decode(), is_whole))

    def subscribe(self, sandbox_id: str, anchor: int, timeout: float | None = None) -> Any:
        request = self.service.SubscribeSandboxEventsRequest(
            sandbox_id=sandbox_id, from_sequence=anchor
        )
        return self.stub.SubscribeSandboxEvents(request, timeout=timeout, wait_for_ready=True)

    def read_from(self, sandbox_id: str, anchor: int, newest: int) -> None:
        """Reads old events again, as a new reader."""
        if anchor >= newest:
            return
        # A new reader: it continues no other.
        self._reads += 1
        reader = f"read {self._reads} of {self.name}"
        stream = self.recorder.stream(reader, sandbox_id, anchor)
        call = self.subscribe(sandbox_id, anchor, _PATIENCE)
        try:
            for message in call:
                event = self.event(message)
                self.recorder.event(stream, event)
                if event.sequence >= newest:
                    break
        except grpc.RpcError as error:
            self._judge(f"events of {sandbox_id} after {anchor}", error)
        finally:
            call.cancel()

    def event(self, message: Any) -> Event:
        plain = type(message).FromString(message.SerializeToString())
        plain.replay = False
        details = {}
        if message.HasField("exec"):
            details = {
                "exec_id": message.exec.exec_id,
                "exit_code": message.exec.exit_code,
                "error_code": message.exec.error_code,
            }
        elif message.HasField("sandbox_phase"):
            phase = message.sandbox_phase
            details = {
                "error_code": phase.error_code,
                "error_message": phase.error_message,
                "phase": phase.phase,
                "reason": phase.reason,
            }
        elif message.HasField("companion_container"):
            companion = message.companion_container
            details = {
                "companion": companion.name,
                "error_code": companion.error_code,
                "error_message": companion.error_message,
            }
        return Event(
            sequence=message.sequence,
            kind=self.contract.event.EventType.Name(message.event_type),
            state=self.state_name(message.sandbox_state),
            content=plain.SerializeToString(deterministic=True),
            at=message.occurred_at.ToNanoseconds(),
            **details,
        )

    def state_name(self, state: int) -> str:
        return self.contract.sandbox.SandboxState.Name(state).removeprefix("SANDBOX_STATE_")


def fixed_of(handle: Any) -> Fixed:
    return Fixed(
        handle.image,
        tuple(sorted(handle.labels.items())),
        handle.created_at.ToNanoseconds(),
        tuple((one.source, one.target, one.writable) for one in handle.mounts),
        tuple((one.source, one.target) for one in handle.copies),
        tuple((one.id, one.source, one.target) for one in handle.builtin_resources),
        tuple((one.host_port, one.container_port) for one in handle.ports),
    )


# How a reader gets its messages: a test may modify them.
Tap = Callable[[str, int, Iterable], Iterator]


def untapped(sandbox_id: str, anchor: int, messages: Iterable) -> Iterator:
    return iter(messages)


class Reader:
    """Follows one sandbox until its end, resuming after every restart of the daemon. At each event it calls
    Get, which must not be older."""

    def __init__(self, client: Client, sandbox_id: str, tap: Tap = untapped):
        self._client = client
        self._recorder = client.recorder
        self._sandbox_id = sandbox_id
        self._tap = tap
        self._lock = threading.Lock()
        self._is_over = False
        self._call: Any = None
        self._thread = threading.Thread(target=self._follow, name=f"reader of {sandbox_id}")
        self._thread.start()

    def close(self) -> None:
        with self._lock:
            self._is_over = True
            if self._call is not None:
                self._call.cancel()
        self._thread.join()

    def _is_closed(self) -> bool:
        with self._lock:
            return self._is_over

    def _open(self, anchor: int) -> Any:
        with self._lock:
            if self._is_over:
                return None
            self._call = self._client.subscribe(self._sandbox_id, anchor)
            return self._call

    def _follow(self) -> None:
        anchor = 0
        while call := self._open(anchor):
            stream = self._recorder.stream("reader", self._sandbox_id, anchor)
            try:
                for message in self._tap(self._sandbox_id, anchor, call):
                    event = self._client.event(message)
                    self._recorder.event(stream, event)
                    anchor = event.sequence
                    self._client.get(self._sandbox_id, known=anchor)
                    if event.kind == "SANDBOX_DELETED":
                        return
                self._recorder.stream_end(stream, StreamEnd.ENDED)
            except grpc.RpcError as error:
                if error.code() in _CONNECTION_BROKE:
                    if not self._is_closed():
                        self._recorder.stream_end(stream, StreamEnd.BROKE)
                    continue
                if error.code() is grpc.StatusCode.NOT_FOUND:
                    # One whose create was interrupted need not exist.
                    self._recorder.missing(Missing(self._sandbox_id, anchor, time.time_ns()))
                    return
                self._recorder.complain(
                    f"sandbox {self._sandbox_id}: subscribing after event {anchor}: "
                    f"{error.code().name}: {error.details()}"
                )
                return


class AllReader:
    """Follows all sandboxes in one stream, resuming at its cursor after every restart of the daemon."""

    def __init__(self, client: Client):
        self._client = client
        self._recorder = client.recorder
        self._recorder.history.ordered = []
        self._cursor = ""
        self._lock = threading.Lock()
        self._is_over = False
        self._call: Any = None
        self._thread = threading.Thread(target=self._follow, name="reader of all sandboxes")
        self._thread.start()

    def close(self) -> None:
        with self._lock:
            self._is_over = True
            if self._call is not None:
                self._call.cancel()
        self._thread.join()

    def finish(self) -> None:
        """Reads what has not come yet, and all of it again. The daemon must be running and at rest."""
        self.close()
        self._client.reconnect()
        try:
            self._read(self._subscribe(self._cursor), self._recorder.ordered, until_caught_up=True)
            again: list[Ordered] = []
            self._read(self._subscribe(""), again.append, until_caught_up=True)
            self._recorder.history.ordered_again = again
        except grpc.RpcError as error:
            self._recorder.complain(f"the stream of all sandboxes: {error.code().name}: {error.details()}")

    def _subscribe(self, cursor: str) -> Any:
        oldest = self._client.service.EVENTS_START_OLDEST
        begin = {"cursor": cursor} if cursor else {"start": oldest}
        request = self._client.service.SubscribeEventsRequest(**begin)
        return self._client.stub.SubscribeEvents(request, wait_for_ready=True)

    def _read(self, call: Any, record: Callable[[Ordered], None], until_caught_up: bool) -> None:
        for message in call:
            if message.events_missing and self._recorder.history.retention is None:
                self._recorder.complain(f"the stream of all sandboxes lacks events before {message.cursor}")
            if message.HasField("event"):
                record(Ordered(message.event.sandbox_id, self._client.event(message.event)))
            if not until_caught_up:
                self._cursor = message.cursor
            elif message.caught_up:
                call.cancel()
                return
        self._recorder.complain("the stream of all sandboxes ended without an error")

    def _follow(self) -> None:
        while True:
            with self._lock:
                if self._is_over:
                    return
                self._call = self._subscribe(self._cursor)
            try:
                self._read(self._call, self._recorder.ordered, until_caught_up=False)
                return
            except grpc.RpcError as error:
                if error.code() not in _CONNECTION_BROKE:
                    self._recorder.complain(
                        f"the stream of all sandboxes: {error.code().name}: {error.details()}"
                    )
                    return


# Requests by the observed state of a sandbox, with percentages. Some are refused, because they come too late
# or make no sense.
_WISHES = {
    "PENDING": {"nothing": 86, "read": 4, "list": 4, "exec": 2, "stop": 2, "delete": 2},
    "READY": {
        "exec": 50,
        "cancel": 6,
        "output": 8,
        "snapshot": 6,
        "read": 4,
        "list": 4,
        "stop": 5,
        "end companion": 12,
        "delete": 3,
        "delete all": 1,
        "create": 1,
    },
    "STOPPED": {"resume": 78, "read": 6, "snapshot": 4, "list": 4, "exec": 5, "delete": 3},
    "FAILED": {"delete": 70, "read": 20, "resume": 5, "exec": 5},
    "DELETING": {"nothing": 80, "list": 4, "create": 8, "delete": 8},
    "DELETED": {"create": 40, "read": 20, "list": 4, "exec": 18, "delete": 18},
}
_TEAMS = ("red", "red", "blue", "blue", "grey")
_DELETED_TOGETHER = (("team", "grey"),)
_IDLE_TTL = 1  # second, of one in six
_SHARE_WITH_COMPANIONS = 0.3
_LONG_SHARE = 0.04  # of the commands


def end_companion(engine: EngineApi, recorder: Recorder, sandbox_id: str) -> None:
    """As if its program had crashed."""
    recorder.outage(sandbox_id, SIDE)
    try:
        engine.call("POST", f"/containers/agbox-cc-{sandbox_id}-{SIDE}/kill")
    except (EngineRefused, OSError):
        pass  # it does not exist or does not run, or neither does the engine


class Crowd:
    """Several clients that create, use, stop, resume and delete their own and each other's sandboxes until
    rest(). Their choices follow from the seed; their timing does not."""

    CLIENTS = 3
    MOST_ALIVE = 4  # sandboxes of all clients

    def __init__(
        self,
        seed: str,
        image: str,
        daemon: PrivateDaemon,
        contract: Contract,
        recorder: Recorder,
        files: HostFiles,
        engine: EngineApi,
        tap: Tap = untapped,
    ):
        self._files, self._engine = files, engine
        self._image, self._daemon, self._contract = image, daemon, contract
        self.recorder = recorder
        self._tap = tap
        self._rest = threading.Event()
        self._is_at_rest = False
        self._lock = threading.Lock()
        self._alive: list[str] = []
        self._execs: dict[str, list[str]] = {}
        self._long: dict[str, str] = {}  # execs that only a cancel or a stop ends, with their sandboxes
        self._labels: dict[str, Labels] = {}
        self._with_companions: set[str] = set()
        self.asked: list[str] = []  # every sandbox that may exist
        self._readers: list[Reader] = []
        self._observer = self._connect("observer")
        self._clients = [self._connect(f"client-{number}") for number in range(self.CLIENTS)]
        self._threads = [
            threading.Thread(
                target=self._live, args=(client, random.Random(f"{seed}/{client.name}")),
                name=client.name,
            )
            for client in self._clients
        ]

    def __enter__(self) -> "Crowd":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.rest()

    def rest(self) -> None:
        """Returns when every client has its last answer. The daemon must be running."""
        if self._is_at_rest:
            return
        self._is_at_rest = True
        self._rest.set()
        for thread in self._threads:
            thread.join()
        self._observer.reconnect()
        for exec_id, sandbox_id in self._long.items():
            self._observer.cancel(sandbox_id, exec_id)
        for reader in self._readers:
            reader.close()
        for client in [*self._clients, self._observer]:
            client.close()

    def _connect(self, name: str) -> Client:
        return Client(name, self._daemon, self._contract, self.recorder)

    def _live(self, client: Client, rng: random.Random) -> None:
        for number in range(1_000_000):
            if self._rest.wait(rng.uniform(0, 0.1)):  # pause like a user
                return
            with self._lock:
                sandbox_id = rng.choice(self._alive) if self._alive else ""
                has_room = len(self._alive) < self.MOST_ALIVE
            if not sandbox_id or (has_room and rng.random() < 0.15):
                if has_room:
                    self._create(client, rng, f"{client.name}-{number}")
                continue
            known = self.recorder.known(sandbox_id)
            reading = client.get(sandbox_id, known)
            if reading is not None:
                self._use(client, rng, reading, f"{client.name}-exec-{number}")
            elif not known:
                self._forget(sandbox_id)  # its create was interrupted, and possibly never done
            elif self.recorder.history.may_be_purged(sandbox_id):
                client.create(sandbox_id, self._image)  # the ID stays reserved
                self._forget(sandbox_id)

    def _create(self, client: Client, rng: random.Random, sandbox_id: str) -> None:
        labels = (("client", client.name), ("team", rng.choice(_TEAMS)))
        idle_ttl = _IDLE_TTL if rng.randrange(6) == 0 else None
        attached = self._files.choose(rng, sandbox_id)
        has_companions = rng.random() < _SHARE_WITH_COMPANIONS
        with self._lock:
            self._alive.append(sandbox_id)
            self._labels[sandbox_id] = labels
        answer = client.create(sandbox_id, self._image, labels, idle_ttl, attached, has_companions)
        if answer is Answer.REFUSED:
            self._forget(sandbox_id)
            return
        with self._lock:
            if has_companions:
                self._with_companions.add(sandbox_id)
            self.asked.append(sandbox_id)
            self._readers.append(Reader(self._observer, sandbox_id, self._tap))

    def _use(self, client: Client, rng: random.Random, reading: Reading, exec_id: str) -> None:
        sandbox_id = reading.sandbox_id
        wishes = _WISHES[reading.state]
        wish = rng.choices(list(wishes), weights=list(wishes.values()))[0]
        if wish == "exec":
            self._exec(client, rng, sandbox_id, exec_id)
        elif wish in ("cancel", "output"):
            with self._lock:
                execs = self._execs.get(sandbox_id, [])[-3:]
            if execs and wish == "cancel":
                client.cancel(sandbox_id, rng.choice(execs))
            elif execs:
                client.read_output(rng.choice(execs), rng.randrange(3), rng.random() < 0.5)
        elif wish == "read":
            client.read_from(sandbox_id, rng.randrange(reading.sequence), reading.sequence)
        elif wish == "snapshot":
            client.snapshot(sandbox_id, reading.sequence)
        elif wish == "list":
            client.list_all(rng.choice(((), (("team", "red"),), (("client", client.name),))))
        elif wish == "delete all":
            with self._lock:
                meant = [s for s, labels in self._labels.items() if set(_DELETED_TOGETHER) <= set(labels)]
            client.delete_all(_DELETED_TOGETHER, meant)
        elif wish == "end companion":
            with self._lock:
                is_meant = sandbox_id in self._with_companions
            if is_meant:
                end_companion(self._engine, self.recorder, sandbox_id)
        elif wish == "create":  # the ID stays reserved
            client.create(sandbox_id, self._image)
        elif wish != "nothing":
            {"stop": client.stop, "resume": client.resume, "delete": client.delete}[wish](sandbox_id)
        if reading.state == "DELETED":
            self._forget(sandbox_id)

    def _exec(self, client: Client, rng: random.Random, sandbox_id: str, exec_id: str) -> None:
        exit_code, seconds = rng.choice((0, 0, 1, 3, 77)), rng.choice((0, 0, 0.2, 1, 3))
        is_long, is_cancelled = rng.random() < _LONG_SHARE, rng.random() < 0.5
        if is_long:
            seconds = LONG
        if client.exec(sandbox_id, exec_id, exit_code, seconds) is Answer.REFUSED:
            return
        with self._lock:
            if is_long:
                self._long[exec_id] = sandbox_id
            else:  # nobody waits for the output of a long one
                self._execs.setdefault(sandbox_id, []).append(exec_id)
        if is_long and is_cancelled:
            client.cancel(sandbox_id, exec_id)

    def _forget(self, sandbox_id: str) -> None:
        with self._lock:
            if sandbox_id in self._alive:
                self._alive.remove(sandbox_id)
