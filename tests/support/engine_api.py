# SPDX-License-Identifier: Apache-2.0
"""A small client of the Docker Engine API over its Unix socket, for looking at an engine from the
side of the test. It knows no more than HTTP."""

import contextlib
import http.client
import json
import socket
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TIMEOUT = 60


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class EngineRefused(Exception):
    """The engine answered with an error status."""

    def __init__(self, request: str, answer: Answer):
        super().__init__(
            f"{request}: {answer.status} {answer.body.decode(errors='replace').strip()}"
        )
        self.answer = answer


class EngineApi:
    def __init__(self, path: Path):
        self.socket = path

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        json_body: Any = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = _TIMEOUT,
    ) -> Answer:
        """One request; raises EngineRefused from status 400 on. `path` may begin with /v1.N."""
        headers = dict(headers or {})
        if json_body is not None:
            body = json.dumps(json_body).encode()
            headers["Content-Type"] = "application/json"
        target = path if not query else f"{path}?{urllib.parse.urlencode(query, doseq=True)}"
        with self.connection(timeout) as connection:
            connection.request(method, target, body=body, headers=headers)
            response = connection.getresponse()
            answer = Answer(response.status, response.read())
        if answer.status >= 400:
            raise EngineRefused(f"{method} {target}", answer)
        return answer

    def connection(self, timeout: float) -> contextlib.AbstractContextManager["UnixConnection"]:
        """For one call: a test may restart the engine between two calls."""
        return contextlib.closing(UnixConnection(self.socket, timeout))

    def answers(self) -> bool:
        """Whether an engine is reachable now."""
        try:
            return self.call("GET", "/_ping", timeout=5).status == 200
        except (OSError, http.client.HTTPException):
            return False

    def version(self) -> dict[str, Any]:
        return self.call("GET", "/version").json()

    # What can be left behind, by name.

    def containers(self) -> set[str]:
        found = self.call("GET", "/containers/json", query={"all": "true"}).json()
        return {
            f"{container['Names'][0].lstrip('/')} {container['Id'][:12]}" for container in found
        }

    def networks(self) -> set[str]:
        found = self.call("GET", "/networks").json()
        return {f"{network['Name']} {network['Id'][:12]}" for network in found}

    def volumes(self) -> set[str]:
        found = self.call("GET", "/volumes").json()
        return {volume["Name"] for volume in found["Volumes"] or []}


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(str(self._path))
        except OSError:
            self.sock.close()
            raise
