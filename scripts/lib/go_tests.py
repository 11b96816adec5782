# SPDX-License-Identifier: Apache-2.0
"""What became of each unit test of the Go SDK, from what `go test -json` writes."""
import json
from collections.abc import Iterable
from dataclasses import dataclass

_OUTCOMES = {"pass": "passed", "fail": "failed", "skip": "skipped"}


@dataclass
class GoTest:
    name: str  # of the test, or of the package if that failed by itself
    package: str
    outcome: str = "failed"  # unless it has reported its end
    seconds: float = 0
    text: str = ""


def go_tests(lines: Iterable[str]) -> list[GoTest]:
    """A test with its subtests is one. A package that failed without a failed test is one, too."""
    tests: dict[tuple[str, str], GoTest] = {}
    builds = ""
    for line in lines:
        event = json.loads(line)
        action, package = event["Action"], event.get("Package", "")
        if action == "build-output":
            builds += event["Output"]
            continue
        name, _, subtest = event.get("Test", "").partition("/")
        if not package:
            continue
        test = tests.setdefault((package, name), GoTest(name or package.rpartition("/")[2], package))
        test.text += event.get("Output", "")
        if action in _OUTCOMES and not subtest:
            test.outcome, test.seconds = _OUTCOMES[action], event.get("Elapsed", 0)
    found = [test for (_, name), test in tests.items() if name]
    explained = {test.package for test in found if test.outcome == "failed"}
    for (package, name), test in tests.items():
        if not name and test.outcome == "failed" and package not in explained:
            test.text = builds + test.text
            found.append(test)
    return found
