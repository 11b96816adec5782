# SPDX-License-Identifier: Apache-2.0
"""Tables of the documents that list all of something have exactly the rows that the sources have."""

import json
import re
from pathlib import Path

CODE = re.compile(r"`([^`]+)`")


def first_cells(document: Path, heading: str) -> list[str]:
    """The names in the first column of the table with this heading."""
    lines = document.read_text().splitlines()
    names = []
    for line in lines[lines.index(heading) + 2 :] if heading in lines else []:
        if not line.startswith("|"):
            break
        names += CODE.findall(line.split("|")[1])
    return names


def keys_of_yaml(root: Path) -> set[str]:
    return set(json.loads((root / "docs" / "sandbox.schema.json").read_text())["properties"])


def keys_of_companions(root: Path) -> set[str]:
    lists = json.loads((root / "docs" / "sandbox.schema.json").read_text())["properties"]["required_services"]
    return set(lists["additionalProperties"]["properties"])


def checks_of_doctor(root: Path) -> set[str]:
    return set(
        re.findall(r'"([a-z]+(?:-[a-z]+)*)"[,}]', (root / "src" / "control" / "doctor" / "diagnosis.cpp").read_text())
    )


TABLES = (
    ("docs/declarative_yaml_config.md", "| Key | Value | Meaning |", keys_of_yaml),
    ("docs/container_dependency_strategy.md", "| Key | Value | Meaning |", keys_of_companions),
    ("docs/doctor.md", "| Check | Checks | Result if it fails |", checks_of_doctor),
)


def table_faults(root: Path) -> list[str]:
    faults = []
    for name, heading, wanted_of in TABLES:
        if not (root / name).is_file():
            continue
        shown, wanted = set(first_cells(root / name, heading)), wanted_of(root)
        faults += [f'{name}: the table "{heading}" has no row for {row}' for row in sorted(wanted - shown)]
        faults += [
            f'{name}: the table "{heading}" has a row for {row}, which does not exist' for row in sorted(shown - wanted)
        ]
    return faults
