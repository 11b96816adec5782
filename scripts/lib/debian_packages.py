# SPDX-License-Identifier: Apache-2.0
"""Which Debian package of this machine a file comes from, and its version, source and copyright."""
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_FIELDS = "${Package}\t${Architecture}\t${Version}\t${source:Package}\t${source:Version}\t${Homepage}\n"


@dataclass(frozen=True, order=True)
class DebianPackage:
    name: str
    architecture: str
    version: str
    source: str
    source_version: str
    homepage: str

    def copyright(self) -> str:
        return Path(f"/usr/share/doc/{self.name}/copyright").read_text(errors="replace")


def packages_of(paths: Iterable[str]) -> dict[str, DebianPackage]:
    """A file of no package is an error: what is in a release has to have a known origin."""
    spellings = {path: _spellings(path) for path in paths}
    owners = _owners({spelling for group in spellings.values() for spelling in group})
    found = {}
    for path, group in spellings.items():
        owner = next((owners[spelling] for spelling in group if spelling in owners), None)
        if owner is None:
            raise SystemExit(f"{path} is linked into a program but belongs to no Debian package; remove it, or install its package")
        found[path] = owner
    packages = _details(set(found.values()))
    return {path: packages[owner] for path, owner in found.items()}


def library_path(soname: str) -> str:
    """Where the loader finds it."""
    multiarch = subprocess.run(["dpkg-architecture", "--query", "DEB_HOST_MULTIARCH"], check=True, text=True,
                               stdout=subprocess.PIPE).stdout.strip()
    path = f"/lib/{multiarch}/{soname}"
    if not os.path.exists(path):
        raise SystemExit(f"a program loads {soname}, which is not in /lib/{multiarch}")
    return path


def _spellings(path: str) -> tuple[str, ...]:
    """dpkg knows a file under the path that its package has: /lib is a link to /usr/lib."""
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    names = [path, real, real.removeprefix("/usr"), os.path.realpath(path)]
    return tuple(dict.fromkeys(names))


def _owners(paths: set[str]) -> dict[str, str]:
    # Exits with 1 because of the spellings that no package has.
    listing = subprocess.run(["xargs", "--null", "dpkg-query", "--search"], input="\0".join(sorted(paths)), text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    owners = {}
    for line in listing.splitlines():
        names, separator, path = line.partition(": ")
        if separator and not line.startswith("diversion "):
            owners[path] = names.split(", ")[0]
    return owners


def _details(names: set[str]) -> dict[str, DebianPackage]:
    packages = {}
    for name in sorted(names):
        shown = subprocess.run(["dpkg-query", "--show", f"--showformat={_FIELDS}", name], check=True, text=True,
                               stdout=subprocess.PIPE).stdout
        packages[name] = DebianPackage(*shown.rstrip("\n").split("\t"))
    return packages
