# SPDX-License-Identifier: Apache-2.0
"""The run behind scripts/test: steps in a fixed order, one tally, one closing line.

Checks come first because they are cheap, builds that several steps need come before those steps,
clang-tidy after them because it looks at what they compile: beside pytest, which mostly waits for
engines, and with only the time that it leaves. Fuzzing needs a build of its own, so the everyday
size only tries the committed inputs, as tests of the asan build. A step that fails never hides the
next.
"""
import argparse
import concurrent.futures
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from junit import Tally, tally_of_run

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT / "build" / "reports"
CORES = len(os.sched_getaffinity(0))
PYTHON = "/usr/bin/python3"
# The only tests with threads of our own below gRPC; the others gain nothing from ThreadSanitizer.
THREADED = "^(async|base|store|control|docker|guestlink)_"
PYTEST_FOLDERS = ("tests/scripts", "tests/kit", "tests/e2e", "tests/integration",
                  "tests/robustness")
PYTEST_FOUND_NOTHING = 5
FUZZ_SECONDS = 60


class Run:
    def __init__(self, arguments: argparse.Namespace):
        self.arguments = arguments
        self.tally = Tally()
        self.durations: list[tuple[str, float, str]] = []
        self.built: dict[str, bool] = {}

    def step(self, name: str, work: Callable[[], Tally]) -> None:
        print(f"==> {time.strftime('%H:%M:%S')} {name}", flush=True)
        started = time.monotonic()
        tally = work()
        seconds = time.monotonic() - started
        self.tally.add(tally)
        self.durations.append((name, seconds, tally.line()))
        print(f"    {name}: {tally.line()} ({seconds:.0f} s)", flush=True)

    def check(self, name: str, command: list[str]) -> None:
        """One check is one test; its words are shown only where it fails."""
        self.step(f"check {name}", lambda: judge(f"check {name}", call(command, quiet=True)))

    @contextlib.contextmanager
    def check_beside(self, name: str, command: list[str]) -> Iterator[None]:
        """A check that takes only the processor's idle time; its step is what remains of it when the
        steps beside it are done."""
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            idly = ["chrt", "--idle", "0", *command]
            running = pool.submit(run_to_end, idly, quiet=True, timeout=2400)
            yield
            self.step(f"check {name}", lambda: judge(f"check {name}", show(running.result())))

    def build(self, preset: str, targets: list[str] | None = None) -> bool:
        """Configures and builds once; a failed build is one failure, however many steps need it."""
        if preset not in self.built:
            self.step(f"build {preset}", lambda: self.build_now(preset, targets))
        return self.built[preset]

    def build_now(self, preset: str, targets: list[str] | None) -> Tally:
        code = call(["cmake", "--preset", preset], quiet=True)
        if code == 0:
            command = ["cmake", "--build", "--preset", preset]
            command += ["--target", *targets] if targets else []
            # Without a terminal ninja would print a line per file.
            command += [] if sys.stdout.isatty() else ["--", "--quiet"]
            code = call(command, quiet=False, timeout=3600)
        self.built[preset] = code == 0
        return Tally() if code == 0 else Tally(failed=[f"build {preset}"])

    def ctest(self, preset: str, only: str = "") -> None:
        if not self.build(preset):
            return
        name = f"ctest {preset}"

        def work() -> Tally:
            report = REPORTS / f"ctest-{preset}.xml"
            report.unlink(missing_ok=True)
            pattern = as_name_pattern(self.arguments.k) if self.arguments.k else only
            command = ["ctest", "--preset", preset, "-j", str(CORES), "--output-junit", str(report)]
            command += ["-R", pattern] if pattern else []
            code = call(command, quiet=True, timeout=2400)
            return tally_of_run(name, report, code, may_be_empty=bool(self.arguments.k))

        self.step(name, work)

    def pytest(self) -> None:
        if not self.build("release"):
            return
        folders = [folder for folder in PYTEST_FOLDERS if any((ROOT / folder).rglob("test_*.py"))]

        def work() -> Tally:
            report = REPORTS / "pytest.xml"
            report.unlink(missing_ok=True)
            # Root, because the tests make users, namespaces and engines. `env` carries through sudo
            # what the tests are told; nothing of root's may land in a user's clone.
            command = [] if os.geteuid() == 0 else ["sudo", "--"]
            command += ["env", "PYTHONDONTWRITEBYTECODE=1", f"CI={os.environ.get('CI', '')}",
                        f"AGBOX_BIN_DIR={ROOT}/build/release/bin",
                        PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                        f"--junitxml={report}"]
            # Much of their time is waiting for engines. Not for the long sizes, which are measured.
            command += ["--long"] if self.arguments.long else ["-n", "3", "--dist", "loadgroup"]
            command += ["-k", self.arguments.k] if self.arguments.k else []
            code = call(command + folders, quiet=False, timeout=7200 if self.arguments.long else 2400)
            if self.arguments.k and code == PYTEST_FOUND_NOTHING:
                return Tally()
            return tally_of_run("pytest", report, code)

        self.step("pytest", work)

    def tidy_command(self) -> list[str]:
        # asan has nearly every file, release the benchmarks.
        builds = [preset for preset in ("asan", "release") if self.build(preset)]
        command = ["scripts/tidy", *(f"--build=build/{preset}" for preset in builds)]
        return command + (["--costly"] if self.arguments.long else [])

    def fuzz(self) -> None:
        if call(["cmake", "--preset", "fuzz"], quiet=True) != 0:
            self.tally.add(Tally(failed=["configure fuzz"]))
            return
        programs = fuzz_programs()
        if programs and not self.build("fuzz", [program.name for program in programs]):
            return
        for program in programs:
            self.step(f"fuzz {program.name} ({FUZZ_SECONDS} s)",
                      lambda program=program: self.fuzz_one(program))

    def fuzz_one(self, program: Path) -> Tally:
        corpora = ROOT / "tests" / "fuzz" / "corpus"
        corpus = next((folder for folder in (corpora / program.name.removesuffix("_fuzz"),
                                             corpora / program.name) if folder.is_dir()), None)
        if corpus is None:
            return Tally(failed=[f"fuzz {program.name}: no corpus of its name in tests/fuzz/corpus"])
        found = ROOT / "build" / "fuzz" / "found" / program.name
        found.mkdir(parents=True, exist_ok=True)
        # New inputs go to `found`, the committed corpus is only read; a crash leaves its input there.
        command = [str(program), f"-max_total_time={FUZZ_SECONDS}", "-timeout=10", "-rss_limit_mb=2048",
                   f"-artifact_prefix={found}/", "-print_final_stats=1", str(found), str(corpus)]
        code = call(command, quiet=True, timeout=FUZZ_SECONDS + 300)
        return judge(f"fuzz {program.name}", code)

    def finish(self) -> int:
        print("\nStep by step:")
        for name, seconds, line in self.durations:
            print(f"  {seconds:6.0f} s  {name}: {line}")
        print(f"  {sum(seconds for _, seconds, _ in self.durations):6.0f} s  in all")
        for kind, names in (("Failed", self.tally.failed), ("Skipped", self.tally.skipped)):
            if names:
                print(f"{kind}:", *names, sep="\n  ")
        forbidden_skips = bool(self.tally.skipped) and os.environ.get("CI") == "true"
        if forbidden_skips:
            print("CI=true: a skipped test fails the run")
        print(self.tally.line(), flush=True)
        ran_nothing = self.tally.passed == 0
        return 1 if self.tally.failed or forbidden_skips or ran_nothing else 0


