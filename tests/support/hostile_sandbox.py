# SPDX-License-Identifier: Apache-2.0
"""An attacker in a sandbox: the program of tests/hostile_sandbox, and the sandbox's processes on the host."""

import os
from pathlib import Path

from support.engine import PrivateEngine
from support.process import all_processes, descendants
from support.sandboxes import inspect, primary


def hostile_program(bin_dir: Path) -> Path:
    """From the build of the other programs."""
    return bin_dir.parent / "tests" / "hostile-sandbox"


# Of a sandbox on this machine.
PIDS_LIMIT = min(max(1024 * os.cpu_count(), 2048), 4096)


def pids_group(engine: PrivateEngine, sandbox_id: str) -> Path:
    """The control group that limits the sandbox's processes, on the host."""
    container = inspect(engine, primary(sandbox_id))["Id"]
    found = [
        group
        for top in (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))
        for group in [top / engine.cgroup / container]
        if (group / "pids.max").exists()
    ]
    assert found, f"no control group bounds the processes of {sandbox_id}"
    return found[0]


def guest_process(engine: PrivateEngine, sandbox_id: str) -> int:
    """PID 1 of the sandbox, in the host's namespace."""
    inside = {int(line) for line in (pids_group(engine, sandbox_id) / "cgroup.procs").read_text().split()}
    processes = all_processes()
    ours = inside & descendants(engine.processes(), processes)
    oldest = min(ours, key=lambda pid: processes[pid].started)
    assert processes[oldest].name == ".agbox-guest", processes[oldest]
    return oldest
