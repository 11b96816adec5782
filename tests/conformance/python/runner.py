# SPDX-License-Identifier: Apache-2.0
"""Runs the conformance table with the Python SDK: tests/conformance/README.md."""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message_factory import GetMessageClass

from _async import tasks
from agents_sandbox import errors
from agents_sandbox._async import platform
from agents_sandbox._async.client import AgentsSandboxClient
from agents_sandbox._async.process import Process
from agents_sandbox._async.raw import RawClient
from agents_sandbox._async.sandbox import Sandbox
from agents_sandbox._generated.agbox.v1 import service_pb2
from agents_sandbox.types import ExecHandle, RunResult, SandboxEventType, SandboxHandle, SandboxState
from matching import at, difference, stream_difference, with_variables

METHODS = service_pb2.DESCRIPTOR.services_by_name["SandboxService"].methods_by_name
KINDS = {
    errors.SandboxNotFoundError: "sandbox_not_found",
    errors.SandboxConflictError: "sandbox_conflict",
    errors.SandboxNotReadyError: "sandbox_not_ready",
    errors.SandboxInvalidStateError: "sandbox_invalid_state",
    errors.SandboxSequenceExpiredError: "sequence_expired",
    errors.SandboxFailedError: "sandbox_failed",
    errors.ExecNotFoundError: "exec_not_found",
    errors.ExecAlreadyTerminalError: "exec_already_terminal",
    errors.DaemonUnreachableError: "unreachable",
    errors.SandboxClientError: "refused",
}
PATIENCE = 60.0


class MismatchError(Exception):
    """What came is not what the table expects."""


class Output:
    """Of a command in the background, as far as it has come."""

    def __init__(self) -> None:
        self.changed = platform.Condition()
        self.text = ""
        self.is_over = False


