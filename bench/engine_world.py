# SPDX-License-Identifier: Apache-2.0
"""A private Docker Engine with a daemon of ours on it, and the same work done by hand.

The engine, its networks and everything else come from the test kit and are gone afterwards. `Raw` is
what a careful client of the engine's API would do: one call after the other over a connection that is kept
alive, containers and networks configured exactly as the daemon configures its own, because they are copied
from one.
"""
import contextlib
import itertools
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import grpc

from row import Run
from server import cpu_ms, cpu_ms_with_children

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.abandoned import remove_abandoned  # noqa: E402
from support.contract import Contract  # noqa: E402
from support.daemon import PrivateDaemon  # noqa: E402
from support.engine import KINDS, PrivateEngine  # noqa: E402
from support.engine_api import EngineApi, UnixConnection  # noqa: E402
from support.engine_root import cached, say_on_stderr  # noqa: E402
from support.images import make_image  # noqa: E402
from support.process import all_processes, descendants  # noqa: E402
from support.run_directory import RunDirectory  # noqa: E402

IMAGE = "agents-sandbox/bench:local"
# Nobody listens there, so the engine refuses the pull at once.
NO_IMAGE = "127.0.0.1:1/agents-sandbox/nowhere:local"
CONFIG = '[network]\ndns = ["192.0.2.53"]\naddress_pool = "10.240.0.0/16"\n'
RAW_POOL = "10.241"
READY, FAILED, STOPPED, DELETED = 2, 3, 4, 6
COMPANION_READY, COMPANION_FAILED = 13, 14  # events
EXEC_RUNNING, EXEC_FINISHED = 1, 2
STDOUT = 1
GUEST = ".agbox-guest"  # the name of its process
PATIENCE = 300.0
AT_ONCE = 4  # as many as the daemon itself starts at a time


