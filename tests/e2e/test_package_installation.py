# SPDX-License-Identifier: Apache-2.0
"""What agents do first in a Debian sandbox: sudo apt-get install. The packages come from a repository
in an internet of the test's own, through the firewall and within the limits of the container."""

import contextlib

import pytest
from support.agent_sessions import agbox, last_session, project, session
from support.apt_repository import GREETING, PACKAGE, make_repository
from support.execs import FINISHED, Execs, errors, output
from support.odd_images import make_debian_image
from support.process import LoggedProcess, base_environment
from support.sandboxes import CONFIG, connected, left_over, started

INTERNET, PORT = "203.0.113.10", 8080


@pytest.fixture
def engine_with_repository(make_engine, engine_name, directory):
    """An engine with an uplink to a place that serves packages."""
    engine = make_engine(engine_name)
    outside = engine.connect_outside()
    outside.run("ip", "address", "add", f"{INTERNET}/32", "dev", "lo")
    argv = [
        *("nsenter", f"--net={outside.network_namespace}", "--"),
        *("/usr/bin/python3", "-u", "-m", "http.server", str(PORT)),
        *("--bind", INTERNET, "--directory", str(make_repository(directory))),
    ]
    with contextlib.ExitStack() as stack:
        server = LoggedProcess("repository", argv, base_environment())
        stack.callback(server.kill)
        server.wait_for_line(lambda line: line.startswith("Serving"), "the server", timeout=20)
        yield engine


AGENT = f"""\
set -e
sudo -n sh -c "echo 'deb [trusted=yes] http://{INTERNET}:{PORT} ./' >/etc/apt/sources.list"
sudo -n apt-get --quiet update
sudo -n apt-get --quiet --yes install {PACKAGE}
{PACKAGE} >greeting.txt
"""


def test_sudo_apt_get_install(engine_with_repository, make_daemon, test_user, contract, say, tmp_path):
    engine = engine_with_repository
    image = make_debian_image(engine.api, say)
    daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("debian", image)
        execs = Execs(sandboxes, "debian")
        source = f"deb [trusted=yes] http://{INTERNET}:{PORT} ./"
        for command in (
            ("sudo", "-n", "sh", "-c", f"echo '{source}' > /etc/apt/sources.list"),
            ("sudo", "-n", "apt-get", "--quiet", "update"),
            ("sudo", "-n", "apt-get", "--quiet", "--yes", "install", PACKAGE),
        ):
            status = execs.run(*command)
            assert status.state == FINISHED, (command, output(status), errors(status))
        assert output(execs.run(PACKAGE)) == GREETING
        # And away again, with what dpkg keeps of it.
        removal = execs.run("sudo", "-n", "apt-get", "--quiet", "--yes", "purge", PACKAGE)
        assert removal.state == FINISHED, errors(removal)
        assert execs.run("sh", "-c", f"command -v {PACKAGE}").state != FINISHED
        sandboxes.delete_wait("debian")
    # The same as an agent does it, from the workspace to the patch.
    directory = project(daemon, "project", {"agent.sh": AGENT})
    with session(daemon, tmp_path, directory, "agent", "--image", image, "--command", "sh agent.sh") as tty:
        tty.wait_for("<code 0>", timeout=60)
    assert agbox(daemon, "apply", last_session(daemon))[0] == 0
    assert (directory / "greeting.txt").read_text() == GREETING
    assert left_over(engine) == []
    assert daemon.stop() == 0
