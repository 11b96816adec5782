# SPDX-License-Identifier: Apache-2.0
"""Where the daemon of this user listens."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import quote

from agents_sandbox.errors import DaemonUnreachableError, SandboxClientError

_MAX_SOCKET_PATH = 107


def default_socket_path() -> str:
    directory = os.environ.get("XDG_RUNTIME_DIR", "")
    if directory:
        return str(Path(directory).absolute() / "agbox" / "agboxd.sock")
    if sys.platform == "darwin":
        return str(Path.home() / "Library" / "Application Support" / "agbox" / "agboxd.sock")
    raise SandboxClientError(
        "cannot determine the socket of agboxd: XDG_RUNTIME_DIR is not set; log in with a session, or set it to "
        f"/run/user/{os.getuid()}"
    )


def target_of(socket_path: str) -> str:
    """gRPC parses a target as a URI, and resolves one that it cannot parse with DNS."""
    if len(os.fsencode(socket_path)) > _MAX_SOCKET_PATH:
        raise DaemonUnreachableError(
            f"socket path {socket_path} is too long: the limit is {_MAX_SOCKET_PATH} bytes; "
            "set XDG_RUNTIME_DIR to a shorter path"
        )
    return "unix://" + quote(os.fsencode(socket_path), safe="/")
