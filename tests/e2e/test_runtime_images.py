# SPDX-License-Identifier: Apache-2.0
"""The images of images/ with their real packages: built twice, pushed to a registry, and pulled by a daemon whose
sandboxes use what is inside. test_image_builds.py has everything but the packages, in seconds."""

import json
import os
import re
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.contract import REPOSITORY
from support.engine_root import cached
from support.execs import run_in
from support.image_builder import BuilderEngine, NodeArchive
from support.process import run
from support.registry import Registry
from support.sandboxes import CONFIG, connected, left_over, started

pytestmark = [pytest.mark.long, pytest.mark.engines("28")]

PREFIX = "images.test"
BASE = "debian-with-node:1"
NAMES = ("base-runtime", "coding-runtime", "openclaw-runtime", "paseo-runtime")
MEGABYTES = {"base-runtime": 450, "coding-runtime": 1400, "openclaw-runtime": 2100, "paseo-runtime": 2000}

# All are Debian's, and give no more than sudo does.
BASE_RIGHTS = {
    *(f"4755 root {program}" for program in ("chfn", "chsh", "gpasswd", "mount", "newgrp", "passwd", "su", "umount")),
    *(f"2755 shadow {program}" for program in ("chage", "expiry", "unix_chkpwd")),
}
CODING_RIGHTS = BASE_RIGHTS | {"4755 root sudo", "4755 root ssh-keysign", "2755 _ssh ssh-agent"}
RIGHTS = {
    "base-runtime": BASE_RIGHTS,
    "coding-runtime": CODING_RIGHTS,
    "openclaw-runtime": CODING_RIGHTS,
    "paseo-runtime": CODING_RIGHTS | {"2755 utmp utempter"},  # tmux
}

# What is installed, in the words of those who installed it.
LISTS = (
    "dpkg-query -W; uv --version; npm ls --global --all --parseable --long; "
    "[ ! -d /usr/local/lib/openclaw ] || npm ls --all --parseable --long --prefix /usr/local/lib/openclaw"
)
# Settings of the machine that builds, and the beginnings of tokens.
SETTINGS = re.compile(r"(^|/)(\.?npmrc|pip\.conf|auth\.conf|machine\.|certificates\.pem|\.netrc|credentials)")
# A key itself: programs that read keys have the line that one begins with.
SECRETS = re.compile(
    rb"_authToken *=|-----BEGIN [A-Z ]*PRIVATE KEY-----\s+[\w+/=]{40}|\bghp_\w{36}\b|\bsk-ant-\w{20}|\bnpm_\w{36}\b")
PRIVATE_KEYS = ("/test/", "/tests/", "/doc/", "/docs/", "README")  # examples of packages


def layers_of(builder: BuilderEngine, image: str) -> list[str]:
    return json.loads(builder.docker("image", "inspect", image).stdout)[0]["RootFS"]["Layers"]


def inside_image(builder: BuilderEngine, image: str, script: str) -> str:
    return builder.docker(
        "run", "--rm", "--network=none", "--entrypoint=sh", image, "-c", script, check=True).stdout


def added_files(builder: BuilderEngine, image: str, directory: Path) -> Iterator[tuple[str, bytes]]:
    """Every path in the layers on top of the base, with the content of small files; and the configuration."""
    archive = directory / "image.tar"
    builder.docker("image", "save", "--output", str(archive), image, timeout=600)
    with tarfile.open(archive) as saved:
        [description] = json.load(saved.extractfile("manifest.json"))
        yield "configuration", saved.extractfile(description["Config"]).read()
        for name in description["Layers"][len(layers_of(builder, BASE)):]:
            with tarfile.open(fileobj=saved.extractfile(name)) as layer:
                for file in layer:
                    is_small = file.isfile() and file.size < 1_000_000
                    yield file.name, layer.extractfile(file).read() if is_small else b""
    archive.unlink()


def own_certificates() -> list[bytes]:
    """Of this machine, which no image may trust: a line of each."""
    found = [path.read_bytes() for path in Path("/usr/local/share/ca-certificates").glob("**/*.crt")]
    return [text.strip().splitlines()[5] for text in found if text.count(b"\n") > 6]


def traces(builder: BuilderEngine, image: str, directory: Path) -> list[str]:
    certificates = own_certificates()
    found = []
    for name, content in added_files(builder, image, directory):
        is_example = any(part in name for part in PRIVATE_KEYS)
        if SETTINGS.search(name) and not name.startswith("usr/"):
            found.append(name)
        elif any(line in content for line in certificates) or (SECRETS.search(content) and not is_example):
            found.append(f"{name}: {SECRETS.search(content)}")
    return found


