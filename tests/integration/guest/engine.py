# SPDX-License-Identifier: Apache-2.0
"""A private dockerd without any network, for containers that have none."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path


class Engine:
    """Started by the constructor; end() takes everything away."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.socket = folder / "docker.sock"
        self._log = open(folder / "log", "wb")
        (folder / "config.json").write_text(json.dumps({"deprecated-key-path": f"{folder}/key.json"}))
        self._process = subprocess.Popen(
            [
                "dockerd",
                *("--host", f"unix://{self.socket}"),
                *("--data-root", f"{folder}/data"),
                *("--exec-root", f"{folder}/exec"),
                *("--pidfile", f"{folder}/pid"),
                *("--config-file", f"{folder}/config.json"),
                *("--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false"),
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self._wait_listening()

    def _wait_listening(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            if self.docker("version", check=False).returncode == 0:
                return
            time.sleep(0.1)  # dockerd tells nobody when it is ready
        raise RuntimeError(f"dockerd does not answer:\n{(self.folder / 'log').read_text()[-2000:]}")

    def docker(self, *arguments: str, check: bool = True, **options) -> subprocess.CompletedProcess:
        done = subprocess.run(
            ["docker", "-H", f"unix://{self.socket}", *arguments],
            capture_output=True,
            timeout=120,
            **options,
        )
        if check and done.returncode != 0:
            raise RuntimeError(f"docker {' '.join(arguments)}: {done.stderr.decode(errors='replace')}")
        return done

    def inspect(self, name: str) -> dict:
        return json.loads(self.docker("inspect", name).stdout)[0]

    def end(self) -> None:
        containers = self.docker("ps", "-aq", check=False).stdout.decode().split()
        if containers:
            self.docker("rm", "-fv", *containers, check=False)
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for mount in sorted((m for m in mounts if m.startswith(f"{self.folder}/")), reverse=True):
            subprocess.run(["umount", mount], check=True)
        shutil.rmtree(self.folder)
