# SPDX-License-Identifier: Apache-2.0
"""Types into a shell of a sandbox: terminal.py [IMAGE]"""

import asyncio
import sys

from agents_sandbox import Sandbox


async def main(image: str) -> None:
    async with (
        Sandbox.create(image=image) as sandbox,
        sandbox.terminal(["sh"], rows=40, columns=120) as terminal,
    ):
        await terminal.write("echo $((6 * 7))\nexit\n")
        async for chunk in terminal:
            print(chunk.text, end="")


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "debian:12"))
