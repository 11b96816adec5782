# SPDX-License-Identifier: Apache-2.0
"""The world of an engine: network, mount and PID namespaces on a given root file system.

Its PID 1 is a reaper that outlives the engine, so an engine can be killed while its containers keep
running. Killing PID 1 kills every process of the world, and removes its mounts, links and firewall: the
namespaces have no names, so nothing can be left over.
"""

import os
import signal
from collections.abc import Sequence
from pathlib import Path

from support.process import (
    LoggedProcess,
    all_processes,
    base_environment,
    descendants,
    kill_and_wait,
    run,
)

# Runs as PID 1 of the new namespaces, with the host's file system still visible. The tree is mounted
# read-only, because many worlds share it, or below a layer of this world's own changes. pivot_root, not chroot, because an engine's exec enters the
# namespaces and would see the host's root.
_ENTER_TREE = r"""
tree=$1 shared=$2 programs=$3 changes=$4
new=/mnt
ip link set lo up
if [ -n "$changes" ]; then
  mount -t overlay overlay -o "lowerdir=$tree,upperdir=$changes/files,workdir=$changes/work" "$new"
else
  mount --bind "$tree" "$new"
  mount -o remount,bind,ro "$new"
fi
mount -t proc proc "$new/proc"
echo 1 > "$new/proc/sys/net/ipv4/ip_forward"
mount -t sysfs sysfs "$new/sys"
mount --rbind /dev "$new/dev"
mount -t tmpfs -o mode=755 tmpfs "$new/run"
mkdir -m 1777 "$new/run/lock"
mount -t tmpfs -o mode=1777 tmpfs "$new/tmp"
mount -t tmpfs -o mode=1777 tmpfs "$new/var/tmp"
if [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ]; then
  mount --rbind /sys/fs/cgroup "$new/sys/fs/cgroup"
else
  # Engines do not know the hybrid layout: leave `unified` out.
  mount -t tmpfs -o mode=755 tmpfs "$new/sys/fs/cgroup"
  awk '$3 == "cgroup" { print $2 }' /proc/self/mounts | while read -r hierarchy; do
    mkdir "$new$hierarchy"
    mount --bind "$hierarchy" "$new$hierarchy"
  done
fi
mkdir -p "$new$shared"
mount --rbind "$shared" "$new$shared"
if [ -n "$programs" ]; then mount --bind "$programs" "$new/usr/local/sbin"; fi
cd "$new"
pivot_root . .
umount -l .
cd /
echo 'world is ready'
exec tini -- sleep infinity
"""


class World:
    """Created by the constructor, ended by end(). `shared` is visible inside under the same path. With `changes`, a
    directory for them, every file of the tree may be changed; the changed ones are in its `files`."""

    def __init__(self, tree: Path, shared: Path, programs: Path | None = None, changes: Path | None = None):
        command = ["sh", "-eu", "-c", _ENTER_TREE, "world"]
        arguments = [os.fspath(part or "") for part in (tree, shared, programs, changes)]
        if changes:
            for name in ("files", "work"):
                (changes / name).mkdir(parents=True, exist_ok=True)
        self._holder = LoggedProcess(
            f"world on {tree}", [*_UNSHARE, *command, *arguments], base_environment()
        )
        try:
            self._holder.wait_for_line("world is ready".__eq__, "the namespaces", timeout=20)
            self.init = child_of(self._holder.pid)
        except BaseException:
            self.end()
            raise

    @property
    def network_namespace(self) -> str:
        """For nsenter --net: a daemon's firewall must be where its engine's bridges are."""
        return f"/proc/{self.init}/ns/net"

    def command(self, argv: Sequence[str | os.PathLike]) -> list[str]:
        """The command line that runs argv inside."""
        enter = ["nsenter", f"--target={self.init}", "--mount", "--net", "--pid", "--"]
        return enter + [os.fspath(part) for part in argv]

    def run(self, *argv: str | os.PathLike, **options):
        return run(*self.command(argv), **options)

    def connect_outside(self, outside: "Outside") -> None:
        """Gives the world an uplink `up0` and a default route to the other end."""
        # Enters only the network namespace: the other end is named by its host PID.
        enter = ["nsenter", f"--net={self.network_namespace}", "--"]
        run(
            *enter,
            "ip",
            "link",
            "add",
            "up0",
            "type",
            "veth",
            "peer",
            "name",
            "out0",
            "netns",
            outside.pid,
        )
        self.run("ip", "address", "add", f"{outside.INSIDE_ADDRESS}/24", "dev", "up0")
        self.run("ip", "link", "set", "up0", "up")
        outside.run("ip", "address", "add", f"{outside.ADDRESS}/24", "dev", "out0")
        outside.run("ip", "link", "set", "out0", "up")
        self.run("ip", "route", "add", "default", "via", outside.ADDRESS)

    def processes(self) -> set[int]:
        """The host PIDs of every process of the world, and of its holder."""
        return {self._holder.pid} | descendants([self._holder.pid], all_processes())

    def end(self) -> None:
        """Kills every process inside; returns when the last one is gone."""
        if self._holder.returncode() is None:
            kill_and_wait(descendants([self._holder.pid], all_processes()))
            self._holder.send(signal.SIGKILL)  # if it was interrupted before it had a child
        self._holder.wait()


class Outside:
    """A network namespace that plays the internet, the local network or a router for a world. Its
    addresses are reserved for documentation."""

    ADDRESS = "198.51.100.1"
    INSIDE_ADDRESS = "198.51.100.2"

    def __init__(self) -> None:
        command = [
            "sh",
            "-euc",
            "ip link set lo up; echo 'outside is ready'; exec tini -- sleep infinity",
        ]
        self._holder = LoggedProcess("outside", [*_UNSHARE, *command], base_environment())
        try:
            self._holder.wait_for_line("outside is ready".__eq__, "the namespace", timeout=20)
            self.pid = str(child_of(self._holder.pid))
        except BaseException:
            self.end()
            raise

    @property
    def network_namespace(self) -> str:
        return f"/proc/{self.pid}/ns/net"

    def run(self, *argv: str, **options):
        return run("nsenter", f"--net={self.network_namespace}", "--", *argv, **options)

    end = World.end
    processes = World.processes


def child_of(pid: int) -> int:
    """The only child of a process that forks once and then waits for it."""
    children = [child for child in all_processes().values() if child.parent == pid]
    if len(children) != 1:
        raise RuntimeError(f"process {pid} has {len(children)} children where one was expected")
    return children[0].pid


# Killing the test run kills the holder, which kills the world.
_UNSHARE = [
    *("setpriv", "--pdeathsig", "KILL", "--"),
    *(
        "unshare",
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--propagation",
        "private",
        "--",
    ),
]
