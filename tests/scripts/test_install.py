# SPDX-License-Identifier: Apache-2.0
"""cmake --install with DESTDIR lays out a package that works from its prefix alone."""
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# They share one installation.
pytestmark = pytest.mark.xdist_group("host")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def package(release_build: Path) -> Iterator[Path]:
    """The tree below DESTDIR. Installed as the owner of the build, so that nothing of root's stays."""
    owner = release_build.stat()
    identity = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []} \
        if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory(prefix="agb-package-") as destination:
        os.chown(destination, owner.st_uid, owner.st_gid)
        run = subprocess.run(["cmake", "--install", str(release_build), "--prefix", "/usr"],
                             env=os.environ | {"DESTDIR": destination}, timeout=120, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **identity)
        assert run.returncode == 0, run.stdout
        yield Path(destination)


def test_documents_and_licence_are_there(package: Path) -> None:
    documents = package / "usr/share/doc/agents-sandbox"
    for name in ("README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE", "docs/architecture.md"):
        assert (documents / name).stat().st_size > 0, name


def test_the_man_pages_are_installed(package: Path) -> None:
    page = (package / "usr/share/man/man1/agbox.1").read_text()
    assert page.startswith(".TH AGBOX 1\n") and "\n.SS agbox run " in page
    assert "\n.TH AGBOXD 1\n" in (package / "usr/share/man/man1/agboxd.1").read_text()


def test_the_agents_are_installed_to_be_read(package: Path) -> None:
    files = {path.name for path in (package / "usr/share/agents-sandbox/agents").iterdir()}
    assert files == {path.name for path in (ROOT / "share/agents").iterdir()} >= {"claude.yaml", "codex.yaml"}


def test_links_between_documents_work(package: Path) -> None:
    documents = package / "usr/share/doc/agents-sandbox"
    links = [(document, target) for document in documents.rglob("*.md")
             for target in re.findall(r"\]\(([^)#\s]+\.[a-z]+)[)#]", document.read_text()) if "://" not in target]
    assert len(links) > 50, "the pattern finds links"
    assert [link for link in links if not (link[0].parent / link[1]).exists()] == []


def test_every_program_of_the_build_is_installed_and_runs(package: Path, release_build: Path) -> None:
    for name in ("agboxd", "agbox"):
        program = package / "usr/bin" / name
        assert program.is_file() and os.access(program, os.X_OK), program
        run = subprocess.run([str(program), "--version"], text=True, stdout=subprocess.PIPE,
                             timeout=30)
        assert run.returncode == 0 and run.stdout.strip(), program


def test_only_the_owner_and_the_group_can_run_the_daemon(package: Path) -> None:
    assert (package / "usr/bin/agboxd").stat().st_mode & 0o7777 == 0o750, "it gets a capability"


def test_the_unit_starts_the_installed_program(package: Path) -> None:
    unit = (package / "usr/lib/systemd/user/agboxd.service").read_text()
    assert "ExecStart=/usr/bin/agboxd\n" in unit
    assert "@" not in unit, "every placeholder is filled"


def test_nothing_installed_names_the_build(package: Path, release_build: Path) -> None:
    files = [path for path in package.rglob("*") if path.is_file()]
    assert files
    for path in files:
        content = path.read_bytes()
        for directory in (str(ROOT), str(release_build), str(package)):
            assert directory.encode() not in content, f"{path} holds {directory}"


def test_the_cpp_sdk_is_installed(package: Path) -> None:
    """tests/e2e/test_cpp_sdk.py uses it."""
    for name in ("include/agbox/agbox.h", "lib/libagbox.a", "lib/cmake/agbox/agboxConfig.cmake",
                 "lib/cmake/agbox/agboxConfigVersion.cmake", "lib/pkgconfig/agbox.pc",
                 "share/doc/agents-sandbox/examples/cpp/run_command.cpp"):
        assert (package / "usr" / name).stat().st_size > 0, name


def test_the_guest_is_where_the_daemon_looks_for_it(package: Path, release_build: Path) -> None:
    guest = package / "usr/libexec/agents-sandbox/agbox-guest"
    assert guest.read_bytes() == (release_build / "bin" / "agbox-guest").read_bytes()
    assert os.access(guest, os.X_OK)
    # Nothing of the image that it runs in is needed.
    header = subprocess.run(["readelf", "--program-headers", str(guest)], check=True, text=True,
                            stdout=subprocess.PIPE).stdout
    assert "INTERP" not in header
