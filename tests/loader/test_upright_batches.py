"""`stoker.open(..., exif="apply")`: batches and samples are those of the same images stored upright by Pillow."""

from __future__ import annotations

import io
import pickle
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image, ImageOps

import stoker
from loader.shards import payload
from reference import example, pictures, tfrecord
from stoker import fields
from stoker.errors import ConfigError, SourceWarning
from written_files import write_files

if TYPE_CHECKING:
    from pathlib import Path

SIDES = [(40, 27), (33, 50)]
BOXES = [(3, 2, 17, 12), (0, 0, 33, 27), (20, 15, 33, 27)]  # in pixels of what is stored
KINDS: dict[str, dict[str, Any]] = {
    "jpeg": {"format": "JPEG", "quality": 85},
    "progressive": {"format": "JPEG", "progressive": True},
    "png": {"format": "PNG"},
    "webp": {"format": "WEBP", "quality": 70},
    "avif": {"format": "AVIF", "quality": 80, "speed": 10},
}
CROPS = stoker.RandomResizedCrop(20, hflip=0.5)


def tags(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[274] = orientation
    return exif


def photo(number: int, kind: str = "jpeg") -> bytes:
    picture = Image.fromarray(pictures.pixels(*SIDES[number % 2], number))
    return pictures.encode(picture, **KINDS[kind], exif=tags(number % 8 + 1))


def by_pillow(data: bytes) -> Image.Image:
    return ImageOps.exif_transpose(Image.open(io.BytesIO(data)))


def turned_like(data: bytes, plane: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A plane beside an image, turned by Pillow as that is."""
    with Image.open(io.BytesIO(data)) as opened:
        exif = {"exif": tags(opened.getexif().get(274, 1))}
    return np.array(by_pillow(pictures.encode(Image.fromarray(plane), format="PNG", **exif)))


def write_folders(root: Path, kind: str) -> tuple[Path, Path]:
    """Photographs in every orientation, and the same stored upright."""
    for number in range(16):
        data = photo(number, kind)
        for name, content in (("stored", data), ("upright", pictures.encode(by_pillow(data), format="PNG"))):
            write_files(root, {f"{name}/cat/{number:02d}.jpg": content})
    return root / "stored", root / "upright"


def batches(dataset: stoker.Dataset, transform: Any = CROPS, epochs: int = 1, **settings: Any) -> list[Any]:
    settings = {"shuffle": True, "seed": 3, "threads": 3, **settings}
    with stoker.Loader(dataset, 5, transform=transform, **settings) as loader:
        return [batch for _ in range(epochs) for batch in loader]


def assert_same(ours: list[Any], theirs: list[Any]) -> None:
    assert len(ours) == len(theirs) > 0
    for batch, other in zip(ours, theirs, strict=True):
        several = isinstance(batch.images, tuple)
        pairs = zip(batch.images, other.images, strict=True) if several else [(batch.images, other.images)]
        assert all((a == b).all() for a, b in pairs)
        assert (batch.labels == other.labels).all()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_images_of_every_orientation(kind: str, tmp_path: Path) -> None:
    stored, upright = write_folders(tmp_path, kind)
    ours, theirs = stoker.open(stored, exif="apply"), stoker.open(upright)
    crops = stoker.MultiCrop(CROPS, stoker.CenterCrop(16, 18), stoker.Resize((9, 30), filter="nearest"))
    assert_same(batches(ours, crops), batches(theirs, crops))
    for sample, twin in zip(ours, theirs, strict=True):
        assert (sample.decode() == twin.decode()).all()
    cache = stoker.MemoryCache("10MB", keep="decoded")
    assert_same(batches(ours, epochs=2, cache=cache), batches(theirs, epochs=2))
    assert cache.stats().hits == 16
    assert_same(batches(stoker.open(stored), cache=cache), batches(stoker.open(stored)))  # of which it has none
    assert_same(batches(ours, cache=cache), batches(theirs))


@pytest.mark.parametrize("mode", ["L", "RGBA"])
def test_in_other_modes_and_of_shards_that_keep_the_files(mode: Any, tmp_path: Path) -> None:
    stored, upright = write_folders(tmp_path, "jpeg")
    for name, source, settings in (("built", stored, {}), ("twin", upright, {}), ("turned", stored, {"exif": "apply"})):
        stoker.build(source, tmp_path / name, shards=2, encode="png" if name == "turned" else None, **settings)
    ours = stoker.open(tmp_path / "built", exif="apply", mode=mode)
    assert [sample.format for sample in ours] == ["jpeg"] * 16
    twin = batches(stoker.open(tmp_path / "twin", mode=mode))
    assert_same(batches(ours), twin)
    assert_same(batches(stoker.open(tmp_path / "turned", mode=mode)), twin)


def test_tfrecords_of_other_origin(tmp_path: Path) -> None:
    for name in ("stored", "upright"):
        images = [photo(number) for number in range(16)]
        images = images if name == "stored" else [pictures.encode(by_pillow(data), format="PNG") for data in images]
        frames = [tfrecord.frame(payload(number, data)) for number, data in enumerate(images)]
        write_files(tmp_path, {f"{name}/train-00000-of-00001": b"".join(frames)})
    assert_same(batches(stoker.open(tmp_path / "stored", exif="apply")), batches(stoker.open(tmp_path / "upright")))


def annotated(kind: str, *, upright: bool) -> list[dict[str, Any]]:
    """Records with boxes, a mask and a second image, as they are stored or turned by Pillow, each for itself."""
    records = []
    for number in range(16):
        data, (width, height) = photo(number, kind), SIDES[number % 2]
        planes = np.zeros((len(BOXES) + 1, height, width), np.uint8)
        for plane, (left, top, right, bottom) in zip(planes, BOXES, strict=False):
            plane[top:bottom, left:right] = 1
        planes[-1] = pictures.pixels(width, height, number + 50)[:, :, 0]
        other = pictures.encode(Image.fromarray(planes[-1]), format="PNG", exif=tags(number % 8 + 1))
        if upright:
            planes = np.stack([turned_like(data, plane) for plane in planes])
            data, other = (pictures.encode(by_pillow(file), format="PNG") for file in (data, other))
        size = np.array(planes.shape[:0:-1] * 2)
        pixels = map(np.argwhere, planes.swapaxes(1, 2)[:-1])
        boxes = [np.concatenate([at.min(0), at.max(0) + 1]) / size for at in pixels]
        records.append({"image": data, "label": number, "boxes": boxes, "mask": planes[-1], "depth": other})
    return records


FIELDS = {
    "image": fields.Image(),
    "boxes": fields.Boxes(),
    "label": fields.Label(),
    "mask": fields.Mask(),
    "depth": fields.Image(),
}


def as_foreign(built: Path, images: list[bytes], folder: Path) -> None:
    """Records of a dataset with other images, as somebody else's: a build stores anew what Pillow decodes."""
    frames = []
    [shard] = stoker.open(built).shards
    for record in tfrecord.scan(shard.local_path.read_bytes(), check=False):
        features = example.parse(record.payload)
        number = features["image/class/label"][1][0]
        features["image/encoded"] = ("bytes", [images[number]])
        frames.append(tfrecord.frame(example.write(features)))
    folder.mkdir()
    (folder / "train-00000-of-00001").write_bytes(b"".join(frames))


@pytest.mark.parametrize("kind", ["jpeg", "avif"])
def test_boxes_masks_and_objects_are_turned_with_their_image(kind: str, tmp_path: Path) -> None:
    for upright, name in enumerate(("stored", "upright")):
        stoker.build(annotated(kind, upright=bool(upright)), tmp_path / name, fields=FIELDS, shards=1)
    wanted: dict[str, Any] = {"boxes": stoker.BoxOutput(), "fields": {name: FIELDS[name] for name in ("mask", "depth")}}
    stored = tmp_path / "stored"
    if kind == "avif":
        as_foreign(stored, [photo(number, kind) for number in range(16)], tmp_path / "foreign")
        stored = tmp_path / "foreign"
    ours, theirs = stoker.open(stored, exif="apply"), stoker.open(tmp_path / "upright")
    for sample, twin in zip(ours, theirs, strict=True):
        assert (sample.decode() == twin.decode()).all()
        edges = [[(box.xmin, box.ymin, box.xmax, box.ymax) for box in each.boxes] for each in (sample, twin)]
        np.testing.assert_allclose(*edges, atol=1e-6)
        for name in ours.fields:
            assert (sample.field(name) == twin.field(name)).all()
    for settings in ({}, {"cache": stoker.MemoryCache("10MB", keep="decoded")}):
        pairs = zip(batches(ours, epochs=2, **wanted, **settings), batches(theirs, epochs=2, **wanted), strict=True)
        for batch, other in pairs:
            assert (batch.images == other.images).all()
            assert all((batch.fields[name] == other.fields[name]).all() for name in wanted["fields"])
            np.testing.assert_allclose(batch.boxes.corners, other.boxes.corners, atol=1e-4)
            assert (batch.boxes.offsets == other.boxes.offsets).all()
            assert (batch.boxes.objects == other.boxes.objects).all()
    objects = stoker.ObjectCrops(20, hflip=0.5)
    assert_same(batches(ours, objects), batches(theirs, objects))


def test_records_of_a_program(tmp_path: Path) -> None:
    """Files, and bytes that are there."""
    records = annotated("jpeg", upright=False)
    for number, record in enumerate(records):
        if number % 3 == 0:
            (tmp_path / f"{number}.jpg").write_bytes(record["image"])
            record["image"] = str(tmp_path / f"{number}.jpg")
    named = {name: FIELDS[name] for name in ("image", "boxes", "label", "mask")}
    ours = stoker.open(records, exif="apply", fields=named)
    theirs = stoker.open(annotated("jpeg", upright=True), fields=named)
    wanted: dict[str, Any] = {"boxes": stoker.BoxOutput(), "fields": ["mask"]}
    for batch, other in zip(batches(ours, **wanted), batches(theirs, **wanted), strict=True):
        assert (batch.images == other.images).all()
        assert (batch.fields["mask"] == other.fields["mask"]).all()
        np.testing.assert_allclose(batch.boxes.corners, other.boxes.corners, atol=1e-4)
    assert (ours[5].decode() == theirs[5].decode()).all()


def test_it_stays_with_a_dataset_and_its_parts(tmp_path: Path) -> None:
    stored, upright = write_folders(tmp_path, "jpeg")
    ours, kept = stoker.open(stored, exif="apply"), stoker.open(stored)
    again = pickle.loads(pickle.dumps(ours[3:12]))
    assert (again.exif, ours[2].exif, kept.exif) == ("apply", "apply", None)
    assert_same(batches(again), batches(stoker.open(upright)[3:12]))
    assert "exif='apply'" in repr(ours)
    assert "exif" not in repr(kept)
    with pytest.raises(ConfigError, match="open all with the same exif="):
        stoker.mix([ours, kept])
    mixed = stoker.mix([ours, ours], label_offsets=[0, 1])
    twin = stoker.mix([stoker.open(upright)] * 2, label_offsets=[0, 1])
    assert mixed.exif == "apply"
    assert_same(batches(mixed), batches(twin))
    assert stoker.mix([kept, stoker.open(stored, exif="keep")]).exif == "keep"
    with pytest.raises(ConfigError, match="exif is 'turn'; it must be 'keep' or 'apply'"):
        stoker.open(stored, exif="turn")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"stoker\.open\(path, exif='apply'"):
        stoker.Loader(kept, 5, transform=CROPS, exif="apply")  # type: ignore[call-arg]


@pytest.mark.parametrize("exif", ["keep", "apply"])
def test_nothing_is_warned_of_where_exif_is_given(exif: Any, tmp_path: Path) -> None:
    stored, _ = write_folders(tmp_path, "jpeg")
    with warnings.catch_warnings():
        warnings.simplefilter("error", SourceWarning)
        batches(stoker.open(stored, exif=exif))
