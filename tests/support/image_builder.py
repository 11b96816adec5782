# SPDX-License-Identifier: Apache-2.0
"""What building our images for real takes: an engine that reaches the registries of packages as this machine does,
and a base image with Node.js, which npm's registry has too."""

import os
import platform
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from support.engine import remove_cgroups
from support.engine_root import DebianArchive, Say, run_build
from support.process import LoggedProcess, base_environment, run
from support.run_directory import RunDirectory, check_socket_path

# What node:24-bookworm-slim has.
NODE, NPM = "24.21.0", "11.19.1"


@dataclass(frozen=True)
class NodeArchive:
    """A minimal Debian with node and npm below /usr/local as `tree.tar`."""

    def name(self) -> str:
        return "image-node"

    def recipe(self) -> str:
        return f"node {NODE} npm {NPM} {_debian('PROGRAMS').recipe()}"

    def make(self, directory: Path, say: Say) -> None:
        machine = {"x86_64": "x64", "aarch64": "arm64"}[platform.machine()]
        with tempfile.TemporaryDirectory(prefix=f"{directory.name}-npm-", dir=directory.parent) as work:
            packages = (f"node-linux-{machine}@{NODE}", f"npm@{NPM}")
            run_build(["npm", "pack", "--silent", f"--pack-destination={work}", *packages])
            programs = Path(work) / "programs"
            modules = programs / "lib" / "node_modules"
            _unpack(Path(work) / f"node-linux-{machine}-{NODE}.tgz", Path(work))
            _unpack(Path(work) / f"npm-{NPM}.tgz", modules)
            (modules / "package").rename(modules / "npm")
            (programs / "bin").mkdir()
            shutil.copy2(Path(work) / "package" / "bin" / "node", programs / "bin" / "node")
            for name in ("npm", "npx"):
                (programs / "bin" / name).symlink_to(f"../lib/node_modules/npm/bin/{name}-cli.js")
            _debian(os.fspath(programs)).make(directory, say)


def _debian(programs: str) -> DebianArchive:
    copy = f'cp -R --no-dereference --preserve=mode,links "{programs}/." "$1/usr/local/"'
    return DebianArchive(packages="ca-certificates", options=(f"--customize-hook={copy}",))


def _unpack(archive: Path, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    run("tar", "-x", "-f", archive, "-C", directory, "--no-same-owner")


class BuilderEngine:
    """This machine's dockerd in the host's network, without a bridge and without rules of a firewall: containers have
    the host's network or none. The constructor returns when it is reachable; end() removes everything."""

    def __init__(self, run_directory: RunDirectory):
        self.directory = run_directory.new_directory("b")
        self.socket = check_socket_path(self.directory / "s")
        self.docker_host = f"unix://{self.socket}"
        self._cgroup = f"{run_directory.path.name}-{self.directory.name}"
        config = self.directory / "config.json"
        config.write_text(f'{{"deprecated-key-path": "{self.directory}/key.json"}}')
        command = [
            # Killing the test run ends it, with its containers and mounts.
            *("setpriv", "--pdeathsig", "KILL", "--"),
            *("unshare", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child", "--propagation", "private"),
            *("--", "tini", "--", "dockerd"),
            *("--host", self.docker_host, "--config-file", str(config)),
            *("--data-root", f"{self.directory}/data", "--exec-root", f"{self.directory}/exec"),
            *("--pidfile", f"{self.directory}/pid"),
            *("--bridge", "none", "--iptables=false", "--ip-forward=false", "--ip-masq=false"),
            *("--cgroup-parent", f"/{self._cgroup}", "--exec-opt", "native.cgroupdriver=cgroupfs"),
        ]
        self._process = LoggedProcess(f"builder at {self.socket}", command, base_environment())
        try:
            self._process.wait_for_line(lambda line: "API listen on" in line, "its API", timeout=60)
        except BaseException:
            self.end()
            raise

    def __enter__(self) -> "BuilderEngine":
        return self

    def __exit__(self, *_) -> None:
        self.end()

    def docker(self, *arguments: str, **options):
        return run("docker", "-H", self.docker_host, *arguments, **options)

    def end(self) -> None:
        self._process.kill()
        remove_cgroups(self._cgroup)
        shutil.rmtree(self.directory)