class Sandboxes:
    """Our side: sandboxes through the daemon, with one stream of events each."""

    def __init__(self, contract: Contract, channel, directory: Path):
        self._contract = contract
        self._stub = contract.stub(channel)
        self._names = itertools.count()
        self.directory = directory

    def create(self, image: str = IMAGE, copies: Sequence[tuple[str, str]] = ()) -> "Created":
        """`copies` are pairs of source and target."""
        spec = self._contract.spec
        copied = [spec.CopySpec(source=source, target=target) for source, target in copies]
        began = time.monotonic()
        name = self.begin(image=image, copies=copied)
        last = self._follow(name, 0, (READY, FAILED))
        ended = time.monotonic()
        if last.sandbox_state != (READY if image == IMAGE else FAILED):
            raise RuntimeError(f"sandbox {name}: {last.sandbox_phase.error_message or last}")
        return Created(name, (ended - began) * 1000, last.sequence)

    def begin(self, **spec) -> str:
        """Asks for a sandbox and returns its name."""
        request = self._contract.service.CreateSandboxRequest(
            create_spec=self._contract.spec.CreateSpec(**{"image": IMAGE} | spec),
            sandbox_id=f"bench-{self.directory.name}-{next(self._names)}")
        return self._stub.CreateSandbox(request, timeout=PATIENCE).sandbox.sandbox_id

    def companion(self, name: str, *command: str, probe: Sequence[str] = (), interval_s: int = 1):
        """The specification of a companion; with a health check if it has a probe."""
        spec = self._contract.spec
        made = spec.CompanionContainerSpec(name=name, image=IMAGE, command=command)
        if probe:
            made.healthcheck.test.extend(probe)
            made.healthcheck.interval.seconds = interval_s
        return made

    def wait_ready(self, name: str, companions: Sequence[str] = ()) -> int:
        """Until the sandbox and these companions are ready; the sequence of the last event."""
        left = {"", *companions}

        def is_last(event) -> bool:
            if event.event_type == COMPANION_READY:
                left.discard(event.companion_container.name)
            elif event.event_type == COMPANION_FAILED or event.sandbox_state == FAILED:
                raise RuntimeError(f"sandbox {name}: {event}")
            elif event.sandbox_state == READY:
                left.discard("")
            return not left

        return self._first(name, 0, is_last).sequence

    def meet_again(self) -> None:
        """After a restart of the daemon: a first call may still go to the one before."""
        request = self._contract.service.PingRequest()
        with contextlib.suppress(grpc.RpcError):
            self._stub.Ping(request, timeout=PATIENCE)
        self._stub.Ping(request, timeout=PATIENCE, wait_for_ready=True)

    def stop(self, created: "Created") -> "Created":
        request = self._contract.service.StopSandboxRequest(sandbox_id=created.name)
        return self._move(created, self._stub.StopSandbox, request, STOPPED)

    def resume(self, created: "Created") -> "Created":
        request = self._contract.service.ResumeSandboxRequest(sandbox_id=created.name)
        return self._move(created, self._stub.ResumeSandbox, request, READY)

    def delete(self, created: "Created") -> float:
        request = self._contract.service.DeleteSandboxRequest(sandbox_id=created.name)
        return self._move(created, self._stub.DeleteSandbox, request, DELETED).ms

    def delete_by_name(self, name: str, sequence: int) -> None:
        self.delete(Created(name, 0, sequence))

    def _move(self, created: "Created", call, request, state: int) -> "Created":
        began = time.monotonic()
        call(request, timeout=PATIENCE)
        last = self._follow(created.name, created.sequence, (state, FAILED))
        ended = time.monotonic()
        if last.sandbox_state != state:
            raise RuntimeError(f"sandbox {created.name}: {last.sandbox_phase.error_message}")
        return Created(created.name, (ended - began) * 1000, last.sequence)

    def start(self, name: str, *command: str) -> "Started":
        return self._start(self._contract.service.CreateExecRequest(sandbox_id=name, command=command))

    def start_terminal(self, name: str, *command: str) -> "Started":
        terminal = self._contract.exec.Terminal(term="xterm")
        return self._start(self._contract.service.CreateExecRequest(sandbox_id=name, command=command, stdin=True,
                                                                    terminal=terminal))

    def _start(self, request) -> "Started":
        name = request.sandbox_id
        sequence = self._stub.GetSandbox(
            self._contract.service.GetSandboxRequest(sandbox_id=name),
            timeout=PATIENCE).sandbox.last_event_sequence
        return Started(name, self._stub.CreateExec(request, timeout=PATIENCE).exec_id, sequence)

    def wait(self, started: "Started") -> None:
        """Until its end is told, which must be a good one."""
        def has_ended(event) -> bool:
            return event.exec.exec_id == started.exec_id and event.exec.exec_state != EXEC_RUNNING

        last = self._first(started.sandbox, started.sequence, has_ended)
        if last.exec.exec_state != EXEC_FINISHED:
            raise RuntimeError(f"exec {started.exec_id}: {last.exec.error_message or last}")

    def run(self, name: str, *command: str) -> None:
        self.wait(self.start(name, *command))

    def read(self, started: "Started"):
        """A stream of what it writes to stdout, until its end."""
        request = self._contract.service.ReadExecOutputRequest(exec_id=started.exec_id, stream=STDOUT,
                                                               follow=True)
        return self._stub.ReadExecOutput(request, timeout=PATIENCE)

    def attach(self, started: "Started", over: threading.Event):
        """A stream of a client that reads its terminal and may write in it, until `over` is set."""
        def requests() -> Iterator:
            start = self._contract.service.AttachStart(exec_id=started.exec_id, write=True, output=True)
            yield self._contract.service.AttachExecRequest(start=start)
            over.wait()

        return self._stub.AttachExec(requests(), timeout=PATIENCE)

    def _follow(self, name: str, after: int, states: tuple[int, ...]):
        return self._first(name, after, lambda event: event.sandbox_state in states)

    def _first(self, name: str, after: int, is_wanted):
        """The first event after `after` that is wanted."""
        request = self._contract.service.SubscribeSandboxEventsRequest(sandbox_id=name,
                                                                       from_sequence=after)
        stream = self._stub.SubscribeSandboxEvents(request, timeout=PATIENCE)
        try:
            for event in stream:
                if is_wanted(event):
                    return event
        finally:
            stream.cancel()
        raise RuntimeError(f"sandbox {name}: its stream ended before it was done")


@dataclass(frozen=True)
class Created:
    name: str
    ms: float
    sequence: int = 0  # of its newest event


@dataclass(frozen=True)
class Started:
    sandbox: str
    exec_id: str
    sequence: int  # of an event before it


class KeptAliveApi(EngineApi):
    """Reuses its connections; there are as many as there were calls at once."""

    def __init__(self, path: Path):
        super().__init__(path)
        self._idle: list[UnixConnection] = []

    @contextlib.contextmanager
    def connection(self, timeout: float) -> Iterator[UnixConnection]:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = UnixConnection(self.socket, timeout)
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()


