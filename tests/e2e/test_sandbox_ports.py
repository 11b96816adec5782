# SPDX-License-Identifier: Apache-2.0
"""Published ports on real engines: who reaches them and who does not, who is named when one is taken, and
that they come and go with their sandbox."""

import contextlib
import os
import signal

import grpc
import pytest
from support.execs import Execs
from support.images import make_image
from support.probed_host import DOCKER0, UPLINK, VPN_ADDRESS, ProbedHost, Vantage, services
from support.process import LoggedProcess, base_environment, run
from support.sandboxes import (
    CONFIG,
    FAILED,
    READY,
    STOPPED,
    connected,
    emptied,
    left_over,
    primary,
    restarted,
    started,
    wait_until,
)

PUBLISHED, ALSO_PUBLISHED, INSIDE, UNPUBLISHED = 18080, 18081, 7004, 7005
TCP, UDP = 0, 1
OTHER_USER = 12345
ECHO = ("nc", "-ll", "-p", str(INSIDE), "-e", "cat")

# Prints whether what was sent to each ADDRESS/PORT came back.
ASK = """
import socket, sys
for place in sys.argv[1:]:
    address, port = place.split("/")
    try:
        with socket.create_connection((address, int(port)), timeout=5) as asker:
            asker.settimeout(5)
            asker.sendall(b"hello")
            print(asker.recv(64) == b"hello")
    except OSError:
        print(False)
"""


def answers(engine, *places, uid=0):
    """Whether each ADDRESS/PORT answers a user of the host."""
    user = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"] if uid else []
    argv = ["nsenter", f"--net={engine.network_namespace}", "--", *user, "/usr/bin/python3", "-c", ASK]
    return [line == "True" for line in run(*argv, *places).stdout.split()]


def is_published(engine):
    return answers(engine, f"127.0.0.1/{PUBLISHED}") == [True]


def port(sandboxes, host_port=PUBLISHED, container_port=INSIDE, protocol=TCP):
    return sandboxes.spec.PortMapping(
        host_port=host_port, container_port=container_port, protocol=protocol
    )


def wait_until_published(engine):
    """A sandbox is ready before its command listens."""
    wait_until(lambda: is_published(engine), "the service on the published port")


def create_publishing(engine, sandboxes, sandbox_id, image, **spec):
    """With an echo service on the published port."""
    spec.setdefault("ports", [port(sandboxes)])
    sandboxes.create_ready(sandbox_id, image, command=ECHO, **spec)
    wait_until_published(engine)


def refused(call, *arguments, **more):
    """The message and the reason of a refused call."""
    with pytest.raises(grpc.RpcError) as refusal:
        call(*arguments, **more)
    assert refusal.value.code() == grpc.StatusCode.FAILED_PRECONDITION, refusal.value
    metadata = dict(refusal.value.trailing_metadata() or ())
    assert b"PORT_IN_USE" in metadata["grpc-status-details-bin"], metadata
    return refusal.value.details()


def holder(text):
    return (
        f"host_port {PUBLISHED}/tcp on 127.0.0.1 is in use by {text}; "
        "free it, or create the sandbox with another host_port"
    )


@pytest.fixture
def image(engine):
    return make_image(engine.api, "ports:1")


@pytest.fixture
def daemon(make_daemon, test_user, engine):
    return started(make_daemon(user=test_user, engine=engine, config=CONFIG))


@pytest.fixture
def sandboxes(daemon, contract, engine):
    with emptied(daemon, contract, engine) as client:
        yield client


@contextlib.contextmanager
def listening(engine, user=None):
    """A process of the host on the port; yields its PID."""
    listen = (
        f"import socket; s = socket.create_server(('127.0.0.1', {PUBLISHED})); "
        "print('listens', flush=True); s.accept()"
    )
    argv = ["/usr/bin/python3", "-c", listen]
    argv = ["nsenter", f"--net={engine.network_namespace}", "--", *(user.command(argv) if user else argv)]
    process = LoggedProcess("listener", argv, base_environment())
    try:
        process.wait_for_line("listens".__eq__, "the listener", timeout=20)
        yield process.pid
    finally:
        process.kill()


