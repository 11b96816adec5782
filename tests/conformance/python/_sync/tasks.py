# SPDX-License-Identifier: Apache-2.0
"""What differs between the asynchronous and the synchronous runner."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

Task = Future


def start(call: Callable[[], Any]) -> Future[Any]:
    """On a thread that does not keep a runner alive whose scenario has failed."""
    future: Future[Any] = Future()

    def work() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return future


def result_of(task: Future[Any]) -> Any:
    return task.result()


def read_line() -> str:
    return sys.stdin.readline()


def run(result: int) -> int:
    return result
