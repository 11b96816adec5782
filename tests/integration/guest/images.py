# SPDX-License-Identifier: Apache-2.0
"""The kinds of image that the guest has to cope with, made without a registry."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

BUSYBOX = Path("/usr/bin/busybox")


@dataclass(frozen=True)
class Image:
    base: str = "busybox"  # busybox, debian or scratch
    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)  # path: content, mode
    entrypoint: tuple[str, ...] = ()
    user: str = ""
    changes: tuple[str, ...] = ()


PASSWD = b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
GROUP = b"root:x:0:\nnogroup:x:65534:\n"
PASS_ON = b'#!/bin/sh\necho "entrypoint as $(id -u):$(id -g) home $HOME"\nexec "$@"\n'
# Drops its privileges itself, as many images do with gosu or su-exec.
DROP_TO_1234 = b"""#!/bin/sh
exec su -s /bin/sh -- worker /pass "$@"
"""

IMAGES = {
    "busybox": Image(),
    "pass-on": Image(files={"/entry": (PASS_ON, 0o755)}, entrypoint=("/entry",)),
    "user-1234": Image(files={"/entry": (PASS_ON, 0o755)}, entrypoint=("/entry",), user="1234"),
    "uid-1000": Image(
        files={
            "/etc/passwd": (PASSWD + b"node:x:1000:1000::/home/node:/bin/ash\n", 0o644),
            "/etc/group": (GROUP + b"node:x:1000:\nvideo:x:44:node\n", 0o644),
            "/entry": (PASS_ON, 0o755),
        },
        entrypoint=("/entry",),
        user="node",
    ),
    "drops": Image(
        files={
            "/etc/passwd": (PASSWD + b"worker:x:1234:1234::/:/bin/sh\n", 0o644),
            "/entry": (DROP_TO_1234, 0o755),
            "/pass": (b'exec "$@"\n', 0o755),
        },
        entrypoint=("/entry",),
    ),
    "ignores-arguments": Image(
        files={"/entry": (b"#!/bin/sh\necho I do what I want\necho really >&2\nexit 7\n", 0o755)},
        entrypoint=("/entry",),
    ),
    "never-passes": Image(
        files={"/entry": (b"#!/bin/sh\necho waiting for a database\nsleep 3600\n", 0o755)},
        entrypoint=("/entry",),
    ),
    "below-a-shell": Image(
        files={"/entry": (b'#!/bin/sh\n"$@"\ncode=$?\necho cleaned up\nexit $code\n', 0o755)},
        entrypoint=("/entry",),
    ),
    "own-ideas": Image(
        changes=(
            'HEALTHCHECK --interval=1s CMD ["/bin/sh", "-c", "id >> /health"]',
            "STOPSIGNAL SIGQUIT",
            "VOLUME /workspace",
        )
    ),
    "faker": Image(
        files={
            "/entry": (
                b"#!/bin/sh\n(setsid /.agbox-guest enter >/dev/null 2>&1 </dev/null &)\n"
                b"sleep 1\nexit 9\n",
                0o755,
            )
        },
        entrypoint=("/entry",),
    ),
    "scratch": Image(base="scratch", files={"/busybox": (BUSYBOX.read_bytes(), 0o755)}),
    "debian": Image(base="debian"),
}


def make_image(engine, name: str) -> str:
    image = IMAGES[name]
    tag = f"guest-test/{name}:1"
    changes = list(image.changes)
    if image.entrypoint:
        changes.append(f"ENTRYPOINT {json.dumps(list(image.entrypoint))}")
    if image.user:
        changes.append(f"USER {image.user}")
    engine.docker("import", "-", f"{tag}-tree", input=_tree(image))
    dockerfile = "\n".join([f"FROM {tag}-tree", *changes])
    # The old builder: it needs neither a plugin nor a network.
    environment = {**os.environ, "DOCKER_BUILDKIT": "0"}
    engine.docker("build", "-q", "-t", tag, "-", input=dockerfile.encode(), env=environment)
    return tag


def _tree(image: Image) -> bytes:
    if image.base == "debian":
        return _debian().read_bytes()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tree:
        files = dict(image.files)
        if image.base == "busybox":
            _add_busybox(tree)
            files.setdefault("/etc/passwd", (PASSWD, 0o644))
            files.setdefault("/etc/group", (GROUP, 0o644))
        for path, (content, mode) in files.items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode = len(content), mode
            tree.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _add_busybox(tree: tarfile.TarFile) -> None:
    for folder, mode in (("bin", 0o755), ("etc", 0o755), ("root", 0o700), ("tmp", 0o1777)):
        entry = tarfile.TarInfo(folder)
        entry.type, entry.mode = tarfile.DIRTYPE, mode
        tree.addfile(entry)
    tree.add(BUSYBOX, "bin/busybox")
    for applet in subprocess.run([BUSYBOX, "--list"], capture_output=True, check=True).stdout.split():
        if applet != b"busybox":
            entry = tarfile.TarInfo(f"bin/{applet.decode()}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            tree.addfile(entry)


def _debian() -> Path:
    """Debian with sudo and /etc/shadow; made once per machine, which takes a minute or two."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    tree = cache / "agents-sandbox" / "guest-tests" / "debian-bookworm-sudo.tar"
    if not tree.exists():
        tree.parent.mkdir(parents=True, exist_ok=True)
        draft = tree.with_suffix(f".{os.getpid()}.tar")
        subprocess.run(
            ["mmdebstrap", "--variant=minbase", "--include=sudo", "bookworm", draft], check=True
        )
        draft.rename(tree)
    return tree
