# SPDX-License-Identifier: Apache-2.0
"""Counts what CTest and pytest wrote as JUnit XML, and what a check without XML said."""
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Tally:
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def line(self) -> str:
        return f"{self.passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"


def read_tally(report: Path) -> Tally:
    """The outcomes in a JUnit file; pytest reports a failing teardown as a case of its own."""
    tally = Tally()
    for case in ElementTree.parse(report).iter("testcase"):
        name = ".".join(filter(None, (case.get("classname"), case.get("name"))))
        if case.find("failure") is not None or case.find("error") is not None:
            if name not in tally.failed:
                tally.failed.append(name)
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            tally.skipped.append(name)
        else:
            tally.passed += 1
    return tally


def tally_of_run(step: str, report: Path, exit_code: int, may_be_empty: bool = False) -> Tally:
    """The file's outcomes, held against the exit code: a runner that broke is a failure too."""
    if not report.is_file():
        return Tally(failed=[f"{step}: ended with {exit_code} and without a report"])
    try:
        tally = read_tally(report)
    except ElementTree.ParseError as error:
        return Tally(failed=[f"{step}: its report cannot be read: {error}"])
    if exit_code != 0 and not tally.failed:
        tally.failed.append(f"{step}: ended with {exit_code}")
    elif not (tally.passed or tally.failed or tally.skipped or may_be_empty):
        tally.failed.append(f"{step}: ran no test")
    return tally
