"""Files cut short at every byte: refused by all, or nothing of the pixels is missing, and all show the same."""

from __future__ import annotations

import json
import warnings
from functools import cache
from typing import TYPE_CHECKING

import pytest

import stoker
from hostile.image_mutations import pixels_or_none, png_seeds, webp_seeds
from loader.shards import payload
from reference import pictures, tfrecord
from stoker import _native
from stoker.cli.main import main
from stoker.errors import BadSampleWarning, ImageError
from stoker.inspect import verify_dataset
from stoker.recipe import Recipe, convert
from written_files import write_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


pytestmark = pytest.mark.decodes("png", "webp")


@cache
def seeds() -> dict[str, bytes]:
    """One small file of every kind."""
    files = {f"png {number}": data for number, data in enumerate(png_seeds())}
    files |= {f"webp {number}": data for number, data in enumerate(webp_seeds())}
    kinds = {"420": {"subsampling": 2}, "444": {"subsampling": 0}, "grey": {"mode": "L"}}
    kinds["restart markers"] = {"restart_marker_blocks": 1}
    return files | {
        f"progressive {name}": pictures.jpeg(20, 14, progressive=True, quality=40, **options)
        for name, options in kinds.items()
    }


def refused(look: Callable[[bytes], object], data: bytes) -> bool:
    try:
        look(data)
    except ImageError:
        return True
    return False


@pytest.mark.parametrize("name", seeds())
@pytest.mark.slow
def test_a_cut_is_refused_or_takes_no_pixels(name: str) -> None:
    data = seeds()[name]
    whole = pictures.whole(data)
    looks = [_native.check_image, lambda cut: convert(cut, Recipe(check="decode"))]
    accepted = []
    for size in range(len(data) + 1):
        cut = data[:size]
        is_refused = refused(_native.decode_image, cut)
        assert [refused(look, cut) for look in looks] == [is_refused] * 2, size
        if is_refused:
            if cut and refused(lambda cut: _native.decode_image(cut, (0, 0, 1, 1)), cut):
                continue
            if cut:  # a crop may not see what is missing below it
                assert (_native.decode_image(cut, (0, 0, 1, 1)) == whole[:1, :1]).all(), size
            continue
        accepted.append(size)
        assert (_native.decode_image(cut) == whole).all(), size
        shown = pixels_or_none(pictures.whole, cut)
        assert shown is None or (shown == whole).all(), size
    assert accepted == list(range(accepted[0], len(data) + 1))


FEW = ("png 0", "png 15", "webp 1", "progressive grey")


@pytest.fixture(scope="module")
def cuts() -> list[bytes]:
    """Some files cut everywhere, behind each a sound one."""
    sound = seeds()["png 0"]
    return [part for name in FEW for size in range(4, len(seeds()[name])) for part in (seeds()[name][:size], sound)]


@pytest.fixture(scope="module")
def bad(cuts: list[bytes]) -> list[int]:
    """The numbers of those that a whole decode refuses."""
    return [number for number, cut in enumerate(cuts) if refused(_native.decode_image, cut)]


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory, cuts: list[bytes]) -> Path:
    path = tmp_path_factory.mktemp("cuts") / "train-00000-of-00001"
    path.write_bytes(b"".join(tfrecord.frame(payload(number, cut)) for number, cut in enumerate(cuts)))
    return path


def test_verify_finds_each(shard: Path, bad: list[int]) -> None:
    assert sorted(problem.record for problem in verify_dataset(str(shard)).problems) == bad


def test_a_loader_refuses_each(shard: Path, cuts: list[bytes], bad: list[int]) -> None:
    settings = {"on_bad": "substitute", "max_bad": len(cuts), "threads": 2, "seed": 0}
    with (
        warnings.catch_warnings(),
        stoker.Loader(stoker.open(str(shard)), len(cuts), transform=stoker.Resize(4), **settings) as loader,
    ):
        warnings.simplefilter("ignore", BadSampleWarning)
        next(iter(loader))
        assert sorted(sample.index for sample in loader.bad_samples.samples) == bad


def test_a_build_rejects_each(tmp_path: Path, cuts: list[bytes], bad: list[int]) -> None:
    photos = write_files(tmp_path / "photos", {f"class/{number:05}.png": cut for number, cut in enumerate(cuts)})
    words = ["--check", "decode", "--max-rejects", "100000", "--quiet"]
    main(["build", str(photos), str(tmp_path / "out"), *words])
    rejects = map(json.loads, (tmp_path / "out" / "rejects.jsonl").read_text().splitlines())
    assert sorted(int(reject["key"][6:11]) for reject in rejects) == bad
