# SPDX-License-Identifier: Apache-2.0
"""Unusual kinds of images that users bring."""

from support.engine_api import EngineApi
from support.engine_root import DebianArchive, Say, cached, say_on_stderr
from support.images import BUSYBOX, GROUP, PASSWD, Image, has_image, make_image

_PASS_ON = b'#!/bin/sh\necho "entrypoint as $(id -u):$(id -g) home $HOME"\nexec "$@"\n'
# Drops its privileges itself, as many images do with gosu or su-exec.
_DROP_TO_WORKER = b'#!/bin/sh\nexec su -s /bin/sh -- worker /pass "$@"\n'
# Claims to have executed its arguments without having done so.
_FAKE = (
    b"#!/bin/sh\n(setsid /.agbox-guest enter >/dev/null 2>&1 </dev/null &)\n"
    b"sleep 1\nexit 9\n"
)


def _entry(script: bytes, user: str = "", **files: bytes) -> Image:
    return Image(files={"/entry": script, **files}, entrypoint=("/entry",), user=user)


ODD_IMAGES = {
    "busybox": Image(),
    "pass-on": _entry(_PASS_ON),
    "user-1234": _entry(_PASS_ON, user="1234"),
    "uid-1000": _entry(
        _PASS_ON,
        user="node",
        **{
            "/etc/passwd": PASSWD + b"node:x:1000:1000::/home/node:/bin/ash\n",
            "/etc/group": GROUP + b"node:x:1000:\nvideo:x:44:node\n",
        },
    ),
    "drops": _entry(
        _DROP_TO_WORKER,
        **{
            "/etc/passwd": PASSWD + b"worker:x:1234:1234::/:/bin/sh\n",
            "/pass": b'exec "$@"\n',
        },
    ),
    "ignores-arguments": _entry(b"#!/bin/sh\necho I do what I want\necho really >&2\nexit 7\n"),
    "never-passes": _entry(b"#!/bin/sh\necho waiting for a database\nsleep 3600\n"),
    "below-a-shell": _entry(b'#!/bin/sh\n"$@"\ncode=$?\necho cleaned up\nexit $code\n'),
    "faker": _entry(_FAKE),
    "own-ideas": Image(
        volumes=("/workspace",),
        more=(
            'HEALTHCHECK --interval=1s CMD ["/bin/sh", "-c", "id >> /health"]',
            "STOPSIGNAL SIGQUIT",
        ),
    ),
    "scratch": Image(shell=False, files={"/busybox": BUSYBOX.read_bytes()}),
}


def odd_image(name: str, say: Say = say_on_stderr) -> Image:
    """One of ODD_IMAGES, or "debian", with sudo and /etc/shadow."""
    if name == "debian":
        return Image(archive=cached(DebianArchive(), say) / "tree.tar")
    return ODD_IMAGES[name]


def make_debian_image(api: EngineApi, say: Say = say_on_stderr) -> str:
    """Once per engine, because it is large."""
    name = "odd-debian:1"
    if not has_image(api, name):
        make_image(api, name, odd_image("debian", say))
    return name
