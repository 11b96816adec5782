# SPDX-License-Identifier: Apache-2.0
"""Which of the collected tests run, and in which order.

A family is a test with many similar parameters, such as every failpoint of a create, marked
`@pytest.mark.family(8)`. The everyday run selects that many of it by AGBOX_TEST_SAMPLE (which scripts/test
sets to the commit), so that all are covered over several commits; a run without it, and `--long`, run all.

Most users are not root, so the everyday run has every test with a daemon of the test user, and one in three
of them with a daemon of root as well, selected in the same way.
"""

import hashlib
import os

import pytest

SAMPLE = "AGBOX_TEST_SAMPLE"
ONE_AS_ROOT_OF = 3


def sampled(items: list[pytest.Item]) -> list[pytest.Item]:
    seed = os.environ.get(SAMPLE)
    if not seed:
        return items
    as_user = {_base(item) for item in items if parameters(item).get("daemon_user") == "user"}
    items = [item for item in items if _base(item) not in as_user or _runs_in_sample(seed, item)]
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


def _runs_in_sample(seed: str, item: pytest.Item) -> bool:
    is_as_root = parameters(item).get("daemon_user") == "root"
    return not is_as_root or int(_draw(seed, item.nodeid), 16) % ONE_AS_ROOT_OF == 0


def _base(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _draw(seed: str, name: str) -> str:
    return hashlib.sha256(f"{seed} {name}".encode()).hexdigest()
