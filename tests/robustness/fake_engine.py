# SPDX-License-Identifier: Apache-2.0
"""A fake engine in its own process, and the matching daemon. Both are built with the other test programs, in
build/*/tests."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from support.engine_api import EngineApi
from support.process import LoggedProcess, base_environment

IMAGE = "robust:1"


class FakeEngine:
    """Runs until end(). Its containers are fakes with guests that behave like agbox-guest."""

    network_namespace = None

    def __init__(self, programs: Path, directory: Path):
        program = programs / "fake_engine"
        if not program.exists():
            raise RuntimeError(f"{program} is not there; build the target fake_engine")
        self._ran = directory / "ran"
        self._ran.mkdir()
        self._process = LoggedProcess(
            "fake engine",
            [str(program), str(self._ran), IMAGE],
            {**base_environment(), "TMPDIR": str(directory)},
        )
        line = self._process.wait_for_line(lambda text: text.startswith("/"), "its socket", 30)
        self.socket = Path(line)
        self.docker_host = f"unix://{line}"
        self.api = EngineApi(self.socket)

    def links(self) -> list[str]:
        return []

    def ran(self, container_id: str) -> list[str]:
        file = self._ran / container_id
        return file.read_text(encoding="utf-8").split() if file.exists() else []

    def listening(self) -> None:
        return None

    def rules(self, tables: Iterable[str]) -> None:
        return None

    def run_again(self, container_id: str, exec_id: str) -> None:
        """Simulates a command that ran twice."""
        with open(self._ran / container_id, "a", encoding="utf-8") as file:
            file.write(f"{exec_id}\n")

    def end(self) -> None:
        code = self._process.stop()
        if code != 0:
            raise RuntimeError(f"the fake engine ended with {code}:\n{self._process.tail()}")


def install_daemon(program: Path, directory: Path) -> Path:
    """The directory of an agboxd for fakes, with a placeholder for the guest, which is never run."""
    directory.mkdir()
    shutil.copy(program, directory / "agboxd")
    guest = directory / "agbox-guest"
    guest.write_text("a guest program")
    guest.chmod(0o755)
    return directory
