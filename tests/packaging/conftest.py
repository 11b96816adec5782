# SPDX-License-Identifier: Apache-2.0
"""What scripts/package makes of the build under test, once for all tests here."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.contract import REPOSITORY
from support.release import Release
from support.run_directory import RunDirectory


@pytest.fixture(scope="session")
def make_release(run_directory: RunDirectory, bin_dir: Path):
    """make_release(directory): runs scripts/package as the owner of the build, so that nothing of root's stays there."""
    owner = bin_dir.parent.stat()

    def make(directory: Path, **environment: str) -> Release:
        os.chown(directory, owner.st_uid, owner.st_gid)
        identity = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []} if owner.st_uid else {}
        done = subprocess.run(
            [REPOSITORY / "scripts" / "package", "--build", bin_dir.parent, "--output", directory],
            env=os.environ | environment, text=True, timeout=300,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **identity)
        assert done.returncode == 0, done.stdout
        return Release(directory)

    return make


@pytest.fixture(scope="session")
def release(run_directory: RunDirectory, leak_check, make_release) -> Iterator[Release]:
    directory = run_directory.new_directory("p")
    yield make_release(directory)
    shutil.rmtree(directory)
