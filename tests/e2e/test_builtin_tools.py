# SPDX-License-Identifier: Apache-2.0
"""Builtin tools: what of the host their sandbox sees, how, and what stays inside."""

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from support.contract import REPOSITORY
from support.execs import run_in
from support.host_files import own
from support.images import Image, make_image
from support.process import base_environment
from support.sandboxes import (
    CONFIG,
    DELETED,
    FAILED,
    READY,
    connected,
    crashing,
    inside,
    invalid,
    left_over,
    restarted,
    started,
)

pytestmark = pytest.mark.engines("28")

OTHER_USER = 4242  # a user of this host
SSH_ADD = "/usr/bin/ssh-add"
NO_KEYS = (1, "The agent has no identities.\n")
PASSAGE = {"copy.part": "@100"}  # the receiver has the first of them by then


class Home:
    """The home directory of the daemon's user."""

    def __init__(self, daemon, user):
        self.path, self._user = daemon.home, user

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.own()
        return path

    def link(self, name: str, target) -> Path:
        (self.path / name).symlink_to(target)
        self.own()
        return self.path / name

    def own(self) -> None:
        own(self._user, self.path)


@pytest.fixture
def image(engine):
    return make_image(engine.api, "tools:1")


@pytest.fixture
def daemon(make_daemon, daemon_user, engine):
    daemon = make_daemon(user=daemon_user, engine=engine, config=CONFIG)
    daemon.files = Home(daemon, daemon_user)
    return daemon


def visible(handle):
    """What the handle says of each resource."""
    return {
        one.id: (one.tool, one.source, one.target,
                 *(word for word in ("writable", "socket", "shadow_copy") if getattr(one, word)))
        for one in handle.builtin_resources
    }


def skipped(daemon):
    """Why optional resources were left out, by ID."""
    return {line["mount"]: line["error"] for line in daemon.log()
            if line["msg"].startswith("skipping optional builtin mount: ")}


@pytest.mark.engines("20.10", "28")
def test_a_tool_shows_its_files_live_and_a_link_stays_a_link(daemon, daemon_user, contract, engine, image):
    home = daemon.files
    home.write(".claude/settings.json", "{}")
    home.link(".claude/link", "settings.json")
    home.write(".claude.json", "outside\n")
    home.write(".config/gh/hosts.yml", "token\n")
    uid = daemon_user.uid if daemon_user else 0
    with connected(started(daemon), contract) as sandboxes:
        sandboxes.create_ready("live", image, builtin_tools=["claude", "git"])
        assert run_in(sandboxes, "live", "readlink ~/.claude/link; cat ~/.claude/link ~/.claude.json") == (
            0, "settings.json\n{}outside\n")
        assert run_in(sandboxes, "live", "echo inside > ~/.claude/new; echo changed > ~/.claude.json")[0] == 0
        assert (home / ".claude/new").read_text() == "inside\n"
        assert (home / ".claude/new").stat().st_uid == uid
        assert (home / ".claude.json").read_text() == "changed\n"
        assert os.readlink(home / ".claude/link") == "settings.json"
        # The token of gh can be read, and nothing next to it is root's.
        code, shown = run_in(sandboxes, "live", "cat ~/.config/gh/hosts.yml; mkdir ~/.config/other && "
                                                "! echo x > ~/.config/gh/hosts.yml")
        assert (code, shown) == (0, "token\n")
        expected = {
            ".claude": ("claude", str(home / ".claude"), "/home/agbox/.claude", "writable"),
            ".claude.json": ("claude", str(home / ".claude.json"), "/home/agbox/.claude.json", "writable"),
            "gh-auth": ("git", str(home / ".config/gh"), "/home/agbox/.config/gh"),
        }
        assert visible(sandboxes.get("live")) == expected
        assert set(skipped(daemon)) == {"pulse-audio", "ssh-agent", "ssh-known-hosts"}
        sandboxes.stop_wait("live")
        # As programs save their settings.
        home.write(".claude.json.new", "saved\n").rename(home / ".claude.json")
        sandboxes.resume_wait("live")
        assert run_in(sandboxes, "live", "cat ~/.claude/new ~/.claude.json") == (0, "inside\nsaved\n")
        sandboxes.delete_wait("live")
        assert visible(sandboxes.get("live")) == expected
    assert left_over(engine) == []


