# SPDX-License-Identifier: Apache-2.0
"""Small images for any engine, made from Debian's busybox-static without a registry."""

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from support.engine_api import EngineApi, EngineRefused
from support.process import run

BUSYBOX = Path("/usr/bin/busybox")
PASSWD = b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"
GROUP = b"root:x:0:\nnogroup:x:65534:\n"


@dataclass(frozen=True)
class Image:
    """The content of an image. Without a shell it has only `files`; with an `archive`, a tar of a whole
    tree, only that."""

    shell: bool = True
    files: Mapping[str, bytes] = field(default_factory=dict)  # path: content, executable unless in /etc
    archive: Path | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    user: str = ""
    working_directory: str = ""
    volumes: Sequence[str] = ()
    ports: Sequence[str] = ()
    more: Sequence[str] = ()  # Dockerfile lines that old engines do not accept in an import

    def changes(self) -> list[str]:
        """The image's configuration as Dockerfile lines."""
        lines = [
            f"LABEL {json.dumps(key)}={json.dumps(value)}" for key, value in self.labels.items()
        ]
        lines += [f"ENV {key}={json.dumps(value)}" for key, value in self.environment.items()]
        lines += [f"VOLUME {volume}" for volume in self.volumes]
        lines += [f"EXPOSE {port}" for port in self.ports]
        if self.entrypoint:
            lines.append(f"ENTRYPOINT {json.dumps(list(self.entrypoint))}")
        if self.command:
            lines.append(f"CMD {json.dumps(list(self.command))}")
        if self.user:
            lines.append(f"USER {self.user}")
        if self.working_directory:
            lines.append(f"WORKDIR {self.working_directory}")
        return lines

    def tar(self) -> bytes:
        """The file tree; reproducible."""
        if self.archive:
            return self.archive.read_bytes()
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tree:
            # Engines refuse an archive with duplicate paths.
            accounts = {"/etc/passwd": PASSWD, "/etc/group": GROUP} if self.shell else {}
            if self.shell:
                _add_shell(tree)
            for path, content in {**accounts, **self.files}.items():
                mode = 0o644 if path.startswith("/etc/") else 0o755
                _add_file(tree, path.lstrip("/"), content, mode)
        return buffer.getvalue()


def program_files(path: str) -> dict[str, bytes]:
    """A program of this machine and the libraries that it is linked with, as `files` of an image."""
    linked = run("ldd", path).stdout.split()
    return {name: Path(name).read_bytes() for name in (path, *linked) if name.startswith("/")}


def make_image(api: EngineApi, name: str, image: Image = Image()) -> str:
    """Creates `name` (repository:tag) on the engine and returns it."""
    repository, _, tag = name.rpartition(":")
    if not repository or "/" in tag:
        raise ValueError(f"image {name}: give it a tag, for example {name}:1")
    query = {"fromSrc": "-", "repo": repository, "tag": tag, "changes": image.changes()}
    answer = api.call("POST", "/images/create", query=query, body=image.tar(), headers=_TAR)
    raise_stream_error(f"make image {name}", answer.body)
    if image.more:
        build_image(api, name, name, image.more)
    return name


def has_image(api: EngineApi, name: str) -> bool:
    try:
        api.call("GET", f"/images/{name}/json")
    except EngineRefused as refusal:
        if refusal.answer.status != 404:
            raise
        return False
    return True


def build_image(
    api: EngineApi, name: str, base: str, lines: Sequence[str], files: Mapping[str, bytes] | None = None
) -> str:
    """`base` with Dockerfile lines on top of it; COPY finds the `files`. Returns `name`."""
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tree:
        _add_file(tree, "Dockerfile", "\n".join([f"FROM {base}", *lines, ""]).encode())
        for path, content in (files or {}).items():
            _add_file(tree, path, content)
    query = {"t": name, "version": "1"}  # the old builder needs no session
    answer = api.call("POST", "/build", query=query, body=context.getvalue(), headers=_TAR)
    raise_stream_error(f"build image {name}", answer.body)
    return name


def raise_stream_error(attempt: str, stream: bytes) -> None:
    """Engines report failures of long operations inside an answer with status 200."""
    for line in stream.splitlines():
        if line.strip():
            error = json.loads(line).get("error")
            if error:
                raise RuntimeError(f"{attempt}: {error}")


_TAR = {"Content-Type": "application/x-tar"}


def _add_shell(tree: tarfile.TarFile) -> None:
    if not BUSYBOX.exists():
        raise RuntimeError(
            f"{BUSYBOX} is not there; install it with: apt-get install busybox-static"
        )
    for directory, mode in (("bin", 0o755), ("etc", 0o755), ("root", 0o700), ("tmp", 0o1777)):
        entry = tarfile.TarInfo(directory)
        entry.type, entry.mode = tarfile.DIRTYPE, mode
        tree.addfile(entry)
    _add_file(tree, "bin/busybox", BUSYBOX.read_bytes())
    for applet in run(BUSYBOX, "--list").stdout.split():
        if applet == "busybox":
            continue
        entry = tarfile.TarInfo(f"bin/{applet}")
        entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
        tree.addfile(entry)


def _add_file(tree: tarfile.TarFile, path: str, content: bytes, mode: int = 0o755) -> None:
    entry = tarfile.TarInfo(path)
    entry.size, entry.mode = len(content), mode
    tree.addfile(entry, io.BytesIO(content))
