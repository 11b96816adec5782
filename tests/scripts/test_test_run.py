# SPDX-License-Identifier: Apache-2.0
"""The judgement behind scripts/test: nothing that failed, broke, was slow or was left out counts as passed."""
import argparse
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "lib"))

import changes  # noqa: E402
import commands  # noqa: E402
import test_run  # noqa: E402
import unit_tests  # noqa: E402
import verdict  # noqa: E402
from pace import LONGEST_STRETCH, Pace, time_work  # noqa: E402
from pytest_run import PytestRun  # noqa: E402
from support.budget import Budget, read_budget  # noqa: E402
from timeline import Timeline  # noqa: E402
from verdict import Tally, TestResult, judge, over_budget  # noqa: E402

TestResult.__test__ = False
BUDGET = Budget(test=10, unit_test=1, tests={}, groups={"suite": 100}, most_flaky=3, never_flaky=("isolation/",),
                most_slow=2, run_minutes=22, usual_pace=0.05)


def result(name: str, outcome: str = "passed", seconds: float = 1.0, again: str = "passed",
           again_seconds: float = 1.0) -> TestResult:
    second = TestResult(name, "suite", again, again_seconds, text="the second try", limit=10)
    return TestResult(name, "suite", outcome, seconds, text="the first try", limit=10, run_again=lambda: second)


# --- flaky and slow tests ------------------------------------------------------------------------------


def test_a_test_that_fails_twice_has_failed(tmp_path: Path) -> None:
    tally = judge([result("good"), result("bad", "failed", again="failed")], BUDGET, tmp_path)
    assert (tally.passed, tally.failed, tally.flaky) == (1, ["bad"], [])


def test_a_test_that_passes_alone_is_flaky_and_both_logs_are_kept(tmp_path: Path) -> None:
    tally = judge([result("a/b.py::shaky[x]", "failed")], BUDGET, tmp_path)
    assert (tally.passed, tally.failed, tally.flaky) == (1, [], ["a/b.py::shaky[x]"])
    logs = sorted(tmp_path.iterdir())
    assert ["the first try" in log.read_text() for log in logs] == [True, False]
    assert ["the second try" in log.read_text() for log in logs] == [False, True]


@pytest.mark.parametrize("count, fails", [(3, False), (4, True)])
def test_more_than_three_flaky_tests_fail_the_run(tmp_path: Path, count: int, fails: bool) -> None:
    tally = judge([result(f"shaky{i}", "failed") for i in range(count)], BUDGET, tmp_path)
    assert len(tally.flaky) == count
    assert bool(tally.failed) is fails


def test_some_suites_may_not_be_flaky(tmp_path: Path) -> None:
    tally = judge([result("isolation/leaks", "failed")], BUDGET, tmp_path)
    assert tally.passed == 0 and tally.flaky == []
    assert tally.failed == ["isolation/leaks (passed alone, but this suite may not be flaky)"]


@pytest.mark.parametrize("report", ["==7==ERROR: AddressSanitizer: heap-use-after-free",
                                    "WARNING: ThreadSanitizer: data race", "a.cpp:7:3: runtime error: signed overflow"])
def test_what_a_sanitizer_reported_is_not_flaky(tmp_path: Path, report: str) -> None:
    first = result("shaky", "failed")
    first.text = f"some output\n{report}\n"
    tally = judge([first], BUDGET, tmp_path)
    assert (tally.passed, tally.flaky) == (0, [])
    assert tally.failed == ["shaky (passed alone, but a sanitizer had reported an error)"]


@pytest.mark.parametrize("name", [
    "tests/e2e/test_sandbox_crashes.py::test_x[28]", "tests/e2e/test_sandbox_recovery.py::test_x",
    "tests/e2e/test_exec.py::test_x", "tests/e2e/test_sandbox_stop.py::test_a_resume_goes_on_after_a_crash_anywhere[28-x]",
    "tests/robustness/test_x.py::test_x", "asan: store_test.Store.X", "tsan: async_test.Loop.X"])
