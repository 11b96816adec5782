# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of the documents as they stand, on a private daemon."""

import json
import re
import shlex

import pytest
from support.contract import REPOSITORY
from support.images import make_image
from support.sandboxes import wait_until
from support.service_images import POSTGRES, REDIS, make_service_images

CONFIG = '[network]\ndns = ["192.0.2.53"]\n'
# Documents whose examples need nothing but a daemon.
DOCUMENTS = (
    "docs/published_ports.md",
    "docs/quick_start.md",
    "docs/running_commands.md",
    "docs/sandbox_container_lifecycle.md",
)
SERVICES = "docs/container_dependency_strategy.md"
CACHE = "companion=cache (optional service, redis:7): Ready, healthy\n"


def blocks(document: str, language: str) -> list[str]:
    text = (REPOSITORY / document).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def named_files(document: str) -> dict[str, str]:
    """Those whose first line is their name: `# app.yaml`."""
    found = {}
    for block in blocks(document, "yaml"):
        if name := re.match(r"# (\S+\.yaml)\n", block):
            found[name[1]] = block
    return found


def examples() -> list[str]:
    return [block for document in DOCUMENTS for block in blocks(document, "sh")]


@pytest.fixture
def daemon(make_daemon, engine, test_user):
    """Of an ordinary user, as readers have it: root's daemon has sandboxes whose user is root."""
    make_image(engine.api, "debian:12")  # by name; the examples need only a shell
    daemon = make_daemon(user=test_user, engine=engine, config=CONFIG).start()
    daemon.wait_for_message("engine is reachable")
    return daemon


def agbox(daemon, line: str):
    program, *arguments = shlex.split(line)
    stdin = ""
    if program == "echo" and arguments[1:3] == ["|", "agbox"]:
        stdin, program, arguments = arguments[0] + "\n", "agbox", arguments[3:]
    assert program == "agbox", f"an example that this test cannot run: {line}"
    result = daemon.agbox(*arguments, input=stdin, timeout=60)
    assert result.returncode == 0, f"{line}: {result.stderr}"
    return result


def test_every_document_has_examples() -> None:
    assert len(examples()) >= len(DOCUMENTS)


@pytest.mark.parametrize("example", examples())
def test_an_example_runs(daemon, example: str) -> None:
    for line in example.splitlines():
        result = agbox(daemon, line)
    assert "SANDBOX_DELETED" in result.stdout, "the history outlives the sandbox"
    wait_until(lambda: agbox(daemon, "agbox ps -q").stdout == "", "the end of the deletions of agbox run")


@pytest.mark.xdist_group("servers")
def test_the_examples_of_services_print_what_they_show(daemon, engine, say) -> None:
    """Except for the time that a step takes."""
    make_service_images(engine.api, say)
    for image, repository, tag in ((POSTGRES, "postgres", "15"), (REDIS, "redis", "7")):
        engine.api.call("POST", f"/images/{image}/tag", query={"repo": repository, "tag": tag})
    for name, yaml in named_files(SERVICES).items():
        (daemon.home / name).write_text(yaml)
    seconds = re.compile(r"\d+\.\ds")
    printed = ""
    for example in blocks(SERVICES, "sh"):
        for line in example.splitlines():
            result = agbox(daemon, line)
            printed += result.stdout + result.stderr
            if "sandbox get" in line:  # it may take longer than the sandbox
                wait_until(lambda: CACHE in agbox(daemon, "agbox sandbox get app-1").stdout, "the optional service")
                printed += CACHE
        assert "SANDBOX_DELETED" in result.stdout, "the history outlives the sandbox"
    created, shown, *_ = blocks(SERVICES, "text")
    for line in (created + shown).splitlines():
        assert seconds.sub("0.0s", line) in seconds.sub("0.0s", printed), line


def test_a_sandbox_is_made_from_each_documented_file(daemon) -> None:
    documented = blocks("docs/declarative_yaml_config.md", "yaml")
    assert documented
    for number, yaml in enumerate(documented):
        file = daemon.home / f"{number}.yaml"
        file.write_text(yaml)
        line = f"agbox sandbox create --yaml-file {file} --sandbox-id file-{number} --label project=other"
        agbox(daemon, line)
        shown = json.loads(agbox(daemon, f"agbox sandbox get file-{number} --json").stdout)["sandbox"]
        assert shown["labels"] == {"project": "other"}, "flags override the file"
        inside = agbox(daemon, f"agbox exec run file-{number} -- sh -c 'echo $EDITOR'")
        assert inside.stdout == "vi\n"
        agbox(daemon, f"agbox sandbox delete file-{number}")


def test_the_session_in_the_readme_prints_what_it_shows(daemon) -> None:
    """Except for the time that a step takes."""
    (session,) = blocks("README.md", "console")
    shown = ""
    for line in session.splitlines():
        if line.startswith("$ "):
            result = agbox(daemon, line.removeprefix("$ "))
            shown += f"{line}\n{result.stdout}{result.stderr}"
    seconds = re.compile(r"\d+\.\ds")
    assert seconds.sub("0.0s", shown) == seconds.sub("0.0s", session)
    wait_until(lambda: agbox(daemon, "agbox ps -q").stdout == "", "the end of the deletions of agbox run")
