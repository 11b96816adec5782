# SPDX-License-Identifier: Apache-2.0
"""The same without asyncio: hello_sync.py [IMAGE]"""

import sys

from agents_sandbox.sync import Sandbox

with Sandbox.create(image=sys.argv[1] if len(sys.argv) > 1 else "debian:12") as sandbox:
    sandbox.files.write_text("/tmp/greeting.txt", "hello from outside\n")
    result = sandbox.run("cat greeting.txt; pwd", cwd="/tmp")
    print(result.exit_code, result.stdout)
