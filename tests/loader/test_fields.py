"""Fields of batches: each value is that of its record, and masks and extra images go where the pixels go."""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

import stoker
from builder.trees import write_tree
from loader import field_records
from loader.field_records import COLUMNS, FIELDS, PLANES, RECORDS, mask, png, right, rows, size, value
from loader.resuming import check_resume
from reference import pictures, transform
from small_cases import each
from small_datasets import write_dataset
from stoker import fields
from stoker.errors import BadSampleWarning, ConfigError, ExampleError, ImageError, StokerError
from transforms.cases import of_any_image

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.types import Features, Field

SEED = 97
CROP = stoker.RandomResizedCrop(17, scale=(0.1, 1.0), hflip=0.5)


def load(dataset: Any, wanted: Any, **settings: Any) -> stoker.Batch:
    settings = {"batch_size": RECORDS, "transform": stoker.Resize(8), "shuffle": True, "seed": SEED, **settings}
    with stoker.Loader(dataset, fields=wanted, **settings) as loader:
        return next(iter(loader))


def only(*names: str) -> dict[str, Field]:
    return {name: FIELDS[name] for name in names}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.slow
def test_every_value_is_that_of_its_record(rich: stoker.Dataset, threads: int, padded: bool) -> None:
    wanted = {name: FIELDS[name] for name in COLUMNS}
    if padded:
        wanted |= {"tags": fields.Labels(pad_to=3), "path": fields.Array("int16", (None,), 9)}
        wanted |= {"track": fields.Array("float32", (None, 2), 4)}
    settings = {"batch_size": 5, "transform": stoker.Resize(4), "shuffle": True, "seed": SEED}
    seen = []
    with stoker.Loader(rich, threads=threads, fields=wanted, **settings) as loader:
        for batch in loader:
            assert list(batch.fields) == COLUMNS
            for name, column in batch.fields.items():
                for i, actual in zip(batch.indices.tolist(), rows(column, len(batch)), strict=True):
                    expected = value(name, i)
                    if isinstance(expected, np.ndarray | np.generic):
                        assert actual.dtype == expected.dtype, name
                        assert actual.tobytes() == expected.tobytes(), (name, i)
                        assert actual.shape == expected.shape, name
                    else:
                        assert actual == expected, (name, i)
            seen += batch.indices.tolist()
    assert sorted(seen) == list(range(RECORDS))


@pytest.mark.slow
def test_what_is_padded_is_filled_up_and_cut(rich: stoker.Dataset) -> None:
    wanted = {"tags": fields.Labels(pad_to=2), "track": fields.Array("float32", (None, 2), 3)}
    batch = load(rich, wanted)
    tags, track = batch.fields["tags"], batch.fields["track"]
    assert tags.values.shape == (RECORDS, 2)
    assert track.values.shape == (RECORDS, 3, 2)
    for row, i in enumerate(batch.indices.tolist()):
        assert tags.counts[row] == i % 4
        assert tags.values[row].tolist() == ([0, 1] if i % 4 > 1 else [0, -1] if i % 4 else [-1, -1])
        assert track.counts[row] == i % 5
        assert (track.values[row, i % 5 :] == 0).all()
        assert (track.values[row, : i % 5] == value("track", i)[:3]).all()


def shown(image: Image.Image, which: Any, i: int, *, nearest: bool, number: int = 0) -> np.ndarray:
    own = {"filter": "nearest", "color_jitter": None}  # of masks
    changes = {name: value for name, value in own.items() if nearest and hasattr(which, name)}
    described = dataclasses.replace(which, **changes)
    return transform.show(image, described, transform.Draws(SEED, 0, i, number))


WHOLE = [case for case in of_any_image(1, 1) if not isinstance(case, stoker.ObjectCrops)]


@functools.cache
def photo(i: int) -> Image.Image:
    return pictures.rgb(pictures.jpeg(*size(i), i))


@each("which", WHOLE)
def test_masks_and_further_images_are_those_of_pillow(rich: stoker.Dataset, which: Any) -> None:
    batch = load(rich, only(*PLANES), transform=which, threads=2)
    assert batch.fields["mask"].dtype == np.uint8
    assert batch.fields["parts"].dtype == np.uint16
    for row, i in enumerate(batch.indices.tolist()):
        assert (batch.fields["mask"][row] == shown(Image.fromarray(mask(i)), which, i, nearest=True)).all(), i
        assert (batch.fields["parts"][row] == shown(Image.fromarray(mask(i, 16)), which, i, nearest=True)).all(), i
        assert (batch.fields["right"][row] == shown(pictures.rgb(right(i)), which, i, nearest=False)).all(), i
        assert (batch.images[row] == shown(photo(i), which, i, nearest=False)).all()