class Ended(NamedTuple):
    code: int
    text: str  # that has not been shown


def judge(name: str, code: int) -> Tally:
    return Tally(passed=1) if code == 0 else Tally(failed=[name])


def call(command: list[str], *, quiet: bool, timeout: float = 1200) -> int:
    return show(run_to_end(command, quiet=quiet, timeout=timeout))


def show(ended: Ended) -> int:
    if ended.code != 0:
        print(ended.text, end="", flush=True)
    return ended.code


def run_to_end(command: list[str], *, quiet: bool, timeout: float) -> Ended:
    """Runs from the top of the clone; `quiet` keeps the output for where the command fails."""
    output = subprocess.PIPE if quiet else None
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output,
                               stderr=subprocess.STDOUT if quiet else None)
    try:
        text, _ = process.communicate(timeout=timeout)
    except KeyboardInterrupt:
        end(process)
        raise
    except subprocess.TimeoutExpired:
        text = end(process)
        late = f"{' '.join(command)}: still running after {timeout:.0f} s; ended\n"
        return Ended(process.returncode or 1, late + as_text(text))
    return Ended(process.returncode, as_text(text))


def as_text(output: bytes | None) -> str:
    return (output or b"").decode(errors="replace")


def end(process: subprocess.Popen) -> bytes:
    """Politely first: pytest cleans up on SIGINT, sudo passes the signals on."""
    for number, patience in ((signal.SIGINT, 60), (signal.SIGTERM, 10), (signal.SIGKILL, None)):
        process.send_signal(number)
        try:
            return process.communicate(timeout=patience)[0] or b""
        except subprocess.TimeoutExpired:
            continue
    return b""


def as_name_pattern(words: str) -> str:
    """pytest's -k takes words with `and`, `or`, `not`; CTest a pattern: any of the plain words."""
    return "|".join(re.escape(word) for word in words.split() if word not in ("and", "or", "not"))


def fuzz_programs() -> list[Path]:
    """Every program of the fuzz build whose name ends in _fuzz, without building the rest."""
    listing = subprocess.run(["ninja", "-C", "build/fuzz", "-t", "targets", "all"], cwd=ROOT,
                             check=True, stdout=subprocess.PIPE, text=True).stdout
    names = re.findall(r"^(\S*_fuzz): CXX_EXECUTABLE_LINKER", listing, flags=re.MULTILINE)
    return [ROOT / "build" / "fuzz" / name for name in sorted(names)]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/test")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--fast", action="store_true")
    size.add_argument("--long", action="store_true")
    size.add_argument("--fuzz", action="store_true")
    parser.add_argument("-k", metavar="WORDS", default="")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    shutil.rmtree(REPORTS, ignore_errors=True)
    REPORTS.mkdir(parents=True)
    run = Run(arguments)
    if arguments.fuzz:
        run.fuzz()
        return run.finish()
    if not arguments.k:
        run.check("format", ["scripts/format", "--check"])
        run.check("layers", ["scripts/check-layers"])
        run.check("licence lines", ["scripts/check-spdx"])
        if (ROOT / "scripts" / "check-contract").exists():
            run.check("contract", ["scripts/check-contract"])
        run.check("engine calls", ["scripts/check-engine-contract"])
        run.check("failpoints", ["scripts/check-failpoints"])
        run.check("seccomp profile", ["scripts/make-seccomp-profile", "--check"])
        run.check("documents", ["scripts/check-docs"])
    run.ctest("asan")
    if not arguments.fast:
        run.ctest("tsan", only=THREADED)
    if arguments.k:
        run.pytest()
    elif arguments.long:
        # Its tests are measured: nothing runs beside them.
        run.pytest()
        run.fuzz()
        run.check("clang-tidy", run.tidy_command())
    else:
        with run.check_beside("clang-tidy", run.tidy_command()):
            run.pytest()
    return run.finish()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
