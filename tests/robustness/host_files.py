# SPDX-License-Identifier: Apache-2.0
"""Files and ports of the host that sandboxes of a run are created with. Every sandbox has files of its own, so that a
command that reads those of another is noticed; a tool's are in the home directory of the daemon's user."""

import os
import random
from pathlib import Path
from typing import Any

from robustness.history import Attachments, Recorder
from support.daemon import PrivateDaemon

# In the network namespace of a run, which nobody else uses. Fewer than sandboxes that want one.
PORTS = range(18200, 18202)
_INSIDE = 7004
_SHARE = 0.5  # of the sandboxes
_SHARE_WITH_PORT = 0.8  # of these
_TOOL, _TOOL_DIRECTORY = "codex", ".codex"
_READ_ONLY, _WRITABLE, _COPIED = "/srv/read-only", "/srv/writable", "/srv/copied"
_TOOL_TARGET = f"/home/agbox/{_TOOL_DIRECTORY}"


class HostFiles:
    def __init__(self, daemon: PrivateDaemon, recorder: Recorder):
        self._daemon, self._recorder = daemon, recorder
        self._root = self._make(daemon.directory / "files")
        self._kept: list[Path] = []  # that no sandbox may change
        self._written: dict[str, Path] = {}  # by sandbox
        self._tool = self._make(daemon.home / _TOOL_DIRECTORY)
        self._write(self._tool / "value", "tool\n")

    def choose(self, rng: random.Random, sandbox_id: str) -> Attachments:
        """For a share of the sandboxes."""
        is_meant, has_port, port = rng.random() < _SHARE, rng.random() < _SHARE_WITH_PORT, rng.choice(PORTS)
        if not is_meant:
            return Attachments()
        return self.attachments(sandbox_id, port if has_port else None)

    def attachments(self, sandbox_id: str, port: int | None = None) -> Attachments:
        """A read-only and a writable mount, a copy and a tool, and a published port if there is one."""
        own = self._make(self._root / sandbox_id)
        names = ("read-only", "writable", "copied")
        read_only, writable, copied = (self._make(own / name) for name in names)
        content = ""
        for directory in (read_only, writable, copied):
            content += self._write(directory / "value", f"{directory.name} of {sandbox_id}\n")
        self._written[sandbox_id] = writable / "ran"
        return Attachments(
            mounts=((str(read_only), _READ_ONLY, False), (str(writable), _WRITABLE, True)),
            copies=((str(copied), _COPIED),),
            tools=(_TOOL,),
            resources=((_TOOL_DIRECTORY, str(self._tool), _TOOL_TARGET),),
            ports=((port, _INSIDE),) if port else (),
            files=tuple(f"{target}/value" for target in (_READ_ONLY, _WRITABLE, _COPIED, _TOOL_TARGET)),
            content=content + "tool\n",
            written=f"{_WRITABLE}/ran",
        )

    def written(self) -> dict[str, list[str]]:
        """What commands have written to the writable mounts, by sandbox."""
        return {
            sandbox_id: file.read_text(encoding="utf-8").split() if file.exists() else []
            for sandbox_id, file in self._written.items()
        }

    def inspect(self) -> dict[str, dict[str, Any]]:
        """Every file that no sandbox may change."""
        return {f"file {file}": _seen(file) for file in self._kept}

    def guest_directories(self) -> list[str]:
        """Those of the daemon's guests, which end with their containers."""
        parents = (*self._daemon.directory.glob("s/links/*"), *self._daemon.store.parent.glob("state/links/*"))
        return sorted(one.name for parent in parents for one in parent.iterdir())

    def _make(self, directory: Path) -> Path:
        directory.mkdir()
        self._own(directory)
        return directory

    def _write(self, file: Path, text: str) -> str:
        file.write_text(text, encoding="utf-8")
        self._own(file)
        self._kept.append(file)
        self._recorder.foreign(f"file {file}", _seen(file))
        return text

    def _own(self, path: Path) -> None:
        if self._daemon.user:
            os.chown(path, self._daemon.user.uid, self._daemon.user.gid)


def _seen(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    status = file.stat()
    return {"text": file.read_text(encoding="utf-8"), "mode": status.st_mode, "uid": status.st_uid, "inode": status.st_ino}
