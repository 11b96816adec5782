# SPDX-License-Identifier: Apache-2.0
"""Every example of the documents runs in a test, or says why it does not.

scripts/lib/documented_examples.txt names the test, by document and language. A single block is exempt if the line before
it, or the one before an empty line, is a comment: <!-- not run: REASON -->"""

import re
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = {"cmake", "console", "cpp", "dockerfile", "go", "python", "sh", "toml", "yaml"}
OUTPUT = {"", "text"}
FENCE = re.compile(r"^```(.*)$")
EXEMPTION = re.compile(r"^<!-- not run: \S.* -->$")


@dataclass(frozen=True)
class Block:
    line: int
    language: str
    is_exempt: bool


def blocks_of(text: str) -> list[Block]:
    blocks, lines, begin = [], text.splitlines(), None
    for number, line in enumerate(lines):
        fence = FENCE.match(line)
        if not fence:
            continue
        if begin is None:
            begin = number
            continue
        before = [text for text in lines[:begin] if text][-1:]
        is_exempt = bool(before and EXEMPTION.match(before[0]))
        blocks.append(Block(begin + 1, lines[begin].removeprefix("```"), is_exempt))
        begin = None
    return blocks


def listed(root: Path) -> dict[tuple[str, str], str]:
    """The test by document and language."""
    table = root / "scripts" / "lib" / "documented_examples.txt"
    lines = table.read_text().splitlines() if table.is_file() else []
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return {(document, language): test for document, language, test in rows}


def example_faults(root: Path, documents: list[Path]) -> list[str]:
    tests = listed(root)
    faults, used = [], set()
    for document in documents:
        name = str(document.relative_to(root))
        for block in blocks_of(document.read_text()):
            if block.language not in EXAMPLES | OUTPUT:
                faults.append(
                    f'{name}:{block.line}: the language "{block.language}" is none of '
                    f"{', '.join(sorted(EXAMPLES | OUTPUT - {''}))}"
                )
            elif block.language in EXAMPLES and not block.is_exempt:
                used.add((name, block.language))
                if (name, block.language) not in tests:
                    faults.append(
                        f"{name}:{block.line}: no test runs this example: name the test in "
                        "scripts/lib/documented_examples.txt, or write <!-- not run: REASON --> before it"
                    )
    for (document, language), test in sorted(tests.items()):
        if (document, language) not in used:
            faults.append(f"scripts/lib/documented_examples.txt: {document} has no example in {language}")
        elif not (root / test).is_file():
            faults.append(f"scripts/lib/documented_examples.txt: {test} does not exist")
    return faults
