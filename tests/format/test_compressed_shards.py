"""GZIP and ZLIB shards: written as TensorFlow reads them, recognised by content, inflated without losing a byte."""

from __future__ import annotations

import errno
import gzip
import resource
import tempfile
import zlib
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.tfrecord import frame
from stoker import _native
from stoker.errors import CorruptRecordError, TruncatedShardError
from stoker.format.frames import ShardWriter, compression_of, holds_records, inflate
from stoker.storage import is_scratch_full
from written_files import flip_bit

PAYLOADS = [b"", b"x" * 100_000, bytes(range(256)) * 40]
FRAMES = b"".join(map(frame, PAYLOADS))


def written(directory: Path, compression: Literal["none", "gzip", "zlib"]) -> Path:
    with ShardWriter(directory, "a/b.tfrecord", compression) as writer:
        for payload in PAYLOADS:
            writer.append(payload)
        file = writer.commit()
    path = directory / file.name
    assert file.records == len(PAYLOADS)
    assert (file.size_bytes, file.crc32c) == (path.stat().st_size, _native.crc32c(path.read_bytes()))
    return path


def test_what_is_written_is_one_stream_without_an_index(tmp_path: Path) -> None:
    path = written(tmp_path, "gzip")
    assert gzip.decompress(path.read_bytes()) == FRAMES
    assert path.read_bytes()[4:8] == bytes(4)  # no time, so the same records give the same bytes
    assert zlib.decompress(written(tmp_path, "zlib").read_bytes()) == FRAMES
    assert [entry.name for entry in (tmp_path / "a").iterdir()] == ["b.tfrecord"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_the_content_tells_the_compression(tmp_path: Path, compression: Literal["none", "gzip", "zlib"]) -> None:
    path = written(tmp_path, compression)
    assert compression_of(path) == compression
    assert holds_records(path)
    if compression != "none":
        with inflate(path) as inflated:
            assert inflated.path.read_bytes() == FRAMES
            assert len(_native.scan_shard(str(inflated.path))) == len(PAYLOADS)


def test_a_record_whose_length_looks_like_gzip_is_a_record(tmp_path: Path) -> None:
    path = tmp_path / "odd"
    path.write_bytes(frame(bytes(0x088B1F)))
    assert path.read_bytes()[:3] == b"\x1f\x8b\x08"
    assert compression_of(path) == "none"


@pytest.mark.parametrize(
    "content", [b"", b"train/a.jpg\n", b"\xff\xd8\xff\xe0" + bytes(40), gzip.compress(b"text", mtime=0)]
)
def test_other_files_hold_no_records(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    assert not holds_records(tmp_path / "file")


@settings(deadline=None, max_examples=30)
@given(st.lists(st.binary(max_size=3000), min_size=1, max_size=5), st.booleans())
def test_streams_make_one_shard(tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], gzipped: bool) -> None:
    path = tmp_path_factory.mktemp("shard") / "s"
    frames = b"".join(map(frame, parts))
    streams = [frames[:7], frames[7:20], frames[20:]]  # wherever they end
    path.write_bytes(b"".join((gzip.compress if gzipped else zlib.compress)(stream) for stream in streams))
    with inflate(path) as inflated:
        assert inflated.path.read_bytes() == frames


@pytest.mark.parametrize("cut", [1, 9, 500])
def test_a_stream_cut_short_is_an_error(tmp_path: Path, cut: int) -> None:
    path = written(tmp_path, "gzip")
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(TruncatedShardError, match="continues behind byte"):
        inflate(path)


def test_a_changed_byte_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, "gzip")
    flip_bit(path, 0.5)
    with pytest.raises(TruncatedShardError, match="compression is damaged before byte"):
        inflate(path)


@pytest.mark.slow
def test_memory_stays_small_however_well_a_stream_is_compressed(tmp_path: Path) -> None:
    path = tmp_path / "bomb"
    payload = bytes(300_000_000 - 16)
    path.write_bytes(gzip.compress(_native.frame_record(payload), compresslevel=9))
    del payload
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with inflate(path) as inflated:
        assert inflated.path.stat().st_size == 300_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kilobytes


@pytest.mark.parametrize("begin", [b"", FRAMES, FRAMES + frame(b"")[:8]])
def test_what_follows_no_header_of_a_record_is_not_inflated(tmp_path: Path, begin: bytes) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(gzip.compress(begin + bytes(50_000_000), compresslevel=1))
    with inflate(path) as inflated:
        assert inflated.path.stat().st_size < 2_000_000
        where = f"record {3 if begin else 0} at byte {len(FRAMES) if begin else 0}"
        with pytest.raises(CorruptRecordError, match=where):
            _native.scan_shard(str(inflated.path))


def test_a_shard_that_cannot_be_read_is_not_taken_for_a_full_disk() -> None:
    with pytest.raises(OSError, match="Input/output error") as caught:
        inflate(Path("/proc/self/mem"))  # a file whose first byte cannot be read
    assert caught.value.errno == errno.EIO
    assert not is_scratch_full(caught.value)


def test_a_full_disk_is_named_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "shard"
    path.write_bytes(gzip.compress(_native.frame_record(bytes(5_000_000))))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_500_000, hard))
    try:
        with pytest.raises(OSError, match="shard is compressed and has to be inflated there; set TMPDIR") as caught:
            inflate(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.filename == tempfile.gettempdir()
    assert is_scratch_full(caught.value)
