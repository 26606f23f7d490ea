"""Builds of records with fields: what is stored, what is refused, masks through every geometry, resume, repack."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image as PillowImage

import stoker
from fields.record_source import build_records, memory_source
from reference import example, pictures, tfrecord
from reference.pictures import png
from reference.png import END, chunk, header
from stoker import fields
from stoker.builder import (
    PRESETS,
    BuildOptions,
    ItemConverter,
    build_source,
    forecast,
)
from stoker.errors import ConfigError, DestinationError, ExampleError, SourceError
from stoker.format import ItemReject, read_manifest
from stoker.loader import open_records
from stoker.recipe import Recipe, parse_encode, parse_resize
from stoker.sources import list_records

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.types import Field

WIDTH, HEIGHT = 24, 17
FIELDS: dict[str, Field] = {
    "caption": fields.Text(),
    "raw": fields.Bytes(),
    "meta": fields.Json(),
    "id": fields.Int(),
    "score": fields.Float(),
    "kind": fields.Label(["red", "blue"]),
    "tags": fields.Labels(["a", "b", "c"]),
    "emb": fields.Array("float32", (4,)),
    "points": fields.Array("int16", (None, 2)),
    "mask": fields.Mask(),
    "depth": fields.Mask(16),
    "right": fields.Image(),
}


def ids(seed: int, *, most: int = 256, size: tuple[int, int] = (WIDTH, HEIGHT)) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(0, most, size[::-1], np.uint16)


def huge_png() -> bytes:
    """A PNG of few bytes whose header claims more pixels than there is memory for."""
    return header(2_000_000_000, 2_000_000_000, 0, 8) + chunk(b"IDAT", zlib.compress(bytes(100))) + END


def record(number: int) -> dict[str, Any]:
    return {
        "image": pictures.jpeg(WIDTH, HEIGHT, number),
        "caption": f"picture {number} é",
        "raw": bytes([number]),
        "meta": {"number": number, "list": [None, 0.5]},
        "id": -number,
        "score": number / 4,
        "kind": ("red", "blue", -1)[number % 3],
        "tags": ["a", 2][: number % 3],
        "emb": np.full(4, number, np.float32),
        "points": np.arange(2 * number, dtype=np.int16).reshape(number, 2),
        "mask": ids(number).astype(np.uint8),
        "depth": ids(number, most=65_536),
        "right": pictures.jpeg(WIDTH, HEIGHT, 100 + number),
    }


RECORDS = [record(number) for number in range(7)]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "set"
    report = build_records(folder, RECORDS, FIELDS, shards=2)
    assert (report.outcome, report.rejects) == ("built", ())
    return folder


def number_of(sample: stoker.Sample) -> int:
    return int(sample.source.removeprefix("record-"))


def test_samples_have_the_values_of_their_records(built: Path) -> None:
    dataset = stoker.open(built)
    assert dict(dataset.fields) == FIELDS
    assert sorted(number_of(sample) for sample in dataset) == list(range(7))  # type: ignore[attr-defined]
    for sample in dataset:  # type: ignore[attr-defined]
        given, values = RECORDS[number_of(sample)], sample.fields
        assert list(values) == list(FIELDS)
        for name in ("caption", "raw", "meta", "id", "score"):
            assert values[name] == given[name]
        assert values["kind"] == {"red": 0, "blue": 1, -1: -1}[given["kind"]]
        assert values["tags"].tolist() == [{"a": 0, 2: 2}[tag] for tag in given["tags"]]
        for name in ("emb", "points", "mask", "depth"):
            assert np.array_equal(values[name], given[name])
            assert values[name].dtype == given[name].dtype
        assert np.array_equal(values["right"], np.asarray(pictures.rgb(given["right"])))


def test_what_a_record_holds_by_an_independent_parse(built: Path) -> None:
    shards = [path.read_bytes() for path in sorted(built.glob("*.tfrecord"))]
    payloads = [record.payload for shard in shards for record in tfrecord.scan(shard)]
    assert len(payloads) == 7
    listed = json.loads((built / "manifest.json").read_bytes())["schema"]
    for payload in payloads:
        held = example.parse(payload)
        assert payload == example.write(held)
        given = RECORDS[int(held["image/filename"][1][0].removeprefix(b"record-"))]
        assert held["caption"] == ("bytes", [given["caption"].encode()])
        assert held["points"] == ("bytes", [given["points"].astype("<i2").tobytes()])
        assert held["right/encoded"] == ("bytes", [given["right"]])
        assert held["right/format"] == ("bytes", [b"JPEG"])
        assert (held["mask/height"], held["mask/width"]) == (("int64", [HEIGHT]), ("int64", [WIDTH]))
        for name, mode in (("mask", "L"), ("depth", "I;16")):
            image = pictures.opened(held[f"{name}/encoded"][1][0])
            assert (image.format, image.mode) == ("PNG", mode)
            assert np.array_equal(np.asarray(image), given[name])
        kinds = {key: spec["kind"] for key, spec in listed["features"].items()}
        assert {key: kind for key, (kind, _) in held.items()} == kinds
    assert listed["fields"]["kind"] == {"kind": "label", "names": ["red", "blue"]}
    assert "Pillow" in json.loads((built / "manifest.json").read_bytes())["encoders"]


def test_the_same_bytes_with_any_threads_and_after_an_interruption(built: Path, tmp_path: Path) -> None:
    wanted = read_manifest(built).dataset_id
    assert build_records(tmp_path / "threads", RECORDS, FIELDS, shards=2, threads=4).manifest.dataset_id == wanted
    settings = BuildOptions(shards=2, threads=1).settings("/")
    source, folder = memory_source(RECORDS, FIELDS), tmp_path / "cut"
    other = memory_source(RECORDS, FIELDS | {"tags": fields.Labels(["a", "b", "d"])})

    def interrupt(*, done: int, **_: int) -> None:
        if done == len(RECORDS):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_source(source, settings, folder, interrupt)
    with pytest.raises(DestinationError, match=r"unfinished build with other settings .*fields is "):
        build_source(other, settings, folder)
    report = build_source(source, settings, folder)
    assert (report.manifest.dataset_id, report.resumed_shards > 0) == (wanted, True)
    assert build_source(source, settings, folder).outcome == "complete"
    with pytest.raises(DestinationError, match=r"finished dataset with other settings .*fields is "):
        build_source(other, settings, folder)
    assert (folder / "manifest.json").read_bytes() == (built / "manifest.json").read_bytes()


def test_a_dataset_without_fields_is_as_before(tmp_path: Path) -> None:
    build_records(tmp_path / "set", [{"image": record["image"]} for record in RECORDS], {})
    content = json.loads((tmp_path / "set" / "manifest.json").read_bytes())
    assert "fields" not in content["schema"]
    assert "encoders" not in content
    assert len(content["schema"]["features"]) == 15
    assert stoker.open(tmp_path / "set")[0].fields == {}


def test_every_wrong_value_is_a_reject_that_names_record_and_field(tmp_path: Path) -> None:
    small = ids(0, size=(WIDTH, HEIGHT - 1)).astype(np.uint8)
    wrong: dict[str, list[tuple[Any, str]]] = {
        "caption": [(3, "is 3 (int), but must be text"), (None, "is None; every record needs it")],
        "raw": [("text", "is 'text', but must be bytes")],
        "meta": [({1: 2}, "the key 1 (int) of a dict is not text")],
        "id": [(0.5, "is 0.5 (float), but must be a whole number")],
        "score": [("1", "is '1', but must be a number")],
        "kind": [("green", "is 'green', but must be the id of a class, 0 to 1, or the name of one")],
        "tags": [(["a", 3], "3 (int) is not")],
        "emb": [(np.zeros(5, np.float32), "an array of float32 of shape (5,)")],
        "points": [(np.zeros((1, 3), np.int16), "of shape (1, 3), but must be an array of int16 of shape (any, 2)")],
        "mask": [
            (ids(0, most=65_536), "has the class id 65"),
            (small, "the mask has 24x16 pixels, but the image of the record 24x17; they must be equally large"),
            (pictures.jpeg(WIDTH, HEIGHT), "a mask of kind jpeg, which does not keep the numbers of its pixels,"),
            (
                png(PillowImage.new("RGB", (WIDTH, HEIGHT))),
                "its pixels are RGB, but those of a mask are one number each",
            ),
            (b"hello", "a mask of kind text is not read"),
            (huge_png(), "the mask has 2000000000x2000000000 pixels, but the image of the record 24x17"),
            (png(PillowImage.new("L", (WIDTH, HEIGHT)))[:-30], "damaged png"),
            (str(tmp_path / "none.png"), "none.png: No such file or directory"),
            (np.zeros((HEIGHT, WIDTH)), "an array of float64"),
            (3.5, "is of type float, but must be an image"),
        ],
        "right": [
            (b"hello", "not an image but text"),
            (pictures.jpeg(WIDTH, HEIGHT + 1), "the image has 24x18 pixels, but the image of the record 24x17"),
            (PillowImage.new("F", (WIDTH, HEIGHT)), "a PIL image of mode 'F' has no lossless file"),
        ],
    }
    cases = [(name, value, message) for name, values in wrong.items() for value, message in values]
    records = [RECORDS[0] | {name: value} for name, value, _ in cases]
    records.append({name: value for name, value in RECORDS[0].items() if name != "emb"})
    source = memory_source(records, FIELDS)
    settings = BuildOptions(threads=2).settings("/")
    report = build_source(source, settings, tmp_path / "set")
    assert report.outcome == "withheld"
    reasons = {reject.key: reject.reason for reject in report.rejects}
    for number, (name, _, message) in enumerate([*cases, ("emb", None, "is missing; every record needs it")]):
        reason = reasons[f"record-{number}"]
        assert message in reason
        assert f"field {name!r}" in reason
        assert " at 0x" not in reason
    planned = forecast(source, settings)
    assert {reject.key: reject.reason for reject in planned.survey.rejects} == reasons
    converter = ItemConverter(source, settings.recipe, settings.schema)
    checked = [converter.check(item, "train")[1] for item in source.table]
    assert {reject.key: reject.reason for reject in checked if isinstance(reject, ItemReject)} == reasons


def palette(seed: int) -> PillowImage.Image:
    image = PillowImage.frombytes("P", (WIDTH, HEIGHT), ids(seed).astype(np.uint8).tobytes())
    image.putpalette([number * 7 % 256 for number in range(768)])
    return image


def test_masks_of_every_form_are_stored_as_their_ids(tmp_path: Path) -> None:
    eight, sixteen = ids(1).astype(np.uint8), ids(2, most=65_536)
    bits = (eight % 2).astype(bool)
    grey = PillowImage.fromarray(eight)
    (tmp_path / "mask.png").write_bytes(png(grey))
    wanted_palette = np.asarray(palette(3))
    forms: list[tuple[Any, np.ndarray[Any, Any], int]] = [
        (eight, eight, 8), (bits, bits, 8), (eight.astype(np.int64), eight, 8), (eight[:, :, None], eight, 8),
        (sixteen, sixteen, 16), (sixteen.astype(">u2"), sixteen, 16), (eight, eight, 16),
        (eight[:, ::-1], eight[:, ::-1], 8),
        (grey, eight, 8), (PillowImage.fromarray(bits), bits, 8), (palette(3), wanted_palette, 8),
        (PillowImage.fromarray(sixteen), sixteen, 16), (PillowImage.fromarray(eight.astype(np.int32)), eight, 8),
        (png(grey), eight, 8), (png(palette(3)), wanted_palette, 8), (png(bits), bits, 8),
        (png(sixteen), sixteen, 16), (bytearray(png(grey)), eight, 8),
        (pictures.encode(grey, format="TIFF"), eight, 8),
        (pictures.encode(palette(3), format="GIF", optimize=False), wanted_palette, 8),
        (pictures.encode(palette(3), format="BMP"), wanted_palette, 8),
        (pictures.encode(PillowImage.fromarray(sixteen), format="TIFF"), sixteen, 16),
        (tmp_path / "mask.png", eight, 8), (str(tmp_path / "mask.png"), eight, 8),
        ({"bytes": png(grey), "path": None}, eight, 8),
        ({"bytes": None, "path": str(tmp_path / "mask.png")}, eight, 8),
    ]  # fmt: skip
    for depth in (8, 16):
        chosen = [(value, wanted) for value, wanted, bits_of in forms if bits_of == depth]
        records = [{"image": RECORDS[0]["image"], "m": value} for value, _ in chosen]
        assert build_records(tmp_path / str(depth), records, {"m": fields.Mask(depth)}).rejects == ()
        dataset = stoker.open(tmp_path / str(depth))
        for index in range(len(dataset)):
            sample = dataset[index]
            wanted = chosen[number_of(sample)][1]
            assert np.array_equal(sample.fields["m"], wanted), number_of(sample)
            assert sample.fields["m"].dtype == (np.uint8 if depth == 8 else np.uint16)


RESIZES = ["short:9", "short:40", "long:20", "max:20", "max:100", "exact:13x31", "square:8"]


@pytest.mark.parametrize("resize", RESIZES)
def test_masks_are_resized_as_pillow_does_to_the_nearest(resize: str, tmp_path: Path) -> None:
    recipe = Recipe(resize=parse_resize(resize), encode=parse_encode("png"))
    eight, sixteen = ids(1).astype(np.uint8), ids(2, most=65_536)
    records = [{"image": png(pictures.pixels(WIDTH, HEIGHT, 3)), "mask": eight, "depth": sixteen}]
    build_records(tmp_path, records, {"mask": fields.Mask(), "depth": fields.Mask(16)}, recipe=recipe)
    sample = stoker.open(tmp_path)[0]
    size = sample.decode().shape[1::-1]
    for name, given in (("mask", eight), ("depth", sixteen)):
        image = PillowImage.fromarray(given)
        if resize.startswith("square"):
            left = (WIDTH - HEIGHT) // 2
            image = image.crop((left, 0, left + HEIGHT, HEIGHT))
        wanted = np.asarray(image.resize(size, PillowImage.Resampling.NEAREST))
        assert np.array_equal(sample.fields[name], wanted)
        assert sample.features[f"{name}/width"] == ("int64", [size[0]])


@pytest.mark.parametrize("resize", [None, "square:8", "exact:13x31"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_masks_are_turned_with_their_image(orientation: int, resize: str | None, tmp_path: Path) -> None:
    recipe = Recipe(exif="apply", resize=None if resize is None else parse_resize(resize), encode=parse_encode("png"))
    eight = ids(orientation).astype(np.uint8)
    picture = PillowImage.fromarray(np.stack([eight] * 3, axis=2))  # a mask that shows what becomes of the image
    image = png(picture, exif=pictures.exif(orientation))
    records = [{"image": image, "mask": eight, "right": image}]
    extra: dict[str, Field] = {"mask": fields.Mask(), "right": fields.Image()}
    report = build_records(tmp_path, records, extra, recipe=replace(recipe, filter="nearest"))
    assert report.rejects == ()
    sample = stoker.open(tmp_path)[0]
    assert np.array_equal(sample.fields["mask"], sample.decode()[:, :, 0])
    assert np.array_equal(sample.fields["right"], sample.decode())


def test_jpegs_that_are_turned_or_resized_take_their_masks_along(tmp_path: Path) -> None:
    image = pictures.jpeg(WIDTH, HEIGHT, exif=pictures.exif(6))
    records = [{"image": image, "mask": ids(1) % 256, "right": pictures.jpeg(HEIGHT, WIDTH)}]
    extra: dict[str, Field] = {"mask": fields.Mask(), "right": fields.Image()}
    for name, recipe in (
        ("turned", Recipe(exif="apply")),
        ("resized", Recipe(exif="apply", resize=parse_resize("short:9"))),
    ):
        assert build_records(tmp_path / name, records, extra, recipe=recipe).rejects == ()
        sample = stoker.open(tmp_path / name)[0]
        upright = PillowImage.fromarray((ids(1) % 256).astype(np.uint8)).transpose(PillowImage.Transpose.ROTATE_270)
        height, width = sample.decode().shape[:2]
        assert np.array_equal(sample.fields["mask"], np.asarray(upright.resize((width, height), 0)))
        assert sample.fields["right"].shape == (height, width, 3)
    kept = build_records(tmp_path / "kept", records, extra)
    assert "the image has 17x24 pixels, but the image of the record 24x17" in kept.rejects[0].reason


def test_further_images_may_be_of_any_kind(tmp_path: Path) -> None:
    pixels = pictures.pixels(WIDTH, HEIGHT, 3)
    grey = PillowImage.fromarray(pixels[:, :, 0])
    for number, (value, name, wanted) in enumerate(
        [
            (png(pixels), b"PNG", pixels),
            (pixels, b"PNG", pixels),
            (PillowImage.fromarray(pixels), b"PNG", pixels),
            (grey, b"PNG", np.asarray(grey.convert("RGB"))),
            (palette(1), b"PNG", np.asarray(palette(1).convert("RGB"))),
            (pictures.encode(PillowImage.fromarray(pixels), format="BMP"), b"PNG", pixels),
            (pictures.encode(PillowImage.fromarray(pixels), format="WEBP", lossless=True), b"WEBP", pixels),
        ]
    ):
        records = [{"image": RECORDS[0]["image"], "right": value}]
        assert build_records(tmp_path / str(number), records, {"right": fields.Image()}).rejects == ()
        sample = stoker.open(tmp_path / str(number))[0]
        assert sample.features["right/format"] == ("bytes", [name])
        assert np.array_equal(sample.fields["right"], wanted)


def test_files_of_masks_and_images_are_read_where_their_record_is(tmp_path: Path) -> None:
    """A source in a store reads many records at a time, and nothing else does."""
    (tmp_path / "mask.png").write_bytes(huge_png())
    (tmp_path / "right.jpg").write_bytes(RECORDS[0]["right"])
    paths = {"mask": tmp_path / "mask.png", "right_image": str(tmp_path / "right.jpg"), "caption": "mask.png"}
    source = list_records({"train": [{"image": RECORDS[0]["image"], **paths}]}, None)
    loaded = source.load(source.table[0], "train").fields
    assert loaded == {"mask": huge_png(), "right_image": RECORDS[0]["right"], "caption": "mask.png"}


def test_presets_without_fields_say_so(tmp_path: Path) -> None:
    captions = {"caption": fields.Text()}
    for preset in ("imagenet-nvidia", "tfds", "dogs-onehot"):
        schema = PRESETS[preset].schema()
        with pytest.raises(ConfigError, match=f"preset {preset} has no place for the fields of the source: caption"):
            build_records(tmp_path / preset, RECORDS, captions, schema=schema)
    schema = PRESETS["imagenet"].schema(1)
    assert build_records(tmp_path / "imagenet", RECORDS, captions, schema=schema).rejects == ()
    settings = BuildOptions(crop_objects=True).settings("/")
    for extra, refused in (({"m": fields.Mask()}, True), (captions, False)):
        tree = memory_source([{"m": RECORDS[0]["mask"], **RECORDS[0]}], extra)
        if refused:
            with pytest.raises(ConfigError, match="crop_objects=True cuts objects out of the image, but not out of m"):
                build_source(tree, settings, tmp_path / "objects")
        else:
            assert build_source(tree, settings, tmp_path / "objects").outcome == "built"


def test_repack_carries_fields(built: Path, tmp_path: Path) -> None:
    source = open_records(str(built), None)
    settings = BuildOptions(shards=2, threads=2).settings(str(built))
    report = build_source(source, settings, tmp_path / "again")
    assert report.rejects == ()
    before = {number_of(sample): sample.features for sample in stoker.open(built)}  # type: ignore[attr-defined]
    after = {number_of(sample): sample.features for sample in stoker.open(tmp_path / "again")}  # type: ignore[attr-defined]
    assert before == after
    assert report.manifest.schema == read_manifest(built).schema
    smaller = replace(settings, recipe=Recipe(resize=parse_resize("short:9")))
    assert build_source(source, smaller, tmp_path / "small").rejects == ()
    sample = stoker.open(tmp_path / "small")[0]
    assert sample.fields["mask"].shape == sample.fields["right"].shape[:2] == sample.decode().shape[:2]
    schema = PRESETS["tfds"].schema()
    with pytest.raises(ConfigError, match="preset tfds has no place for the fields of the source: caption, raw"):
        build_source(source, replace(settings, schema=schema), tmp_path / "tfds")


def test_a_sample_whose_field_is_damaged_says_which(built: Path) -> None:
    sample = stoker.open(built)[0]
    for key, value, message in (
        ("caption", ("bytes", [b"\xff"]), r"sample 0 \(record-\d\), field 'caption': feature caption: .* decode"),
        ("mask/encoded", ("bytes", [b"x"]), "field 'mask': it is not a grey PNG of 8 bits"),
    ):
        broken = replace(sample, features=sample.features | {key: value})
        with pytest.raises((ExampleError, stoker.errors.ImageError), match=message):
            _ = broken.fields
    with pytest.raises(SourceError, match="half a character"):
        fields.Text().encode("caption", "\udc80")
