# SPDX-License-Identifier: Apache-2.0
"""Steps of a client with sandboxes, and the resulting objects in the engine."""

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import grpc

from support.contract import Contract
from support.daemon import PrivateDaemon
from support.engine import PrivateEngine

# A private engine's host has no resolver that a container can use.
CONFIG = '[runtime]\nlog_level = "debug"\n[network]\ndns = ["192.0.2.53"]\n'
DOMAIN = "agents-sandbox"
LABEL = "io.github.1996fanrui.agents-sandbox"
PENDING, READY, FAILED, STOPPED, DELETING, DELETED = 1, 2, 3, 4, 5, 6
PREPARING = 2  # the event

_ROOT = Path(__file__).resolve().parents[2]
# Every failpoint of the operations in control/.
_FAILPOINTS = subprocess.run(
    [sys.executable, str(_ROOT / "scripts" / "check-failpoints"), "--list"],
    check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout.split()
_START_FAILPOINTS = [name for name in _FAILPOINTS if name.startswith("start.")]
CREATE_FAILPOINTS = [name for name in _FAILPOINTS if name.startswith("create.")] + _START_FAILPOINTS
STOP_FAILPOINTS = [name for name in _FAILPOINTS if name.startswith("stop.")]
# Those of a successful resume of a stopped container.
RESUME_FAILPOINTS = [name for name in _FAILPOINTS if name.startswith("resume.")
                     and not name.startswith(("resume.stop.", "resume.undo."))] + _START_FAILPOINTS
DELETE_FAILPOINTS = [name for name in _FAILPOINTS if name.startswith("delete.")]

_PATIENCE = 90  # timeout of a stream in seconds; a create takes about one

# How streams end when the daemon stops or the test ends.
_STREAM_ENDS = (grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED)


def wait_until(holds: Callable[[], object], what: str, timeout: float = 60) -> None:
    """For what a client can only ask for; the default is twice the longest wait between two verifications."""
    deadline = time.monotonic() + timeout
    while not holds():
        assert time.monotonic() < deadline, f"{what}: not within {timeout} s"
        time.sleep(0.02)


class Sandboxes:
    """A client of one daemon: `with connected(daemon, contract) as sandboxes`."""

    def __init__(self, contract: Contract, channel: grpc.Channel):
        self.service, self.spec = contract.service, contract.spec
        self.contract = contract
        self.stub = contract.stub(channel)

    def _create_request(self, sandbox_id: str, image: str, **spec) -> Any:
        return self.service.CreateSandboxRequest(
            create_spec=self.spec.CreateSpec(image=image, **spec), sandbox_id=sandbox_id
        )

    def create(self, sandbox_id: str, image: str, **spec) -> Any:
        return self.stub.CreateSandbox(self._create_request(sandbox_id, image, **spec), timeout=30).sandbox

    def begin_create(self, sandbox_id: str, image: str, **spec) -> grpc.Future:
        """For a daemon that may be stopped before it has answered."""
        return self.stub.CreateSandbox.future(self._create_request(sandbox_id, image, **spec), timeout=30)

    def create_ready(self, sandbox_id: str, image: str, **spec) -> list[Any]:
        """Creates it and waits; returns its events so far."""
        self.create(sandbox_id, image, **spec)
        return self.wait(sandbox_id, READY)

    def get(self, sandbox_id: str) -> Any:
        request = self.service.GetSandboxRequest(sandbox_id=sandbox_id)
        return self.stub.GetSandbox(request, timeout=30).sandbox

    def page(self, **request) -> Any:
        return self.stub.ListSandboxes(self.service.ListSandboxesRequest(**request), timeout=30)

    def stop(self, sandbox_id: str) -> None:
        request = self.service.StopSandboxRequest(sandbox_id=sandbox_id)
        assert self.stub.StopSandbox(request, timeout=30).accepted

    def stop_wait(self, sandbox_id: str) -> list[Any]:
        """Stops it and waits; all its events."""
        return self._moved(sandbox_id, self.stop, STOPPED)

    def resume(self, sandbox_id: str) -> None:
        request = self.service.ResumeSandboxRequest(sandbox_id=sandbox_id)
        assert self.stub.ResumeSandbox(request, timeout=30).accepted

    def begin_resume(self, sandbox_id: str) -> grpc.Future:
        """For a daemon that may be stopped before it has answered."""
        request = self.service.ResumeSandboxRequest(sandbox_id=sandbox_id)
        return self.stub.ResumeSandbox.future(request, timeout=30)

    def resume_wait(self, sandbox_id: str) -> list[Any]:
        """Resumes it and waits; all its events."""
        return self._moved(sandbox_id, self.resume, READY)

    def _moved(self, sandbox_id: str, ask: Callable[[str], None], state: int) -> list[Any]:
        newest = self.get(sandbox_id).last_event_sequence
        ask(sandbox_id)
        ends = {state, FAILED, DELETED}
        events = self.follow(
            sandbox_id, lambda event: event.sequence > newest and event.sandbox_state in ends
        )
        assert events[-1].sandbox_state == state, events[-1]
        return events

    def delete(self, sandbox_id: str) -> None:
        request = self.service.DeleteSandboxRequest(sandbox_id=sandbox_id)
        assert self.stub.DeleteSandbox(request, timeout=30).accepted

    def delete_wait(self, sandbox_id: str) -> list[Any]:
        """Deletes it and waits; all its events."""
        self.delete(sandbox_id)
        return self.wait(sandbox_id, DELETED)

    def subscribe(self, sandbox_id: str, timeout: float = _PATIENCE, **request) -> Any:
        message = self.service.SubscribeSandboxEventsRequest(sandbox_id=sandbox_id, **request)
        return self.stub.SubscribeSandboxEvents(message, timeout=timeout)

    def follow(self, sandbox_id: str, until: Callable[[Any], bool], **request) -> list[Any]:
        """Every event up to the first that matches."""
        events = []
        stream = self.subscribe(sandbox_id, **request)
        try:
            for event in stream:
                events.append(event)
                if until(event):
                    return events
        except grpc.RpcError as error:
            if error.code() not in _STREAM_ENDS:
                raise
        finally:
            stream.cancel()
        raise AssertionError(f"what was waited for did not come; there was:\n{events}")

    def wait(self, sandbox_id: str, state: int) -> list[Any]:
        """Every event up to the first with that state; fails if the sandbox fails instead."""
        events = self.follow(sandbox_id, lambda e: e.sandbox_state in {state, FAILED, DELETED})
        # A sandbox may have failed before it is deleted.
        if events[-1].sandbox_state == FAILED and state == DELETED:
            events = self.follow(sandbox_id, lambda e: e.sandbox_state == DELETED)
        assert events[-1].sandbox_state == state, events[-1]
        return events

    def history(self, sandbox_id: str) -> list[Any]:
        """All current events."""
        newest = self.get(sandbox_id).last_event_sequence
        return self.follow(sandbox_id, lambda event: event.sequence == newest)


@contextlib.contextmanager
def crashing(daemon: PrivateDaemon, *ended: grpc.StatusCode) -> Iterator[None]:
    """The daemon is expected to crash by this request, possibly before it has answered; `ended` lists
    the status codes with which the call may end, by default UNAVAILABLE."""
    try:
        yield
    except grpc.RpcError as error:
        assert error.code() in (ended or (grpc.StatusCode.UNAVAILABLE,))
    assert daemon.wait() == -signal.SIGKILL


@contextlib.contextmanager
def connected(daemon: PrivateDaemon, contract: Contract) -> Iterator[Sandboxes]:
    with daemon.channel() as channel:
        yield Sandboxes(contract, channel)


@contextlib.contextmanager
def emptied(daemon: PrivateDaemon, contract: Contract, engine: PrivateEngine) -> Iterator[Sandboxes]:
    """A client whose daemon's sandboxes are deleted in the end, and leave nothing."""
    with connected(daemon, contract) as sandboxes:
        yield sandboxes
        for sandbox in sandboxes.page().sandboxes:
            sandboxes.delete_wait(sandbox.sandbox_id)
    assert left_over(engine) == []


def invalid(call: Callable[..., Any], *arguments, **options) -> str:
    """The message of a call that is refused as INVALID_ARGUMENT."""
    try:
        answer = call(*arguments, **options)
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
        return error.details()
    raise AssertionError(f"not refused: {answer}")


def started(daemon: PrivateDaemon) -> PrivateDaemon:
    """Runs the daemon and returns when its engine is reachable and its firewall in place."""
    daemon.start()
    daemon.wait_for_message("engine is reachable")
    daemon.wait_for_message("sandbox firewall loaded")
    return daemon


def restarted(daemon: PrivateDaemon, failpoints: str = "") -> PrivateDaemon:
    """Restarts it after its end, with other failpoints."""
    daemon.environment["AGBOX_FAILPOINTS"] = failpoints
    return started(daemon)


def primary(sandbox_id: str) -> str:
    return f"agbox-primary-{sandbox_id}"


def network(sandbox_id: str) -> str:
    return f"agbox-net-{sandbox_id}"


def bridge_of(engine: PrivateEngine, sandbox_id: str) -> str:
    options = engine.api.call("GET", f"/networks/{network(sandbox_id)}").json()["Options"]
    return options["com.docker.network.bridge.name"]


def inspect(engine: PrivateEngine, name: str) -> dict[str, Any]:
    return engine.api.call("GET", f"/containers/{name}/json").json()


def inside(engine: PrivateEngine, sandbox_id: str, *command: str, user: str = "agbox") -> str:
    """The output of a command in the sandbox, through the engine's exec."""
    return engine.docker("exec", "-u", user, primary(sandbox_id), *command).stdout.strip()


def times_logged(engine: PrivateEngine, sandbox_id: str, words: str) -> int:
    """How often the sandbox's container has logged this, in all its runs."""
    return engine.docker("logs", primary(sandbox_id)).stdout.count(words)


def wait_for_log(engine: PrivateEngine, sandbox_id: str, words: str, times: int = 1) -> None:
    """A sandbox is ready when its command has started, before its first output."""
    deadline = time.monotonic() + 30
    while times_logged(engine, sandbox_id, words) < times:
        assert time.monotonic() < deadline, f"{sandbox_id} has not written {words!r} {times} times"


def left_over(engine: PrivateEngine) -> list[str]:
    """What the engine and its host still have of any sandbox."""
    found = [f"container {item['Names']} {item['State']}" for item in _marked(engine, "containers")]
    found += [f"network {item['Name']}" for item in _marked(engine, "networks")]
    for line in engine.world.run("ip", "-o", "link").stdout.splitlines():
        name = line.split(":")[1].strip()
        if name.startswith("agbx"):
            found.append(f"link {name}")
    return found


def remove_left_overs(engine: PrivateEngine) -> None:
    for item in _marked(engine, "containers"):
        query = {"force": "true", "v": "true"}
        engine.api.call("DELETE", f"/containers/{item['Id']}", query=query)
    for item in _marked(engine, "networks"):
        engine.api.call("DELETE", f"/networks/{item['Id']}")


def _marked(engine: PrivateEngine, kind: str) -> list[dict[str, Any]]:
    query = {"filters": json.dumps({"label": [f"{LABEL}.sandbox-id"]}), "all": "true"}
    path = "/containers/json" if kind == "containers" else "/networks"
    return engine.api.call("GET", path, query=query).json()


def assert_one_history(events: Collection[Any]) -> None:
    """Sequences 1 to n, monotonic times, and nothing after the end."""
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    times = [event.occurred_at.ToNanoseconds() for event in events]
    assert times == sorted(times) and times[0] > 0
    states = [event.sandbox_state for event in events]
    assert DELETED not in states[:-1]
