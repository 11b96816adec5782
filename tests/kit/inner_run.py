# SPDX-License-Identifier: Apache-2.0
"""A run of pytest within a test, to see what the kit makes of other tests."""

import textwrap
from pathlib import Path


class InnerRun:
    """A pytest run of its own with the fixtures of the kit and the given tests."""

    def __init__(self, directory: Path, tests: str):
        kit = Path(__file__).parents[1]
        (directory / "conftest.py").write_text((kit / "conftest.py").read_text())
        imports = (
            "import os\nimport subprocess\nimport pytest\nfrom support.images import make_image\n"
        )
        (directory / "test_inner.py").write_text(imports + textwrap.dedent(tests))
        markers = "markers =\n    engines\n    family\n    long\n    not_selected\n"
        (directory / "pytest.ini").write_text(f"[pytest]\npythonpath = {kit}\n{markers}")
        options = ["-p", "no:cacheprovider", "--beside-others", "-v"]
        self.command = ["/usr/bin/python3", "-m", "pytest", *options, str(directory / "test_inner.py")]
