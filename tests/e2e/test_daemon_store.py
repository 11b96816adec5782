# SPDX-License-Identifier: Apache-2.0
"""How agboxd opens its store: one daemon per store, nothing of anyone else's touched."""

import os
import sqlite3
from pathlib import Path

import pytest

from support.daemon import PrivateDaemon
from support.process import run

FAILURE = 1


def error_of(daemon: PrivateDaemon) -> str:
    """The sentence of the one error in the log of a daemon that refused to start."""
    assert daemon.wait(timeout=30) == FAILURE
    (entry,) = [entry for entry in daemon.log() if entry["level"] == "ERROR"]
    prefix = f"initialize id store {daemon.store}: "
    assert entry["error"].startswith(prefix)
    return entry["error"].removeprefix(prefix)


def instance(daemon: PrivateDaemon, contract) -> str:
    with daemon.channel() as channel:
        return contract.stub(channel).Ping(contract.service.PingRequest(), timeout=10).instance_id


def files_of(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_the_instance_survives_every_end(daemon, contract):
    first = instance(daemon, contract)
    assert instance(daemon.restart(), contract) == first
    daemon.kill()
    daemon.wait()
    assert instance(daemon.start(), contract) == first


def test_another_runtime_directory_cannot_share_the_store(make_daemon, contract):
    first = make_daemon().start()
    second = make_daemon()
    second.environment["XDG_DATA_HOME"] = first.environment["XDG_DATA_HOME"]
    second.store = first.store
    second.launch()
    assert "another agboxd" in error_of(second)
    assert instance(first, contract)


@pytest.mark.parametrize("kind", ["another program's SQLite file", "no SQLite file at all"])
def test_a_file_that_is_not_ours_stays_as_it_is(make_daemon, kind):
    daemon = make_daemon()
    daemon.store.parent.mkdir(parents=True)
    if kind == "no SQLite file at all":
        daemon.store.write_bytes(os.urandom(65536))
    else:
        with sqlite3.connect(daemon.store) as database:
            database.execute("CREATE TABLE theirs (value TEXT)")
        database.close()
    before = files_of(daemon.store.parent)
    daemon.launch()
    assert error_of(daemon)
    assert files_of(daemon.store.parent) == before


def test_a_full_disk_without_a_store_leaves_nothing(make_daemon, contract):
    daemon = make_daemon()
    data = Path(daemon.environment["XDG_DATA_HOME"])
    data.mkdir(parents=True, exist_ok=True)
    run("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", data)
    try:
        (data / "filler").write_bytes(b"x" * 65536)
        daemon.launch()
        assert "No space left on device" in error_of(daemon)
        assert [path for path in data.rglob("*") if path.is_file()] == [data / "filler"]
        # With room it starts as if nothing had been.
        run("mount", "-o", "remount,size=16m", data)
        assert instance(daemon.start(), contract)
        assert daemon.stop() == 0
    finally:
        run("umount", data)
