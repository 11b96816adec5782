# SPDX-License-Identifier: Apache-2.0
"""What not every engine has, asked of real engines that do not have it: limits of a container's files, and
GPUs. The refusal names the field and the remedy."""

import grpc
import pytest
from support.images import make_image
from support.sandboxes import CONFIG, FAILED, emptied, started

pytestmark = pytest.mark.engines("20.10", "28")


@pytest.fixture
def sandboxes(make_daemon, test_user, engine, contract):
    daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
    with emptied(daemon, contract, engine) as client:
        yield client


def test_a_disk_limit_that_the_engine_cannot_keep_is_refused_and_reserves_nothing(sandboxes, engine):
    image = make_image(engine.api, "devices:1")
    with pytest.raises(grpc.RpcError) as refusal:
        sandboxes.create("box-1", image, disk_limit="1g")
    assert refusal.value.code() == grpc.StatusCode.FAILED_PRECONDITION, refusal.value
    message = refusal.value.details()
    assert message.startswith("disk_limit not supported by Docker runtime: its storage driver is "), message
    assert "overlay2 storage driver on XFS with prjquota mount option" in message
    sandboxes.create_ready("box-1", image)


def test_gpus_that_the_engine_cannot_give_fail_the_create_and_leave_nothing(sandboxes, engine):
    image = make_image(engine.api, "devices:1")
    sandboxes.create("box-1", image, gpus="all")
    events = sandboxes.follow("box-1", lambda event: event.sandbox_state == FAILED)
    phase = events[-1].sandbox_phase
    assert phase.error_code == "SANDBOX_CREATE_FAILED"
    assert phase.error_message.startswith(
        "gpus: the Docker Engine cannot give GPUs to containers: could not select device driver"
    ), phase
    assert "NVIDIA Container Toolkit" in phase.error_message
