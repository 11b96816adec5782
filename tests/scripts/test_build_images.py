# SPDX-License-Identifier: Apache-2.0
"""scripts/build-images without an engine, and what the files of images/ must be: pinned, and of no particular
machine."""
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "images"
NAMES = ("base-runtime", "coding-runtime", "openclaw-runtime", "paseo-runtime")
# Set by the user, because npm's registry has no such package.
NOT_PINNED = {"PASEO_CLI"}
# Not of a program: the image below, the date of files, and the mark of a build.
NO_VERSION = {"BASE", "SOURCE_DATE_EPOCH", "BUILD"}


def build_images(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run([ROOT / "scripts" / "build-images", *arguments], text=True, timeout=60, check=False,
                          env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def dockerfile(name: str) -> str:
    return (IMAGES / name / "Dockerfile").read_text()


@pytest.mark.parametrize("arguments, error", [
    (["--tag"], "--tag needs a value"),
    (["--base", ""], "--base needs a value"),
    (["--fast"], "--fast: unknown option"),
    (["coding"], f"coding: no such image; one of {' '.join(NAMES)}"),
])
def test_wrong_usage_is_refused(arguments: list[str], error: str) -> None:
    result = build_images(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"build-images: {error}; see --help\n"


def test_help_names_every_image_and_option() -> None:
    result = build_images("--help")
    assert (result.returncode, result.stderr) == (0, "")
    source = (ROOT / "scripts" / "build-images").read_text()
    for word in (*NAMES, *re.findall(r"^    (--[a-z-]+)\)", source, re.M)):
        assert word in result.stdout
    assert result.stdout.count("\n  --") == 8


def test_an_engine_that_is_unreachable_is_an_error() -> None:
    result = build_images(DOCKER_HOST="unix:///nonexistent.sock")
    assert result.returncode == 1
    assert result.stderr.endswith("build-images: no Docker Engine is reachable; the output of docker version is above\n")


def test_every_directory_with_a_dockerfile_is_an_image_that_is_built() -> None:
    assert sorted(path.parent.name for path in IMAGES.glob("*/Dockerfile")) == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_program_has_an_exact_version(name: str) -> None:
    text = dockerfile(name)
    versions = dict(re.findall(r"^ARG ([A-Z_]+)(?:=(.*))?$", text, re.M))
    for argument in set(versions) - NO_VERSION - NOT_PINNED:
        assert re.fullmatch(r"\d+\.\d+\.\d+", versions[argument]), f"{argument}={versions[argument]}"
    # Nothing is installed but Debian's packages and what has a version, a hash or a lock file.
    for line in re.findall(r"^  (?:install_npm|npm|python3 -m pip) .*$", text, re.M):
        packages = [word for word in line.strip("; \\").split() if "@" in word]
        assert "--require-hashes" in line or "npm ci " in line or packages, line
        for package in packages:
            assert re.fullmatch(r'"(@[a-z-]+/)?[a-z-]+@\$[A-Z_]+"', package), package
    assert not re.search(r"curl .*\||wget|git clone|ADD http", text)


def test_uv_has_an_exact_version_and_hashes_for_both_architectures() -> None:
    text = (IMAGES / "build" / "uv.txt").read_text()
    assert re.search(r"^uv==\d+\.\d+\.\d+ \\$", text, re.M)
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", text)) == 2


def test_the_lock_file_has_a_digest_of_every_package_and_no_registry() -> None:
    directory = IMAGES / "openclaw-runtime"
    wanted = json.loads((directory / "package.json").read_text())["dependencies"]
    packages = json.loads((directory / "package-lock.json").read_text())["packages"]
    assert packages.pop("")["dependencies"] == wanted
    assert {name: packages[f"node_modules/{name}"]["version"] for name in wanted} == wanted
    for name, package in packages.items():
        # What is inside another package has that one's digest.
        assert package.get("inBundle") or package["integrity"].startswith("sha512-"), name
        assert "resolved" not in package, name


def test_no_file_names_a_server() -> None:
    """Mirrors and registries are settings of the machine that builds. A lock file names authors' pages."""
    files = [path for path in IMAGES.rglob("*") if path.is_file() and path.name != "package-lock.json"]
    assert len(files) > 10
    for path in files:
        assert not re.search(r"https?://", path.read_text()), path
