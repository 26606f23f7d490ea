"""The layout of records is found from the records: those that are written, and those of the original programs."""

from __future__ import annotations

import pytest

from stoker.format import (
    DlbsSchema,
    DogsSchema,
    ImagenetSchema,
    NvidiaSchema,
    Schema,
    StoredSample,
    TfdsSchema,
    TinySchema,
    from_keys,
    recognise,
)
from stoker.types import Box, Features, SchemaInfo

PRESETS: list[Schema] = [
    ImagenetSchema(label_base=1),
    NvidiaSchema(label_base=1),
    DlbsSchema(),
    TinySchema(),
    DogsSchema(),
    TfdsSchema(),
]
NAMES = ["imagenet", "imagenet-nvidia", "dlbs", "tiny-imagenet", "dogs-onehot", "tfds"]


def sample(label: int = 1, boxes: int = 1) -> StoredSample:
    return StoredSample(
        image=bytes(12),
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


@pytest.mark.parametrize("schema", PRESETS, ids=NAMES)
@pytest.mark.parametrize("label", [0, 2])
@pytest.mark.parametrize("boxes", [0, 2])
def test_what_a_preset_writes_is_recognised(schema: Schema, label: int, boxes: int) -> None:
    written = schema.to_features(sample(label, boxes))
    info = schema.info(3)
    assert written.keys() == info.features.keys()
    for key, spec in info.features.items():
        kind, values = written[key]
        assert kind == spec.kind
        assert spec.length in (None, len(values))
    found = recognise(written)
    assert found is not None
    for field in ("preset", "image_key", "label_key", "filename_key", "label_base", "label_encoding", "image_encoding"):
        assert getattr(found, field) == getattr(info, field), field
    for field in ("height_key", "width_key", "order_key", "box_prefix"):
        assert getattr(found, field) == getattr(info, field), field


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
    dlbs = DlbsSchema().to_features(sample())
    assert (dlbs["image/class/label"], dlbs["image/format"]) == (("int64", [1]), ("bytes", [b"tensor"]))
    assert TinySchema().to_features(sample())["label_one_hot"] == ("bytes", [b"\0\1\0"])
    assert DogsSchema().to_features(sample())["label"] == ("int64", [0, 1, 0])


def known(features: Features) -> SchemaInfo:
    found = recognise(features)
    assert found is not None
    return found


def test_layouts_of_the_original_programs_that_no_preset_writes() -> None:
    dlbs = known({key: feature for key, feature in DlbsSchema().to_features(sample()).items() if key != "image/order"})
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
    assert (amazon.preset, amazon.label_base, amazon.filename_key) == ("imagenet", 1, None)
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
    one_hot = from_keys(features, "jpg", "cls", 0)
    assert isinstance(one_hot, SchemaInfo)
    assert (one_hot.label_encoding, one_hot.filename_key, one_hot.label_key) == ("one-hot", "path", "cls")
    number = from_keys(features, "jpg", "n", 1)
    assert isinstance(number, SchemaInfo)
    assert (number.label_encoding, number.label_base) == ("id", 1)
    unlabelled = from_keys(features, "jpg", None, 0)
    assert isinstance(unlabelled, SchemaInfo)
    assert unlabelled.label_key == ""
    assert from_keys(features, "n", "cls", 0) == "no bytes under 'n'"
    assert from_keys(features, "jpg", "label", 0) == "no 'label'"
