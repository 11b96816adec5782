# SPDX-License-Identifier: Apache-2.0
"""Archives of a hostile sandbox create nothing outside the target; those of our own guest are unpacked as they are."""

from __future__ import annotations

import io
import os
import random
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from agents_sandbox import UnsafeArchiveError
from agents_sandbox._tar import DirectorySink, Limits, MemorySink, Packed, Unpacker, pack, pack_bytes

BLOCK = 512


def info(
    name: str, kind: bytes = tarfile.REGTYPE, size: int = 0, link: str = "", mode: int = 0o644
) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.size, made.linkname, made.mode = kind, size, link, mode
    return made


def archive(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    text = b"".join(
        head.tobuf(tarfile.PAX_FORMAT) + data + bytes(-len(data) % BLOCK) for head, data in entries
    )
    return text + bytes(2 * BLOCK)


def file(name: str, data: bytes = b"x", mode: int = 0o644) -> tuple[tarfile.TarInfo, bytes]:
    return info(name, size=len(data), mode=mode), data


def folder(name: str) -> tuple[tarfile.TarInfo, bytes]:
    return info(name, tarfile.DIRTYPE, mode=0o755), b""


def link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return info(name, tarfile.SYMTYPE, link=target), b""


def unpack(
    data: bytes, target: Path, root: str = "tree", limits: Limits | None = None, step: int = 700
) -> Unpacker:
    sink = DirectorySink(target)
    try:
        unpacker = Unpacker(sink, root, [] if root == "." else [root], limits or Limits())
        for start in range(0, len(data), step):
            unpacker.feed(data[start : start + step])
        unpacker.finish()
        return unpacker
    finally:
        sink.close()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "inner" / "target"


def outside(target: Path) -> list[str]:
    """What exists next to the target and above it."""
    return sorted(str(path) for path in target.parents[1].rglob("*") if target not in (path, *path.parents))


@pytest.mark.parametrize(
    "entries",
    [
        [file("tree/../../out")],
        [file("../out")],
        [file("/etc/out")],
        [file("other/out")],
        [file("treeother")],
        [folder("tree"), link("tree/up", "../.."), file("tree/up/out")],
        [folder("tree"), link("tree/up", "/tmp"), folder("tree/up/agbx-leads-out")],
        [link("tree", ".."), file("tree/out")],
        [folder("tree"), link("tree/a", "b"), link("tree/b", "../.."), file("tree/a/b/out")],
        [folder("tree"), (info("tree/hard", tarfile.LNKTYPE, link="/etc/passwd"), b"")],
        [folder("tree"), (info("tree/fifo", tarfile.FIFOTYPE), b"")],
        [folder("tree"), (info("tree/device", tarfile.CHRTYPE), b"")],
        [folder("tree"), link("tree/empty", "")],
    ],
)
def test_what_leads_out_is_refused(entries: list[tuple[tarfile.TarInfo, bytes]], target: Path) -> None:
    with pytest.raises(UnsafeArchiveError):
        unpack(archive(*entries), target)
    assert outside(target) == [str(target.parent)]
    assert not Path("/tmp/agbx-leads-out").exists()


def test_a_link_in_the_target_is_replaced_and_not_followed(target: Path, tmp_path: Path) -> None:
    target.mkdir(parents=True)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (target / "tree").symlink_to(victim)
    unpack(archive(file("tree", b"new")), target)
    assert victim.read_text() == "precious"
    assert (target / "tree").read_text() == "new"
    assert not (target / "tree").is_symlink()


def test_a_directory_that_is_a_link_in_the_target_is_not_entered(target: Path, tmp_path: Path) -> None:
    target.mkdir(parents=True)
    (target / "tree").symlink_to(tmp_path)
    with pytest.raises(UnsafeArchiveError, match="nothing is unpacked through it"):
        unpack(archive(folder("tree"), file("tree/out")), target)
    assert not (tmp_path / "out").exists()


def test_modes_lose_what_gives_rights(target: Path) -> None:
    unpack(archive(folder("tree"), file("tree/program", mode=0o6755)), target)
    assert (target / "tree" / "program").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize(
    ("limits", "message"),
    [(Limits(entries=2), "more than 2 entries"), (Limits(bytes=5), "more than 5 bytes")],
)
def test_limits_hold(limits: Limits, message: str, target: Path) -> None:
    with pytest.raises(UnsafeArchiveError, match=message):
        unpack(
            archive(folder("tree"), file("tree/a", b"1234"), file("tree/b", b"5678")), target, limits=limits
        )


def test_levels_are_limited(target: Path) -> None:
    unpack(archive(file("tree" + "/d" * 127)), target)
    with pytest.raises(UnsafeArchiveError, match="more than 128 levels"):
        unpack(archive(file("tree" + "/d" * 128)), target)


@pytest.mark.parametrize("cut", [1, 400, 512, 600, 1024, 1100, 1535])
def test_an_archive_that_ends_early_is_reported_and_leaves_no_part_of_a_file(cut: int, target: Path) -> None:
    data = archive(file("tree", b"x" * 600))
    with pytest.raises(UnsafeArchiveError, match="incomplete"):
        unpack(data[:cut], target)
    assert list(target.iterdir()) in ([], [target / "tree"])
    assert all(path.stat().st_size == 600 for path in target.iterdir())


def test_damage_is_reported_or_harmless(target: Path) -> None:
    data = archive(
        folder("tree"), file("tree/a", b"1234"), link("tree/l", "a"), file("tree/" + "n" * 200, b"x" * 900)
    )
    draw = random.Random(7)
    reported = 0
    for number in range(400):
        broken = bytearray(data)
        for _ in range(draw.randrange(1, 4)):
            broken[draw.randrange(len(broken))] = draw.randrange(256)
        try:
            unpack(bytes(broken), target / str(number))
        except UnsafeArchiveError:
            reported += 1
    assert reported > 100
    assert outside(target) == [str(target.parent)]


def sparse(
    extents: list[tuple[int, bytes]], size: int, name: str = "tree", table: bytes | None = None
) -> bytes:
    """As GNU tar 1.0."""
    numbers = [len(extents), *(n for start, data in extents for n in (start, len(data)))]
    head = b"".join(b"%d\n" % number for number in numbers) if table is None else table
    head += bytes(-len(head) % BLOCK)
    data = head + b"".join(part for _, part in extents)
    made = info("GNUSparseFile.0/x", size=len(data))
    made.pax_headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": name,
        "GNU.sparse.realsize": str(size),
    }
    return archive((made, data))


