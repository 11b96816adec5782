# SPDX-License-Identifier: Apache-2.0
"""The examples of the documents run as they stand, on a private daemon."""

import re
import shlex
from pathlib import Path

import pytest
from support.contract import REPOSITORY
from support.images import make_image

CONFIG = '[network]\ndns = ["192.0.2.53"]\n'
# Documents whose examples need nothing but a daemon; README's are run by scripts/quickstart itself.
DOCUMENTS = ("docs/running_commands.md", "docs/sandbox_container_lifecycle.md")


def examples() -> list[str]:
    texts = [(REPOSITORY / name).read_text() for name in DOCUMENTS]
    return [block for text in texts for block in re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)]


def test_every_document_has_examples() -> None:
    assert len(examples()) >= len(DOCUMENTS)


@pytest.mark.parametrize("example", examples())
def test_an_example_runs(make_daemon, engine, bin_dir: Path, example: str) -> None:
    make_image(engine.api, "debian:12")  # by name; the examples need none of its contents
    daemon = make_daemon(engine=engine, config=CONFIG).start()
    daemon.wait_for_message("engine answers")
    for line in example.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "agbox", f"an example that this test cannot run: {line}"
        answer = daemon.agbox(*arguments, timeout=60)
        assert answer.returncode == 0, f"{line}: {answer.stderr}"
    assert "SANDBOX_DELETED" in answer.stdout, "the history outlives the sandbox"
