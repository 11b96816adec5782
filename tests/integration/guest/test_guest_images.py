# SPDX-License-Identifier: Apache-2.0
"""The guest in every kind of image: the runtime user exists and works before anything else runs."""

import pytest

# The guest is the same on every engine; the tests of sandboxes cover the others.
pytestmark = pytest.mark.engines("20.10")


def is_alive(box) -> None:
    assert box.daemon.ask("ping", box.name, limit_ms=5000)["ms"] < 5000


@pytest.mark.parametrize("name", ["busybox", "pass-on", "user-1234", "uid-1000", "drops", "debian"])
def test_the_runtime_user_works_once_the_entrypoint_was_passed(sandbox, name, uid):
    box = sandbox(name, uid)
    hello = box.ready()
    assert hello["failure"] == ""
    assert hello["notes"] == []
    assert box.exec("id", "-u") == str(uid)
    assert box.exec("id", "-un") == ("root" if uid == 0 else "agbox")
    assert box.exec("sh", "-c", "echo ~agbox") == "/home/agbox"
    box.exec("sh", "-c", "touch /home/agbox/x /workspace/x")
    assert box.exec("stat", "-c", "%u:%g", "/workspace") == f"{uid}:{uid}"
    is_alive(box)


def test_the_container_of_an_image_without_anything_but_one_binary(sandbox, uid):
    box = sandbox("scratch", uid)
    assert box.ready()["notes"] == []
    assert box.exec("/busybox", "id", "-u") == str(uid)
    assert box.exec("/busybox", "cat", "/etc/passwd") == f"agbox:*:{uid}:{uid}::/home/agbox:/bin/sh"
    assert box.exec("/busybox", "stat", "-c", "%u", "/home/agbox") == str(uid)


def test_an_existing_uid_gets_the_name_and_keeps_its_groups(sandbox):
    box = sandbox("uid-1000", 1000)
    box.ready()
    assert box.exec("id", "-un") == "agbox"
    assert box.exec("id", "-G").split() == ["1000", "44"]
    # The image's own name still works for entrypoints that switch to it, also at the next start.
    assert box.exec("id", "-u", "node") == "1000"
    box.stop()
    entrypoint = "entrypoint as 1000:1000 home /home/node"
    before = box.logs().count(entrypoint)
    box.ready()
    box.wait_log(entrypoint, times=2)
    assert (before, box.logs().count(entrypoint)) == (1, 2)


def test_the_images_user_runs_the_entrypoint(sandbox):
    box = sandbox("user-1234", 1000)
    box.ready()
    box.wait_log("entrypoint as 1234:0 home /")


def test_root_runs_the_entrypoint_where_the_image_names_nobody(sandbox):
    box = sandbox("pass-on", 1000)
    box.ready()
    box.wait_log("entrypoint as 0:0 home /root")


def test_an_entrypoint_that_dropped_its_privileges_keeps_its_user(sandbox):
    box = sandbox("drops", 1000)
    box.ready(["sh", "-c", "echo I am $(id -u); exec sleep 100"])
    box.wait_log("I am 1234")


def test_sudo_works_without_a_password(sandbox):
    box = sandbox("debian", 1000)
    box.ready()
    assert box.exec("sudo", "-n", "id", "-u").splitlines()[0] == "0"
    assert box.exec("sudo", "-n", "stat", "-c", "%U:%G:%a", "/etc/shadow").splitlines()[0] == "root:shadow:640"
    assert "agbox:*:" in box.exec("sudo", "cat", "/etc/shadow")


def test_preparing_twice_changes_nothing(sandbox):
    box = sandbox("debian", 1000)
    box.ready()
    first = box.exec("sh", "-c", "cat /etc/passwd /etc/group; stat -c '%i %Y' /etc/passwd /etc/group")
    box.stop()
    box.ready()
    second = box.exec("sh", "-c", "cat /etc/passwd /etc/group; stat -c '%i %Y' /etc/passwd /etc/group")
    assert first == second


def test_supplemental_groups_are_there_for_the_user(sandbox):
    box = sandbox("busybox", 1000, supplemental_gids=[4242])
    box.ready()
    assert "4242" in box.exec("id", "-G").split()
    assert "agbox-supplemental-4242:x:4242:agbox" in box.exec("cat", "/etc/group")


def test_an_images_own_ideas_about_health_stop_and_volumes_do_no_harm(sandbox, uid):
    box = sandbox("own-ideas", uid, volumes=["/workspace"])
    box.ready()
    box.exec("touch", "/workspace/x")
    assert box.exec("stat", "-c", "%u:%g", "/workspace") == f"{uid}:{uid}"
    assert box.stop() < 30
    assert box.state()["ExitCode"] == 0


def test_a_bind_mount_keeps_its_owner(sandbox, guest_directory, uid):
    source = guest_directory / f"mount-{uid}"
    source.mkdir()
    source.chmod(0o777)
    box = sandbox(
        "busybox",
        uid,
        options=["--mount", f"type=bind,source={source},target=/workspace"],
        mounts=["/workspace"],
    )
    hello = box.ready()
    status = source.stat()
    assert (status.st_uid, status.st_gid) == (0, 0)
    assert hello["mounts"] == [
        {"target": "/workspace", "device": status.st_dev, "inode": status.st_ino, "failure": ""}
    ]


def test_a_read_only_root_is_a_note_and_numbers_still_work(sandbox):
    box = sandbox("busybox", 1000, options=["--read-only"])
    hello = box.ready()
    assert any("passwd" in note and "Read-only file system" in note for note in hello["notes"])
    assert box.exec("id", "-u", user="1000:1000") == "1000"


def test_a_mount_that_is_not_there_is_told(sandbox):
    box = sandbox("busybox", 1000, mounts=["/nowhere"])
    assert box.start()["mounts"][0]["failure"] == "No such file or directory"
