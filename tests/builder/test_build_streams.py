"""``stoker.build`` of records without a length: read once and stored in order; the bytes are those of one run."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

import stoker
from builder.killing import interrupt
from builder.trees import contents, picture, pixels
from stoker import fields
from stoker.errors import ConfigError, DestinationError, SourceError, TooManyRejectsError
from stoker.types import Box

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SIZE = "20KB"


def build(source: Any, destination: Path, **settings: Any) -> stoker.BuildReport:
    return stoker.build(source, destination, **{"progress": False, "shard_size": SIZE} | settings)


def records(count: int, changed: int = -1, fails_at: int = -1) -> Iterator[dict[str, Any]]:
    for number in range(count):
        if number == fails_at:
            raise RuntimeError("the network is gone")
        yield {"image": pixels(number + 1000 * (number == changed)), "label": number % 3, "caption": f"number {number}"}


def interrupted(source: Any, out: Path) -> int:
    return interrupt(lambda stop: build(source, out, threads=1, progress=stop), out, 3)


def check_same(out: Path, source: Any) -> None:
    """Check that a dataset has the bytes of one that is built of a source in one run."""
    build(source, out.with_name("in one run"))
    assert contents(out) == contents(out.with_name("in one run"))


def test_records_are_stored_in_their_order_in_shards_of_about_the_size(tmp_path: Path) -> None:
    report = build(records(100), tmp_path / "out")
    train = report.manifest.splits["train"]
    assert (train.records, train.class_counts, report.items) == (100, (34, 33, 33), 100)
    assert [shard.name for shard in train.shards] == [f"train-{n:05}.tfrecord" for n in range(len(train.shards))]
    lengths = [shard.records for shard in train.shards]
    assert len(lengths) > 5
    assert set(lengths[:-1]) == {lengths[0]}
    assert all(15_000 < shard.size_bytes < 25_000 for shard in train.shards[:-1])
    dataset = stoker.open(tmp_path / "out", "train")
    assert [dataset[index].source for index in range(100)] == [str(number) for number in range(100)]
    assert [dataset[index].fields["caption"] for index in range(100)] == [f"number {number}" for number in range(100)]
    assert all((dataset[index].decode() == pixels(index)).all() for index in (0, 50, 99))


def test_threads_change_no_byte(tmp_path: Path) -> None:
    for threads in (1, 4):
        build(records(150), tmp_path / str(threads), threads=threads, resize="short:20")
    assert contents(tmp_path / "1") == contents(tmp_path / "4")


@pytest.mark.slow
def test_few_records_are_taken_ahead_and_none_is_held_afterwards(tmp_path: Path) -> None:
    taken: list[weakref.ref[Any]] = []
    ahead, held = [], []

    def counted() -> Iterator[dict[str, Any]]:
        for record in records(900):
            taken.append(weakref.ref(record["image"]))
            yield record

    def progress(**news: int) -> None:
        ahead.append(len(taken) - news["done"])
        held.append(sum(image() is not None for image in taken))

    build(counted(), tmp_path / "out", threads=1, progress=progress)
    assert 0 < max(ahead) <= 16 * (8 + 2)
    assert held[-1] < 16


@pytest.mark.parametrize("count", [1, 64, 65])
def test_any_number_of_records(count: int, tmp_path: Path) -> None:
    assert build(records(count), tmp_path / "out").manifest.records == count


def test_a_mapping_has_splits_one_of_which_may_have_a_length(tmp_path: Path) -> None:
    report = build({"val": list(records(5)), "train": records(30), "test": iter(())}, tmp_path / "out")
    assert {name: split.records for name, split in report.manifest.splits.items()} == {"train": 30, "validation": 5}
    assert stoker.open(tmp_path / "out", "val")[4].source == "4"


def test_an_iterable_dataset_of_hugging_face(tmp_path: Path) -> None:
    import datasets  # noqa: PLC0415

    kinds = {"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])}
    values = {"image": [{"bytes": picture(n), "path": None} for n in range(9)], "label": [n % 2 for n in range(9)]}
    hub = datasets.Dataset.from_dict(values, features=datasets.Features(kinds)).to_iterable_dataset()
    assert build(hub, tmp_path / "out").manifest.formats == {"jpeg": {"kept": 9}}
    assert [known.name for known in stoker.open(tmp_path / "out", "train").classes] == ["cat", "dog"]


# Refused


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"shards": 3},
            "shards is 3, but how many records there are is not known before they are read; give",
        ),
        ({"num_images": 3}, "num_images chooses among all records"),
        ({"split_fraction": "val=0.1"}, "split_fraction chooses among all records"),
        ({"seed": 3}, "seed is 3, but records without a length are stored in their order"),
        ({"shard_names": "google"}, "shard_names 'google' tells how many shards there are"),
        ({"preset": "tfds"}, "shard_names 'tfds:out' tells how many shards there are"),
    ],
)
def test_what_needs_their_number_is_refused(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"^{message}"):
        build(records(9), tmp_path / "out", **{"shard_size": None} | settings)
    assert not (tmp_path / "out").exists()


def test_names_of_shards_may_be_chosen(tmp_path: Path) -> None:
    report = build(records(30), tmp_path / "out", shard_names="{split}-{shard}.tfrecords", preset="imagenet")
    assert report.manifest.splits["train"].shards[1].name == "train-1.tfrecords"
    assert len(stoker.open(tmp_path / "out", "train")) == 30


def test_classes_by_name_must_be_known_before(tmp_path: Path) -> None:
    def named() -> Iterator[dict[str, Any]]:
        yield from ({"image": picture(number), "label": "cat"} for number in range(3))

    with pytest.raises(ConfigError, match=r"'label' of the first record is text.*fields={'label': stoker.fields.Label"):
        build(named(), tmp_path / "out")
    chosen = {"image": fields.Image(), "label": fields.Label(["dog", "cat"])}
    assert build(named(), tmp_path / "out", fields=chosen).manifest.splits["train"].class_counts == (0, 3)


def test_nothing_to_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="the source holds no records"):
        build(records(0), tmp_path / "out")
    with pytest.raises(SourceError, match="raised RuntimeError before its first record of train: the network"):
        build(records(3, fails_at=0), tmp_path / "out")


def test_rejects_name_positions(tmp_path: Path) -> None:
    def some() -> Iterator[Any]:
        for number, record in enumerate(records(80)):
            yield record | {"caption": 7} if number == 70 else "text" if number == 71 else record

    with pytest.raises(TooManyRejectsError) as caught:
        build(some(), tmp_path / "out")
    assert {reject.key: reject.reason for reject in caught.value.report.rejects} == {
        "record 70": "field 'caption' is 7 (int), but must be text (str)",
        "record 71": "it is of type str; a record is a dict, or a pair of image and label; of paths make "
        "[{'image': path} for path in paths]",
    }
    report = build(some(), tmp_path / "out", max_rejects=2)
    assert (report.outcome, report.items, report.manifest.records) == ("built", 0, 78)


# Resuming


@pytest.mark.slow
def test_what_is_there_is_skipped_and_not_built_again(tmp_path: Path) -> None:
    there = interrupted(records(300), tmp_path / "out")
    report = build(records(300), tmp_path / "out")
    assert there <= report.resumed_shards < len(report.manifest.splits["train"].shards)
    assert report.items < 300
    check_same(tmp_path / "out", records(300))
    again = build(records(300), tmp_path / "out")
    assert (again.outcome, again.items, again.manifest) == ("complete", 0, report.manifest)


@pytest.mark.slow
def test_other_records_are_not_taken_for_those_that_are_stored(tmp_path: Path) -> None:
    out = tmp_path / "out"
    interrupted(records(300), out)
    before = contents(out)
    with pytest.raises(DestinationError, match=r"train-00000.tfrecord in \S+ was made of other records.*others now"):
        build(records(300, changed=1), out)
    first = build(records(300), tmp_path / "whole").manifest.splits["train"].shards[0].records
    with pytest.raises(DestinationError, match=r"train-00001.tfrecord in .* there are no records for it any more"):
        build(records(first), out)
    with pytest.raises(DestinationError, match="with other settings"):
        build(records(300), out, resize="short:9")
    assert contents(out) == before
    build(records(300), out)
    for other in (records(300, changed=299), records(299), records(301)):
        with pytest.raises(DestinationError, match=r"holds a finished dataset with other settings \(.*source is"):
            build(other, out)


@pytest.mark.slow
def test_a_source_that_raises_leaves_a_build_to_resume(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="raised RuntimeError after record 279 of train: the network is gone;"):
        build(records(300, fails_at=280), tmp_path / "out", threads=1)
    assert build(records(300), tmp_path / "out").resumed_shards > 0
    check_same(tmp_path / "out", records(300))


def test_what_is_there_is_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "out"
    there = interrupted(records(300), out)
    (out / f"train-{there + 3:05}.tfrecord").write_bytes(b"complete, but not noted")
    build(list(records(30)), out, overwrite=True)  # a sequence, whose shards have other names
    check_same(out, list(records(30)))
    build(records(40), tmp_path / "fresh")
    build(records(40), out, overwrite=True)
    assert contents(out) == contents(tmp_path / "fresh")


@pytest.mark.slow
def test_a_shard_that_no_record_is_left_for_is_removed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    interrupted(records(300), out)
    (out / "train-00020.tfrecord").write_bytes(b"complete, but not noted")
    (out / "train-00020.tfrecord.idx").write_bytes(b"its index")
    shards = len(list(out.glob("*.tfrecord"))) - 1
    each = stoker.build(records(300), tmp_path / "whole", shard_size=SIZE, progress=False).manifest.splits["train"]
    count = sum(shard.records for shard in each.shards[:18])
    assert shards < 18
    build(records(count), out)
    check_same(out, records(count))


def test_arrays_are_told_apart_by_shape_and_type(tmp_path: Path) -> None:
    flat = np.zeros((2, 6, 3), np.uint8)
    chosen = {"image": fields.Image(), "more": fields.Json()}
    for number, (image, more) in enumerate([(flat.reshape(3, 4, 3), [1]), (flat, [1.0]), (flat, ["1"]), (flat, [[1]])]):
        build(iter([{"image": flat, "more": [1]}]), tmp_path / str(number), fields=chosen)
        with pytest.raises(DestinationError, match="source is"):
            build(iter([{"image": image, "more": more}]), tmp_path / str(number), fields=chosen)


def test_boxes_and_palettes_are_told_apart(tmp_path: Path) -> None:
    def coloured(level: int, transparency: int | None = None) -> Image.Image:
        image = Image.new("P", (4, 3))
        image.putpalette([level, 0, 0])
        if transparency is not None:
            image.info["transparency"] = transparency
        return image

    chosen = {"image": fields.Image(), "boxes": fields.Boxes(["a", "b"])}
    given = {"image": coloured(1), "boxes": [Box(0, 0, 0.5, 0.5, 0)]}
    others = (
        {"image": coloured(2)},
        {"image": coloured(1, 0)},
        {"boxes": [Box(0, 0, 0.5, 1, 0)]},
        {"boxes": [Box(0, 0, 0.5, 0.5, 1)]},
    )
    build(iter([given]), tmp_path / "out", fields=chosen)
    for other in others:
        with pytest.raises(DestinationError, match="source is"):
            build(iter([given | other]), tmp_path / "out", fields=chosen)
    assert build(iter([given]), tmp_path / "out", fields=chosen).outcome == "complete"


def test_an_iterable_dataset_of_torch_that_has_a_length_is_gone_through(tmp_path: Path) -> None:
    from torch.utils.data import IterableDataset  # noqa: PLC0415 - it takes seconds to import

    class Numbered(IterableDataset[Any]):
        def __len__(self) -> int:
            return 4

        def __iter__(self) -> Iterator[dict[str, Any]]:
            return records(4)

    assert build(Numbered(), tmp_path / "out").manifest.splits["train"].records == 4
    check_same(tmp_path / "out", records(4))
