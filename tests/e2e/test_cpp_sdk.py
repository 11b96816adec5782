# SPDX-License-Identifier: Apache-2.0
"""The C++ SDK as it is installed: what its library exports, and its examples, which are compiled from the installed
tree with both compilers and run against a real daemon."""

import os
import re
import shutil
import subprocess
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.images import make_image
from support.process import base_environment
from support.sandboxes import CONFIG, left_over, started, wait_until
from support.sdk import REPOSITORY, run_with_restarts
from support.service_images import POSTGRES, make_service_images

# They share one installation and its programs; and one of them needs the images of servers.
pytestmark = pytest.mark.xdist_group("servers")

RELEASE = REPOSITORY / "build" / "release"
EXAMPLES = REPOSITORY / "sdk" / "cpp" / "examples"
GUIDE = REPOSITORY / "docs" / "sdk_cpp_usage.md"
COMPILERS = ("g++", "clang++-19")
STRICT = ("-std=c++23", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror")


def output_of(*argv: str | Path, **options) -> str:
    run = subprocess.run([str(word) for word in argv], text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, timeout=300, **options)
    assert run.returncode == 0, f"{argv}: {run.stdout}"
    return run.stdout


@pytest.fixture(scope="module")
def prefix() -> Iterator[Path]:
    """What --component sdk installs. As the owner of the build, so that nothing of root's stays in it."""
    if not (RELEASE / "sdk" / "cpp" / "libagbox.a").is_file():
        pytest.fail(f"{RELEASE} has no C++ SDK; build it with `cmake --preset release && cmake --build --preset "
                    "release`", pytrace=False)
    owner = RELEASE.stat()
    identity = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory(prefix="agb-sdk-") as directory:
        os.chown(directory, owner.st_uid, owner.st_gid)
        output_of("cmake", "--install", RELEASE, "--prefix", f"{directory}/usr", "--component", "sdk", **identity)
        yield Path(directory) / "usr"


@pytest.fixture(scope="module")
def library(prefix: Path) -> Path:
    (found,) = prefix.rglob("libagbox.a")
    return found


def environment(prefix: Path, library: Path) -> dict[str, str]:
    """In which both package systems find the SDK."""
    return {**base_environment(), "CMAKE_PREFIX_PATH": str(prefix),
            "PKG_CONFIG_PATH": str(library.parent / "pkgconfig")}


@pytest.fixture(scope="module")
def programs(prefix: Path, library: Path) -> Iterator[Path]:
    """A directory for each compiler, with all examples."""
    with tempfile.TemporaryDirectory(prefix="agb-examples-") as directory:
        for compiler in COMPILERS:
            build = Path(directory) / compiler
            output_of("cmake", "-S", EXAMPLES, "-B", build, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={compiler}",
                      f"-DCMAKE_CXX_FLAGS={' '.join(STRICT)}", env=environment(prefix, library))
            output_of("cmake", "--build", build)
        yield Path(directory)


def test_only_the_client_is_installed(prefix: Path) -> None:
    names = {str(path.relative_to(prefix / "include")) for path in (prefix / "include").rglob("*.h")}
    assert {"agbox/agbox.h", "agbox/client.h"} <= names
    assert not [name for name in names if "raw_client" in name or name.endswith(".pb.h")]
    assert not list(prefix.rglob("agboxd")), "the component has nothing else"


def test_the_library_is_whole_and_its_global_symbols_are_those_of_the_client(library: Path) -> None:
    lines = output_of("nm", "--demangle", library).splitlines()
    symbols = [(kind, name) for line in lines if (match := re.match(r"[0-9a-f ]{16} (\S) (.*)", line))
               for kind, name in [match.groups()]]
    exported = [name for kind, name in symbols if kind.isupper() and kind != "U"]
    assert any(name.startswith("agbox::sdk::Client::create") for name in exported)
    assert [name for name in exported if not name.startswith("agbox::sdk::")] == []
    assert [name for name in exported if "::Session::" in name] == [], "what is inside stays inside"
    needed = [name for kind, name in symbols if kind == "U"]
    assert [name for name in needed if re.match(r"(agbox|grpc|google|absl|re2|ares_|upb|gpr_)", name)] == []


def test_the_headers_compile_in_any_order_and_without_grpc(prefix: Path) -> None:
    headers = sorted((prefix / "include" / "agbox").iterdir(), reverse=True)
    source = "".join(f"#include <agbox/{header.name}>\n" for header in headers)
    for compiler in COMPILERS:
        command = (compiler, *STRICT, "-x", "c++", "-I", prefix / "include", "-")
        output_of(*command, "-fsyntax-only", input=source)
        assert not re.search(r"/(grpc|grpcpp|google|absl)/", output_of(*command, "-M", input=source))


@pytest.mark.parametrize("compiler", COMPILERS)
def test_pkg_config_is_enough_to_link_a_program(compiler: str, prefix: Path, library: Path, tmp_path: Path) -> None:
    flags = output_of("pkg-config", "--cflags", "--libs", "agbox", env=environment(prefix, library)).split()
    program = tmp_path / "run_command"
    output_of(compiler, *STRICT, EXAMPLES / "run_command.cpp", "-o", program, *flags)
    # Also: nothing but the C and C++ libraries is loaded.
    loaded = re.findall(r"NEEDED.*\[(.*?)\.so", output_of("readelf", "--dynamic", program))
    assert set(loaded) <= {"libstdc++", "libm", "libgcc_s", "libc", "ld-linux-x86-64"}
    nowhere = {**base_environment(), "XDG_RUNTIME_DIR": str(tmp_path)}
    run = subprocess.run([str(program)], env=nowhere, text=True, stderr=subprocess.PIPE, timeout=30)
    assert run.returncode == 1 and run.stderr.startswith("agboxd is not running: socket "), run.stderr


def test_a_package_of_another_version_is_not_found(prefix: Path, library: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(later LANGUAGES CXX)\nfind_package(agbox 999.0 REQUIRED)\n")
    run = subprocess.run(["cmake", "-S", str(tmp_path), "-B", str(tmp_path / "build")], text=True, timeout=60,
                         env=environment(prefix, library), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert run.returncode != 0 and "agboxConfig.cmake, version: " in run.stdout, run.stdout


def test_the_examples_do_what_they_say(programs: Path, make_daemon, engine, test_user, directory, say) -> None:
    make_image(engine.api, "debian:12")  # by name; the examples need only a shell
    make_service_images(engine.api, say)
    engine.api.call("POST", f"/images/{POSTGRES}/tag", query={"repo": "postgres", "tag": "15"})
    daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
    test_user.share(directory)

    def run(compiler: str, name: str, *arguments: str) -> list[str]:
        program = shutil.copy(programs / compiler / name, directory / f"{compiler}-{name}")
        result = subprocess.run(test_user.command([str(program), *arguments]), env=daemon.environment, cwd=daemon.home,
                                text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        assert result.returncode == 0, result.stderr
        return result.stdout.replace("\r\n", "\n").splitlines()

    for compiler in COMPILERS:
        assert run(compiler, "run_command") == ["hello from agbox", "3", "apple", "pear"]
    followed = run("g++", "follow")
    assert followed[:2] == ["one", "FINISHED"]
    assert "code 5" in followed and followed[-1] == "3 SANDBOX_READY", followed
    assert run("clang++-19", "copy_files", str(daemon.home)) == ["2 entries", "apple", "pear"]
    assert (daemon.home / "results" / "sorted.txt").read_text() == "apple\npear\n"
    printed = run("g++", "database")
    assert printed[0] == "42" and printed[1].startswith("postgres (PostgreSQL) 15"), printed
    assert sorted(run("clang++-19", "parallel")) == ["111", "222", "333"]
    wait_until(lambda: daemon.agbox("ps", "-q").stdout == "", "the deletions that the destructors requested")
    assert left_over(engine) == []


def test_a_killed_daemon_is_not_noticed(prefix: Path, library: Path, make_daemon, engine, test_user, directory) -> None:
    flags = output_of("pkg-config", "--cflags", "--libs", "agbox", env=environment(prefix, library)).split()
    program = directory / "restart"
    output_of("g++", *STRICT, REPOSITORY / "tests" / "e2e" / "cpp_sdk" / "restart.cpp", "-o", program, *flags)
    test_user.share(directory)
    make_image(engine.api, "debian:12")
    daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
    code, text = run_with_restarts([str(program)], daemon)
    assert code == 0, text
    assert left_over(engine) == []


def test_the_guide_shows_the_examples() -> None:
    sources = "".join(path.read_text() for path in EXAMPLES.glob("*.cpp"))
    blocks = re.findall(r"^```cpp\n(.*?)^```", GUIDE.read_text(), re.M | re.S)
    assert len(blocks) >= 5
    for block in blocks:
        shown = [textwrap.indent(block, indent) for indent in ("", "  ", "    ")]
        assert any(text in sources for text in shown), f"this is in no example:\n{block}"