def test_several_transforms_give_tuples(rich: stoker.Dataset) -> None:
    several = stoker.MultiCrop(CROP, stoker.Resize(9), CROP)
    batch = load(rich, only(*PLANES), transform=several)
    for name in PLANES:
        assert [planes.shape[:3] for planes in batch.fields[name]] == [(RECORDS, side, side) for side in (17, 9, 17)]
    for number, which in enumerate(several.transforms):
        for row, i in enumerate(batch.indices.tolist()):
            expected = shown(Image.fromarray(mask(i)), which, i, nearest=True, number=number)
            assert (batch.fields["mask"][number][row] == expected).all()
    assert (batch.fields["mask"][0] != batch.fields["mask"][2]).any()


def write_twice(folder: Path) -> Path:
    """Write records whose extra image is the first."""
    images = [pictures.jpeg(*size(i), i) for i in range(8)]
    return field_records.write(folder, {i: {"right/encoded": ("bytes", [data])} for i, data in enumerate(images)}, 8)


def test_colours_of_further_images_change_as_those_of_the_first(tmp_path: Path) -> None:
    path = write_twice(tmp_path)
    colours = stoker.ColorJitter(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1)
    batch = load(stoker.open(path), only("right", "mask"), transform=dataclasses.replace(CROP, color_jitter=colours))
    assert (batch.fields["right"] == batch.images).all()
    plain = load(stoker.open(path), only("mask"), transform=CROP)
    assert (batch.images != plain.images).any()
    assert (batch.fields["mask"] == plain.fields["mask"]).all()


@pytest.mark.parametrize(
    ("mode", "output"),
    [
        ("L", stoker.Output()),
        ("RGBA", stoker.Output("float16", "NCHW")),
        ("RGB", stoker.Output("float32", "NCHW", mean=(0.4, 0.5, 0.6), std=(0.2, 0.3, 0.1))),
    ],
)
def test_images_but_not_masks_have_the_form_of_the_first(tmp_path: Path, mode: Any, output: stoker.Output) -> None:
    path = write_twice(tmp_path)
    batch = load(stoker.open(path, mode=mode), only("right", "mask"), output=output)
    assert batch.fields["right"].dtype == batch.images.dtype
    assert (batch.fields["right"] == batch.images).all()
    assert batch.fields["mask"].dtype == np.uint8
    assert batch.fields["mask"].shape == (8, 8, 8)


def test_an_object_is_cut_out_of_its_mask_too(tmp_path: Path) -> None:
    box = {"xmin": 0.25, "ymin": 0.1, "xmax": 0.75, "ymax": 0.95}
    boxes: Features = {f"image/object/bbox/{side}": ("float", [edge]) for side, edge in box.items()}
    path = field_records.write(tmp_path, dict.fromkeys(range(8), boxes), 8)
    which = stoker.ObjectCrops(12, hflip=0.5)
    batch = load(stoker.open(path), only("mask", "caption"), transform=which)
    for row, i in enumerate(batch.indices.tolist()):
        described, draws = dataclasses.replace(which, filter="nearest"), transform.Draws(SEED, 0, i)
        corners = np.float32(list(box.values()))
        expected = transform.object_crop(Image.fromarray(mask(i)), described, draws, corners)
        assert (batch.fields["mask"][row] == expected).all()
        assert batch.fields["caption"][row] == value("caption", i)


def wrong_size(i: int) -> bytes:
    width, height = size(i)
    return png(np.zeros((height, width + 1), np.uint8))


def palette(i: int) -> bytes:
    return pictures.encode(Image.fromarray(mask(i)).convert("P"), format="PNG")


