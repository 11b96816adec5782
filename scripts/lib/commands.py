# SPDX-License-Identifier: Apache-2.0
"""Commands of a test run: run from the top of the clone, bounded in time, ended with the run."""
import contextlib
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
CORES = len(os.sched_getaffinity(0))
PYTHON = "/usr/bin/python3"
# The nice value counts within a session; between sessions, which the kernel may group, the autogroup's.
_IDLE = ["sh", "-c", 'echo 19 2>/dev/null >/proc/self/autogroup; exec nice -n 19 "$@"', "idle"]

_running: set[subprocess.Popen] = set()
_is_over = threading.Event()
_lock = threading.Lock()


class Ended(NamedTuple):
    code: int
    text: str


def heed_interruptions() -> None:
    """A shell that starts us in the background lets us ignore these, and so would everything that we start: tests of
    interruptions would hang."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


def run_quietly(command: list[str], timeout: float = 1200, idle: bool = False) -> Ended:
    """`idle`: uses only CPU time that nothing else needs."""
    return _run(_IDLE + command if idle else command, timeout, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, start_new_session=idle)


def run_openly(command: list[str], timeout: float) -> Ended:
    """With our stdout and stderr."""
    return _run(command, timeout)


def as_root(command: list[str]) -> list[str]:
    return command if os.geteuid() == 0 else ["sudo", "--", *command]


def end_all() -> None:
    """And nothing else is started: other threads may be between two commands."""
    with _lock:
        _is_over.set()
        left = list(_running)
    for process in left:
        _signal(process, signal.SIGINT)  # its runner waits for its end


def _run(command: list[str], timeout: float, **options) -> Ended:
    with _lock:
        if _is_over.is_set():
            return Ended(130, f"{' '.join(command)}: not started, because the run was interrupted\n")
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, **options)
        _running.add(process)
    try:
        text, _ = process.communicate(timeout=timeout)
        return Ended(process.returncode, _as_text(text))
    except KeyboardInterrupt:
        _end(process)
        raise
    except subprocess.TimeoutExpired:
        text = _end(process)
        late = f"{' '.join(command)}: still running after {timeout:.0f} s; ended\n"
        return Ended(process.returncode or 1, _as_text(text) + late)
    finally:
        with _lock:
            _running.discard(process)


def _as_text(output: bytes | None) -> str:
    return (output or b"").decode(errors="replace")


def _end(process: subprocess.Popen) -> bytes:
    """Politely first: pytest cleans up on SIGINT."""
    for number, patience in ((signal.SIGINT, 60), (signal.SIGTERM, 10), (signal.SIGKILL, None)):
        _signal(process, number)
        try:
            return process.communicate(timeout=patience)[0] or b""
        except subprocess.TimeoutExpired:
            continue
    return b""


def _signal(process: subprocess.Popen, number: int) -> None:
    if process.poll() is not None:
        return
    try:
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
    except PermissionError:
        _signal_as_root(process.pid, number)


def _signal_as_root(sudo: int, number: int) -> None:
    """To the command that sudo runs: sudo cannot pass SIGKILL on, and does not pass on what comes from its own group."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
        children = Path(f"/proc/{sudo}/task/{sudo}/children").read_text().split()
        subprocess.run(as_root(["kill", f"-{number}", *(children or [str(sudo)])]))
