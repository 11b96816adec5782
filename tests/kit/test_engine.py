# SPDX-License-Identifier: Apache-2.0
"""The private engines are real and isolated, and can be broken."""

import os
from pathlib import Path

import pytest

from support.engine import KINDS, EngineOptions, PrivateEngine
from support.images import make_image
from support.process import all_processes

from kit.conftest import IMAGE, start_sleeper


def test_it_is_the_engine_that_it_is_called(engine):
    assert engine.api.version()["Version"].startswith(engine.kind.version)


def test_it_runs_a_container(engine, image):
    done = engine.docker("run", "--rm", image, "echo", "hello from inside")
    assert done.stdout == "hello from inside\n"


def test_an_exec_works_and_cannot_see_a_host_file(engine, running_container, directory):
    marker = directory / "only-on-the-host"
    marker.write_text("secret of the host\n")
    also_in_the_root = Path("/usr/bin/mmdebstrap")  # part of the tree that 20.10 runs on
    assert also_in_the_root.exists()

    seen = engine.docker("exec", running_container, "cat", str(marker), check=False)
    assert seen.returncode != 0
    assert "No such file" in seen.stderr + seen.stdout
    for path in (also_in_the_root, "/etc/debian_version"):
        assert (
            engine.docker(
                "exec", running_container, "test", "-e", str(path), check=False
            ).returncode
            == 1
        )
    # The control: if the directory is mounted, the same exec sees the file.
    control = ("run", "--rm", "--volume", f"{directory}:{directory}", IMAGE, "cat", str(marker))
    assert engine.docker(*control).stdout == "secret of the host\n"


def test_an_exec_is_in_the_file_tree_of_its_container(engine, running_container):
    listed = engine.docker("exec", running_container, "ls", "/").stdout.split()
    assert set(listed) <= {"bin", "dev", "etc", "proc", "root", "run", "sys", "tmp"}


def test_the_world_has_a_tree_and_a_network_of_its_own(engine):
    inside = engine.world.run("cat", "/proc/self/mountinfo").stdout
    assert "/oldroot" not in inside
    root = next(line for line in inside.splitlines() if line.split()[4] == "/")
    assert "ro" in root.split()[5].split(","), "the tree that engines share is writable"
    assert os.readlink(engine.network_namespace) != os.readlink("/proc/self/ns/net")
    links = engine.world.run("ip", "-brief", "link").stdout
    assert "eth0" not in links


def test_killed_it_comes_back_and_knows_its_containers(make_engine, engine_name):
    engine = make_engine(engine_name)
    make_image(engine.api, IMAGE)
    start_sleeper(engine, IMAGE)
    engine.kill9()
    assert not engine.api.answers()
    engine.start()
    assert [name.split()[0] for name in engine.api.containers()] == ["kit-sleeper"]


@pytest.mark.engines("20.10", "26", "28", "29")
def test_with_live_restore_a_container_survives_the_crash(make_engine, engine_name):
    engine = make_engine(engine_name, live_restore=True)
    make_image(engine.api, IMAGE)
    start_sleeper(engine, IMAGE)
    process = engine.api.call("GET", "/containers/kit-sleeper/json").json()["State"]["Pid"]
    engine.kill9()
    engine.start()
    state = engine.api.call("GET", "/containers/kit-sleeper/json").json()["State"]
    assert state["Running"] and state["Pid"] == process
    assert engine.docker("exec", "kit-sleeper", "echo", "alive").stdout == "alive\n"


def test_restarted_it_answers_again(make_engine, engine_name):
    engine = make_engine(engine_name)
    before = engine.pid
    engine.restart()
    assert engine.api.answers()
    assert engine.pid != before


@pytest.mark.engines("20.10", "26", "28", "29")
def test_after_a_reboot_it_knows_its_containers_and_none_runs(make_engine, engine_name):
    engine = make_engine(engine_name, live_restore=True)
    make_image(engine.api, IMAGE)
    start_sleeper(engine, IMAGE)
    engine.world.run("ip", "link", "add", "kit0", "type", "bridge")
    before, processes = engine.network_namespace, engine.processes()
    engine.reboot()
    assert not processes & set(all_processes()) and engine.network_namespace != before
    assert "kit0" not in engine.world.run("ip", "-o", "link").stdout
    state = engine.api.call("GET", "/containers/kit-sleeper/json").json()["State"]
    assert not state["Running"]
    engine.docker("start", "kit-sleeper")
    assert engine.docker("exec", "kit-sleeper", "echo", "alive").stdout == "alive\n"


def test_frozen_it_hangs_and_thawed_it_answers(make_engine, engine_name):
    engine = make_engine(engine_name)
    engine.freeze()
    with pytest.raises(TimeoutError):
        engine.api.call("GET", "/_ping", timeout=0.3)
    engine.thaw()
    assert engine.api.answers()


def test_frozen_it_can_be_killed_and_ended(make_engine, engine_name):
    engine = make_engine(engine_name)
    engine.freeze()
    engine.kill9()
    engine.start()
    engine.freeze()
    processes = engine.processes()
    engine.end()
    assert not processes & set(all_processes())


def test_its_containers_reach_an_outside_that_it_was_connected_to(make_engine, engine_name):
    engine = make_engine(engine_name)
    make_image(engine.api, IMAGE)
    outside = engine.connect_outside()
    run = ("run", "--rm", "--cap-add", "NET_RAW", IMAGE)  # not a default of Podman
    ping = engine.docker(*run, "ping", "-c", "1", "-W", "5", outside.ADDRESS, check=False)
    assert ping.returncode == 0, ping.stdout + ping.stderr


def test_ended_it_is_gone_without_a_trace(run_directory, engine_name, leak_check):
    before = leak_check.snapshot()
    with PrivateEngine(KINDS[engine_name], run_directory) as engine:
        make_image(engine.api, IMAGE)
        start_sleeper(engine, IMAGE)
        engine.connect_outside()
        processes = engine.processes()
        assert len(processes) > 4
    assert not processes & set(all_processes())
    assert leak_check.leaks_since(before) == []


@pytest.mark.engines("20.10")
def test_a_start_that_fails_half_way_leaves_nothing(run_directory, engine_name, leak_check):
    before = leak_check.snapshot()
    broken = EngineOptions(arguments=("--no-such-argument",))
    with pytest.raises(RuntimeError, match="unknown flag: --no-such-argument"):
        PrivateEngine(KINDS[engine_name], run_directory, broken)
    assert leak_check.leaks_since(before) == []
