"""The sample by which a build is announced is part of what it writes: nothing is converted twice."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from builder.trees import build, contents, settings_for, write_tree
from stoker import _native
from stoker.builder import estimate
from stoker.sources import Item, Source, SourceImage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Counter[bytes]:
    """How often each image has been read, one by one or by a call for many."""
    counts: Counter[bytes] = Counter()
    load, build_records = Source.load, _native.build_records

    def counted(tree: Source, item: Item, split: str) -> SourceImage:
        counts[item.path] += 1
        return load(tree, item, split)

    def counted_records(files: Sequence[tuple[bytes, int, Any]], storing: _native.JpegStoring) -> Any:
        built = build_records(files, storing)
        counts.update(b"/".join(path.split(b"/")[-3:]) for path, _, _ in files[: len(built[1])])
        return built

    monkeypatch.setattr(Source, "load", counted)
    monkeypatch.setattr(_native, "build_records", counted_records)
    return counts


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "src", {"train/a": 50, "train/b": 26, "validation/a": 4}, "train/b/text.JPEG")


@pytest.mark.parametrize("threads", [1, 3])
def test_every_image_is_read_once(source: Path, tmp_path: Path, loads: Counter[bytes], threads: int) -> None:
    report = build(settings_for(source, shards=3, threads=threads, max_rejects=1), tmp_path / "out")
    assert report.items == len(loads) == 81
    assert set(loads.values()) == {1}
    assert [reject.key for reject in report.rejects] == ["train/b/text.JPEG"]


def test_what_is_not_kept_is_made_again(
    source: Path, tmp_path: Path, loads: Counter[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    build(settings_for(source, shards=3, max_rejects=1), tmp_path / "a")
    loads.clear()
    monkeypatch.setattr(estimate, "_KNOWN_BYTES", 10_000)
    build(settings_for(source, shards=3, max_rejects=1), tmp_path / "b")
    assert set(loads.values()) == {1, 2}
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
