# SPDX-License-Identifier: Apache-2.0
"""Who may talk to the daemon, what it answers, and that no client can do it harm."""

import os
import random
import resource
import shutil
import socket
import time

import grpc
import pytest
from support.process import cpu_seconds

SEED = 20240607  # random bytes, but the same ones in every run
HEALTH_SERVING = b"\x08\x01"  # HealthCheckResponse{status: SERVING}


def raw(channel: grpc.Channel, method: str, kind: str = "unary_unary"):
    """A call that speaks bytes: health and reflection are not part of our contract's modules."""
    return getattr(channel, kind)(method, request_serializer=bytes, response_deserializer=bytes)


def connected(daemon) -> socket.socket:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(10)
    client.connect(str(daemon.socket))
    return client


def ping(daemon, contract):
    with daemon.channel() as channel:
        return contract.stub(channel).Ping(contract.service.PingRequest(), timeout=10)


def test_health_and_reflection_are_served(daemon):
    with daemon.channel() as channel:
        check = raw(channel, "/grpc.health.v1.Health/Check")
        assert check(b"", timeout=10) == HEALTH_SERVING
        name = b"agbox.v1.SandboxService"
        assert check(b"\x0a" + bytes([len(name)]) + name, timeout=10) == HEALTH_SERVING
        list_services = b"\x3a\x01*"  # ServerReflectionRequest{list_services: "*"}
        for version in ("v1", "v1alpha"):
            path = f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
            reflection = raw(channel, path, "stream_stream")
            assert name in next(reflection(iter([list_services]), timeout=10))


@pytest.mark.parametrize(("method", "kind"), [("GetSandbox", "unary_unary"), ("HoldSandbox", "unary_stream")])
def test_a_request_that_cannot_be_parsed_is_an_invalid_argument(daemon, contract, method, kind):
    with daemon.channel() as channel, pytest.raises(grpc.RpcError) as refused:
        answer = raw(channel, f"/agbox.v1.SandboxService/{method}", kind)(b"\xff\xff\xff", timeout=10)
        list(answer)  # of a stream
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert refused.value.details() == f"the request is not a {method}Request"
    assert "grpc-status-details-bin" in dict(refused.value.trailing_metadata())


def test_an_engine_that_hangs_from_the_start_does_not_delay_a_create(make_daemon, run_directory, contract):
    directory = run_directory.new_directory("e")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(directory / "engine.sock"))
        silent.listen()
        daemon = make_daemon(docker_host=f"unix://{directory}/engine.sock").start()
        with daemon.channel() as channel:
            spec = contract.spec.CreateSpec(image="busybox")
            request = contract.service.CreateSandboxRequest(create_spec=spec)
            began = time.monotonic()
            with pytest.raises(grpc.RpcError) as refused:
                contract.stub(channel).CreateSandbox(request, timeout=30)
            # Existing clients give up after five seconds, which is also the timeout of the first attempt.
            assert time.monotonic() - began < 2
        assert refused.value.code() == grpc.StatusCode.UNAVAILABLE
        assert refused.value.details() == "the Docker Engine has not answered yet"
        assert daemon.stop() == 0
    shutil.rmtree(directory)


def test_a_refusal_has_error_info(daemon, contract):
    with daemon.channel() as channel, pytest.raises(grpc.RpcError) as refused:
        request = contract.service.StopSandboxRequest(sandbox_id="s-1")
        contract.stub(channel).StopSandbox(request, timeout=10)
    assert refused.value.code() == grpc.StatusCode.NOT_FOUND
    trailers = dict(refused.value.trailing_metadata())
    status = contract.error_details.Status.FromString(trailers["grpc-status-details-bin"])
    # What Python's grpc_status insists on.
    assert status.code == refused.value.code().value[0]
    assert status.message == refused.value.details()
    (detail,) = status.details
    assert detail.type_url == "type.googleapis.com/google.rpc.ErrorInfo"
    info = contract.error_details.ErrorInfo.FromString(detail.value)
    assert (info.domain, info.reason) == ("agents-sandbox", "SANDBOX_NOT_FOUND")
    assert info.metadata["sandbox_id"] == "s-1"


