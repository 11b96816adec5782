# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of the documents as they stand, on a private daemon. scripts/lib/documented_examples.txt
lists which.

With AGBOX_RECORD=1 the sessions of the documents get what was printed now: scripts/record."""

import json
import os
import re
import shlex

import pytest
from support.documents import blocks, differences, replace_block, run_script, run_session
from support.images import make_image
from support.sandboxes import wait_until
from support.service_images import POSTGRES, REDIS, make_service_images

CONFIG = '[network]\ndns = ["192.0.2.53"]\n'
# Documents whose examples need nothing but a daemon, and end with the history of what they made.
DOCUMENTS = (
    "docs/published_ports.md",
    "docs/running_commands.md",
    "docs/sandbox_container_lifecycle.md",
)
# Documents with sessions: commands, and what they print.
SESSIONS = ("README.md", "docs/mount_and_copy_strategy.md", "docs/quick_start.md")
RECORD = os.environ.get("AGBOX_RECORD") == "1"
FILES = "docs/declarative_yaml_config.md"
COPIES = "docs/mount_and_copy_strategy.md"
AGENTS = "docs/agent_sessions.md"
SERVICES = "docs/container_dependency_strategy.md"
CACHE = "companion=cache (optional service, redis:7): Ready, healthy\n"


def named_files(document: str) -> dict[str, str]:
    """Those whose first line is their name: `# app.yaml`."""
    found = {}
    for block in blocks(document, "yaml"):
        if name := re.match(r"# (\S+\.yaml)\n", block):
            found[name[1]] = block
    return found


def examples() -> list:
    """Named after their document."""
    return [pytest.param(block, id=f"{document}-{number}") for document in DOCUMENTS
            for number, block in enumerate(blocks(document, "sh"))]


@pytest.fixture
def daemon(make_daemon, engine, test_user):
    """Of an ordinary user, as readers have it: root's daemon has sandboxes whose user is root."""
    make_image(engine.api, "debian:12")  # by name; the examples need only a shell
    daemon = make_daemon(user=test_user, engine=engine, config=CONFIG).start()
    daemon.wait_for_message("engine is reachable")
    return daemon


def agbox(daemon, line: str, **options):
    program, *arguments = shlex.split(line)
    stdin = ""
    if program == "echo" and arguments[1:3] == ["|", "agbox"]:
        stdin, program, arguments = arguments[0] + "\n", "agbox", arguments[3:]
    assert program == "agbox", f"an example that this test cannot run: {line}"
    result = daemon.agbox(*arguments, input=stdin, timeout=60, **options)
    assert result.returncode == 0, f"{line}: {result.stderr}"
    return result


def test_every_document_has_examples() -> None:
    assert len(examples()) >= len(DOCUMENTS)


@pytest.mark.parametrize("example", examples())
def test_an_example_runs(daemon, example: str) -> None:
    for line in example.splitlines():
        result = agbox(daemon, line)
    assert "SANDBOX_DELETED" in result.stdout, "the history outlives the sandbox"
    finished(daemon)


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
    documented = blocks(FILES, "yaml")
    assert documented
    (daemon.home / "sandbox.yaml").write_text(documented[0])
    run_script(daemon, "".join(blocks(FILES, "sh")) + "agbox rm website\n")
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


def test_the_examples_of_copies_run(daemon) -> None:
    created, while_it_runs = blocks(COPIES, "sh")
    (yaml,) = blocks(COPIES, "yaml")
    run_script(daemon, """
        mkdir -p .config project/node_modules src results && touch .config/app.toml project/a.o src/main.c
        ln -s /etc/hostname project/node_modules/left-out
        """)
    run_script(daemon, f"cd src\n{created}")
    (daemon.home / "copies.yaml").write_text(yaml.replace("/home/me", str(daemon.home)))
    run_script(daemon, """
        agbox sandbox create -q --image debian:12 --sandbox-id demo --yaml-file copies.yaml
        test "$(agbox exec demo ls /workspace)" = ""
        agbox exec demo sh -c 'mkdir out; touch report.html out/a'
        """)
    assert sorted(run_script(daemon, while_it_runs).split()) == [
        "workspace/", "workspace/main.c", "workspace/out/", "workspace/out/a", "workspace/report.html",
        "workspace/src/", "workspace/src/main.c"]
    run_script(daemon, "test -f report.html && test -f results/out/a && agbox rm $(agbox ps -q)")


def test_an_agent_session_as_it_is_documented(daemon) -> None:
    directory = daemon.user.own(daemon.home / "project")
    readme = directory / "README.md"
    readme.write_text("A project\n")
    (example,) = blocks(AGENTS, "sh")
    for line in example.splitlines():
        result = agbox(daemon, line, cwd=directory)
        if line == "agbox diff agent-demo":
            assert "+written by an agent\n" in result.stdout
    assert "SANDBOX_DELETED" in result.stdout, "the history outlives the sandbox"
    assert readme.read_text() == "A project\nwritten by an agent\n"


def test_the_documented_agents_can_be_used(daemon) -> None:
    agents = daemon.config_file.parent / "agents"
    agents.mkdir()
    for name, yaml in named_files(AGENTS).items():
        (agents / name).write_text(yaml)
    listed = json.loads(agbox(daemon, "agbox agent --list --json").stdout)["agents"]
    own = {agent["name"]: agent["problem"] for agent in listed if agent["source"] != "builtin"}
    assert own == {"reviewer": "", "backend": ""}


def deleted(daemon) -> None:
    """agbox run does not wait for its deletion, and a later session lists sandboxes."""
    wait_until(lambda: "Deleting" not in agbox(daemon, "agbox ps").stdout, "the deletions of agbox run")


def finished(daemon) -> None:
    wait_until(lambda: agbox(daemon, "agbox ps -q").stdout == "", "the end of the deletions of agbox run")


@pytest.mark.parametrize("document", SESSIONS)
def test_a_session_prints_what_the_document_shows(document: str, daemon) -> None:
    """Except for times and the width of tables."""
    sessions = blocks(document, "console")
    transcripts = []
    for session in sessions:
        transcripts.append(run_session(daemon, session))
        deleted(daemon)
    finished(daemon)
    if RECORD:
        for session, transcript in zip(sessions, transcripts):
            if "..." not in session.splitlines():
                replace_block(document, "console", session, transcript)
        sessions = blocks(document, "console")
    for session, transcript in zip(sessions, transcripts, strict=True):
        assert not differences(session, transcript), transcript
