# SPDX-License-Identifier: Apache-2.0
"""The machine starts again, and the engine before the daemon: nothing of a sandbox runs before its
isolation is proven."""

import pytest
from support.images import make_image
from support.sandboxes import (
    CONFIG,
    connected,
    inspect,
    left_over,
    primary,
    restarted,
    started,
    times_logged,
    wait_for_log,
)

COMMAND = ["sh", "-c", "echo begun; exec sleep 1000000"]


def links(engine):
    return [thing for thing in left_over(engine) if thing.startswith("link ")]


@pytest.mark.engines("20.10", "26", "28", "29")
def test_after_a_reboot_nothing_runs_before_the_isolation_is_proven(
    make_engine, engine_name, make_daemon, test_user, contract
):
    engine = make_engine(engine_name)
    image = make_image(engine.api, "reboot:1")
    daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image, command=COMMAND)
        wait_for_log(engine, "box-1", "begun")
    assert inspect(engine, primary("box-1"))["HostConfig"]["RestartPolicy"]["Name"] == "no"
    daemon.kill()
    engine.reboot()
    daemon.network_namespace = engine.network_namespace
    # The engine is back and has made the bridge again; no rule is there, and nothing runs.
    assert links(engine) != [] and daemon.firewall_tables() == []
    assert inspect(engine, primary("box-1"))["State"]["Running"] is False
    # The verification of the start succeeds, that of the sandbox fails.
    restarted(daemon, "isolation.damage=error@2")
    daemon.process.wait_for_line(
        lambda line: "the container could not be started and is tried again" in line
        and "the sandbox firewall is not as expected" in line,
        "the refusal",
        timeout=30,
    )
    assert times_logged(engine, "box-1", "begun") == 1
    daemon.kill()
    restarted(daemon)
    with connected(daemon, contract) as sandboxes:
        daemon.wait_for_message("the container was started again")
        wait_for_log(engine, "box-1", "begun", times=2)
        assert times_logged(engine, "box-1", "begun") == 2
        sandboxes.delete_wait("box-1")
