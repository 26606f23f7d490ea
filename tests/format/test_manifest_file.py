"""manifest.json: round trip, JSON Schema, damage, newer versions."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from small_cases import each
from small_datasets import manifest_text
from stoker import fields
from stoker.errors import ManifestError, NewerManifestError
from stoker.format import ImagenetSchema
from stoker.format.directory import ListedFile
from stoker.format.manifest import (
    Manifest,
    Shard,
    SourceInfo,
    Split,
    format_manifest,
    parse_manifest,
    read_manifest,
    write_manifest,
)
from stoker.types import FeatureSpec, SchemaInfo

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.types import Field

MANIFEST = Manifest(
    stoker_version="0.1.0",
    schema=SchemaInfo(
        "imagenet",
        {"a": FeatureSpec("int64", 1), "b": FeatureSpec("float", None)},
        "i",
        "l",
        None,
        1,
        label_encoding="one-hot",
        image_encoding="raw",
        height_key="h",
        box_prefix="box/",
    ),
    recipe={"kind": "keep", "encode": "jpeg:100:444", "check": "header", "exif": "keep", "max_pixels": 9},
    seed=17,
    source=SourceInfo(7, 600, "0" * 32, {".xml": 2}),
    converted={"png": 1},
    annotation_errors=3,
    splits={
        "train": Split(6, 300, 1, (0, 2, 3), (Shard("a/train-0", 4, 200, 0xDEADBEEF), Shard("train-1", 2, 100, 7)), 1),
        "test": Split(0, 0, 0, (0, 0, 0), (), box_counts={0: 3, 12: 1}),
    },
    compression="gzip",
    shard_names="google",
    limit=6,
    files={"labels.txt": ListedFile(12, 0xABC), "rejects.jsonl": ListedFile(0, 0)},
)

_NEWER = {"shard_names", "limit"}  # fields that the first manifests did not have


def changed(**changes: Any) -> bytes:
    """The manifest's text with a field changed, by its path with __ for a step."""
    content = json.loads(format_manifest(MANIFEST))
    for path, value in changes.items():
        *steps, last = path.split("__")
        node = content
        for step in steps:
            node = node[int(step) if step.isdigit() else step]
        node[last] = value
    return manifest_text(content)


def test_round_trip_and_same_bytes(tmp_path: Path) -> None:
    write_manifest(tmp_path, MANIFEST)
    assert read_manifest(tmp_path) == MANIFEST
    assert format_manifest(read_manifest(tmp_path)) == (tmp_path / "manifest.json").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]
    assert (MANIFEST.records, MANIFEST.rejects) == (6, 1)


