# SPDX-License-Identifier: Apache-2.0
"""Agent sessions on a real engine, in a terminal, as an ordinary user: from the workspace to the patch and back."""

import json
import os
import re
from pathlib import Path

import pytest
from support.agent_sessions import agbox, git, last_session, project, session
from support.daemon import PrivateDaemon
from support.images import Image, make_image
from support.sandboxes import CONFIG, started, wait_until
from support.service_images import CLIENT, POSTGRES, POSTGRES_PROBE, make_service_images

IMAGE = "agent/shell:1"
STUB = "agent/claude-stub:1"
CLAUDE = b'#!/bin/sh\necho "stub of claude: $*"\necho "by claude" >>notes.txt\n'

# What an agent does to a project: the kinds of changes that a patch can have.
AGENT = """\
set -e
sed -i s/one/ONE/ tracked.txt
echo new >added.txt
rm gone.txt
ln -s tracked.txt link
chmod +x script.sh
mkdir -p build deep/er
echo object >build/out.o
printf 'a\\000b' >deep/er/binary
exit 3
"""


@pytest.fixture
def daemon(make_daemon, test_user, engine) -> PrivateDaemon:
    make_image(engine.api, IMAGE)
    return started(make_daemon(user=test_user, engine=engine, config=CONFIG))


def is_gone(daemon: PrivateDaemon) -> bool:
    return agbox(daemon, "ps", "-q") == (0, "", "")


def test_a_scripted_agent_goes_from_the_workspace_to_the_patch(daemon, tmp_path):
    files = {"agent.sh": AGENT, "tracked.txt": "one\ntwo\n", "gone.txt": "gone\n", "script.sh": "#!/bin/sh\n",
             ".gitignore": "build/\n"}
    directory = project(daemon, "project", files)
    with session(daemon, tmp_path, directory, "agent", "--image", IMAGE, "--command", "sh agent.sh") as tty:
        screen = tty.wait_for("<code 3>")
    name = last_session(daemon)
    assert f"Sandbox {name} cleaned up." in screen, screen
    assert f"  Apply changes:      agbox apply {name}" in screen
    assert is_gone(daemon)

    shown = json.loads(agbox(daemon, "diff", "--json", name[:8])[1])
    assert shown["workspace"] == str(directory)
    changed = {file["path"]: (file["status"], file["link_target"]) for file in shown["files"]}
    assert changed == {"tracked.txt": ("M", None), "added.txt": ("A", None), "gone.txt": ("D", None),
                       "link": ("A", "tracked.txt"), "script.sh": ("M", None), "deep/er/binary": ("A", None)}
    code, patch, _ = agbox(daemon, "diff", name)
    assert code == 0 and "+ONE\n" in patch and "build" not in patch, "git ignores build/"
    assert "6 files changed" in agbox(daemon, "diff", "--stat", name)[1]

    (directory / "tracked.txt").write_text("one\ntwo\nthree\n")
    code, _, err = agbox(daemon, "apply", name)
    assert code == 1 and f"{directory} has uncommitted changes:\n  tracked.txt\n" in err
    assert not (directory / "added.txt").exists()
    git(daemon, directory, "commit", "--quiet", "--all", "--message", "own work")
    (directory / "added.txt").write_text("my own\n")
    code, _, err = agbox(daemon, "apply", "--force", name)
    assert code == 1 and "added.txt: already exists in working directory" in err
    assert (directory / "tracked.txt").read_text() == "one\ntwo\nthree\n", "all or nothing"
    (directory / "added.txt").unlink()

    assert agbox(daemon, "apply", name) == (0, "", f"Applied to {directory}: 6 files changed, 3 insertions(+), "
                                                   "2 deletions(-)\n")
    assert (directory / "tracked.txt").read_text() == "ONE\ntwo\nthree\n"
    assert (directory / "link").readlink() == Path("tracked.txt")
    assert (directory / "deep/er/binary").read_bytes() == b"a\0b"
    assert not (directory / "gone.txt").exists() and os.access(directory / "script.sh", os.X_OK)
    assert not (directory / "build").exists()
    code, _, err = agbox(daemon, "apply", name)
    assert (code, err) == (0, f"Nothing has changed since the changes were applied to {directory}.\n")