@pytest.mark.engines("20.10", "28")
def test_a_tree_with_a_link_that_leads_out_is_copied_and_writes_stay_inside(
    daemon, daemon_user, contract, engine, image
):
    home = daemon.files
    home.write("secret", "secret\n")
    home.write(".claude/settings.json", "outside\n")
    home.write(".claude/run.sh", "#!/bin/sh\necho ran\n").chmod(0o755)
    home.link(".claude/inside", "settings.json")
    home.link(".claude/absolute", home / ".claude/settings.json")
    home.link(".claude/escaping", home / "secret")
    os.mkfifo(home / ".claude/fifo")
    home.own()
    before = sorted(os.listdir(home / ".claude"))
    with connected(started(daemon), contract) as sandboxes:
        sandboxes.create_ready("shadow", image, builtin_tools=["claude"])
        code, shown = run_in(sandboxes, "shadow", "cd ~/.claude; ls -A; "
                                                  "for l in inside absolute escaping; do readlink $l; done; "
                                                  "cat inside absolute; ./run.sh; stat -c %U:%a . run.sh; "
                                                  "! cat escaping")
        user = "agbox" if daemon_user else "root"
        assert (code, shown.split()) == (0, [
            "absolute", "escaping", "inside", "run.sh", "settings.json",
            "settings.json", "settings.json", str(home / "secret"),
            "outside", "outside", "ran", f"{user}:755", f"{user}:755"])
        # A program that replaces the link replaces that of the copy, also as root.
        script = ("cd /home/agbox/.claude; echo x > new; mv new escaping; echo x > settings.json; "
                  "mkdir r; touch r/x")
        inside(engine, "shadow", "sh", "-c", script, user="root")
        assert sorted(os.listdir(home / ".claude")) == before
        assert os.readlink(home / ".claude/escaping") == str(home / "secret")
        assert (home / ".claude/settings.json").read_text() == "outside\n"
        assert visible(sandboxes.get("shadow")) == {
            ".claude": ("claude", str(home / ".claude"), "/home/agbox/.claude", "writable", "shadow_copy")}
        text = daemon.agbox("sandbox", "get", "shadow").stdout
        assert f"\nbuiltin_tool=claude .claude: {home / '.claude'} -> /home/agbox/.claude " \
               "(shadow copy, writable)\n" in text
        # It is made once: what was written inside stays, and what happens outside is not seen.
        sandboxes.stop_wait("shadow")
        (home / ".claude/settings.json").write_text("later\n")
        sandboxes.resume_wait("shadow")
        assert run_in(sandboxes, "shadow", "cat ~/.claude/settings.json ~/.claude/escaping") == (0, "x\nx\n")
        def stored():
            return [path for path in daemon.directory.rglob("settings.json") if ".claude" not in path.parts]

        assert stored() == []
        sandboxes.delete_wait("shadow")
        assert stored() == []
    assert left_over(engine) == []