def test_the_schema_in_the_package_describes_it() -> None:
    schema = json.loads((files("stoker.format") / "manifest.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(json.loads(format_manifest(MANIFEST)))
    for bad in (
        changed(version=3),
        changed(version=1),
        changed(extra=1),
        changed(files={}),
        changed(files__more={"bytes": 1}),
        changed(seed=-1),
        changed(formats={"tiff": {"kept": 6}}),
        changed(splits__train__shards__0__crc32c="DEAD"),
    ):
        assert not validator.is_valid(json.loads(bad))


def test_the_dataset_id_is_the_documented_hash() -> None:
    text = "test\ntrain\na/train-0 4 200 deadbeef\ntrain-1 2 100 00000007\n"
    assert MANIFEST.dataset_id == hashlib.sha256(text.encode()).hexdigest()[:32]
    backwards = dataclasses.replace(MANIFEST, splits=dict(reversed(MANIFEST.splits.items())))
    assert backwards.dataset_id == MANIFEST.dataset_id


def test_a_newer_version_says_which_stoker_reads_it() -> None:
    problem = r"m.json was written by a newer Stoker \(format version 3, this one reads up to 2\): install "
    with pytest.raises(NewerManifestError, match=problem + r"Stoker >= 2\.0\.1"):
        parse_manifest(changed(version=3, stoker_version="2.0.1"), "m.json")
    with pytest.raises(NewerManifestError, match=problem + "a newer Stoker"):
        parse_manifest(changed(version=3, stoker_version="\x1b[31m"), "m.json")


FIELDS: dict[str, Field] = {
    "caption": fields.Text(),
    "mask": fields.Mask(16),
    "emb": fields.Array("float32", (None, 8), pad_to=4),
    "tags": fields.Labels(["caf\xe9", "b"]),
}
WITH_FIELDS = dataclasses.replace(MANIFEST, schema=ImagenetSchema(0, FIELDS).info(3))


def test_fields_are_in_the_manifest_and_come_back() -> None:
    text = format_manifest(WITH_FIELDS)
    assert parse_manifest(text, "m.json") == WITH_FIELDS
    assert format_manifest(parse_manifest(text, "m.json")) == text
    content = json.loads(text)
    assert content["schema"]["fields"] == {
        "caption": {"kind": "text"},
        "mask": {"kind": "mask", "bits": 16},
        "emb": {"kind": "array", "dtype": "float32", "shape": [None, 8], "pad_to": 4},
        "tags": {"kind": "labels", "names": ["caf\xe9", "b"]},
    }
    assert content["schema"]["features"]["mask/width"] == {"kind": "int64", "length": 1}
    assert "fields" not in json.loads(format_manifest(MANIFEST))["schema"]
    schema = json.loads((files("stoker.format") / "manifest.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(content)
    content["schema"]["fields"]["mask"]["bits"] = 12
    assert not validator.is_valid(content)


@each(
    ("there", "problem"),
    [
        (3, "schema.fields is 3, not an object"),
        ({"caption": 3}, r'schema.fields."caption" is not a field: the field 3 \(int\) is of no known kind'),
        ({"caption": {"kind": "video"}}, "is of no known kind; there are array, boxes,"),
        ({"caption": {"kind": []}}, "is of no known kind"),
        ({"caption": {"kind": "mask", "bits": True}}, r"a mask has 8 or 16 bits, not True \(bool\)"),
        ({"caption": {"kind": "array", "dtype": "float32"}}, "lacks its dtype or its shape"),
        ({"caption": {"kind": "array", "dtype": "float32", "shape": [10**30]}}, "side 0 of the shape"),
        ({"caption": {"kind": "array", "dtype": "float32", "shape": ["a"]}}, "side 0 of the shape"),
        ({"caption": {"kind": "labels", "names": [1]}}, "the name of a class is 1"),
        ({"caption": {"kind": "boxes"}}, "is boxes"),
        ({"x\x1b[31m": {"kind": "text"}}, "printable"),
        ({"image/encoded": {"kind": "bytes"}}, "among the keys of the image"),
        ({"other": {"kind": "text"}}, 'schema.fields."other" needs 1 bytes under "other", unlike the features'),
        ({"caption": {"kind": "int"}}, 'schema.fields."caption" needs 1 int64 under "caption", unlike the features'),
    ],
)
def test_fields_that_make_no_sense_are_a_damaged_manifest(there: object, problem: str) -> None:
    content = json.loads(format_manifest(WITH_FIELDS))
    content["schema"]["fields"] = there
    with pytest.raises(ManifestError, match=problem) as error:
        parse_manifest(manifest_text(content), "m.json")
    assert str(error.value).startswith("m.json: ")
    assert len(str(error.value)) < 500


def test_a_field_with_a_key_of_the_layout_is_a_damaged_manifest() -> None:
    content = json.loads(format_manifest(WITH_FIELDS))
    content["schema"]["filename_key"] = "caption"
    with pytest.raises(ManifestError, match=r'schema.fields."caption" has the key "caption" of the image'):
        parse_manifest(manifest_text(content), "m.json")


FILES = json.loads(format_manifest(MANIFEST))["files"]


@pytest.mark.parametrize("cut", [0, 1, 100, -3])
def test_a_damaged_file_is_named_with_line_and_byte(cut: int) -> None:
    with pytest.raises(ManifestError, match=r"m.json is damaged at line \d+, column \d+ \(byte \d+\)") as caught:
        parse_manifest(format_manifest(MANIFEST)[:cut], "m.json")
    assert caught.value.path == "m.json"
    assert caught.value.offset is not None


@each(
    ("text", "message"),
    [
        (b"[]", "is \\[\\], not an object"),
        (b"\xff\xfe{}", "damaged"),
        (b"[" * 100_000, "damaged"),
        (changed(format="other"), "not a Stoker dataset"),
        (changed(version=True), "version true is not of the type int"),
        (changed(seed=-1), "seed -1 is not a count"),
        (changed(splits__train__records=5), "train.records 5 is not the sum over the shards or classes, 6"),
        (changed(splits__train__bytes=6), "train.bytes 6 is not the sum"),
        (changed(splits__train__class_counts=[5, 1]), "is not the sum"),
        (changed(splits__train__class_counts=[5, -1, 1]), "not a count"),
        (changed(splits__train__box_counts={"1": -1}), "splits.train.box_counts.1"),
        (changed(splits__train__box_counts={"01": 1}), "which is not the id of a class"),
        (changed(splits__train__box_counts={"cat": 1}), 'has "cat", which is not the id of a class'),
        (changed(splits__train__box_counts=[1]), "splits.train.box_counts"),
        (changed(splits__train__shards__0__name="../../etc/passwd"), "not the name of a file below"),
        (changed(splits__train__shards__0__name="/etc/passwd"), "not the name of a file below"),
        (changed(splits__train__shards__0__name=""), "not the name of a file below"),
        (changed(compression="lzma"), "not one of none, gzip, zlib"),
        (changed(schema__image_encoding="png"), "not one of jpeg, raw"),
        (changed(schema__height_key=7), "height_key 7 is not of the type str"),
        (changed(splits__train__shards__0__crc32c="xyz"), "8 hex digits"),
        (changed(splits__train__shards__0__crc32c="00000000"), "dataset_id .* is not that of the shards"),
        (changed(splits__train__shards="x"), "train.shards \"x\" is not of the type list"),
        (changed(schema__features__a__kind="str"), "is not one of bytes, int64, float"),
        (changed(source=None), "source is null, not an object"),
        (format_manifest(MANIFEST).replace(b'"seed": 17', b'"seed": ' + b"1" * 5000), "damaged: Exceeds the limit"),
        (changed(splits__train__shards__0__name="\ud800"), "not the name of a file below"),
        (changed(formats=3), "formats is 3, not an object"),
        (changed(formats={"jpeg": 3}), "formats.jpeg is 3, not an object"),
        (changed(formats={"jpeg": {"kept": -1}}), "formats.jpeg.kept -1 is not a count"),
        (changed(encoders={"Pillow": 13}), "encoders.Pillow 13 is not of the type str"),
        (changed(files=[]), r"files is \[\], not an object"),
        (changed(files={"labels.txt": {"bytes": 0, "crc32c": "00000000"}}), "does not list rejects.jsonl"),
        (changed(files__labels=3), "files.labels is 3, not an object"),
        (changed(files={**FILES, "a/b": FILES["labels.txt"]}), 'lists "a/b", which is not the name of a file beside'),
        (changed(files={**FILES, "..": FILES["labels.txt"]}), r'lists "\.\.", which is not the name of a file beside'),
        (changed(files={**FILES, "x": {"bytes": 1}}), "files.x.crc32c null is not of the type str"),
        (changed(files={**FILES, "x": {"bytes": -1, "crc32c": "00000000"}}), "files.x.bytes -1 is not a count"),
        (changed(splits={"\ud800": json.loads(format_manifest(MANIFEST))["splits"]["train"]}), "which is not text"),
    ],
)  # fmt: skip
def test_every_field_is_checked(text: bytes, message: str) -> None:
    with pytest.raises(ManifestError, match=message):
        parse_manifest(text, "m.json")


def _without_checksum(**changes: Any) -> dict[str, Any]:
    content = json.loads(format_manifest(MANIFEST)) | changes
    return {key: value for key, value in content.items() if key != "checksum"}


TEXT = format_manifest(MANIFEST)
CHANGED = {
    "a changed number": TEXT.replace(b'"seed": 17', b'"seed": 71'),
    "a version that needs no checksum": TEXT.replace(b'"version": 2', b'"version": 1'),
    "that version, with the checksum that it does not need": changed(version=1),
    "that version without a checksum": json.dumps(_without_checksum(version=1), indent=1).encode() + b"\n",
    "a newer version": TEXT.replace(b'"version": 2', b'"version": 3'),
    "no checksum": json.dumps(_without_checksum(), indent=1).encode() + b"\n",
    "another checksum": TEXT[:-68] + b"0" * 64 + TEXT[-4:],
    "a blank behind it": TEXT + b" ",
    "a line behind it": TEXT + b"\n",
    "no line end": TEXT[:-1],
    "other line ends": TEXT.replace(b"\n", b"\r\n"),
    "another layout": json.dumps(json.loads(TEXT), indent=2).encode() + b"\n",
    "a field behind the checksum": TEXT[:-3] + b',\n "more": 1\n}\n',
    "a checksum inside": changed(recipe__checksum="0" * 64).replace(b'"kind": "keep"', b'"kind": "heap"'),
}


@each("case", CHANGED)
def test_a_changed_manifest_is_refused(case: str) -> None:
    problem = r"^m\.json was changed or damaged after the build: .*; restore it, or build"
    with pytest.raises(ManifestError, match=problem):
        parse_manifest(CHANGED[case], "m.json")


def test_any_changed_byte_is_refused() -> None:
    for at in range(len(TEXT)):
        for other in {TEXT[at] ^ 1, TEXT[at] ^ 0x20, ord("1"), ord(" ")} - {TEXT[at]}:
            with pytest.raises(ManifestError):
                parse_manifest(TEXT[:at] + bytes([other]) + TEXT[at + 1 :], "m.json")


def test_the_checksum_is_the_documented_one() -> None:
    lines, checksum, end = TEXT.rsplit(b"\n", 3)[:3]
    assert (checksum, end) == (b' "checksum": "%b"' % hashlib.sha256(lines + b"\n").hexdigest().encode(), b"}")


def test_every_field_is_needed() -> None:
    content = json.loads(format_manifest(MANIFEST))
    for key in content.keys() - _NEWER:
        rest = {name: value for name, value in content.items() if name != key}
        with pytest.raises(ManifestError, match=key):
            parse_manifest(json.dumps(rest).encode() if key == "checksum" else manifest_text(rest), "m.json")
    for key in ("preset", "features", "image_key", "label_key", "filename_key", "label_base"):
        schema = {name: value for name, value in content["schema"].items() if name != key}
        with pytest.raises(ManifestError, match=f"schema.{key}"):
            parse_manifest(changed(schema=schema), "m.json")


def test_a_manifest_of_the_first_version_is_read_as_it_was_meant() -> None:
    content = json.loads(format_manifest(MANIFEST))
    for key in (*_NEWER, "files", "checksum"):
        del content[key]
    content["version"] = 1
    for key in ("label_encoding", "image_encoding", "height_key", "width_key", "order_key", "box_prefix"):
        del content["schema"][key]
    for split in content["splits"].values():
        split["class_counts"][0] += split.pop("unlabelled")
    read = parse_manifest(json.dumps(content).encode(), "m.json")
    assert (read.shard_names, read.limit, read.splits["train"].unlabelled) == ("default", None, 0)
    assert (read.version, read.files) == (1, {})
    assert "files" not in json.loads(format_manifest(read))
    assert read.schema == SchemaInfo("imagenet", MANIFEST.schema.features, "i", "l", None, 1)


def test_a_file_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "manifest.json").open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(ManifestError, match="not a manifest"):
        read_manifest(tmp_path)