class Runner:
    def __init__(self, client: AgentsSandboxClient, variables: dict[str, str]) -> None:
        self.client = client
        self.variables = variables
        self.background: dict[str, tasks.Task[Any]] = {}
        self.outputs: dict[str, Output] = {}

    async def step(self, step: dict[str, Any]) -> None:
        save, name = step.get("save", {}), step.get("background", "")
        step = with_variables(step, self.variables)
        if name:
            self.outputs[name] = Output()
            self.background[name] = tasks.start(lambda: self.action(step["do"], step["with"], name))
            return
        try:
            outcome = (
                await self.call(step)
                if "rpc" in step
                else await self.action(step["do"], step.get("with", {}), "")
            )
        except errors.SandboxClientError as error:
            self.judge_error(step, error)
            return
        if "error" in step:
            raise MismatchError(f"no error, but {outcome!r}")
        expected = step.get("expect", step.get("response", {}))
        if fault := difference(expected, outcome):
            raise MismatchError(fault)
        self.variables |= {variable: str(at(outcome, path)) for variable, path in save.items()}

    def judge_error(self, step: dict[str, Any], error: errors.SandboxClientError) -> None:
        if "error" not in step:
            raise MismatchError(f"{type(error).__name__}: {error} ({error.code}, {error.reason})") from error
        actual = {key: getattr(error, key, error.metadata.get(key)) for key in step["error"]}
        actual |= {"type": KINDS.get(type(error)), "message": str(error)}
        if fault := difference(step["error"], actual, "error"):
            raise MismatchError(f"{fault} ({error})") from error

    # --- calls ---

    async def call(self, step: dict[str, Any]) -> Any:
        """The response, or the last message of a stream."""
        raw, method = self.client.raw, METHODS[step["rpc"]]
        call = method_of(raw, method)
        requests = [
            ParseDict(one, GetMessageClass(method.input_type)())
            for one in step.get("requests", [step.get("request", {})])
        ]
        if method.name == "CopyIn":
            return as_dict(await call(sent(requests)))
        if not method.server_streaming:
            return as_dict(await call(requests[0]))
        wanted, messages = step.get("stream", {}), []
        stream = (
            attached(call(), requests) if method.client_streaming else call(requests[0], timeout=PATIENCE)
        )
        try:
            async for message in stream:
                messages.append(as_dict(message))
                if "until" in wanted and not difference(wanted["until"], messages[-1]):
                    break
        finally:
            if not method.client_streaming:
                stream.cancel()
        if fault := stream_difference(wanted, messages):
            raise MismatchError(fault)
        return messages[-1] if messages else {}

    # --- actions ---

    async def action(self, name: str, given: dict[str, Any], background: str) -> Any:
        act: Callable[..., Awaitable[Any]] = getattr(self, f"do_{name}")
        return await (act(background=background, **given) if name == "run" else act(**given))

    async def do_create(self, **spec: Any) -> Any:
        return of_sandbox(await self.client.create_sandbox(**spec))

    async def do_stop(self, sandbox_id: str) -> Any:
        return of_sandbox(await self.client.stop_sandbox(sandbox_id))

    async def do_resume(self, sandbox_id: str) -> Any:
        return of_sandbox(await self.client.resume_sandbox(sandbox_id))

    async def do_delete(self, sandbox_id: str) -> Any:
        return of_sandbox(await self.client.delete_sandbox(sandbox_id))

    async def do_wait(self, sandbox_id: str, state: str) -> Any:
        sandbox = await Sandbox.open(sandbox_id, client=self.client)
        return of_sandbox(await sandbox.wait_for(SandboxState[state]))

    async def do_run(
        self,
        sandbox_id: str,
        command: list[str],
        background: str,
        timeout_seconds: float | None = None,
        **options: Any,
    ) -> Any:
        sandbox = await Sandbox.open(sandbox_id, client=self.client)
        if not background:
            return of_run(await sandbox.run(command, command_timeout=timeout_seconds, **options))
        output = self.outputs[background]
        async with sandbox.start(command, **options) as process:
            return await self.followed(process, output)

    async def followed(self, process: Process, output: Output) -> Any:
        pieces: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
        try:
            async for chunk in process:
                pieces[chunk.stream].append(chunk.data)
                async with output.changed:
                    output.text += chunk.text if chunk.stream == "stdout" else ""
                    output.changed.notify_all()
        finally:
            async with output.changed:
                output.is_over = True
                output.changed.notify_all()
        stdout, stderr = b"".join(pieces["stdout"]), b"".join(pieces["stderr"])
        return of_run(await process.wait()) | of_output(stdout, stderr)

    async def do_await_output(self, name: str, text: str) -> Any:
        output = self.outputs[name]
        async with output.changed:
            while not output.text.startswith(text) and not output.is_over:
                await output.changed.wait()
        if not output.text.startswith(text):
            raise MismatchError(f"the output of {name} is {output.text!r}, expected {text!r}")
        return {}

    async def do_join(self, name: str) -> Any:
        return await tasks.result_of(self.background[name])

    async def do_start(self, sandbox_id: str, exec_id: str, command: list[str]) -> Any:
        return of_exec(await self.client.create_exec(sandbox_id, command, exec_id=exec_id))

    async def do_output(self, exec_id: str) -> Any:
        sandbox = await Sandbox.open((await self.client.get_exec(exec_id)).sandbox_id, client=self.client)
        return of_run(await sandbox.attach(exec_id).communicate())

    async def do_wait_exec(self, exec_id: str) -> Any:
        sandbox = await Sandbox.open((await self.client.get_exec(exec_id)).sandbox_id, client=self.client)
        return of_run(await sandbox.attach(exec_id).wait())

    async def do_cancel(self, exec_id: str) -> Any:
        return of_exec(await self.client.cancel_exec(exec_id))

    async def do_terminal(
        self, sandbox_id: str, command: list[str], rows: int, columns: int, **given: str
    ) -> Any:
        sandbox = await Sandbox.open(sandbox_id, client=self.client)
        async with sandbox.terminal(command, rows=rows, columns=columns) as terminal:
            await terminal.write(given["input"])
            result = await terminal.communicate()
        return {"exit_code": result.exit_code, "output": result.stdout}

    async def do_upload_text(self, sandbox_id: str, path: str, text: str) -> Any:
        sandbox = await Sandbox.open(sandbox_id, client=self.client)
        with tempfile.TemporaryDirectory() as directory:
            source = Path(directory) / Path(path).name
            source.write_text(text)
            await sandbox.files.upload(source, path)
        return {}

    async def do_download_text(self, sandbox_id: str, path: str, file: str) -> Any:
        sandbox = await Sandbox.open(sandbox_id, client=self.client)
        with tempfile.TemporaryDirectory() as directory:
            await sandbox.files.download(path, directory)
            return {"text": (Path(directory) / Path(path).name / file).read_text()}

    async def do_events(self, sandbox_id: str, from_sequence: int, count: int = 0, until: str = "") -> Any:
        types, sequences = [], []
        events = self.client.subscribe_sandbox_events(sandbox_id, from_sequence=from_sequence)
        async with contextlib.aclosing(events):
            async for event in events:
                types.append(event.event_type.name)
                sequences.append(event.sequence)
                if len(types) == count or (until and event.event_type is SandboxEventType[until]):
                    break
        gapless = sequences == list(range(from_sequence + 1, from_sequence + 1 + len(sequences)))
        return {"types": types, "sequences": sequences, "gapless": gapless}

    async def do_kill_daemon(self) -> Any:
        return await self.ask("kill_daemon")

    async def do_start_daemon(self) -> Any:
        return await self.ask("start_daemon")

    async def ask(self, what: str) -> Any:
        report({"ask": what})
        if not await tasks.read_line():
            raise MismatchError("the test has ended")
        return {}

    async def do_many(self, count: int, prefix: str, image: str, command: list[str]) -> Any:
        async def one(number: int) -> str:
            async with Sandbox.create(
                image=image, sandbox_id=f"{prefix}-{number}", client=self.client
            ) as sandbox:
                return (await sandbox.run(command)).stdout

        started = [tasks.start(lambda number=number: one(number)) for number in range(count)]
        printed = [await tasks.result_of(task) for task in started]
        texts = set(printed)
        return {"stdout": texts.pop() if len(texts) == 1 else sorted(texts), "ran": len(printed)}


