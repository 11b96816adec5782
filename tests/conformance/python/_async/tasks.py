# SPDX-License-Identifier: Apache-2.0
"""What differs between the asynchronous and the synchronous runner."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

Task = asyncio.Task


def start(call: Callable[[], Coroutine[Any, Any, Any]]) -> asyncio.Task[Any]:
    return asyncio.create_task(call())


async def result_of(task: asyncio.Task[Any]) -> Any:
    return await task


async def read_line() -> str:
    return await asyncio.to_thread(sys.stdin.readline)


def run(main: Awaitable[int]) -> int:
    async def await_it() -> int:
        return await main

    return asyncio.run(await_it())
