# SPDX-License-Identifier: Apache-2.0
"""A run of pytest that lost something is a failure, whatever became of the tests that it did report."""
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "lib"))

import pytest_run  # noqa: E402
import sudo  # noqa: E402
from pytest_run import PytestRun  # noqa: E402
from support.run_report import RunReport  # noqa: E402

# Has the report and nothing else of the kit.
CONFTEST = """\
import os, signal, pytest
from support import run_report
def pytest_addoption(parser): run_report.add_option(parser.getgroup("x"))
def pytest_configure(config): run_report.install(config)
"""

Runner = Callable[..., PytestRun]


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    """run(conftest, tests, *arguments): a real run of its own."""
    def runner(conftest: str, tests: str, *arguments: str) -> PytestRun:
        (tmp_path / "conftest.py").write_text(CONFTEST + textwrap.dedent(conftest))
        (tmp_path / "test_it.py").write_text(textwrap.dedent(tests))
        (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {ROOT / 'tests'}\n")
        return pytest_run.run_pytest(["-c", str(tmp_path / "pytest.ini"), *arguments, str(tmp_path)],
                                     tmp_path / "report.json", tmp_path, sample="", timeout=300)
    return runner


def outcomes(ran: PytestRun) -> dict[str, str]:
    return {node.rpartition("::")[2]: test["outcome"] for node, test in ran.tests.items()}


@pytest.mark.parametrize("workers", [(), ("-n", "2", "--dist", "loadgroup")])
def test_a_run_with_a_failed_test_is_explained_by_it(run: Runner, workers: tuple[str, ...]) -> None:
    ran = run("", """
        import pytest
        def test_good(): pass
        @pytest.mark.xdist_group("x")
        def test_bad(): assert 1 == 2
        @pytest.fixture
        def careless(): yield; raise ValueError("in the teardown")
        def test_good_but_for_its_fixture(careless): pass
        """, *workers)
    assert outcomes(ran) == {"test_good": "passed", "test_bad": "failed", "test_good_but_for_its_fixture": "failed"}
    assert ran.fault() == ""


def test_a_worker_that_dies_between_tests_fails_the_run(run: Runner) -> None:
    ran = run("""
        def pytest_sessionfinish(session):
            if getattr(session.config, "workerinput", {}).get("workerid") == "gw0": os.kill(os.getpid(), signal.SIGKILL)
        """, "def test_good(): pass", "-n", "1")
    assert outcomes(ran) == {"test_good": "passed"}
    assert ran.fault().startswith("lost a worker: gw0: ")


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_test_without_an_outcome_fails_the_run(run: Runner, workers: tuple[str, ...]) -> None:
    ran = run("""
        def pytest_runtest_protocol(item):
            return True if item.name == "test_vanishes" else None
        """, "def test_good(): pass\ndef test_vanishes(): pass", *workers)
    assert outcomes(ran) == {"test_good": "passed"}
    assert ran.fault() == "has outcomes of 1 tests, but 2 were collected"


def test_a_module_that_skips_itself_is_a_failure(run: Runner) -> None:
    ran = run("", "import pytest\npytest.importorskip('no_such_module')\ndef test_gone(): pass")
    assert outcomes(ran) == {"test_it.py": "failed"} and ran.fault()


def test_a_run_without_a_test_fails(run: Runner) -> None:
    assert run("", "").fault() == "found no test"


def test_a_run_without_a_report_fails(run: Runner) -> None:
    ran = run("", "import os\ndef test_ends_everything(): os._exit(0)")
    assert ran.fault() == "ended with 0 and without a report"


def test_a_run_that_was_ended_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pytest_run, "as_root", lambda command: ["sleep", "600"])
    ran = pytest_run.run_pytest([], tmp_path / "report.json", tmp_path, sample="", timeout=0.6)
    assert ran.fault() == "still running after 1 s; ended"


@pytest.mark.parametrize("code, outcome, words", [
    (0, "passed", ""), (1, "failed", ""),
    (1, "passed", "ended with 1"), (0, "failed", "ended with 0"), (2, "failed", "ended with 2"),
    (3, "failed", "the machine changed"), (3, "passed", "--beside-others")])
def test_an_end_that_no_outcome_explains_fails_the_run(code: int, outcome: str, words: str) -> None:
    fault = PytestRun(code, {"test": {"outcome": outcome}}, collected=1).fault()
    assert words in fault and bool(fault) is bool(words)


def test_a_test_that_was_not_torn_down_has_failed(tmp_path: Path) -> None:
    report = RunReport(tmp_path / "report.json")
    for when in ("setup", "call"):
        report.pytest_runtest_logreport(pytest.TestReport("a::b", ("a", 1, "b"), {}, "passed", None, when, duration=1))

    class Session:
        testscollected = 1

    report.pytest_sessionfinish(Session())
    assert '"outcome": "failed"' in (tmp_path / "report.json").read_text()


def test_what_sudo_drops_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"AGBOX_TEST_CACHE": "/cache", "https_proxy": "p", "NO_PROXY": "n", "CI": "true", "LANG": "C"}.items():
        monkeypatch.setenv(name, value)
    words = sudo.passed_on(AGBOX_BIN_DIR="/bin", MORE="x")
    assert {"AGBOX_TEST_CACHE=/cache", "https_proxy=p", "NO_PROXY=n", "CI=true", "AGBOX_BIN_DIR=/bin", "MORE=x"} <= set(words)
    assert "LANG=C" not in words
