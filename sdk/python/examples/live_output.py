# SPDX-License-Identifier: Apache-2.0
"""Shows the output of a command as it comes, in three sandboxes at the same time: live_output.py [IMAGE]"""

import asyncio
import sys

from agents_sandbox import AgentsSandboxClient, Sandbox


async def count(name: str, image: str, client: AgentsSandboxClient) -> None:
    async with Sandbox.create(image=image, client=client, labels={"example": "live"}) as sandbox:
        async with sandbox.start("for n in 1 2 3; do echo $n; sleep 0.1; done") as process:
            async for chunk in process:
                print(f"{name} {chunk.stream}: {chunk.text.strip()}")
            result = await process.wait()
        print(f"{name} ended with {result.exit_code}")


async def main(image: str) -> None:
    async with AgentsSandboxClient() as client:
        await asyncio.gather(*(count(name, image, client) for name in ("one", "two", "three")))


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "debian:12"))
