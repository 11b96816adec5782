# SPDX-License-Identifier: Apache-2.0
"""The entrypoint of our images: with any engine, in a sandbox, and again in the same container."""

import os
import socket
from pathlib import Path

import pytest
from support.contract import REPOSITORY
from support.execs import run_in
from support.images import build_image
from support.odd_images import make_debian_image
from support.sandboxes import CONFIG, connected, left_over, started

pytestmark = pytest.mark.engines("28")

ENTRYPOINT = REPOSITORY / "images" / "coding-runtime" / "entrypoint.sh"
LINES = (
    "COPY entrypoint.sh /usr/local/bin/entrypoint.sh",
    "RUN mkdir /workspace && mkdir -p /home/agbox/.claude && useradd --no-create-home --uid 1234 node",
    'ENTRYPOINT ["/usr/local/bin/entrypoint.sh"]',
)
WHO = "echo $(id -un):$(id -u):$(id -g) $(id -G) $HOME $USER"


@pytest.fixture
def image(engine, say) -> str:
    base = make_debian_image(engine.api, say)
    return build_image(engine.api, "entrypoint:1", base, LINES, {"entrypoint.sh": ENTRYPOINT.read_bytes()})


@pytest.fixture
def run_image(engine, image):
    """run_image("id", HOST_UID="1000"): the exit code and what it printed."""

    def run(script: str, *options: str, **environment: str) -> tuple[int, str]:
        settings = [f"--env={name}={value}" for name, value in environment.items()]
        result = engine.docker(
            *("run", "--rm", "--network=none", "--hostname=localhost", *settings, *options),
            *(image, "sh", "-c", script),
            check=False,
        )
        return result.returncode, result.stdout + result.stderr

    return run


@pytest.mark.parametrize(
    "environment, who",
    [
        ({"HOST_UID": "1000", "HOST_GID": "1000"}, "agbox:1000:1000 1000"),
        # The gid of a group that the image has, and the uid of a user.
        ({"HOST_UID": "1000", "HOST_GID": "100"}, "agbox:1000:100 100"),
        ({"HOST_UID": "1234", "HOST_GID": "1000"}, "agbox:1234:1000 1000"),
        (
            {"HOST_UID": "501", "HOST_GID": "20", "AGENTS_SANDBOX_SUPPLEMENTAL_GROUPS": "44,4711"},
            "agbox:501:20 20 44 4711",
        ),
        # The accounts of root stay as they are.
        ({"HOST_UID": "0", "HOST_GID": "0", "AGENTS_SANDBOX_SUPPLEMENTAL_GROUPS": "44"}, "root:0:0 0"),
    ],
)
def test_it_makes_the_user_of_the_host(run_image, environment, who) -> None:
    script = f"{WHO}; stat -c %u:%g . $HOME $HOME/.claude $HOME/.profile; getent passwd agbox; sudo -n id -u"
    code, text = run_image(script, "--workdir=/workspace", **environment)
    uid, gid = environment["HOST_UID"], environment["HOST_GID"]
    assert text.splitlines() == [
        f"{who} /home/agbox agbox",
        *[f"{uid}:{gid}"] * 4,
        f"agbox:x:{uid}:{gid}::/home/agbox:/bin/bash",
        "0",
    ]
    assert code == 0


@pytest.mark.parametrize(
    "environment, error",
    [
        ({}, "HOST_UID and HOST_GID must be set"),
        ({"HOST_UID": "1000"}, "HOST_UID and HOST_GID must be set"),
        ({"HOST_UID": "1000", "HOST_GID": ""}, "HOST_UID and HOST_GID must be set"),
        ({"HOST_UID": "me", "HOST_GID": "1"}, "HOST_UID must be a number, not 'me'"),
        ({"HOST_UID": "1000", "HOST_GID": "00"}, "HOST_GID must be a number, not '00'"),
        (
            {"HOST_UID": "1000", "HOST_GID": "1000", "AGENTS_SANDBOX_SUPPLEMENTAL_GROUPS": "44,video"},
            "AGENTS_SANDBOX_SUPPLEMENTAL_GROUPS must be numbers separated by commas, not '44,video'",
        ),
    ],
)
def test_wrong_settings_are_refused(run_image, environment, error) -> None:
    assert run_image("echo never", **environment) == (1, f"ERROR: {error}\n")


def test_it_must_be_root(run_image) -> None:
    code, text = run_image("echo never", "--user=1000", HOST_UID="1000", HOST_GID="1000")
    assert code == 1
    assert text == (
        "ERROR: the entrypoint must run as root, not as uid 1000; start the container without --user\n"
    )


def test_it_may_run_again_in_the_same_container(engine, image) -> None:
    settings = ("--env=HOST_UID=1234", "--env=HOST_GID=1000", "--env=AGENTS_SANDBOX_SUPPLEMENTAL_GROUPS=4711")
    script = f"{WHO}; cat /etc/passwd /etc/group; sudo -n cat /etc/shadow; echo mine >$HOME/.profile; cat $HOME/.profile"
    create = ("create", "--network=none", "--hostname=localhost", *settings, image, "sh", "-c", script)
    container = engine.docker(*create).stdout.strip()
    try:
        runs = [engine.docker("start", "--attach", container).stdout for _ in range(3)]
    finally:
        engine.docker("rm", container)
    assert runs[0].startswith("agbox:1234:1000 1000 4711 /home/agbox agbox\n")
    assert runs[0].endswith("\nmine\n")
    assert runs[0].count("\nagbox:") == 3, "in passwd, group and shadow"
    assert "/home/node" not in runs[0], "the user had another name"
    assert runs[1] == runs[2] == runs[0]


def test_what_belongs_to_the_host_keeps_its_owner_and_mode(run_image, directory: Path) -> None:
    """Except for the mode of an agent's socket that the user could not use."""
    for name in ("project", "claude"):
        (directory / name).mkdir()
        os.chown(directory / name, 4242, 4242)
    agent, foreign = directory / "agent", directory / "foreign"
    sockets = [socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)]
    for one, path, owner in zip(sockets, (agent, foreign), (1000, 4242)):
        one.bind(str(path))
        path.chmod(0o600)
        os.chown(path, owner, owner)
    mounts = (f"--volume={directory}/project:/workspace", f"--volume={directory}/claude:/home/agbox/.claude")
    for path in (agent, foreign):
        code, text = run_image(
            "stat -c %u:%g /workspace $HOME/.claude $HOME; test -w /ssh-agent",
            *mounts, f"--volume={path}:/ssh-agent", HOST_UID="1000", HOST_GID="1000")
        assert (code, text) == (0, "4242:4242\n4242:4242\n1000:1000\n")
    for one in sockets:
        one.close()
    assert [path.stat().st_mode & 0o777 for path in (agent, foreign)] == [0o600, 0o666]
    assert (directory / "project").stat().st_uid == 4242


def test_a_sandbox_works_with_it_and_resumes(engine, image, make_daemon, test_user, contract) -> None:
    daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("entry", image)
        script = f"{WHO}; touch /workspace/x && stat -c %U $HOME $HOME/.claude; ls -A $HOME; sudo -n id -u"
        code, first = run_in(sandboxes, "entry", script)
        user = test_user
        assert first.startswith(f"agbox:{user.uid}:{user.gid} {user.gid} /home/agbox agbox\nagbox\nagbox\n"), first
        assert ".profile" in first, "what the image has in /etc/skel"
        assert code == 0
        sandboxes.stop_wait("entry")
        sandboxes.resume_wait("entry")
        assert run_in(sandboxes, "entry", script) == (0, first)
        sandboxes.delete_wait("entry")
    assert left_over(engine) == []