@pytest.mark.engines("20.10", "26", "28", "29")
@pytest.mark.parametrize("proxy", ["true", "false"])
def test_the_host_reaches_a_published_port_and_no_one_else_does(
    make_engine, engine_name, make_daemon, test_user, contract, proxy
):
    engine = make_engine(engine_name, arguments=(f"--userland-proxy={proxy}",))
    with contextlib.ExitStack() as stack:
        host = ProbedHost(engine, stack)
        image = make_image(engine.api, "ports:1")
        daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
        sandboxes = stack.enter_context(connected(daemon, contract))
        several = [port(sandboxes), port(sandboxes, ALSO_PUBLISHED), port(sandboxes, protocol=UDP)]
        create_publishing(engine, sandboxes, "box-1", image, ports=several)
        sandboxes.create_ready("box-2", image)
        Execs(sandboxes, "box-1").create("nc", "-ll", "-p", str(UNPUBLISHED), "-e", "cat")
        host.open_barriers()  # of the new bridges too
        box, gateway = host.place("box-1")["IPAddress"], host.place("box-1")["Gateway"]
        other_gateway = host.place("box-2")["Gateway"]
        unpublished = f"{box}/{UNPUBLISHED}"
        wait_until(lambda: answers(engine, unpublished) == [True], "the second service")

        # The host: every user on 127.0.0.1; on the sandbox's address only root and the daemon's.
        published = f"127.0.0.1/{PUBLISHED}"
        assert answers(engine, published, f"127.0.0.1/{UNPUBLISHED}") == [True, False]
        assert answers(engine, f"127.0.0.1/{ALSO_PUBLISHED}") == [True]
        host.serve(host.network_namespace(primary("box-1")), f"udp/0.0.0.0/{INSIDE}")
        here = Vantage(engine.network_namespace)
        assert here.out_of_reach([f"udp/127.0.0.1/{PUBLISHED}"]) == set()
        places = (published, f"127.0.0.1/{UNPUBLISHED}", f"{box}/{INSIDE}", unpublished)
        assert answers(engine, *places, uid=OTHER_USER) == [True, False, False, False]
        assert answers(engine, *places, uid=test_user.uid) == [True, False, True, True]

        # Another sandbox, the sandbox itself, and the local network, whatever they send.
        addresses = (gateway, other_gateway, DOCKER0, UPLINK, VPN_ADDRESS)
        by_gateway = services(*addresses, port=PUBLISHED)
        by_frame = [
            f"{kind}-frame/{address}/{PUBLISHED}"
            for kind in ("tcp", "udp")
            for address in (*addresses, "127.0.0.1")
        ]
        directly = [*services(box, port=INSIDE), f"tcp/{box}/{UNPUBLISHED}", f"tcp/{box}/{PUBLISHED}"]
        neighbour = Vantage(host.network_namespace(primary("box-2")), other_gateway)
        itself = Vantage(host.network_namespace(primary("box-1")), gateway)
        outside = Vantage(host.outside.network_namespace, UPLINK)
        assert neighbour.reached(by_gateway + by_frame + directly) == set()
        assert itself.reached(by_gateway + by_frame) == set()
        assert outside.reached(services(UPLINK, port=PUBLISHED) + by_frame + directly) == set()

        # It is our rules that do it: without them the same probes get through.
        daemon.kill()
        for table in daemon.firewall_tables():
            engine.world.run("nft", "delete", "table", *table.split())
        assert neighbour.out_of_reach([f"tcp/{box}/{INSIDE}", f"tcp/{box}/{UNPUBLISHED}"]) == set()
        to_loopback = f"tcp-frame/127.0.0.1/{PUBLISHED}"
        assert outside.out_of_reach([f"tcp/{box}/{INSIDE}", to_loopback]) == set()


@pytest.mark.engines("20.10", "28")
def test_a_taken_port_is_refused_with_its_holder(sandboxes, engine, image, test_user):
    with listening(engine, test_user) as pid:
        assert refused(sandboxes.create, "box-1", image, ports=[port(sandboxes)]) == holder(
            f"process python3 (pid {pid})"
        )
    with listening(engine):  # whose processes an ordinary user cannot inspect
        assert refused(sandboxes.create, "box-1", image, ports=[port(sandboxes)]) == holder(
            "a process of user 0"
        )
    publish = f"127.0.0.1:{PUBLISHED}:80"
    engine.docker("run", "-d", "--name", "web", "-p", publish, image, "sleep", "1000")
    assert refused(sandboxes.create, "box-1", image, ports=[port(sandboxes)]) == holder("container web")
    engine.docker("rm", "-f", "web")

    # Nothing was reserved; the same ID can be used, and has the port until it stops.
    create_publishing(engine, sandboxes, "box-1", image)
    assert refused(sandboxes.create, "box-2", image, ports=[port(sandboxes)]) == holder("sandbox box-1")
    with pytest.raises(grpc.RpcError) as known:  # as without ports
        sandboxes.create("box-1", image, ports=[port(sandboxes)])
    assert known.value.code() == grpc.StatusCode.ALREADY_EXISTS
    # Another protocol is another port.
    sandboxes.create_ready("box-3", image, ports=[port(sandboxes, protocol=UDP)])

    sandboxes.stop_wait("box-1")
    assert not is_published(engine)
    create_publishing(engine, sandboxes, "box-2", image)
    assert refused(sandboxes.resume, "box-1") == holder("sandbox box-2")
    assert sandboxes.get("box-1").state == STOPPED
    sandboxes.delete_wait("box-2")
    assert not is_published(engine)
    with listening(engine):
        assert refused(sandboxes.resume, "box-1") == holder("a process of user 0")
    assert sandboxes.get("box-1").state == STOPPED
    sandboxes.resume_wait("box-1")
    wait_until_published(engine)


