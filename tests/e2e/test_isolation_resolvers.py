# SPDX-License-Identifier: Apache-2.0
"""Whom a sandbox asks for names, on a host whose own resolvers are on its loopback."""

import contextlib

import grpc
import pytest
from support.images import make_image
from support.probed_host import INTERNET, RESOLVER, ProbedHost, Vantage, as_name
from support.sandboxes import connected, primary, started


@pytest.mark.engines("20.10", "29")
def test_a_resolver_on_the_hosts_loopback_is_never_asked(
    make_engine, engine_name, make_daemon, test_user, contract, directory
):
    """The engine resolves other names for a container itself, in the host's namespace."""
    own_run = directory / "run"
    own_run.mkdir()
    loopback = ("127.0.0.53", "127.0.0.1")
    resolv_conf = directory / "resolv.conf"
    resolv_conf.write_text("".join(f"nameserver {address}\n" for address in loopback))
    internet = [as_name(INTERNET)]
    with contextlib.ExitStack() as stack:
        engine = make_engine(engine_name)
        engine.world.run("mount", "--bind", resolv_conf, "/etc/resolv.conf")
        host = ProbedHost(engine, stack)
        asked = host.serve(engine.network_namespace, *(f"dns/{address}/53" for address in loopback))
        image = make_image(engine.api, "matrix:1")
        mounts = {"/etc/resolv.conf": resolv_conf, "/run": own_run}
        config = '[runtime]\nlog_level = "debug"\n'
        daemon = started(make_daemon(user=test_user, engine=engine, mounts=mounts, config=config))
        with connected(daemon, contract) as sandboxes, pytest.raises(grpc.RpcError) as refused:
            sandboxes.create("box-1", image)
        assert "the host's are all on loopback or IPv6; set network.dns" in refused.value.details()
        assert daemon.stop() == 0

        # As systemd-resolved publishes its upstream servers.
        (own_run / "systemd" / "resolve").mkdir(parents=True)
        (own_run / "systemd" / "resolve" / "resolv.conf").write_text(f"nameserver {RESOLVER}\n")
        started(daemon)
        with connected(daemon, contract) as sandboxes:
            sandboxes.create_ready("box-1", image)
            inside = Vantage(host.network_namespace(primary("box-1")))
            assert inside.out_of_reach(internet) == set()
            sandboxes.delete_wait("box-1")
            assert "asked" not in asked.lines()

        engine.docker("network", "create", "other")
        run = ["run", "-d", "--name", "other", "--network", "other"]
        engine.docker(*run, image, "sleep", "1000000")
        assert Vantage(host.network_namespace("other")).out_of_reach(internet) == set()
        asked.wait_for_line("asked".__eq__, "the engine's own question", timeout=10)
