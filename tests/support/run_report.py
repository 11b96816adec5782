# SPDX-License-Identifier: Apache-2.0
"""`--run-report FILE`: the results of all tests, as JSON for scripts/test.

One object per test by its node ID: outcome, seconds of the test and of its fixtures, and the output if it
failed. With workers (`-n 3`) only their controller writes.
"""

import json
from pathlib import Path

import pytest


class RunReport:
    def __init__(self, path: Path):
        self._path = path
        self._tests: dict[str, dict] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # The worker has appended "@" and the group's name.
        node = report.nodeid
        if node.rfind("@") > node.rfind("]"):
            node = node.rpartition("@")[0]
        test = self._tests.setdefault(
            node, {"outcome": "passed", "seconds": 0.0, "fixture_seconds": 0.0, "text": ""}
        )
        test["seconds" if report.when == "call" else "fixture_seconds"] += report.duration
        if report.failed:
            test["outcome"] = "failed"
            sections = "".join(f"--- {title} ---\n{text}\n" for title, text in report.sections)
            test["text"] += f"[{report.when}]\n{report.longreprtext}\n{sections}"
        elif report.skipped and test["outcome"] == "passed":
            test["outcome"] = "skipped"

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._tests[report.nodeid] = {
                "outcome": "failed",
                "seconds": 0.0,
                "fixture_seconds": 0.0,
                "text": report.longreprtext,
            }

    def pytest_sessionfinish(self) -> None:
        self._path.write_text(json.dumps(self._tests, indent=1))


def add_option(parser: pytest.OptionGroup) -> None:
    parser.addoption(
        "--run-report", metavar="FILE", help="writes the outcome and time of every test as JSON"
    )


def install(config: pytest.Config) -> None:
    path = config.getoption("--run-report")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(RunReport(Path(path)))