def test_one_failure_is_enough_where_data_may_be_lost(name: str) -> None:
    assert not read_budget(ROOT).may_be_flaky(name)


@pytest.mark.parametrize("count, fails", [(2, False), (3, True)])
def test_tests_that_are_slow_next_to_others_are_listed_and_may_not_be_many(
        tmp_path: Path, count: int, fails: bool) -> None:
    tally = judge([result(f"slow{i}", seconds=12) for i in range(count)], BUDGET, tmp_path)
    assert tally.slow == [f"slow{i}: took 12.0 s, its budget is 10.0 s (tests/budget.toml)" for i in range(count)]
    assert tally.passed == count
    assert tally.failed == ([f"{count} slow tests, at most 2 are allowed (tests/budget.toml)"] if fails else [])


@pytest.mark.parametrize("again_seconds, failed", [
    (5, []), (11, ["slow: took 11.0 s, its budget is 10.0 s (tests/budget.toml)"])])
def test_a_slow_test_fails_if_it_is_slow_alone_too(tmp_path: Path, again_seconds: float, failed: list[str]) -> None:
    tally = judge([result("slow", seconds=12, again_seconds=again_seconds)], BUDGET, tmp_path)
    assert (tally.failed, tally.flaky) == (failed, [])
    assert tally.passed == (0 if failed else 1)


def test_a_flaky_test_that_is_slow_alone_has_failed(tmp_path: Path) -> None:
    assert judge([result("odd", "failed", again_seconds=11)], BUDGET, tmp_path).failed


def test_a_failure_that_no_second_try_can_undo_is_final(tmp_path: Path) -> None:
    assert judge([TestResult("broken", "suite", "failed", 1)], BUDGET, tmp_path).failed == ["broken"]


def test_many_failures_are_not_repeated(tmp_path: Path) -> None:
    def never() -> TestResult:
        raise AssertionError("it was repeated")

    results = [TestResult(f"bad{i}", "suite", "failed", 1, run_again=never) for i in range(verdict.MOST_TO_REPEAT + 1)]
    assert len(judge(results, BUDGET, tmp_path).failed) == len(results)


def test_a_group_that_outgrows_its_budget_is_named() -> None:
    fits = [TestResult("a", "suite", "passed", 60, fixture_seconds=40)]
    assert over_budget(fits, BUDGET) == []
    fits.append(TestResult("b", "suite", "passed", 1))
    [failure] = over_budget(fits, BUDGET)
    assert failure.startswith("group suite: took 101 s, its budget is 100 s")
    assert "build/reports/seconds.txt" in failure
    [failure] = over_budget([TestResult("c", "new", "passed", 1)], BUDGET)
    assert failure.startswith("group new: ") and "no budget" in failure


def test_a_group_of_unit_tests_is_judged_by_its_cpu_time() -> None:
    waited = TestResult("a", "suite", "passed", seconds=500, cpu_seconds=90)
    assert over_budget([waited], BUDGET) == []
    [failure] = over_budget([waited, TestResult("b", "suite", "passed", seconds=1, cpu_seconds=11)], BUDGET)
    assert failure.startswith("group suite: took 101 s, its budget is 100 s")


def test_the_cpu_time_of_a_unit_test_is_measured_with_its_children() -> None:
    def cpu_seconds(script: str) -> float:
        return unit_tests.run_alone(unit_tests.UnitTest("a", ("sh", "-c", script), None, 60, 1, ".")).cpu_seconds

    work = "import time\nwhile time.process_time() < 0.3: pass"
    assert cpu_seconds(f"{sys.executable} -I -c '{work}'; true") >= 0.3
    assert cpu_seconds("sleep 0.3; true") < 0.1


def test_a_group_may_take_longer_on_a_slow_machine() -> None:
    results = [TestResult("a", "suite", "passed", 140)]
    assert over_budget(results, BUDGET, stretch=1.5) == []
    [failure] = over_budget(results, BUDGET, stretch=1.3)
    assert failure.startswith("group suite: took 140 s, its budget is 130 s")


