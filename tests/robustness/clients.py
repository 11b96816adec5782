# SPDX-License-Identifier: Apache-2.0
"""Clients that record all requests, replies and observations: the calls of one client, a reader that follows a
sandbox through every restart, and a crowd with random requests."""

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import grpc
from robustness.history import REACHED, Answer, Call, Event, Reading, Recorder
from robustness.host_service import ADDRESS, PORT
from support.contract import Contract
from support.daemon import PrivateDaemon

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
RAN_FILE = "/tmp/ran"  # in every sandbox: one line for each exec whose command ran
# Arguments: ID, duration, exit code; fake_engine.cpp does the same without a shell. In between it tries to
# reach a service of the host.
_SCRIPT = f"""
echo "$0" >>{RAN_FILE}
echo "$0"
answer=$(echo "$0" | nc -w 1 {ADDRESS} {PORT} 2>/dev/null)
if [ "$answer" = "$0" ]; then echo {REACHED}; fi
sleep "$1"
exit "$2"
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

    def create(self, sandbox_id: str, image: str) -> Answer:
        spec = self.contract.spec.CreateSpec(image=image)
        request = self.service.CreateSandboxRequest(create_spec=spec, sandbox_id=sandbox_id)
        return self._change("create", self.stub.CreateSandbox, request, sandbox_id)

    def stop(self, sandbox_id: str) -> Answer:
        request = self.service.StopSandboxRequest(sandbox_id=sandbox_id)
        return self._change("stop", self.stub.StopSandbox, request, sandbox_id)

    def resume(self, sandbox_id: str) -> Answer:
        request = self.service.ResumeSandboxRequest(sandbox_id=sandbox_id)
        return self._change("resume", self.stub.ResumeSandbox, request, sandbox_id)

    def delete(self, sandbox_id: str) -> Answer:
        request = self.service.DeleteSandboxRequest(sandbox_id=sandbox_id)
        return self._change("delete", self.stub.DeleteSandbox, request, sandbox_id)

    def exec(self, sandbox_id: str, exec_id: str, exit_code: int, seconds: float) -> Answer:
        """A command that writes its ID to the sandbox and to its output, once per run."""
        command = ["sh", "-c", _SCRIPT, exec_id, f"{seconds:.2f}", str(exit_code)]
        request = self.service.CreateExecRequest(
            sandbox_id=sandbox_id, exec_id=exec_id, command=command
        )
        return self._change("exec", self.stub.CreateExec, request, sandbox_id, exec_id, exit_code)

    def cancel(self, sandbox_id: str, exec_id: str) -> Answer:
        request = self.service.CancelExecRequest(exec_id=exec_id)
        return self._change("cancel", self.stub.CancelExec, request, sandbox_id, exec_id)

    def _change(
        self,
        kind: str,
        method: Callable,
        request: Any,
        sandbox_id: str,
        exec_id: str = "",
        exit_code: int = 0,
    ) -> Answer:
        known = self.recorder.known(sandbox_id)
        answer, words = Answer.ACKNOWLEDGED, ""
        try:
            method(request, timeout=_PATIENCE, wait_for_ready=True)
        except grpc.RpcError as error:
            answer, words = self._judge(f"{kind} of {exec_id or sandbox_id}", error)
        self.recorder.call(
            Call(
                kind,
                sandbox_id,
                answer,
                exec_id=exec_id,
                exit_code=exit_code,
                known=known,
                answered_at=time.monotonic(),
                client=self.name,
                error=words,
            )
        )
        return answer

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
            if self._judge(f"Get of {sandbox_id}", error)[0] is Answer.REFUSED and known:
                self.recorder.complain(
                    f"sandbox {sandbox_id}: Get says {error.details()!r} after event {known} was seen"
                )
            return None
        reading = Reading(
            sandbox_id, self.state_name(answer.state), answer.last_event_sequence, known, asked_at
        )
        self.recorder.reading(reading)
        return reading

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
            details = {"error_code": message.sandbox_phase.error_code}
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
            except grpc.RpcError as error:
                if error.code() in _CONNECTION_BROKE:
                    continue
                # One whose create was interrupted need not exist.
                if error.code() is not grpc.StatusCode.NOT_FOUND or anchor:
                    self._recorder.complain(
                        f"sandbox {self._sandbox_id}: subscribing after event {anchor}: "
                        f"{error.code().name}: {error.details()}"
                    )
                return


# Requests by the observed state of a sandbox, with percentages. Some are refused, because they come too late
# or make no sense.
_WISHES = {
    "PENDING": {"nothing": 90, "read": 4, "exec": 2, "stop": 2, "delete": 2},
    "READY": {"exec": 79, "cancel": 6, "read": 6, "stop": 5, "delete": 3, "create": 1},
    "STOPPED": {"resume": 82, "read": 10, "exec": 5, "delete": 3},
    "FAILED": {"delete": 70, "read": 20, "resume": 5, "exec": 5},
    "DELETING": {"nothing": 84, "create": 8, "delete": 8},
    "DELETED": {"create": 40, "read": 20, "exec": 20, "delete": 20},
}


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
        tap: Tap = untapped,
    ):
        self._image, self._daemon, self._contract = image, daemon, contract
        self.recorder = recorder
        self._tap = tap
        self._rest = threading.Event()
        self._lock = threading.Lock()
        self._alive: list[str] = []
        self._execs: dict[str, list[str]] = {}
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
        self._rest.set()
        for thread in self._threads:
            thread.join()
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
                    self._create(client, f"{client.name}-{number}")
                continue
            reading = client.get(sandbox_id)
            if reading is not None:
                self._use(client, rng, reading, f"{client.name}-exec-{number}")
            elif not self.recorder.known(sandbox_id):
                self._forget(sandbox_id)  # its create was interrupted, and possibly never done

    def _create(self, client: Client, sandbox_id: str) -> None:
        with self._lock:
            self._alive.append(sandbox_id)
        if client.create(sandbox_id, self._image) is Answer.REFUSED:
            self._forget(sandbox_id)
            return
        with self._lock:
            self.asked.append(sandbox_id)
            self._readers.append(Reader(self._observer, sandbox_id, self._tap))

    def _use(self, client: Client, rng: random.Random, reading: Reading, exec_id: str) -> None:
        sandbox_id = reading.sandbox_id
        wishes = _WISHES[reading.state]
        wish = rng.choices(list(wishes), weights=list(wishes.values()))[0]
        exit_code, seconds = rng.choice((0, 0, 1, 3, 77)), rng.choice((0, 0, 0.2, 1, 3))
        if wish == "exec":
            if client.exec(sandbox_id, exec_id, exit_code, seconds) is not Answer.REFUSED:
                with self._lock:
                    self._execs.setdefault(sandbox_id, []).append(exec_id)
        elif wish == "cancel":
            with self._lock:
                execs = self._execs.get(sandbox_id, [])[-3:]
            if execs:
                client.cancel(sandbox_id, rng.choice(execs))
        elif wish == "read":
            client.read_from(sandbox_id, rng.randrange(reading.sequence), reading.sequence)
        elif wish == "create":  # the ID stays reserved
            client.create(sandbox_id, self._image)
        elif wish != "nothing":
            {"stop": client.stop, "resume": client.resume, "delete": client.delete}[wish](sandbox_id)
        if reading.state == "DELETED":
            self._forget(sandbox_id)

    def _forget(self, sandbox_id: str) -> None:
        with self._lock:
            if sandbox_id in self._alive:
                self._alive.remove(sandbox_id)
