# SPDX-License-Identifier: Apache-2.0
"""The result of a run: every test's outcome, checked against tests/budget.toml.

A test that failed or took longer than its budget is run once more, alone. If it passes then, it counts as passed and is
listed as flaky, or as slow. A run may have a few of both. Some suites may not be flaky, and what a sanitizer reported
once is a failure. What is too slow twice has failed.
"""
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from support.budget import Budget

# So many failures are no accident: retrying would only take time.
MOST_TO_REPEAT = 20
_SANITIZER_REPORT = re.compile(r"Sanitizer|runtime error:")


@dataclass
class TestResult:
    name: str
    group: str
    outcome: str  # "passed", "failed" or "skipped"
    seconds: float
    text: str = ""
    fixture_seconds: float = 0.0
    cpu_seconds: float | None = None  # None: not known, because engines and daemons work for the test too
    limit: float = 0.0  # seconds that the test itself may take; 0: no limit
    run_again: Callable[[], "TestResult"] | None = None  # None: no second try

    @property
    def is_slow(self) -> bool:
        return 0 < self.limit < self.seconds


@dataclass
class Tally:
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    flaky: list[str] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.flaky += other.flaky
        self.slow += other.slow

    def line(self) -> str:
        return f"{self.passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"


def first_tally(results: list[TestResult]) -> Tally:
    """Before retries."""
    names = {outcome: [result.name for result in results if result.outcome == outcome]
             for outcome in ("passed", "failed", "skipped")}
    return Tally(len(names["passed"]), names["failed"], names["skipped"])


def judge(results: list[TestResult], budget: Budget, logs: Path) -> Tally:
    """The final tally; retries what has to be retried and keeps the logs of both attempts."""
    tally = Tally()
    doubtful = []
    for result in results:
        if result.outcome == "failed" and result.run_again is None:
            tally.failed.append(result.name)
        elif result.outcome == "failed" or result.is_slow:
            doubtful.append(result)
        elif result.outcome == "skipped":
            tally.skipped.append(result.name)
        else:
            tally.passed += 1
    if len(doubtful) > MOST_TO_REPEAT:
        tally.failed += [_why(result) for result in doubtful]
        return tally
    for result in doubtful:
        _judge_again(result, budget, logs, tally)
    for kind, names, most in (("flaky", tally.flaky, budget.most_flaky), ("slow", tally.slow, budget.most_slow)):
        if len(names) > most:
            tally.failed.append(f"{len(names)} {kind} tests, at most {most} are allowed (tests/budget.toml)")
    return tally


def _judge_again(result: TestResult, budget: Budget, logs: Path, tally: Tally) -> None:
    print(f"    retrying alone: {result.name}", flush=True)
    again = result.run_again()
    _keep_logs(logs, result, again)
    if again.outcome != "passed":
        tally.failed.append(result.name)
    elif again.is_slow:
        tally.failed.append(_why(again))
    elif result.outcome != "failed":
        tally.passed += 1
        tally.slow.append(_why(result))
    elif _SANITIZER_REPORT.search(result.text):
        tally.failed.append(f"{result.name} (passed alone, but a sanitizer had reported an error)")
    elif not budget.may_be_flaky(result.name):
        tally.failed.append(f"{result.name} (passed alone, but this suite may not be flaky)")
    else:
        tally.passed += 1
        tally.flaky.append(result.name)


def group_seconds(results: list[TestResult]) -> dict[str, float]:
    """CPU time where it is known: how long unit tests take depends on what pytest leaves them."""
    sums: dict[str, float] = {}
    for result in results:
        cost = result.seconds + result.fixture_seconds if result.cpu_seconds is None else result.cpu_seconds
        sums[result.group] = sums.get(result.group, 0) + cost
    return sums


def over_budget(results: list[TestResult], budget: Budget, stretch: float = 1.0) -> list[str]:
    """The groups that exceed their budget, on a machine that is so much slower than usual."""
    failures = []
    for group, seconds in sorted(group_seconds(results).items()):
        if group not in budget.groups:
            failures.append(f"group {group}: took {seconds:.0f} s and has no budget in tests/budget.toml")
        elif seconds > (limit := budget.groups[group] * stretch):
            failures.append(f"group {group}: took {seconds:.0f} s, its budget is {limit:.0f} s (tests/budget.toml); "
                            "build/reports/seconds.txt has what each of its tests took")
    return failures


def _why(result: TestResult) -> str:
    if result.outcome == "failed":
        return result.name
    return f"{result.name}: took {result.seconds:.1f} s, its budget is {result.limit:.1f} s (tests/budget.toml)"


def _keep_logs(logs: Path, first: TestResult, second: TestResult) -> None:
    logs.mkdir(parents=True, exist_ok=True)
    stem = re.sub(r"[^\w.-]+", "_", first.name)[-150:]
    for number, result in enumerate((first, second), 1):
        text = f"{result.name}: {result.outcome} after {result.seconds:.1f} s\n{result.text}"
        (logs / f"{stem}.{number}.log").write_text(text)
