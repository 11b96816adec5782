# SPDX-License-Identifier: Apache-2.0
"""Servers that a benchmark starts, waits for and ends: our daemon with every path in a temporary
directory, and the bare echo. Each signals that it is ready."""
import contextlib
import os
import select
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PATIENCE = 60.0


def memory_kib(pid: int) -> dict[str, float]:
    """Resident memory now: all of it, and the part that no file backs."""
    text = Path(f"/proc/{pid}/status").read_text()
    fields = dict(line.split(":", 1) for line in text.splitlines())
    return {"rss_kib": float(fields["VmRSS"].split()[0]),
            "anonymous_kib": float(fields["RssAnon"].split()[0])}


def peak_memory_kib(pid: int) -> int:
    """The most that was resident since its start."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def cpu_ms(pid: int) -> float:
    """What its threads have spent so far; the clock ticks of /proc/PID/stat are too coarse."""
    spent = 0
    for schedstat in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            spent += int(schedstat.read_text().split()[0])
    return spent / 1e6


def cpu_ms_with_children(pid: int) -> float:
    """What it and every child that it has waited for have spent so far."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0  # its parent has its time now
    ticks = sum(map(int, stat[stat.rindex(")") + 2:].split()[11:15]))
    return ticks * 1000 / os.sysconf("SC_CLK_TCK")


class Server:
    """A started process; `started_ms` is the time from the exec to its own word that it serves."""

    def __init__(self, socket_path: Path, log: Path):
        self.socket_path = socket_path
        self.log = log
        self.process: subprocess.Popen | None = None
        self.started_ms = 0.0

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        if self.process is None:
            return
        process, self.process = self.process, None
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise RuntimeError(f"{process.args[0]}: still there {PATIENCE:.0f} s after SIGTERM")
        finally:
            if process.stdout:
                process.stdout.close()
        if code not in (0, -signal.SIGTERM):
            raise RuntimeError(f"{process.args[0]}: ended with {code}: {self.last_words()}")

    def last_words(self) -> str:
        return self.log.read_text(errors="replace")[-2000:].strip() or "(it said nothing)"

    def memory_kib(self) -> dict[str, float]:
        return memory_kib(self.process.pid)

    def cpu_ms(self) -> float:
        return cpu_ms(self.process.pid)

    def has_open(self, path: Path) -> bool:
        wanted = str(path.resolve())
        for link in Path(f"/proc/{self.process.pid}/fd").iterdir():
            try:
                if os.readlink(link) == wanted:
                    return True
            except FileNotFoundError:
                continue  # closed meanwhile
        return False

    def run_until(self, command: list[str], environment: dict[str, str], told: object,
                  is_ready) -> None:
        """Starts and waits until `told` (something to select on) is readable and is_ready() holds."""
        with self.log.open("wb") as log:
            began = time.monotonic()
            self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE if told is None else log,
                                            stderr=log)
        told = told if told is not None else self.process.stdout
        ended = os.pidfd_open(self.process.pid)
        try:
            while True:
                left = began + PATIENCE - time.monotonic()
                readable, _, _ = select.select([told, ended], [], [], max(left, 0))
                if told in readable and is_ready(told):
                    self.started_ms = (time.monotonic() - began) * 1000
                    return
                if ended in readable or not readable:
                    reason = "ended" if ended in readable else f"not ready after {PATIENCE:.0f} s"
                    raise RuntimeError(f"{command[0]}: {reason}: {self.last_words()}")
        except BaseException:
            self.process.kill()
            self.process.wait()
            if self.process.stdout:
                self.process.stdout.close()
            self.process = None
            raise
        finally:
            os.close(ended)


def start_daemon(build: Path, directory: Path) -> Server:
    """agboxd on the store in `directory`, without an engine; starting again on the same directory finds the same store."""
    program = build / "bin" / "agboxd"
    if not program.is_file():
        raise RuntimeError(f"{program} is not there; build it: cmake --build --preset release")
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(directory)}
    for name in ("runtime", "config", "data", "state"):
        (directory / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    environment |= {"XDG_RUNTIME_DIR": str(directory / "runtime"),
                    "XDG_CONFIG_HOME": str(directory / "config"),
                    "XDG_DATA_HOME": str(directory / "data"),
                    "XDG_STATE_HOME": str(directory / "state"),
                    "DOCKER_HOST": f"unix://{directory}/no-engine.sock",
                    "NOTIFY_SOCKET": str(directory / "notify")}
    server = Server(directory / "runtime" / "agbox" / "agboxd.sock", directory / "agboxd.log")
    (directory / "notify").unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(directory / "notify"))
        server.run_until([str(program)], environment, notify,
                         lambda told: b"READY=1" in told.recv(4096).split(b"\n"))
    return server


def start_echo(build: Path, directory: Path) -> Server:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    server = Server(directory / "echo.sock", directory / "echo.log")
    server.run_until([str(build / "bench" / "echo_server"), str(server.socket_path)],
                     dict(os.environ), None, lambda told: told.readline() == b"listening\n")
    return server


@contextlib.contextmanager
def subscribers(build: Path, count: int, socket_path: Path, sandbox_id: str,
                mode: str = "hold", from_sequence: int = 0) -> Iterator[None]:
    """So many open streams of events on the server, for as long as the block lasts; in mode "stall" they
    never read."""
    command = [str(build / "bench" / "event_bench"), mode, str(count), str(socket_path), sandbox_id,
               str(from_sequence)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            if process.stdout.readline() != b"holding\n":
                raise RuntimeError(f"{count} subscribers of {sandbox_id} could not be opened")
            yield
        finally:
            process.stdin.close()  # the end of its work
    if process.returncode:
        raise RuntimeError(f"the program with {count} subscribers ended with {process.returncode}")


def temporary_directory(below: str = "/tmp") -> tempfile.TemporaryDirectory:
    # Whatever TMPDIR says, because a socket's path has at most 107 bytes.
    return tempfile.TemporaryDirectory(prefix="agb-", dir=below)
