# SPDX-License-Identifier: Apache-2.0
"""Runs the CTest tests of a build, many tests of a program in one process.

A process per test would cost a sanitizer's start each time. What it would bring is kept: a pass counts only from a
process that ended well. If a test fails, crashes or hangs, the others of its process run again without it. If a process
ends badly and no test of it failed (a leak is reported at exit), each of its tests runs alone; if all of them pass then,
the process itself is a failure.
"""
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

SHARD_SIZE = 40
# Not only at the beginning of a line: a test may have printed a part of one.
BEGIN = re.compile(r"\[ RUN      \] (\S+)")
END = re.compile(r"\[ +(OK|FAILED|SKIPPED) +\] ([^\s,]+)(?:,.*)? \((\d+) ms\)")


@dataclass(frozen=True)
class UnitTest:
    """One test of CTest. Those with a `case` are GoogleTest's and can share a process."""
    name: str
    command: tuple[str, ...]
    case: str | None
    timeout: float
    processors: int
    directory: str
    environment: tuple[str, ...] = ()


@dataclass
class Outcome:
    test: UnitTest
    result: str  # "passed", "failed" or "skipped"
    seconds: float
    output: str = ""
    cpu_seconds: float = 0  # its share of what its process has used
    repeatable: bool = True  # False: no second try can show that all is well


def tests_of(build: Path, label: str, words: str = "") -> list[UnitTest]:
    """The tests with a label that fits and a name that fits the words."""
    command = ["ctest", "--test-dir", str(build), "--show-only=json-v1", "-L", label]
    listing = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    tests = [_as_unit_test(test) for test in listing["tests"]]
    return [test for test in tests if fits(words, test.name)] + _without_tests(build, label, tests)


def _without_tests(build: Path, label: str, tests: list[UnitTest]) -> list[UnitTest]:
    """Programs that should have tests with this label: CTest gives no label to one that was not built."""
    with_tests = {test.name.partition(".")[0] for test in tests}
    programs = [line.split() for line in (build / "unit_test_programs.txt").read_text().splitlines()]
    return [UnitTest(f"{name}: no test was found", (), None, 0, 1, ".") for its_label, name in programs
            if re.search(label, its_label) and name not in with_tests]


def fits(words: str, name: str) -> bool:
    """Whether a name has the words, as pytest's -k understands them: with and, or, not and brackets."""
    if not words.strip():
        return True
    truth = re.sub(r"[^\s()]+", lambda word: word[0] if word[0] in ("and", "or", "not")
                   else str(word[0].lower() in name.lower()), words)
    return eval(truth)  # nothing but True, False, and, or, not and brackets


def _as_unit_test(test: dict) -> UnitTest:
    properties = {entry["name"]: entry["value"] for entry in test.get("properties", ())}
    command = tuple(test.get("command", ()))  # none if the program was not built
    cases = [word.removeprefix("--gtest_filter=") for word in command if word.startswith("--gtest_filter=")]
    return UnitTest(name=test["name"], command=command, case=cases[0] if cases else None,
                    timeout=float(properties.get("TIMEOUT", 300)),
                    processors=int(properties.get("PROCESSORS", 1)),
                    directory=properties.get("WORKING_DIRECTORY", "."),
                    environment=tuple(properties.get("ENVIRONMENT", ())))


def run_all(tests: list[UnitTest], at_once: int) -> list[Outcome]:
    """Everything, `at_once` processes at a time; tests that need several CPUs run alone, last."""
    small = [test for test in tests if test.processors == 1]
    with ThreadPoolExecutor(at_once) as pool:
        outcomes = [outcome for shard in pool.map(run_shard, shards(small)) for outcome in shard]
    for test in tests:
        if test.processors > 1:
            outcomes.append(run_alone(test))
    return outcomes


