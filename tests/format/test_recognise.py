"""The layout of records is found from the records: those that are written, and those of the original programs."""

from __future__ import annotations

import pytest

from small_cases import each
from stoker.errors import ConfigError
from stoker.format import (
    DlbsSchema,
    DogsSchema,
    ImagenetSchema,
    NvidiaSchema,
    RecordKeys,
    Schema,
    StoredSample,
    TfdsSchema,
    TinySchema,
    find_layout,
    recognise,
)
from stoker.types import Box, Features, SchemaInfo, StoredFormat

PRESETS: list[Schema] = [
    ImagenetSchema(label_base=1), NvidiaSchema(label_base=1), DlbsSchema(), TinySchema(), DogsSchema(), TfdsSchema(),
]  # fmt: skip
NAMES = ["imagenet", "imagenet-nvidia", "dlbs", "tiny-imagenet", "dogs-onehot", "tfds"]


def sample(label: int = 1, boxes: int = 1, stores: StoredFormat = "jpeg") -> StoredSample:
    return StoredSample(
        image=bytes(12),
        format=stores,
        width=2,
        height=2,
        order="HWC",
        filename=b"n01440764_1.JPEG",
        label=label,
        classes=3,
        class_name=b"n01440764" if label >= 0 else b"",
        class_text=b"tench" if label >= 0 else b"",
        boxes=[Box(0.0, 0.25, 0.5, 1.0)] * boxes,
    )


@each("schema", PRESETS)
@each("label", [0, 2])
@each("boxes", [0, 2])
def test_what_a_preset_writes_is_recognised(schema: Schema, label: int, boxes: int) -> None:
    written = schema.to_features(sample(label, boxes))
    info = schema.info(3)
    assert written.keys() == info.features.keys()
    for key, spec in info.features.items():
        kind, values = written[key]
        assert kind == spec.kind
        assert spec.length in (None, len(values))
    recognised = recognise(written)
    assert recognised is not None
    for field in ("preset", "image_key", "label_key", "filename_key", "label_encoding", "image_encoding"):
        assert getattr(recognised, field) == getattr(info, field), field
    assert recognised.label_base == 0  # nothing in a record says that its classes count from 1
    for field in ("height_key", "width_key", "order_key", "box_prefix"):
        assert getattr(recognised, field) == getattr(info, field), field


@pytest.mark.parametrize("schema", PRESETS, ids=NAMES)
def test_an_image_without_a_class(schema: Schema) -> None:
    written = schema.to_features(sample(-1))
    label = written[schema.info(3).label_key][1]
    assert label == ([0, 0, 0] if isinstance(schema, DogsSchema) else [-1])
    if isinstance(schema, TinySchema):
        assert written["label_one_hot"] == ("bytes", [bytes(3)])


def test_the_exact_values_of_the_original_layouts() -> None:
    assert NvidiaSchema().to_features(sample())["image/class/text"] == ("bytes", [b"n01440764"])
    assert ImagenetSchema(label_base=1).to_features(sample())["image/class/label"] == ("int64", [2])
    dlbs = DlbsSchema().to_features(sample(stores="raw"))
    assert (dlbs["image/class/label"], dlbs["image/format"]) == (("int64", [1]), ("bytes", [b"tensor"]))
    assert TinySchema().to_features(sample())["label_one_hot"] == ("bytes", [b"\0\1\0"])
    assert DogsSchema().to_features(sample())["label"] == ("int64", [0, 1, 0])


def known(features: Features) -> SchemaInfo:
    recognised = recognise(features)
    assert recognised is not None
    return recognised


