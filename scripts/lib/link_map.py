# SPDX-License-Identifier: Apache-2.0
"""What a program of ours was linked and compiled from, as files of this machine: from the linker's map, ninja's record of
the headers of every object, and the libraries that the program loads."""
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

# "  VMA  LMA  Size Align  FILE:(section)", where FILE may be archive(member).
_INPUT = re.compile(r"^ *[0-9a-f]+ +[0-9a-f]+ +[0-9a-f]+ +\d+ {9}(?P<file>[^ ].*?)(\((?P<member>[^()]+)\))?:\([^)]*\)$")
_NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")


@dataclass(frozen=True)
class Linked:
    """Absolute paths, sorted."""

    static: list[str]  # archives and objects of which something is in the program
    headers: list[str]  # what its objects of ours include from elsewhere
    dynamic: list[str]  # sonames


def linked(build: Path, program: str) -> Linked:
    """`program` is the name of a program in the build's bin directory."""
    static: set[str] = set()
    headers: set[str] = set()
    headers_of = _headers_of_objects(build)
    for file, member in _inputs(build / "link_maps" / f"{program}.map"):
        if file.startswith("/"):
            static.add(file)
        elif file != "<internal>":
            headers |= headers_of[_object_of(file, member)]
    return Linked(sorted(static), sorted(headers), _sonames(build / "bin" / program))


def _inputs(link_map: Path) -> set[tuple[str, str]]:
    if not link_map.is_file():
        raise SystemExit(f"{link_map} does not exist; configure the preset release with clang and lld, and build it")
    found = set()
    with link_map.open(errors="replace") as lines:
        for line in lines:
            if match := _INPUT.match(line.rstrip("\n")):
                found.add((match["file"], match["member"] or ""))
    if not found:
        raise SystemExit(f"{link_map} names no object: it is not a map of lld")
    return found


def _object_of(file: str, member: str) -> tuple[str, str, str]:
    """Directory, target and file name of an object, which an archive keeps without its directory."""
    path = Path(file)
    if member:
        return str(path.parent), path.stem.removeprefix("lib"), member
    directory, _, rest = file.partition("/CMakeFiles/")
    return directory, rest.partition(".dir/")[0], path.name


def _headers_of_objects(build: Path) -> dict[tuple[str, str, str], set[str]]:
    listing = subprocess.run(["ninja", "-C", str(build), "-t", "deps"], check=True, text=True, stdout=subprocess.PIPE).stdout
    headers: dict[tuple[str, str, str], set[str]] = {}
    current: set[str] = set()
    for line in listing.splitlines():
        if line.startswith("    "):
            path = line.strip()
            if path.startswith("/usr/"):
                current.add(path)
        elif line and not line.startswith("ninja:"):
            name = line.partition(":")[0]
            current = headers.setdefault(_object_of(name, ""), set())
    return headers


def _sonames(program: Path) -> list[str]:
    dynamic = subprocess.run(["readelf", "--dynamic", "--wide", str(program)], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
    return sorted(_NEEDED.findall(dynamic))
