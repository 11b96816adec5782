# SPDX-License-Identifier: Apache-2.0
"""After the faults: waits until all operations have ended, then observes the state as a client and in the engine."""

import io
import json
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Protocol

import grpc
from robustness.clients import HOOK, RAN_FILE, Client, fixed_of
from robustness.host_files import PORTS, HostFiles
from robustness.history import Call, Event, ExecSeen, Look, Reading, SandboxSeen, StreamEnd
from robustness.life import STATES, Life
from support.daemon import PrivateDaemon
from support.engine import PrivateEngine
from support.engine_api import EngineApi, EngineRefused
from support.sandboxes import LABEL

_PROBES = 3
# Log messages of repairs. Failed isolation is not among them: it is judged, and if the engine removed the
# container's network, the container is restarted.
_LEFTOVERS = (
    "orphaned container is removed",
    "orphaned network is removed",
    "bridge that the engine forgot is removed",
    "orphaned guest directory is removed",
    "orphaned output directory is removed",
)
_MENDS = ("the container ended and is started again", "companion failed", *_LEFTOVERS)


def settle(client: Client, sandbox_ids: Iterable[str], wanted: str = "") -> None:
    """Returns when all of them are at rest (and in the wanted state), and idle ones are stopped; records a
    failure for those that time out. No other client is active meanwhile."""
    client.reconnect()
    creates = client.recorder.history.creates()
    for sandbox_id in sandbox_ids:
        if sandbox_id in client.recorder.restless:
            continue
        now = client.get(sandbox_id)
        if now is None:
            continue  # one whose create was interrupted need not exist; the judge knows which
        create = creates.get(sandbox_id)

        def is_at_rest(life: Life, newest: int, create: Call | None = create, now: Reading = now) -> bool:
            state = STATES[life.phase]
            is_over = newest >= now.sequence and life.is_settled and wanted in ("", state)
            if create is None or state != "READY":
                return is_over
            return is_over and create.idle_ttl is None and not life.awaits(create.companions)

        _follow(client, sandbox_id, is_at_rest)


def _follow(client: Client, sandbox_id: str, is_at_rest: Callable[[Life, int], bool]) -> None:
    """Until it is at rest, or nothing has happened with it for as long as the recorder has patience."""
    recorder, life, kinds = client.recorder, Life(), []
    while True:
        before = recorder.progress(sandbox_id)
        call = client.subscribe(sandbox_id, len(kinds), recorder.patience)
        try:
            for message in call:
                event = client.event(message)
                life.follow(event)
                kinds.append(event.kind)
                if is_at_rest(life, event.sequence):
                    return
        except grpc.RpcError as error:
            is_late = error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            if is_late and recorder.progress(sandbox_id) != before:
                continue
            recorder.restless.add(sandbox_id)
            recorder.complain(
                f"sandbox {sandbox_id}: not at rest, and nothing happens with it for "
                f"{recorder.patience} s: {error.code().name}, {error.details()}: {kinds}"
            )
        finally:
            call.cancel()
        return


def prove_ready(client: Client, sandbox_ids: Iterable[str], probe: str) -> None:
    """READY means that a command can run. One whose container has just exited is restarted first; a command
    that was running then fails, and is retried."""
    waiting = _ready_ones(client, sandbox_ids)
    for attempt in range(_PROBES):
        for sandbox_id in waiting:
            client.exec(sandbox_id, f"{probe}-{attempt}-{sandbox_id}", 0, 0)
        settle(client, waiting)
        unproven = [s for s in waiting if not _has_run(client, f"{probe}-{attempt}-{s}")]
        waiting = _ready_ones(client, unproven)
    for sandbox_id in waiting:
        client.recorder.complain(f"sandbox {sandbox_id}: READY, but {_PROBES} commands did not run")


def has_repaired(log_lines: list[str]) -> bool:
    """Whether the daemon's log shows a repair."""
    return any(message in line for line in log_lines for message in _MENDS)