# git's own programs would run these, if it used the configuration or the attributes of the workspace.
HOSTILE = """\
set -e
echo '* filter=evil diff=evil merge=evil text eol=crlf ident working-tree-encoding=UTF-16' >.gitattributes
mkdir -p .git/hooks sub/.git/hooks bare/objects bare/refs
echo 'ref: refs/heads/main' >bare/HEAD
echo x >bare/objects/x
echo x >bare/refs/x
for each in .git sub/.git bare; do
  printf '[core]\\n\\tfsmonitor = touch %s\\n\\thooksPath = .\\n' "$1" >$each/config
  printf '[filter "evil"]\\n\\tclean = touch %s\\n\\tsmudge = touch %s\\n' "$1" "$1" >>$each/config
done
echo 'ref: refs/heads/main' >sub/.git/HEAD
ln -s /etc out
ln -s ../../../.. up
ln -sf /etc/passwd tracked.txt
rm -rf dir
ln -s /tmp dir
echo escape >"$(printf 'a\\033]0;title\\007b')"
echo newline >"$(printf 'new\\nline')"
printf 'text \\033[2J\\n' >content.txt
"""


def test_nothing_of_a_hostile_workspace_runs_or_leads_out(daemon, tmp_path):
    directory = project(daemon, "hostile", {"agent.sh": HOSTILE, "tracked.txt": "one\n", "dir/inner.txt": "inner\n"})
    marker = daemon.home / "it-ran"
    config = daemon.home / ".gitconfig"
    # As a user has who uses Git LFS: filters and drivers that only an attribute selects.
    config.write_text(f'[filter "evil"]\n\tclean = touch {marker}\n\tsmudge = touch {marker}\n\trequired = true\n'
                      f'[diff "evil"]\n\ttextconv = touch {marker}\n\tcommand = touch {marker}\n')
    before = (directory / ".git/config").read_text()
    with session(daemon, tmp_path, directory, "agent", "--image", IMAGE, "--command",
                 f"sh agent.sh {marker}") as tty:
        tty.wait_for("<code 0>")
    name = last_session(daemon)
    changed = {file["path"] for file in json.loads(agbox(daemon, "diff", "--json", name)[1])["files"]}
    assert changed == {".gitattributes", "out", "up", "tracked.txt", "dir/inner.txt", "dir", "bare/config",
                       "bare/HEAD", "bare/objects/x", "bare/refs/x",
                       "a\x1b]0;title\x07b", "new\nline", "content.txt"}
    assert agbox(daemon, "diff", "--stat", name)[0] == 0
    with session(daemon, tmp_path, directory, "diff", name) as tty:
        screen = tty.wait_for("<code 0>")
    assert r"+text \x1b[2J" in screen.splitlines()
    assert r'"b/a\033]0;title\ab"' in screen

    code, _, err = agbox(daemon, "apply", name)
    assert code == 1 and err.startswith("apply: bare/ is or would become a Git repository without a .git."), err
    assert agbox(daemon, "apply", "--force", name)[0] == 1, "a change of the user's own is another question"
    assert not (directory / "bare").exists()
    code, _, err = agbox(daemon, "apply", "--allow-repositories", name)
    assert code == 0, err
    assert "Warning: out is a link that leads out of the workspace, to /etc\n" in err
    assert "Warning: up is a link that leads out of the workspace, to ../../../..\n" in err
    assert (directory / "tracked.txt").readlink() == Path("/etc/passwd")
    assert (directory / "dir").readlink() == Path("/tmp") and not Path("/tmp/inner.txt").exists()
    assert (directory / "new\nline").read_text() == "newline\n", "no attribute converts it"
    assert (directory / ".git/config").read_text() == before and not (directory / "sub").exists()
    assert not marker.exists(), "nothing ran"
    git(daemon, directory, "add", "content.txt")
    assert marker.exists(), "the trap works: a git that uses the attributes runs it"


LINKED = """\
set -e
rm -rf dir
mkdir dir
echo changed >dir/file.txt
"""


