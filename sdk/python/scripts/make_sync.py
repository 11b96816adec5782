# SPDX-License-Identifier: Apache-2.0
"""Generates the synchronous twins of asynchronous sources, token by token. Run with the Python of build/tools/python.

make_sync.py           writes them
make_sync.py --check   fails if they do not fit
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "sdk" / "python" / "src" / "agents_sandbox"
CONFORMANCE = ROOT / "tests" / "conformance" / "python"
HAND_WRITTEN = ("platform.py", "__init__.py")

NAMES = {
    "AsyncGenerator": "Generator",
    "AsyncIterator": "Iterator",
    "Awaitable": "",  # by TYPES
    "StopAsyncIteration": "StopIteration",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
    "_async": "_sync",
    "aclosing": "closing",
}
TYPES = (
    (re.compile(r"\b(?:Awaitable|Pending)\[(\w+)\]"), r"\1"),
    (re.compile(r"^from agents_sandbox\._async\.platform import Pending\n", re.MULTILINE), ""),
    (re.compile(r"\bAsyncGenerator\[([\w.]+), None\]"), r"Generator[\1, None, None]"),
    (re.compile(r"\bAwaitable, "), ""),
    (re.compile(r"^.*# async only\n", re.MULTILINE), ""),
    (re.compile(r"^ *# <async only>\n.*?# </async only>\n", re.MULTILINE | re.DOTALL), ""),
)
SYNC_ONLY = re.compile(r"^ *# <sync only>\n(.*?)^ *# </sync only>\n", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"^( *)# ?", re.MULTILINE)
DOCUMENTATION = ((re.compile(r"\basync (with|for|def)\b"), r"\1"), (re.compile(r"\bawait (?=[\w.]+\()"), ""))


def synchronous(source: str) -> str:
    for pattern, replacement in TYPES:
        source = pattern.sub(replacement, source)
    source = SYNC_ONLY.sub(lambda found: COMMENT.sub(r"\1", found[1]), source)
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    made: list[str] = []
    done = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        start, end = starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1]
        text = token.string
        if token.type == tokenize.NAME and text in ("async", "await"):
            made.append(source[done:start])
            done = end + 1  # with the blank after it
        elif token.type == tokenize.NAME and text in NAMES:
            made += [source[done:start], NAMES[text]]
            done = end
        elif token.type == tokenize.STRING and text.startswith('"""'):
            for pattern, replacement in DOCUMENTATION:
                text = pattern.sub(replacement, text)
            made += [source[done:start], text]
            done = end
    return "".join(made) + source[done:]


def formatted(source: str, path: Path) -> str:
    ruff = Path(sys.executable).parent / "ruff"
    options = [
        "--config",
        str(ROOT / "sdk" / "python" / "pyproject.toml"),
        "--no-cache",
        "--stdin-filename",
        str(path),
    ]
    fix = [str(ruff), "check", "--quiet", "--select", "I", "--fix", *options, "-"]
    sorted_imports = subprocess.run(fix, input=source, check=True, capture_output=True, text=True).stdout
    form = [str(ruff), "format", "--quiet", *options, "-"]
    return subprocess.run(form, input=sorted_imports, check=True, capture_output=True, text=True).stdout


def pairs() -> list[tuple[Path, Path]]:
    sources = [path for path in sorted((PACKAGE / "_async").glob("*.py")) if path.name not in HAND_WRITTEN]
    found = [(path, PACKAGE / "_sync" / path.name) for path in sources]
    runner = CONFORMANCE / "runner.py"
    return [*found, (runner, CONFORMANCE / "runner_sync.py")] if runner.exists() else found


def main() -> int:
    parser = argparse.ArgumentParser(description="generate the synchronous client")
    parser.add_argument("--check", action="store_true")
    checks = parser.parse_args().check
    faults = 0
    for source, twin in pairs():
        head, _, rest = source.read_text().partition("\n")
        note = f"# Generated from {source.relative_to(ROOT)} by sdk/python/scripts/make_sync.py.\n"
        text = formatted(f"{head}\n{note}{synchronous(rest)}", twin)
        if not checks:
            twin.write_text(text)
        elif not twin.exists() or twin.read_text() != text:
            print(
                f"{twin.relative_to(ROOT)} does not fit {source.relative_to(ROOT)}; run sdk/python/scripts/make_sync.py"
            )
            faults += 1
    if checks:
        known = {twin for _, twin in pairs()} | {PACKAGE / "_sync" / name for name in HAND_WRITTEN}
        for extra in sorted(set((PACKAGE / "_sync").glob("*.py")) - known):
            print(f"{extra.relative_to(ROOT)} has no source; remove it")
            faults += 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
