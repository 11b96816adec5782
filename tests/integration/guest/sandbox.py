# SPDX-License-Identifier: Apache-2.0
"""One container with the guest as PID 1, configured as by the daemon."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from link import LinkDaemon
from support.engine import PrivateEngine

CAPABILITIES = "CHOWN DAC_OVERRIDE FOWNER FSETID SETUID SETGID KILL SYS_CHROOT".split()


@dataclass
class Sandbox:
    engine: PrivateEngine
    daemon: LinkDaemon
    name: str
    image: str
    image_user: str
    image_entrypoint: list[str]
    program: Path
    options: list[str] = field(default_factory=list)  # further options of `docker create`
    mounts: list[str] = field(default_factory=list)  # targets to check
    volumes: list[str] = field(default_factory=list)  # anonymous ones
    supplemental_gids: list[int] = field(default_factory=list)
    link_writable: bool = False  # only for tests of what read-only prevents
    secret: str = ""

    def __post_init__(self) -> None:
        program = self.daemon.ask("install", source=str(self.program))["path"]
        self.place = self.daemon.ask("make", self.name)
        link_mode = "" if self.link_writable else ",readonly"
        self.engine.docker(
            "create",
            *("--name", self.name),
            *("--network", "none"),
            *("--user", "0:0"),
            *("--entrypoint", "/.agbox-guest"),
            *("--no-healthcheck", "--stop-signal", "SIGTERM"),
            *("--workdir", "/workspace"),
            *("--cap-drop", "ALL"),
            *(part for name in CAPABILITIES for part in ("--cap-add", name)),
            *("--mount", f"type=bind,source={program},target=/.agbox-guest,readonly"),
            *("--mount", f"type=bind,source={self.place['directory']},target=/.agbox-link{link_mode}"),
            *("--env", f"HOST_UID={self.daemon.uid}", "--env", f"HOST_GID={self.daemon.uid}"),
            *self.options,
            self.image,
        )

    def expect(self, **fields) -> None:
        self.daemon.ask(
            "expect",
            self.name,
            image_user=self.image_user,
            mounts=self.mounts,
            volumes=self.volumes,
            supplemental_gids=self.supplemental_gids,
            **fields,
        )

    def start(self) -> dict:
        """Starts the container and returns the guest's hello."""
        self.expect()
        self.engine.docker("start", self.name)
        return self.daemon.ask("hello", self.name)

    def go(self, command: list[str] | None = None, bypass: bool = False, limit_ms: int = 20000) -> dict:
        entrypoint = [] if bypass else self.image_entrypoint
        answer = self.daemon.ask(
            "go", self.name, entrypoint=entrypoint, command=command or [], limit_ms=limit_ms
        )
        self.secret = answer["secret"]
        return self.daemon.ask("entrypoint", self.name)

    def ready(self, command: list[str] | None = None, **options) -> dict:
        """Starts it and runs the entrypoint; returns the hello."""
        hello = self.start()
        outcome = self.go(command, **options)
        assert outcome["passed"], outcome["sentence"]
        return hello

    def exec(self, *command: str, user: str = "agbox", check: bool = True) -> str:
        done = self.engine.docker("exec", "-u", user, self.name, *command, check=False)
        if check:
            assert done.returncode == 0, (command, done.stdout, done.stderr)
        return (done.stdout + done.stderr).strip()

    def logs(self) -> str:
        done = self.engine.docker("logs", self.name)
        return done.stdout + done.stderr

    def wait_log(self, text: str, times: int = 1) -> None:
        deadline = time.monotonic() + 20
        while self.logs().count(text) < times:
            assert time.monotonic() < deadline, f"{text!r} is not {times} times in:\n{self.logs()}"

    def state(self) -> dict:
        return self.engine.api.call("GET", f"/containers/{self.name}/json").json()["State"]

    def wait_exit(self) -> int:
        return int(self.engine.docker("wait", self.name).stdout)

    def stop(self) -> float:
        """Seconds until the engine stopped it; the engine would kill it after a minute."""
        before = time.monotonic()
        self.engine.docker("stop", "-t", "60", self.name)
        return time.monotonic() - before

    def remove(self) -> None:
        self.engine.docker("rm", "-fv", self.name, check=False)
