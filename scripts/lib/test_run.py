# SPDX-License-Identifier: Apache-2.0
"""The run behind scripts/test: its steps, their dependencies, and the summary.

pytest is the longest step and mostly waits, for engines and for programs. So what it needs comes first: the
root filesystems of its engines are made from the first second on, next to the packages, and release is the first build.
The sanitizers' builds and tests and clang-tidy then take the processor time that pytest leaves. A step that
fails never hides the next.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import unit_tests
from changes import changed_files
from checks import CHECKS
from commands import CORES, PYTHON, ROOT, as_root, end_all, heed_interruptions, run_quietly
from go_tests import GoTest, go_tests
from pace import Pace
from pytest_run import FOUND_NOTHING, PytestRun, run_pytest
from sudo import keep_authorized, passed_on
from timeline import Timeline

sys.path.insert(0, str(ROOT / "tests"))

from support.budget import read_budget  # noqa: E402
from verdict import Tally, TestResult, first_tally, group_seconds, judge, over_budget  # noqa: E402

REPORTS = ROOT / "build" / "reports"
PYTEST_DIRECTORIES = ("tests/scripts", "tests/kit", "tests/packaging", "tests/e2e", "tests/integration", "tests/robustness")
# The kit's own tests, and what they are about.
KIT_TESTS, KIT = "tests/kit", ("tests/kit/", "tests/support/", "tests/conftest.py", "scripts/with-engine")
PYTEST_WORKERS = 3
FUZZ_SECONDS = 60
HARDLY_JUDGED = 1.5  # budgets that were multiplied by more
GO = (1, 26)


class Run:
    def __init__(self, arguments: argparse.Namespace):
        self.arguments = arguments
        self.budget = read_budget(ROOT)
        self.pace = Pace(self.budget.usual_pace)
        self.sample = "" if arguments.long else commit()  # by which families of tests are sampled
        self.timeline = Timeline()
        self.tally = Tally()  # checks and builds, which are not tests
        self.results: list[TestResult] = []
        self._lock = threading.Lock()

    # --- steps ---------------------------------------------------------------------------------------

    def step(self, name: str, work: Callable[[], Tally], after: tuple[str, ...] = ()) -> bool:
        step = self.timeline.begin(name, after)
        tally = work()
        with self._lock:
            self.tally.add(tally)
        self.timeline.end(step, tally.line() if tally.passed else "done" if not tally.failed else "failed")
        return not tally.failed

    def test_step(self, name: str, work: Callable[[], list[TestResult]], after: tuple[str, ...]) -> None:
        step = self.timeline.begin(name, after)
        results = work()
        with self._lock:
            self.results += results
        self.timeline.end(step, first_tally(results).line())

    def command(self, name: str, command: list[str], after: tuple[str, ...] = (), timeout: float = 1200) -> bool:
        """A step that is one command; its output is shown if it fails."""
        return self.step(name, lambda: tally_of(name, command, timeout), after)

    def packages(self) -> None:
        self.command("packages", ["scripts/install-packages"])

    def engine_roots(self) -> None:
        """Created in the background; the tests find them in the cache."""
        size = ["--long"] if self.arguments.long else []
        self.command("root filesystems", as_root([
            "env", *passed_on(PYTHONPATH=f"{ROOT}/tests", PYTHONDONTWRITEBYTECODE="1"),
            PYTHON, "-m", "support.make_roots", *size]), timeout=2400)

    def checks(self) -> None:
        def work() -> Tally:
            tally = Tally()
            for name, command in CHECKS.items():
                tally.add(tally_of(f"check {name}", command, counts=True))
            return tally

        self.step("checks", work, after=("packages",))

    def build(self, preset: str, targets: list[str], after: tuple[str, ...], idle: bool = False) -> bool:
        """A failed build is one failure, however many tests depend on it."""
        name = f"build {preset}"

        def work() -> Tally:
            tally = tally_of(name, ["cmake", "--preset", preset])
            if not tally.failed:
                # Without a terminal ninja would print a line per file.
                build = ["cmake", "--build", "--preset", preset, "--target", *targets, "--", "--quiet"]
                tally.add(tally_of(name, build, timeout=3600, idle=idle))
            return tally

        return self.step(name, work, after)

    def limit(self, test: str, default: float) -> float:
        """Seconds that a test may take on this machine; 0: any."""
        return 0 if self.arguments.long else self.budget.seconds_for(test, default) * self.pace.stretch

    def unit(self, preset: str, label: str, after: tuple[str, ...]) -> None:
        words = self.arguments.k

        def as_result(outcome: unit_tests.Outcome) -> TestResult:
            test = outcome.test
            return TestResult(name=f"{preset}: {test.name}", group=preset, outcome=outcome.result,
                              seconds=outcome.seconds, cpu_seconds=outcome.cpu_seconds, text=outcome.output,
                              limit=self.limit(test.name, self.budget.unit_test),
                              run_again=(lambda: as_result(unit_tests.run_alone(test)))
                              if outcome.repeatable else None)

        def work() -> list[TestResult]:
            tests = unit_tests.tests_of(ROOT / "build" / preset, label, words)
            if not tests and not words:
                return [TestResult(f"{preset}: no test was found", preset, "failed", 0)]
            return [as_result(outcome) for outcome in unit_tests.run_all(tests, CORES)]

        self.test_step(f"unit tests {preset}", work, after)

    def pytest(self, after: tuple[str, ...], name: str = "pytest", build: str = "release",
               directories: list[str] | None = None) -> None:
        chosen = directories or self.pytest_directories()

        def work() -> list[TestResult]:
            # The long sizes are measured: one test at a time.
            workers = [] if self.is_long_on(build) else ["-n", str(PYTEST_WORKERS), "--dist", "loadgroup"]
            words = ["-k", self.arguments.k] if self.arguments.k else []
            ran = self.run_pytest([*workers, *words, *chosen], f"{name}.json", build, self.sample,
                                  timeout=14400 if self.arguments.long else 2700)
            if (fault := ran.fault()) and not (self.arguments.k and ran.code == FOUND_NOTHING):
                with self._lock:
                    self.tally.failed.append(f"{name}: {fault}")
            return [self.pytest_result(node, test, build) for node, test in ran.tests.items()]

        self.test_step(name, work, after)

    def is_long_on(self, build: str) -> bool:
        return self.arguments.long and build == "release"

    def run_pytest(self, arguments: list[str], report: str, build: str, sample: str, timeout: float) -> PytestRun:
        options = ["--long"] if self.is_long_on(build) else []
        options += ["--beside-others"] if self.arguments.beside_others else []
        return run_pytest([*options, *arguments], REPORTS / report, ROOT / "build" / build / "bin", sample, timeout)

    def pytest_directories(self) -> list[str]:
        changed = changed_files(ROOT)
        if self.arguments.long or changed is None or any(path.startswith(KIT) for path in changed):
            return list(PYTEST_DIRECTORIES)
        print(f"    {KIT_TESTS}: left out, as nothing of the kit has changed", flush=True)
        return [directory for directory in PYTEST_DIRECTORIES if directory != KIT_TESTS]

    def pytest_result(self, node: str, test: dict, build: str) -> TestResult:
        def run_again() -> TestResult:
            ran = self.run_pytest([node], "again.json", build, sample="", timeout=2400)
            again = self.pytest_result(node, ran.tests[node], build) if node in ran.tests \
                else TestResult(node, "", "failed", 0)
            if fault := ran.fault():
                again.outcome, again.text = "failed", f"{again.text}\npytest: {fault}\n"
            return again

        return TestResult(name=node, group="/".join(node.split("/")[:2]), outcome=test["outcome"],
                          seconds=test["seconds"], fixture_seconds=test["fixture_seconds"], text=test["text"],
                          limit=self.limit(node, self.budget.test), run_again=run_again)

    def go_programs(self) -> None:
        """For the end-to-end tests, which run as root and leave nothing in a user's clone."""
        self.command("build Go", ["scripts/test-go", "--build"], after=("packages",))

    def go_tests(self, after: tuple[str, ...]) -> None:
        report = REPORTS / "go.json"

        def work() -> list[TestResult]:
            ended = run_quietly(["scripts/test-go", "--json", str(report)], 1200, idle=True)
            lines = report.read_text().splitlines() if report.is_file() else []
            results = [self.go_result(test) for test in go_tests(lines)
                       if unit_tests.fits(self.arguments.k, test.name)]
            has_failed = any(result.outcome == "failed" for result in results)
            if ended.code and not has_failed or not results and not self.arguments.k:
                results.append(TestResult("go: scripts/test-go", "go", "failed", 0, ended.text))
            return results

        self.test_step("Go SDK", work, after)

    def go_result(self, test: GoTest) -> TestResult:
        def run_again() -> TestResult:
            began = time.monotonic()
            ended = run_quietly(["scripts/test-go", "--run", test.name])
            return TestResult(f"go: {test.name}", "go", "failed" if ended.code else "passed",
                              time.monotonic() - began, ended.text)

        has_race = "DATA RACE" in test.text
        return TestResult(name=f"go: {test.name}", group="go", outcome=test.outcome, seconds=test.seconds, text=test.text,
                          limit=self.limit(test.name, self.budget.unit_test), run_again=None if has_race else run_again)

    def tidy(self, after: tuple[str, ...]) -> None:
        builds = [f"--build=build/{preset}" for preset in ("asan", "release")]
        size = ["--costly"] if self.arguments.long else ["--changed"]
        self.step("clang-tidy", lambda: tally_of("clang-tidy", ["scripts/tidy", *builds, *size], 3600,
                                                 counts=True, idle=True), after)

    # --- sizes ---------------------------------------------------------------------------------------

    def everyday(self) -> None:
        with ThreadPoolExecutor() as pool:
            try:
                roots = pool.submit(self.engine_roots)
                self.packages()
                programs = pool.submit(self.go_programs)
                if not self.arguments.k:
                    self.checks()
                is_built = self.build("release", ["all"], after=("packages", "checks"))
                programs.result()
                with self.pace:
                    unit = pool.submit(self.sanitizers)
                    go = pool.submit(self.go_tests, ("build Go",))
                    if is_built:
                        self.pytest(after=("build release", "build Go"))
                    unit.result()
                    go.result()
                roots.result()
            except BaseException:
                end_all()  # otherwise the pool waits for them
                raise

    def sanitizers(self) -> None:
        before = "build release"
        for preset, label in (("asan", "unit"), ("tsan", "threads")):
            if preset == "tsan" and self.arguments.fast:
                continue
            if self.build(preset, [f"{label}_tests"], after=(before,), idle=True):
                self.unit(preset, label, after=(f"build {preset}",))
            before = f"unit tests {preset}"
        if not self.arguments.k:
            self.tidy(after=(before,))

    def long(self) -> None:
        """Sequential: many of its tests measure time."""
        self.packages()
        self.engine_roots()
        self.checks()
        self.go_programs()
        self.go_tests(after=("build Go",))
        if self.build("release", ["all"], after=("checks",)):
            self.pytest(after=("build release",))
        if self.build("asan", ["all"], after=("pytest",)):
            self.unit("asan", "unit|integration", after=("build asan",))
            self.pytest(after=("unit tests asan",), name="pytest on asan", build="asan", directories=["tests/e2e"])
            self.command("flipped tables", ["scripts/flip-tables", "--build", "build/asan", "--long"], timeout=7200)
        if self.build("tsan", ["threads_tests"], after=("flipped tables",)):
            self.unit("tsan", "threads", after=("build tsan",))
        self.tidy(after=("unit tests tsan",))
        self.fuzz()
        self.command("bench", as_root(["env", *passed_on(), "scripts/bench", "--check"]), after=("clang-tidy",), timeout=7200)

    def fuzz(self) -> None:
        if not self.build("fuzz", ["fuzz_programs"], after=()):
            return
        programs = sorted((ROOT / "build" / "fuzz" / "fuzz").glob("*_fuzz"))
        if not programs:
            self.tally.add(Tally(failed=["fuzz: no program was built"]))
        for program in programs:
            self.step(f"fuzz {program.name} ({FUZZ_SECONDS} s)", lambda program=program: fuzz_one(program))

    # --- the end -------------------------------------------------------------------------------------

    def write_seconds(self) -> None:
        """The basis of tests/budget.toml: every test and group, the longest first."""
        sums = group_seconds(self.results)
        tests = {result.name: result.seconds for result in self.results}
        lines = [f"{seconds:8.2f}  {name}" for part in (sums, tests)
                 for name, seconds in sorted(part.items(), key=lambda entry: -entry[1])]
        (REPORTS / "seconds.txt").write_text("\n".join(lines) + "\n")

    def finish(self) -> int:
        step = self.timeline.begin("second tries", after=("pytest", "clang-tidy", "unit tests tsan", "root filesystems"))
        for result in self.results:
            if result.outcome == "failed":
                print(f"\n--- {result.name} ---\n{result.text[-8000:]}", flush=True)
        self.write_seconds()
        pace = self.pace
        with Pace(self.budget.usual_pace) as self.pace:  # of the second tries, which run alone
            self.tally.add(judge(self.results, self.budget, REPORTS / "again"))
        is_everyday = not (self.arguments.long or self.arguments.fuzz or self.arguments.k)
        if is_everyday:
            self.tally.failed += over_budget(self.results, self.budget, pace.stretch)
        self.timeline.end(step, "done")
        print(f"\n{self.timeline.table()}")
        if is_everyday:
            print(f"Pace: {pace.slowdown:.2f} of the usual time for the same work; budgets were multiplied by "
                  f"{pace.stretch:.2f}" + ("" if pace.stretch < HARDLY_JUDGED else ", so that they were hardly judged"))
        for kind, names in (("Failed", self.tally.failed), ("Skipped", self.tally.skipped)):
            if names:
                print(f"{kind}:", *names, sep="\n  ")
        forbidden_skips = bool(self.tally.skipped) and os.environ.get("CI") == "true"
        if forbidden_skips:
            print("CI=true: a skipped test fails the run")
        for name in self.tally.slow:
            print(f"slow: {name}")
        for name in self.tally.flaky:
            print(f"flaky: {name} (both logs are in {(REPORTS / 'again').relative_to(ROOT)})")
        if is_everyday and (minutes := self.timeline.minutes()) > self.budget.run_minutes:
            print(f"long run: {minutes:.0f} minutes; {self.budget.run_minutes:.0f} are usual (tests/budget.toml)")
        print(self.tally.line(), flush=True)
        return 1 if self.tally.failed or forbidden_skips or self.tally.passed == 0 else 0