def test_a_sparse_file_has_its_holes(target: Path) -> None:
    size = 1 << 30
    unpack(sparse([(4096, b"begin"), (size - 3, b"end")], size), target)
    found = (target / "tree").stat()
    assert (found.st_size, found.st_blocks < 100) == (size, True)
    with (target / "tree").open("rb") as content:
        content.seek(4096)
        assert content.read(6) == b"begin\0"
        content.seek(-3, os.SEEK_END)
        assert content.read() == b"end"


@pytest.mark.parametrize(
    "data",
    [
        sparse([(10, b"aa"), (5, b"bb")], 100),
        sparse([(10, b"aa")], 11),
        sparse([(0, b"aa")], 10, table=b"1\n0\n3\n"),
        sparse([(0, b"aa")], 10, table=b"99999999999\n"),
        sparse([(0, b"aa")], 10, table=b"-1\n"),
        sparse([(0, b"aa")], 10, table=b"9" * 2000),
        sparse([(0, b"aa")], 10, name="../out"),
        sparse([(0, b"aa")], 1 << 62),
    ],
)
def test_a_sparse_file_that_does_not_fit_is_refused(data: bytes, target: Path) -> None:
    with pytest.raises(UnsafeArchiveError):
        unpack(data, target)
    assert outside(target) == [str(target.parent)]


