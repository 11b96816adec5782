# SPDX-License-Identifier: Apache-2.0
"""Names, parameters and defaults that programs rely on."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from enum import IntEnum
from types import ModuleType

import pytest

import agents_sandbox as sdk
import agents_sandbox.sync

CLIENT = {
    "__init__": "*, timeout_seconds=5.0, stream_timeout_seconds=None, operation_timeout_seconds=60.0",
    "close": "",
    "ping": "",
    "create_sandbox": "*, config_yaml=None, image=None, sandbox_id=None, mounts=(), copies=(), ports=(), "
    "builtin_tools=(), command=None, companion_containers=(), labels=None, envs=None, idle_ttl=None, cpu_limit='', "
    "memory_limit='', disk_limit='', gpus='', wait=True",
    "get_sandbox": "sandbox_id",
    "list_sandboxes": "*, include_deleted=False, label_selector=None",
    "resume_sandbox": "sandbox_id, *, wait=True",
    "stop_sandbox": "sandbox_id, *, wait=True",
    "delete_sandbox": "sandbox_id, *, wait=True",
    "delete_sandboxes": "label_selector, *, wait=True",
    "create_exec": "sandbox_id, command, *, exec_id=None, cwd='/workspace', env_overrides=None, wait=False",
    "run": "sandbox_id, command, *, cwd='/workspace', env_overrides=None",
    "cancel_exec": "exec_id, *, wait=True",
    "get_exec": "exec_id",
    "list_active_execs": "*, sandbox_id=None",
    "subscribe_sandbox_events": "sandbox_id, *, from_sequence=0, include_current_snapshot=False",
}
FIELDS = {
    "PingInfo": "version daemon",
    "DeleteSandboxesResult": "deleted_sandbox_ids deleted_count",
    "HealthcheckConfig": "test interval timeout retries start_period start_interval",
    "CompanionContainerSpec": "name image envs healthcheck command post_start_on_primary cpu_limit memory_limit disk_limit",
    "MountSpec": "source target writable=False",
    "CopySpec": "source target exclude_patterns=()",
    "PortMapping": "container_port host_port protocol='tcp'",
    "SandboxHandle": "sandbox_id state last_event_sequence companion_containers labels created_at image error_code "
    "error_message state_changed_at",
    "ExecHandle": "exec_id sandbox_id state command cwd env_overrides exit_code error last_event_sequence "
    "stdout_log_path stderr_log_path",
    "SandboxEvent": "event_id sequence sandbox_id event_type occurred_at replay snapshot sandbox_state sandbox_phase "
    "exec companion_container",
    "SandboxPhaseDetails": "phase error_code error_message reason",
    "ExecEventDetails": "exec_id exit_code exec_state error_code error_message",
    "CompanionContainerEventDetails": "name error_code error_message",
}
ERRORS = {
    "SandboxClientError": RuntimeError,
    "SandboxConflictError": sdk.SandboxClientError,
    "SandboxNotFoundError": sdk.SandboxClientError,
    "SandboxNotReadyError": sdk.SandboxClientError,
    "SandboxInvalidStateError": sdk.SandboxClientError,
    "ExecNotFoundError": sdk.SandboxClientError,
    "ExecAlreadyTerminalError": sdk.SandboxClientError,
    "SandboxSequenceExpiredError": sdk.SandboxClientError,
    "ExecNotRunningError": sdk.SandboxInvalidStateError,
}


def parameters(function: Callable[..., object]) -> str:
    """As in the source, without self and annotations."""
    text, is_keyword = [], False
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not is_keyword:
            text.append("*")
            is_keyword = True
        has_default = parameter.default is not inspect.Parameter.empty
        text.append(parameter.name + (f"={parameter.default!r}" if has_default else ""))
    return ", ".join(text)


@pytest.mark.parametrize("module", [sdk, agents_sandbox.sync], ids=["async", "sync"])
@pytest.mark.parametrize("method", CLIENT)
def test_methods_have_the_parameters_of_the_contract(module: ModuleType, method: str) -> None:
    assert parameters(getattr(module.AgentsSandboxClient, method)) == CLIENT[method]


@pytest.mark.parametrize(
    "method", [name for name in CLIENT if name not in ("__init__", "close", "subscribe_sandbox_events")]
)
def test_methods_are_awaited(method: str) -> None:
    assert inspect.iscoroutinefunction(getattr(sdk.AgentsSandboxClient, method))
    assert not inspect.iscoroutinefunction(getattr(agents_sandbox.sync.AgentsSandboxClient, method))


def test_the_client_is_a_context_manager_and_events_an_iterator() -> None:
    assert inspect.iscoroutinefunction(sdk.AgentsSandboxClient.aclose)
    assert inspect.isasyncgenfunction(sdk.AgentsSandboxClient.subscribe_sandbox_events)
    assert inspect.isgeneratorfunction(agents_sandbox.sync.AgentsSandboxClient.subscribe_sandbox_events)
    assert {"__aenter__", "__aexit__"} <= set(dir(sdk.AgentsSandboxClient))


@pytest.mark.parametrize("name", FIELDS)
def test_values_have_the_fields_of_the_contract(name: str) -> None:
    kind = getattr(sdk, name)
    assert kind.__dataclass_params__.frozen
    wanted = FIELDS[name].split()
    fields = dataclasses.fields(kind)
    assert [one.name for one in fields] == [text.partition("=")[0] for text in wanted]
    for field, text in zip(fields, wanted, strict=True):
        if "=" in text:
            assert repr(field.default) == text.partition("=")[2]


@pytest.mark.parametrize("name", ERRORS)
def test_errors_derive_as_in_the_contract(name: str) -> None:
    assert issubclass(getattr(sdk, name), ERRORS[name])


@pytest.mark.parametrize(("name", "last"), [("SandboxState", 6), ("SandboxEventType", 14), ("ExecState", 4)])
def test_enums_have_the_numbers_of_the_contract(name: str, last: int) -> None:
    kind = getattr(sdk, name)
    assert issubclass(kind, IntEnum)
    assert [member.value for member in kind] == list(range(last + 1))


def test_both_modules_export_the_same_names() -> None:
    assert sdk.__all__ == agents_sandbox.sync.__all__
    assert {*FIELDS, *ERRORS, "AgentsSandboxClient"} <= set(sdk.__all__)
