# SPDX-License-Identifier: Apache-2.0
"""Processes of the kit: background programs whose output a test can wait for, and a view of all processes
of the machine."""

import contextlib
import os
import re
import select
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.run_directory import MARK

# Only Debian's own programs.
SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"


def base_environment() -> dict[str, str]:
    """The environment of every program of the kit: only the mark of the run is inherited."""
    return {"PATH": SYSTEM_PATH, "LANG": "C.UTF-8", MARK: os.environ[MARK]}


def run(*argv: str | os.PathLike, check: bool = True, **options) -> subprocess.CompletedProcess:
    """Runs a program to completion. A failure includes the command and its output."""
    options.setdefault("env", base_environment())
    options.setdefault("timeout", 120)
    options.setdefault("text", True)
    if "stdout" not in options and "stderr" not in options:
        options.setdefault("capture_output", True)
    if "input" not in options:
        options.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run([os.fspath(part) for part in argv], check=False, **options)
    if check and done.returncode != 0:
        command = " ".join(map(str, argv))
        raise RuntimeError(f"{command}: exit {done.returncode}: {done.stderr or done.stdout}")
    return done


class LoggedProcess:
    """A background program. A thread reads its output, so that a test can wait for a line without
    polling, and the program never blocks on a full pipe."""

    def __init__(self, name: str, argv: Sequence[str], environment: Mapping[str, str], **options):
        self.name = name
        self._lines: list[str] = []
        self._changed = threading.Condition()
        self._at_end = False
        self._has_read_all = threading.Event()  # of the program's own output
        options.setdefault("stdin", subprocess.DEVNULL)
        self._process = subprocess.Popen(
            argv,
            env=dict(environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **options,
        )
        self._end = os.pidfd_open(self.pid)
        threading.Thread(target=self._read, name=f"log of {name}", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def lines(self) -> list[str]:
        with self._changed:
            return list(self._lines)

    def wait_for_line(
        self, wanted: Callable[[str], bool], what: str, timeout: float, after: int = 0
    ) -> str:
        """The first matching line, past or future; `what` is for the error. `after` is the number of
        lines to ignore."""
        seen = after

        def found_or_over() -> bool:
            nonlocal seen
            while seen < len(self._lines):
                if wanted(self._lines[seen]):
                    return True
                seen += 1
            return self._at_end

        with self._changed:
            in_time = self._changed.wait_for(found_or_over, timeout)
            if seen < len(self._lines):
                return self._lines[seen]
        cause = "it ended first" if in_time else f"not within {timeout} s"
        raise RuntimeError(
            f"{self.name}: waited for {what}: {cause}; its last lines:\n{self.tail()}"
        )

    def tail(self, count: int = 30) -> str:
        return "\n".join(self.lines()[-count:])

    def returncode(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.poll()

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def write_line(self, line: str) -> None:
        """For a program that was started with stdin=subprocess.PIPE."""
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def close_input(self) -> None:
        self._process.stdin.close()

    def freeze(self) -> None:
        """Returns when every thread of the program has stopped."""
        self.send(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    def thaw(self) -> None:
        self.send(signal.SIGCONT)

    def wait(self, timeout: float = 30) -> int:
        """Waits for the end of the program and its output; returns the exit code, -N for signal N."""
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise RuntimeError(
                f"{self.name} (pid {self.pid}) still runs after {timeout} s; its last lines:\n"
                + self.tail()
            ) from None
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._has_read_all.wait(timeout)
        return code

    def stop(self, timeout: float = 30) -> int:
        self.send(signal.SIGTERM)
        return self.wait(timeout)

    def kill(self) -> int:
        self.send(signal.SIGKILL)
        return self.wait()

    def _read(self) -> None:
        """Until the end of the pipe, which a surviving child may keep open. After the program's end all
        its output is in the pipe: once that is empty, everything was read."""
        output, begun = self._process.stdout.fileno(), b""  # an incomplete line
        waiting = select.poll()
        waiting.register(output, select.POLLIN)
        waiting.register(self._end, select.POLLIN)
        has_ended = False
        while True:
            if output in dict(waiting.poll()):
                part = os.read(output, 1 << 16)
                if not part:
                    break
                *lines, begun = (begun + part).split(b"\n")
                self._add(lines)
            elif not has_ended:
                has_ended = True  # check the pipe once more
            else:
                waiting.unregister(self._end)
                self._has_read_all.set()
        self._add([begun] if begun else [], at_end=True)
        self._has_read_all.set()
        self._process.stdout.close()
        os.close(self._end)

    def _add(self, lines: Iterable[bytes], at_end: bool = False) -> None:
        with self._changed:
            self._lines += [line.decode(errors="replace") for line in lines]
            self._at_end = at_end
            self._changed.notify_all()


@dataclass(frozen=True)
class ProcessSeen:
    """One process at one moment. The start time distinguishes it from a later one with the same PID."""

    pid: int
    parent: int
    started: int
    name: str
    zombie: bool

    def command(self) -> str:
        return _read_proc(self.pid, "cmdline").replace(b"\0", b" ").decode(errors="replace").strip()

    def has_mark(self, mark: str) -> bool:
        return f"{MARK}={mark}".encode() in _read_proc(self.pid, "environ").split(b"\0")

    def works_in(self, directory: Path) -> bool:
        """Its working directory or a path in its command line is in the directory."""
        try:
            here = os.readlink(f"/proc/{self.pid}/cwd")
        except OSError:
            here = ""
        return (here + "/").startswith(f"{directory}/") or f"{directory}/" in self.command()


def _read_proc(pid: int, name: str) -> bytes:
    """A file of /proc/PID; empty if the process is gone or not readable."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def open_files(pid: int, with_paths: bool = True) -> list[str]:
    """The targets of its descriptors, except those closed meanwhile; those that can neither read nor write only
    with `with_paths`."""
    names = []
    for entry in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            flags = re.search(r"^flags:\s+(\d+)$", Path(f"/proc/{pid}/fdinfo/{entry}").read_text(), re.M)
            if with_paths or not int(flags[1], 8) & os.O_PATH:
                names.append(os.readlink(f"/proc/{pid}/fd/{entry}"))
    return names


def cpu_seconds(pid: int) -> float:
    """What it has used so far, in user and kernel mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak_resident_bytes(pid: int) -> int:
    """The most since its start."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) << 10


def all_processes() -> dict[int, ProcessSeen]:
    seen = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        stat = _read_proc(int(entry), "stat").decode(errors="replace")
        if not stat:
            continue
        # The name is in parentheses and may contain spaces and parentheses.
        name = stat[stat.index("(") + 1 : stat.rindex(")")]
        fields = stat[stat.rindex(")") + 2 :].split()
        process = ProcessSeen(
            pid=int(entry),
            parent=int(fields[1]),
            started=int(fields[19]),
            name=name,
            zombie=fields[0] == "Z",
        )
        seen[process.pid] = process
    return seen


def descendants(roots: Iterable[int], processes: Mapping[int, ProcessSeen]) -> set[int]:
    """All children, grandchildren and so on of the roots; not the roots themselves."""
    children: dict[int, list[int]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process.pid)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        for child in children.get(waiting.pop(), []):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def kill_and_wait(pids: Iterable[int], timeout: float = 60) -> None:
    """Kills processes, not necessarily our children, and waits until each is gone."""
    handles = []
    try:
        for pid in pids:
            try:
                handles.append((pid, os.pidfd_open(pid)))
            except ProcessLookupError:
                continue
        for pid, handle in handles:
            try:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            except ProcessLookupError:
                continue
        for pid, handle in handles:
            ended = select.poll()  # select() takes no descriptor above 1023
            ended.register(handle, select.POLLIN)
            if not ended.poll(timeout * 1000):
                raise RuntimeError(f"process {pid} is still there {timeout} s after SIGKILL")
    finally:
        for _, handle in handles:
            os.close(handle)
