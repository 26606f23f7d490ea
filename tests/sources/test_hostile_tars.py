"""Whatever bytes a tar has: a listing or an error that names the tar, never a crash, and never a read outside."""

from __future__ import annotations

import contextlib
import gzip
import tarfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sources.making import check_refused, content, listing, tar_bytes, tar_of, train_tar
from stoker.errors import SourceError
from stoker.sources.boxes import read_box_tar
from stoker.storage import location

if TYPE_CHECKING:
    from pathlib import Path

TRAIN = train_tar({"n01": ["a.jpg", "b.jpg"], "n02": ["c.jpg", "d.jpg"]})
PLAIN = tar_of("a/1.jpg", "a/2.jpg", "b/3.jpg")
LONG = tar_bytes({"a/" + "x" * 300 + ".jpg": b"x" * 700, "b/\udcff.jpg": b"y"}, tarfile.PAX_FORMAT)


def write(tmp_path: Path, data: bytes, name: str = "some.tar") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", size: int = 0) -> bytes:
    header = tarfile.TarInfo(name)
    header.type, header.linkname, header.size = kind, target, size
    return header.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("data", [TRAIN, PLAIN], ids=["nested", "plain"])
def test_a_tar_cut_short_anywhere_is_refused(tmp_path: Path, data: bytes) -> None:
    end = len(data.rstrip(b"\0")) // 512 * 512 + 512
    for length in range(0, end, 256):
        message = check_refused(
            write(tmp_path, data[:length]), match=r"cut short at byte|is not a tar|is damaged at byte"
        )
        assert str(tmp_path) in message


def test_a_member_larger_than_the_tar_is_named(tmp_path: Path) -> None:
    data = member("a/1.jpg", size=10**12) + b"x" * 1024
    with pytest.raises(SourceError, match=r"cut short at byte 0: 'a/1.jpg' would end at byte 1000000000512") as caught:
        listing(write(tmp_path, data))
    assert caught.value.offset == 0


def test_an_inner_tar_cannot_reach_past_its_end(tmp_path: Path) -> None:
    inner = member("a.jpg", size=5000)
    data = tar_bytes({"n01.tar": inner, "n02.tar": tar_of("b.jpg")})
    check_refused(write(tmp_path, data), match=r"n01\.tar is cut short")


@pytest.mark.parametrize("name", ["/etc/1.jpg", "../1.jpg", "a/../../1.jpg"])
def test_names_that_lead_out_are_counted_and_not_used(tmp_path: Path, name: str) -> None:
    data = member(name) + tar_of("a/1.jpg", "b/2.jpg")
    tree = listing(write(tmp_path, data))
    assert [item.key for item in tree.table] == ["a/1.jpg", "b/2.jpg"]
    assert tree.ignored == {"unsafe name": 1}
    assert name in tree.warnings[0]


def test_links_devices_and_sparse_files_are_not_items(tmp_path: Path) -> None:
    data = b"".join(
        [
            member("a/link.jpg", tarfile.SYMTYPE, "/etc/passwd"),
            member("a/hard.jpg", tarfile.LNKTYPE, "a/1.jpg"),
            member("a/device.jpg", tarfile.CHRTYPE),
            member("a/pipe.jpg", tarfile.FIFOTYPE),
            member("a/sparse.jpg", tarfile.GNUTYPE_SPARSE),
            tar_of("a/1.jpg", "b/2.jpg", "a/.hidden.jpg", "a/1.xml"),
        ]
    )
    tree = listing(write(tmp_path, data))
    assert [item.key for item in tree.table] == ["a/1.jpg", "b/2.jpg"]
    assert tree.ignored == {"link": 2, "special file": 3, "hidden": 1, ".xml": 1}


def test_a_header_that_asks_for_much_memory_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, member("long", tarfile.GNUTYPE_LONGNAME, size=2**33))
    with path.open("r+b") as file:
        file.truncate(2**34)  # sparse: the bytes are there as far as the file system is concerned
    check_refused(path, match="a header of 8589934592 bytes")


def test_headers_that_never_end_are_refused(tmp_path: Path) -> None:
    endless = member("long", tarfile.GNUTYPE_LONGNAME, size=1).ljust(1024, b"x") * 5000
    check_refused(write(tmp_path, endless + PLAIN), match=r"some\.tar")


def test_negative_sizes_do_not_lead_round_in_circles(tmp_path: Path) -> None:
    header = bytearray(member("a/2.jpg"))
    header[124:136] = (2**96 - 1536).to_bytes(12, "big")  # base 256: back to the first member
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    # Python's tarfile refuses such a header itself in some versions.
    refused = "the size of 'a/2.jpg' is -1536|damaged at byte 1024: this is not a header"
    check_refused(write(tmp_path, PLAIN[:1024] + bytes(header) + PLAIN[1024:]), match=refused)


def test_garbage_between_members_is_not_the_end(tmp_path: Path) -> None:
    check_refused(
        write(tmp_path, PLAIN[:1024] + b"\x01" * 512 + PLAIN[1024:]),
        match=r"damaged at byte 1024: this is not a header",
    )


def test_a_compressed_tar_of_images_says_what_to_do(tmp_path: Path) -> None:
    check_refused(write(tmp_path, gzip.compress(PLAIN), "images.tar.gz"), match="gunzip")


def test_an_empty_tar_is_not_a_source(tmp_path: Path) -> None:
    check_refused(write(tmp_path, tar_bytes({})), match="holds no images")


def damaged(data: st.DataObject, whole: bytes) -> bytes:
    spoiled = bytearray(whole)
    for at, byte in data.draw(st.lists(st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 255)), max_size=8)):
        spoiled[at] = byte
    return bytes(spoiled[: data.draw(st.integers(0, len(whole)))])


@given(st.data(), st.sampled_from([TRAIN, PLAIN, LONG]))
def test_any_change_is_harmless(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, whole: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "changed.tar"
    path.write_bytes(damaged(data, whole))
    try:
        tree = listing(path)
    except SourceError:
        return
    for item in tree.table:
        assert 0 <= item.columns["offset"] <= item.columns["offset"] + item.size_bytes <= path.stat().st_size


@given(st.data(), st.booleans())
def test_changed_annotations_give_boxes_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, compressed: bool
) -> None:
    whole = tar_bytes({"a/1.xml": b"<annotation/>", "a/2.xml": b"x" * 600})
    path = tmp_path_factory.getbasetemp() / "changed-boxes"
    path.write_bytes(damaged(data, gzip.compress(whole) if compressed else whole))
    with contextlib.suppress(SourceError):
        read_box_tar(location(path), None)


def test_a_compressed_tar_cut_short_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(tar_bytes({"a/1.xml": content("1") * 999}))
    for length in (3, 30, len(whole) - 9):
        with pytest.raises(SourceError):
            read_box_tar(location(write(tmp_path, whole[:length])), None)
    read_box_tar(location(write(tmp_path, whole)), None)
