# SPDX-License-Identifier: Apache-2.0
"""Client of the daemon agboxd: runs coding agents in isolated sandboxes.

    async with Sandbox.create(image="debian:12") as sandbox:
        result = await sandbox.run("ls /")

`Sandbox` is a sandbox as an object, `AgentsSandboxClient` has one method per operation, `RawClient` one per call of the
API. `agents_sandbox.sync` has the same names for programs without asyncio.
"""

from agents_sandbox._async.client import AgentsSandboxClient
from agents_sandbox._async.files import Files
from agents_sandbox._async.process import Process, Terminal
from agents_sandbox._async.raw import RawClient
from agents_sandbox._async.sandbox import Sandbox
from agents_sandbox.errors import (
    DaemonTimeoutError,
    DaemonUnreachableError,
    ExecAlreadyTerminalError,
    ExecNotFoundError,
    ExecNotRunningError,
    SandboxClientError,
    SandboxConflictError,
    SandboxFailedError,
    SandboxInvalidStateError,
    SandboxNotFoundError,
    SandboxNotReadyError,
    SandboxSequenceExpiredError,
    UnsafeArchiveError,
)
from agents_sandbox.types import (
    CompanionContainerEventDetails,
    CompanionContainerSpec,
    CopyResult,
    CopySpec,
    DeleteSandboxesResult,
    ExecEventDetails,
    ExecHandle,
    ExecState,
    HealthcheckConfig,
    MountSpec,
    OutputChunk,
    PingInfo,
    PortMapping,
    RunResult,
    SandboxEvent,
    SandboxEventType,
    SandboxHandle,
    SandboxPhaseDetails,
    SandboxState,
)

__all__ = [
    "AgentsSandboxClient",
    "CompanionContainerEventDetails",
    "CompanionContainerSpec",
    "CopyResult",
    "CopySpec",
    "DaemonTimeoutError",
    "DaemonUnreachableError",
    "DeleteSandboxesResult",
    "ExecAlreadyTerminalError",
    "ExecEventDetails",
    "ExecHandle",
    "ExecNotFoundError",
    "ExecNotRunningError",
    "ExecState",
    "Files",
    "HealthcheckConfig",
    "MountSpec",
    "OutputChunk",
    "PingInfo",
    "PortMapping",
    "Process",
    "RawClient",
    "RunResult",
    "Sandbox",
    "SandboxClientError",
    "SandboxConflictError",
    "SandboxEvent",
    "SandboxEventType",
    "SandboxFailedError",
    "SandboxHandle",
    "SandboxInvalidStateError",
    "SandboxNotFoundError",
    "SandboxNotReadyError",
    "SandboxPhaseDetails",
    "SandboxSequenceExpiredError",
    "SandboxState",
    "Terminal",
    "UnsafeArchiveError",
]
