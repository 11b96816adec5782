# SPDX-License-Identifier: Apache-2.0
"""Changed files: against the main branch or, on it, in the last four hours before HEAD.

Most checks cover everything. The few that take minutes cover what changed, and everything with --long.
`python3 scripts/lib/changes.py` prints the commit that is compared with.
"""
import subprocess
import sys
from pathlib import Path

# A clean clone of main has no other indication of what is new.
SITTING = 4 * 60 * 60


def base_commit(root: Path) -> str | None:
    """None if unknown: without a repository or its history, everything has changed."""
    head = _git(root, "rev-parse", "HEAD")
    fork = _git(root, "merge-base", "HEAD", "origin/main") or _git(root, "merge-base", "HEAD", "main")
    if fork and fork != head:
        return fork
    committed = _git(root, "show", "--no-patch", "--format=%ct", "HEAD")
    if not committed:
        return None
    # What was merged within these hours is new here, however old its own commits are.
    return _git(root, "rev-list", "-1", "--first-parent", f"--before={int(committed) - SITTING}", "HEAD") or None


def changed_files(root: Path) -> list[str] | None:
    """Paths relative to the root, also of files that git does not track yet; None: take everything."""
    base = base_commit(root)
    if base is None:
        return None
    changed = _git(root, "diff", "--name-only", base)
    untracked = _git(root, "ls-files", "--others", "--exclude-standard")
    if changed is None or untracked is None:
        return None
    return sorted({*changed.splitlines(), *untracked.splitlines()})


def _git(root: Path, *arguments: str) -> str | None:
    try:
        # Root may test another user's clone.
        run = subprocess.run(["git", "-c", f"safe.directory={root}", "-C", str(root), *arguments],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except FileNotFoundError:
        return None
    return run.stdout.strip() if run.returncode == 0 else None


if __name__ == "__main__":
    print(base_commit(Path(__file__).resolve().parents[2]) or "")
    sys.exit(0)
