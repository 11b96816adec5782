# SPDX-License-Identifier: Apache-2.0
"""What scripts/package makes: what is in it, that it is the same every time, and that the SBOM says what is linked."""

import gzip
import hashlib
import json
import os
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
from support.contract import REPOSITORY
from support.process import base_environment, run
from support.release import Release

pytestmark = pytest.mark.xdist_group("packages")

PROGRAMS = ("./usr/bin/agboxd", "./usr/bin/agbox", "./usr/libexec/agents-sandbox/agbox-guest")


@pytest.fixture(scope="module")
def tree(release: Release, tmp_path_factory) -> Path:
    return release.tree(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="module")
def sbom(release: Release) -> dict:
    return json.loads(release.sbom.read_text())


def linked_to(sbom: dict, program: str, kind: str) -> set[str]:
    """The names of the components that a program has in this way."""
    (file,) = [entry["SPDXID"] for entry in sbom["files"] if entry["fileName"] == program]
    names = {package["SPDXID"]: package["name"] for package in sbom["packages"]}
    return {names[relation["relatedSpdxElement"]] for relation in sbom["relationships"]
            if relation["spdxElementId"] == file and relation["relationshipType"] == kind}


def test_the_package_says_what_it_needs(release):
    source = (REPOSITORY / "CMakeLists.txt").read_text()
    assert release.field("Version") == release.version
    assert f"project(agents-sandbox VERSION {release.version} " in source
    assert release.field("Architecture") == run("dpkg", "--print-architecture").stdout.strip()
    depends = {entry.split(" ")[0] for entry in release.field("Depends").split(", ")}
    assert depends == {"libc6", "libmnl0", "libcap2-bin"}
    assert "docker" in release.field("Recommends")


def test_only_the_daemon_is_not_for_everyone(release):
    listing = run("dpkg-deb", "--contents", release.package).stdout.splitlines()
    assert {line.split()[1] for line in listing} == {"root/root"}
    modes = {line.split()[-1]: line.split()[0] for line in listing}
    assert modes["./usr/bin/agboxd"] == "-rwxr-x---"
    others = {mode for name, mode in modes.items() if name != "./usr/bin/agboxd"}
    assert others == {"drwxr-xr-x", "-rwxr-xr-x", "-rw-r--r--"}


def test_the_guest_is_that_of_the_build(tree, bin_dir):
    """Which every build directory has with the same bytes."""
    assert (tree / PROGRAMS[2]).read_bytes() == (bin_dir / "agbox-guest").read_bytes()


def test_the_tarball_has_the_files_of_the_package(release, tree):
    def sums(root: Path, skipped: tuple[str, ...]) -> dict[str, str]:
        return {name: hashlib.sha256(path.read_bytes()).hexdigest()
                for path in root.rglob("*") if path.is_file()
                if not (name := str(path.relative_to(root))).startswith(skipped)}

    unpacked = tree.parent / "tarball"
    with tarfile.open(release.tarball) as tarball:
        assert {(member.uid, member.gid) for member in tarball} == {(0, 0)}
        tarball.extractall(unpacked)
    (top,) = unpacked.iterdir()
    assert top.name == release.tarball.name.removesuffix(".tar.gz")
    assert (top / "VERSION").read_text() == f"{release.version}\n"
    assert (top / "install.sh").read_bytes() == release.installer.read_bytes()
    assert sums(top, ("VERSION", "install.sh")) == sums(tree / "usr", ("share/lintian/",))


def test_the_checksums_are_those_of_all_files(release):
    done = run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=release.directory)
    others = {path.name for path in release.directory.iterdir()} - {"SHA256SUMS"}
    assert {line.split(":")[0] for line in done.stdout.splitlines()} == others and len(others) == 4


def test_no_file_names_the_build(tree, bin_dir):
    for path in tree.rglob("*"):
        if path.is_file():
            content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            for directory in (REPOSITORY, bin_dir.parent):
                assert os.fsencode(directory) not in content, f"{path} holds {directory}"


def test_packing_twice_gives_the_same_bytes(release, make_release, directory):
    """By a user with other settings, in another place."""
    other = directory / "with a longer name"
    other.mkdir()
    again = make_release(other, TZ="Asia/Kolkata", LC_ALL="C", TMPDIR="/var/tmp")
    assert again.checksums.read_text() == release.checksums.read_text()


@pytest.mark.long
def test_building_twice_gives_the_same_bytes(directory):
    """From clones of the last commit in directories of different names, without ccache."""
    commands = ("cmake --preset release",
                "cmake --build --preset release --target agboxd agbox agbox-guest",
                "scripts/package --build build/release")
    clones = (directory / "a", directory / "another-directory-with-a-long-name")
    for clone in clones:
        run("git", "-c", "safe.directory=*", "clone", "--quiet", "--no-hardlinks", REPOSITORY, clone)
    made = []
    for clone in clones:
        for command in commands:
            run(*command.split(), cwd=clone, timeout=3600, env=base_environment() | {"CCACHE_DISABLE": "1"})
        made.append((clone / "build/packages/SHA256SUMS").read_text())
    assert made[0] == made[1]


