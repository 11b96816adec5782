# SPDX-License-Identifier: Apache-2.0
"""scripts/build-images on a base whose package managers install a file each: everything but the packages is
real. test_runtime_images.py has those."""

import json
import os
import re
import tarfile
from pathlib import Path

import pytest
from support.contract import REPOSITORY
from support.images import build_image
from support.odd_images import make_debian_image
from support.process import base_environment, run

pytestmark = pytest.mark.engines("28")

BASE = "package-managers:1"
PREFIX = "images.test"
# BuildKit makes such a layer for WORKDIR.
NO_FILES = "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"
NAMES = ("base-runtime", "coding-runtime", "openclaw-runtime", "paseo-runtime")
# Each leaves what a real one leaves, also what must not get into an image, and uses the settings of the machine
# if there are any.
PROGRAMS = {
    "apt-get": """#!/bin/sh -eu
if [ -f /build/machine.tar ]; then
  grep -q '^deb ' /etc/apt/sources.list
  ! grep -q 'of the base' /etc/apt/sources.list
fi
case " $* " in
  *" install "*)
    echo "$@" >/usr/share/packages
    cp /bin/true "/usr/bin/with-group"
    chgrp shadow /usr/bin/with-group
    chmod 2755 /usr/bin/with-group
    cp -p /bin/su /usr/bin/as-root
    touch "/usr/share/a file"
    ln -sf packages /usr/share/link
    date +%N >/var/log/dpkg.log
    date +%N >/var/cache/ldconfig/aux-cache ;;
  *" update "*) date +%N >/var/lib/apt/lists/index ;;
esac
""",
    "npm": """#!/bin/sh -eu
if [ -f /build/machine.tar ]; then
  grep -q secret.token "$npm_config_userconfig"
  grep -q secret.certificate "$NODE_EXTRA_CA_CERTS"
fi
modules=/usr/local/lib/node_modules
case $1 in
  root) echo $modules ;;
  install) mkdir -p $modules; echo "$@" >>$modules/list; date +%N >/tmp/npm.log ;;
  ci) [ -f "$3/package-lock.json" ]; mkdir -p "$3/node_modules/.bin"; touch "$3/node_modules/.bin/openclaw" ;;
esac
""",
    "node": "#!/bin/sh\n",
    "python3": """#!/bin/sh -eu
if [ -f /build/machine.tar ]; then echo "$PIP_INDEX_URL" | grep -q secret.password; fi
echo "$@" >/usr/local/bin/uv
""",
    "git": "#!/bin/sh\necho \"$@\" >>/etc/gitconfig\n",
}
LINES = (
    "COPY programs /usr/local/bin",
    "RUN chmod 0755 /usr/local/bin/* && echo '# of the base' >/etc/apt/sources.list && rm -f /etc/skel/.zshrc",
)


@pytest.fixture
def build_images(engine, directory: Path, say):
    """build_images("base-runtime", "--no-cache", DOCKER_BUILDKIT="0"): on a machine with settings of its own."""
    files = {f"programs/{name}": text.encode() for name, text in PROGRAMS.items()}
    build_image(engine.api, BASE, make_debian_image(engine.api, say), LINES, files)
    (directory / ".npmrc").write_text(
        "prefix=/elsewhere\nregistry=https://npm.invalid/\n//npm.invalid/:_authToken=secret-token\n"
    )
    (directory / "certificates").write_text("secret-certificate\n")
    environment = {
        **base_environment(),
        "DOCKER_HOST": engine.docker_host,
        "HOME": os.fspath(directory),
        "PIP_INDEX_URL": "https://user:secret-password@pypi.invalid/simple",
        "SSL_CERT_FILE": f"{directory}/certificates",
        "TMPDIR": f"{directory}/temporary",
    }
    (directory / "temporary").mkdir()

    def build(*arguments: str, check: bool = True, **more: str):
        command = [REPOSITORY / "scripts" / "build-images", "--repository", PREFIX, *arguments]
        return run(*command, env=environment | more, timeout=300, check=check)

    yield build
    assert list((directory / "temporary").iterdir()) == []
    for image in [f"{PREFIX}/{name}:{tag}" for name in reversed(NAMES) for tag in ("latest", "again")] + [BASE]:
        engine.docker("image", "rm", image, check=False)
    engine.docker("builder", "prune", "--all", "--force")


