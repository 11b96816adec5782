# SPDX-License-Identifier: Apache-2.0
"""The begin, end and dependencies of the steps of a run, some of them concurrent."""
import threading
import time
from dataclasses import dataclass


@dataclass
class Step:
    name: str
    after: tuple[str, ...]  # its dependencies
    began: float
    ended: float = 0
    line: str = ""

    @property
    def seconds(self) -> float:
        return self.ended - self.began


class Timeline:
    def __init__(self) -> None:
        self._start = time.monotonic()
        self._steps: list[Step] = []
        self._lock = threading.Lock()

    def begin(self, name: str, after: tuple[str, ...]) -> Step:
        step = Step(name, after, time.monotonic() - self._start)
        with self._lock:
            self._steps.append(step)
        print(f"==> {time.strftime('%H:%M:%S')} {name}", flush=True)
        return step

    def end(self, step: Step, line: str) -> None:
        step.ended, step.line = time.monotonic() - self._start, line
        print(f"    {step.name}: {line} ({step.seconds:.0f} s)", flush=True)

    def minutes(self) -> float:
        return (time.monotonic() - self._start) / 60

    def critical_path(self) -> list[Step]:
        """From the last step back to the dependency that ended last."""
        ended = {step.name: step for step in self._steps if step.ended}
        path = [max(ended.values(), key=lambda step: step.ended)] if ended else []
        while path and (before := [ended[name] for name in path[0].after if name in ended]):
            path.insert(0, max(before, key=lambda step: step.ended))
        return path

    def table(self) -> str:
        rows = [f"  {_clock(step.began)}  {_clock(step.ended)}  {step.seconds:6.0f} s  {step.name}: {step.line}"
                for step in self._steps]
        path = " -> ".join(f"{step.name} {step.seconds:.0f} s" for step in self.critical_path())
        return "\n".join(["Steps (begin, end, duration):", *rows,
                          f"  {_clock(time.monotonic() - self._start)}  in all; critical path: {path}"])


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:3d}:{int(seconds) % 60:02d}"
