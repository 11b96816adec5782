# SPDX-License-Identifier: Apache-2.0
"""Companions and services of sandboxes: their specifications, containers and events."""

from collections.abc import Sequence
from typing import Any

from google.protobuf.duration_pb2 import Duration

from support.contract import Contract
from support.engine import PrivateEngine
from support.sandboxes import inspect

COMPANION_READY, COMPANION_FAILED = 13, 14  # the events
# Of CompanionState.
STARTING, READY, FAILED, STOPPED = 1, 2, 3, 4
LISTS = ("required_services", "optional_services", "companion_containers")

_STEPS = (
    *("companion.image", "companion.guest_directory", "companion.container", "companion.find", "companion.account_files"),
    *("companion.start", "companion.started", "companion.inspect", "companion.probe"),
    *("companions.hooks", "hook.commit", "hook.end_commit"),
)
# Of a create with a companion that has a health check and a hook.
FAILPOINTS = [f"{step}.{side}" for step in _STEPS for side in ("before", "after")]
FAILPOINTS += ["companion.report.before", "hook.send.after"]
# Of the restart of one that ended.
RESTART_FAILPOINTS = ["companion.output.before", "companion.output.after"]

# An HTTP server of busybox that answers with its own name, on a port that needs no capability.
PORT = 8080
_SERVE = f"mkdir -p /www; echo $NAME > /www/index.html; exec httpd -f -p {PORT} -h /www"


def health_check(
    contract: Contract,
    *test: str,
    interval: float = 1,
    timeout: float = 10,
    retries: int = 30,
    start_period: float = 0,
) -> Any:
    """By default one that gives up only on a server that will never answer."""
    return contract.spec.HealthcheckConfig(
        test=test,
        interval=_duration(interval),
        timeout=_duration(timeout),
        retries=retries,
        start_period=_duration(start_period),
    )


def soon_unhealthy(contract: Contract) -> Any:
    """A health check that fails within a second or two."""
    return health_check(contract, "CMD", "false", interval=0.5, timeout=0.5, retries=1)


def web_server(contract: Contract, name: str, image: str, **spec) -> Any:
    """Healthy once it answers; its page is its name."""
    probe = health_check(contract, "CMD", "wget", "-q", "-O", "/dev/null", f"http://127.0.0.1:{PORT}/")
    spec.setdefault("healthcheck", probe)
    return contract.spec.CompanionContainerSpec(
        name=name, image=image, envs={"NAME": name}, command=["sh", "-c", _SERVE], **spec
    )


def page_of(name: str) -> tuple[str, ...]:
    """The command that prints the page of a web server."""
    return ("timeout", "20", "wget", "-q", "-O", "-", f"http://{name}:{PORT}/")


def companion_container(sandbox_id: str, name: str) -> str:
    return f"agbox-cc-{sandbox_id}-{name}"


def address(engine: PrivateEngine, container: str) -> str:
    (network,) = inspect(engine, container)["NetworkSettings"]["Networks"].values()
    return network["IPAddress"]


def statuses(handle: Any) -> dict[str, Any]:
    return {companion.name: companion for companion in handle.companions}


def of_companion(events: Sequence[Any], name: str) -> list[Any]:
    return [event for event in events if event.companion_container.name == name]


def kinds(events: Sequence[Any]) -> list[int]:
    return [event.event_type for event in events]


def _duration(seconds: float) -> Duration:
    return Duration(seconds=int(seconds), nanos=int(seconds % 1 * 1_000_000_000))