def stop_and_resume(client: Client, sandbox_ids: Iterable[str]) -> None:
    """What is ready is stopped, and what is stopped resumed, unless it stops by itself: the containers that the
    next look sees must be the same."""
    creates = client.recorder.history.creates()
    meant = [s for s in sandbox_ids if s in creates and creates[s].idle_ttl is None]
    for sandbox_id in _ready_ones(client, meant):
        client.stop(sandbox_id)
    settle(client, meant)
    for sandbox_id in _those_in(client, meant, "STOPPED"):
        client.resume(sandbox_id)
    settle(client, meant)


def await_purge(client: Client, sandbox_ids: Iterable[str]) -> None:
    """Returns when the histories of all of them are purged, which ends their streams."""
    for sandbox_id in sandbox_ids:
        stream = client.recorder.stream("judge", sandbox_id, 0)
        try:
            for message in client.subscribe(sandbox_id, 0, client.recorder.patience):
                client.recorder.event(stream, client.event(message))
            client.recorder.stream_end(stream, StreamEnd.ENDED)
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.NOT_FOUND:
                client.recorder.complain(f"sandbox {sandbox_id}: not purged: {error.details()}")
        client.get(sandbox_id, client.recorder.known(sandbox_id))


def removed_leftovers(lines: Iterable[str]) -> tuple[int, float]:
    """From the logs of several runs of the daemon: how many leftovers were removed, and how many seconds after the
    start of a run at the latest."""
    removed, latest = 0, 0.0
    started: datetime | None = None
    for line in lines:
        if not line.startswith("{"):
            started = None  # the log of the next run follows
            continue
        entry = json.loads(line)
        at = datetime.fromisoformat(entry["time"])
        started = started or at
        if entry["msg"] in _LEFTOVERS:
            removed += 1
            latest = max(latest, (at - started).total_seconds())
    return removed, latest


def _ready_ones(client: Client, sandbox_ids: Iterable[str]) -> list[str]:
    return _those_in(client, sandbox_ids, "READY")


def _those_in(client: Client, sandbox_ids: Iterable[str], state: str) -> list[str]:
    seen = {sandbox_id: client.get(sandbox_id) for sandbox_id in sandbox_ids}
    return [sandbox_id for sandbox_id, now in seen.items() if now and now.state == state]


def _has_run(client: Client, exec_id: str) -> bool:
    request = client.service.GetExecRequest(exec_id=exec_id)
    try:
        status = client.stub.GetExec(request, timeout=30).exec
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.NOT_FOUND:
            return False  # refused, which is recorded
        raise
    return status.state == client.contract.exec.ExecState.EXEC_STATE_FINISHED


class EngineSide(Protocol):
    """The observable state of an engine, queried directly, not through a proxy."""

    api: EngineApi

    def links(self) -> list[str]:
        """Every link of its host."""

    def ran(self, container_id: str) -> list[str]:
        """The lines of the file that execs write, of a running or stopped container."""

    def listening(self) -> set[int] | None:
        """The ports of its host that something listens on, of those of the run. None without a host."""

    def rules(self, tables: Iterable[str]) -> dict[str, str] | None:
        """The rules of each of these tables of its host, without the marks of the copy. None without a
        firewall."""


class RealSide:
    def __init__(self, engine: PrivateEngine):
        self.api, self._world = engine.api, engine.world

    def links(self) -> list[str]:
        lines = self._world.run("ip", "-o", "link").stdout.splitlines()
        return [line.split(":")[1].strip() for line in lines]

    def ran(self, container_id: str) -> list[str]:
        path = f"/containers/{container_id}/archive"
        try:
            tar = self.api.call("GET", path, query={"path": RAN_FILE}).body
        except EngineRefused as refused:
            if refused.answer.status == 404:
                return []
            raise
        with tarfile.open(fileobj=io.BytesIO(tar)) as tree:
            member = tree.extractfile(tree.getmembers()[0])
            return member.read().decode().split() if member else []

    def listening(self) -> set[int] | None:
        lines = self._world.run("ss", "--no-header", "--listening", "--tcp", "--numeric").stdout.splitlines()
        ports = {int(line.split()[3].rpartition(":")[2]) for line in lines}
        return ports & set(PORTS)

    def rules(self, tables: Iterable[str]) -> dict[str, str] | None:
        found = {}
        for table in tables:
            # Without counters and elements, which packets add to only one copy.
            listing = ["nft", "--stateless", "--terse", "list", "table", *table.split()]
            found[table] = _without_marks_of_the_copy(self._world.run(*listing).stdout)
        return found