BROKEN: list[tuple[str, Features, type[StokerError], str]] = [
    ("caption", {"caption": ("bytes", [])}, ExampleError, "feature 'caption' is empty; it must hold bytes"),
    ("mask", {"mask/encoded": ("none", [])}, ExampleError, "feature 'mask/encoded' is missing; it must hold bytes"),
    ("caption", {"caption": ("int64", [1])}, ExampleError, "feature 'caption' is of kind int64; it must hold bytes"),
    ("caption", {"caption": ("bytes", [b"a", b"b"])}, ExampleError, "feature 'caption' has 2 values; it must have one"),
    ("caption", {"caption": ("bytes", [b"caf\xe9"])}, ExampleError, "feature 'caption' is not text in UTF-8"),
    ("number", {"number": ("int64", [1, 2])}, ExampleError, "feature 'number' has 2 values; it must have 1"),
    ("vector", {"vector": ("float", [1.0])}, ExampleError, "feature 'vector' has 1 values; it must have 6"),
    ("track", {"track": ("float", [1.0])}, ExampleError, "feature 'track' has 1 values; it must have a multiple of 2"),
    ("depth", {"depth": ("bytes", [b"abc"])}, ExampleError, "feature 'depth' has 3 bytes; it must have 8"),
    ("path", {"path": ("bytes", [b"abc"])}, ExampleError, "feature 'path' has 3 bytes; it must have a multiple of 2"),
    ("mask", {"mask/encoded": ("bytes", [])}, ExampleError, "feature 'mask/encoded' is empty; it must hold bytes"),
    (
        "mask",
        {"mask/encoded": ("bytes", [wrong_size(5)])},
        ExampleError,
        "feature 'mask/encoded': it is 37 x 56 pixels",
    ),
    ("mask", {"mask/encoded": ("bytes", [palette(5)])}, ExampleError, "is not a greyscale PNG of 8 bits"),
    ("mask", {"mask/encoded": ("bytes", [png(mask(5))[:60]])}, ImageError, "feature 'mask/encoded': "),
    (
        "right",
        {"right/encoded": ("bytes", [right(4)])},
        ExampleError,
        "feature 'right/encoded': it is 269 x 225 pixels",
    ),
    ("right", {"right/encoded": ("bytes", [b"no"])}, ImageError, "feature 'right/encoded': "),
]


@pytest.mark.parametrize(("name", "changes", "error", "message"), BROKEN, ids=[message for *_, message in BROKEN])
@pytest.mark.slow
def test_what_a_record_lacks_is_named_with_its_number_and_another_replaces_it(
    tmp_path: Path, name: str, changes: Features, error: type[StokerError], message: str
) -> None:
    path = field_records.write(tmp_path, {5: changes}, records=8)
    dataset = stoker.open(path)
    with pytest.raises(error) as raised:
        load(dataset, only(name))
    assert message in str(raised.value)
    assert "record 5 at byte" in str(raised.value)
    assert (raised.value.path, raised.value.record) == (str(path), 5)
    settings = {"transform": stoker.Resize(8), "on_bad": "substitute", "seed": 0}
    with stoker.Loader(dataset, 8, fields=only(name, "number"), **settings) as loader:
        with pytest.warns(BadSampleWarning, match="1 bad samples were replaced; the first is 5"):
            batch = next(iter(loader))
        (bad,) = loader.bad_samples.samples
    assert bad.index == 5
    assert batch.indices[5] == bad.substitute
    expected = load(dataset[[bad.substitute]], only(name, "number"), transform=stoker.Resize(8)).fields
    assert batch.fields["number"][5] == expected["number"][0]
    assert np.array_equal(rows(batch.fields[name], 8)[5], rows(expected[name], 1)[0])


@pytest.mark.parametrize(
    ("name", "stored", "message"),
    [
        ("meta", b"{", "feature 'meta' is not JSON"),
        ("meta", b'{"a":1,"a":2}', "feature 'meta' is not JSON"),
        ("flags", b"\0\2\1", "feature 'flags' holds the byte 2, and those of bool are 0 and 1"),
    ],
)
@pytest.mark.slow
def test_a_damaged_value_is_named_with_its_record(tmp_path: Path, name: str, stored: bytes, message: str) -> None:
    path = field_records.write(tmp_path, {5: {name: ("bytes", [stored])}}, records=8)
    with pytest.raises(ExampleError, match="record 5 at byte") as raised:
        load(stoker.open(path), only(name))
    assert message in str(raised.value)
    assert (raised.value.path, raised.value.record) == (str(path), 5)


def test_a_damaged_value_of_a_substitute_is_named_with_its_own_record(tmp_path: Path) -> None:
    path = field_records.write(tmp_path, {0: {"number": ("none", [])}, 1: {"meta": ("bytes", [b"{"])}}, records=2)
    settings = {"transform": stoker.Resize(4), "shuffle": False, "batch_size": 1, "on_bad": "substitute", "seed": 0}
    with pytest.raises(ExampleError) as raised:
        load(stoker.open(path), only("number", "meta"), **settings)
    assert raised.value.record == 1


@pytest.mark.parametrize("make", ["memory", "decoded", "node"])
def test_caches_keep_no_field_back(rich: stoker.Dataset, tmp_path: Path, make: str) -> None:
    cache: Any = stoker.MemoryCache("64MB", keep="decoded" if make == "decoded" else "encoded")
    if make == "node":
        cache = stoker.NodeCache(tmp_path / "cache", "64MB")
    wanted = only("caption", "tags", *PLANES)
    expected = load(rich, wanted, transform=CROP)
    for _ in range(2):
        batch = load(rich, wanted, transform=CROP, cache=cache)
        assert (batch.images == expected.images).all()
        assert batch.fields["caption"] == expected.fields["caption"]
        for name in PLANES:
            assert (batch.fields[name] == expected.fields[name]).all()
    assert cache.stats().hits == RECORDS


