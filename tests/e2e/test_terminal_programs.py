# SPDX-License-Identifier: Apache-2.0
"""Programs that draw on the terminal: what a user sees of them through agbox is what the same program shows on this
machine, after the same keys."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.daemon import PrivateDaemon
from support.images import Image, make_image, program_files
from support.sandboxes import CONFIG, started
from support.tmux import Terminal

IMAGE = "terminal-programs:1"
BOX = "programs-1"
SIZE = (100, 30)
PROGRAMS = ("bash", "less", "top", "vim")
SHELL = ("bash", "--norc", "--noprofile")
TERM = ("env", "TERM=screen")  # which the image knows


@pytest.fixture
def box(make_daemon, test_user, engine) -> Iterator[PrivateDaemon]:
    """A daemon with one ready sandbox, BOX."""
    files = {"/lib/terminfo/s/screen": Path("/lib/terminfo/s/screen").read_bytes()}
    for program in PROGRAMS:
        files |= program_files(f"/usr/bin/{program}")
    make_image(engine.api, IMAGE, Image(files=files))
    daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
    created = daemon.agbox("sandbox", "create", "-q", "--image", IMAGE, "--sandbox-id", BOX)
    assert created.returncode == 0, created.stderr
    yield daemon
    deleted = daemon.agbox("sandbox", "delete", BOX)
    assert deleted.returncode == 0, deleted.stderr


class Twins:
    """A shell in the sandbox and one on this machine. Keys go to both."""

    def __init__(self, inside: Terminal, native: Terminal):
        self.inside, self.native = inside, native

    def do(self, step: Callable[[Terminal], None], shows: str) -> None:
        """Until both screens are the same and have this text."""
        step(self.inside)
        step(self.native)
        self.wait_same(shows)

    def wait_same(self, shows: str) -> None:
        deadline = time.monotonic() + 30
        while True:
            inside, native = self.inside.visible(), self.native.visible()
            if inside == native and shows in inside:
                return
            assert time.monotonic() < deadline, f"inside:\n{inside}\nhere:\n{native}\nwithout {shows!r}, or different"
            time.sleep(0.05)  # tmux has no event for it

    def enter(self, text: str, shows: str) -> None:
        self.do(lambda tty: tty.enter(text), shows)

    def press(self, *keys: str, shows: str) -> None:
        self.do(lambda tty: tty.press(*keys), shows)


def test_programs_look_as_they_do_on_this_machine(box, directory, tmp_path):
    agbox = [str(box.bin_dir / "agbox")]
    exec_id = "screens"

    def inside(*arguments: str, size: tuple[int, int]) -> Terminal:
        return Terminal(tmp_path, box.user.command([*TERM, *agbox, *arguments]), box.environment, size)

    here = directory / "here"
    here.mkdir()
    box.user.own(here)
    native_shell = box.user.command([*TERM, "sh", "-c", f"cd {here} && exec {' '.join(SHELL)}"])
    with Terminal(tmp_path, native_shell, {"HOME": str(here), "PATH": "/usr/bin:/bin"}, SIZE) as native:
        with inside("exec", "run", "-it", "--exec-id", exec_id, BOX, "--", *SHELL, size=SIZE) as first:
            both = Twins(first, native)
            both.wait_same("$")  # it reads keys by now
            both.enter("PS1='> '", ">")
            both.press("C-l", shows=">")
            both.enter("vim -u NONE -i NONE -N notes", "~")
            both.do(lambda tty: (tty.type("ihello from vim"), tty.press("Escape")), "hello from vim")
            both.do(lambda tty: tty.resize(90, 25), "hello from vim")
            both.enter(":split", "hello from vim")
            box.kill()
            started(box)
            both.do(lambda tty: (tty.type("oafter the daemon"), tty.press("Escape")), "after the daemon")
            # Job control: suspended, listed, brought back.
            both.press("C-z", shows="Stopped")
            both.enter("jobs", "vim -u NONE -i NONE -N notes")
            both.enter("fg", "after the daemon")
            first.press("C-p", "C-q")
            first.wait_for("<code 0>")
        with inside("attach", exec_id, size=(90, 25)) as second:
            both = Twins(second, native)
            both.wait_same("after the daemon")
            both.do(lambda tty: (tty.type("oattached again"), tty.press("Escape")), "attached again")
            both.enter(":wqa", ">")
            both.press("C-l", shows=">")
            both.enter("while read -r line; do echo \"saved: $line\"; done < notes", "saved: attached again")
            both.enter("for ((i = 1; i < 500; i++)); do echo \"line $i\"; done > lines; less lines", "line 1")
            both.press("Space", shows="line 40")
            both.press("G", shows="line 499")
            both.enter("?line 250", "line 250")
            both.press("q", shows=">")
            both.press("C-l", shows=">")
            # What it shows differs.
            second.enter("top -d 0.2")
            wait_for_text(second, "Tasks:")
            wait_for_text(second, "%Cpu")
            second.press("q")
            second.press("C-l")
            second.enter("exit 7")
            second.wait_for("<code 7>")


def wait_for_text(tty: Terminal, text: str) -> None:
    deadline = time.monotonic() + 30
    while text not in tty.visible():
        assert time.monotonic() < deadline, f"no {text!r} in:\n{tty.visible()}"
        time.sleep(0.05)  # tmux has no event for it