def test_a_link_of_the_workspace_is_not_followed(daemon, tmp_path):
    directory = project(daemon, "links", {"agent.sh": LINKED, "dir/file.txt": "file\n"}, repository=False)
    outside = daemon.home / "outside"
    outside.mkdir()
    (outside / "file.txt").write_text("file\n")
    with session(daemon, tmp_path, directory, "agent", "--image", IMAGE, "--command", "sh agent.sh") as tty:
        tty.wait_for("<code 0>")
    (directory / "dir/file.txt").unlink()
    (directory / "dir").rmdir()
    (directory / "dir").symlink_to(outside)
    for flags in ([], ["--force"]):
        code, _, err = agbox(daemon, "apply", *flags, last_session(daemon))
        assert code == 1 and "dir/file.txt" in err, err
    assert (outside / "file.txt").read_text() == "file\n"


def test_without_git_changed_files_are_not_overwritten(daemon, tmp_path):
    script = "sed -i s/1/one/ a.txt; sed -i s/9/nine/ b.txt; mkdir out; echo x >out/x\n"
    numbers = "".join(f"{n}\n" for n in range(1, 10))
    directory = project(daemon, "plain", {"agent.sh": script, "a.txt": numbers, "b.txt": numbers}, repository=False)
    with session(daemon, tmp_path, directory, "agent", "--image", IMAGE, "--command", "sh agent.sh") as tty:
        tty.wait_for("<code 0>")
    name = last_session(daemon)
    (directory / "b.txt").write_text(numbers.replace("1\n", "first\n"))
    code, _, err = agbox(daemon, "apply", name)
    assert code == 1 and "has changed since the session began:\n  b.txt\n" in err
    assert (directory / "a.txt").read_text() == numbers
    assert agbox(daemon, "apply", "--force", name)[0] == 0
    assert (directory / "b.txt").read_text() == numbers.replace("1\n", "first\n").replace("9", "nine")
    assert (directory / "out/x").read_text() == "x\n"


def test_a_session_that_is_left_goes_on(daemon, tmp_path):
    script = "echo began >state.txt; echo up; read line; echo $line >state.txt; exit 4\n"
    directory = project(daemon, "left", {"agent.sh": script})
    with session(daemon, tmp_path, directory, "agent", "--image", IMAGE, "--command", "sh agent.sh", "--sandbox-id",
                 "agent-left") as tty:
        tty.wait_for("up")
        tty.press("C-p", "C-q")
        screen = tty.wait_for("<code 0>")
    assert "Sandbox agent-left is kept." in screen
    exec_id = re.search(r"agbox attach (\S+)", screen)[1]
    assert "+began\n" in agbox(daemon, "diff", "agent-left")[1]
    assert agbox(daemon, "apply", "agent-left")[0] == 0
    assert (directory / "state.txt").read_text() == "began\n"
    with session(daemon, tmp_path, directory, "attach", exec_id) as tty:
        tty.enter("ended")
        tty.wait_for("<code 4>")
    assert "+ended\n" in agbox(daemon, "diff", "agent-left")[1]
    code, _, err = agbox(daemon, "apply", "agent-left")
    assert code == 0, err
    assert (directory / "state.txt").read_text() == "ended\n", "what changed since the last time"
    assert agbox(daemon, "rm", "agent-left")[0] == 0
    assert "+ended\n" in agbox(daemon, "diff", "agent-left")[1], "the sandbox is gone, the changes are not"


def test_a_window_that_is_closed_deletes_the_sandbox_and_keeps_the_changes(daemon, tmp_path):
    directory = project(daemon, "closed", {"agent.sh": "echo saved >state.txt; echo up; sleep 300\n"})
    with session(daemon, tmp_path, directory, "agent", "--image", IMAGE, "--command", "sh agent.sh", "--sandbox-id",
                 "agent-closed") as tty:
        tty.wait_for("up")
    assert agbox(daemon, "sandbox", "wait", "--for", "deleted", "agent-closed") == (0, "", "")
    assert "+saved\n" in agbox(daemon, "diff", "agent-closed")[1]