def test_pixels_that_are_copied_as_they_lie_bring_their_fields(tmp_path: Path) -> None:
    pixels = np.arange(4 * 4 * 3, dtype=np.uint8)
    raw: Features = {"image_raw": ("bytes", [pixels.tobytes()]), "label": ("int64", [1])}
    dropped = {f"{name}/encoded": ("none", []) for name in ("image", *PLANES)}
    path = field_records.write(tmp_path, {i: {**raw, **dropped} for i in range(RECORDS)})
    batch = load(stoker.open(path), only("caption", "number"), transform=stoker.RawTensor(4))
    assert (batch.images == pixels.reshape(4, 4, 3)).all()
    assert batch.fields["caption"] == [value("caption", i) for i in batch.indices.tolist()]
    assert batch.fields["number"].tolist() == [value("number", i) for i in batch.indices.tolist()]


def test_a_resumed_epoch_has_the_fields_of_one_that_was_not_interrupted(rich: stoker.Dataset) -> None:
    check_resume(rich, [(1, 4), (2, 5)], transform=CROP, fields=FIELDS)


def test_a_batch_without_samples_has_fields_of_the_same_form(rich: stoker.Dataset) -> None:
    several = {"transform": stoker.MultiCrop(stoker.Resize(4), stoker.Resize(5)), "tail": "short"}
    batches = []
    for rank in range(2):
        with stoker.Loader(rich[:1], 2, rank=rank, world_size=2, fields=FIELDS, **several) as loader:
            batches += loader
    empty, single = sorted(batches, key=len)
    assert (len(empty), len(single)) == (0, 1)
    for name, column in empty.fields.items():
        full = single.fields[name]
        if isinstance(column, tuple):
            assert [(each.dtype, each.shape[1:]) for each in column] == [(each.dtype, each.shape[1:]) for each in full]
        elif isinstance(column, np.ndarray):
            assert (column.dtype, column.shape) == (full.dtype, (0, *full.shape[1:])), name
        else:
            assert type(column) is type(full)
            assert rows(column, 0) == []


def test_parts_of_a_mix_give_their_own_fields(rich: stoker.Dataset, tmp_path: Path) -> None:
    mixed = stoker.mix([rich[:10], rich[10:]])
    assert mixed.fields == rich.fields
    batch = load(mixed, only("caption", "mask"), batch_size=RECORDS)
    whole = load(rich, only("caption", "mask"))
    captions = dict(zip(whole.indices.tolist(), whole.fields["caption"], strict=True))
    assert batch.fields["caption"] == [captions[i % RECORDS] for i in batch.indices.tolist()]
    write_dataset(tmp_path / "plain", {"train": [3]})
    with pytest.raises(ConfigError, match="plain has no field 'caption'; it has none"):
        load(stoker.mix([rich, stoker.open(tmp_path / "plain", split="train")], label_offsets=[0, 0]), only("caption"))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((fields.Text(), "a"), (fields.Json(), ["a"])),
        ((fields.Text(), "a"), (fields.Bytes(), b"a")),
        ((fields.Int(), 1), (fields.Label(), 1)),
        ((fields.Array("float32", (4,)), [0.0] * 4), (fields.Array("float32", (2, 2)), [[0.0] * 2] * 2)),
        ((fields.Array("int8", (None,)), [1]), (fields.Array("uint8", (None,)), [1])),
        ((fields.Int(), 1), (fields.Float(), 1.0)),
    ],
)
def test_a_field_of_a_mix_is_of_one_kind(tmp_path: Path, first: Any, second: Any) -> None:
    for folder, (kind, note) in (("one", first), ("two", second)):
        records = [{"image": pictures.jpeg(8, 8, n), "label": 0, "note": note, "weight": n / 2} for n in range(2)]
        known = {"image": fields.Image(), "label": fields.Label(), "note": kind, "weight": fields.Float()}
        stoker.build(records, tmp_path / folder, fields=known, progress=False)
    mixed = stoker.mix([stoker.open(tmp_path / name) for name in ("one", "two")])
    assert mixed.fields == {"weight": fields.Float()}
    assert sorted(load(mixed, ["weight"], batch_size=4).fields["weight"].tolist()) == [0, 0, 0.5, 0.5]
    message = f"field 'note' is {first[0]!r} in {tmp_path / 'one'}, and {second[0]!r} in {tmp_path / 'two'}"
    with pytest.raises(ConfigError, match=re.escape(message)):
        load(mixed, ["note"])


