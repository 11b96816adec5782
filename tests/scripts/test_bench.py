# SPDX-License-Identifier: Apache-2.0
"""The benchmark's arithmetic and verdicts, and the frame run on real servers."""
import contextlib
import http.server
import json
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import ratios  # noqa: E402
from engine_world import KeptAliveApi, Raw  # noqa: E402
from row import Goal, Measured, Row, Target, describe, judge  # noqa: E402
from server import Server, start_echo, subscribers, temporary_folder  # noqa: E402


def rounds_of(ours: list[float], beside: list[float]) -> list[ratios.Round]:
    return [{"us": {"ms": mine}, "them": {"ms": theirs}} for mine, theirs in zip(ours, beside)]


def row(goal: Goal, targets: tuple[Target, ...] = ()) -> Row:
    return Row("demo", "a demonstration", 3, lambda *_: Measured([]), (goal,), targets)


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


@pytest.mark.parametrize("goal, met", [
    (Goal("ms", "us", "them", at_most=1.0), False),
    (Goal("ms", "us", "them", at_most=1.5), True),
    (Goal("ms", "us", "them", at_least=1.5), False),
    (Goal("ms", "us", "them", at_least=1.0), True),
])
def test_a_verdict_follows_its_goal(goal: Goal, met: bool) -> None:
    verdict = judge(row(goal), Measured(rounds_of([1.2] * 5, [1.0] * 5)))
    assert verdict.is_met is met
    assert ("MISSED" in describe(verdict)) is not met
    assert verdict.as_json()["ratios"][0]["met"] is met


def test_an_absolute_number_is_reported_and_never_fails() -> None:
    verdict = judge(row(Goal("ms", "us", "them", at_most=2), (Target("ms", "us", 0.5, at_most=0.1),)),
                    Measured(rounds_of([1.0] * 5, [1.0] * 5)))
    assert "not reached here" in describe(verdict)
    assert verdict.is_met


def test_the_rows_are_listed_with_their_goals() -> None:
    listing = subprocess.run([str(ROOT / "scripts" / "bench"), "--list"], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
    assert [line.split()[0] for line in listing.splitlines()] == [
        "ping", "memory", "store", "start", "life", "proofs", "stop", "fifty", "exec", "execs", "output",
        "readers", "effort", "event", "deliver", "idle", "used",
        "recovery", "asleep", "crowded"]


def test_an_unknown_row_is_refused() -> None:
    run = subprocess.run([str(ROOT / "scripts" / "bench"), "pong"], text=True, stderr=subprocess.PIPE)
    assert run.returncode == 2
    assert "the rows are ping, memory, store, start, life" in run.stderr


def test_both_arms_are_measured_in_every_round(release_build: Path) -> None:
    with temporary_folder() as folder, start_echo(release_build, Path(folder) / "a") as first, \
            start_echo(release_build, Path(folder) / "b") as second:
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

    with temporary_folder() as folder:
        path = Path(folder) / "engine"
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
    with temporary_folder() as folder:
        (Path(folder) / "echo" / "echo.sock").mkdir(parents=True)
        with pytest.raises(RuntimeError, match="(?s)ended: .*cannot listen"):
            start_echo(release_build, Path(folder) / "echo")


def test_a_ping_that_fails_fails_the_program(release_build: Path) -> None:
    run = subprocess.run([str(release_build / "bench" / "ping_bench"), "0", "us=/nowhere"],
                         text=True, stderr=subprocess.PIPE, timeout=60)
    assert run.returncode == 2


def test_stop_waits_for_the_end(release_build: Path) -> None:
    with temporary_folder() as folder:
        server: Server = start_echo(release_build, Path(folder) / "echo")
        pid = server.process.pid
        server.stop()
        assert not Path(f"/proc/{pid}").exists()


def test_subscribers_are_connected_while_the_block_lasts(release_build: Path) -> None:
    with temporary_folder() as folder, start_echo(release_build, Path(folder) / "echo") as echo:
        descriptors = Path(f"/proc/{echo.process.pid}/fd")
        before = len(list(descriptors.iterdir()))
        with subscribers(release_build, 120, echo.socket_path, "idle"):
            assert len(list(descriptors.iterdir())) == before + 3, "fifty streams per connection"


def test_subscribers_that_cannot_connect_fail_the_run(release_build: Path) -> None:
    with pytest.raises(RuntimeError, match="3 subscribers"):
        with subscribers(release_build, 3, Path("/nowhere/echo.sock"), "idle"):
            pytest.fail("they are not connected")
