# SPDX-License-Identifier: Apache-2.0
"""Commands as root in a run that a user started: what sudo drops from the environment, and its password."""
import os
import shutil
import subprocess
import sys
import threading

REFRESH_SECONDS = 60


def passed_on(**settings: str) -> list[str]:
    """Words for `env`: our variables, the proxies and CI of this environment, and the settings."""
    kept = {name: value for name, value in os.environ.items()
            if name.startswith("AGBOX_") or name.lower().endswith("_proxy") or name == "CI"}
    return [f"{name}={value}" for name, value in (kept | settings).items()]


def keep_authorized() -> None:
    """Asks for the password now, while someone is at the terminal, and not in the middle of the run."""
    if os.geteuid() == 0:
        return
    if shutil.which("sudo") is None:
        sys.exit("scripts/test: some steps need root and there is no sudo here; run it as root, or install sudo")
    if subprocess.run(["sudo", "-v"]).returncode != 0:
        sys.exit("scripts/test: some steps need root and sudo refused; run it as root, or as a user who may use sudo")
    threading.Thread(target=_refresh, daemon=True).start()


def _refresh() -> None:
    never = threading.Event()
    while not never.wait(REFRESH_SECONDS):
        # If it fails, the next command as root says why.
        subprocess.run(["sudo", "-n", "-v"], stderr=subprocess.DEVNULL)
