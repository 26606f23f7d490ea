"""Whatever the converter of images in other formats, or what makes fields, does: its image alone fails, and eight
threads go on."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from hostile.image_mutations import png_seeds, webp_seeds
from loader.test_file_sets import FILES, engine, file_set
from reference import pictures
from stoker import _native
from stoker.errors import ExampleError, ImageError, StokerError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.decodes("png", "webp")
BMP = pictures.encode(Image.fromarray(pictures.pixels(20, 14)), format="BMP")


class Silent(Exception):  # noqa: N818 - it is to be as strange as can be
    def __str__(self) -> str:
        raise ValueError("nothing to say")


def raises(error: BaseException) -> Callable[[bytes], object]:
    def convert(_: bytes) -> object:
        raise error

    return convert


WRONG = "did not return uint8"
CASES: dict[str, tuple[Callable[[bytes], object], type[BaseException], str]] = {
    "an error": (raises(ZeroDivisionError("of 1")), StokerError, "raised ZeroDivisionError: of 1"),
    "an error of images": (raises(ImageError("no picture")), ImageError, "no picture"),
    "no memory": (raises(MemoryError()), MemoryError, ""),
    "Ctrl-C": (raises(KeyboardInterrupt()), StokerError, "raised KeyboardInterrupt"),
    "an exit": (raises(SystemExit(3)), StokerError, "raised SystemExit: 3"),
    "an error that cannot be shown": (raises(Silent()), StokerError, "raised Silent"),
    "an error with half a character": (raises(ValueError("half \ud800")), StokerError, "raised ValueError: half"),
    "nothing": (lambda _: None, StokerError, WRONG),
    "text": (lambda _: "pixels", StokerError, WRONG),
    "no channels": (lambda _: np.zeros((4, 5), np.uint8), StokerError, WRONG),
    "four channels": (lambda _: np.zeros((4, 5, 4), np.uint8), StokerError, WRONG),
    "16 bits": (lambda _: np.zeros((4, 5, 3), np.uint16), StokerError, WRONG),
    "signed pixels": (lambda _: np.zeros((4, 5, 3), np.int8), StokerError, WRONG),
    "no rows": (lambda _: np.zeros((0, 5, 3), np.uint8), StokerError, ""),
    "no columns": (lambda _: np.zeros((4, 0, 3), np.uint8), StokerError, ""),
    "too many pixels": (lambda _: np.zeros((1025, 1024, 3), np.uint8), StokerError, "1024 x 1025"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_others_are_decoded(case: str, tmp_path: Path) -> None:
    convert, error, message = CASES[case]
    sound = [png_seeds()[0], png_seeds()[13], webp_seeds()[1], webp_seeds()[3], pictures.jpeg(30, 20, progressive=True)]
    data = [BMP if number % 3 == 1 else sound[number % len(sound)] for number in range(FILES)]
    for number, encoded in enumerate(data):
        (tmp_path / str(number)).write_bytes(encoded)
    source = file_set(str(tmp_path), [str(number) for number in range(FILES)], [0] * FILES)
    calls = count()

    def sometimes(file: bytes) -> object:
        return (convert(file) if next(calls) % 2 == 0 else np.full((4, 5, 3), 77, np.uint8)), 1

    sample_engine = engine(source, convert=sometimes, threads=8)
    try:
        for _ in range(6):
            sample_engine.submit(np.arange(FILES, dtype=np.uint64), 0)
        failed = 0
        for _ in range(6):
            finished = sample_engine.next()
            for row, problem in finished.failures:
                assert row % 3 == 1
                assert isinstance(problem, error), problem
                assert message in str(problem)
                failed += 1
            bad = {row for row, _ in finished.failures}
            (images,), *_ = finished.take()
            for row in set(range(FILES)) - bad:
                if row % 3 == 1:
                    assert (images[row] == 77).all()
                else:
                    shown = Image.fromarray(pictures.whole(data[row])).resize((16, 16), Image.Resampling.BILINEAR)
                    assert (images[row] == np.asarray(shown)).all()
        assert failed == 12
    finally:
        sample_engine.close()


NUMBER = _native.write_example({"n": ("int64", [7])})
MAKERS: dict[str, tuple[Callable[[int, bytes, list[str]], object], type[BaseException], str]] = {
    "an error": (lambda *_: raises(ZeroDivisionError("of 1"))(b""), StokerError, "raised ZeroDivisionError: of 1"),
    "an error of fields": (lambda *_: raises(ExampleError("no value"))(b""), ExampleError, "/4: no value"),
    "an error of images": (lambda *_: raises(ImageError("no mask"))(b""), ImageError, "/4: no mask"),
    "an error of the system": (lambda *_: raises(OSError(5, "broken"))(b""), OSError, "broken"),
    "an error of the system without a number": (lambda *_: raises(OSError("odd"))(b""), StokerError, "raised OSError"),
    "an error of a store": (lambda *_: raises(StorageError("gone"))(b""), StorageError, "gone"),
    "no memory": (lambda *_: raises(MemoryError())(b""), MemoryError, ""),
    "Ctrl-C": (lambda *_: raises(KeyboardInterrupt())(b""), StokerError, "raised KeyboardInterrupt"),
    "an error that cannot be shown": (lambda *_: raises(Silent())(b""), StokerError, "raised Silent"),
    "nothing": (lambda *_: None, StokerError, "did not return bytes"),
    "text": (lambda *_: "bytes", StokerError, "did not return bytes"),
    "no record": (lambda *_: b"\xff" * 9, ExampleError, "/4: "),
    "an empty record": (lambda *_: b"", ExampleError, "feature 'n' is missing"),
    "another kind": (lambda *_: _native.write_example({"n": ("bytes", [b"7"])}), ExampleError, "is of kind bytes"),
}


@pytest.mark.parametrize("case", MAKERS)
def test_the_others_have_their_fields(case: str, tmp_path: Path) -> None:
    make, error, message = MAKERS[case]
    for number in range(FILES):
        (tmp_path / str(number)).write_bytes(pictures.jpeg(30, 20))
    source = file_set(str(tmp_path), [str(number) for number in range(FILES)], [0] * FILES)
    source.set_fields(lambda number, *more: make(number, *more) if number == 4 else NUMBER)
    described = [_native.FieldColumn("n", "int64", text=False, fixed=True, group=1)]
    sample_engine = engine(source, columns=described, threads=8)
    try:
        for _ in range(6):
            sample_engine.submit(np.arange(FILES, dtype=np.uint64), 0)
        for _ in range(6):
            finished = sample_engine.next()
            ((row, problem),) = finished.failures
            assert row == 4
            assert isinstance(problem, error), problem
            assert message in str(problem)
            columns = finished.take()[5]
            assert columns[0][0].tolist() == [7] * (FILES - 1)
    finally:
        sample_engine.close()