def test_a_link_never_brings_a_file_of_the_host_into_the_next_sandbox(daemon, contract, engine, image):
    """A sandbox that may write to a tool's files plants links; the next one has the same tool."""
    home = daemon.files
    home.write("secret/key", "secret\n")
    home.write(".codex/config", "x")
    with connected(started(daemon), contract) as sandboxes:
        sandboxes.create_ready("planter", image, builtin_tools=["codex"])
        plant = f"cd ~/.codex; ln -s {home / 'secret'} a; ln -s {home / 'secret/key'} b; ln -s ../secret/key c"
        assert run_in(sandboxes, "planter", plant)[0] == 0
        sandboxes.create_ready("finder", image, builtin_tools=["codex"])
        assert visible(sandboxes.get("finder"))[".codex"][-1] == "shadow_copy"
        assert run_in(sandboxes, "finder", "cd ~/.codex; find . | sort; ! cat a/key b c 2>/dev/null") == (
            0, ".\n./a\n./b\n./c\n./config\n")
        for sandbox_id in ("planter", "finder"):
            sandboxes.delete_wait(sandbox_id)


def test_root_inside_cannot_take_a_tool_from_the_next_sandbox(daemon, contract, engine, image):
    """What the daemon may not read, or would have to search for long, is mounted."""
    home = daemon.files
    home.write(".codex/config", "x\n")
    with connected(started(daemon), contract) as sandboxes:
        sandboxes.create_ready("planter", image, builtin_tools=["codex"])
        plant = ("cd /home/agbox/.codex; mkdir -m 0700 closed; "
                 "i=0; while [ $i -lt 130 ]; do mkdir d; cd d; i=$((i+1)); done")
        inside(engine, "planter", "sh", "-c", plant, user="root")
        sandboxes.create_ready("next", image, builtin_tools=["codex"])
        assert visible(sandboxes.get("next"))[".codex"][-1] == "writable"
        assert run_in(sandboxes, "next", "cat ~/.codex/config") == (0, "x\n")
        [line] = [line for line in daemon.log() if line["msg"].startswith("mounting a builtin tool whose")]
        assert line["mount"] == ".codex" and line["reason"].startswith(f"{home / '.codex'}/")
        [warning] = sandboxes.get("next").warnings
        assert warning == (f"builtin tool codex: {home / '.codex'} is mounted although not all of its symbolic "
                           f"links were inspected: {line['reason']}")
        for sandbox_id in ("planter", "next"):
            sandboxes.delete_wait(sandbox_id)


def test_a_shadow_copy_lacks_what_the_daemon_may_not_read_and_the_handle_says_so(
    make_daemon, test_user, contract, engine, image
):
    """Root in one sandbox cannot take the tool from the next one, whatever it leaves there."""
    daemon = make_daemon(user=test_user, engine=engine, config=CONFIG)
    home = Home(daemon, test_user)
    home.write(".codex/config", "x\n")
    with connected(started(daemon), contract) as sandboxes:
        sandboxes.create_ready("planter", image, builtin_tools=["codex"])
        plant = ("cd /home/agbox/.codex; ln -s /etc/passwd out; mkdir -m 0700 closed; echo x > closed/x; "
                 "echo x > secret; chmod 600 secret; mkdir d && cd d; "
                 "i=0; while [ $i -lt 130 ]; do mkdir d; cd d; i=$((i+1)); done")
        inside(engine, "planter", "sh", "-c", plant, user="root")
        sandboxes.create_ready("next", image, builtin_tools=["codex"])
        assert visible(sandboxes.get("next"))[".codex"][-1] == "shadow_copy"
        assert run_in(sandboxes, "next", "cd ~/.codex; cat config; ls -A") == (0, "x\nconfig\nd\nout\n")

        def warning():
            [line] = sandboxes.get("next").warnings
            return line

        shown = warning()
        assert shown.startswith(f"the shadow copy of {home / '.codex'} lacks 3 entries, such as {home / '.codex'}/")
        sandboxes.stop_wait("next")
        sandboxes.resume_wait("next")
        assert warning() == shown
        assert f"\nwarning={shown}\n" in daemon.agbox("sandbox", "get", "next").stdout
        done = daemon.agbox("sandbox", "create", "-q", "--image", image, "--sandbox-id", "typed",
                            "--builtin-tool", "codex", "--builtin-tool", "npm")
        assert (done.returncode, done.stdout) == (0, "typed\n")
        assert done.stderr == (f"Warning: builtin tool npm shows nothing: npm: stat {home / '.npm'}: no such file "
                               f"or directory\nWarning: {shown}\n")
        for sandbox_id in ("planter", "next", "typed"):
            sandboxes.delete_wait(sandbox_id)
    assert left_over(engine) == []


