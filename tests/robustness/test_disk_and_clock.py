# SPDX-License-Identifier: Apache-2.0
"""A full disk of the store, or clock jumps, under load with kills of the daemon."""

import json

import pytest
from robustness.faults import JumpingClock, SmallDisk
from support.sandboxes import CONFIG

pytestmark = pytest.mark.engines("28")

ROUNDS = 6
_YEAR = 365 * 86400.0


def test_a_full_disk(make_daemon, test_user, make_engine, engine_name, make_run, directory):
    engine = make_engine(engine_name)
    daemon = make_daemon(user=test_user, engine=engine)
    # Only the store is on the small disk: a private engine does not see later mounts.
    elsewhere = test_user.own(directory / "elsewhere")
    daemon.write_config(
        CONFIG.replace("[network]", f'state_root = "{elsewhere}/state"\n[network]')
        + f'[artifacts]\nexec_output_root = "{elsewhere}/logs"\n'
    )
    store = test_user.own(daemon.store.parent)
    disk = SmallDisk(store, "24m", daemon)
    try:
        run = make_run(daemon, engine)
        rng = run.rng("rounds")
        with run.crowd():
            for _ in range(ROUNDS):
                run.work(rng.randrange(20, 150))
                disk.fill()
                run.work(rng.randrange(20, 150))
                if rng.random() < 0.5:
                    run.killer.kill()
                    disk.make_room()
                    run.killer.start()
                disk.make_room()
        refused = [c for c in run.recorder.history.calls if "RESOURCE_EXHAUSTED" in c.error]
        run.judge(ready=1)
        assert refused, "the disk was never too full for a call"
    finally:
        try:
            daemon.end()  # before its disk goes
        finally:
            disk.end()


def test_a_clock_that_jumps(make_real_run, engine_name, directory, bin_dir):
    clock = JumpingClock(directory / "shift", bin_dir.parent / "tests" / "libclock_shift.so")
    try:
        run = make_real_run(engine_name, user=None, environment=clock.environment)
        run.recorder.history.clock_jumps = True
        rng = run.rng("rounds")
        with run.crowd():
            for years in rng.sample((-20, -1, -0.001, 0, 0.001, 5), k=6):
                clock.jump_to(years * rng.uniform(0.1, 1) * _YEAR)
                run.work(rng.randrange(20, 150))
                if rng.random() < 0.5:
                    run.killer.one_kill()
        lines = [*run.killer.logs, *run.daemon.log_lines()]
        run.judge(ready=1)
        days = {json.loads(line)["time"][:10] for line in lines if line.startswith("{")}
        assert len(days) >= 4, "the daemon did not see the jumps of months and years"
    finally:
        clock.end()