def extended(text: bytes) -> bytes:
    head = info("x", tarfile.XHDTYPE, size=len(text))
    return head.tobuf(tarfile.USTAR_FORMAT) + text + bytes(-len(text) % BLOCK) + archive(file("tree"))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"12 path=../out\n"[:5],
        b"99 path=x\n",
        b"0 path=x\n",
        b"x path=y\n",
        b"15 path=../out\n",
        b"9 size=-1",
        b"x" * 70000,
    ],
)
def test_extended_headers_are_checked(text: bytes, target: Path) -> None:
    if text:
        with pytest.raises(UnsafeArchiveError):
            unpack(extended(text), target)
    else:
        unpack(extended(text), target)
    assert outside(target) == [str(target.parent)]


def test_a_link_whose_target_has_a_zero_byte_is_refused(target: Path) -> None:
    record = b"16 linkpath=a\0b\n"
    head = info("x", tarfile.XHDTYPE, size=len(record)).tobuf(tarfile.USTAR_FORMAT)
    data = head + record + bytes(-len(record) % BLOCK) + archive(link("tree", "y"))
    with pytest.raises(UnsafeArchiveError, match="link to nothing"):
        unpack(data, target)


def test_a_time_that_no_file_can_have_is_none(target: Path) -> None:
    made = info("tree", size=1)
    header = bytearray(made.tobuf(tarfile.GNU_FORMAT))
    header[136:148] = b"\x80" + b"\xff" * 11
    header[148:156] = b"%06o\0 " % (sum(header) - sum(header[148:156]) + 8 * 32)
    unpack(bytes(header) + b"x" + bytes(3 * BLOCK - 1), target)
    assert (target / "tree").stat().st_mtime == 0


@pytest.mark.parametrize("endless", [b"", info("x", tarfile.XHDTYPE).tobuf(tarfile.USTAR_FORMAT)])
def test_an_archive_without_an_end_is_refused(endless: bytes, target: Path) -> None:
    data = archive(file("tree")) if not endless else b""
    with pytest.raises(UnsafeArchiveError):
        unpack(data + (endless or bytes(BLOCK)) * 5000, target)


def test_a_tree_is_packed_so_that_others_and_we_can_unpack_it(tmp_path: Path, target: Path) -> None:
    source = tmp_path / "source"
    (source / "sub" / ("d" * 200)).mkdir(parents=True)
    (source / "program").write_bytes(os.urandom(300_000))
    (source / "program").chmod(0o750)
    (source / "sub" / "link").symlink_to("../program")
    (source / "sub" / "ä ö").write_text("")
    os.mkfifo(source / "fifo")
    packed = Packed()
    data = b"".join(pack(source, "tree", packed))
    assert (packed.entries, packed.notes) == (6, 1)
    assert "fifo" in (packed.first_note or "")
    with tarfile.open(fileobj=io.BytesIO(data)) as tree:
        assert len(tree.getnames()) == 6
    assert unpack(data, target).entries == 6
    assert (target / "tree" / "program").read_bytes() == (source / "program").read_bytes()
    assert (target / "tree" / "program").stat().st_mode & 0o777 == 0o750
    assert (target / "tree" / "program").stat().st_mtime == int((source / "program").stat().st_mtime)
    assert os.readlink(target / "tree" / "sub" / "link") == "../program"
    assert (target / "tree" / "sub" / "ä ö").read_text() == ""
    unpack(b"".join(pack(source, ".", Packed())), target / "content", root=".")
    assert (target / "content" / "program").exists()


def test_a_file_is_read_into_memory(target: Path) -> None:
    sink = MemorySink()
    unpacker = Unpacker(sink, "note", ["note"], Limits(1, 100))
    unpacker.feed(b"".join(pack_bytes("note", b"hello", 0o600)))
    unpacker.finish()
    assert bytes(sink.content) == b"hello"
    refused: list[tuple[Callable[[], object], type[Exception]]] = [
        (lambda: Unpacker(MemorySink(), "d", ["d"], Limits()).feed(archive(folder("d"))), IsADirectoryError),
        (lambda: Unpacker(MemorySink(), "l", ["l"], Limits()).feed(archive(link("l", "x"))), OSError),
        (
            lambda: Unpacker(MemorySink(), "f", ["f"], Limits(1, 3)).feed(archive(file("f", b"1234"))),
            UnsafeArchiveError,
        ),
    ]
    for feed, kind in refused:
        with pytest.raises(kind):
            feed()
    assert not target.exists()
