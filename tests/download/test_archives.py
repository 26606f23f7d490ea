"""What is there already, and archives that become folders."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import lzma
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from download.faulty_server import FaultyServer, Recorder, Transfer, get, remote
from stoker.download import DownloadError
from stoker.download.catalogue import DATASETS, RemoteFile, Unpacking
from stoker.download.run import unpack
from written_files import write_files

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from download import faulty_server as does

FOLDER = Unpacking("Images", is_inside=True, max_bytes=10_000)
LOOSE = Unpacking("lists", is_inside=False, max_bytes=10_000)


def tar_of(*members: tuple[str, bytes] | tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                archive.addfile(info, io.BytesIO(member[1]))
    return buffer.getvalue()


def zip_of(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return buffer.getvalue()


def unpackable(name: str, data: bytes, unpacking: Unpacking = FOLDER) -> RemoteFile:
    return dataclasses.replace(remote(name, data), unpacking=unpacking)


def files_below(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def requests(server: FaultyServer) -> Iterable[str]:
    return [seen.path for seen in server.seen]


PHOTOS = (("Images/n1-dog/a.jpg", b"a" * 100), ("Images/n2-cat/b.jpg", b"b" * 200))


def test_what_is_there_and_right_is_not_fetched_again(transfer: Transfer) -> None:
    (transfer.folder / "a.tar").write_bytes(transfer.body)
    report = transfer.fetch()
    assert (report.files[0].outcome, report.files[0].fetched_bytes, transfer.server.seen) == ("there already", 0, [])
    assert transfer.watcher.steps[-1] == ("a.tar", "checking", len(transfer.body), len(transfer.body))


@pytest.mark.parametrize("keep", [slice(0, -1), slice(1, None)])
@pytest.mark.parametrize("with_size", [True, False])
def test_a_damaged_file_is_told_moved_aside_and_fetched_again(transfer: Transfer, keep: slice, with_size: bool) -> None:
    for run in range(2):
        (transfer.folder / "a.tar").write_bytes(transfer.body[keep])
        report = transfer.fetch(with_size=with_size)
        aside = transfer.folder / ("a.tar.damaged" if run == 0 else "a.tar.damaged-2")
        assert report.files[0].moved_aside == (aside,)
        assert aside.read_bytes() == transfer.body[keep]
    assert sum("is damaged" in note for note in transfer.watcher.notes) == 2
    why = f"it has {len(transfer.body) - 1} bytes and should have {len(transfer.body)}" if with_size else "its MD5 is"
    assert all(why in note for note in transfer.watcher.notes)


def test_bytes_that_are_wrong_and_as_many_are_noticed(transfer: Transfer) -> None:
    (transfer.folder / "a.tar").write_bytes(bytes(len(transfer.body)))
    transfer.fetch()
    assert hashlib.md5(bytes(len(transfer.body))).hexdigest() in transfer.watcher.notes[0]


@pytest.mark.parametrize(("name", "make"), [("a.tar", tar_of), ("a.zip", zip_of)])
def test_an_archive_becomes_a_folder_once(
    tmp_path: Path, server: FaultyServer, watcher: Recorder, name: str, make: does.Callable[..., bytes]
) -> None:
    server.files[name] = make(*PHOTOS)
    wanted = unpackable(name, server.files[name])
    assert get(watcher, tmp_path, server.url, wanted).files[0].folder == tmp_path / "Images"
    assert files_below(tmp_path / "Images") == {"n1-dog/a.jpg": b"a" * 100, "n2-cat/b.jpg": b"b" * 200}
    assert {path.name for path in tmp_path.iterdir()} == {name, "Images"}
    assert (name, "unpacking", 300, 300) in watcher.steps
    before = (tmp_path / "Images/n1-dog/a.jpg").stat().st_ino
    assert get(watcher, tmp_path, server.url, wanted).files[0].outcome == "there already"
    assert (tmp_path / "Images/n1-dog/a.jpg").stat().st_ino == before
    assert len(server.seen) == 1


def test_files_without_a_folder_get_one(tmp_path: Path, server: FaultyServer, watcher: Recorder) -> None:
    server.files["lists.tar"] = tar_of(("./train.mat", b"1"), ("test.mat", b"22"))
    for _ in range(2):
        get(watcher, tmp_path, server.url, unpackable("lists.tar", server.files["lists.tar"], LOOSE))
    assert files_below(tmp_path / "lists") == {"train.mat": b"1", "test.mat": b"22"}
    assert watcher.notes == []


@pytest.mark.parametrize("harm", ["cut", "gone", "link"])
def test_an_incomplete_folder_is_made_again(tmp_path: Path, server: FaultyServer, watcher: Recorder, harm: str) -> None:
    server.files["a.tar"] = tar_of(*PHOTOS)
    wanted = unpackable("a.tar", server.files["a.tar"])
    get(watcher, tmp_path, server.url, wanted)
    photo = tmp_path / "Images/n1-dog/a.jpg"
    if harm == "cut":
        photo.write_bytes(b"a")
    else:
        photo.unlink()
    if harm == "link":
        photo.symlink_to("a" * 100)  # as long as the photo
    report = get(watcher, tmp_path, server.url, wanted)
    assert report.files[0].moved_aside == (tmp_path / "Images.damaged",)
    assert files_below(tmp_path / "Images") == {"n1-dog/a.jpg": b"a" * 100, "n2-cat/b.jpg": b"b" * 200}
    assert len(server.seen) == 1


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def zip_link() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        info = zipfile.ZipInfo("Images/link")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    return buffer.getvalue()


def lying_zip(size: int) -> bytes:
    """Says that its file has ``size`` bytes, and has 6,000."""
    data = bytearray(zip_of(("Images/a", bytes(6000))))
    for mark, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        start = data.index(mark) + at
        data[start : start + 4] = size.to_bytes(4, "little")
    return bytes(data)


def large_and_negative() -> bytes:
    """A file of more bytes than are allowed, and one that has so few that together they are allowed."""
    info = tarfile.TarInfo("Images/b")
    info.size = -9000
    return tar_of(("Images/a", bytes(18_944)))[: 512 + 18_944] + info.tobuf(tarfile.GNU_FORMAT) + bytes(1024)


def device() -> tarfile.TarInfo:
    info = tarfile.TarInfo("Images/null")
    info.type, info.devmajor, info.devminor = tarfile.CHRTYPE, 1, 3
    return info


HOSTILE = {
    "up.tar": (tar_of(("../evil", b"x")), "written elsewhere"),
    "deep_up.tar": (tar_of(("Images/../../evil", b"x")), "written elsewhere"),
    "absolute.tar": (tar_of(("/evil", b"x")), "written elsewhere"),
    "control.tar": (tar_of(("Images/a\nb", b"x")), "written elsewhere"),
    "long.tar": (tar_of(("Images/" + "a" * 2000, b"x")), "written elsewhere"),
    "symlink.tar": (tar_of(link("Images", "/etc")), "neither a file nor a folder"),
    "through.tar": (tar_of(link("Images", "/"), ("Images/evil", b"x")), "neither a file nor a folder"),
    "hardlink.tar": (tar_of(("Images/a", b"x"), link("Images/b", "/etc/passwd", tarfile.LNKTYPE)), "neither a file"),
    "device.tar": (tar_of(device()), "neither a file nor a folder"),
    "twice.tar": (tar_of(("Images/a", b"x"), ("Images/a", b"y")), "two files with the same name"),
    "large.tar": (tar_of(("Images/a", bytes(10_001))), "more than 10000 bytes"),
    "paid.tar": (large_and_negative(), "the size of 'Images/b' is -9000"),
    "both.tar": (tar_of(("Images/a/b/c", b"x"), ("Images/a", b"y")), "a file and a folder with the same name"),
    "cut.tar": (tar_of(("Images/a", bytes(5000)))[:3000], "damaged"),
    "other.tar": (tar_of(("Pictures/a", b"x")), "no folder Images"),
    "text.tar": (b"not a tar at all" * 100, "damaged"),
    "up.zip": (zip_of(("../evil", b"x")), "written elsewhere"),
    "windows.zip": (zip_of(("Images\\..\\evil", b"x")), "written elsewhere"),
    "symlink.zip": (zip_link(), "neither a file nor a folder"),
    "more.zip": (lying_zip(5), "damaged"),
    "less.zip": (lying_zip(6001), "less than 6001 bytes"),
    "bomb.zip": (zip_of(("Images/a", bytes(10_001))), "more than 10000 bytes"),
    "text.zip": (b"not a zip at all", "damaged"),
    "lzma.zip": (zip_of(("Images/a", b"x"), method=zipfile.ZIP_LZMA), "neither stored nor deflated"),
    "bzip2.zip": (zip_of(("Images/a", b"x"), method=zipfile.ZIP_BZIP2), "neither stored nor deflated"),
    "xz.tar": (lzma.compress(tar_of(("Images/a", b"x"))), "damaged"),
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_a_hostile_archive_writes_nothing_anywhere(tmp_path: Path, watcher: Recorder, name: str) -> None:
    data, message = HOSTILE[name]
    inner = write_files(tmp_path / "inner", {name: data})
    with pytest.raises(DownloadError, match=message) as caught:
        unpack(inner / name, FOLDER, watcher)
    assert "not unpacked" in str(caught.value)
    assert [path for path in tmp_path.rglob("*") if path != inner] == [inner / name]


def test_an_encrypted_zip_is_an_error_and_not_a_crash(tmp_path: Path, watcher: Recorder) -> None:
    data = bytearray(zip_of(("Images/a", b"x")))
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + at] |= 1
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(DownloadError, match="encrypted"):
        unpack(tmp_path / "a.zip", FOLDER, watcher)


def test_the_catalogue_is_well_formed() -> None:
    assert set(DATASETS) == {"imagenet", "tiny-imagenet", "stanford-dogs"}
    lengths = {"md5": 32, "sha256": 64}
    for name, dataset in DATASETS.items():
        assert dataset.name == name
        assert all(base_url.endswith("/") for base_url in dataset.base_urls)
        # What may be given an account must not be a server whose traffic anybody on the way can read.
        assert dataset.account is None or all(base_url.startswith("https://") for base_url in dataset.base_urls)
        assert len({file.saved_as for file in dataset.files}) == len(dataset.files)
        for file in dataset.files:
            algorithm, _, digest = file.checksum.partition(":")
            assert len(bytes.fromhex(digest)) * 2 == lengths[algorithm]
    saved = {file.saved_as for file in DATASETS["imagenet"].files}
    assert saved == {
        "ILSVRC2012_devkit_t12.tar.gz", "ILSVRC2012_img_train.tar", "ILSVRC2012_img_val.tar",
        "bounding_boxes/annotations.tar.gz",
    }  # fmt: skip
    assert all(file.unpacking is None for file in DATASETS["imagenet"].files)