def test_a_shadow_copy_is_not_written_into_a_mount(daemon, contract, engine):
    """The volume of an image is one too, which the create does not know by its targets."""
    home = daemon.files
    home.write(".codex/config", "x\n")
    home.link(".codex/out", "/etc/passwd")
    image = make_image(engine.api, "tools-volume:1", Image(volumes=["/home/agbox/.codex"]))
    with connected(started(daemon), contract) as sandboxes:
        sandboxes.create("volume", image, builtin_tools=["codex"])
        events = sandboxes.follow("volume", lambda event: event.sandbox_state in {READY, FAILED})
        assert "/home/agbox/.codex: is in a mount or in a volume of the image" in (
            events[-1].sandbox_phase.error_message)
        sandboxes.delete_wait("volume")
    assert left_over(engine) == []


def test_a_link_of_a_sandbox_never_decides_what_the_next_one_mounts(
    make_daemon, test_user, contract, engine, image
):
    """The user's own links lead into a directory that a sandbox writes to."""
    daemon = make_daemon(user=test_user, engine=engine, config=CONFIG)
    home = Home(daemon, test_user)
    home.write(".claude/claude.json", "{}\n")
    home.write(".claude/agents/x", "x")
    home.write(".codex/x", "x")
    home.write(".ssh/id_ed25519", "secret\n").chmod(0o600)
    home.link(".claude.json", ".claude/claude.json")
    home.link(".agents", ".claude/agents")
    with connected(started(daemon), contract) as sandboxes:
        sandboxes.create_ready("planter", image, builtin_tools=["claude", "codex"])
        # Links of the user are followed.
        assert visible(sandboxes.get("planter"))[".claude.json"][1] == str(home / ".claude/claude.json")
        assert visible(sandboxes.get("planter"))[".agents"][1] == str(home / ".claude/agents")
        sandboxes.delete_wait("planter")
        sandboxes.create_ready("planter2", image, builtin_tools=["claude"])
        plant = "cd ~/.claude && ln -sf ../.ssh/id_ed25519 claude.json && rm -r agents && ln -s ../.ssh agents"
        assert run_in(sandboxes, "planter2", plant) == (0, "")
        sandboxes.create_ready("finder", image, builtin_tools=["claude", "codex"])
        assert set(visible(sandboxes.get("finder"))) == {".claude", ".codex"}
        for name, link in ((".claude.json", ".claude/claude.json"), (".agents", ".claude/agents")):
            assert skipped(daemon)[name].startswith(
                f"{home / link}, on the way to {home / name}, is a symbolic link that a sandbox could have made; ")
        assert run_in(sandboxes, "finder", "test ! -e ~/.claude.json && test ! -e ~/.agents && ! cat ~/.claude/agents/*")[
            0] == 0
        for sandbox_id in ("planter2", "finder"):
            sandboxes.delete_wait(sandbox_id)
    assert sorted(os.listdir(home / ".ssh")) == ["id_ed25519"]
    assert (home / ".ssh/id_ed25519").read_text() == "secret\n"


def image_with_ssh_add(engine) -> str:
    libraries = subprocess.run(["ldd", SSH_ADD], check=True, stdout=subprocess.PIPE, text=True).stdout
    paths = [SSH_ADD, *re.findall(r"(/[^ ]+) \(0x", libraries)]
    return make_image(engine.api, "tools-ssh:1", Image(files={path: Path(path).read_bytes() for path in paths}))