def _without_marks_of_the_copy(listing: str) -> str:
    """Removes its name, its owner, and the limits of connections, which only the plain copy counts."""
    limits = r"^\t(set budget|set rate|chain admit|ct timeout tcp_timeouts) \{\n(\t\t.*\n)*\t\}\n"
    kept = re.sub(limits, "", listing, flags=re.MULTILINE)
    marks = ("table ", "\tflags owner")
    return "\n".join(line for line in kept.splitlines() if line and not line.startswith(marks))


class Observer:
    """Observes the state as a client and in the engine."""

    def __init__(self, client: Client, daemon: PrivateDaemon, engine: EngineSide, files: HostFiles):
        self._client, self._daemon, self._engine, self._files = client, daemon, engine, files
        self._instance = client.reconnect()

    def look(self, name: str) -> Look:
        """The daemon must be running and at rest."""
        self._wait_until_swept()
        look = Look(name)
        for handle in self._sandboxes():
            sandbox_id = handle.sandbox_id
            events = tuple(self._events(sandbox_id, handle.last_event_sequence))
            state = self._client.state_name(handle.state)
            states = self._client.contract.sandbox.CompanionState
            companions = tuple(
                (one.name, states.Name(one.state).removeprefix("COMPANION_STATE_")) for one in handle.companions
            )
            look.sandboxes[sandbox_id] = SandboxSeen(
                state, handle.last_event_sequence, events, fixed_of(handle), companions
            )
            look.execs |= dict(self._execs(sandbox_id))
        for item in self._ours("/containers/json"):
            sandbox_id = item["Labels"][f"{LABEL}.sandbox-id"]
            if item["Labels"][f"{LABEL}.component"] == "companion":
                name = item["Labels"][f"{LABEL}.companion-container-name"]
                look.companions.setdefault(sandbox_id, {})[name] = item["State"] == "running"
                continue
            look.containers.append(sandbox_id)
            look.container_ids[sandbox_id] = item["Id"]
            if item["State"] == "running":
                look.running.add(sandbox_id)
            if sandbox_id in look.sandboxes and look.sandboxes[sandbox_id].state != "FAILED":
                lines = self._engine.ran(item["Id"])
                look.ran[sandbox_id] = [line for line in lines if line != HOOK]
                look.hooked[sandbox_id] = [line for line in lines if line == HOOK]
        look.written = self._files.written()
        look.listening = self._engine.listening()
        look.guest_directories = self._files.guest_directories()
        look.networks = [
            item["Labels"][f"{LABEL}.sandbox-id"] for item in self._ours("/networks")
        ]
        bridges = {
            (item["Options"] or {}).get("com.docker.network.bridge.name")
            for item in self._engine.api.call("GET", "/networks").json()
        }
        look.stray_links = [
            link for link in self._engine.links() if link.startswith("agbx") and link not in bridges
        ]
        look.tables = self._engine.rules(self._daemon.firewall_tables())
        look.unproven = list(self._unproven())
        return look

    def _wait_until_swept(self) -> None:
        """Unclaimed objects are removed after each start of the daemon and of the engine, which may bring
        objects back."""
        lines = self._daemon.log_lines()
        lost = [n for n, line in enumerate(lines) if "container event subscription lost" in line]
        self._daemon.process.wait_for_line(
            lambda line: "orphans were swept" in line,
            "the last sweep",
            timeout=60,
            after=lost[-1] if lost else 0,
        )

    def _unproven(self) -> Iterator[str]:
        """Findings after comparing the rules and verifying every live sandbox."""
        verdicts = self._client.contract.diagnosis.FindingVerdict
        request = self._client.service.DiagnoseRequest()
        for finding in self._client.stub.Diagnose(request, timeout=60).findings:
            if finding.check not in ("firewall", "isolation"):
                continue
            if finding.verdict != verdicts.FINDING_VERDICT_OK:
                verdict = verdicts.Name(finding.verdict).removeprefix("FINDING_VERDICT_").lower()
                yield f"{finding.check} is {verdict}: {finding.sentence}"

    def _sandboxes(self) -> Iterator[Any]:
        token = ""
        while True:
            request = self._client.service.ListSandboxesRequest(
                include_deleted=True, page_token=token
            )
            page = self._client.stub.ListSandboxes(request, timeout=30)
            yield from page.sandboxes
            token = page.next_page_token
            if not token:
                return

    def _events(self, sandbox_id: str, newest: int) -> Iterator[Event]:
        call = self._client.subscribe(sandbox_id, 0, 30)
        try:
            for message in call:
                yield self._client.event(message)
                if message.sequence >= newest:
                    return
        finally:
            call.cancel()

    def _execs(self, sandbox_id: str) -> Iterator[tuple[str, ExecSeen]]:
        states = self._client.contract.exec.ExecState
        token = ""
        while True:
            request = self._client.service.ListExecsRequest(
                sandbox_id=sandbox_id, page_token=token
            )
            page = self._client.stub.ListExecs(request, timeout=30)
            for status in page.execs:
                with open(status.stdout_log_path, encoding="utf-8") as output:
                    yield status.exec_id, ExecSeen(
                        sandbox_id=status.sandbox_id,
                        state=states.Name(status.state).removeprefix("EXEC_STATE_"),
                        exit_code=status.exit_code,
                        error_code=status.error_code,
                        output=output.read(),
                    )
            token = page.next_page_token
            if not token:
                return

    def _ours(self, path: str) -> list[dict[str, Any]]:
        query = {
            "filters": json.dumps({"label": [f"{LABEL}.instance={self._instance}"]}),
            "all": "true",
        }
        return self._engine.api.call("GET", path, query=query).json()


