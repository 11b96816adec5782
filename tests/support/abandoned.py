# SPDX-License-Identifier: Apache-2.0
"""Removes leftovers of killed test runs: processes, users, control groups, directories."""

import os
import pwd
import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from support.engine import remove_cgroups
from support.process import all_processes, kill_and_wait
from support.run_directory import PREFIX, lock_of, only_this_run_changes, parent_directory
from support.user import remove_account

# A test user's name and home directory; the second group is the directory of its run.
_ACCOUNT = re.compile(rf"agbx([0-9a-f]{{6}}):(/.*/{PREFIX}\1)/u[0-9]+/home")


@only_this_run_changes()
def remove_abandoned() -> None:
    """A live run holds the lock of its directory; one that can be locked is abandoned."""
    for directory in parent_directory().glob(f"{PREFIX}*"):
        if not _is_of_a_run(directory):
            continue
        lock = lock_of(directory)
        if lock is None:
            continue
        run_id = directory.name.removeprefix(PREFIX)
        # Most of them die with their run; wait for those still ending.
        kill_and_wait(p.pid for p in all_processes().values() if p.has_mark(run_id))
        remove_account(f"agbx{run_id}", directory)
        remove_cgroups(f"{directory.name}-*")
        shutil.rmtree(directory)
        os.close(lock)
    for name, directory in _accounts_of_runs():
        if not directory.exists():  # a run's directory exists before its user and after it
            remove_account(name, directory)


def _is_of_a_run(directory: Path) -> bool:
    """Others, who do not wait for our lock, make and remove directories with such names too."""
    try:
        status = directory.lstat()
    except FileNotFoundError:
        return False
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return is_own and (directory / "lock").exists()


def _accounts_of_runs() -> Iterator[tuple[str, Path]]:
    for entry in pwd.getpwall():
        if found := _ACCOUNT.fullmatch(f"{entry.pw_name}:{entry.pw_dir}"):
            yield entry.pw_name, Path(found[2])