def method_of(raw: RawClient, method: Any) -> Callable[..., Any]:
    """The method of the thin client that is named like the call; one that is new may have none yet."""
    named = getattr(raw, re.sub(r"(?<=.)([A-Z])", r"_\1", method.name).lower(), None)
    return named or functools.partial(raw.stream if method.server_streaming else raw.call, method.name)


async def sent(requests: list[Any]) -> AsyncIterator[Any]:
    for request in requests:
        yield request


async def attached(call: Any, requests: list[Any]) -> AsyncIterator[Any]:
    await call.send(requests[0])
    is_first = True
    try:
        while (response := await call.receive()) is not None:
            yield response
            for request in requests[1:] if is_first else ():
                await call.send(request)
            is_first = False
    finally:
        call.cancel()


def as_dict(message: Any) -> Any:
    return MessageToDict(message, preserving_proto_field_name=True)


def of_sandbox(handle: SandboxHandle) -> Any:
    return {
        "sandbox_id": handle.sandbox_id,
        "state": handle.state.name,
        "image": handle.image,
        "labels": dict(handle.labels),
    }


def of_exec(handle: ExecHandle) -> Any:
    return {"exec_id": handle.exec_id, "state": handle.state.name, "exit_code": handle.exit_code}


def of_run(result: RunResult) -> Any:
    ended = {"exit_code": result.exit_code, "state": result.state.name, "error_code": result.error_code}
    return ended | of_output(result.stdout_bytes, result.stderr_bytes)


def of_output(stdout: bytes, stderr: bytes) -> Any:
    return {"stdout": stdout.decode(), "stderr": stderr.decode(), "stdout_bytes": len(stdout)}


def report(line: Any) -> None:
    print(json.dumps(line), flush=True)


async def fault_of(runner: Runner, scenario: dict[str, Any]) -> str | None:
    for number, step in enumerate(scenario["steps"], start=1):
        try:
            await runner.step(step)
        except Exception as error:  # a client that is broken must not hide the other scenarios
            what = step.get("rpc") or step["do"]
            return f"step {number}, {what}: {type(error).__name__}: {error}"
    return None


async def run_table(arguments: argparse.Namespace) -> int:
    table = json.loads(arguments.table.read_text())
    async with AgentsSandboxClient(operation_timeout_seconds=PATIENCE) as client:
        runner = Runner(client, {"prefix": arguments.prefix, "image": arguments.image})
        for scenario in table["scenarios"]:
            if scenario.get("long") and not arguments.long:
                continue
            report({"scenario": scenario["name"], "error": await fault_of(runner, scenario)})
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description="run the conformance table")
    parser.add_argument("table", type=Path)
    parser.add_argument("prefix")
    parser.add_argument("image")
    parser.add_argument("--long", action="store_true")
    return tasks.run(run_table(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