def test_claude_asks_before_it_copies_what_is_no_repository(daemon, engine, tmp_path):
    make_image(engine.api, STUB, Image(files={"/usr/bin/claude": CLAUDE}))
    daemon.user.own(daemon.home / ".claude")
    directory = project(daemon, "notes", {"notes.txt": "mine\n"}, repository=False)
    question = f"{directory} is not a Git repository. It will be copied into the sandbox as your workspace."
    with session(daemon, tmp_path, directory, "claude", "--image", STUB) as tty:
        tty.wait_for(question)
        tty.enter("n")
        tty.wait_for("<code 1>")
    assert is_gone(daemon)
    with session(daemon, tmp_path, directory, "claude", "--image", STUB, "--yes") as tty:
        screen = tty.wait_for("<code 0>")
    assert "stub of claude: --dangerously-skip-permissions" in screen
    assert "+by claude\n" in agbox(daemon, "diff", last_session(daemon))[1]
    assert is_gone(daemon)
    assert agbox(daemon, "claude", "--image", STUB, cwd=directory)[0::2] == (
        2, "stdin is not a TTY; agbox agent requires an interactive terminal\n")


OWN = """\
description: Keeps a server
mode: long-running
image: {image}
command: [sh, -c, "echo serving; sleep infinity"]
requires:
- file: ~/.server.json
  json: login.token
  otherwise: Log in first.
ready_text: |
  Server:             {{host}}, token {{token}}
ready_values:
  host: {{command: [cat, /etc/hostname]}}
  token: {{file: ~/.server.json, json: login.token, prefix: "#"}}
"""


def test_a_long_running_agent_of_the_user(daemon):
    agents = daemon.config_file.parent / "agents"
    agents.mkdir()
    (agents / "server.yaml").write_text(OWN.format(image=IMAGE))
    (agents / "broken.yaml").write_text("image: debian:12\nagent_comand: [x]\n")
    code, out, _ = agbox(daemon, "agent", "--list")
    assert code == 0 and re.search(r"^server +long-running +none +\S+/server.yaml +Keeps a server$", out, re.M)
    assert agbox(daemon, "agent", "broken") == (
        2, "", f'{agents}/broken.yaml: line 2, column 1: unknown key "agent_comand"; did you mean "agent_command"?\n')
    code, _, err = agbox(daemon, "agent", "server")
    assert code == 2 and err.endswith('.server.json does not exist\n\nLog in first.\n')
    (daemon.home / ".server.json").write_text('{"login": {"token": "t-1"}}')
    code, out, err = agbox(daemon, "agent", "server", "--label", "group=own")
    assert code == 0, err
    name = out.strip()
    assert re.fullmatch(r"server-[0-9a-f]{6}", name)
    assert re.search(r"^  Server:             \S+, token #t-1$", err, re.M)
    shown = json.loads(agbox(daemon, "inspect", "--json", name)[1])["sandbox"]
    assert shown["labels"] == {"agent-type": "server", "created-by": "agbox-cli", "group": "own"}
    assert agbox(daemon, "rm", name)[0] == 0


DATABASE = """\
image: {client}
agent_command: [sh, agent.sh]
required_services:
  db:
    image: {image}
    command: [postgres]
    healthcheck:
      test: [{test}]
      interval: 1s
      timeout: 5s
      retries: 30
"""
QUERY = "psql -h db -U postgres -qAtc 'create table t(n int); insert into t values (42); select n from t' >answer.txt\n"


@pytest.mark.xdist_group("servers")
def test_an_agent_with_a_database(daemon, engine, say, tmp_path):
    make_service_images(engine.api, say)
    agents = daemon.config_file.parent / "agents"
    agents.mkdir()
    probe = ", ".join(POSTGRES_PROBE)
    (agents / "tester.yaml").write_text(DATABASE.format(client=CLIENT, image=POSTGRES, test=probe))
    directory = project(daemon, "database", {"agent.sh": QUERY})
    with session(daemon, tmp_path, directory, "agent", "tester") as tty:
        tty.wait_for("<code 0>", timeout=60)
    assert agbox(daemon, "apply", last_session(daemon))[0] == 0
    assert (directory / "answer.txt").read_text() == "42\n"
    wait_until(lambda: is_gone(daemon), "the end of the session's sandbox")
