# SPDX-License-Identifier: Apache-2.0
"""Files of a ready sandbox."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from posixpath import split
from typing import Final

from agents_sandbox._async import platform
from agents_sandbox._async.raw import RawClient
from agents_sandbox._generated.agbox.v1 import files_pb2
from agents_sandbox._tar import (
    DirectorySink,
    Limits,
    MemorySink,
    Packed,
    Sink,
    Unpacker,
    pack,
    pack_bytes,
)
from agents_sandbox.errors import UnsafeArchiveError
from agents_sandbox.types import CopyResult

_MESSAGE: Final = 1 << 18


class Files:
    """Copies into and out of a sandbox. Paths inside are absolute, or below ~, the home of the runtime user, who reads
    and writes unless `as_root` is set."""

    def __init__(self, client: RawClient, sandbox_id: str) -> None:
        self._client = client
        self._sandbox_id = sandbox_id

    async def upload(
        self, source: str | os.PathLike[str], target: str, *, as_root: bool = False
    ) -> CopyResult:
        """A file or a directory of this machine, as `docker cp`: into the target if that is a directory, and as the
        target otherwise. A source that ends with "/." is the content of a directory."""
        packed = Packed()
        pieces = pack(Path(source), _name_of(source), packed)
        response = await self._copy_in(pieces, target, files_pb2.COPY_PLACEMENT_ROOT, as_root)
        return CopyResult(response.entries, response.bytes, packed.notes, packed.first_note)

    async def write_bytes(self, path: str, data: bytes, *, mode: int = 0o644, as_root: bool = False) -> None:
        """Replaces the file, or creates it; also the directory that it is in, if only that is missing."""
        directory, name = split(path)
        if not directory or not name or name in (".", ".."):
            raise ValueError(f"path must be that of a file, absolute or below ~, not {path!r}")
        pieces = pack_bytes(name, data, mode)
        await self._copy_in(pieces, directory, files_pb2.COPY_PLACEMENT_CONTENT, as_root)

    async def write_text(self, path: str, text: str, *, mode: int = 0o644, as_root: bool = False) -> None:
        await self.write_bytes(path, text.encode(), mode=mode, as_root=as_root)

    async def download(
        self,
        source: str,
        target_directory: str | os.PathLike[str],
        *,
        as_root: bool = False,
        max_entries: int = 2_000_000,
        max_bytes: int = 1 << 40,
    ) -> CopyResult:
        """A file or a directory of the sandbox, into a directory of this machine, which is created if it is missing.
        A source that ends with "/." is the content of a directory.

        What the sandbox sends is not trusted: nothing is created outside the target, or through a symbolic link. Links
        are created as they are and may lead anywhere: do not follow them blindly.
        """
        root = _root_of(source)
        sink = await platform.to_thread(DirectorySink, Path(target_directory))
        try:
            root_as = [] if root == "." else [root]
            return await self._copy_out(source, sink, root_as, as_root, Limits(max_entries, max_bytes))
        finally:
            await platform.to_thread(sink.close)

    async def read_bytes(self, path: str, *, as_root: bool = False, max_bytes: int = 1 << 28) -> bytes:
        """The content of a file. UnsafeArchiveError if it has more than `max_bytes`."""
        sink = MemorySink()
        await self._copy_out(path, sink, [_root_of(path)], as_root, Limits(1, max_bytes))
        return bytes(sink.content)

    async def read_text(self, path: str, *, as_root: bool = False, max_bytes: int = 1 << 28) -> str:
        return (await self.read_bytes(path, as_root=as_root, max_bytes=max_bytes)).decode()

    async def _copy_in(
        self, pieces: Iterator[bytes], target: str, placement: files_pb2.CopyPlacement, as_root: bool
    ) -> files_pb2.CopyInResponse:
        where = files_pb2.CopyInTarget(
            sandbox_id=self._sandbox_id, path=target, placement=placement, as_root=as_root
        )
        async with contextlib.aclosing(_requests(where, pieces)) as requests:
            return await self._client.copy_in(requests)

    async def _copy_out(
        self, source: str, sink: Sink, root_as: list[str], as_root: bool, limits: Limits
    ) -> CopyResult:
        unpacker = Unpacker(sink, _root_of(source), root_as, limits)
        request = files_pb2.CopyOutRequest(sandbox_id=self._sandbox_id, path=source, as_root=as_root)
        stream = self._client.copy_out(request)
        summary: files_pb2.CopySummary | None = None
        try:
            async for response in stream:
                if response.data:
                    await platform.to_thread(unpacker.feed, response.data)
                if response.HasField("summary"):
                    summary = response.summary
        finally:
            stream.cancel()
        unpacker.finish()
        if summary is None:
            raise UnsafeArchiveError("the archive is incomplete")
        return CopyResult(unpacker.entries, unpacker.bytes, summary.notes, summary.first_note or None)


async def _requests(
    where: files_pb2.CopyInTarget, pieces: Iterator[bytes]
) -> AsyncGenerator[files_pb2.CopyInRequest, None]:
    yield files_pb2.CopyInRequest(target=where)
    while message := await platform.to_thread(_joined, pieces):
        yield files_pb2.CopyInRequest(data=message)


def _joined(pieces: Iterator[bytes]) -> bytes:
    """Small pieces as one message; empty at the end."""
    message = bytearray()
    for piece in pieces:
        message += piece
        if len(message) >= _MESSAGE:
            break
    return bytes(message)


def _name_of(source: str | os.PathLike[str]) -> str:
    """The name that the root of the stream gets; "." for the content of a directory."""
    text = os.fspath(source)
    return "." if text.endswith("/.") or text == "." else os.path.basename(os.path.abspath(text)) or "."  # noqa: PTH100, PTH119


def _root_of(source: str) -> str:
    """The name that the root of the stream has to have."""
    if source.endswith("/."):
        return "."
    name = source.rstrip("/").rpartition("/")[2]
    if name in ("", ".", "..", "~"):
        raise ValueError(f'the path {source!r} has no name; for the content of a directory end it with "/."')
    return name