@contextlib.contextmanager
def ssh_agent(user, path):
    """An agent of that user that listens there."""
    command = ["/usr/bin/ssh-agent", "-D", "-a", str(path)]
    with subprocess.Popen(user.command(command) if user else command, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=base_environment(), text=True) as agent:
        try:
            assert agent.stdout.readline().startswith("SSH_AUTH_SOCK=")
            yield
        finally:
            agent.send_signal(signal.SIGTERM)


@pytest.mark.engines("20.10", "28")
def test_an_ssh_agent_of_the_user_is_reached_from_inside(daemon, daemon_user, contract, engine):
    image = image_with_ssh_add(engine)
    path = daemon.files / "agent"
    daemon.environment["SSH_AUTH_SOCK"] = "agent"  # its working directory is its home
    with ssh_agent(daemon_user, path), connected(started(daemon), contract) as sandboxes:
        sandboxes.create_ready("agent", image, builtin_tools=["git"])
        assert visible(sandboxes.get("agent"))["ssh-agent"] == (
            "git", str(path), "/ssh-agent", "writable", "socket")
        assert run_in(sandboxes, "agent", "echo $SSH_AUTH_SOCK; ssh-add -l") == (1, "/ssh-agent\n" + NO_KEYS[1])
        text = daemon.agbox("sandbox", "get", "agent").stdout
        assert f"\nbuiltin_tool=git ssh-agent: {path} -> /ssh-agent (socket)\n" in text
        sandboxes.delete_wait("agent")


@pytest.mark.engines("20.10", "28")
def test_an_ssh_agent_that_was_started_again_is_found_by_a_resume(make_daemon, test_user, contract, engine):
    image = image_with_ssh_add(engine)
    daemon = make_daemon(user=test_user, engine=engine, config=CONFIG)
    path = daemon.home / "agent"
    daemon.environment["SSH_AUTH_SOCK"] = str(path)
    with contextlib.ExitStack() as agents:
        agents.enter_context(ssh_agent(test_user, path))
        with connected(started(daemon), contract) as sandboxes:
            sandboxes.create_ready("again", image, builtin_tools=["git"])
            assert run_in(sandboxes, "again", "ssh-add -l") == NO_KEYS
            sandboxes.stop_wait("again")
            agents.close()
            path.unlink(missing_ok=True)
            with ssh_agent(test_user, path):
                sandboxes.resume_wait("again")
                assert run_in(sandboxes, "again", "ssh-add -l") == NO_KEYS
                sandboxes.stop_wait("again")
            path.unlink(missing_ok=True)
            sandboxes.resume("again")
            sandboxes.follow("again", lambda event: event.sandbox_state == FAILED)
            handle = sandboxes.get("again")
            assert handle.error_code == "MOUNT_CHANGED"
            assert f"builtin tool source {path} was removed" in handle.error_message
            sandboxes.delete_wait("again")
    assert left_over(engine) == []


def test_a_socket_that_another_user_linked_is_not_forwarded(
    make_daemon, test_user, contract, engine, image, directory
):
    """A directory of a session that ended, which another user of the host made again."""
    private, session = directory / "private", directory / "ssh-x"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(private))
        listener.listen()
        os.chown(private, test_user.uid, test_user.gid)
        session.mkdir()
        (session / "agent").symlink_to(private)
        os.chown(session, OTHER_USER, OTHER_USER)
        os.lchown(session / "agent", OTHER_USER, OTHER_USER)
        daemon = make_daemon(user=test_user, engine=engine, config=CONFIG,
                             environment={"SSH_AUTH_SOCK": str(session / "agent")})
        with connected(started(daemon), contract) as sandboxes:
            sandboxes.create_ready("linked", image, builtin_tools=["git"])
            assert skipped(daemon)["ssh-agent"] == (
                f"{session} belongs to uid {OTHER_USER}, not to the daemon's user or root")
            assert visible(sandboxes.get("linked")) == {}
            sandboxes.delete_wait("linked")


