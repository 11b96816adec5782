# SPDX-License-Identifier: Apache-2.0
"""A service of the host that every command of the clients tries to reach, which no sandbox may."""

import contextlib
from collections.abc import Iterator

from support.contract import REPOSITORY
from support.engine import PrivateEngine
from support.process import LoggedProcess, base_environment

ADDRESS = "172.30.0.1"  # the host's on the bridge of other containers
PORT = 7010
_SERVER = REPOSITORY / "tests" / "integration" / "isolation" / "echo_server.py"


@contextlib.contextmanager
def host_service(engine: PrivateEngine) -> Iterator[None]:
    """An echo service on every address of the engine's host."""
    enter = ["nsenter", f"--net={engine.network_namespace}", "--"]
    argv = [*enter, "/usr/bin/python3", str(_SERVER), f"tcp/0.0.0.0/{PORT}"]
    server = LoggedProcess("service of the host", argv, base_environment())
    try:
        server.wait_for_line("ready".__eq__, "the service", timeout=20)
        yield
    finally:
        server.kill()