def layers(engine, image: str) -> list[str]:
    found = json.loads(engine.docker("image", "inspect", image).stdout)[0]["RootFS"]["Layers"]
    return [layer for layer in found if layer != NO_FILES]


def added_to_base(engine, image: str, directory: Path) -> str:
    """The configuration with its history, and every path and file of the layers on top of the base."""
    archive = directory / "image.tar"
    engine.docker("image", "save", "--output", str(archive), image)
    base = layers(engine, BASE)
    with tarfile.open(archive) as saved:
        [description] = json.load(saved.extractfile("manifest.json"))
        found = [saved.extractfile(description["Config"]).read().decode()]
        for name in description["Layers"][len(base):]:
            with tarfile.open(fileobj=saved.extractfile(name)) as layer:
                for file in layer:
                    found.append(f"{file.name} -> {file.linkname}")
                    if file.isfile():
                        found.append(layer.extractfile(file).read().decode(errors="replace"))
    archive.unlink()
    return "\n".join(found)


def test_images_have_the_same_layers_whoever_builds_them(engine, build_images, directory) -> None:
    """The classic builder with settings of the machine, and BuildKit without."""
    first = build_images("--base", BASE, "--machine-settings", "--network=host", DOCKER_BUILDKIT="0")
    sizes = re.findall(rf"^{PREFIX}/(\S+):latest +\d+ MB$", first.stdout, re.M)
    assert tuple(sizes) == NAMES, first.stdout
    stages = engine.docker("image", "ls", "--all", "--quiet", "--filter=label=agents-sandbox.build")
    assert stages.stdout == "", "they have the settings"

    coding = added_to_base(engine, f"{PREFIX}/coding-runtime:latest", directory)
    traces = ("usr/share/packages", "claude-code", "secret-", ".invalid", "machine.", "certificates.pem", "build/began", "npmrc",
              "etc/apt/sources.list -> ")
    assert [trace for trace in traces if trace in coding] == ["usr/share/packages", "claude-code"]

    build_images("--base", BASE, "--tag=again", "--no-cache", DOCKER_BUILDKIT="1")
    for name in NAMES:
        again = layers(engine, f"{PREFIX}/{name}:again")
        assert again == layers(engine, f"{PREFIX}/{name}:latest"), name
        assert len(again) >= 4, "the base has three"

    script = "stat -c '%U:%G %a' /usr/bin/with-group /usr/bin/as-root '/usr/share/a file' /workspace; readlink /usr/share/link"
    seen = engine.docker("run", "--rm", "--network=none", "--entrypoint=sh", f"{PREFIX}/coding-runtime:again", "-c", script)
    assert seen.stdout.splitlines() == [
        "root:shadow 2755", "root:root 4755", "root:root 644", "root:root 755", "packages"]


def test_what_is_missing_is_an_error(engine, build_images, directory) -> None:
    result = build_images("paseo-runtime", check=False)
    assert result.returncode == 1
    assert result.stderr.endswith(
        f"build-images: paseo-runtime is built on top of {PREFIX}/coding-runtime:latest, which does not exist; "
        "build it first: scripts/build-images coding-runtime paseo-runtime\n")

    plain = make_debian_image(engine.api)
    result = build_images("base-runtime", "--base", plain, check=False)
    assert result.returncode == 1
    assert "the base image must be a Debian with node and npm" in result.stdout + result.stderr
    assert "build-images: base-runtime could not be built; the output is above." in result.stderr

    # The apt sources of a machine with another release would mix two.
    other = build_image(engine.api, f"{PREFIX}/base-runtime:other", BASE,
                        ["RUN sed -i s/VERSION_CODENAME=.*/VERSION_CODENAME=other/ /usr/lib/os-release"])
    result = build_images("base-runtime", "--base", other, "--machine-settings", check=False)
    assert result.returncode == 1
    assert "the apt sources of the machine are for bookworm, and the base image is" in result.stdout + result.stderr
    engine.docker("image", "rm", other)
