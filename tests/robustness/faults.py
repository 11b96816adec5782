# SPDX-License-Identifier: Apache-2.0
"""The faults of a run: kills of the daemon, at random and at failpoints; kills and hangs of the engine; changes of
the firewall by another process; a full disk; clock jumps. All are derived from the run's seed."""

import errno
import mmap
import os
import random
import re
import select
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from robustness.history import Recorder
from support.contract import REPOSITORY
from support.daemon import PrivateDaemon
from support.engine import PrivateEngine
from support.process import run

# Not passed by a daemon with a complete store of this version.
_ONCE_IN_A_STORE = ("store.create.", "store.migrate.", "store.ballast.")
_OF_A_PURGE = ("store.purge.",)
_START_TIMEOUT = 60


def failpoints() -> list[str]:
    """Every failpoint of a sandbox's operations, and of the store."""
    listed = subprocess.run(
        [sys.executable, str(REPOSITORY / "scripts" / "check-failpoints"), "--list"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    ).stdout.split()
    pattern = re.compile(r'AGBOX_FAILPOINT(?:_FAILS)?\("([^"]+)"\)')
    for source in sorted((REPOSITORY / "src").rglob("*.cpp")):
        listed += pattern.findall(source.read_text(encoding="utf-8"))
    return sorted({name for name in listed if not name.startswith(_ONCE_IN_A_STORE)})


class DaemonKiller:
    """Kills and restarts the daemon. Counts the kills and keeps the logs of all its runs."""

    def __init__(self, daemon: PrivateDaemon, recorder: Recorder, rng: random.Random):
        self._daemon, self._recorder, self._rng = daemon, recorder, rng
        names = failpoints()
        self._failpoints = [name for name in names if not name.startswith(_OF_A_PURGE)]
        # One of these is armed too if set: failpoints of something that only some runs do.
        self.also: list[str] = []
        self.of_a_purge = [name for name in names if name.startswith(_OF_A_PURGE)]
        # The number of recorded entries between two kills: one of these.
        self.pause: tuple[int, ...] = (10, 100, 200)
        self.always = daemon.environment.get("AGBOX_FAILPOINTS", "")  # armed at every start
        self.kills = 0
        self.killed_at_failpoints = 0
        self.logs: list[str] = []

    def kill(self) -> None:
        """Immediately."""
        self._daemon.kill()
        self._has_died("")

    def start(self, armed: str = "") -> bool:
        """False if it died at an armed failpoint before it listened."""
        self._launch(armed)
        try:
            self._daemon.wait_listening(_START_TIMEOUT)
        except RuntimeError:
            if not armed:
                raise
            self._daemon.wait()
            return False
        return True

    def kill_during(self, failpoint: str, ask: Callable[[], object]) -> None:
        """At the failpoint, while it does what `ask` asks for."""
        self.kill()
        self.start(f"{failpoint}=kill")
        self._daemon.wait_for_message("engine is reachable")  # else it may refuse
        ask()
        self._has_died(failpoint)
        self.start()

    def rounds(self, kills: int) -> Iterator[int]:
        """Until this many kills; the daemon runs at the beginning of each round and at the end."""
        while self.kills < kills:
            yield self.kills
            self.one_kill()

    def one_kill(self) -> None:
        way = self._rng.random()
        self._work_a_while(self._rng.choice(self.pause))
        if way < 0.4:
            self._work_a_while(self._rng.randrange(1, 50))
            self.kill()
            self.start()
        elif way < 0.5:  # during its start
            self.kill()
            self._launch("")
            self._recorder.wait_for_entries(1, self._rng.uniform(0, 0.4), self._is_dead)
            self.kill()
            self.start()
        else:
            # Several, because most are passed by only one kind of operation.
            names = self._rng.sample(self._failpoints, 5) + self.also[:1]
            self._rng.shuffle(self.also)
            armed = ";".join(f"{name}=kill@{self._rng.choice((1, 1, 2, 3, 5))}" for name in names)
            self.kill()
            if self.start(armed):
                self._recorder.wait_for_entries(250, 6, self._is_dead)
            if self._is_dead():
                self._has_died(armed)
            else:
                self.kill()
            self.start()

    def _launch(self, armed: str) -> None:
        self._daemon.environment["AGBOX_FAILPOINTS"] = ";".join(filter(None, (self.always, armed)))
        self._daemon.launch()
        handle = os.pidfd_open(self._daemon.pid)

        def tell() -> None:
            select.select([handle], [], [])
            os.close(handle)
            self._recorder.end_of_daemon()

        threading.Thread(target=tell, name="end of agboxd", daemon=True).start()

    def _work_a_while(self, entries: int) -> None:
        self._recorder.wait_for_entries(entries, 5, self._is_dead)

    def _is_dead(self) -> bool:
        return self._daemon.process.returncode() is not None

    def _has_died(self, armed: str) -> None:
        code = self._daemon.wait()
        self._recorder.end_of_daemon()
        if code != -9:
            self._recorder.complain(
                f"the daemon ended by itself with {code}:\n{self._daemon.process.tail()}"
            )
        self.kills += 1
        if armed:
            self.killed_at_failpoints += 1
        self.logs += [f"--- life {self.kills}: {armed or 'killed'}", *self._daemon.log_lines()]


class EngineBreaker:
    """Kills or freezes a private engine, and restores it. It is killed while `moment` is held."""

    def __init__(
        self,
        engine: PrivateEngine,
        recorder: Recorder,
        rng: random.Random,
        moment: Callable[[], AbstractContextManager] = nullcontext,
    ):
        self._engine, self._recorder, self._rng = engine, recorder, rng
        self._moment = moment
        self.kills = 0

    def kill(self) -> None:
        """The engine crashes and restarts after a while."""
        self._recorder.history.engine_failed = True
        with self._moment():
            self._engine.kill9()
        self.kills += 1
        self._let_the_clients_try()
        self._engine.start()

    def hang(self) -> None:
        self._engine.freeze()
        self._let_the_clients_try()
        self._engine.thaw()

    def _let_the_clients_try(self) -> None:
        self._recorder.wait_for_entries(
            self._rng.choice((1, 50, 100)), self._rng.uniform(0, 2)
        )


class FirewallChanger:
    """Changes the sandbox firewall, and waits until each change is undone. Only while the daemon runs:
    otherwise it is restored at the next start."""

    _CHANGES = (
        "delete table inet {name}",
        "flush table inet {name}",
        "flush chain inet {name} from_sandbox",
        "insert rule inet {name} to_host accept",
        "add table inet {name} {{ flags dormant; }}",
        "delete table arp {name}",
        "delete table inet {name}; delete table arp {name}",
    )

    def __init__(
        self, daemon: PrivateDaemon, engine: PrivateEngine, recorder: Recorder, rng: random.Random
    ):
        self._daemon, self._engine, self._recorder, self._rng = daemon, engine, recorder, rng
        self.changes = 0
        recorder.history.firewall_changed = True

    def change(self) -> None:
        """One of our tables."""
        loaded = self._daemon.wait_for_message("sandbox firewall loaded")
        self._undone(self._rng.choice(self._CHANGES).format(name=loaded["table"]))

    def flush(self) -> None:
        """Flushes all tables of the host. Restarts its engine, which needs its own."""
        self._daemon.wait_for_message("sandbox firewall loaded")
        self._recorder.history.engine_failed = True
        self._undone("flush ruleset")
        self._engine.restart()

    def _undone(self, command: str) -> None:
        lines = len(self._daemon.log_lines())
        self._engine.world.run("nft", command)
        self._daemon.process.wait_for_line(
            lambda line: "sandbox firewall restored after a change by another process" in line,
            f"what undoes {command!r}",
            timeout=30,
            after=lines,
        )
        self.changes += 1


class SmallDisk:
    """A separate filesystem for a store, which can be filled."""

    def __init__(self, directory: Path, size: str, daemon: PrivateDaemon):
        self.directory = directory
        self._filler = directory / "filler"
        owner = f",uid={daemon.user.uid},gid={daemon.user.gid}" if daemon.user else ""
        run("mount", "-t", "tmpfs", "-o", f"size={size},mode=700{owner}", "tmpfs", directory)

    def fill(self) -> None:
        with open(self._filler, "ab", buffering=0) as filler:
            block = b"x" * 65536
            while block:
                try:
                    filler.write(block)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    block = block[: len(block) // 2]

    def make_room(self) -> None:
        self._filler.unlink(missing_ok=True)

    def end(self) -> None:
        run("umount", self.directory)


class JumpingClock:
    """The date that a daemon sees, through build/*/tests/libclock_shift.so. Only for a daemon of root: the
    loader ignores such libraries for programs with capabilities."""

    def __init__(self, file: Path, library: Path):
        if not library.exists():
            raise RuntimeError(f"{library} is not there; build the target clock_shift")
        file.write_bytes(struct.pack("q", 0))
        self._file = os.open(file, os.O_RDWR)
        self._shift = mmap.mmap(self._file, 8)
        self.environment = {"LD_PRELOAD": str(library), "AGBOX_CLOCK_SHIFT": str(file)}

    def jump_to(self, seconds: float) -> None:
        """The offset from the real date."""
        self._shift[:] = struct.pack("q", int(seconds * 1e9))

    def end(self) -> None:
        self._shift.close()
        os.close(self._file)