def tally_of(name: str, command: list[str], timeout: float = 1200, *, counts: bool = False,
             idle: bool = False) -> Tally:
    """`counts`: counts as a test."""
    ended = run_quietly(command, timeout, idle)
    if ended.code == 0:
        return Tally(passed=1 if counts else 0)
    print(ended.text, end="", flush=True)
    return Tally(failed=[name])


def commit() -> str:
    head = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), "rev-parse", "HEAD"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return head.stdout.strip() or "no commit"


def fuzz_one(program: Path) -> Tally:
    corpus = ROOT / "tests" / "fuzz" / "corpus" / program.name.removesuffix("_fuzz")
    if not corpus.is_dir():
        return Tally(failed=[f"fuzz {program.name}: there is no {corpus.relative_to(ROOT)}"])
    found = ROOT / "build" / "fuzz" / "found" / program.name
    found.mkdir(parents=True, exist_ok=True)
    # New inputs go to `found`, the committed corpus is only read; a crash leaves its input there.
    command = [str(program), f"-max_total_time={FUZZ_SECONDS}", "-timeout=10", "-rss_limit_mb=2048",
               f"-artifact_prefix={found}/", "-print_final_stats=1", str(found), str(corpus)]
    return tally_of(f"fuzz {program.name}", command, timeout=FUZZ_SECONDS + 300, counts=True)


