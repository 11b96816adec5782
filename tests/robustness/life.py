# SPDX-License-Identifier: Apache-2.0
"""The life of a sandbox as clients may see it: which event may follow which, and what a call may be refused for.
Pure."""

import enum
from collections.abc import Iterable, Iterator

from robustness.history import Event

EXEC_ENDS = {
    "EXEC_FINISHED": "FINISHED",
    "EXEC_FAILED": "FAILED",
    "EXEC_CANCELLED": "CANCELLED",
}
RESTART = "restart"  # the phase of SANDBOX_PREPARING before a crashed container is started again
MATERIALIZE = "materialize"  # that of an attempt at a create
CRASHES_OF_A_CREATE = 3  # the third fails it
# Failures that leave the container and its network in place: only these sandboxes may be resumed.
_RESUMABLE = ("SANDBOX_STOP_FAILED", "SANDBOX_RESUME_FAILED", "CONTAINER_CRASHLOOP", "CONTAINER_OOM", "MOUNT_CHANGED",
              "ACCOUNT_FILE_UNSAFE", "PORT_IN_USE")

# Failures of a companion that end by themselves: it is started again, or its health check succeeds.
_OUTAGES = ("CONTAINER_NOT_RUNNING", "CONTAINER_OOM", "CONTAINER_UNHEALTHY")
_HOOK_FAILED = "POST_START_HOOK_FAILED"  # reported also during another outage


class Phase(enum.Enum):
    NONE = "not created"
    CREATING = "creating"
    RESUMING = "resuming"
    READY = "ready"
    RESTARTING = "restarting"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"
    DELETING = "deleting"
    DELETED = "deleted"


STATES = {  # as clients see them
    Phase.NONE: "",
    Phase.CREATING: "PENDING",
    Phase.RESUMING: "PENDING",
    Phase.READY: "READY",
    Phase.RESTARTING: "READY",
    Phase.STOPPING: "READY",
    Phase.STOPPED: "STOPPED",
    Phase.FAILED: "FAILED",
    Phase.DELETING: "DELETING",
    Phase.DELETED: "DELETED",
}
_FROM_EVERYWHERE = {"SANDBOX_FAILED": Phase.FAILED, "SANDBOX_DELETE_REQUESTED": Phase.DELETING}
_NEXT: dict[Phase, dict[str, Phase]] = {
    Phase.NONE: {"SANDBOX_ACCEPTED": Phase.CREATING},
    Phase.CREATING: {
        "SANDBOX_PREPARING": Phase.CREATING,
        "SANDBOX_READY": Phase.READY,
        **_FROM_EVERYWHERE,
    },
    Phase.RESUMING: {
        "SANDBOX_PREPARING": Phase.RESUMING,
        "SANDBOX_READY": Phase.READY,
        **_FROM_EVERYWHERE,
    },
    Phase.READY: {
        "SANDBOX_PREPARING": Phase.RESTARTING,
        "SANDBOX_STOP_REQUESTED": Phase.STOPPING,
        **_FROM_EVERYWHERE,
    },
    Phase.RESTARTING: {  # announced once, however often the container fails to start
        "SANDBOX_READY": Phase.READY,
        "SANDBOX_STOP_REQUESTED": Phase.STOPPING,
        **_FROM_EVERYWHERE,
    },
    Phase.STOPPING: {"SANDBOX_STOPPED": Phase.STOPPED, **_FROM_EVERYWHERE},
    Phase.STOPPED: {"SANDBOX_ACCEPTED": Phase.RESUMING, **_FROM_EVERYWHERE},
    Phase.FAILED: {
        "SANDBOX_ACCEPTED": Phase.RESUMING,
        "SANDBOX_DELETE_REQUESTED": Phase.DELETING,
    },
    Phase.DELETING: {"SANDBOX_DELETED": Phase.DELETED, "SANDBOX_FAILED": Phase.FAILED},
    Phase.DELETED: {},
}
_UNDER_WAY = {
    Phase.NONE,
    Phase.CREATING,
    Phase.RESUMING,
    Phase.RESTARTING,
    Phase.STOPPING,
    Phase.DELETING,
}
_STARTS = {Phase.CREATING, Phase.RESUMING}
_WITHOUT_COMPANIONS = {Phase.NONE, Phase.STOPPED, Phase.DELETED}
_TAKES_EXECS = {Phase.READY, Phase.RESTARTING}
# Execs that a failed stop left running end with the next start of the container.
_ENDS_EXECS = _TAKES_EXECS | {Phase.STOPPING, Phase.RESUMING, Phase.FAILED, Phase.DELETING}


