# SPDX-License-Identifier: Apache-2.0
"""Images have what they were asked to have, on every engine."""

from support.images import Image, make_image


def test_an_image_carries_its_configuration(engine):
    image = Image(
        labels={"one": "1", "with space": "a longer value"},
        environment={"GREETING": "hello world"},
        entrypoint=["/bin/sh", "-c"],
        command=["id -un; echo $GREETING; pwd"],
        user="nobody",
        working_directory="/tmp",
    )
    name = make_image(engine.api, "kit/configured:1", image)
    try:
        config = engine.api.call("GET", f"/images/{name}/json").json()["Config"]
        assert config["Labels"].items() >= image.labels.items()
        assert config["Entrypoint"] == ["/bin/sh", "-c"]
        assert engine.docker("run", "--rm", name).stdout == "nobody\nhello world\n/tmp\n"
    finally:
        engine.docker("rmi", name)


def test_an_image_without_a_shell_has_none(engine):
    name = make_image(engine.api, "kit/empty:1", Image(shell=False, files={"/data": b"x"}))
    try:
        started = engine.docker("run", "--rm", name, "/bin/sh", check=False)
        # Podman's answer to the docker program does not carry the code.
        assert started.returncode in ((1, 127) if engine.kind.podman else (127,)), started.stderr
    finally:
        engine.docker("rmi", "--force", name)
        engine.docker("container", "prune", "--force")