class Raw:
    """The engine's API by hand, in the shape of a sample that the daemon made."""

    def __init__(self, api: KeptAliveApi, directory: Path, sample: str):
        self._api = api
        self._numbers = itertools.count()
        self._sample_container = self._api.call("GET", f"/containers/agbox-primary-{sample}/json").json()
        self._sample_network = self._api.call("GET", f"/networks/agbox-net-{sample}").json()
        self._link = directory / "raw-link"  # where the sample has its link to the daemon
        self._link.mkdir(exist_ok=True)

    def create(self) -> Created:
        number = next(self._numbers)
        name = f"raw-{number}"
        network, container = self._network(name, number), self._container(name)
        began = time.monotonic()
        self._api.call("POST", "/networks/create", json_body=network, timeout=PATIENCE)
        self._run(name, container)
        return Created(name, (time.monotonic() - began) * 1000)

    def create_with_companions(self, samples: Sequence[dict]) -> Created:
        """The same with more containers, in the shape of the inspected samples, all started side by side."""
        number = next(self._numbers)
        name = f"raw-{number}"
        network = self._network(name, number)
        bodies = [(name, self._container(name))]
        bodies += [(f"{name}-{i}", self._companion(name, sample)) for i, sample in enumerate(samples)]
        began = time.monotonic()
        self._api.call("POST", "/networks/create", json_body=network, timeout=PATIENCE)
        side_by_side(lambda i: self._run(*bodies[i]), len(bodies))
        return Created(name, (time.monotonic() - began) * 1000)

    def delete_with_companions(self, created: Created, count: int) -> None:
        for name in [f"{created.name}-{i}" for i in range(count)]:
            self._api.call("DELETE", f"/containers/{name}", query={"force": "true", "v": "true"}, timeout=PATIENCE)
        self.delete(created)

    def _run(self, name: str, container: dict) -> None:
        made = self._api.call("POST", "/containers/create", query={"name": name},
                              json_body=container, timeout=PATIENCE).json()
        self._api.call("POST", f"/containers/{made['Id']}/start", timeout=PATIENCE)

    def stop(self, created: Created) -> Created:
        """Of a container that ends on SIGTERM."""
        return self._timed(created, f"/containers/{created.name}/stop?t=5")

    def resume(self, created: Created) -> Created:
        return self._timed(created, f"/containers/{created.name}/start")

    def _timed(self, created: Created, call: str) -> Created:
        began = time.monotonic()
        self._api.call("POST", call, timeout=PATIENCE)
        return Created(created.name, (time.monotonic() - began) * 1000)

    def delete(self, created: Created) -> float:
        name = created.name
        began = time.monotonic()
        self._api.call("POST", f"/containers/{name}/kill", timeout=PATIENCE)
        self._api.call("DELETE", f"/containers/{name}", query={"v": "true"}, timeout=PATIENCE)
        self._api.call("DELETE", f"/networks/{name}", timeout=PATIENCE)
        return (time.monotonic() - began) * 1000

    def run(self, name: str, *command: str) -> None:
        config = {"AttachStdout": True, "AttachStderr": True, "Cmd": command}
        made = self._api.call("POST", f"/containers/{name}/exec", json_body=config).json()["Id"]
        self._api.call("POST", f"/exec/{made}/start", json_body={"Detach": False, "Tty": False},
                       timeout=PATIENCE)
        if code := self._api.call("GET", f"/exec/{made}/json").json()["ExitCode"]:
            raise RuntimeError(f"container {name}: {' '.join(command)} ended with {code}")

    def _network(self, name: str, number: int) -> dict:
        sample = self._sample_network
        subnet = f"{RAW_POOL}.{number // 16 % 256}.{number % 16 * 16}/28"
        return {"Name": name, "CheckDuplicate": True, "Driver": sample["Driver"],
                "EnableIPv6": sample["EnableIPv6"], "Internal": sample["Internal"],
                "Labels": renamed(sample["Labels"]),
                "Options": {"com.docker.network.bridge.name": f"agbraw{number}"},
                "IPAM": {"Driver": "default", "Config": [{"Subnet": subnet}]}}

    def _container(self, name: str) -> dict:
        config, host = dict(self._sample_container["Config"]), dict(self._sample_container["HostConfig"])
        config.pop("Hostname", None)  # the engine's choice
        config["Labels"] = renamed(config["Labels"])
        host["NetworkMode"] = name
        host["Mounts"] = [mount | ({"Source": str(self._link)} if mount["Target"] == "/.agbox-link" else {})
                          for mount in host["Mounts"]]
        return config | {"HostConfig": host, "NetworkingConfig": {"EndpointsConfig": {name: {}}}}


    def _companion(self, network: str, sample: dict) -> dict:
        config, host = dict(sample["Config"]), dict(sample["HostConfig"])
        config.pop("Hostname", None)
        config["Labels"] = renamed(config["Labels"])
        host["NetworkMode"] = network
        (endpoint,) = sample["NetworkSettings"]["Networks"].values()
        wanted = {network: {"Aliases": endpoint.get("Aliases")}}
        return config | {"HostConfig": host, "NetworkingConfig": {"EndpointsConfig": wanted}}


def renamed(labels: dict[str, str]) -> dict[str, str]:
    """As many and as long as ours, but not ours: the daemon would take them for its own."""
    return {f"raw{key[3:]}": value for key, value in labels.items()}