@pytest.mark.parametrize(("kind", "words"), [
    ("missing", "no such file or directory"),
    ("file", "is not a Unix socket"),
    ("stranger", "belongs to uid 0, not to the daemon's user"),
    ("engine", "which no sandbox may see"),
])
def test_what_is_not_a_socket_of_the_user_is_not_forwarded(
    make_daemon, test_user, contract, engine, image, directory, kind, words
):
    path = engine.socket if kind == "engine" else directory / kind
    with socket.socket(socket.AF_UNIX) as listener:
        if kind == "file":
            path.write_text("x")
            os.chown(path, test_user.uid, test_user.gid)
        if kind == "stranger":
            listener.bind(str(path))
            listener.listen()
            path.chmod(0o777)
        daemon = make_daemon(user=test_user, engine=engine, config=CONFIG,
                             environment={"SSH_AUTH_SOCK": str(path)})
        with connected(started(daemon), contract) as sandboxes:
            sandboxes.create_ready("none", image, builtin_tools=["git"])
            assert words in skipped(daemon)["ssh-agent"]
            assert visible(sandboxes.get("none")) == {}
            assert run_in(sandboxes, "none", "test ! -e /ssh-agent; echo $?$SSH_AUTH_SOCK") == (0, "0\n")
            sandboxes.delete_wait("none")


def test_what_is_missing_or_in_the_way_is_refused_and_reserves_nothing(daemon, contract, engine, image):
    home = daemon.files
    with connected(started(daemon), contract) as sandboxes:
        def create(**spec):
            return invalid(sandboxes.create, "never", image, builtin_tools=["claude"], **spec)

        assert create() == (f"builtin tool claude: stat {home / '.claude'}: no such file or directory; "
                            "start claude on this host once, or leave the tool out")
        home.write(".claude/x", "x")
        mount = sandboxes.spec.MountSpec(source=str(home / ".claude"), target="~/.claude/")
        assert create(mounts=[mount]).startswith(
            f"conflicting mount target /home/agbox/.claude for {home / '.claude'} and ")
        copy = sandboxes.spec.CopySpec(source=str(home / ".claude"), target="/home/agbox/.claude/")
        assert "conflicting mount target /home/agbox/.claude" in create(copies=[copy])
        # The copy of the tool would be written to the host.
        home.link(".claude/out", "/etc")
        below = sandboxes.spec.MountSpec(source=str(home / ".claude"), target="~/.claude/skills", writable=True)
        assert f"the copy would be written to {home / '.claude'}" in create(mounts=[below])
        assert list(sandboxes.page(include_deleted=True).sandboxes) == []
    assert left_over(engine) == []


# With what a create of a tool has more than others: its tree is copied.
@pytest.mark.parametrize("failpoint", ["create.mounts.after", "create.container.after", "start.container.after",
                                       "create.copy.before", "copy.part", "create.copy.after",
                                       "start.entrypoint.after"])
def test_a_killed_daemon_leaves_no_half_copy(make_daemon, test_user, contract, engine, image, failpoint):
    daemon = make_daemon(user=test_user, engine=engine, config=CONFIG,
                         environment={"AGBOX_FAILPOINTS": f"{failpoint}=kill{PASSAGE.get(failpoint, '')}"})
    home = Home(daemon, test_user)
    for number in range(200):
        home.path.joinpath(".claude").mkdir(exist_ok=True)
        (home / f".claude/{number}").write_text("x" * 10000)
    home.link(".claude/out", "/etc/passwd")
    with connected(started(daemon), contract) as sandboxes, crashing(daemon):
        sandboxes.create("crash", image, builtin_tools=["claude"])
    with connected(restarted(daemon), contract) as sandboxes:
        sandboxes.wait("crash", READY)
        assert run_in(sandboxes, "crash", "cat ~/.claude/[0-9]* | wc -c") == (0, "2000000\n")
        assert visible(sandboxes.get("crash"))[".claude"][-1] == "shadow_copy"

        # Nothing of it is put anywhere else on the host.
        def stored():
            return [path for path in daemon.directory.rglob("199") if ".claude" not in path.parts]

        assert stored() == []
        sandboxes.delete_wait("crash")
        assert stored() == []
    assert left_over(engine) == []