def let_everybody_through(daemon):
    """Makes the socket and its parent directories accessible."""
    daemon.socket.chmod(0o777)
    for directory in [daemon.socket.parent, daemon.runtime_directory, daemon.directory]:
        directory.chmod(0o755)


def test_another_user_is_refused_whatever_the_modes_say(make_daemon, test_user, contract):
    daemon = make_daemon().start()
    let_everybody_through(daemon)
    client = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.settimeout(10); s.connect(sys.argv[1]);"
        "print('received', s.recv(1))"
    )
    for _ in range(3):
        answer = test_user.run("/usr/bin/python3", "-c", client, daemon.socket)
        assert answer.stdout == "received b''\n"
    assert daemon.wait_for_message("refused a connection of another user")["uid"] == test_user.uid
    ping(daemon, contract)


def test_root_may_talk_to_a_users_daemon(make_daemon, test_user, contract):
    assert os.geteuid() == 0
    ping(make_daemon(user=test_user).start(), contract)


def test_a_flood_of_refused_connections_writes_few_lines(make_daemon, test_user):
    daemon = make_daemon().start()
    let_everybody_through(daemon)
    client = (
        "import socket, sys\n"
        "for _ in range(500):\n"
        "    with socket.socket(socket.AF_UNIX) as s:\n"
        "        s.connect(sys.argv[1])\n"
        "        s.recv(1)\n"
    )
    began = time.monotonic()
    test_user.run("/usr/bin/python3", "-c", client, daemon.socket)
    seconds = time.monotonic() - began
    refusals = [entry for entry in daemon.log() if entry["msg"] == "refused a connection of another user"]
    assert 1 <= len(refusals) <= seconds + 1


def test_half_open_and_silent_connections_are_closed(make_daemon, contract):
    daemon = make_daemon().start()
    silent = [connected(daemon) for _ in range(20)]
    preface_only = connected(daemon)
    preface_only.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    ping(daemon, contract)
    for client in [*silent, preface_only]:
        with client:
            while client.recv(65536):  # its settings, perhaps; then the end, before our timeout
                pass
    ping(daemon, contract)


def test_without_descriptors_it_neither_dies_nor_spins(make_daemon, contract):
    daemon = make_daemon().start()
    limit = len(os.listdir(f"/proc/{daemon.pid}/fd")) + 8
    before = _set_descriptor_limit(daemon.pid, limit)
    clients = [connected(daemon) for _ in range(40)]
    daemon.wait_for_message("cannot accept a connection, retrying", timeout=10)
    cpu_before = cpu_seconds(daemon.pid)
    time.sleep(1)  # the span over which CPU time is measured, not a wait for something
    assert cpu_seconds(daemon.pid) - cpu_before < 0.3
    for client in clients:
        client.close()
    _set_descriptor_limit(daemon.pid, before)
    ping(daemon, contract)


def test_streams_and_random_bytes_do_not_hold_up_the_end(daemon, contract):
    noise = random.Random(SEED)
    with daemon.channel() as channel:
        watch = raw(channel, "/grpc.health.v1.Health/Watch", "unary_stream")
        watches = [watch(b"", timeout=60) for _ in range(200)]
        for stream in watches:
            assert next(stream) == HEALTH_SERVING
        strangers = []
        for _ in range(50):
            client = connected(daemon)
            client.sendall(noise.randbytes(noise.randrange(1, 4096)))
            strangers.append(client)
        ping(daemon, contract)

        began = time.monotonic()
        assert daemon.stop() == 0
        assert time.monotonic() - began < 5
        codes = set()
        for stream in watches:
            with pytest.raises(grpc.RpcError) as end:
                for _ in stream:  # a last NOT_SERVING may come
                    pass
            codes.add(end.value.code())
        assert codes == {grpc.StatusCode.UNAVAILABLE}
    for client in strangers:
        client.close()
    for entry in daemon.log():
        assert entry["level"] in ("INFO", "WARN"), entry


def _set_descriptor_limit(pid: int, soft: int) -> int:
    """Returns the limit that held before."""
    before, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
    return before