def test_the_manual_of_the_daemon_has_what_its_help_has(tree, bin_dir):
    page = gzip.decompress((tree / "usr/share/man/man1/agboxd.1.gz").read_bytes()).decode().replace("\\-", "-")
    text = run(bin_dir / "agboxd", "--help").stdout
    words = re.findall(r"--[a-z]+|SIG[A-Z]+|\$XDG_[A-Z_]+/[\w./-]+|CAP_NET_ADMIN", text)
    assert len(words) >= 8
    assert [word for word in words if word not in page] == []


# --- the SBOM ---


def test_the_sbom_lists_every_file_with_its_checksum(sbom, tree):
    listed = {entry["fileName"]: entry["checksums"][1]["checksumValue"] for entry in sbom["files"]}
    there = {f"./{path.relative_to(tree)}": hashlib.sha256(path.read_bytes()).hexdigest()
             for path in tree.rglob("*") if path.is_file()}
    assert listed == there
    assert set(PROGRAMS) <= listed.keys()


def test_the_sbom_says_what_programs_load(sbom, tree):
    """dpkg knows the packages of the libraries that the loader finds."""
    for program in PROGRAMS:
        dynamic = run("readelf", "--dynamic", "--wide", tree / program).stdout
        sonames = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
        owners = {run("dpkg-query", "--search", f"*-linux-gnu/{name}").stdout.split(":")[0] for name in sonames}
        assert linked_to(sbom, program, "DYNAMIC_LINK") == owners, program
    assert linked_to(sbom, PROGRAMS[2], "DYNAMIC_LINK") == set(), "the guest loads nothing"


def test_the_sbom_says_what_is_linked_in(sbom):
    daemon, command_line, guest = (linked_to(sbom, program, "STATIC_LINK") for program in PROGRAMS)
    assert {"libgrpc++-dev", "libprotobuf-dev", "libsqlite3-dev", "libnftnl-dev", "libsodium-dev", "libstdc++-12-dev"} <= daemon
    assert {"libboost1.81-dev", "libtomlplusplus-dev"} <= daemon, "of headers alone"
    assert "libcli11-dev" in command_line
    assert not {"libsqlite3-dev", "libnftnl-dev"} & command_line
    assert {"libc6-dev", "libprotobuf-dev"} <= guest
    assert not {"libgrpc-dev", "libgrpc++-dev", "libsqlite3-dev"} & guest
    tests = {"libgtest-dev", "libgmock-dev", "libbenchmark-dev"}
    assert not tests & (daemon | command_line | guest), "only what is in these programs"


def test_the_sbom_has_debians_versions(sbom):
    packages = [package for package in sbom["packages"] if package["name"] != "agents-sandbox"]
    assert len(packages) > 15
    for package in packages:
        shown = run("dpkg-query", "--show", "--showformat=${Version}", package["name"]).stdout
        assert package["versionInfo"] == shown
        (purl,) = [entry["referenceLocator"] for entry in package["externalRefs"]]
        assert purl.startswith("pkg:deb/debian/") and "+" not in purl


def test_every_reference_of_the_sbom_resolves(sbom):
    known = {"SPDXRef-DOCUMENT"} | {entry["SPDXID"] for part in ("packages", "files") for entry in sbom[part]}
    assert len(known) == 1 + len(sbom["packages"]) + len(sbom["files"]), "no two have the same"
    assert all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", name) for name in known)
    for relation in sbom["relationships"]:
        assert {relation["spdxElementId"], relation["relatedSpdxElement"]} <= known


def test_the_notices_are_of_all_that_is_linked_in(sbom, tree):
    notices = gzip.decompress((tree / "usr/share/doc/agents-sandbox/THIRD-PARTY-NOTICES.gz").read_bytes()).decode()
    for program in PROGRAMS:
        name = program.rpartition("/")[2]
        for package in linked_to(sbom, program, "STATIC_LINK"):
            (head,) = re.findall(rf"^{re.escape(package)} .*, in (.*)$", notices, re.M)
            assert name in head.split(", ")


# --- what is refused ---


def pack(*arguments: str | Path, **environment: str) -> str:
    """The complaint of scripts/package."""
    done = subprocess.run([REPOSITORY / "scripts" / "package", *arguments], env=os.environ | environment, text=True,
                          timeout=60, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 1
    return done.stdout


def test_a_directory_that_is_no_build_is_refused(directory):
    output = directory / "output"
    assert "is no build directory" in pack("--build", directory, "--output", output)
    assert not output.exists()


def test_a_wrong_date_is_refused(bin_dir, directory):
    complaint = pack("--build", bin_dir.parent, "--output", directory / "output", SOURCE_DATE_EPOCH="yesterday")
    assert complaint.startswith('SOURCE_DATE_EPOCH is "yesterday"; set it to')