def shards(tests: list[UnitTest]) -> list[list[UnitTest]]:
    """Tests of one program together, distributed so that neighbours, often of similar length, are separated."""
    by_program: dict[str, list[UnitTest]] = {}
    alone = []
    for test in tests:
        if test.case is None:
            alone.append([test])
        else:
            by_program.setdefault(test.command[0], []).append(test)
    made = []
    for cases in by_program.values():
        count = -(-len(cases) // SHARD_SIZE)
        made += [cases[first::count] for first in range(count)]
    return alone + sorted(made, key=len, reverse=True)


def run_shard(tests: list[UnitTest]) -> list[Outcome]:
    if len(tests) <= 1:
        return [run_alone(test) for test in tests]
    process = Process(tests)
    process.run()
    if failed := [outcome for outcome in process.outcomes if outcome.result == "failed"]:
        names = {outcome.test.name for outcome in failed}
        return failed + run_shard([test for test in tests if test.name not in names])
    if process.code == 0 and len(process.outcomes) == len(tests):
        return process.outcomes
    alone = [run_alone(test) for test in tests]
    if all(outcome.result != "failed" for outcome in alone):
        alone.append(_failure_of_shard(process))
    return alone


def _failure_of_shard(process: "Process") -> Outcome:
    program = Path(process.tests[0].command[0]).name
    name = f"{program}: a process of {len(process.tests)} tests ended with {process.code}; each of them passes alone"
    return Outcome(replace(process.tests[0], name=name, case=None), "failed", process.seconds, process.text,
                   process.cpu_seconds, repeatable=False)


def run_alone(test: UnitTest) -> Outcome:
    """In its own process, whose exit code counts too."""
    if not test.command:
        return Outcome(test, "failed", 0, f"{test.name}: the program was not built, or has no tests")
    process = Process([test])
    process.run()
    if process.outcomes:
        [outcome] = process.outcomes
    else:
        outcome = Outcome(test, "passed" if test.case is None else "failed", process.seconds,
                          cpu_seconds=process.cpu_seconds)
    if process.code != 0:
        outcome.result = "failed"
    outcome.output = process.text
    return outcome


@dataclass
class Process:
    """One run of a program with some of its tests."""
    tests: list[UnitTest]
    outcomes: list[Outcome] = field(default_factory=list)
    code: int = 0
    text: str = ""
    seconds: float = 0
    cpu_seconds: float = 0
    _current: UnitTest | None = None
    _began: float = 0
    _timed_out: bool = False
    _output: list[str] = field(default_factory=list)

    def run(self) -> None:
        by_case = {test.case: test for test in self.tests if test.case}
        started = self._began = time.monotonic()
        # Its own session, so that a hanging test is killed with all its children.
        process = subprocess.Popen(self._command(), cwd=self.tests[0].directory, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                                   env=os.environ | dict(word.split("=", 1) for word in self.tests[0].environment))
        for line in self._lines(process):
            self.text += line
            if (begin := BEGIN.search(line)) and begin[1] in by_case:
                self._current, self._began, self._output = by_case[begin[1]], time.monotonic(), []
            self._output.append(line)
            if self._current and (end := END.search(line)) and end[2] == self._current.case:
                result = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}[end[1]]
                self._end(result, int(end[3]) / 1000)
        self.code, self.cpu_seconds = _wait(process)
        if self._timed_out:  # the program may have ended well before something that it had started
            self.code = -signal.SIGKILL
        self.seconds = time.monotonic() - started
        if self._current:
            self._output.append(f"the process ended with {self.code} in this test\n")
            self._end("failed", time.monotonic() - self._began)
        self._share_cpu_seconds()

    def _share_cpu_seconds(self) -> None:
        """The kernel counts per process: each test gets what fits the time that it took."""
        total = sum(outcome.seconds for outcome in self.outcomes)
        for outcome in self.outcomes:
            share = outcome.seconds / total if total else 1 / len(self.outcomes)
            outcome.cpu_seconds = self.cpu_seconds * share

    def _command(self) -> list[str]:
        if self.tests[0].case is None:
            return list(self.tests[0].command)
        cases = ":".join(test.case for test in self.tests)
        return [self.tests[0].command[0], f"--gtest_filter={cases}", "--gtest_also_run_disabled_tests"]

    def _end(self, result: str, seconds: float) -> None:
        self.outcomes.append(Outcome(self._current, result, seconds,
                                     "".join(self._output) if result == "failed" else ""))
        self._current = None

    def _lines(self, process: subprocess.Popen) -> Iterator[str]:
        """Until the program's output ends; a test that exceeds its timeout is killed with its children."""
        pending = b""
        os.set_blocking(process.stdout.fileno(), False)
        with selectors.DefaultSelector() as selector, process.stdout as output:
            selector.register(output, selectors.EVENT_READ)
            while True:
                left = self._began + self.tests[0].timeout - time.monotonic()
                if left <= 0:
                    self._timed_out = True
                    os.killpg(process.pid, signal.SIGKILL)
                    yield f"still running after {self.tests[0].timeout:.0f} s; killed\n"
                    break
                if not selector.select(left):
                    continue
                piece = output.read(1 << 16)
                if not piece:
                    break
                *lines, pending = (pending + piece).split(b"\n")
                yield from (line.decode(errors="replace") + "\n" for line in lines)
        if pending:
            yield pending.decode(errors="replace") + "\n"


def _wait(process: subprocess.Popen) -> tuple[int, float]:
    """The exit code, and the CPU time of the process with all that it has waited for."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime


def main() -> int:
    """unit_tests.py BUILD: runs the unit tests of a build directory and prints failures and a summary."""
    outcomes = run_all(tests_of(Path(sys.argv[1]), "unit"), len(os.sched_getaffinity(0)))
    failed = [outcome for outcome in outcomes if outcome.result == "failed"]
    for outcome in failed:
        print(f"--- {outcome.test.name} ---\n{outcome.output}")
    skipped = sum(outcome.result == "skipped" for outcome in outcomes)
    print(f"{len(outcomes) - len(failed) - skipped} passed, {len(failed)} failed, {skipped} skipped")
    return 1 if failed or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