@pytest.mark.parametrize("kind", [fields.Label, fields.Labels])
def test_labels_of_a_mix_mean_the_same_or_are_chosen(tmp_path: Path, kind: Any) -> None:
    for name, others in {"first": ["red", "blue"], "same": ["red", "blue"], "second": ["blue", "red"]}.items():
        value = ["red"] if kind is fields.Labels else "red"
        records = [{"image": pictures.jpeg(8, 8, n), "label": 0, "colour": value} for n in range(2)]
        known = {"image": fields.Image(), "label": fields.Label(), "colour": kind(others)}
        stoker.build(records, tmp_path / name, fields=known, progress=False)
    first, same, second = (stoker.open(tmp_path / name) for name in ("first", "same", "second"))
    load(stoker.mix([first, same], label_offsets=[0, 0]), ["colour"], batch_size=4)
    mixed = stoker.mix([first, second], label_offsets=[0, 0])
    with pytest.raises(ConfigError, match=r"field 'colour' has other names in .*second than in .*first; .*fields="):
        load(mixed, ["colour"])
    batch = load(mixed, {"colour": kind(["blue", "red"])}, batch_size=4)
    assert len(rows(batch.fields["colour"], 4)) == 4


def test_what_is_no_field_of_the_dataset_is_refused_by_name(rich: stoker.Dataset, tmp_path: Path) -> None:
    def refused(dataset: stoker.Dataset, wanted: Any, message: str) -> None:
        with pytest.raises(ConfigError) as raised:
            stoker.Loader(dataset, 2, transform=stoker.Resize(4), fields=wanted)
        assert message in str(raised.value)

    write_dataset(tmp_path / "built", {"train": [3]})
    built = stoker.open(tmp_path / "built", split="train")
    refused(built, ["caption"], "built has no field 'caption'; it has none")
    refused(built, only("caption"), "built has no field 'caption'; it has none")
    photos = stoker.open(write_tree(tmp_path / "photos", {"a": 2, "b": 2}))
    refused(photos, only("caption"), "photos has no field 'caption'; it has none")
    refused(rich, ["caption"], "do not say which fields they have; say what 'caption' is: fields={'caption': ")
    refused(rich, "caption", "fields is 'caption'; it must be a list of names, such as fields=['caption']")
    refused(rich, 5, "fields is 5; it must be a list of names")
    refused(rich, {"caption": "text"}, "'text' is not a field, such as stoker.fields.Text()")
    refused(rich, {"boxes": fields.Boxes()}, "batches have boxes with boxes=stoker.BoxOutput(...)")


def test_a_built_dataset_gives_by_name_what_it_was_built_from(tmp_path: Path) -> None:
    names = [name for name in FIELDS if name not in PLANES]
    rng = np.random.default_rng(0)
    records = [
        {
            **{name: value(name, i) for name in names},
            "meta": {"i": i},
            "other": i,
            "label": 0,
            "image": rng.integers(0, 256, (20, 24, 3), np.uint8),
            "mask": rng.integers(0, 256, (20, 24), np.uint8),
            "parts": rng.integers(0, 2**16, (20, 24), np.uint16),
            "right": rng.integers(0, 256, (20, 24, 3), np.uint8),
        }
        for i in range(1, 15)
    ]
    kinds = {**FIELDS, "image": fields.Image(), "label": fields.Label()}
    kinds["track"] = fields.Array("float32", (None, 2), 4)
    stoker.build(records, tmp_path / "built", fields=kinds, encode="png", progress=False)
    dataset = stoker.open(tmp_path / "built")
    with stoker.Loader(dataset, 14, transform=stoker.TopLeft(20), fields=list(FIELDS)) as loader:
        (batch,) = loader
    assert isinstance(batch.fields["track"], fields.Padded)  # as the dataset says
    positions = [meta["i"] - 1 for meta in batch.fields["meta"]]
    assert sorted(positions) == list(range(14))
    for name, column in batch.fields.items():
        for row, actual in enumerate(rows(column, 14)):
            expected = records[positions[row]][name]
            if name in PLANES:
                expected = expected[:20, :20]
            assert np.array_equal(actual, expected), name
    assert all(
        np.array_equal(batch.images[row], records[position]["image"][:20, :20])
        for row, position in enumerate(positions)
    )


def test_a_loader_without_fields_has_none(rich: stoker.Dataset) -> None:
    assert load(rich, {}).fields == {}
