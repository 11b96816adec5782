# SPDX-License-Identifier: Apache-2.0
"""The whole life of a sandbox from every kind of image, and what its container is like inside."""

import ipaddress
import json
import os
import re

import pytest
from support.hostile_sandbox import PIDS_LIMIT
from support.images import make_image
from support.odd_images import make_debian_image, odd_image
from support.sandboxes import (
    CONFIG,
    DELETED,
    FAILED,
    LABEL,
    assert_one_history,
    connected,
    inside,
    inspect,
    left_over,
    network,
    primary,
    started,
)

CAPABILITIES = "CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID SYS_CHROOT".split()


@pytest.fixture
def sandboxes(make_daemon, test_user, engine, contract):
    """Root's daemon with one engine, the user's with the others: what happens here depends on
    the one or on the other, not on the pair."""
    user = None if engine.kind.name == "20.10" else test_user
    daemon = started(make_daemon(user=user, engine=engine, config=CONFIG))
    with connected(daemon, contract) as client:
        client.uid = user.uid if user else 0
        client.gid = user.gid if user else 0
        client.daemon = daemon
        yield client
    assert daemon.stop() == 0
    daemon.log()  # every line is one of ours


def expect_user(sandboxes, engine, sandbox_id, shell=("sh", "-c")):
    said = inside(engine, sandbox_id, *shell, "id -u; id -g; echo ~agbox; pwd; touch x; stat -c %u x")
    uid, gid, home, directory, owner = said.splitlines()
    assert (int(uid), int(gid), int(owner)) == (sandboxes.uid, sandboxes.gid, sandboxes.uid)
    assert (home, directory) == ("/home/agbox", "/workspace")


@pytest.mark.parametrize("name", ["busybox", "debian", "user-1234", "uid-1000", "drops", "own-ideas"])
def test_the_life_of_a_sandbox_from_an_image(sandboxes, engine, name):
    if name == "debian":
        image = make_debian_image(engine.api)
    else:
        image = make_image(engine.api, f"odd-{name}:1", odd_image(name))
    events = sandboxes.create_ready(name, image)
    assert [event.sequence for event in events] == [1, 2, 3]
    expect_user(sandboxes, engine, name)
    process = inside(engine, name, "cat", "/proc/1/cmdline", user="0")
    assert process.split("\0")[0] == "/.agbox-guest"
    if name == "debian":
        assert inside(engine, name, "sudo", "-n", "id", "-u") == "0"
        shadow = inside(engine, name, "sudo", "-n", "grep", "^agbox:", "/etc/shadow")
        assert sandboxes.uid == 0 or shadow.startswith("agbox:*:")
    if name == "own-ideas":
        settings = inspect(engine, primary(name))["Config"]
        assert settings["Healthcheck"]["Test"] == ["NONE"]
        assert settings["StopSignal"] == "SIGTERM"
    assert_one_history(sandboxes.delete_wait(name))
    assert left_over(engine) == []
    assert engine.api.volumes() == set()  # the image's own volume goes with its container


def test_an_image_with_nothing_but_one_binary(sandboxes, engine):
    image = make_image(engine.api, "odd-scratch:1", odd_image("scratch"))
    sandboxes.create_ready("scratch", image)
    expect_user(sandboxes, engine, "scratch", ("/busybox", "sh", "-c"))
    sandboxes.delete_wait("scratch")
    assert left_over(engine) == []


def test_an_entrypoint_that_ignores_its_arguments_fails_and_can_be_bypassed(sandboxes, engine):
    image = make_image(engine.api, "odd-ignores:1", odd_image("ignores-arguments"))
    sandboxes.create("ignores", image)
    failed = sandboxes.follow("ignores", lambda event: event.sandbox_state == FAILED)[-1]
    words = failed.sandbox_phase.error_message
    assert failed.sandbox_phase.error_code == "SANDBOX_CREATE_FAILED"
    for part in ("exit code 7", "I do what I want", "really", "--no-entrypoint", "bypass_entrypoint"):
        assert part in words
    handle = sandboxes.get("ignores")
    assert (handle.error_code, handle.error_message) == ("SANDBOX_CREATE_FAILED", words)
    assert left_over(engine) == []  # a failed create leaves nothing, deleted or not
    sandboxes.create_ready("bypasses", image, bypass_entrypoint=True)
    expect_user(sandboxes, engine, "bypasses")
    for sandbox_id in ("ignores", "bypasses"):
        assert sandboxes.delete_wait(sandbox_id)[-1].sandbox_state == DELETED
    assert sandboxes.get("ignores").error_code == ""


def test_the_callers_command_runs_as_the_user(sandboxes, engine):
    image = make_image(engine.api, "odd-command:1", odd_image("pass-on"))
    script = "echo $(id -u) $HOME $USER $GREETING $(pwd) > note; exec sleep 1000"
    sandboxes.create_ready(
        "command", image, command=["sh", "-c", script], envs={"GREETING": "hello"}
    )
    wait = "until [ -s note ]; do sleep 0.02; done; cat note"
    said = inside(engine, "command", "timeout", "10", "sh", "-c", wait)
    assert said == f"{sandboxes.uid} /home/agbox agbox hello /workspace"
    sandboxes.delete_wait("command")


