# SPDX-License-Identifier: Apache-2.0
"""The files of a release, as scripts/package makes them, and other versions of them for upgrades."""

import gzip
import hashlib
import io
import re
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

from support.process import run

GUEST = "libexec/agents-sandbox/agbox-guest"


class Release:
    """A directory that scripts/package has filled."""

    def __init__(self, directory: Path):
        self.directory = directory
        (self.package,) = directory.glob("agents-sandbox_*.deb")
        (self.tarball,) = directory.glob("agents-sandbox-*.tar.gz")
        (self.sbom,) = directory.glob("agents-sandbox-*.spdx.json")
        self.checksums = directory / "SHA256SUMS"
        self.installer = directory / "install.sh"
        self.version = self.package.name.split("_")[1]

    def field(self, name: str) -> str:
        return run("dpkg-deb", "--field", self.package, name).stdout.strip()

    def tree(self, directory: Path) -> Path:
        """The files of the package, as they are installed."""
        run("dpkg-deb", "--extract", self.package, directory)
        return directory


def with_another_guest(guest: bytes) -> bytes:
    """What is behind the sections of a program is not loaded: it runs as before, and is another file."""
    return guest + b"another version"


def next_package(release: Release, version: str, directory: Path) -> Path:
    """The package in another version, whose guest is another file."""
    tree = directory / "tree"
    run("dpkg-deb", "--raw-extract", release.package, tree)
    guest = tree / "usr" / GUEST
    guest.write_bytes(with_another_guest(guest.read_bytes()))
    control = tree / "DEBIAN" / "control"
    control.write_text(re.sub(r"^Version: .*$", f"Version: {version}", control.read_text(), flags=re.M))
    sums = tree / "DEBIAN" / "md5sums"
    md5 = hashlib.md5(guest.read_bytes()).hexdigest()
    sums.write_text(re.sub(rf"^[0-9a-f]+(  usr/{GUEST})$", rf"{md5}\1", sums.read_text(), flags=re.M))
    package = directory / f"agents-sandbox_{version}_{release.field('Architecture')}.deb"
    run("dpkg-deb", "--build", "-Zgzip", "-z1", tree, package)
    shutil.rmtree(tree)
    return package


def next_tarball(release: Release, version: str, directory: Path, without: str = "") -> Path:
    """The tarball in another version, with its checksum; one of its files is left out."""

    def change(member: tarfile.TarInfo, content: bytes) -> bytes | None:
        top, _, name = member.name.partition("/")
        member.name = f"{top.replace(release.version, version)}/{name}".rstrip("/")
        if name == without:
            return None
        return f"{version}\n".encode() if name == "VERSION" else content

    name = release.tarball.name.replace(release.version, version)
    path = rewrite_tarball(release.tarball, directory / name, change)
    shutil.copy(release.installer, directory)
    write_checksums(path)
    return path


def rewrite_tarball(
    source: Path, target: Path, change: Callable[[tarfile.TarInfo, bytes], bytes | None]
) -> Path:
    """`change` may rename a member; it returns the content, or None to leave it out."""
    with tarfile.open(source) as old, gzip.open(target, "wb", compresslevel=1) as packed:
        with tarfile.open(fileobj=packed, mode="w") as new:
            for member in old:
                file = old.extractfile(member) if member.isfile() else None
                content = change(member, file.read() if file else b"")
                if content is not None:
                    member.size = len(content) if file else 0
                    new.addfile(member, io.BytesIO(content) if file else None)
    return target


def write_checksums(*files: Path) -> None:
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (files[0].parent / "SHA256SUMS").write_text("".join(lines))
