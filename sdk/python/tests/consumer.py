# SPDX-License-Identifier: Apache-2.0
"""A program that uses the whole surface. It is not run: mypy checks that its types are what programs assume."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from agents_sandbox import (
    AgentsSandboxClient,
    CompanionContainerSpec,
    CopySpec,
    DeleteSandboxesResult,
    ExecHandle,
    ExecState,
    HealthcheckConfig,
    MountSpec,
    PingInfo,
    PortMapping,
    RunResult,
    Sandbox,
    SandboxClientError,
    SandboxConflictError,
    SandboxEvent,
    SandboxEventType,
    SandboxHandle,
    SandboxNotFoundError,
    SandboxSequenceExpiredError,
    SandboxState,
    sync,
)


async def orchestrate() -> None:
    async with AgentsSandboxClient(
        timeout_seconds=5, stream_timeout_seconds=None, operation_timeout_seconds=60
    ) as client:
        info: PingInfo = await client.ping()
        database = CompanionContainerSpec(
            name="db",
            image="postgres:16",
            envs={"POSTGRES_PASSWORD": "x"},
            healthcheck=HealthcheckConfig(
                test=["CMD", "pg_isready"], interval=timedelta(seconds=5), retries=3
            ),
            post_start_on_primary=["echo ready"],
        )
        try:
            sandbox: SandboxHandle = await client.create_sandbox(
                config_yaml="image: debian:12",
                sandbox_id="demo-1",
                mounts=[MountSpec("/src", "/workspace", writable=True)],
                copies=(CopySpec("/seed", "/seed", exclude_patterns=["*.o"]),),
                ports=[PortMapping(80, 8080), PortMapping(53, 5353, "udp")],
                builtin_tools=["git"],
                command=["sleep", "1"],
                companion_containers=[database],
                labels={"a": "b"},
                envs={"A": "B"},
                idle_ttl=timedelta(hours=1),
                cpu_limit="1",
                wait=True,
            )
        except SandboxConflictError as conflict:
            name: str = conflict.sandbox_id
            raise SystemExit(name) from conflict
        state: SandboxState = sandbox.state
        created: datetime | None = sandbox.created_at
        found: list[SandboxHandle] = await client.list_sandboxes(
            include_deleted=True, label_selector={"a": "b"}
        )
        execution: ExecHandle = await client.run(sandbox.sandbox_id, ["true"], env_overrides={"A": "C"})
        code: int | None = execution.exit_code
        if execution.state is ExecState.RUNNING:
            execution = await client.cancel_exec(execution.exec_id, wait=False)
        active: list[ExecHandle] = await client.list_active_execs(sandbox_id=sandbox.sandbox_id)
        deleted: DeleteSandboxesResult = await client.delete_sandboxes({"a": "b"})
        try:
            async for event in client.subscribe_sandbox_events(sandbox.sandbox_id, from_sequence=1):
                show(event)
                if event.event_type == SandboxEventType.SANDBOX_DELETED:
                    break
        except SandboxSequenceExpiredError as expired:
            oldest: int | None = expired.oldest_sequence
            print(oldest, info, state, created, found, code, active, deleted)


def show(event: SandboxEvent) -> str:
    if event.exec is not None and event.exec.exit_code:
        return f"{event.exec.exec_id} {event.exec.exit_code}"
    return event.event_type.name


async def objects() -> int | None:
    async with Sandbox.create(image="debian:12", ready_timeout=60) as sandbox:
        result: RunResult = await sandbox.run("pytest -q", command_timeout=timedelta(minutes=5))
        async with sandbox.start(["cat"], stdin=True) as process, sandbox.terminal() as terminal:
            await process.write(b"x")
            await terminal.resize(10, 20)
            text: list[str] = [chunk.text async for chunk in process]
        content: bytes = await sandbox.files.read_bytes("/etc/hostname")
        async for event in sandbox.events():
            show(event)
        kept: Sandbox = await Sandbox.open(sandbox.sandbox_id)
        print(text, content, kept.handle.image)
        return result.exit_code


def without_asyncio() -> str:
    try:
        with sync.Sandbox.create(image="debian:12") as sandbox, sandbox.start("make") as process:
            parts: list[str] = [chunk.text for chunk in process]
            made: sync.Sandbox = sync.Sandbox.open("demo-1")
            return "".join(parts) + made.run(["id"]).stdout
    except SandboxNotFoundError as missing:
        return missing.sandbox_id
    except SandboxClientError as error:
        return error.reason or error.code or ""


if __name__ == "__main__":
    asyncio.run(orchestrate())
    asyncio.run(objects())
    without_asyncio()
