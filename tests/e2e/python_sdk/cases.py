# SPDX-License-Identifier: Apache-2.0
"""The Python SDK on the daemon of this environment; test_python_sdk.py starts it, and this with the SDK's own pytest."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import signal
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agents_sandbox import (
    AgentsSandboxClient,
    ExecState,
    Process,
    Sandbox,
    SandboxClientError,
    SandboxEventType,
    SandboxFailedError,
    SandboxNotReadyError,
    SandboxState,
    UnsafeArchiveError,
    sync,
)

IMAGE = os.environ["AGBOX_TEST_IMAGE"]
FOREVER = ["sleep", "86400"]
PATIENCE = 60


@pytest.fixture(scope="module")
def box() -> str:
    """One sandbox for all that do not end it."""
    with sync.Sandbox.create(image=IMAGE, sandbox_id="sdk-shared") as sandbox:
        yield sandbox.sandbox_id


def in_box(case: Callable[[Sandbox], Awaitable[None]]) -> Callable[[str], None]:
    def test(box: str) -> None:
        async def run() -> None:
            async with asyncio.timeout(PATIENCE), Sandbox.open(box) as sandbox:
                await case(sandbox)

        asyncio.run(run())

    test.__name__ = case.__name__
    return test


async def event_of(sandbox: Sandbox, kind: SandboxEventType, exec_id: str = "") -> Any:
    async with contextlib.aclosing(sandbox.events()) as events:
        async for event in events:
            if event.event_type is kind and (not exec_id or (event.exec and event.exec.exec_id == exec_id)):
                return event
    raise AssertionError(f"no {kind.name}")


async def ended(sandbox: Sandbox, exec_id: str) -> ExecState:
    return (await sandbox.attach(exec_id).wait()).state


@in_box
async def test_a_cancelled_run_cancels_the_command(sandbox: Sandbox) -> None:
    before = (await sandbox.refresh()).last_event_sequence
    task = asyncio.create_task(sandbox.run(FOREVER))
    async with contextlib.aclosing(sandbox.events(from_sequence=before)) as events:
        started = await anext(events)
        assert started.event_type is SandboxEventType.EXEC_STARTED
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        cancelled = await anext(events)
    assert cancelled.event_type is SandboxEventType.EXEC_CANCELLED
    assert started.exec and cancelled.exec and cancelled.exec.exec_id == started.exec.exec_id


@in_box
async def test_a_timeout_of_the_caller_cancels_the_command(sandbox: Sandbox) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await sandbox.run("echo begin; exec sleep 86400")
    async with AgentsSandboxClient() as client:
        for running in await client.list_active_execs(sandbox_id=sandbox.sandbox_id):
            assert await ended(sandbox, running.exec_id) is ExecState.CANCELLED


def test_ctrl_c_cancels_the_command(box: str) -> None:
    with sync.Sandbox.open(box) as sandbox:
        before = sandbox.refresh().last_event_sequence

        def interrupt() -> None:
            with contextlib.closing(sandbox.events(from_sequence=before)) as events:
                next(events)  # it has started
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            sandbox.run(FOREVER)
        thread.join(PATIENCE)
        with contextlib.closing(sandbox.events(from_sequence=before)) as events:
            kinds = [next(events).event_type for _ in range(2)]
    assert kinds == [SandboxEventType.EXEC_STARTED, SandboxEventType.EXEC_CANCELLED]


@in_box
async def test_leaving_a_block_cancels_what_runs_and_detach_does_not(sandbox: Sandbox) -> None:
    async with sandbox.start("echo begin; exec sleep 86400") as process:
        assert (await anext(process)).text == "begin\n"
    assert await ended(sandbox, process.exec_id) is ExecState.CANCELLED
    kept = await sandbox.start("echo begin; exec sleep 86400")
    assert (await anext(kept)).text == "begin\n"
    kept.detach()
    async with sandbox.attach(kept.exec_id) as again:
        assert (await anext(again)).text == "begin\n"
    assert (await again.cancel()).state is ExecState.CANCELLED
    assert (await again.cancel()).state is ExecState.CANCELLED


@in_box
async def test_output_comes_while_the_command_runs(sandbox: Sandbox) -> None:
    async with sandbox.start("echo one; read line; echo $line >&2", stdin=True) as process:
        first = await anext(process)
        assert (first.stream, first.data) == ("stdout", b"one\n")
        await process.write("two\n")
        second = await anext(process)
        assert (second.stream, second.data) == ("stderr", b"two\n")
        with pytest.raises(StopAsyncIteration):
            await anext(process)
        assert (await process.wait()).exit_code == 0


@in_box
async def test_a_megabyte_of_input_comes_back(sandbox: Sandbox) -> None:
    data = os.urandom(1 << 20)
    result = await sandbox.run(["cat"], input=data)
    assert result.ok
    assert hashlib.sha256(result.stdout_bytes).digest() == hashlib.sha256(data).digest()


@in_box
async def test_one_task_writes_while_another_reads(sandbox: Sandbox) -> None:
    data = os.urandom(1 << 19)
    received = bytearray()

    async def read(process: Process) -> None:
        async for chunk in process:
            received.extend(chunk.data)

    async with sandbox.start(["cat"], stdin=True) as process:
        reader = asyncio.create_task(read(process))
        for start in range(0, len(data), 10_000):
            await process.write(data[start : start + 10_000])
        await process.end_input()
        await reader
    assert bytes(received) == data


def test_one_thread_writes_while_another_reads(box: str) -> None:
    data = os.urandom(1 << 19)
    received = bytearray()
    with sync.Sandbox.open(box) as sandbox, sandbox.start(["cat"], stdin=True) as process:
        reader = threading.Thread(target=lambda: [received.extend(chunk.data) for chunk in process])
        reader.start()
        for start in range(0, len(data), 10_000):
            process.write(data[start : start + 10_000])
        process.end_input()
        reader.join(PATIENCE)
    assert bytes(received) == data


@in_box
async def test_a_command_that_does_not_read_is_no_error(sandbox: Sandbox) -> None:
    for _ in range(20):  # it may end before, during and after a write
        result = await sandbox.run("echo begin; exit 3", input=b"x" * (1 << 20))
        assert (result.exit_code, result.stdout) == (3, "begin\n")
    async with sandbox.start("true") as process:
        with pytest.raises(SandboxClientError, match="takes no input: it was not started with stdin=True"):
            await process.write("x")
        assert (await process.communicate()).ok


@in_box
async def test_a_terminal_is_resized_and_gets_signals(sandbox: Sandbox) -> None:
    # A new size and input take different ways to the terminal.
    script = """
        trap 'echo caught; exit 7' INT
        stty size
        until [ "$(stty size)" = "31 91" ]; do sleep 0.02; done
        read line
        echo "resized, got $line"
        while :; do sleep 0.02; done
    """
    async with sandbox.terminal(["sh", "-c", script], rows=30, columns=90) as terminal:
        text = ""

        async def until(words: str) -> None:
            nonlocal text
            while words not in text:
                text += (await anext(terminal)).text

        await until("30 90")
        await terminal.resize(31, 91)
        await terminal.write("abc\n")
        await until("resized, got abc")
        await terminal.send_signal(signal.SIGINT)
        await until("caught")
        assert (await terminal.communicate()).exit_code == 7


@in_box
async def test_a_command_ends_after_its_timeout(sandbox: Sandbox) -> None:
    result = await sandbox.run(FOREVER, command_timeout=0.3)
    assert (result.timed_out, result.exit_code, result.state) == (True, None, ExecState.CANCELLED)


@in_box
async def test_files_go_in_and_out(sandbox: Sandbox) -> None:
    await sandbox.files.write_text("/tmp/made/note", "grüße\n")
    assert await sandbox.files.read_text("/tmp/made/note") == "grüße\n"
    with pytest.raises(UnsafeArchiveError, match="more than 3 bytes"):
        await sandbox.files.read_bytes("/tmp/made/note", max_bytes=3)
    with pytest.raises(IsADirectoryError):
        await sandbox.files.read_bytes("/tmp/made")
    with pytest.raises(ValueError, match="absolute or below ~"):
        await sandbox.files.write_text("note", "x")
    with pytest.raises(SandboxClientError) as missing:
        await sandbox.files.read_bytes("/tmp/none")
    assert missing.value.code == "NOT_FOUND"


def test_a_tree_survives_the_way_there_and_back(box: str, tmp_path: Path) -> None:
    source = tmp_path / "tree"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "data").write_bytes(os.urandom(700_000))
    (source / "program").write_text("#!/bin/sh\n")
    (source / "program").chmod(0o755)
    (source / "link").symlink_to("sub/data")
    with (source / "sparse").open("wb") as sparse:
        sparse.truncate(1 << 20)
    with sync.Sandbox.open(box) as sandbox:
        assert sandbox.files.upload(source, "/tmp").entries == 6
        assert sandbox.run("truncate -s 64M /tmp/tree/big; echo end >>/tmp/tree/big").ok
        copied = sandbox.files.download("/tmp/tree", tmp_path / "back")
    back = tmp_path / "back" / "tree"
    assert (copied.entries, copied.notes) == (7, 0)
    assert (back / "sub" / "data").read_bytes() == (source / "sub" / "data").read_bytes()
    assert (back / "program").stat().st_mode & 0o777 == 0o755
    assert os.readlink(back / "link") == "sub/data"
    assert (back / "sparse").read_bytes() == bytes(1 << 20)
    assert ((back / "big").stat().st_size, (back / "big").stat().st_blocks < 1000) == ((64 << 20) + 4, True)
    assert (back / "big").read_bytes().rstrip(b"\0").endswith(b"end\n")


def test_a_local_file_that_is_missing_is_an_error_of_this_machine(box: str, tmp_path: Path) -> None:
    with sync.Sandbox.open(box) as sandbox:
        with pytest.raises(FileNotFoundError):
            sandbox.files.upload(tmp_path / "none", "/tmp")
        assert sandbox.run("true").ok


@in_box
async def test_the_same_for_the_asynchronous_client(sandbox: Sandbox) -> None:
    with pytest.raises(FileNotFoundError):
        await sandbox.files.upload("/nonexistent/none", "/tmp")
    assert (await sandbox.run("true")).ok


def test_a_sandbox_is_deleted_at_the_end_of_its_block_also_after_an_error() -> None:
    async def run() -> None:
        with pytest.raises(ZeroDivisionError):
            async with Sandbox.create(image=IMAGE) as sandbox:
                1 / 0  # noqa: B018
        async with AgentsSandboxClient() as client:
            assert (await client.get_sandbox(sandbox.sandbox_id)).state is SandboxState.DELETED

    asyncio.run(run())


def test_a_create_that_fails_leaves_no_sandbox() -> None:
    with pytest.raises(SandboxFailedError) as raised:
        sync.Sandbox.create(image="none.invalid/such:1")
    assert raised.value.error_message
    with sync.Sandbox.open(raised.value.sandbox_id) as sandbox:
        sandbox.wait_for(SandboxState.DELETED)


def test_a_cancelled_create_leaves_no_sandbox() -> None:
    async def run() -> None:
        async with AgentsSandboxClient() as client:
            task = asyncio.ensure_future(create(client))
            while not (found := await client.list_sandboxes(label_selector={"case": "cancelled"})):
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with Sandbox.open(found[0].sandbox_id, client=client) as sandbox:
                await sandbox.wait_for(SandboxState.DELETED)

    async def create(client: AgentsSandboxClient) -> None:
        await Sandbox.create(image=IMAGE, labels={"case": "cancelled"}, client=client)

    asyncio.run(run())


def test_stop_and_resume() -> None:
    with sync.Sandbox.create(image=IMAGE) as sandbox:
        sandbox.stop()
        assert sandbox.handle.state is SandboxState.STOPPED
        with pytest.raises(SandboxNotReadyError):
            sandbox.run("true")
        sandbox.resume()
        assert sandbox.run("true").ok


def test_a_client_works_in_one_event_loop_after_another(box: str) -> None:
    client = AgentsSandboxClient()

    async def ping() -> str:
        return (await client.ping()).daemon

    assert [asyncio.run(ping()) for _ in range(3)] == ["agboxd"] * 3

    async def end() -> None:
        await client.close()
        with pytest.raises(SandboxClientError, match="the client was closed"):
            await client.ping()

    asyncio.run(end())
    assert box