def test_a_budget_is_found_with_and_without_parameters() -> None:
    budget = Budget(10, 1, {"t.py::long": 60, "t.py::long[x]": 90}, {}, 3, (), 2, 22, 0.05)
    assert [budget.seconds_for(name, 10) for name in ("t.py::long[x]", "t.py::long[y]", "t.py::short[y]")] == [90, 60, 10]


def test_every_line_of_the_budget_names_something_that_exists() -> None:
    budget = read_budget(ROOT)
    for name in [*budget.tests, *budget.never_flaky]:
        path, _, test = name.partition("::")
        if not path.startswith("tests/"):
            continue  # a unit test's
        found = list(ROOT.glob(f"{path}*"))
        assert found, f"tests/budget.toml: {name}: there is no such file"
        assert not test or f"def {test.partition('[')[0]}(" in found[0].read_text(), name


# --- the pace of the machine ---------------------------------------------------------------------------


def measured(*seconds: float) -> Pace:
    """A pace of 1 s on a usual machine, and of these seconds on this one."""
    remaining, is_done = list(seconds), threading.Event()

    def measure() -> float:
        if len(remaining) == 1:
            is_done.set()
        return remaining.pop(0) if remaining else seconds[-1]

    with Pace(1.0, measure, interval=0) as pace:
        assert is_done.wait(60)
    return pace


@pytest.mark.parametrize("seconds, slowdown, stretch", [
    ([1.0], 1.0, 1.0), ([2.0], 2.0, 2.0), ([0.5], 0.5, 1.0), ([9.0], 9.0, LONGEST_STRETCH)])
def test_budgets_are_stretched_on_a_slow_machine_and_only_so_far(
        seconds: list[float], slowdown: float, stretch: float) -> None:
    pace = measured(*seconds)
    assert (pace.slowdown, pace.stretch) == (slowdown, stretch)


def test_one_pause_of_the_machine_does_not_stretch_budgets() -> None:
    assert measured(100.0, *[1.0] * 9).stretch == 1.0


def test_budgets_are_as_written_if_nothing_was_measured() -> None:
    assert Pace(1.0).stretch == 1.0


def test_the_work_that_is_timed_can_be_done_here() -> None:
    assert time_work() > 0


def test_a_test_may_take_longer_on_a_slow_machine(run: test_run.Run) -> None:
    run.pace = measured(2.0)
    test = {"outcome": "passed", "seconds": 15, "fixture_seconds": 0, "text": ""}
    assert not run.pytest_result("a::b", test, "release").is_slow
    run.pace = measured(1.0)
    assert run.pytest_result("a::b", test, "release").is_slow


# --- the tally -----------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> test_run.Run:
    monkeypatch.setattr(test_run, "REPORTS", tmp_path)
    monkeypatch.setattr(test_run, "ROOT", tmp_path)
    monkeypatch.setattr(test_run, "read_budget", lambda root: BUDGET)
    made = test_run.Run(argparse.Namespace(k="", long=False, fast=False, fuzz=False, beside_others=False))
    return made


@pytest.mark.parametrize("code, outcome, expected", [(0, "passed", "passed"), (1, "failed", "failed"),
                                                    (3, "passed", "failed"), (1, "passed", "failed")])
