# SPDX-License-Identifier: Apache-2.0
"""What scripts/test makes of the output of `go test -json`."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts" / "lib"))

from go_tests import go_tests  # noqa: E402


def lines(*events: dict) -> list[str]:
    return [json.dumps(event) for event in events]


def end(action: str, test: str = "", package: str = "m/client") -> dict:
    return {"Action": action, "Package": package, "Elapsed": 1.5} | ({"Test": test} if test else {})


def test_each_test_has_its_outcome_with_the_words_of_its_subtests() -> None:
    passed, failed = go_tests(lines(
        {"Action": "start", "Package": "m/client"},
        end("pass", "TestGood"),
        {"Action": "output", "Package": "m/client", "Test": "TestBad/part", "Output": "words\n"},
        end("fail", "TestBad/part"),
        end("fail", "TestBad"),
        end("fail"),
    ))
    assert (passed.name, passed.outcome, passed.seconds) == ("TestGood", "passed", 1.5)
    assert (failed.name, failed.outcome, failed.text) == ("TestBad", "failed", "words\n")


def test_one_that_never_reports_its_end_has_failed() -> None:
    (test,) = go_tests(lines({"Action": "run", "Package": "m/client", "Test": "TestCrash"}, end("fail")))
    assert (test.name, test.outcome) == ("TestCrash", "failed")


def test_a_package_that_fails_by_itself_is_a_failure_with_its_reason() -> None:
    (test,) = go_tests(lines(
        {"Action": "build-output", "ImportPath": "m/client", "Output": "undefined: x\n"},
        {"Action": "output", "Package": "m/client", "Output": "FAIL m/client [build failed]\n"},
        end("fail"),
        end("pass", package="m/other"),
    ))
    assert (test.name, test.outcome) == ("client", "failed")
    assert test.text == "undefined: x\nFAIL m/client [build failed]\n"