class Life:
    """Follows the events of one sandbox from the first on. `fault` is what is wrong with the latest."""

    def __init__(self) -> None:
        self.phase = Phase.NONE
        self.is_resumable = False  # a FAILED one
        self.attempts = 0  # at the create
        self.restarts = 0  # completed ones
        self.running: set[str] = set()  # execs
        # The latest event of each companion since the start of the sandbox.
        self.companions: dict[str, Event] = {}
        self.fault = ""

    def follow(self, event: Event) -> None:
        self.fault = ""
        if event.exec_id:
            self._follow_exec(event)
        elif event.companion:
            self._follow_companion(event)
        elif event.kind.startswith("SANDBOX_"):
            self._follow_sandbox(event)
        if not self.fault and event.state != STATES[self.phase]:
            self.fault = f"has the state {event.state} instead of {STATES[self.phase]}"

    @property
    def is_settled(self) -> bool:
        return self.phase not in _UNDER_WAY and not self.running and not self._has_outage

    @property
    def _has_outage(self) -> bool:
        outages = (event.error_code in _OUTAGES for event in self.companions.values())
        return self.phase is Phase.READY and any(outages)

    def awaits(self, companions: Iterable[str]) -> bool:
        """Whether some of them have not reported yet since the sandbox became ready."""
        return self.phase is Phase.READY and not set(companions) <= self.companions.keys()

    def refuses(self, kind: str) -> bool:
        """Whether a call of this kind may be refused because of the state."""
        if kind == "stop":
            return self.phase not in (Phase.READY, Phase.RESTARTING, Phase.STOPPING)
        if kind == "resume":
            may_resume = self.phase is Phase.STOPPED
            return not (may_resume or (self.phase is Phase.FAILED and self.is_resumable))
        if kind == "exec":
            return self.phase not in _TAKES_EXECS
        return False

    def _follow_exec(self, event: Event) -> None:
        is_start = event.kind == "EXEC_STARTED"
        (self.running.add if is_start else self.running.discard)(event.exec_id)
        if self.phase not in (_TAKES_EXECS if is_start else _ENDS_EXECS):
            self.fault = f"of exec {event.exec_id} comes while the sandbox is {self.phase.value}"

    def _follow_companion(self, event: Event) -> None:
        before = self.companions.get(event.companion)
        self.companions[event.companion] = event
        # A start of the sandbox that the daemon's end interrupted is repeated.
        is_repeated = self.phase in _STARTS or event.error_code == _HOOK_FAILED
        if before and before.kind == event.kind and not is_repeated:
            self.fault = f"of companion {event.companion} comes twice for one outage"
        if self.phase in _WITHOUT_COMPANIONS:
            self.fault = f"of companion {event.companion} comes while the sandbox is {self.phase.value}"

    def _follow_sandbox(self, event: Event) -> None:
        following = _NEXT[self.phase].get(event.kind)
        before, where = self.phase, self.phase.value
        if following is None:
            # Judge what follows as if it had been legal.
            self.phase = next(
                (row[event.kind] for row in _NEXT.values() if event.kind in row), self.phase
            )
            self.fault = f"comes while the sandbox is {where}"
            return
        self.phase = following
        if before is Phase.FAILED and following is Phase.RESUMING and not self.is_resumable:
            self.fault = f"comes while the sandbox is {where}, without its containers"
        if before is Phase.RESTARTING and following is Phase.READY:
            self.restarts += 1
        if following is Phase.RESTARTING and event.phase != RESTART:
            self.fault = f"of the phase {event.phase!r} comes while the sandbox is {where}"
        if following is Phase.FAILED:  # a create that fails removes what it made
            self.is_resumable = event.error_code in _RESUMABLE and before is not Phase.CREATING
        if following is Phase.RESUMING and before is not Phase.RESUMING:
            self.companions = {}
        if following is Phase.CREATING and event.phase == MATERIALIZE:
            self.companions = {}
            self.attempts += 1
            if self.attempts > CRASHES_OF_A_CREATE:
                self.fault = f"is attempt {self.attempts} at the create"
        if following in (Phase.STOPPED, Phase.DELETED) and self.running:
            self.fault = f"comes before the end of {sorted(self.running)}"


def faults_of(events: Iterable[Event]) -> Iterator[tuple[Event, str]]:
    """Every event that may not come where it does, or has the wrong state."""
    life = Life()
    for event in events:
        life.follow(event)
        if life.fault:
            yield event, life.fault


def restarts_of(events: Iterable[Event]) -> int:
    """How often the container was restarted in this history."""
    life = Life()
    for event in events:
        life.follow(event)
    return life.restarts


def is_settled(events: Iterable[Event]) -> bool:
    """Whether a sandbox with this history is at rest."""
    life = Life()
    for event in events:
        life.follow(event)
    return life.is_settled


def lives_between(events: Iterable[Event], first: int, last: int) -> Iterator[Life]:
    """The life as it was after each of these events, `first` and `last` included; 0 is before the first."""
    life = Life()
    if first == 0:
        yield life
    for event in events:
        life.follow(event)
        if first <= event.sequence <= last:
            yield life
