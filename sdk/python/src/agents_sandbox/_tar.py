# SPDX-License-Identifier: Apache-2.0
"""Packs files as a tar stream, and unpacks one that a hostile sandbox may have written.

Unpacking creates only files, directories and symbolic links below a directory that is held open; every directory on
the way is opened relative to the one above it, and never through a symbolic link.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import tarfile
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from agents_sandbox.errors import UnsafeArchiveError

_BLOCK: Final = 512
_PIECE: Final = 1 << 18
# Tools fill the last of their records.
_MAX_FILLER: Final = 1 << 20
# Of the extended headers of one entry: names and targets of links are at most 4 KiB each.
_MAX_EXTENDED: Final = 1 << 16
_MAX_EXTENTS: Final = 1 << 20
_MAX_NUMBER_DIGITS: Final = 20
# Each is held open.
_MAX_DEPTH: Final = 128


# --- packing ----------------------------------------------------------------------------------------


@dataclass
class Packed:
    """What was packed so far. FIFOs, sockets and devices are left out, and counted as notes."""

    entries: int = 0
    notes: int = 0
    first_note: str | None = None


def pack(source: Path, name: str, packed: Packed) -> Iterator[bytes]:
    """A file or a directory tree, whose root has that name."""
    yield from _pack(source, name, packed)
    yield bytes(2 * _BLOCK)


def pack_bytes(name: str, data: bytes, mode: int) -> Iterator[bytes]:
    """One file."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    yield _header(info)
    for start in range(0, len(data), _PIECE):
        yield data[start : start + _PIECE]
    yield bytes(-len(data) % _BLOCK) + bytes(2 * _BLOCK)


def _pack(source: Path, name: str, packed: Packed) -> Iterator[bytes]:
    found = source.lstat()
    info = tarfile.TarInfo(name)
    info.mode, info.mtime = stat.S_IMODE(found.st_mode), int(found.st_mtime)
    if stat.S_ISREG(found.st_mode):
        packed.entries += 1
        yield from _pack_file(source, info)
    elif stat.S_ISLNK(found.st_mode):
        packed.entries += 1
        info.type, info.linkname = tarfile.SYMTYPE, os.readlink(source)  # noqa: PTH115
        yield _header(info)
    elif stat.S_ISDIR(found.st_mode):
        packed.entries += 1
        info.type = tarfile.DIRTYPE
        yield _header(info)
        for child in sorted(os.listdir(source)):  # noqa: PTH208
            yield from _pack(source / child, f"{name}/{child}", packed)
    else:
        packed.notes += 1
        packed.first_note = (
            packed.first_note or f"{source}: left out, because it is no file, directory or link"
        )


def _pack_file(source: Path, info: tarfile.TarInfo) -> Iterator[bytes]:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(source, flags), "rb", buffering=0) as file:  # noqa: PTH123
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{source} was exchanged while it was copied")
        info.size = left = found.st_size
        yield _header(info)
        while left:
            piece = file.read(min(left, _PIECE))
            if not piece:
                raise OSError(f"{source} became shorter while it was copied")
            left -= len(piece)
            yield piece
        yield bytes(-info.size % _BLOCK)


def _header(info: tarfile.TarInfo) -> bytes:
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


# --- unpacking --------------------------------------------------------------------------------------


class Sink(Protocol):
    """Where entries go. Paths are lists of names without "", "." and ".."."""

    def directory(self, path: list[str], mode: int) -> None: ...

    def symlink(self, path: list[str], target: str) -> None: ...

    def begin_file(self, path: list[str], mode: int, mtime: float) -> None: ...

    def write(self, offset: int, data: bytes) -> None: ...

    def end_file(self, size: int) -> None: ...


@dataclass(frozen=True)
class Limits:
    entries: int = 2_000_000
    bytes: int = 1 << 40


@dataclass
class _Entry:
    name: str
    link: str
    kind: bytes
    mode: int
    mtime: float
    stored: int
    size: int
    extents: list[tuple[int, int]] = field(default_factory=list)
    is_sparse: bool = False


