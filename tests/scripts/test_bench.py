# SPDX-License-Identifier: Apache-2.0
"""The benchmark's arithmetic and verdicts, and the frame run on real servers."""
import contextlib
import http.server
import importlib.machinery
import importlib.util
import json
import math
import os
import pwd
import random
import socketserver
import subprocess
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import ratios  # noqa: E402
from engine_world import KeptAliveApi, Raw  # noqa: E402
from row import ENGINES, Aim, Gate, Measured, Outcome, Row, compare, describe, judge  # noqa: E402
from rows import ROWS, execs  # noqa: E402
from server import Server, start_daemon, start_echo, subscribers, temporary_directory  # noqa: E402


def rounds_of(ours: list[float], theirs: list[float]) -> list[ratios.Round]:
    return [{"us": {"ms": one}, "them": {"ms": other}} for one, other in zip(ours, theirs)]


def row(*gates: Gate, aims: tuple[Aim, ...] = ()) -> Row:
    return Row(name="demo", title="a demonstration", rounds=3, setup_s=0, round_s=1,
               measure=lambda _: Measured([]), gates=gates, aims=aims)


def gate(**bounds: float | str) -> Gate:
    return Gate("ms", "us", "them", today=1.0, **bounds)


def test_the_ratio_is_the_median_of_the_rounds_not_the_ratio_of_the_medians() -> None:
    rounds = rounds_of([1.0, 20.0, 3.0], [2.0, 10.0, 3.0])
    ratio = ratios.median_ratio(rounds, "ms", "us", "them")
    assert ratio.median == 1.0  # of 0.5, 2.0 and 1.0
    assert ratio.low == 0.5 and ratio.high == 2.0


def test_a_load_that_meets_both_arms_does_not_move_the_ratio() -> None:
    load = [1.0 + (7 * i % 50) for i in range(200)]
    ratio = ratios.median_ratio(rounds_of([1.1 * x for x in load], load), "ms", "us", "them")
    assert ratio.low == pytest.approx(1.1) and ratio.high == pytest.approx(1.1)


def test_the_interval_holds_the_median_and_narrows_with_more_rounds() -> None:
    few = ratios.median_ratio(rounds_of([1.0, 1.2, 0.8, 1.4, 0.9], [1.0] * 5), "ms", "us", "them")
    many = ratios.median_ratio(rounds_of([1.0, 1.2, 0.8, 1.4, 0.9] * 40, [1.0] * 200), "ms", "us",
                               "them")
    assert few.low <= few.median <= few.high
    assert many.high - many.low < few.high - few.low


def test_a_round_without_an_arm_fails_the_run() -> None:
    rounds = rounds_of([1.0, 1.0], [1.0, 1.0])
    del rounds[1]["them"]
    with pytest.raises(ValueError, match="round 2 has no 'them'"):
        ratios.median_ratio(rounds, "ms", "us", "them")


@pytest.mark.parametrize("limit, outcome", [
    (gate(at_most=1.0), Outcome.FAILS),
    (gate(at_most=1.2), Outcome.UNDECIDED),
    (gate(at_most=1.5), Outcome.HOLDS),
    (gate(at_least=1.5), Outcome.FAILS),
    (gate(at_least=1.2), Outcome.UNDECIDED),
    (gate(at_least=1.0), Outcome.HOLDS),
])
def test_a_gate_fails_only_if_the_whole_interval_is_beyond_its_limit(limit: Gate, outcome: Outcome) -> None:
    rounds = rounds_of([1.1, 1.2, 1.3] * 3, [1.0] * 9)
    verdict = judge(row(limit), None, Measured(rounds))
    assert verdict.has(outcome)
    assert ("FAILS" in describe(verdict)) is (outcome is Outcome.FAILS)
    assert verdict.as_json()["gates"][0]["outcome"] == outcome.name.lower()


@pytest.mark.parametrize("factor, limit, is_worse", [
    (1.0, gate(at_most=9), False), (1.2, gate(at_most=9), True), (0.8, gate(at_most=9), False),
    (1.2, gate(at_least=0), False), (0.8, gate(at_least=0), True)])
def test_a_build_is_worse_if_its_ratio_moved_in_the_bad_direction(factor: float, limit: Gate, is_worse: bool) -> None:
    noise = random.Random(1)
    old, new = (rounds_of([scale * noise.uniform(0.9, 1.1) for _ in range(100)], [1.0] * 100)
                for scale in (1.0, factor))
    comparison = compare(row(limit), None, Measured(new), Measured(old))
    assert comparison.is_worse() is is_worse
    (_, found), = comparison.changes
    assert found.low < factor < found.high


