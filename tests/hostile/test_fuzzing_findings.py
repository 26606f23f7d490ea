"""What fuzzing has found, each finding in a sentence."""

from __future__ import annotations

import io
import platform
import zipfile
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from reference import example as example_twin
from reference import pictures
from stoker import _native
from stoker.download import DownloadError
from stoker.download.catalogue import Unpacking
from stoker.download.run import unpack
from stoker.errors import ExampleError
from stoker.format.journal import parse_result, with_checksum
from stoker.sources import list_source
from stoker.sources.boxes import parse_annotation

if TYPE_CHECKING:
    from pathlib import Path

LONG = b"9" * 5_000
"""More digits than Python makes a number of."""


class Nobody:
    """Hears of a download's progress."""

    def advanced(self, **progress: object) -> None: ...

    def note(self, text: str) -> None: ...


def with_segments(*segments: bytes) -> bytes:
    whole = pictures.jpeg(16, 16)
    at = whole.index(b"\xff\xdb")  # behind the JFIF segment
    return whole[:at] + b"".join(segments) + whole[at:]


def test_an_adobe_marker_behind_a_jfif_marker() -> None:
    """libjpeg believes JFIF, whose colours are YCbCr, and not Adobe's "RGB"."""
    adobe = b"\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00"
    assert _native.probe_jpeg(with_segments(adobe)).color == "ycbcr"


def test_four_inks_with_an_undefined_transform() -> None:
    """libjpeg takes any transform but 0 for YCCK."""
    inks = pictures.jpeg(16, 16, mode="CMYK")
    at = inks.index(b"Adobe") + 11
    for transform, color in ((0, "cmyk"), (1, "ycck"), (2, "ycck"), (7, "ycck")):
        assert _native.probe_jpeg(inks[:at] + bytes([transform]) + inks[at + 1 :]).color == color


def test_a_name_that_is_not_text_and_is_replaced() -> None:
    """The key of an entry comes twice: protobuf refuses the first although the second is the one that counts."""
    names = example_twin.delimited(1, b"w\xb5\xbc\xb7\x03") + example_twin.delimited(1, b"w")
    payload = example_twin.delimited(1, example_twin.delimited(1, names))
    with pytest.raises(ExampleError, match="not UTF-8") as caught:
        _native.parse_example(payload)
    assert caught.value.offset == 6


@pytest.mark.parametrize("payload", [b"\x8a\x80\x80\x80\x80\x00\x00", b"\x0a\x80\x80\x80\x80\x80\x00"])
def test_a_tag_or_a_length_of_six_bytes(payload: bytes) -> None:
    """Zeros in front make numbers of 32 bits as long as one likes; protobuf reads no more than five bytes of them."""
    with pytest.raises(ExampleError):
        _native.parse_example(payload)


@pytest.mark.parametrize("encoding", ["nobody-knows-this", "hex", "rot13", "idna", "utf-7", "euc-jp"])
def test_an_annotation_in_an_unknown_encoding(encoding: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_annotation(b'<?xml version="1.0" encoding="%b"?><annotation/>' % encoding.encode())


def test_a_list_of_files_without_a_line(tmp_path: Path) -> None:
    """There is nothing to put in order; the source is there, and empty."""
    (tmp_path / "config.json").write_bytes(b'{"data": {"train_filelist": "list.txt"}}')
    (tmp_path / "list.txt").touch()
    assert len(list_source(str(tmp_path / "config.json")).table) == 0


@pytest.mark.parametrize("number", [b"1e999", b"-Infinity", b"NaN", LONG])
def test_a_journal_with_a_number_that_is_infinite(number: bytes) -> None:
    line = b'{"shard": "s", "records": %b, "bytes": 1, "crc32c": "0", "split": "train", "rejects": [], "converted": {}'
    rest = b', "annotation_errors": [], "formats": {}}'
    assert parse_result(with_checksum(line % number + rest, {}), {}) is None
    assert parse_result(with_checksum(line % b"1" + rest, {}), {}) is not None


def zipped(name: str) -> bytearray:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, b"abc")
    return bytearray(file.getvalue())


def test_a_member_that_begins_before_its_archive(tmp_path: Path) -> None:
    """The end of a zip says where its list begins; a byte too many there moves every member to a negative offset."""
    data = zipped("made/a.txt")
    end = data.rindex(b"PK\5\6")
    at = int.from_bytes(data[end + 16 : end + 20], "little")
    data[end + 16 : end + 20] = (at + 4096).to_bytes(4, "little")
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(DownloadError, match=r"before the archive|damaged"):
        unpack(tmp_path / "a.zip", Unpacking("made", is_inside=True, max_bytes=1000), Nobody())
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


def test_a_member_without_a_name(tmp_path: Path) -> None:
    """Python's zipfile asks for the last letter of a name that has none."""
    data = zipped("a")
    for start, length, extra in ((0, 26, 28), (data.index(b"PK\1\2"), 28, 30)):  # the letter becomes an extra byte
        data[start + length], data[start + extra] = 0, 1
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(DownloadError, match=r"written elsewhere|damaged"):
        unpack(tmp_path / "a.zip", Unpacking("made", is_inside=True, max_bytes=1000), Nobody())


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="what libjpeg's vector units do on x86")
@pytest.mark.parametrize("strength", [40, 120, 255])
def test_rows_of_coefficients_beyond_what_any_picture_has(strength: int) -> None:
    """libjpeg shifts the first row of a block that has no other, and lets it wrap around; a full pass would clip it."""
    columns = np.random.default_rng(strength).integers(0, 256, (1, 96, 1), dtype=np.uint8)
    data = bytearray(pictures.encode(Image.fromarray(np.tile(columns, (16, 1, 3))), quality=100, subsampling=0))
    at = data.index(b"\xff\xdb") + 6
    data[at : at + 63] = bytes([strength]) * 63  # of luma, all but the first
    assert (_native.decode_image(bytes(data)) == np.asarray(pictures.rgb(bytes(data)))).all()
