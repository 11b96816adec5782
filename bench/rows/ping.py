# SPDX-License-Identifier: Apache-2.0
"""The round trip of a Ping: what our listener, peer check and service add to bare gRPC."""
import json
import subprocess
from pathlib import Path

from row import Aim, Gate, Measured, Row, Run
from server import start_daemon, start_echo, temporary_directory


def measure(run: Run) -> Measured:
    with temporary_directory() as name:
        directory = Path(name)
        with start_echo(run.build, directory / "echo") as echo, \
                start_daemon(run.build, directory / "daemon") as daemon:
            before = {"agboxd": daemon.cpu_ms(), "echo": echo.cpu_ms()}
            output = subprocess.run(
                [str(run.build / "bench" / "ping_bench"), str(run.rounds),
                 f"agboxd={daemon.socket_path}", f"echo={echo.socket_path}"],
                check=True, stdout=subprocess.PIPE, text=True, timeout=600).stdout
            spent = {"agboxd": daemon.cpu_ms() - before["agboxd"],
                     "echo": echo.cpu_ms() - before["echo"]}
    notes = [f"CPU of the server per 1,000 pings: {arm} {ms / run.rounds * 1000:.0f} ms"
             for arm, ms in spent.items()]
    return Measured(json.loads(output)["rounds"], notes)


ROW = Row(
    name="ping",
    title="one Ping on a Unix socket, agboxd and a bare gRPC echo",
    rounds=2000, check_rounds=2000, setup_s=1, round_s=0.001,
    measure=measure,
    gates=(Gate("ms", "agboxd", "echo", today=1.27, at_most=1.4),),
    aims=(Aim("ms", "agboxd", at_most=0.2), Aim("ms", "agboxd", quantile=0.99, at_most=0.5)),
)