def test_a_gate_may_be_for_one_engine() -> None:
    both = row(gate(engine="20.10", at_most=1), gate(engine="28", at_most=2))
    measured = Measured(rounds_of([1.5] * 5, [1.0] * 5))
    assert judge(both, "20.10", measured).has(Outcome.FAILS)
    assert not judge(both, "28", measured).has(Outcome.FAILS)
    assert "demo on Docker 28: a demonstration" in describe(judge(both, "28", measured))


def test_aims_are_reported_and_never_fail() -> None:
    aims = (Aim("ms", "us", at_most=0.1), Aim("ms", "us", quantile=0.99, at_most=2),
            Aim("ms", "us", "them", at_most=0.4))
    verdict = judge(row(gate(at_most=2), aims=aims), None, Measured(rounds_of([1.0] * 5, [2.0] * 5)))
    lines = [line.strip() for line in describe(verdict).splitlines() if "aim:" in line]
    assert lines == ["aim: ms p50, us: 1, at most 0.1: not reached",
                     "aim: ms p99, us: 1, at most 2: reached",
                     "aim: ms, us / them: 0.5, at most 0.4: not reached"]
    assert [aim["reached"] for aim in verdict.as_json()["aims"]] == [False, True, False]
    assert verdict.has(Outcome.HOLDS)


# Commands are what users do most: their gates have to notice a fifth more.
TIGHT_GATES = [pytest.param(row.check_rounds, gate, id=f"{row.name} on {gate.engine}")
               for row in ROWS if row.name in ("exec", "exec-cpu") for gate in row.gates]


def noisy_rounds(count: int, gate: Gate, slowdown: float, seed: int) -> list[ratios.Round]:
    """As a quiet machine measures them: rounds differ by some percent, some are hit by other work, and a
    whole run is a little off the one in which the gate was set."""
    generator = random.Random(seed)
    # Of a millisecond a wake-up more or less is a good part; a round of a thousand evens that out.
    spread = 0.3 if count >= 100 else 0.03
    drift = generator.uniform(-0.03, 0.03)
    rounds = []
    for _ in range(count):
        noise = generator.gauss(drift, spread)
        if generator.random() < 0.03:
            noise += generator.uniform(0, 1)
        worse = slowdown * math.exp(noise)
        ratio = gate.today * (worse if gate.at_most is not None else 1 / worse)
        rounds.append({gate.arm: {gate.metric: ratio}, gate.baseline: {gate.metric: 1.0}})
    return rounds


@pytest.mark.parametrize("count, gate", TIGHT_GATES)
@pytest.mark.parametrize("slowdown, fails", [(1.0, False), (1.2, True)])
def test_an_unchanged_row_is_green_and_one_a_fifth_slower_is_red(
        count: int, gate: Gate, slowdown: float, fails: bool) -> None:
    for seed in range(5):
        verdict = judge(row(gate), gate.engine, Measured(noisy_rounds(count, gate, slowdown, seed)))
        assert verdict.has(Outcome.FAILS) is fails, f"seed {seed}: {verdict.gates}"


def test_commands_have_gates_on_every_engine() -> None:
    for row in ROWS:
        if row.name in ("exec", "exec-cpu", "execs"):
            assert row.engines == ENGINES
            assert {gate.engine for gate in row.gates} == set(ENGINES)


def test_a_gate_says_whether_it_was_measured_when_it_was_set() -> None:
    measured = Measured(rounds_of([1.0] * 5, [1.0] * 5))
    assert "(1 when it was set)" in describe(judge(row(gate(at_most=2)), None, measured))
    guess = Gate("ms", "us", "them", at_most=2)
    assert "(not measured when it was set)" in describe(judge(row(guess), None, measured))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_consistent(row: Row) -> None:
    assert bool(row.gates) == bool(row.check_rounds)
    for gate in row.gates:
        assert gate.today is None or gate.holds(gate.today), "a gate is green when it is set"
        assert (gate.at_most is None) != (gate.at_least is None)
        assert gate.engine is None or gate.engine in row.engines


