# SPDX-License-Identifier: Apache-2.0
"""The names in documents exist: identifiers in code spans and names in capitals (events, reasons, constants) occur in the
sources, and configuration keys in the daemon's table. And the other way around: calls, events and reasons of the API are
documented."""

import re
from pathlib import Path

SOURCES = ("api", "bench", "cmake", "images", "packaging", "scripts", "sdk", "src")
TEXTS = {".cmake", ".cpp", ".go", ".h", ".in", ".json", ".proto", ".py", ".sh", ".toml", ".txt", ""}
# Of the kernel, of images, and placeholders.
NAMES_OF_OTHERS = {
    "AF_XDP",
    "CAP_NET_RAW",
    "CONFIG_NF_CONNTRACK_TIMEOUT",
    "IP_TRANSPARENT",
    "nf_conntrack_max",
    "RLIMIT_NPROC",
    "SO_MARK",
    "UNKNOWN_n",
}
# Reasons that never leave the daemon: another one, or a message, reports them to clients.
INTERNAL_REASONS = {"ENGINE_CONFLICT", "ENGINE_TIMEOUT", "EXEC_INPUT_CLOSED", "EXEC_INPUT_TAKEN"}
# Its examples of names are not names.
EXEMPT = {"CONTRIBUTING.md"}

BLOCK = re.compile(r"^```.*?^```", re.M | re.S)
SPAN = re.compile(r"`([^`\n]+)`")
IDENTIFIER = re.compile(r"(?<![\w$])[A-Za-z_][A-Za-z0-9_]*")
CAPITALS = re.compile(r"\b[A-Z]+(?:_[A-Z0-9]+)+\b")
KEY = re.compile(r"`((?:runtime|artifacts|network|isolation)\.[a-z_]+)[` ]")


def words_of_sources(root: Path) -> set[str]:
    """And the names of documents and tests."""
    words = {path.stem for directory in ("docs", "tests") for path in (root / directory).rglob("*")}
    for directory in SOURCES:
        for path in (root / directory).rglob("*"):
            if path.suffix in TEXTS and path.is_file():
                words |= set(IDENTIFIER.findall(path.read_text(errors="replace")))
    return words


def keys_of_daemon(root: Path) -> set[str]:
    table = root / "src" / "daemon" / "configuration_key.cpp"
    rows = re.findall(r'\.table = "(\w+)",\s*\.name = "(\w+)"', table.read_text()) if table.is_file() else []
    return {f"{group}.{name}" for group, name in rows}


def word_faults(root: Path, documents: list[Path]) -> list[str]:
    known, keys = words_of_sources(root) | NAMES_OF_OTHERS, keys_of_daemon(root)
    faults = []
    for document in documents:
        name = str(document.relative_to(root))
        if name in EXEMPT:
            continue
        text = BLOCK.sub("", document.read_text())
        names = set(CAPITALS.findall(text))
        for span in SPAN.findall(text):
            names |= {word for word in IDENTIFIER.findall(span) if "_" in word or re.search("[a-z][A-Z]", word)}
        faults += [
            f"{name}: {word} is in no source; a name of others goes into NAMES_OF_OTHERS of scripts/lib/document_words.py"
            for word in sorted(names - known)
        ]
        faults += [f"{name}: {key} is no configuration key" for key in sorted(set(KEY.findall(text)) - keys)]
    return faults


def undocumented(root: Path, documents: list[Path]) -> list[str]:
    text = "".join(document.read_text() for document in documents)
    faults = []
    for source, pattern in (
        ("api/agbox/v1/service.proto", r"^  rpc (\w+)"),
        ("api/agbox/v1/event.proto", r"^  ([A-Z_]+) = [1-9]\d*;"),
        ("src/model/reasons.h", r'"([A-Z_]+)"'),
    ):
        path = root / source
        names = set(re.findall(pattern, path.read_text(), re.M)) if path.is_file() else set()
        faults += [
            f"{source}: no document mentions {name}"
            for name in sorted(names - INTERNAL_REASONS)
            if not re.search(rf"\b{name}\b", text)
        ]
    return faults