@dataclass
class EngineWorld:
    engine: PrivateEngine
    daemon: PrivateDaemon
    sandboxes: Sandboxes
    api: KeptAliveApi
    raw: Raw

    def cpu_ms(self) -> float:
        """What the daemon, the engine, containerd and the shims have spent so far."""
        processes = {self.daemon.pid} | descendants([self.engine.pid], all_processes()) | {self.engine.pid}
        return sum(cpu_ms(pid) for pid in processes)

    def whole_cpu_ms(self) -> float:
        """The same with what every process that has ended since then has spent, in the containers
        too: whoever waits for a process inherits its time, and so on up to the world's reaper."""
        return sum(cpu_ms_with_children(pid) for pid in {self.daemon.pid} | self.processes())

    def engine_cpu_ms(self) -> float:
        """What the engine itself has spent so far, without the containers and their shims."""
        return cpu_ms(self.engine.pid)

    def timed(self, *command: str) -> float:
        """Milliseconds of a command next to the engine."""
        began = time.monotonic()
        self.engine.world.run(*command, timeout=PATIENCE)
        return (time.monotonic() - began) * 1000

    def inspect(self, names: list[str]) -> None:
        """Asks the engine by hand whether the containers of these sandboxes run, one after the other."""
        for name in names:
            state = self.api.call("GET", f"/containers/agbox-primary-{name}/json").json()["State"]
            if not state["Running"]:
                raise RuntimeError(f"the container of {name} does not run: {state}")

    def guests(self) -> list[int]:
        """The first process of every container that is up."""
        inside = self.processes()
        return [process.pid for process in all_processes().values()
                if process.pid in inside and process.name == GUEST]

    def processes(self) -> set[int]:
        """Of the engine and its containers."""
        roots = self.engine.processes()
        return roots | descendants(roots, all_processes())


@contextlib.contextmanager
def run_directory() -> Iterator[RunDirectory]:
    """The test kit keeps all that a run makes in it, and marks processes with it."""
    remove_abandoned()
    run_directory = RunDirectory()
    try:
        yield run_directory
    finally:
        run_directory.remove()


def fetch_engine(name: str) -> None:
    """Downloads it unless it is cached."""
    if root := KINDS[name].root:
        with run_directory():
            cached(root, say_on_stderr)


@contextlib.contextmanager
def private_engine(name: str) -> Iterator[tuple[PrivateEngine, RunDirectory]]:
    with run_directory() as directory, PrivateEngine(KINDS[name], directory) as engine:
        yield engine, directory


@contextlib.contextmanager
def connected_daemon(build: Path, engine: PrivateEngine, directory: Path,
                     log_level: str = "info") -> Iterator[PrivateDaemon]:
    """A daemon that has reached its engine and loaded its firewall."""
    with PrivateDaemon(build / "bin", directory, docker_host=engine.docker_host,
                       network_namespace=engine.network_namespace,
                       config=f'[runtime]\nlog_level = "{log_level}"\n{CONFIG}') as daemon:
        daemon.start()
        daemon.wait_for_message("engine is reachable")
        daemon.wait_for_message("sandbox firewall loaded")
        yield daemon
        if code := daemon.stop():
            raise RuntimeError(f"agboxd ended with {code}: {daemon.process.tail()}")


@contextlib.contextmanager
def engine_world(run: Run, log_level: str = "info") -> Iterator[EngineWorld]:
    with contextlib.ExitStack() as stack:
        engine, engine_directory = stack.enter_context(private_engine(run.engine))
        contract = Contract(engine_directory.new_directory("c"))
        make_image(engine.api, IMAGE)
        directory = engine_directory.new_directory("d")
        daemon = stack.enter_context(connected_daemon(run.build, engine, directory, log_level))
        channel = stack.enter_context(daemon.channel())
        sandboxes = Sandboxes(contract, channel, directory)
        sample = sandboxes.create()
        api = stack.enter_context(contextlib.closing(KeptAliveApi(engine.socket)))
        world = EngineWorld(engine, daemon, sandboxes, api, Raw(api, engine_directory.path, sample.name))
        world.raw.delete(world.raw.create())  # once unmeasured, as the sample was
        yield world
        sandboxes.delete(sample)


def create_many(sandboxes: Sandboxes, count: int) -> list[Created]:
    made = []
    while len(made) < count:
        made += side_by_side(lambda _: sandboxes.create(), min(AT_ONCE, count - len(made)))
    return made


def delete_many(sandboxes: Sandboxes, made: list[Created]) -> None:
    for first in range(0, len(made), AT_ONCE):
        some = made[first:first + AT_ONCE]
        side_by_side(lambda i, some=some: sandboxes.delete(some[i]), len(some))


def side_by_side(work, count: int) -> list:
    """The results of `count` calls made at once; the first failure is raised."""
    with ThreadPoolExecutor(count) as pool:
        return [future.result() for future in [pool.submit(work, i) for i in range(count)]]
