# SPDX-License-Identifier: Apache-2.0
"""A Debian repository with one test package, in a directory that any web server can serve."""

import hashlib
from pathlib import Path

from support.process import run

PACKAGE = "greeting"
# What maintainer scripts of real packages do: a user, its directory, a setgid program.
_CONTROL = f"""Package: {PACKAGE}
Version: 1.0
Architecture: all
Maintainer: Nobody <nobody@example.invalid>
Description: says hello as whoever it was installed for
"""
_AFTER_INSTALLATION = """#!/bin/sh
set -e
useradd --system --home-dir /var/lib/greeting --shell /usr/sbin/nologin greeter
chown greeter:greeter /var/lib/greeting
chgrp greeter /usr/bin/greeting
chmod 2755 /usr/bin/greeting
"""
_PROGRAM = """#!/bin/sh
echo "hello from $(stat -c %U:%a /var/lib/greeting), $(stat -c %G:%a /usr/bin/greeting)"
"""
GREETING = "hello from greeter:755, greeter:2755\n"


def make_repository(directory: Path) -> Path:
    """A flat one, for `deb [trusted=yes] http://PLACE ./`."""
    tree, repository = directory / "tree", directory / "repository"
    for path, content, mode in (
        ("DEBIAN/control", _CONTROL, 0o644),
        ("DEBIAN/postinst", _AFTER_INSTALLATION, 0o755),
        (f"usr/bin/{PACKAGE}", _PROGRAM, 0o755),
    ):
        file = tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        file.chmod(mode)
    (tree / "var/lib/greeting").mkdir(parents=True)
    run("chmod", "-R", "u=rwX,go=rX", tree)
    repository.mkdir()
    package = repository / f"{PACKAGE}.deb"
    run("dpkg-deb", "--root-owner-group", "--build", tree, package)
    index = _CONTROL + f"Filename: ./{package.name}\n{_size_and_digest(package)}\n"
    (repository / "Packages").write_text(index)
    listed = hashlib.sha256(index.encode()).hexdigest()
    (repository / "Release").write_text(f"SHA256:\n {listed} {len(index)} Packages\n")
    return repository


def _size_and_digest(file: Path) -> str:
    content = file.read_bytes()
    return f"Size: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}\n"