def test_layouts_of_the_original_programs_that_no_preset_writes() -> None:
    raw = DlbsSchema().to_features(sample(stores="raw"))
    dlbs = known({key: feature for key, feature in raw.items() if key != "image/order"})
    assert (dlbs.preset, dlbs.image_encoding, dlbs.label_base) == ("dlbs", "raw", 0)
    step_2 = known({"label_one_hot": ("bytes", [b"\0\1"]), "image_raw": ("bytes", [bytes(12)])})
    assert (step_2.label_key, step_2.label_encoding, step_2.height_key) == ("label_one_hot", "one-hot", None)
    amazon = known(
        {
            "image/encoded": ("bytes", [b"x"]),
            "image/class/label": ("int64", [3]),
            "image/class/synset": ("bytes", [b"n"]),
        }
    )
    assert (amazon.preset, amazon.label_base, amazon.filename_key) == ("imagenet", 0, None)
    cats = known({"image": ("bytes", [b"x"]), "label": ("int64", [1]), "image/filename": ("bytes", [b"a.jpg"])})
    assert (cats.preset, cats.filename_key) == ("tfds", "image/filename")


@pytest.mark.parametrize(
    "features",
    [
        {},
        {"image": ("int64", [1] * 12), "label": ("int64", [0])},
        {"image": ("bytes", [b"x"]), "label": ("int64", [0, 1, 2])},
        {"image": ("bytes", [b"x"]), "label": ("float", [1.0])},
        {"jpg": ("bytes", [b"x"]), "cls": ("int64", [1])},
    ],
)
def test_other_layouts_are_unknown(features: Features) -> None:
    assert recognise(features) is None


def test_keys_that_a_person_names() -> None:
    features: Features = {
        "jpg": ("bytes", [b"x"]),
        "cls": ("int64", [0, 1]),
        "n": ("int64", [1]),
        "path": ("bytes", [b"a"]),
    }
    one_hot = find_layout(features, RecordKeys("jpg", "cls"), "here")
    assert (one_hot.label_encoding, one_hot.filename_key, one_hot.label_key) == ("one-hot", "path", "cls")
    number = find_layout(features, RecordKeys("jpg", "n", 1), "here")
    assert (number.label_encoding, number.label_base) == ("id", 1)
    assert find_layout(features, RecordKeys("jpg"), "here").label_key == ""


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (RecordKeys("n", "cls"), "no bytes under 'n'"),
        (RecordKeys("jpg", "label"), "no 'label'"),
        (RecordKeys("jpg", "f"), "'f' is of kind float"),
        (RecordKeys("jpg", "many"), "'many' is neither one number nor one-hot"),
        (RecordKeys(label="cls"), "no key is that of an image"),
        (None, "the layout of these records is unknown"),
    ],
)
def test_an_error_about_keys_names_those_there_are_and_what_to_type(keys: RecordKeys | None, problem: str) -> None:
    features: Features = {
        "jpg": ("bytes", [b"x"]),
        "cls": ("int64", [0, 1]),
        "many": ("int64", [3, 5]),
        "n": ("int64", [1]),
        "f": ("float", [1.0]),
    }
    with pytest.raises(ConfigError) as caught:
        find_layout(features, keys, "old/*.rec")
    message = str(caught.value)
    assert message.startswith(f"old/*.rec: {problem}")
    assert "holds cls (int64 x 2), f (float x 1), jpg (bytes x 1), many (int64 x 2), n (int64 x 1)" in message
    assert "--image-key KEY and --label-key KEY" in message
    both = keys is not None and None not in (keys.image, keys.label)
    assert ("if only this record lacks them, remove it" in message) == both


def test_a_label_key_alone_leaves_the_image_where_it_usually_is() -> None:
    pixels: Features = {"image_raw": ("bytes", [bytes(12)]), "n": ("int64", [1])}
    raw = find_layout(pixels, RecordKeys(label="n"), "here")
    assert (raw.image_key, raw.image_encoding, raw.label_key) == ("image_raw", "raw", "n")
    google: Features = {"image/encoded": ("bytes", [b"x"]), "n": ("int64", [1])}
    assert find_layout(google, RecordKeys(label="n", label_base=1), "here").label_base == 1
