# SPDX-License-Identifier: Apache-2.0
"""A proxy between the daemon and its engine that can delay, cut connections and corrupt answers, as defined by
its manners."""

import contextlib
import os
import random
import select
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from support.engine import docker_group

_CHUNK = 65536


class Manners:
    """How one connection is treated; this one forwards everything. Either method may return other bytes.
    Once `is_over` is true, the returned bytes are forwarded and the connection is cut."""

    is_over = False

    def request(self, data: bytes, answer: Callable[[bytes], None]) -> bytes:
        """`answer` replies instead of the engine."""
        return data

    def response(self, data: bytes) -> bytes:
        return data

    def end(self) -> None:
        """The connection has ended."""


class Slow(Manners):
    """Delays each chunk of an answer."""

    def __init__(self, seconds: float):
        self._seconds = seconds

    def response(self, data: bytes) -> bytes:
        select.select([], [], [], self._seconds)
        return data


class CutRequest(Manners):
    """The engine gets only the beginning of a request."""

    def __init__(self, after: int):
        self._left = after

    def request(self, data: bytes, answer: Callable[[bytes], None]) -> bytes:
        data = data[: self._left]
        self._left -= len(data)
        self.is_over = self._left == 0
        return data


class CutResponse(Manners):
    """The engine performs the request; its answer is cut."""

    def __init__(self, after: int):
        self._left = after

    def response(self, data: bytes) -> bytes:
        data = data[: self._left]
        self._left -= len(data)
        self.is_over = self._left == 0
        return data


class Garbled(Manners):
    """Answers with random bytes."""

    def __init__(self, rng: random.Random):
        self._noise = rng.randbytes(512)

    def response(self, data: bytes) -> bytes:
        noise = self._noise * (len(data) // len(self._noise) + 1)
        return noise[: len(data)]


def faithful() -> Manners:
    return Manners()


def flaky(rng: random.Random, share: float) -> Callable[[], Manners]:
    """Breaks that share of the connections."""
    lock = threading.Lock()

    def choose() -> Manners:
        with lock:
            if rng.random() >= share:
                return Manners()
            return rng.choice(
                (
                    Slow(rng.uniform(0.01, 0.3)),
                    CutRequest(rng.randrange(1, 400)),
                    CutResponse(rng.randrange(1, 600)),
                    CutResponse(0),
                    Garbled(random.Random(rng.random())),
                )
            )

    return choose


class ForgetsNetworks(Manners):
    """Reports that a network was removed, but keeps it."""

    def request(self, data: bytes, answer: Callable[[bytes], None]) -> bytes:
        words = data.split(b" ", 2)
        if words[0] == b"DELETE" and b"/networks/" in words[1]:
            answer(b"HTTP/1.1 204 No Content\r\n\r\n")
            return b""
        return data


class CutsOnce:
    """Cuts the connection at the first answer to a request whose line contains these bytes; the engine has performed
    it."""

    def __init__(self, request: bytes):
        self._request = request
        self._lock = threading.Lock()
        self.is_done = False

    def manners(self) -> Manners:
        return _CutsFor(self)

    def takes(self, line: bytes) -> bool:
        with self._lock:
            is_first = not self.is_done and self._request in line
            self.is_done = self.is_done or is_first
            return is_first


class _CutsFor(Manners):
    def __init__(self, cut: CutsOnce):
        self._cut = cut
        self._is_hit = False

    def request(self, data: bytes, answer: Callable[[bytes], None]) -> bytes:
        self._is_hit = self._cut.takes(data.split(b"\r\n", 1)[0])
        return data

    def response(self, data: bytes) -> bytes:
        self.is_over = self._is_hit
        return b"" if self._is_hit else data


class NetworkTurns:
    """Blocks creation and removal of networks while `nobody()` is held. Docker 20.10 killed during one of
    them leaves a record over which it panics at every later start, which no client can fix."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._is_closed = False

    def manners(self) -> Manners:
        return _TakesTurns(self)

    @contextlib.contextmanager
    def nobody(self) -> Iterator[None]:
        with self._changed:
            self._is_closed = True
            self._changed.wait_for(lambda: self._inside == 0)
        try:
            yield
        finally:
            with self._changed:
                self._is_closed = False
                self._changed.notify_all()

    def enter(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._is_closed)
            self._inside += 1

    def leave(self) -> None:
        with self._changed:
            self._inside -= 1
            self._changed.notify_all()


class _TakesTurns(Manners):
    def __init__(self, turns: NetworkTurns):
        self._turns = turns
        self._is_inside = False

    def request(self, data: bytes, answer: Callable[[bytes], None]) -> bytes:
        line = data.split(b"\r\n", 1)[0]
        if line.startswith((b"POST ", b"DELETE ")) and b"/networks/" in line:
            self._turns.enter()
            self._is_inside = True
        return data

    def response(self, data: bytes) -> bytes:
        self.end()
        return data

    def end(self) -> None:
        if self._is_inside:
            self._is_inside = False
            self._turns.leave()


class EngineGate:
    """Listens on `path` until end(); `manners` is called for each connection and may be replaced."""

    def __init__(self, path: Path, upstream: Path, manners: Callable[[], Manners] = faithful):
        self.path, self.manners = path, manners
        self._upstream = upstream
        self._threads: list[threading.Thread] = []
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._is_over = False
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        os.chown(path, 0, docker_group())
        path.chmod(0o660)
        self._listener.listen(64)
        self._start(self._accept)

    @property
    def docker_host(self) -> str:
        return f"unix://{self.path}"

    def end(self) -> None:
        with self._lock:
            self._is_over = True
            ends = [self._listener, *self._open]
        for one in ends:
            _shut(one)
        for thread in self._threads:
            thread.join()
        self._listener.close()
        self.path.unlink()

    def _start(self, work: Callable, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, name="engine gate")
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # shut down by end()
            engine = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                engine.connect(str(self._upstream))
            except OSError:  # no engine: looks the same to the client
                client.close()
                engine.close()
                continue
            with self._lock:
                if self._is_over:
                    client.close()
                    engine.close()
                    return
                self._open |= {client, engine}
            self._start(self._connection, client, engine, self.manners())

    def _connection(self, client: socket.socket, engine: socket.socket, manners: Manners) -> None:
        """Ends when both sides have closed, or the connection is cut."""
        sides = {
            client: (engine, lambda data: manners.request(data, client.sendall)),
            engine: (client, manners.response),
        }
        try:
            while sides:
                for source in select.select(list(sides), [], [])[0]:
                    target, treat = sides[source]
                    data = source.recv(_CHUNK)
                    if not data:
                        del sides[source]
                        target.shutdown(socket.SHUT_WR)
                        continue
                    target.sendall(treat(data))
                    if manners.is_over:
                        return
        except OSError:
            return  # one side is gone: close the other
        finally:
            manners.end()
            with self._lock:
                self._open -= {client, engine}
            for one in (client, engine):
                _shut(one)
                one.close()


def _shut(one: socket.socket) -> None:
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # no longer connected