class Unpacker:
    """feed() it the stream, then finish(). `root` is the name of the stream's root, or "." for its content; the sink
    gets the root as `root_as`."""

    def __init__(self, sink: Sink, root: str, root_as: list[str], limits: Limits) -> None:
        self.entries = 0
        self.bytes = 0
        self._sink = sink
        self._root = root
        self._root_as = root_as
        self._limits = limits
        self._buffer = bytearray()
        self._has_ended = False
        self._steps = self._parse()
        self._wanted = next(self._steps)

    def feed(self, data: bytes) -> None:
        self._buffer += data
        position = 0
        while len(self._buffer) - position >= self._wanted:
            piece = bytes(self._buffer[position : position + self._wanted])
            position += self._wanted
            self._wanted = self._steps.send(piece)
        del self._buffer[:position]

    def finish(self) -> None:
        if not self._has_ended:
            raise UnsafeArchiveError("the archive is incomplete")

    def _parse(self) -> Generator[int, bytes, None]:
        """Yields how many bytes it needs next."""
        while True:
            records: dict[str, str] = {}
            header = yield _BLOCK
            extended = 0
            while header[156:157] in (b"x", b"g"):
                size = _number(header[124:136])
                extended += _BLOCK + size
                if extended > _MAX_EXTENDED:
                    raise UnsafeArchiveError(f"extended headers of {extended} bytes")
                _check_sum(header)
                body = yield _padded(size)
                if header[156:157] == b"x":
                    records = _records(body[:size])
                header = yield _BLOCK
            if not any(header):
                self._has_ended = True
                for _ in range(_MAX_FILLER // _BLOCK):
                    yield _BLOCK
                raise UnsafeArchiveError(f"more than {_MAX_FILLER} bytes after the end of the archive")
            _check_sum(header)
            entry = _entry(header, records)
            if entry.is_sparse:
                yield from self._sparse_map(entry)
            self._count(entry)
            yield from self._create(entry)

    def _count(self, entry: _Entry) -> None:
        self.entries += 1
        data = sum(length for _, length in entry.extents)
        self.bytes += data
        if self.entries > self._limits.entries:
            raise UnsafeArchiveError(f"more than {self._limits.entries} entries")
        if self.bytes > self._limits.bytes or entry.size > self._limits.bytes:
            raise UnsafeArchiveError(f"more than {self._limits.bytes} bytes")

    def _create(self, entry: _Entry) -> Generator[int, bytes, None]:
        path = self._path(entry.name)
        if entry.kind == tarfile.DIRTYPE:
            self._sink.directory(path, entry.mode)
        elif entry.kind == tarfile.SYMTYPE:
            if not entry.link or "\0" in entry.link:
                raise UnsafeArchiveError(f"{entry.name!r} is a link to nothing")
            self._sink.symlink(path, entry.link)
        elif entry.kind in (tarfile.REGTYPE, tarfile.AREGTYPE):
            self._sink.begin_file(path, entry.mode, entry.mtime)
            for start, length in entry.extents:
                done = 0
                while done < length:
                    piece = yield min(length - done, _PIECE)
                    self._sink.write(start + done, piece)
                    done += len(piece)
            self._sink.end_file(entry.size)
            if entry.stored % _BLOCK:
                yield -entry.stored % _BLOCK
        else:
            raise UnsafeArchiveError(f"{entry.name!r} is no file, directory or symbolic link")

    def _path(self, name: str) -> list[str]:
        """Of an entry: below the root, and nowhere else."""
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if name.startswith("/") or ".." in parts or "\0" in name:
            raise UnsafeArchiveError(f"{name!r} leads out of the target")
        if len(parts) > _MAX_DEPTH:
            raise UnsafeArchiveError(f"more than {_MAX_DEPTH} levels of directories")
        if self._root != ".":
            if not parts or parts[0] != self._root:
                raise UnsafeArchiveError(f"{name!r} is not below {self._root!r}")
            parts = parts[1:]
        return self._root_as + parts

    def _sparse_map(self, entry: _Entry) -> Generator[int, bytes, None]:
        """As of GNU tar 1.0: the number of extents, then offset and length of each, one per line."""
        numbers: list[int] = []
        wanted, rest, read = 1, b"", 0
        while len(numbers) < wanted:
            read += _BLOCK
            if read > entry.stored:
                raise UnsafeArchiveError(f"the map of the sparse file {entry.name!r} is incomplete")
            *lines, rest = (rest + (yield _BLOCK)).split(b"\n")
            if len(rest) > _BLOCK:
                raise UnsafeArchiveError(f"the map of the sparse file {entry.name!r} cannot be read")
            numbers += [_decimal(line) for line in lines[: wanted - len(numbers)]] if numbers else []
            if not numbers and lines:
                numbers.append(_decimal(lines[0]))
                if numbers[0] > _MAX_EXTENTS:
                    raise UnsafeArchiveError(f"the sparse file {entry.name!r} has too many parts")
                wanted = 1 + 2 * numbers[0]
                numbers += [_decimal(line) for line in lines[1:wanted]]
        entry.extents = [
            (start, length) for start, length in zip(numbers[1::2], numbers[2::2], strict=True) if length
        ]
        entry.stored -= read
        end = 0
        for start, length in entry.extents:
            if start < end:
                raise UnsafeArchiveError(f"the parts of the sparse file {entry.name!r} overlap")
            end = start + length
        if end > entry.size or sum(length for _, length in entry.extents) != entry.stored:
            raise UnsafeArchiveError(f"the map of the sparse file {entry.name!r} does not fit it")


def _entry(header: bytes, records: dict[str, str]) -> _Entry:
    name, prefix = _text(header[:100]), _text(header[345:500])
    if prefix and header[257:262] == b"ustar":
        name = f"{prefix}/{name}"
    stored = _decimal(records["size"].encode()) if "size" in records else _number(header[124:136])
    kind = header[156:157]
    if kind not in (tarfile.REGTYPE, tarfile.AREGTYPE) and stored:
        raise UnsafeArchiveError(f"{name!r} has data, but is no file")
    entry = _Entry(
        name=records.get("path", name),
        link=records.get("linkpath", _text(header[157:257])),
        kind=kind,
        mode=_number(header[100:108]) & 0o777,
        mtime=_seconds(records["mtime"] if "mtime" in records else str(_number(header[136:148]))),
        stored=stored,
        size=stored,
    )
    if any(key.startswith("GNU.sparse.") for key in records):
        if records.get("GNU.sparse.major") != "1" or "GNU.sparse.realsize" not in records:
            raise UnsafeArchiveError(f"{entry.name!r} is a sparse file in an unknown format")
        entry.name = records.get("GNU.sparse.name", entry.name)
        entry.size = _decimal(records["GNU.sparse.realsize"].encode())
        entry.is_sparse = True
    elif stored:
        entry.extents = [(0, stored)]
    return entry


def _records(body: bytes) -> dict[str, str]:
    """LENGTH KEY=VALUE, and a line feed."""
    found: dict[str, str] = {}
    while body:
        digits, separator, _ = body[: _MAX_NUMBER_DIGITS + 1].partition(b" ")
        length = _decimal(digits)
        record = body[len(digits) + 1 : length]
        key, equals, value = record.partition(b"=")
        if not separator or not equals or length > len(body) or not value.endswith(b"\n"):
            raise UnsafeArchiveError("an extended header that cannot be read")
        found[key.decode(errors="surrogateescape")] = value[:-1].decode(errors="surrogateescape")
        body = body[length:]
    return found


def _check_sum(header: bytes) -> None:
    if _number(header[148:156]) != sum(header) - sum(header[148:156]) + 8 * ord(" "):
        raise UnsafeArchiveError("what the sandbox sent is not a tar archive")


def _number(octal: bytes) -> int:
    if octal[0] == 0x80:  # noqa: PLR2004
        return int.from_bytes(octal[1:], "big")
    digits = octal.strip(b" \0")
    if not digits:
        return 0
    if not digits.isdigit() or b"8" in digits or b"9" in digits:
        raise UnsafeArchiveError("what the sandbox sent is not a tar archive")
    return int(digits, 8)


def _decimal(digits: bytes) -> int:
    if not digits.isdigit() or len(digits) > _MAX_NUMBER_DIGITS:
        raise UnsafeArchiveError("a number that cannot be read")
    return int(digits)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        raise UnsafeArchiveError("a time that cannot be read") from None
    return seconds if -(2.0**40) < seconds < 2.0**40 else 0.0


def _text(padded: bytes) -> str:
    return padded.partition(b"\0")[0].decode(errors="surrogateescape")


def _padded(size: int) -> int:
    return size + -size % _BLOCK


class MemorySink:
    """The content of one file."""

    def __init__(self) -> None:
        self.content = bytearray()

    def directory(self, path: list[str], _mode: int) -> None:
        raise IsADirectoryError(f"{'/'.join(path)} is a directory of the sandbox; use download")

    def symlink(self, path: list[str], target: str) -> None:
        raise OSError(f"{'/'.join(path)} is a symbolic link of the sandbox, to {target!r}; name its target")

    def begin_file(self, _path: list[str], _mode: int, _mtime: float) -> None:
        self.content.clear()

    def write(self, offset: int, data: bytes) -> None:
        self.content += bytes(offset - len(self.content)) + data

    def end_file(self, size: int) -> None:
        self.content += bytes(size - len(self.content))


class DirectorySink:
    """Creates entries below a directory of this machine. A file is complete or not there."""

    def __init__(self, target: Path) -> None:
        target.mkdir(parents=True, exist_ok=True)
        self._target = _Directory(os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        # The directories on the way to the previous entry, which most entries share.
        self._open: list[tuple[str, _Directory]] = []
        self._file: tuple[_Directory, str, str, int, int, float] | None = None

    def close(self) -> None:
        if self._file is not None:
            directory, temporary, _, descriptor, _, _ = self._file
            os.close(descriptor)
            os.unlink(temporary, dir_fd=directory.descriptor)
            self._file = None
        self._leave(0)
        self._target.close()

    def directory(self, path: list[str], mode: int) -> None:
        if path:
            self._enter(path)
            os.fchmod(self._open[-1][1].descriptor, mode | 0o700)

    def symlink(self, path: list[str], target: str) -> None:
        directory, name = self._place(path)
        temporary = _temporary_name()
        os.symlink(target, temporary, dir_fd=directory.descriptor)
        try:
            os.rename(temporary, name, src_dir_fd=directory.descriptor, dst_dir_fd=directory.descriptor)
        except BaseException:
            os.unlink(temporary, dir_fd=directory.descriptor)
            raise

    def begin_file(self, path: list[str], mode: int, mtime: float) -> None:
        directory, name = self._place(path)
        temporary = _temporary_name()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o600, dir_fd=directory.descriptor)
        self._file = (directory, temporary, name, descriptor, mode, mtime)

    def write(self, offset: int, data: bytes) -> None:
        if self._file is None:
            raise RuntimeError("no file was begun")
        done = 0
        while done < len(data):
            done += os.pwrite(self._file[3], data[done:], offset + done)

    def end_file(self, size: int) -> None:
        if self._file is None:
            raise RuntimeError("no file was begun")
        directory, temporary, name, descriptor, mode, mtime = self._file
        os.ftruncate(descriptor, size)
        os.fchmod(descriptor, mode)
        os.utime(descriptor, (mtime, mtime))
        os.rename(temporary, name, src_dir_fd=directory.descriptor, dst_dir_fd=directory.descriptor)
        self._file = None
        os.close(descriptor)

    def _place(self, path: list[str]) -> tuple[_Directory, str]:
        if not path:
            raise UnsafeArchiveError("the root of a directory's content is no directory")
        return self._enter(path[:-1]), path[-1]

    def _enter(self, path: list[str]) -> _Directory:
        """Opens a directory of the target, and creates what is missing."""
        shared = 0
        while shared < min(len(path), len(self._open)) and self._open[shared][0] == path[shared]:
            shared += 1
        self._leave(shared)
        for name in path[shared:]:
            above = self._open[-1][1] if self._open else self._target
            self._open.append((name, above.enter(name)))
        return self._open[-1][1] if self._open else self._target

    def _leave(self, depth: int) -> None:
        while len(self._open) > depth:
            self._open.pop()[1].close()


@dataclass
class _Directory:
    descriptor: int

    def enter(self, name: str) -> _Directory:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=self.descriptor)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return _Directory(os.open(name, flags, dir_fd=self.descriptor))
        except NotADirectoryError:
            raise UnsafeArchiveError(
                f"{name!r} exists and is no directory; nothing is unpacked through it"
            ) from None

    def close(self) -> None:
        os.close(self.descriptor)


def _temporary_name() -> str:
    return f".agbox-{secrets.token_hex(8)}"
