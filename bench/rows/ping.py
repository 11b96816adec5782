# SPDX-License-Identifier: Apache-2.0
"""The round trip of a Ping: what our listener, peer check and service add to bare gRPC."""
import json
import subprocess
from pathlib import Path

from row import Goal, Measured, Row, Target
from server import start_daemon, start_echo, temporary_folder


def measure(build: Path, rounds: int) -> Measured:
    with temporary_folder() as name:
        folder = Path(name)
        with start_echo(build, folder / "echo") as echo, \
                start_daemon(build, folder / "daemon") as daemon:
            before = {"agboxd": daemon.cpu_ms(), "echo": echo.cpu_ms()}
            output = subprocess.run(
                [str(build / "bench" / "ping_bench"), str(rounds),
                 f"agboxd={daemon.socket_path}", f"echo={echo.socket_path}"],
                check=True, stdout=subprocess.PIPE, text=True, timeout=600).stdout
            spent = {"agboxd": daemon.cpu_ms() - before["agboxd"],
                     "echo": echo.cpu_ms() - before["echo"]}
    notes = [f"CPU of the server per 1,000 pings: {arm} {ms / rounds * 1000:.0f} ms"
             for arm, ms in spent.items()]
    return Measured(json.loads(output)["rounds"], notes)


ROW = Row(
    name="ping",
    title="one Ping on a Unix socket, agboxd beside a bare gRPC echo",
    default_rounds=2000,
    measure=measure,
    goals=(Goal("ms", "agboxd", "echo", at_most=1.33),),
    targets=(Target("ms", "agboxd", 0.5, at_most=0.2), Target("ms", "agboxd", 0.99, at_most=0.5)),
)
