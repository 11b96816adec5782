# SPDX-License-Identifier: Apache-2.0
"""How agboxd opens its store: one daemon per store, nothing of anyone else's touched."""

import contextlib
import os
import re
import shutil
import sqlite3
from pathlib import Path

import pytest

from support.contract import REPOSITORY
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


# --- other versions ---

SAMPLES = sorted((REPOSITORY / "tests" / "data" / "store").glob("schema-*.db"))
NEWEST = len(SAMPLES)


def with_store(daemon: PrivateDaemon, sample: Path) -> PrivateDaemon:
    daemon.store.parent.mkdir(mode=0o700, parents=True)
    shutil.copy(sample, daemon.store)
    return daemon


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_store_of_every_schema_is_migrated_and_served(make_daemon, contract, sample):
    daemon = with_store(make_daemon(), sample).start()
    with daemon.channel() as channel:
        stub, service = contract.stub(channel), contract.service
        (listed,) = stub.ListSandboxes(service.ListSandboxesRequest(), timeout=10).sandboxes
        assert (listed.sandbox_id, listed.image) == ("sample-ready", "sample:1")
        request = service.GetExecRequest(exec_id="sample-exec-ended")
        assert stub.GetExec(request, timeout=10).exec.command == ["true"]
    schema = int(sample.stem.removeprefix("schema-"))
    backups = [daemon.store.with_name(f"ids.db.before-{to}") for to in range(schema + 1, NEWEST + 1)]
    assert sorted(daemon.store.parent.glob("ids.db.before-*")) == backups
    assert instance(daemon.restart(), contract) == "5a3c1f0e-7d52-4c53-9a51-0d1c8b6f2e77"


def test_after_a_downgrade_the_store_is_refused_and_its_backup_can_be_restored(make_daemon, contract):
    """A newer daemon has migrated it by two schemas. The commands are those of docs/installation.md."""
    daemon = with_store(make_daemon(), SAMPLES[-1])
    backup = daemon.store.with_name(f"ids.db.before-{NEWEST + 1}")
    shutil.copy(daemon.store, backup)
    with contextlib.closing(sqlite3.connect(daemon.store)) as store:
        store.execute(f"PRAGMA user_version = {NEWEST + 2}")
        store.commit()
    before = files_of(daemon.store.parent)
    daemon.launch()
    assert error_of(daemon) == (
        f"the store {daemon.store} has schema {NEWEST + 2} and was made by a newer agboxd, this one knows up to schema "
        f"{NEWEST}; it was left untouched: install the newer agboxd again, or restore the backup that it made before it "
        f"changed the schema ({backup})")
    assert files_of(daemon.store.parent) == before
    guide = (REPOSITORY / "docs" / "installation.md").read_text()
    (commands,) = re.findall(r"^```sh\n(cd [^`]*)```", guide, re.M)
    home = daemon.directory / "home"
    (home / ".local").mkdir()
    (home / ".local" / "share").symlink_to(daemon.environment["XDG_DATA_HOME"])
    commands = re.sub(r"before-\d+", backup.name.removeprefix("ids.db."), commands)
    run("sh", "-euc", commands, env=daemon.environment | {"HOME": str(home)})
    assert instance(daemon.start(), contract) == "5a3c1f0e-7d52-4c53-9a51-0d1c8b6f2e77"
