# SPDX-License-Identifier: Apache-2.0
"""A daemon whose answers wait for something else is noticed by the limits of a Watch."""

import select
from statistics import median

import pytest

from support.sandboxes import CONFIG, connected, started
from support.watch import AS_QUICK, ON_A_BUSY_MACHINE, Watch

ANSWERS = 15


@pytest.mark.engines("28")
def test_a_daemon_that_waits_is_slower(make_daemon, engine, contract, image):
    daemon = started(make_daemon(engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        with Watch(daemon, contract, "box-1") as quiet:
            quiet.wait_for(ANSWERS)
        with Watch(daemon, contract, "box-1") as again:
            again.wait_for(ANSWERS)
        assert again.slowdown(quiet) < AS_QUICK
        wait = 4 * ON_A_BUSY_MACHINE * median(quiet.times)
        with Watch(daemon, contract, "box-1") as beside:
            while len(beside.times) < ANSWERS:
                daemon.process.freeze()
                select.select([], [], [], wait)
                daemon.process.thaw()
                select.select([], [], [], median(quiet.times))
        assert beside.slowdown(quiet) > ON_A_BUSY_MACHINE
        sandboxes.delete_wait("box-1")
