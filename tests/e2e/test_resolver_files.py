# SPDX-License-Identifier: Apache-2.0
"""The files that name the host's resolvers are replaced while the daemon runs."""

import json
import shutil

import grpc
import pytest
from support.daemon import PrivateDaemon
from support.images import make_image
from support.process import run
from support.sandboxes import connected, inspect, primary, started

CHANGED = "this host asks other resolvers, and so do new sandboxes"


class DaemonWithItsOwnEtc(PrivateDaemon):
    """Sees an /etc on top of the host's, in which the test changes what it likes, and nothing of the
    services that name resolvers elsewhere."""

    _MOUNT = """
    directory=$1; shift
    mount -t tmpfs tmpfs "$directory"
    mkdir "$directory/upper" "$directory/work"
    mount -t overlay -o "lowerdir=/etc,upperdir=$directory/upper,workdir=$directory/work" overlay /etc
    for others in /run/systemd /run/NetworkManager; do
      if [ -d "$others" ]; then mount -t tmpfs tmpfs "$others"; fi
    done
    rm -f /etc/resolv.conf
    echo "nameserver 192.0.2.7" > /etc/resolv.conf
    exec "$@"
    """

    def command(self, *arguments):
        place = self.directory / "etc"
        place.mkdir(exist_ok=True)
        enter = ["unshare", "--mount", "--propagation", "private", "--"]
        return [*enter, "sh", "-euc", self._MOUNT, "sh", str(place), *super().command(*arguments)]

    def change_etc(self, script):
        """Returns when the daemon has noticed."""
        lines = len(self.log_lines())
        run("nsenter", f"--target={self.pid}", "--mount", "--", "sh", "-euc", script)
        self.process.wait_for_line(lambda line: CHANGED in line, "the change", timeout=30, after=lines)


def given(engine, sandbox_id):
    return inspect(engine, primary(sandbox_id))["HostConfig"]["Dns"]


def within_reach(engine, daemon):
    """Those that the rules let sandboxes ask, in both copies alike."""
    found = []
    for table in daemon.firewall_tables():
        if table.startswith("inet"):
            listed = engine.world.run("nft", "-j", "list", "set", *table.split(), "resolvers").stdout
            found.append(set(json.loads(listed)["nftables"][1]["set"]["elem"]))
    assert len(found) == 2 and found[0] == found[1]
    return found[0]


@pytest.mark.engines("28")
def test_new_sandboxes_ask_the_resolvers_that_the_host_asks_then(
    bin_dir, run_directory, engine, contract
):
    image = make_image(engine.api, "resolvers:1")
    place = run_directory.new_directory("d")
    beside = {"network_namespace": engine.network_namespace, "docker_host": engine.docker_host}
    with DaemonWithItsOwnEtc(bin_dir, place, **beside) as daemon:
        started(daemon)
        with connected(daemon, contract) as sandboxes:
            sandboxes.create_ready("box-1", image)
            assert given(engine, "box-1") == ["192.0.2.7"]
            assert within_reach(engine, daemon) == {"192.0.2.7"}
            daemon.change_etc("echo nameserver 192.0.2.8 > /etc/new; mv /etc/new /etc/resolv.conf")
            sandboxes.create_ready("box-2", image)
            assert given(engine, "box-2") == ["192.0.2.8"]
            assert within_reach(engine, daemon) == {"192.0.2.7", "192.0.2.8"}
            # Only a stub, behind a link, without known upstream servers.
            stub = "echo nameserver 127.0.0.53 > /etc/stub; ln -s stub /etc/new; mv /etc/new /etc/resolv.conf"
            daemon.change_etc(stub)
            with pytest.raises(grpc.RpcError) as refused:
                sandboxes.create("box-3", image)
            assert "no resolver for the sandbox" in refused.value.details()
            daemon.change_etc("echo nameserver 192.0.2.9 > /etc/stub")
            sandboxes.create_ready("box-3", image)
            assert given(engine, "box-3") == ["192.0.2.9"]
            lines = len(daemon.log_lines())
            for name in ("box-1", "box-2", "box-3"):
                sandboxes.delete_wait(name)
            daemon.process.wait_for_line(
                lambda line: "sandbox firewall follows" in line and '"resolvers":1' in line,
                "the resolvers of nobody to go",
                timeout=30,
                after=lines,
            )
            assert within_reach(engine, daemon) == {"192.0.2.9"}
        assert daemon.stop() == 0
    shutil.rmtree(place)