@pytest.mark.engines("20.10", "28")
def test_a_port_taken_during_the_start_fails_it_and_may_be_tried_again(
    make_daemon, test_user, engine, contract, image
):
    daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        create_publishing(engine, sandboxes, "box-1", image)
        sandboxes.stop_wait("box-1")
    daemon.stop()
    # The listener comes between the decision and the start.
    restarted(daemon, failpoints="resume.turn.before=stop")
    with connected(daemon, contract) as sandboxes:
        resumed = sandboxes.begin_resume("box-1")
        os.waitid(os.P_PID, daemon.pid, os.WSTOPPED)
        with listening(engine):
            daemon.signal(signal.SIGCONT)
            assert resumed.result().accepted
            events = sandboxes.follow("box-1", lambda event: event.sandbox_state == FAILED)
        assert events[-1].sandbox_phase.error_code == "PORT_IN_USE", events[-1]
        assert holder("a process of user 0") in events[-1].sandbox_phase.error_message
    daemon.stop()
    restarted(daemon)
    with connected(daemon, contract) as sandboxes:
        sandboxes.resume_wait("box-1")
        wait_until_published(engine)
        sandboxes.delete_wait("box-1")
        assert not is_published(engine)
    assert left_over(engine) == []


@pytest.mark.engines("28")
@pytest.mark.parametrize("end", [FAILED, READY])
def test_a_resume_goes_on_after_a_crash_while_the_holder_is_looked_for(
    make_daemon, test_user, engine, contract, image, end
):
    daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        create_publishing(engine, sandboxes, "box-1", image)
        sandboxes.stop_wait("box-1")
        newest = sandboxes.get("box-1").last_event_sequence
    daemon.stop()
    restarted(daemon, failpoints="resume.turn.before=stop;ports.holder.before=kill")
    with contextlib.ExitStack() as listener:
        with connected(daemon, contract) as sandboxes:
            resumed = sandboxes.begin_resume("box-1")
            os.waitid(os.P_PID, daemon.pid, os.WSTOPPED)
            listener.enter_context(listening(engine))
            daemon.signal(signal.SIGCONT)
            assert daemon.wait() == -signal.SIGKILL
            resumed.cancel()  # whether it was answered does not matter
        if end == READY:
            listener.close()
        restarted(daemon)
        with connected(daemon, contract) as sandboxes:
            events = sandboxes.follow(
                "box-1", lambda event: event.sequence > newest and event.sandbox_state in (READY, FAILED)
            )
            assert events[-1].sandbox_state == end, events[-1]
            if end == FAILED:
                assert events[-1].sandbox_phase.error_code == "PORT_IN_USE", events[-1]
                assert holder("a process of user 0") in events[-1].sandbox_phase.error_message
            sandboxes.delete_wait("box-1")
    assert left_over(engine) == []


@pytest.mark.engines("20.10", "28")
def test_ports_outlive_the_daemon_and_come_back_with_the_engine(
    make_engine, engine_name, make_daemon, test_user, contract
):
    engine = make_engine(engine_name)
    image = make_image(engine.api, "ports:1")
    daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        create_publishing(engine, sandboxes, "box-1", image)
        assert [(one.host_port, one.container_port) for one in sandboxes.get("box-1").ports] == [
            (PUBLISHED, INSIDE)
        ]
    daemon.kill()
    assert is_published(engine)
    restarted(daemon)
    with connected(daemon, contract) as sandboxes:
        assert is_published(engine)
        assert refused(sandboxes.create, "box-2", image, ports=[port(sandboxes)]) == holder(
            "sandbox box-1"
        )
        engine.restart()
        wait_until_published(engine)  # again, after the engine's restart
        assert sandboxes.get("box-1").state == READY
        sandboxes.delete_wait("box-1")
        create_publishing(engine, sandboxes, "box-2", image)
        sandboxes.delete_wait("box-2")
    assert left_over(engine) == []
