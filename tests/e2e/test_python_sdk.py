# SPDX-License-Identifier: Apache-2.0
"""The Python SDK, its examples and its packages, on a real engine."""

import os
import re
import subprocess
import textwrap
from pathlib import Path

import pytest
from support.documents import blocks
from support.images import make_image
from support.process import run
from support.sandboxes import CONFIG, left_over, started
from support.sdk import REPOSITORY, sdk_environment, sdk_python

SDK = REPOSITORY / "sdk" / "python"
UV = REPOSITORY / "build" / "tools" / "uv" / "bin" / "uv"


@pytest.fixture
def daemon(make_daemon, engine):
    """As an ordinary daemon of root: the SDK's programs run as root too."""
    return started(make_daemon(engine=engine, config=CONFIG))


def test_the_python_sdk_does_what_its_guide_says(daemon, engine, tmp_path: Path) -> None:
    environment = {**sdk_environment(daemon), "AGBOX_TEST_IMAGE": make_image(engine.api, "python-sdk:1")}
    cases = str(REPOSITORY / "tests" / "e2e" / "python_sdk" / "cases.py")
    options = ["-q", "-c", str(SDK / "pyproject.toml"), "--noconftest", f"--basetemp={tmp_path}/cases"]
    ran = run(sdk_python(), "-m", "pytest", *options, cases, env=environment, check=False, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert left_over(engine) == []


@pytest.mark.parametrize("example, words", [
    ("hello.py", "0 hello from outside\n/tmp\n"),
    ("hello_sync.py", "0 hello from outside\n/tmp\n"),
    ("live_output.py", "ended with 0"),
    ("terminal.py", "42"),
])
def test_an_example_runs(example: str, words: str, daemon, engine) -> None:
    image = make_image(engine.api, "python-sdk:1")
    ran = run(sdk_python(), str(SDK / "examples" / example), image, env=sdk_environment(daemon), timeout=120)
    assert words in ran.stdout
    assert left_over(engine) == []


# Runs the parts of programs that the guide shows, in a sandbox with what they expect to find.
PARTS = """
import asyncio
from agents_sandbox import Sandbox

{functions}

async def main():
    async with Sandbox.create(image="debian:12") as sandbox:
        await sandbox.run("mkdir dist; echo report >report.md")
        for part in {names}:
            await part(sandbox)
        print("all of them")

asyncio.run(main())
"""


def is_program(example: str) -> bool:
    """Not a part of one, which awaits outside of a function."""
    try:
        compile(example, "example", "exec")
    except SyntaxError:
        return False
    return True


def test_the_examples_of_the_guide_run(daemon, engine, tmp_path: Path) -> None:
    make_image(engine.api, "debian:12")  # by name; the examples need only a shell
    examples = blocks("docs/sdk_async_usage.md", "python") + blocks("sdk/python/README.md", "python")
    programs = [example for example in examples if is_program(example)]
    parts = [example for example in examples if not is_program(example)]
    assert programs and parts
    for name in ("src", "results"):
        (tmp_path / name).mkdir()
    for program in programs:
        run(sdk_python(), "-c", program, env=sdk_environment(daemon), cwd=tmp_path, timeout=120)
    functions = "\n".join(f"async def part_{number}(sandbox):\n{textwrap.indent(part, '    ')}"
                          for number, part in enumerate(parts))
    names = ", ".join(f"part_{number}" for number in range(len(parts)))
    together = PARTS.format(functions=functions, names=f"[{names}]")
    ran = run(sdk_python(), "-c", together, env=sdk_environment(daemon), cwd=tmp_path, timeout=120)
    assert ran.stdout.endswith("all of them\n")
    assert (tmp_path / "results" / "dist").is_dir()
    assert left_over(engine) == []


INPUT_ACROSS_A_KILL = """
import os, sys, threading
from agents_sandbox.sync import Sandbox

data, received = os.urandom(8 << 20), bytearray()
with Sandbox.create(image=sys.argv[1]) as sandbox, sandbox.start(["cat"], stdin=True) as process:
    def write():
        process.write(data)
        process.end_input()
    writer = threading.Thread(target=write)
    writer.start()
    for chunk in process:
        if len(received) < 1 << 20 <= len(received) + len(chunk.data):
            print("under way", flush=True)
        received += chunk.data
    writer.join()
    print("complete" if received == data else f"{len(received)} bytes")
"""


def test_input_is_neither_lost_nor_doubled_by_a_kill_of_the_daemon(daemon, engine) -> None:
    image = make_image(engine.api, "python-sdk:1")
    with subprocess.Popen([sdk_python(), "-c", INPUT_ACROSS_A_KILL, image], env=sdk_environment(daemon),
                          stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout.readline() == "under way\n"
            daemon.kill()
            daemon.start()
            assert program.stdout.read() == "complete\n"
        except BaseException:
            program.kill()
            raise
    assert left_over(engine) == []


@pytest.mark.parametrize("number", [0, 1])
def test_a_program_of_the_guide_runs(number: int, daemon, engine) -> None:
    guide = (REPOSITORY / "docs" / "sdk_async_usage.md").read_text()
    programs = [block for block in re.findall(r"```python\n(.*?)```", guide, re.DOTALL) if "import Sandbox" in block]
    program = programs[number].replace("debian:12", make_image(engine.api, "python-sdk:1"))
    ran = run(sdk_python(), "-c", program, env=sdk_environment(daemon), timeout=120)
    assert ran.stdout.strip()
    assert left_over(engine) == []


def test_wheel_and_sdist_are_built_offline_and_the_wheel_works(daemon, tmp_path: Path) -> None:
    home = {**os.environ, "HOME": str(tmp_path), "UV_CACHE_DIR": str(tmp_path / "cache")}
    run(str(UV), "build", "--offline", "--quiet", "--python", "/usr/bin/python3", "--out-dir", str(tmp_path), str(SDK),
        env=home, timeout=120)
    (wheel,) = tmp_path.glob("agents_sandbox_sdk-*.whl")
    (source,) = tmp_path.glob("agents_sandbox_sdk-*.tar.gz")
    assert source.stat().st_size > 10_000
    environment = {**sdk_environment(daemon), "PYTHONPATH": str(wheel)}
    program = "from agents_sandbox import sync; print(sync.AgentsSandboxClient().ping().daemon, sync.__file__)"
    ran = run(sdk_python(), "-c", program, env=environment, timeout=60)
    assert ran.stdout.startswith(f"agboxd {wheel}/")


def test_the_import_takes_little_more_than_that_of_grpc() -> None:
    """The least of several times each, in turns."""
    program = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"

    def seconds(module: str) -> float:
        return float(run(sdk_python(), "-c", program.format(module), env=sdk_environment(), timeout=60).stdout)

    pairs = [(seconds("grpc"), seconds("agents_sandbox, agents_sandbox.sync")) for _ in range(7)]
    base, ours = (min(column) for column in zip(*pairs))
    assert ours - base < 0.25, f"{ours:.3f} s, and {base:.3f} s for grpc alone"
