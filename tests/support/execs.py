# SPDX-License-Identifier: Apache-2.0
"""Steps of a client with the execs of one daemon."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support.sandboxes import Sandboxes

RUNNING, FINISHED, FAILED, CANCELLED = 1, 2, 3, 4
STDOUT = 1
STARTED = 9  # the event
ENDS = (10, 11, 12)

# In order of passage; the names are those of execlog/exec_logs.cpp and sandbox_execs.cpp.
EXEC_FAILPOINTS = [
    "exec.files.before",
    "exec.files.after",
    "exec.commit.before",
    "exec.commit.after",
    "exec.send.before",
    "exec.send.after",
    "exec.reply.after",
    "exec.end.before",
    "exec.end_commit.before",
    "exec.end_commit.after",
    "exec.forget.before",
    "exec.forget.after",
]
CANCEL_FAILPOINTS = [
    "exec.cancel_commit.before",
    "exec.cancel_commit.after",
    "exec.cancel_send.before",
    "exec.cancel_send.after",
]


class Execs:
    """The execs of one sandbox."""

    def __init__(self, sandboxes: Sandboxes, sandbox_id: str):
        self.sandboxes, self.sandbox_id = sandboxes, sandbox_id
        self.service, self.stub = sandboxes.service, sandboxes.stub

    def create(
        self,
        *command: str,
        exec_id: str = "",
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Any:
        request = self.service.CreateExecRequest(
            sandbox_id=self.sandbox_id,
            command=command,
            exec_id=exec_id,
            cwd=cwd,
            env_overrides=env or {},
            **options,
        )
        return self.stub.CreateExec(request, timeout=30)

    def get(self, exec_id: str) -> Any:
        return self.stub.GetExec(self.service.GetExecRequest(exec_id=exec_id), timeout=30).exec

    def cancel(self, exec_id: str) -> None:
        request = self.service.CancelExecRequest(exec_id=exec_id)
        assert self.stub.CancelExec(request, timeout=30).accepted

    def active(self) -> list[str]:
        request = self.service.ListActiveExecsRequest(sandbox_id=self.sandbox_id)
        return [one.exec_id for one in self.stub.ListActiveExecs(request, timeout=30).execs]

    def all(self) -> list[Any]:
        request = self.service.ListExecsRequest(sandbox_id=self.sandbox_id)
        return list(self.stub.ListExecs(request, timeout=30).execs)

    def wait(self, exec_id: str) -> Any:
        """Its status after its end, as clients wait: for the event, then the status."""
        status = self.get(exec_id)
        if status.state == RUNNING:
            self.sandboxes.follow(
                self.sandbox_id,
                lambda event: event.event_type in ENDS and event.exec.exec_id == exec_id,
                from_sequence=status.last_event_sequence,
            )
            status = self.get(exec_id)
        assert status.state != RUNNING
        return status

    def wait_for_output(self, exec_id: str, patience: float = 30) -> None:
        """Until it has written something to stdout."""
        request = self.service.ReadExecOutputRequest(exec_id=exec_id, stream=STDOUT, follow=True)
        stream = self.stub.ReadExecOutput(request, timeout=patience)
        assert any(answer.data for answer in stream), f"{exec_id} ended and wrote nothing"
        stream.cancel()

    def run(self, *command: str, **request) -> Any:
        return self.wait(self.create(*command, **request).exec_id)

    def events(self) -> list[str]:
        """`EXEC_STARTED one` for every event of an exec."""
        types = self.sandboxes.contract.event.EventType
        return [
            f"{types.Name(event.event_type)} {event.exec.exec_id}"
            for event in self.sandboxes.history(self.sandbox_id)
            if event.HasField("exec")
        ]


def run_in(sandboxes: Sandboxes, sandbox_id: str, script: str) -> tuple[int, str]:
    """The exit code and the output of a script in the sandbox."""
    status = Execs(sandboxes, sandbox_id).run("sh", "-c", script)
    return status.exit_code, output(status)


def output(status: Any) -> str:
    """Its stdout, read from the file, as users do."""
    return Path(status.stdout_log_path).read_text()


def errors(status: Any) -> str:
    return Path(status.stderr_log_path).read_text()


def ends_of(events: Sequence[str], exec_id: str) -> int:
    return sum(1 for line in events if line.endswith(f" {exec_id}") and "STARTED" not in line)