COMMON = {
    "whoami; id -u; echo $HOME; pwd": r"agbox\nUID\n/home/agbox\n/workspace\n",
    "touch f && stat -c %U . f; ls -A ~": r"agbox\nagbox\n",
    "git --version": r"git version 2\.\d+",
    "uv --version": r"uv \d+\.\d+\.\d+",
    "uvx --version": r"uvx \d+\.\d+\.\d+",
    "node --version": r"v24\.\d+\.\d+",
    "npm --version": r"11\.\d+\.\d+",
    "python3 -m venv /tmp/v && /tmp/v/bin/pip --version": r"pip \d",
}
CODING = {
    "claude --version": r"\d+\.\d+\.\d+ \(Claude Code\)",
    "codex --version": r"codex-cli \d+\.\d+\.\d+",
    "gh --version": r"gh version \d",
    "rg --version": r"ripgrep \d+",
    "ssh -V 2>&1": r"OpenSSH_\d",
    "sox --version": r"sox: +SoX v\d",
    "sudo -n apt-get --version": r"apt \d",
    # A repository of another owner, as a mount may be.
    "rm -rf .git; git init -q; git branch --show-current; sudo chown -R 4242 .; git status --short; sudo chown -R agbox .":
        r"main\n\?\? f\n",
}
ANSWERS = {
    "base-runtime": {"pip --version": r"pip \d"},
    "coding-runtime": CODING,
    "openclaw-runtime": CODING | {
        "openclaw --version": r"\s*OpenClaw \d+\.\d+\.\d+",
        "curl -sS --retry 120 --retry-delay 1 --retry-connrefused http://127.0.0.1:18789/": r"(?is).*<html",
        "node -p 'const {gateway} = JSON.parse(fs.readFileSync(process.env.HOME + \"/.openclaw/openclaw.json\")); "
        "[gateway.mode, gateway.bind, gateway.auth.mode].join()'": r"local,lan,token\n",
    },
    "paseo-runtime": CODING | {
        "getent passwd agbox": r"agbox:x:UID:\d+::/home/agbox:/bin/zsh\n",
        "zsh -ic 'whence -w _zsh_highlight _zsh_autosuggest_start fzf-history-widget' 2>/dev/null":
            r"_zsh_highlight: function\n_zsh_autosuggest_start: function\nfzf-history-widget: function\n",
        "opencode --version": r"\d+\.\d+\.\d+\n",
        "tmux -V; jq --version": r"tmux \d.*\njq-\d",
    },
}
# That a client gives; without one there is a sandbox to run commands in.
COMMANDS = {"openclaw-runtime": ("openclaw", "gateway", "run", "--port", "18789", "--bind", "lan")}


@pytest.fixture
def builder(run_directory, say):
    with BuilderEngine(run_directory) as builder:
        run("docker", "-H", builder.docker_host, "import", cached(NodeArchive(), say) / "tree.tar", BASE, timeout=300)
        yield builder


@pytest.fixture
def registry_directory(run_directory):
    directory = run_directory.new_directory("g")
    yield directory
    shutil.rmtree(directory)


def build_images(builder: BuilderEngine, *arguments: str) -> str:
    command = [REPOSITORY / "scripts" / "build-images", "--base", BASE, "--repository", PREFIX,
               "--network=host", "--machine-settings", *arguments]
    return run(*command, env={**os.environ, "DOCKER_HOST": builder.docker_host}, timeout=3600).stdout


@pytest.mark.parametrize("name", NAMES)
def test_an_image_is_reproducible_and_works_in_a_sandbox(
    builder, registry_directory, engine, make_daemon, test_user, contract, directory, say, name
) -> None:
    below = ["coding-runtime"] if name in ("openclaw-runtime", "paseo-runtime") else []
    with Registry(registry_directory) as registry:
        built = build_images(builder, "--push", registry.address, *below, name)
    sizes = dict(re.findall(rf"^{PREFIX}/(\S+):latest +(\d+) MB$", built, re.M))
    say(f"sizes in MB: {sizes}")
    assert list(sizes) == [*below, name]
    assert int(sizes[name]) <= MEGABYTES[name]

    image = f"{PREFIX}/{name}:latest"
    script = "find / -xdev -type f -perm /6000 -printf '%m %u:%g %f\\n'"
    found = inside_image(builder, image, script).replace("root:root", "root").replace("root:", "")
    assert set(found.splitlines()) == RIGHTS[name]
    assert traces(builder, image, directory) == []

    # The registry's files, where the private engine sees them.
    with Registry(registry_directory, engine.network_namespace) as registry:
        pulled = f"{registry.address}/{name}:latest"
        daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
        with connected(daemon, contract) as sandboxes:
            sandboxes.create_ready("agent", pulled, command=COMMANDS.get(name, ()))
            check_inside(sandboxes, test_user, COMMON)
            check_inside(sandboxes, test_user, ANSWERS[name])
            sandboxes.stop_wait("agent")
            sandboxes.resume_wait("agent")
            check_inside(sandboxes, test_user, COMMON)
            sandboxes.delete_wait("agent")
        assert left_over(engine) == []
        engine.docker("image", "rm", pulled)

    again = f"{PREFIX}/{name}:again"
    for one in below:
        builder.docker("tag", f"{PREFIX}/{one}:latest", f"{PREFIX}/{one}:again")
    build_images(builder, "--tag=again", "--no-cache", name)
    assert inside_image(builder, again, LISTS) == inside_image(builder, image, LISTS)
    assert layers_of(builder, again) == layers_of(builder, image)


def check_inside(sandboxes, user, answers: dict[str, str]) -> None:
    """Each command of the sandbox's user ends with 0, and its output begins as the expression says."""
    for command, answer in answers.items():
        code, text = run_in(sandboxes, "agent", command)
        assert code == 0, f"{command}: exit {code}: {text}"
        assert re.match(answer.replace("UID", str(user.uid)), text), f"{command}: {text}"
