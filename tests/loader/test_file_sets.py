"""Images as they are, without a build: files and members of tars through the native reader."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import stoker
from loader.shards import image
from programs import run
from reference import pictures, transform
from sources.making import tar_bytes
from stoker import _native
from stoker.errors import ConfigError, ImageError, ImageTooLargeError, StokerError
from written_files import write_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

FILES = 12
SEED = 5
ODD_NAME = os.fsdecode(b"caf\xe9 \xff.JPEG")  # no UTF-8


def file_set(base: str, names: list[str], sizes: list[int], **more: object) -> _native.FileSet:
    encoded = [os.fsencode(name) for name in names]
    starts = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    count = len(names)
    archives = more.get("archives", [])
    archive_of = np.array(more.get("archive_of", [-1] * count), np.int32)
    offsets = np.array(more.get("offsets", [0] * count), np.int64)
    labels = np.arange(count, dtype=np.int64)
    return _native.FileSet(
        base, b"".join(encoded), starts, labels, np.array(sizes, np.int64), archives, archive_of, offsets
    )


def engine(source: _native.FileSet, **settings: object) -> _native.BatchEngine:
    settings = {"transforms": [stoker.Resize(16).native()], "threads": 2, "convert": None, **settings}
    return _native.BatchEngine(
        source=source, seed=SEED, max_pixels=2**20, batch_size=FILES, spare_buffers=2, **settings
    )


def everything(source: _native.FileSet, **settings: object) -> np.ndarray:
    sample_engine = engine(source, **settings)
    try:
        sample_engine.submit(np.arange(len(source), dtype=np.uint64), 0)
        finished = sample_engine.next()
        for _, error in finished.failures:
            raise error
        (images,), labels, *_ = finished.take()
    finally:
        sample_engine.close()
    assert labels.tolist() == list(range(len(source)))
    return images


def expected(data: list[bytes]) -> np.ndarray:
    draws = transform.Draws(SEED, 0, 0)
    return np.stack([transform.resize(pictures.rgb(encoded), stoker.Resize(16), draws) for encoded in data])


@pytest.fixture
def tree(tmp_path: Path) -> tuple[Path, list[str], list[bytes]]:
    names = [f"class/{i}.JPEG" for i in range(FILES - 2)] + [ODD_NAME, str(tmp_path / "elsewhere" / "x.JPEG")]
    data = [image(i) for i in range(FILES)]
    return write_files(tmp_path / "base", dict(zip(names, data, strict=True))), names, data


def test_files_are_read_wherever_they_lie_and_whatever_they_are_called(tree: tuple) -> None:
    base, names, data = tree
    source = file_set(str(base), names, [len(encoded) for encoded in data])
    assert [source.read(i) for i in range(len(source))] == data
    assert source.where(0) == (str(base / names[0]), -1, 0)
    assert source.where(10) == (str(base / ODD_NAME), -1, 0)
    assert source.where(11) == (names[11], -1, 0)
    assert (everything(source) == expected(data)).all()


def test_members_of_a_tar_are_read_in_place(tmp_path: Path) -> None:
    data, names = [image(i) for i in range(FILES)], [f"{i}.JPEG" for i in range(FILES)]
    path = tmp_path / "images.tar"
    path.write_bytes(tar_bytes(dict(zip(names, data, strict=True))))
    with tarfile.open(path) as tar:
        offsets = [member.offset_data for member in tar]
    members = {"archives": ["images.tar"], "archive_of": [0] * FILES, "offsets": offsets}
    source = file_set(str(tmp_path), names, [len(encoded) for encoded in data], **members)
    assert [source.read(i) for i in range(FILES)] == data
    assert source.where(3) == (str(path), -1, offsets[3])
    assert (everything(source) == expected(data)).all()
    os.truncate(path, offsets[7] + 10)
    with pytest.raises(OSError, match=r"7\.JPEG: it has 10 bytes, and had"):
        everything(source)


def test_objects_of_files_are_those_that_were_set(tree: tuple) -> None:
    base, names, data = tree
    source = file_set(str(base), names, [len(encoded) for encoded in data])
    boxes = np.float32([(0.1, 0.2, 0.6, 0.9), (0.5, 0.5, 1.0, 1.0), (0.0, 0.0, 0.3, 0.3)])
    source.set_boxes(np.array([0, 1, 3, *[3] * (FILES - 2)], np.int64), boxes)
    chosen = stoker.ObjectCrops(16)
    sample_engine = engine(source, transforms=[chosen.native()])
    sample_engine.submit(np.array([1, 0, 1, 2], np.uint64), 0, np.array([1, 0, 0, -1], np.int32))
    finished = sample_engine.next()
    assert not finished.failures
    (images,), labels, keys, *_ = finished.take()
    assert keys.tolist() == labels.tolist() == [1, 0, 1, 2]
    for pixels, key, box in zip(images, [1, 0, 1, 2], [boxes[2], boxes[0], boxes[1], None], strict=True):
        draws = transform.Draws(SEED, 0, key)
        assert (pixels == transform.object_crop(pictures.rgb(data[key]), chosen, draws, box)).all()
    sample_engine.submit(np.array([1], np.uint64), 0, np.array([2], np.int32))
    ((index, error),) = sample_engine.next().failures
    assert index == 0
    assert isinstance(error, ConfigError)
    assert "no object 2; the image has 2" in str(error)
    sample_engine.close()
    with pytest.raises(ConfigError, match="starts of the boxes"):
        source.set_boxes(np.array([0, 3], np.int64), boxes)


def vanish(path: Path) -> None:
    path.unlink()


def shrink(path: Path) -> None:
    os.truncate(path, 10)


def become_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def become_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("change", [vanish, shrink, become_a_pipe, become_a_directory])
def test_a_file_that_is_no_longer_what_it_was_is_named(tree: tuple, change: Callable[[Path], None]) -> None:
    base, names, data = tree
    source = file_set(str(base), names, [len(encoded) for encoded in data])
    change(base / names[4])
    with pytest.raises(OSError) as caught:  # noqa: PT011 - its file name is what counts
        everything(source)
    assert caught.value.filename == str(base / names[4])
    assert caught.value.errno


def test_a_damaged_file_is_named_with_its_path(tree: tuple) -> None:
    base, names, data = tree
    (base / names[10]).write_bytes(data[10][:200] + bytes(len(data[10]) - 200))
    with pytest.raises(ImageError) as caught:
        everything(file_set(str(base), names, [len(encoded) for encoded in data]))
    assert (caught.value.path, caught.value.record, caught.value.source) == (str(base / ODD_NAME), None, ODD_NAME)
    assert str(base) in str(caught.value)


def test_columns_that_contradict_each_other_are_refused(tree: tuple) -> None:
    base, names, data = tree
    sizes = [len(encoded) for encoded in data]
    for columns, more, message in (
        ((names, sizes[1:]), {}, "differ in length"),
        ((names, sizes), {"archive_of": [2] * FILES}, "archive 2"),
        ((["a\0b"], [1]), {}, "NUL"),
    ):
        with pytest.raises(ConfigError, match=message):
            file_set(str(base), *columns, **more)
    with pytest.raises(ConfigError, match="no sample 12"):
        file_set(str(base), names, sizes).read(12)


BMP = pictures.encode(pictures.rgb(image(3)), format="BMP")
PIXELS = np.asarray(pictures.rgb(image(9)))


@pytest.fixture
def odd(tree: tuple) -> _native.FileSet:
    base, names, data = tree
    for i in (3, 7):
        (base / names[i]).write_bytes(BMP)
    return file_set(str(base), names, [0] * len(data))


def test_other_formats_are_converted_when_their_turn_comes(odd: _native.FileSet) -> None:
    given: list[bytes] = []

    def convert(data: bytes) -> tuple[NDArray[np.uint8], int]:
        given.append(data)
        return PIXELS, 1

    for threads in (1, 4):
        given.clear()
        images = everything(odd, convert=convert, threads=threads)
        assert given == [BMP, BMP]
        assert (images[[3, 7]] == expected([image(9), image(9)])).all()
    with pytest.raises(ImageError, match="JPEG"):
        everything(odd)


def fail_by_name(data: bytes) -> NDArray[np.uint8]:
    raise ImageError(f"{len(data)} bytes are no picture")


def fail(data: bytes) -> NDArray[np.uint8]:
    raise ZeroDivisionError(f"of {len(data)}")


def give_text(data: bytes) -> NDArray[np.uint8]:
    return str(len(data))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("convert", "error", "message"),
    [
        (fail_by_name, ImageError, f"3.JPEG: {len(BMP)} bytes are no picture"),
        (fail, StokerError, f"raised ZeroDivisionError: of {len(BMP)}"),
        (give_text, StokerError, "did not return uint8"),
    ],
)
def test_what_a_converter_raises_is_located(
    odd: _native.FileSet, convert: Callable[[bytes], NDArray[np.uint8]], error: type[StokerError], message: str
) -> None:
    for threads in (1, 4):
        with pytest.raises(error, match=message) as caught:
            everything(odd, convert=convert, threads=threads)
        assert caught.value.source == "class/3.JPEG"


def test_an_engine_ends_while_its_converter_runs(tree: tuple) -> None:
    base, names, _ = tree
    (base / names[3]).write_bytes(BMP)
    program = f"""
        import sys, threading
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        import numpy as np, stoker
        from loader.test_file_sets import engine, file_set
        pixels = np.zeros((4, 5, 3), np.uint8)
        source = file_set({str(base)!r}, ["class/3.JPEG"] * 12, [0] * 12)
        for ending in ("close", "delete", "exit"):
            inside = threading.Event()
            def convert(data):
                inside.set()
                for _ in range(100_000): pass
                return pixels, 1
            running = engine(source, convert=convert, threads=4)
            for _ in range(50): running.submit(np.arange(12, dtype=np.uint64), 0)
            inside.wait()
            if ending == "close": running.close()
            if ending == "delete": del running
            if ending == "exit":
                import weakref
                loader = type("Owner", (), {{}})()
                weakref.finalize(loader, running.close)
        print("done")
    """
    ended = run(program)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")


def test_a_loader_over_a_tree_takes_what_is_in_it(tmp_path: Path) -> None:
    write_files(tmp_path, {f"class-{i % 2}/{i}.JPEG": BMP if i == 3 else image(i) for i in range(10)})
    train = stoker.open(tmp_path)
    order = sorted(tmp_path.glob("*/*.JPEG"))
    assert train.labels.tolist() == [int(path.parent.name[-1]) for path in order]
    with stoker.Loader(train, batch_size=4, transform=stoker.TopLeft(24), threads=3, shuffle=True) as loader:
        for batch in loader:
            for pixels, label, key in zip(batch.images, batch.labels, batch.indices.tolist(), strict=True):
                assert label == train.labels[key]
                assert (np.asarray(pictures.rgb(order[key].read_bytes()))[:24, :24] == pixels).all()


@pytest.mark.parametrize("kind", ["BMP", "PNG"])
def test_what_is_not_a_jpeg_has_the_same_limit(tmp_path: Path, kind: str) -> None:
    picture = pictures.rgb(image(3))
    write_files(tmp_path, {"class/0.JPEG": pictures.encode(picture, format=kind)})
    width, height = picture.size
    settings = {"batch_size": 1, "transform": stoker.Resize(8)}
    with stoker.Loader(stoker.open(tmp_path), max_pixels=width * height, **settings) as loader:
        assert len(list(loader)) == 1
    most = width * height - 1
    settings["max_pixels"] = most
    reason = rf"0.JPEG.*: .*declares {width} x {height} pixels; the limit is {most} \(raise max_pixels"
    with stoker.Loader(stoker.open(tmp_path), **settings) as loader, pytest.raises(ImageTooLargeError, match=reason):
        list(loader)