class Foreign:
    """Foreign objects in the engine, with similar names and labels."""

    _OTHER = {f"{LABEL}.instance": "00000000-0000-4000-8000-000000000000",
              f"{LABEL}.sandbox-id": "foreign", f"{LABEL}.component": "primary"}

    def __init__(self, api: EngineApi, image: str):
        self._api = api
        self._containers = ["agbox-primary-foreign", "agbox-primary-unlabelled"]
        self._networks = ["agbox-net-foreign"]
        for name, labels in zip(self._containers, (self._OTHER, {}), strict=True):
            body = {"Image": image, "Cmd": ["sleep", "1234"], "Labels": labels}
            self._api.call("POST", "/containers/create", query={"name": name}, json_body=body)
        body = {"Name": self._networks[0], "Labels": self._OTHER}
        self._api.call("POST", "/networks/create", json_body=body)

    # Only these attributes: an engine reports some others differently after a restart.
    _KEPT = ("Id", "Name", "Created", "Labels", "Containers", "State")

    def inspect(self) -> dict[str, dict[str, Any]]:
        found = {}
        for kind, names in (("containers", self._containers), ("networks", self._networks)):
            for name in names:
                path = f"/{kind}/{name}" + ("/json" if kind == "containers" else "")
                try:
                    seen = self._api.call("GET", path).json()
                    found[f"{kind} {name}"] = {key: seen.get(key) for key in self._KEPT}
                except EngineRefused as refused:
                    if refused.answer.status != 404:
                        raise
        return found

    def remove(self) -> None:
        """Removes what still exists; the judge has seen what does not."""
        for kind, name in (thing.split() for thing in self.inspect()):
            self._api.call("DELETE", f"/{kind}/{name}", query={"force": "true"})


