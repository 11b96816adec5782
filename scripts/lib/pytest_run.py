# SPDX-License-Identifier: Apache-2.0
"""One run of pytest: what became of each test, and whether the run itself can be trusted."""
import json
from dataclasses import dataclass, field
from pathlib import Path

from commands import PYTHON, as_root, run_openly
from sudo import passed_on

FOUND_NOTHING = 5
INTERNAL_ERROR = 3


@dataclass
class PytestRun:
    code: int
    tests: dict[str, dict] = field(default_factory=dict)  # by node id; tests/support/run_report.py writes them
    collected: int = 0
    lost_workers: list[str] = field(default_factory=list)
    has_report: bool = True
    ended_after: float = 0  # seconds after which it was ended, because it was still running

    def fault(self) -> str:
        """Why the run as a whole has failed, whatever became of its tests; empty if its outcomes explain its end. No
        second try of a test can undo it."""
        if self.ended_after:
            return f"still running after {self.ended_after:.0f} s; ended"
        if not self.has_report:
            return f"ended with {self.code} and without a report"
        if self.lost_workers:
            return f"lost a worker: {', '.join(self.lost_workers)}"
        if len(self.tests) != self.collected:
            return f"has outcomes of {len(self.tests)} tests, but {self.collected} were collected"
        if not self.tests:
            return "found no test"
        if self.code == INTERNAL_ERROR:
            return f"ended with {self.code}: pytest broke, or the machine changed during the run; then see \"this test " \
                   "run left behind\" above, and on a machine that others use, run scripts/test --beside-others"
        has_failed = any(test["outcome"] == "failed" for test in self.tests.values())
        return "" if self.code == int(has_failed) else f"ended with {self.code}, which no outcome explains"


def run_pytest(arguments: list[str], report: Path, bin_dir: Path, sample: str, timeout: float) -> PytestRun:
    """As root, because the tests make users, namespaces and engines; nothing of root's may land in a user's clone."""
    report.unlink(missing_ok=True)
    settings = passed_on(PYTHONDONTWRITEBYTECODE="1", AGBOX_BIN_DIR=str(bin_dir), AGBOX_TEST_SAMPLE=sample)
    ended = run_openly(as_root(["env", *settings, PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                                f"--run-report={report}", *arguments]), timeout)
    ended_after = timeout if ended.text else 0  # its output went to the terminal: the text is that it was ended
    if not report.is_file():
        return PytestRun(ended.code, has_report=False, ended_after=ended_after)
    return PytestRun(ended.code, **json.loads(report.read_text()), ended_after=ended_after)
