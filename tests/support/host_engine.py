# SPDX-License-Identifier: Apache-2.0
"""The engine at the default socket, for tests that can share one. It is started if none is reachable, by
the same script that users have."""

import os
import subprocess
from pathlib import Path

from support.contract import REPOSITORY
from support.engine_api import EngineApi
from support.process import LoggedProcess, all_processes, base_environment, descendants, run

DEFAULT_SOCKET = Path("/var/run/docker.sock")


class HostEngine:
    """Keeps the engine in use until end()."""

    socket = DEFAULT_SOCKET
    docker_host = f"unix://{DEFAULT_SOCKET}"
    network_namespace = "/proc/self/ns/net"

    def __init__(self) -> None:
        self.api = EngineApi(DEFAULT_SOCKET)
        # The command waits for the end of its input, which we close.
        hold, self._held = os.pipe()
        self._process = LoggedProcess(
            "scripts/with-engine",
            [
                str(REPOSITORY / "scripts" / "with-engine"),
                "sh",
                "-c",
                "echo 'engine in use'; exec cat",
            ],
            base_environment(),
            stdin=hold,
        )
        os.close(hold)
        try:
            self._process.wait_for_line("engine in use".__eq__, "an engine", timeout=90)
        except BaseException:
            self.end()
            raise

    def __repr__(self) -> str:
        return "the host's engine"

    def docker(self, *arguments: str, **options) -> subprocess.CompletedProcess:
        return run("docker", "-H", self.docker_host, *arguments, **options)

    def processes(self) -> set[int]:
        return {self._process.pid} | descendants([self._process.pid], all_processes())

    def end(self) -> None:
        os.close(self._held)
        code = self._process.wait(timeout=90)
        if code != 0:
            raise RuntimeError(f"scripts/with-engine: exit {code}:\n{self._process.tail()}")