def run_bench(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([str(ROOT / "scripts" / "bench"), *arguments], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def listed_rows(*arguments: str) -> list[str]:
    listing = run_bench("--list", *arguments)
    assert listing.returncode == 0
    return [line.split(":")[0] for line in listing.stdout.splitlines() if not line.startswith(" ")]


def test_the_rows_are_listed_with_their_gates_and_aims() -> None:
    assert listed_rows() == [
        "ping", "memory", "store", "start", "life", "copies", "cp", "service", "companions", "verification", "stop", "fifty", "exec", "exec-cpu",
        "execs", "output", "readers", "effort", "keystroke", "idle-terminals",
        "cli", "event", "deliver", "stalled", "idle", "used",
        "recovery", "asleep", "crowded"]
    lines = run_bench("--list", "exec").stdout.splitlines()
    assert lines[0].endswith("(Docker 20.10 and 28)")
    assert {line.split()[0] for line in lines[1:]} == {"gate", "aim:"}


def test_a_check_leaves_out_rows_without_gates_unless_they_are_named() -> None:
    assert set(listed_rows()) - set(listed_rows("--check")) == {"verification", "cli"}
    assert listed_rows("--check", "verification") == ["verification"]


def test_the_help_says_when_another_build_is_worse() -> None:
    assert "worse by more than 5 %" in " ".join(run_bench("--help").stdout.split())


def test_an_unknown_engine_is_refused() -> None:
    run = run_bench("exec", "--engine", "20.10,19")
    assert run.returncode == 2
    assert "19: not one of 20.10, 28" in run.stderr


def test_an_unknown_row_is_refused() -> None:
    run = run_bench("pong")
    assert run.returncode == 2
    assert "the rows are ping, memory, store, start, life" in run.stderr


# --- the script ----------------------------------------------------------------------------------------


@pytest.fixture
def script():
    """scripts/bench as a module."""
    loader = importlib.machinery.SourceFileLoader("bench_script", str(ROOT / "scripts" / "bench"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def test_without_root_nothing_is_built(script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "ping"])
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(script, "build_release", lambda: pytest.fail("it was built"))
    with pytest.raises(SystemExit, match="run it as root"):
        script.main()


def test_the_owner_of_the_clone_builds(script, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = pwd.getpwnam("nobody")
    for name in ("scripts/install-packages", "cmake"):
        program = directory / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\necho {program.name} $(id -u) $HOME >>{directory}/log\n")
        program.chmod(0o755)
    (directory / "log").touch()
    (directory / "log").chmod(0o666)
    os.chown(directory, nobody.pw_uid, nobody.pw_gid)
    monkeypatch.setattr(script, "ROOT", directory)
    monkeypatch.setenv("PATH", str(directory), prepend=os.pathsep)
    monkeypatch.setenv("HOME", "/root")
    script.build_release()
    assert (directory / "log").read_text().splitlines() == [
        "install-packages 0 /root", *[f"cmake {nobody.pw_uid} {nobody.pw_dir}"] * 2]


# --- readers -------------------------------------------------------------------------------------------


class Stream:
    """A client's side of a stream of output."""

    def __init__(self, *pieces: int, is_open: bool = True):
        self.pieces, self.is_open, self.was_cancelled = pieces, is_open, False

    def initial_metadata(self) -> tuple:
        return ()

    def is_active(self) -> bool:
        return self.is_open

    def details(self) -> str:
        return "too many readers"

    def __iter__(self) -> Iterator[types.SimpleNamespace]:
        return (types.SimpleNamespace(data=b"x" * count) for count in self.pieces)

    def cancel(self) -> None:
        self.was_cancelled = True


@pytest.mark.parametrize("eager, stopped, problem", [
    (Stream(1, 6), Stream(), None),
    (Stream(1, 6), Stream(is_open=False), "a reader was refused: too many readers"),
    (Stream(is_open=False), Stream(), "a reader was refused: too many readers"),
    (Stream(1, 5), Stream(), "a reader received 6 bytes of 7")])
def test_a_reader_that_was_refused_or_cut_off_fails_the_row(
        eager: Stream, stopped: Stream, problem: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execs, "OUTPUT_BYTES", 6)
    streams = [eager, stopped]
    sandboxes = types.SimpleNamespace(run=lambda *_: None, start=lambda *_: None, wait=lambda _: None,
                                      read=lambda _: streams.pop(0))
    world = types.SimpleNamespace(sandboxes=sandboxes)
    with pytest.raises(RuntimeError, match=problem) if problem else contextlib.nullcontext():
        assert execs.written_beside(world, "sandbox", 1, 1) > 0
    assert eager.was_cancelled and stopped.was_cancelled


def test_both_arms_are_measured_in_every_round(release_build: Path) -> None:
    with temporary_directory() as directory, start_echo(release_build, Path(directory) / "a") as first, \
            start_echo(release_build, Path(directory) / "b") as second:
        assert first.memory_kib()["rss_kib"] > 1000
        assert first.cpu_ms() > 0
        assert first.has_open(first.log) and not first.has_open(second.log)
        output = subprocess.run(
            [str(release_build / "bench" / "ping_bench"), "200", f"us={first.socket_path}",
             f"them={second.socket_path}"], check=True, stdout=subprocess.PIPE, timeout=60).stdout
        rounds = json.loads(output)["rounds"]
        assert len(rounds) == 200
        orders = {tuple(measured) for measured in rounds}
        assert orders == {("us", "them"), ("them", "us")}, "the order is random"
        ratio = ratios.median_ratio(rounds, "ms", "us", "them")
        assert 0.5 < ratio.median < 2, "the same server twice"


@pytest.fixture
def engine_socket() -> Iterator[tuple[Path, list[list[str]]]]:
    """An engine that knows execs, and the paths of its calls by connection."""
    connections: list[list[str]] = []

    class Connection(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            self.paths: list[str] = []
            connections.append(self.paths)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.paths.append(self.path.rpartition("/")[2])
            if self.path.endswith("/start"):  # taken over for the output
                self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\nthe output")
                self.close_connection = True
            else:
                self.reply('{"Id":"%s"}' % ("0" * 64))

        def do_GET(self) -> None:
            self.paths.append(self.path.rpartition("/")[2])
            self.reply('{"ExitCode":0}')

        def reply(self, text: str) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def address_string(self) -> str:
            return "a Unix socket"

        def log_message(self, *_: object) -> None:
            pass

    with temporary_directory() as directory:
        path = Path(directory) / "engine"
        with socketserver.ThreadingUnixStreamServer(str(path), Connection) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            yield path, connections
            server.shutdown()
            thread.join()


# A start is the last call on its connection, because the engine takes that over.
KEPT_ALIVE = [["exec", "start"], ["json", "exec", "start"], ["json", "exec", "start"], ["json"]]


def test_the_program_keeps_its_connection_to_the_engine_alive(
        release_build: Path, engine_socket: tuple[Path, list[list[str]]]) -> None:
    path, connections = engine_socket
    subprocess.run([str(release_build / "bench" / "exec_bench"), "engine", "3", str(path), "c"],
                   check=True, timeout=60)
    assert connections == KEPT_ALIVE


def test_the_raw_arm_keeps_its_connection_to_the_engine_alive(
        engine_socket: tuple[Path, list[list[str]]]) -> None:
    path, connections = engine_socket
    with contextlib.closing(KeptAliveApi(path)) as api:
        raw = Raw(api, path.parent, "sample")
        for _ in range(3):
            raw.run("c", "true")
    inspection = ["json", "agbox-net-sample"]  # of the sample
    assert connections == [inspection + KEPT_ALIVE[0], *KEPT_ALIVE[1:]]


def test_a_server_that_ends_is_reported_with_its_words(release_build: Path) -> None:
    with temporary_directory() as directory:
        (Path(directory) / "echo" / "echo.sock").mkdir(parents=True)
        with pytest.raises(RuntimeError, match="(?s)ended: .*cannot listen"):
            start_echo(release_build, Path(directory) / "echo")


def test_the_daemon_does_not_talk_to_the_machines_own_engine(release_build: Path) -> None:
    with temporary_directory() as directory, start_daemon(release_build, Path(directory)) as daemon:
        environment = Path(f"/proc/{daemon.process.pid}/environ").read_bytes().split(b"\0")
        assert f"DOCKER_HOST=unix://{directory}/no-engine.sock".encode() in environment


def test_a_ping_that_fails_fails_the_program(release_build: Path) -> None:
    run = subprocess.run([str(release_build / "bench" / "ping_bench"), "0", "us=/nowhere"],
                         text=True, stderr=subprocess.PIPE, timeout=60)
    assert run.returncode == 2


def test_stop_waits_for_the_end(release_build: Path) -> None:
    with temporary_directory() as directory:
        server: Server = start_echo(release_build, Path(directory) / "echo")
        pid = server.process.pid
        server.stop()
        assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("mode", ["hold", "stall"])
def test_subscribers_are_connected_while_the_block_lasts(release_build: Path, mode: str) -> None:
    with temporary_directory() as directory, start_echo(release_build, Path(directory) / "echo") as echo:
        descriptors = Path(f"/proc/{echo.process.pid}/fd")
        before = len(list(descriptors.iterdir()))
        with subscribers(release_build, 120, echo.socket_path, "idle", mode):
            assert len(list(descriptors.iterdir())) == before + 3, "fifty streams per connection"


def test_subscribers_that_cannot_connect_fail_the_run(release_build: Path) -> None:
    with pytest.raises(RuntimeError, match="3 subscribers"):
        with subscribers(release_build, 3, Path("/nowhere/echo.sock"), "idle"):
            pytest.fail("they are not connected")
