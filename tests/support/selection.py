# SPDX-License-Identifier: Apache-2.0
"""Which of the collected tests run, and in which order.

A family is a test with many similar parameters, such as every failpoint of a create, marked
`@pytest.mark.family(8)`. The everyday run selects that many of it by AGBOX_TEST_SAMPLE (which scripts/test
sets to the commit), so that all are covered over several commits; a run without it, and `--long`, run all.
"""

import hashlib
import os

import pytest

SAMPLE = "AGBOX_TEST_SAMPLE"


def sampled(items: list[pytest.Item]) -> list[pytest.Item]:
    seed = os.environ.get(SAMPLE)
    if not seed:
        return items
    families: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("family"):
            families.setdefault(_base(item), []).append(item)
    left_out: set[pytest.Item] = set()
    for members in families.values():
        [count] = members[0].get_closest_marker("family").args
        members.sort(key=lambda item: _draw(seed, item.nodeid))
        left_out.update(members[count:])
    return [item for item in items if item not in left_out]


def longest_first(items: list[pytest.Item], seconds: dict[str, float]) -> None:
    """Workers take tests in this order, so that no long test is left at the end. Groups, which one worker runs
    as a whole, come first."""

    def place(item: pytest.Item) -> tuple[bool, float]:
        grouped = item.get_closest_marker("xdist_group") is not None
        return not grouped, -seconds.get(item.nodeid, seconds.get(_base(item), 0))

    items.sort(key=place)


def parameters(item: pytest.Item) -> dict[str, object]:
    return item.callspec.params if hasattr(item, "callspec") else {}


def _base(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _draw(seed: str, name: str) -> str:
    return hashlib.sha256(f"{seed} {name}".encode()).hexdigest()
