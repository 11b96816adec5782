# SPDX-License-Identifier: Apache-2.0
"""GetStats, WatchStats and agbox stats on real engines."""

import json

import grpc
import pytest
from support.execs import Execs
from support.images import make_image
from support.sandboxes import CONFIG, connected, started


@pytest.fixture
def daemon(make_daemon, test_user, engine):
    return started(make_daemon(user=test_user, engine=engine, config=CONFIG))


@pytest.mark.engines("20.10", "28")
def test_what_containers_use_is_measured(daemon, engine, contract):
    image = make_image(engine.api, "stats:1")
    service = contract.service
    db = contract.spec.CompanionContainerSpec(name="db", image=image, command=["sleep", "1000000"])
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("use-1", image, required_services=[db], memory_limit="256m")
        request = service.GetStatsRequest(sandbox_id="use-1")
        before = sandboxes.stub.GetStats(request, timeout=30).stats
        assert [container.name for container in before.containers] == ["primary", "db"]
        assert all(container.running and container.pids > 0 for container in before.containers)
        assert all(container.memory_bytes > 0 for container in before.containers)
        assert before.containers[0].memory_limit_bytes == 256 << 20
        assert before.time.ToNanoseconds() > 0

        burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; dd if=/dev/zero of=/tmp/x bs=1M count=8 conv=fsync"
        Execs(sandboxes, "use-1").run("sh", "-c", burn)
        watched = sandboxes.stub.WatchStats(service.WatchStatsRequest(sandbox_id="use-1"), timeout=30)
        first, second = next(watched).stats, next(watched).stats
        assert second.time.ToNanoseconds() - first.time.ToNanoseconds() > 500_000_000
        primary = first.containers[0]
        assert primary.cpu_time.ToNanoseconds() > before.containers[0].cpu_time.ToNanoseconds()
        assert primary.user_cpu.ToNanoseconds() + primary.system_cpu.ToNanoseconds() > 0

        shown = daemon.agbox("stats")
        assert shown.returncode == 0 and shown.stdout.splitlines()[1].split()[:2] == ["use-1", "primary"]
        as_json = json.loads(daemon.agbox("stats", "use-1", "--json").stdout)
        assert [container["name"] for container in as_json["containers"]] == ["primary", "db"]

        sandboxes.stop_wait("use-1")
        stopped = sandboxes.stub.GetStats(request, timeout=30).stats
        assert [container.running for container in stopped.containers] == [False, False]
        sandboxes.delete_wait("use-1")
        assert len(list(watched)) < 10, "it ends with the sandbox, without an error"
        with pytest.raises(grpc.RpcError) as error:
            sandboxes.stub.GetStats(request, timeout=30)
        assert error.value.code() == grpc.StatusCode.NOT_FOUND