def test_a_second_try_passes_only_if_pytest_itself_ended_well(
        run: test_run.Run, code: int, outcome: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    test = {"outcome": outcome, "seconds": 1, "fixture_seconds": 1, "text": "the test"}
    monkeypatch.setattr(test_run, "run_pytest", lambda *_: PytestRun(code, {"a::b": test}, collected=1))
    again = run.pytest_result("a::b", test, "release").run_again()
    assert again.outcome == expected
    assert ("pytest: " in again.text) is (outcome != expected)


def test_a_fault_of_a_run_of_pytest_is_a_failure_by_itself(run: test_run.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    test = {"outcome": "passed", "seconds": 1, "fixture_seconds": 1, "text": ""}
    monkeypatch.setattr(test_run, "run_pytest", lambda *_: PytestRun(0, {"a::b": test}, collected=2))
    run.pytest(after=(), directories=["x"])
    assert run.tally.failed == ["pytest: has outcomes of 1 tests, but 2 were collected"]


@pytest.mark.parametrize("tally, ci, code", [
    (Tally(passed=3), "true", 0),
    (Tally(passed=3, skipped=["x"]), "", 0),
    (Tally(passed=3, skipped=["x"]), "true", 1),
    (Tally(passed=3, failed=["x"]), "", 1),
    (Tally(passed=3, flaky=["x"]), "true", 0),
    (Tally(passed=3, slow=["x"]), "true", 0),
    (Tally(), "", 1),
])
def test_the_exit_code_follows_the_tally(run: test_run.Run, tally: Tally, ci: str, code: int,
                                         monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setenv("CI", ci)
    run.tally = tally
    assert run.finish() == code
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == tally.line()
    assert any(line.startswith("flaky: x") for line in lines) is bool(tally.flaky)
    assert any(line.startswith("slow: x") for line in lines) is bool(tally.slow)


@pytest.mark.parametrize("minutes, is_reported", [(21, False), (25, True)])
def test_a_long_run_is_reported_and_does_not_fail(
        run: test_run.Run, minutes: float, is_reported: bool, capsys: pytest.CaptureFixture) -> None:
    run.tally = Tally(passed=1)
    run.timeline._start -= minutes * 60
    assert run.finish() == 0
    lines = capsys.readouterr().out.splitlines()
    assert ("long run: 25 minutes; 22 are usual (tests/budget.toml)" in lines) is is_reported


def test_a_failed_command_shows_its_words_and_a_good_one_does_not(capsys: pytest.CaptureFixture) -> None:
    assert test_run.tally_of("good", ["sh", "-c", "echo fine"], counts=True) == Tally(passed=1)
    assert test_run.tally_of("bad", ["sh", "-c", "echo the reason; exit 3"]) == Tally(failed=["bad"])
    assert capsys.readouterr().out == "the reason\n"


def test_a_command_that_never_ends_is_ended() -> None:
    ended = commands.run_quietly(["sleep", "600"], timeout=0.2)
    assert ended.code != 0 and "still running after" in ended.text


def test_a_run_in_the_background_heeds_interruptions_and_so_does_what_it_starts() -> None:
    grep = "grep SigIgn /proc/self/status"
    script = f"import commands; commands.heed_interruptions(); print(commands.run_quietly(['sh', '-c', '{grep}']).text)"
    ran = subprocess.run(["sh", "-c", 'trap "" INT QUIT; exec "$@"', "sh", sys.executable, "-c", script], text=True,
                         env=os.environ | {"PYTHONPATH": str(ROOT / "scripts" / "lib")}, stdout=subprocess.PIPE,
                         check=True, timeout=60)
    ignored = int(ran.stdout.split()[1], base=16)
    assert not [number for number in (signal.SIGINT, signal.SIGQUIT) if ignored & 1 << number - 1]


def test_an_idle_command_has_the_lowest_priority_in_a_session_of_its_own() -> None:
    priority, session, process = commands.run_quietly(
        ["sh", "-c", "ps -o ni=,sid= -p $$; echo $$"], idle=True).text.split()
    assert (priority, session) == ("19", process)


@pytest.mark.parametrize("idle", [False, True])
def test_what_runs_on_other_threads_is_ended_with_the_run(
        idle: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "_is_over", threading.Event())
    os.mkfifo(tmp_path / "begun")
    ended = []
    script = f": > {tmp_path}/begun; exec sleep 600"
    thread = threading.Thread(
        target=lambda: ended.append(commands.run_quietly(["sh", "-c", script], idle=idle)))
    thread.start()
    (tmp_path / "begun").read_text()
    commands.end_all()
    thread.join(timeout=60)
    assert [end.code for end in ended] == [-signal.SIGINT]
    late = commands.run_quietly(["touch", str(tmp_path / "late")], idle=idle)
    assert late.code != 0 and "not started" in late.text
    assert not (tmp_path / "late").exists()


@pytest.mark.parametrize("words, names", [
    ("", ["store_test.Lock.A", "rpc_test.Ping.B"]), ("STORE", ["store_test.Lock.A"]),
    ("not store", ["rpc_test.Ping.B"]), ("test and not (lock or Other)", ["rpc_test.Ping.B"]), ("store and ping", [])])
def test_words_choose_unit_tests_as_they_choose_tests_in_python(words: str, names: list[str]) -> None:
    assert [name for name in ("store_test.Lock.A", "rpc_test.Ping.B") if unit_tests.fits(words, name)] == names


@pytest.mark.parametrize("words", ["store and", "(store", "store lock"])
def test_words_that_cannot_be_understood_are_refused(words: str, monkeypatch: pytest.MonkeyPatch,
                                                     capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setattr(sys, "argv", ["test", "-k", words])
    with pytest.raises(SystemExit):
        test_run.parse_arguments()
    assert f"-k {words}: expected words" in capsys.readouterr().err


@pytest.mark.parametrize("version, is_enough", [
    ("echo go1.26.8", True), ("echo go2.0", True), ("echo go1.19.8", False), ("exit 127", False)])
def test_the_long_size_needs_a_recent_go(version: str, is_enough: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_run, "as_root", lambda command: ["sh", "-c", version])
    assert (test_run.needs_go() == "") is is_enough


def test_the_critical_path_goes_back_through_what_was_waited_for(capsys: pytest.CaptureFixture) -> None:
    timeline = Timeline()
    for name, after in (("packages", ()), ("quick", ()), ("build", ("packages", "quick")), ("beside", ()),
                        ("tests", ("build",))):
        timeline.end(timeline.begin(name, after), "done")
    steps = {step.name: step for step in timeline._steps}
    for name, began, ended in (("packages", 0, 30), ("quick", 0, 5), ("build", 30, 90), ("beside", 0, 100),
                               ("tests", 90, 200)):
        steps[name].began, steps[name].ended = began, ended
    assert [step.name for step in timeline.critical_path()] == ["packages", "build", "tests"]
    assert "critical path: packages 30 s -> build 60 s -> tests 110 s" in timeline.table()


# --- unit tests in shards --------------------------------------------------------------------------------

# Behaves as a GoogleTest program does, as far as the runner can tell.
PROGRAM = """\
#!/usr/bin/python3
import os, subprocess, sys, time
names = next(word for word in sys.argv if word.startswith("--gtest_filter=")).split("=", 1)[1].split(":")
with open(__file__ + ".starts", "a") as starts:
    starts.write(" ".join(names) + "\\n")
bad = False
for name in names:
    print(f"[ RUN      ] {name}", flush=True)
    if name == "S.Crashes": os.abort()
    if name == "S.Hangs": time.sleep(600)
    if name == "S.Fails": print("the reason"); bad = True
    if name == "S.Leaks": leaks = True
    if name.startswith("S.Partial"): print("a line without its end", end="")
    if name == "S.PartialFails": bad = True
    if name == "S.Child": subprocess.Popen(["sleep", "600"])
    word = {"S.Fails": "  FAILED  ", "S.PartialFails": "  FAILED  ", "S.Skips": "  SKIPPED "}.get(name, "       OK ")
    print(f"[{word}] {name} (7 ms)", flush=True)
    if name == "S.BreaksNext" and len(names) > 1: os.abort()
if "S.Leaks" in names: print("leaked"); sys.exit(1)
if "S.One" in names and "S.Two" in names: print("WARNING: ThreadSanitizer"); sys.exit(66)
sys.exit(bad)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "some_test"
    path.write_text(textwrap.dedent(PROGRAM))
    path.chmod(0o755)
    return path


def cases(program: Path, *names: str, timeout: float = 60) -> list[unit_tests.UnitTest]:
    return [unit_tests.UnitTest(name=f"some_test.{name}", command=(str(program), f"--gtest_filter={name}"), case=name,
                                timeout=timeout, processors=1, directory=str(program.parent)) for name in names]


def outcomes(tests: list[unit_tests.UnitTest]) -> dict[str, str]:
    return {outcome.test.case: outcome.result for outcome in unit_tests.run_all(tests, 2)}


def starts(program: Path) -> list[str]:
    return Path(f"{program}.starts").read_text().splitlines()


def test_tests_of_one_program_share_a_process(program: Path) -> None:
    assert outcomes(cases(program, "S.A", "S.Skips", "S.B")) == {"S.A": "passed", "S.Skips": "skipped", "S.B": "passed"}
    assert starts(program) == ["S.A S.Skips S.B"]


def test_a_failing_test_fails_alone_with_its_words(program: Path) -> None:
    found = unit_tests.run_all(cases(program, "S.A", "S.Fails", "S.B"), 2)
    assert {outcome.test.case: outcome.result for outcome in found} == {
        "S.A": "passed", "S.Fails": "failed", "S.B": "passed"}
    [failed] = [outcome for outcome in found if outcome.result == "failed"]
    assert "the reason" in failed.output and "S.A" not in failed.output


@pytest.mark.parametrize("bad", ["S.Fails", "S.Crashes", "S.Hangs"])
def test_the_others_of_a_shard_run_again_without_the_test_that_failed(program: Path, bad: str) -> None:
    tests = cases(program, "S.A", bad, "S.B", "S.C", timeout=3 if bad == "S.Hangs" else 60)
    assert outcomes(tests) == {"S.A": "passed", bad: "failed", "S.B": "passed", "S.C": "passed"}
    assert starts(program) == [f"S.A {bad} S.B S.C", "S.A S.B S.C"]


def test_a_process_that_ends_badly_after_its_tests_is_searched_for_the_culprit(program: Path) -> None:
    assert outcomes(cases(program, "S.A", "S.Leaks", "S.B")) == {"S.A": "passed", "S.Leaks": "failed", "S.B": "passed"}


def test_a_failure_does_not_hide_the_leak_of_another_test(program: Path) -> None:
    found = outcomes(cases(program, "S.A", "S.Fails", "S.Leaks", "S.B"))
    assert found == {"S.A": "passed", "S.Fails": "failed", "S.Leaks": "failed", "S.B": "passed"}


@pytest.mark.parametrize("bad, code", [(("S.One", "S.Two"), 66), (("S.BreaksNext", "S.Two"), -signal.SIGABRT)])
def test_a_bad_end_that_no_test_alone_explains_is_a_failure_of_its_own(
        program: Path, bad: tuple[str, ...], code: int) -> None:
    *passed, shard = unit_tests.run_all(cases(program, "S.A", *bad), 2)
    assert [outcome.result for outcome in passed] == ["passed"] * 3
    assert (shard.result, shard.repeatable) == ("failed", False)
    assert shard.test.name == f"some_test: a process of 3 tests ended with {code}; each of them passes alone"
    assert "[ RUN      ] S.A" in shard.output


@pytest.mark.parametrize("name, expected", [("S.PartialFails", "failed"), ("S.PartialPasses", "passed")])
def test_an_outcome_behind_an_unfinished_line_counts(program: Path, name: str, expected: str) -> None:
    assert outcomes(cases(program, "S.A", name, "S.B")) == {"S.A": "passed", name: expected, "S.B": "passed"}
    assert outcomes(cases(program, name)) == {name: expected}


def test_a_child_that_keeps_the_output_open_until_the_timeout_fails_its_test(program: Path) -> None:
    [outcome] = unit_tests.run_all(cases(program, "S.Child", timeout=1), 2)
    assert outcome.result == "failed" and "still running after 1 s; killed" in outcome.output


def test_a_program_that_does_not_start_fails_every_test(program: Path) -> None:
    program.write_text("#!/bin/sh\nexit 1\n")
    assert outcomes(cases(program, "S.A", "S.B")) == {"S.A": "failed", "S.B": "failed"}


@pytest.mark.parametrize("command, expected", [(("true",), "passed"), (("false",), "failed"), ((), "failed")])
def test_what_is_not_googletest_is_judged_by_its_exit_code(command: tuple[str, ...], expected: str) -> None:
    test = unit_tests.UnitTest("corpus_x", command, None, 60, 1, ".")
    assert [outcome.result for outcome in unit_tests.run_all([test], 2)] == [expected]


@pytest.mark.parametrize("label, programs, missing", [
    ("unit", "unit a_test\nunit-threads b_test\n", ["b_test: no test was found"]),
    ("threads", "unit a_test\nunit-threads b_test\n", ["b_test: no test was found"]),
    ("unit", "unit a_test\n", [])])
def test_a_program_that_was_not_built_is_a_failure(
        tmp_path: Path, label: str, programs: str, missing: list[str]) -> None:
    # As gtest_discover_tests writes it; the program that was not built has no label.
    (tmp_path / "CTestTestfile.cmake").write_text(
        'add_test(a_test.S.A "true")\nset_tests_properties(a_test.S.A PROPERTIES LABELS "unit")\n'
        "add_test(b_test_NOT_BUILT b_test_NOT_BUILT)\n")
    (tmp_path / "unit_test_programs.txt").write_text(programs)
    tests = unit_tests.tests_of(tmp_path, label, "no_such_word")
    assert [test.name for test in tests] == missing
    assert [outcome.result for outcome in unit_tests.run_all(tests, 1)] == ["failed"] * len(missing)


def test_shards_are_of_one_program_and_hold_every_test_once(program: Path) -> None:
    tests = cases(program, *(f"S.T{i}" for i in range(unit_tests.SHARD_SIZE + 1)))
    made = unit_tests.shards(tests)
    assert [len(shard) for shard in made] == [21, 20]
    assert sorted(test.name for shard in made for test in shard) == sorted(test.name for test in tests)


# --- what changed ----------------------------------------------------------------------------------------


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    for hour, name in ((8, "old"), (11, "earlier"), (14, "now")):
        (tmp_path / name).write_text(name)
        git(tmp_path, "add", name)
        git(tmp_path, "commit", "-q", "-m", name, date=f"2026-01-05T{hour:02d}:00:00Z")
    return tmp_path


def git(root: Path, *arguments: str, date: str = "") -> None:
    identity = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
                "GIT_COMMITTER_EMAIL": "a@b", "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    subprocess.run(["git", "-C", str(root), *arguments], check=True, env=os.environ | identity)


def test_on_main_the_last_hours_of_work_and_what_is_not_committed_have_changed(clone: Path) -> None:
    assert changes.changed_files(clone) == ["earlier", "now"]
    (clone / "untracked").write_text("")
    (clone / "old").write_text("changed")
    assert changes.changed_files(clone) == ["earlier", "now", "old", "untracked"]


def test_on_a_branch_its_own_commits_have_changed(clone: Path) -> None:
    git(clone, "checkout", "-q", "-b", "work")
    (clone / "mine").write_text("")
    git(clone, "add", "mine")
    git(clone, "commit", "-q", "-m", "mine", date="2026-01-05T15:00:00Z")
    assert changes.changed_files(clone) == ["mine"]


def test_what_was_merged_lately_has_changed_however_old_its_commits_are(clone: Path) -> None:
    git(clone, "checkout", "-q", "-b", "work", "HEAD~2")
    (clone / "long-ago").write_text("")
    git(clone, "add", "long-ago")
    git(clone, "commit", "-q", "-m", "long ago", date="2026-01-05T09:00:00Z")
    git(clone, "checkout", "-q", "main")
    git(clone, "merge", "-q", "--no-ff", "-m", "merge", "work", date="2026-01-05T14:30:00Z")
    assert changes.changed_files(clone) == ["earlier", "long-ago", "now"]


@pytest.mark.parametrize("command", ["diff", "ls-files"])
def test_if_git_cannot_compare_everything_has_changed(
        clone: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    git_of_changes = changes._git
    monkeypatch.setattr(changes, "_git", lambda root, first, *rest: None if first == command
                        else git_of_changes(root, first, *rest))
    assert changes.changed_files(clone) is None


def test_without_history_everything_has_changed(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert changes.changed_files(tmp_path_factory.mktemp("no-repository")) is None