def test_a_container_has_the_settings_that_keep_it_in_its_place(sandboxes, engine, contract):
    image = make_image(engine.api, "odd-settings:1", odd_image("busybox"))
    sandboxes.create_ready(
        "settings",
        image,
        labels={"team": "blue"},
        envs={"NAME": "value"},
        cpu_limit="0.5",
        memory_limit="64m",
    )
    seen = inspect(engine, primary("settings"))
    config, host = seen["Config"], seen["HostConfig"]
    assert config["User"] == "0:0" and config["WorkingDir"] == "/workspace"
    assert {f"HOST_UID={sandboxes.uid}", f"HOST_GID={sandboxes.gid}", "NAME=value"} <= set(config["Env"])
    instance = sandboxes.stub.Ping(contract.service.PingRequest(), timeout=10).instance_id
    ours = {key: text for key, text in config["Labels"].items() if key.startswith(LABEL)}
    assert ours == {
        f"{LABEL}.instance": instance,
        f"{LABEL}.sandbox-id": "settings",
        f"{LABEL}.component": "primary",
        f"{LABEL}.profile": "default",
        f"{LABEL}.user.team": "blue",
    }
    assert (host["NanoCpus"], host["Memory"], host["PidsLimit"]) == (500_000_000, 64 << 20, PIDS_LIMIT)
    assert host["CapDrop"] == ["ALL"] and not host["Privileged"] and not host["Init"]
    assert sorted(name.removeprefix("CAP_") for name in host["CapAdd"]) == CAPABILITIES
    assert host["RestartPolicy"]["Name"] in {"", "no"}  # nothing runs before its isolation
    assert host["Dns"] == ["192.0.2.53"] and host["IpcMode"] == "private"
    assert host["NetworkMode"] == network("settings") and not host["Binds"]
    assert host["LogConfig"] == {"Type": "local", "Config": {"max-file": "3", "max-size": "10m"}}
    assert sorted(host["ExtraHosts"]) == [
        "gateway.docker.internal:0.0.0.0",
        "host.docker.internal:0.0.0.0",
    ]
    mounts = {mount["Destination"].rstrip("/"): mount for mount in seen["Mounts"]}
    assert set(mounts) == {"/.agbox-guest", "/.agbox-link", "/var/log/agents-sandbox"}
    assert not any(mount["RW"] for mount in mounts.values())

    net = engine.api.call("GET", f"/networks/{network('settings')}").json()
    assert re.fullmatch(r"agbx[a-zA-Z0-9_-]{11}", net["Options"]["com.docker.network.bridge.name"])
    assert not net["EnableIPv6"]
    [pool] = net["IPAM"]["Config"]
    subnet = ipaddress.ip_network(pool["Subnet"])
    # Clients read the gateway from here; Docker 20.10 omits one that it chose by itself.
    assert subnet.prefixlen == 28 and pool["Gateway"] == str(subnet[1])
    assert net["Labels"][f"{LABEL}.instance"] == instance
    sandboxes.delete_wait("settings")


def test_a_sandbox_has_no_more_power_than_it_needs(sandboxes, engine):
    image = make_debian_image(engine.api)
    sandboxes.create_ready("power", image)
    status = inside(engine, "power", "cat", "/proc/self/status", user="0")
    fields = dict(re.findall(r"(\w+):\s+(\w+)", status))
    assert bin(int(fields["CapBnd"], 16)).count("1") == len(CAPABILITIES)
    assert fields["Seccomp"] == "2"
    # io_uring_setup (425): what 20.10 lets through by itself is refused by our own profile.
    script = "$! = 0; syscall(425, 1, 0); print $!+0"
    assert inside(engine, "power", "perl", "-e", script, user="0") in {"1", "38"}
    # An audit socket is "not there", so that sudo does not complain.
    script = "socket(my $s, 16, 3, 9) or print $!+0"
    assert inside(engine, "power", "perl", "-e", script, user="0") == "22"
    sudo = engine.docker("exec", "-u", "agbox", primary("power"), "sudo", "-n", "true")
    assert sudo.stderr == ""
    resolv = inside(engine, "power", "cat", "/etc/resolv.conf")
    assert "127.0.0.11" in resolv or "192.0.2.53" in resolv
    find = "find / -xdev -name docker.sock; grep -c docker.sock /proc/self/mountinfo"
    assert inside(engine, "power", "sh", "-c", f"({find}) || true", user="0") == "0"
    sandboxes.delete_wait("power")


def test_the_daemons_directories_have_no_leftovers(sandboxes, engine):
    """Directories of guests go with their sandboxes; the store is private."""
    image = make_image(engine.api, "odd-directories:1", odd_image("busybox"))
    sandboxes.create_ready("directories", image)
    links = sandboxes.daemon.directory / "data" / "agents-sandbox" / "state" / "links"
    assert len(list(links.glob("*/*"))) == 1
    sandboxes.delete_wait("directories")
    assert list(links.glob("*/*")) == []
    assert os.stat(links).st_mode & 0o077 == 0
    assert json.loads(sandboxes.daemon.log_lines()[0])["msg"] == "starting"
