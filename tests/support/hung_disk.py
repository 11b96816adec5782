# SPDX-License-Identifier: Apache-2.0
"""A filesystem with some large files, whose server stops to respond: as one of the network whose server is gone.

    with hung_disk(directory / "disk", uid) as disk:
        disk.hang()         # an access to `disk.path` or an open of `disk.files` blocks
        disk.wait_for_request()

It speaks the kernel's FUSE protocol; at the end it is unmounted, and who waits gets an error."""

import contextlib
import ctypes
import os
import select
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

_MS_NOSUID_NODEV = 2 | 4
_MNT_FORCE, _MNT_DETACH = 1, 2
_ENOENT, _ENOSYS = 2, 38
_LOOKUP, _GETATTR, _OPEN, _READ, _STATFS, _RELEASE, _INIT = 1, 3, 14, 15, 17, 18, 26
_OPENDIR, _READDIR, _RELEASEDIR, _FLUSH = 27, 28, 29, 25
_WITHOUT_REPLY = {2, 36, 42}  # FORGET, INTERRUPT, BATCH_FORGET
_ROOT, _FIRST_FILE = 1, 2
_NAMES = [b"data-%d" % number for number in range(8)]
_SIZE = 1 << 30
_REQUEST_BYTES = 1 << 17
_ASYNC_READ = 1  # a reader that waits can be killed


class HungDisk:
    def __init__(self, path: Path, uid: int):
        self.path, self.files = path, [path / name.decode() for name in _NAMES]
        self._uid = uid
        self._hangs = os.eventfd(0)
        self._has_content = True
        self._readers = threading.Semaphore(0)
        self._device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        self._server = threading.Thread(target=self._serve)

    def hang(self) -> None:
        # No request is read any more: who waits for one that was cannot even be killed.
        os.eventfd_write(self._hangs, 1)

    def hang_at_content(self) -> None:
        """Files are found and opened, and no byte of them arrives."""
        self._has_content = False

    def wait_for_request(self, timeout: float = 60) -> None:
        """After hang(): until an access blocks."""
        assert select.select([self._device], [], [], timeout)[0], "nobody asks the disk"

    def wait_for_reader(self, timeout: float = 60) -> None:
        """After hang_at_content(): until one more file is read, which is not answered."""
        assert self._readers.acquire(timeout=timeout), "nobody reads a file"

    def mount(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        options = f"fd={self._device},rootmode=40000,user_id=0,group_id=0,allow_other"
        if libc.mount(b"hung", os.fsencode(self.path), b"fuse", _MS_NOSUID_NODEV, options.encode()) != 0:
            os.close(self._device)
            raise OSError(ctypes.get_errno(), f"mount {self.path}")
        self._server.start()

    def unmount(self) -> None:
        """Forced: the connection ends, so every request fails, and the server sees its end."""
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.umount2(os.fsencode(self.path), _MNT_FORCE) != 0:
            libc.umount2(os.fsencode(self.path), _MNT_DETACH)
        self._server.join(timeout=20)
        assert not self._server.is_alive(), f"{self.path} is still mounted somewhere"
        os.close(self._device)
        os.close(self._hangs)

    def _serve(self) -> None:
        while True:
            if self._hangs in select.select([self._device, self._hangs], [], [])[0]:
                return
            try:
                request = os.read(self._device, _REQUEST_BYTES)
            except OSError:  # unmounted
                return
            _, operation, unique, node = struct.unpack_from("<IIQQ", request)
            if operation in _WITHOUT_REPLY:
                continue
            if operation == _READ and not self._has_content:
                self._readers.release()
                continue
            reply = self._reply(operation, node, request[40:])
            error, body = (-reply, b"") if isinstance(reply, int) else (0, reply)
            with contextlib.suppress(OSError):  # who asked is gone
                os.write(self._device, struct.pack("<IiQ", 16 + len(body), error, unique) + body)

    def _attributes(self, node: int) -> bytes:
        mode, size = (0o40755, 0) if node == _ROOT else (0o100644, _SIZE)
        return struct.pack("<6Q10I", node, size, size // 512, 1, 1, 1, 0, 0, 0, mode, 1, self._uid, self._uid, 0, 4096, 0)

    def _reply(self, operation: int, node: int, body: bytes) -> bytes | int:
        """The number of an error, or what the kernel gets."""
        if operation == _INIT:
            _, minor, readahead = struct.unpack_from("<III", body)
            return struct.pack("<IIIIHHIIHHI7I", 7, min(minor, 31), readahead, _ASYNC_READ, 64, 12, 1 << 16, 1, 16, 0, *[0] * 8)
        if operation == _GETATTR:
            return struct.pack("<QII", 0, 0, 0) + self._attributes(node)
        if operation == _LOOKUP:
            name = body.rstrip(b"\0")
            if node != _ROOT or name not in _NAMES:
                return _ENOENT
            file = _FIRST_FILE + _NAMES.index(name)
            return struct.pack("<QQQQII", file, 0, 0, 0, 0, 0) + self._attributes(file)
        if operation in (_OPEN, _OPENDIR):
            return struct.pack("<QII", 0, 0, 0)
        if operation == _READDIR:
            offset = struct.unpack_from("<QQ", body)[1]
            entries = [struct.pack("<QQII", _FIRST_FILE + number, number + 1, len(name), 8) + name.ljust(8, b"\0")
                       for number, name in enumerate(_NAMES)]
            return b"".join(entries[offset:])
        if operation == _READ:
            return b"x" * struct.unpack_from("<QQI", body)[2]
        if operation == _STATFS:
            return bytes(80)
        return b"" if operation in (_RELEASE, _RELEASEDIR, _FLUSH) else _ENOSYS


@contextlib.contextmanager
def hung_disk(path: Path, uid: int) -> Iterator[HungDisk]:
    """Mounted at `path`, which is made, for everybody; it responds until hang()."""
    path.mkdir()
    disk = HungDisk(path, uid)
    disk.mount()
    try:
        yield disk
    finally:
        disk.unmount()
