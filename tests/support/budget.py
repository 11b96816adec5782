# SPDX-License-Identifier: Apache-2.0
"""tests/budget.toml: how long tests, groups of them and a run may take, and how many may be flaky or slow once."""

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Budget:
    test: float  # seconds of a Python test without its own line
    unit_test: float  # seconds of a C++ test
    tests: dict[str, float]  # by node id, with or without its parameters, or by CTest's name
    groups: dict[str, float]  # the sum of all tests of a directory, or of the unit tests of a preset
    most_flaky: int
    never_flaky: tuple[str, ...]  # beginnings of names
    most_slow: int  # tests that are over their time, but not alone
    run_minutes: float  # a longer run is reported
    usual_pace: float  # seconds of the work in scripts/lib/pace.py, on the machine that all others were measured on

    def seconds_for(self, name: str, default: float) -> float:
        return self.tests.get(name, self.tests.get(name.partition("[")[0], default))

    def may_be_flaky(self, name: str) -> bool:
        return not name.startswith(self.never_flaky)


def read_budget(root: Path) -> Budget:
    path = root / "tests" / "budget.toml"
    with path.open("rb") as file:
        content = tomllib.load(file)
    try:
        return Budget(
            test=content["seconds"]["test"],
            unit_test=content["seconds"]["unit_test"],
            tests=content["tests"],
            groups=content["groups"],
            most_flaky=content["flaky"]["most"],
            never_flaky=tuple(content["flaky"]["never"]),
            most_slow=content["slow"]["most"],
            run_minutes=content["run"]["minutes"],
            usual_pace=content["run"]["pace"],
        )
    except KeyError as missing:
        raise ValueError(f"{path}: {missing} is missing") from None
