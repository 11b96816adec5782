# SPDX-License-Identifier: Apache-2.0
"""`--run-report FILE`: what became of a run and of every test, as JSON for scripts/test.

`collected` is how many tests were to run, `lost_workers` names the workers that broke. `tests` has one object per test by
its node id: outcome, the seconds of the test itself, those of its fixtures, and its output if it failed; also one for each
file that could not be collected. With workers (`-n 3`) only their controller writes.
"""

import json
from pathlib import Path

import pytest


class RunReport:
    def __init__(self, path: Path):
        self._path = path
        self._tests: dict[str, list[pytest.TestReport]] = {}
        self._not_collected: dict[str, str] = {}
        self._lost_workers: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # The worker has appended "@" and the group's name.
        node = report.nodeid
        if node.rfind("@") > node.rfind("]"):
            node = node.rpartition("@")[0]
        self._tests.setdefault(node, []).append(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:
            self._not_collected[report.nodeid] = report.longreprtext

    @pytest.hookimpl(optionalhook=True)  # of xdist
    def pytest_testnodedown(self, node, error: object | None) -> None:
        if error:
            self._lost_workers.append(f"{node.gateway.id}: {error}")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        tests = {node: _summary(reports) for node, reports in self._tests.items()}
        for node, text in self._not_collected.items():
            tests[node] = {"outcome": "failed", "seconds": 0.0, "fixture_seconds": 0.0, "text": text}
        report = {
            "collected": session.testscollected + len(self._not_collected),
            "lost_workers": self._lost_workers,
            "tests": tests,
        }
        self._path.write_text(json.dumps(report, indent=1))


def _summary(reports: list[pytest.TestReport]) -> dict:
    outcomes = {report.outcome for report in reports}
    was_torn_down = any(report.when == "teardown" for report in reports)
    text = ""
    for report in reports:
        if report.failed:
            sections = "".join(f"--- {title} ---\n{output}\n" for title, output in report.sections)
            text += f"[{report.when}]\n{report.longreprtext}\n{sections}"
    if "failed" in outcomes or not was_torn_down:
        outcome = "failed"
    else:
        outcome = "skipped" if "skipped" in outcomes else "passed"
    return {
        "outcome": outcome,
        "seconds": sum(report.duration for report in reports if report.when == "call"),
        "fixture_seconds": sum(report.duration for report in reports if report.when != "call"),
        "text": text or ("" if was_torn_down else "it did not reach its end"),
    }


def add_option(parser: pytest.OptionGroup) -> None:
    parser.addoption(
        "--run-report", metavar="FILE", help="writes the outcome and time of every test as JSON"
    )


def install(config: pytest.Config) -> None:
    path = config.getoption("--run-report")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(RunReport(Path(path)))
