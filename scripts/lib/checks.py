# SPDX-License-Identifier: Apache-2.0
"""The checks that need no build, for scripts/check and scripts/test. `python3 scripts/lib/checks.py` runs them all."""
import sys

from commands import run_quietly

CHECKS = {
    "format": ["scripts/format", "--check"],
    "layers": ["scripts/check-layers"],
    "SPDX headers": ["scripts/check-spdx"],
    "contract": ["scripts/check-contract"],
    "generated bindings": ["scripts/generate_proto.sh", "--check"],
    "conformance table": ["scripts/check-conformance"],
    "Python SDK": ["scripts/check-python"],
    "engine calls": ["scripts/check-engine-contract"],
    "failpoints": ["scripts/check-failpoints"],
    "seccomp profile": ["scripts/make-seccomp-profile", "--check"],
    "documents": ["scripts/check-docs"],
    "results in README.md": ["scripts/results", "--check"],
    "version": ["scripts/check-version"],
}


def main() -> int:
    failed = []
    for name, command in CHECKS.items():
        ended = run_quietly(command)
        if ended.code != 0:
            print(ended.text, end="")
            failed.append(f"{name} ({' '.join(command)})")
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