def test_the_command_line_and_the_yaml_file_name_tools(daemon, contract, engine, image, directory):
    home = daemon.files
    home.write(".npm/x", "cached\n")
    home.write(".codex/x", "x")
    started(daemon)
    file = directory / "tools.yaml"
    file.write_text(f"image: {image}\nbuiltin_tools: [npm]\n")
    done = daemon.agbox("sandbox", "create", "-q", "--yaml-file", str(file), "--sandbox-id", "typed",
                        "--builtin-tool", "codex", "--builtin-tool", "npm")
    assert done.returncode == 0, done.stderr
    shown = json.loads(daemon.agbox("sandbox", "get", "typed", "--json").stdout)["sandbox"]
    assert [(one["tool"], one["id"]) for one in shown["builtin_resources"]] == [("npm", "npm"), ("codex", ".codex")]
    done = daemon.agbox("exec", "run", "typed", "--", "sh", "-c", "cat ~/.npm/x; echo x > ~/.npm/y")
    assert (done.returncode, done.stdout) == (0, "cached\n")
    assert (home / ".npm/y").read_text() == "x\n"
    done = daemon.agbox("sandbox", "create", "--builtin-tool", "vim")
    assert (done.returncode, done.stderr) == (
        2, '--builtin-tool "vim": must be one of claude, codex, git, uv, npm, apt, opencode\n')
    assert daemon.agbox("sandbox", "delete", "typed").returncode == 0


def test_a_replaced_source_ends_the_sandbox_by_name(daemon, contract, engine, image):
    home = daemon.files
    home.write(".claude/x", "x")
    with connected(started(daemon), contract) as sandboxes:
        sandboxes.create_ready("changed", image, builtin_tools=["claude"])
        sandboxes.stop_wait("changed")
        (home / ".claude").rename(home / "before")
        home.write(".claude/x", "another")
        sandboxes.resume("changed")
        sandboxes.follow("changed", lambda event: event.sandbox_state == FAILED)
        handle = sandboxes.get("changed")
        assert handle.error_code == "MOUNT_CHANGED"
        assert f"builtin tool source {home / '.claude'} was replaced" in handle.error_message
        sandboxes.delete("changed")
        sandboxes.wait("changed", DELETED)
    assert left_over(engine) == []


@pytest.mark.engines("20.10", "28")
def test_the_documented_examples_run(make_daemon, test_user, engine):
    text = (REPOSITORY / "docs/builtin_tools.md").read_text()
    (commands,) = re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)
    (yaml,) = re.findall(r"^```yaml\n(.*?)^```", text, re.M | re.S)
    make_image(engine.api, "debian:12")
    daemon = make_daemon(user=test_user, engine=engine, config=CONFIG)
    home = Home(daemon, test_user)
    home.write(".claude/settings.json", "{}")
    home.write(".npm/x", "x")
    started(daemon)
    shown = ""
    for line in commands.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "agbox", line
        done = daemon.agbox(*arguments, timeout=60)
        assert done.returncode == 0, f"{line}: {done.stderr}"
        shown += done.stdout
    assert f"builtin_tool=claude .claude: {home / '.claude'} -> /home/agbox/.claude (writable)\n" in shown
    assert "\nsettings.json\n" in shown
    file = home.write("tools.yaml", yaml)
    assert daemon.agbox("sandbox", "create", "--yaml-file", str(file), "--sandbox-id", "file").returncode == 0
    assert "builtin_tool=npm npm: " in daemon.agbox("sandbox", "get", "file").stdout
    assert daemon.agbox("sandbox", "delete", "file").returncode == 0
