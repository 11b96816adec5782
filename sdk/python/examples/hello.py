# SPDX-License-Identifier: Apache-2.0
"""Runs a command in a new sandbox: hello.py [IMAGE]"""

import asyncio
import sys

from agents_sandbox import Sandbox


async def main(image: str) -> None:
    async with Sandbox.create(image=image) as sandbox:
        await sandbox.files.write_text("/tmp/greeting.txt", "hello from outside\n")
        result = await sandbox.run("cat greeting.txt; pwd", cwd="/tmp")
        print(result.exit_code, result.stdout)


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "debian:12"))