def needs_go() -> str:
    """Why there is no Go that can compile Docker 29, which --long tests; empty if there is."""
    version = run_quietly(as_root(["env", *passed_on(), "sh", "-c", "PATH=$PATH:/usr/local/go/bin go env GOVERSION"]))
    found = re.match(r"go(\d+)\.(\d+)", version.text)
    if version.code == 0 and found and (int(found[1]), int(found[2])) >= GO:
        return ""
    return f"--long compiles Docker 29, which needs Go {GO[0]}.{GO[1]} or later in root's PATH or in /usr/local/go: " \
           f"found {version.text.strip()}"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/test")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--fast", action="store_true")
    size.add_argument("--long", action="store_true")
    size.add_argument("--fuzz", action="store_true")
    parser.add_argument("-k", metavar="WORDS", default="")
    parser.add_argument("--beside-others", action="store_true")
    arguments = parser.parse_args()
    try:
        unit_tests.fits(arguments.k, "")
    except (SyntaxError, TypeError):
        parser.error(f"-k {arguments.k}: expected words with and, or, not and brackets between them")
    return arguments


def main() -> int:
    arguments = parse_arguments()
    heed_interruptions()
    keep_authorized()
    if arguments.long and (reason := needs_go()):
        sys.exit(f"scripts/test: {reason}")
    shutil.rmtree(REPORTS, ignore_errors=True)
    REPORTS.mkdir(parents=True)
    run = Run(arguments)
    if run.sample:
        print(f"Families of tests are sampled by commit {run.sample}; --long runs all of each.", flush=True)
    if arguments.fuzz:
        run.packages()
        run.fuzz()
    elif arguments.long:
        run.long()
    else:
        run.everyday()
    return run.finish()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
