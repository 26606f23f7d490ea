"""`stoker.open` of records of a program: the samples of their files, of their build, and of the library they are of."""

from __future__ import annotations

import io
import pickle
import re
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

import stoker
from loader.resuming import check_resume
from reference import pictures
from stoker import fields
from stoker.errors import BadSampleWarning, ConfigError, ExampleError, ImageError, SourceError, SourceWarning
from written_files import write_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Record = dict[str, Any]
COUNT = 24
CROP = stoker.RandomResizedCrop(24, hflip=0.5)


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """Return records with paths, in no order of their labels."""
    folder = tmp_path_factory.mktemp("photos")
    random = np.random.default_rng(7)
    records = []
    for number in range(COUNT):
        height, width = 40 + number, 60
        path = folder / f"{number:03}.{'jpg' if number % 3 else 'png'}"
        Image.fromarray(random.integers(0, 255, (height, width, 3), np.uint8)).save(path)
        mask = np.zeros((height, width), np.uint8)
        mask[:number, 10:] = number
        boxes = [{"xmin": 0.125, "ymin": 0.25, "xmax": 0.5, "ymax": 0.75, "label": number % 2}] * (number % 3)
        records.append(
            {"image": str(path), "label": ["dog", "cat"][number % 2], "mask": mask, "caption": f"no. {number}"}
            | {"boxes": boxes}
        )
    return records


FIELDS = {
    "image": fields.Image(),
    "label": fields.Label(["cat", "dog"]),
    "mask": fields.Mask(),
    "caption": fields.Text(),
    "boxes": fields.Boxes(),
}


class Lazy:
    """What people subclass ``torch.utils.data.Dataset`` for: an image is decoded when its record is asked for."""

    def __init__(self, records: list[Record]) -> None:
        self.records = records

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, position: int) -> Record:
        record = self.records[position]
        return record | {"image": Image.open(record["image"]).convert("RGB")}


def _read(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123 - of text
        return file.read()


FORMS: dict[str, Callable[[list[Record]], Any]] = {
    "bytes": lambda records: [record | {"image": _read(record["image"])} for record in records],
    "PIL": lambda records: tuple(record | {"image": Image.open(record["image"])} for record in records),
    "arrays": lambda records: [record | {"image": np.asarray(Image.open(record["image"]))} for record in records],
    "bytes and paths": lambda records: [
        record | {"image": _read(record["image"]) if number % 2 else record["image"]}
        for number, record in enumerate(records)
    ],
    "lazily": Lazy,
    "splits": lambda records: {"test": records[:3], "train": records},
}


def _batches(dataset: stoker.Dataset | stoker.Mix, **settings: Any) -> list[Any]:
    settings = {"transform": CROP, "shuffle": True, "seed": 5, "threads": 2} | settings
    boxes = stoker.BoxOutput(pad_to=2)
    with stoker.Loader(dataset, 5, boxes=boxes, fields=["mask", "caption"], **settings) as loader:
        return list(loader)


def _assert_equal(batches: list[Any], others: list[Any]) -> None:
    assert len(batches) == len(others)
    for batch, other in zip(batches, others, strict=True):
        for name in ("images", "labels", "indices"):
            np.testing.assert_array_equal(getattr(batch, name), getattr(other, name))
        np.testing.assert_array_equal(batch.boxes.corners, other.boxes.corners)
        np.testing.assert_array_equal(batch.fields["mask"], other.fields["mask"])
        assert batch.fields["caption"] == other.fields["caption"]


@pytest.fixture(scope="module")
def expected(records: list[Record], tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Return the batches of files, which are those of a build; its records come in an order of their own."""
    opened = stoker.open(records, fields=FIELDS)
    built = tmp_path_factory.mktemp("built")
    stoker.build(records, built, fields=FIELDS, progress=False, shards=1, overwrite=True)
    stored = {sample.fields["caption"]: sample for sample in map(stoker.open(built).__getitem__, range(COUNT))}
    for sample in map(opened.__getitem__, range(COUNT)):
        other = stored[sample.fields["caption"]]
        assert (sample.encoded, sample.label, sample.boxes) == (other.encoded, other.label, other.boxes)
        np.testing.assert_array_equal(sample.fields["mask"], other.fields["mask"])
    names = [
        {sample.fields["caption"] for sample in map(part.__getitem__, range(len(part)))}
        for dataset in (opened, stoker.open(built))
        for part in dataset.random_split([0.7, 0.3])
    ]
    assert names[:2] == names[2:]
    return _batches(opened)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_an_image_gives_the_same_batches(records: list[Record], expected: list[Any], form: str) -> None:
    dataset = stoker.open(FORMS[form](records), "train" if form == "splits" else None, fields=FIELDS)
    assert [known.name for known in dataset.classes] == ["cat", "dog"]
    assert [sample.label for sample in map(dataset.__getitem__, range(COUNT))] == [1, 0] * (COUNT // 2)
    _assert_equal(_batches(dataset), expected)
    _assert_equal(_batches(dataset, cache=stoker.MemoryCache("20MB", keep="decoded")), expected)
    if form != "PIL":  # whose files cannot be pickled
        _assert_equal(_batches(pickle.loads(pickle.dumps(dataset))), expected)


def test_a_run_goes_on_but_not_with_other_records(records: list[Record]) -> None:
    dataset = stoker.open(FORMS["arrays"](records), fields=FIELDS)
    check_resume(dataset, [(1, 5), (2, 3)], transform=CROP, fields=["mask", "caption"])
    changed = stoker.open(FORMS["arrays"](records[::-1]), fields=FIELDS)
    with stoker.Loader(dataset, 5, transform=CROP) as loader:
        state = loader.state_dict()
    with stoker.Loader(changed, 5, transform=CROP) as loader, pytest.raises(ConfigError, match="dataset"):
        loader.load_state_dict(state)


def test_a_mix_of_records_and_a_folder(records: list[Record], tmp_path: Path) -> None:
    grey = pictures.encode(Image.new("RGB", (30, 30), (9, 9, 9)), format="PNG")
    write_files(tmp_path, {"cat/a.png": grey, "dog/a.png": grey})
    parts = [stoker.open(FORMS[form](records), fields=FIELDS) for form in ("arrays", "bytes")]
    mixed = stoker.mix([*parts, stoker.open(tmp_path)])
    with stoker.Loader(mixed, 10, transform=stoker.CenterCrop(20), threads=2) as loader:
        images = np.concatenate([batch.images for batch in loader])
    assert len(images) == 2 * COUNT + 2
    plain = stoker.Loader(parts[0], COUNT, transform=stoker.CenterCrop(20))
    expected = [*map(bytes, next(iter(plain)).images)] * 2 + [np.full((20, 20, 3), 9, np.uint8).tobytes()] * 2
    assert sorted(map(bytes, images)) == sorted(expected)


def test_torch_workers_decode_records(records: list[Record]) -> None:
    import torch  # noqa: PLC0415 - slow

    dataset = stoker.torch.MapDataset(stoker.open(FORMS["arrays"](records), fields=FIELDS), stoker.CenterCrop(20))
    loaders = [torch.utils.data.DataLoader(dataset, 6, num_workers=workers) for workers in (0, 2)]
    plain, forked = ([images for images, _ in loader] for loader in loaders)
    assert all(torch.equal(*pair) for pair in zip(plain, forked, strict=True))


def test_a_dataset_of_hugging_face_is_as_its_own_library_reads_it(records: list[Record]) -> None:
    import datasets  # noqa: PLC0415 - slow

    features = datasets.Features(
        {
            "image": datasets.Image(),
            "label": datasets.ClassLabel(names=["dog", "cat"]),
            "tags": datasets.Sequence(datasets.ClassLabel(names=["x", "y", "z"])),
            "words": datasets.Sequence(datasets.Value("string")),
            "numbers": datasets.Sequence(datasets.Value("float32"), length=2),
        }
    )
    columns: dict[str, Any] = {
        "image": [record["image"] for record in records],
        "label": [number % 2 for number in range(COUNT)],
        "tags": [[number % 3] * (number % 4) for number in range(COUNT)],
        "words": [["a"] * (number % 3) for number in range(COUNT)],
        "numbers": [[number, 0.5] for number in range(COUNT)],
    }
    of_paths = datasets.Dataset.from_dict(columns, features=features)
    columns["image"] = [{"bytes": _read(record["image"]), "path": "a.jpg"} for record in records]
    of_bytes = datasets.Dataset.from_dict(columns, features=features).shuffle(seed=3)
    for given in (of_paths, of_bytes, of_bytes.select(range(4, 12)), of_bytes.with_transform(lambda rows: rows)):
        dataset = stoker.open(datasets.DatasetDict({"train": given, "test": of_paths}), "train")
        assert [known.name for known in dataset.classes] == ["dog", "cat"]
        names = ["tags", "words", "numbers"]
        settings = {"tags": fields.Labels(["x", "y", "z"], pad_to=4), "words": dataset.fields["words"]}
        assert list(dataset.fields) == names
        with stoker.Loader(dataset, len(given), transform=stoker.TopLeft((40, 60)), fields=settings) as loader:
            batch = next(iter(loader))
        for row, record in enumerate(given):
            sample = dataset[row]
            pixels = np.asarray(record["image"].convert("RGB"))
            np.testing.assert_array_equal(sample.decode(), pixels)
            np.testing.assert_array_equal(batch.images[row], pixels[:40])
            assert batch.labels[row] == sample.label == record["label"]
            assert batch.fields["words"][row] == sample.fields["words"] == record["words"]
            assert sample.fields["tags"].tolist() == record["tags"]
            assert sample.fields["numbers"].tolist() == record["numbers"]


def test_labels_of_torchvision_are_read_without_an_image() -> None:
    class Pairs:
        classes = ("a", "b")
        targets = (0, 1, 1)
        asked: list[int] = []  # noqa: RUF012 - of this test

        def __len__(self) -> int:
            return 3

        def __getitem__(self, position: int) -> tuple[Image.Image, int]:
            self.asked.append(position)
            return Image.new("L", (9, 8), position), self.targets[position]

    dataset = stoker.open(Pairs())
    assert dataset.labels.tolist() == [0, 1, 1]
    batch = next(iter(stoker.Loader(dataset, 3, transform=stoker.TopLeft((8, 9)))))
    assert batch.images[:, 0, 0, 0].tolist() == [0, 1, 2]


def test_modes_and_sixteen_bits() -> None:
    deep = np.arange(0, 60000, 1000, np.uint16).reshape(6, 10)
    for mode, channels in (("I;16", 1), ("RGBA", 4), ("L", 1), ("RGB", 3)):
        dataset = stoker.open([{"image": deep}], mode=mode)
        batch = next(iter(stoker.Loader(dataset, 1, transform=stoker.TopLeft((6, 10)))))
        np.testing.assert_array_equal(batch.images[0], dataset[0].decode())
        assert batch.images.shape[-1] == channels
    np.testing.assert_array_equal(stoker.open([{"image": deep}], mode="I;16")[0].decode()[:, :, 0], deep)


def test_bad_records_are_bad_samples_and_bad_classes_are_refused(records: list[Record]) -> None:
    for bad in (b"no image", np.zeros((2, 2), np.float64), None):
        given = [*FORMS["arrays"](records)[:4], {**records[0], "image": bad}]
        dataset = stoker.open(given, fields=FIELDS)
        with (
            stoker.Loader(dataset, 5, transform=CROP) as loader,
            pytest.raises((ImageError, OSError), match="the source/4"),
        ):
            next(iter(loader))
        with stoker.Loader(dataset, 5, transform=CROP, on_bad="substitute") as loader, pytest.warns(match="sample"):
            assert [len(batch.images) for batch in loader] == [5]
    with pytest.raises(SourceError, match=re.escape("1 of 3 records of the source have no class that is right")):
        stoker.open([{"image": b"", "label": label} for label in (0, 1.5, None)])
    missing = [records[0], {**records[1], "image": "gone.jpg"}]
    with pytest.warns(SourceWarning, match=r"1 of the 2 records of train .* 'gone.jpg'"):
        dataset = stoker.open(missing)
    with pytest.raises(OSError, match=r"gone\.jpg"):
        next(iter(stoker.Loader(dataset, 2, transform=CROP)))


def test_what_has_no_meaning_for_records_is_refused(records: list[Record], tmp_path: Path) -> None:
    for source, settings, message in (
        (iter(records), {}, "open a list of them, or build them first"),
        (records, {"labels": "imagenet"}, "labels has no effect where the source is records"),
        (tmp_path, {"fields": FIELDS}, "fields has no effect"),
        ({"train": records, "test": records}, {}, "the source has the splits test, train"),
    ):
        with pytest.raises(ConfigError, match=message):
            stoker.open(source, **settings)
    cache = stoker.NodeCache(tmp_path / "cache", "1MB")
    with pytest.raises(ConfigError, match="NodeCache keeps files"):
        stoker.Loader(stoker.open(FORMS["bytes"](records)), 2, transform=CROP, cache=cache)


def test_bytes_that_look_like_a_token_are_no_image() -> None:
    secret = io.BytesIO(b"\0stoker\0" + bytes(24)).getvalue()
    with warnings.catch_warnings(), pytest.raises(ImageError):
        next(iter(stoker.Loader(stoker.open([{"image": secret}]), 1, transform=CROP)))


def test_boxes_of_other_classes_have_the_names_of_their_build(records: list[Record], tmp_path: Path) -> None:
    chosen = FIELDS | {"boxes": fields.Boxes(["leg", "wing"])}
    opened = stoker.open(records, fields=chosen)
    stoker.build(records, tmp_path, fields=chosen)
    assert opened.schema.box_names == stoker.open(tmp_path).schema.box_names == ("leg", "wing")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([True, False], "'label' is a field (int), and there are no classes; class ids are whole numbers from 0"),
        ([0.5, 1.0], "'label' is a field (float), and there are no classes"),
        ([["a"], ["a", "b"]], "'label' is a field (json), and there are no classes; class ids"),
        ([[0, 1], [1, 0]], "several of an image are stoker.fields.Labels"),
        ([-1, 1], "class ids run from 0 to 1, and these have no records: 0; -1 is no class"),
        ([0, 2], "class ids run from 0 to 2, and these have no records: 1; -1 is no class"),
        ([0, 1], None),
        (["a", "b"], None),
    ],
)
def test_labels_that_are_no_classes_are_told(labels: list[Any], message: str | None) -> None:
    pixels = np.zeros((4, 4, 3), np.uint8)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stoker.open([{"image": pixels, "label": label} for label in labels])
    told = [str(warning.message) for warning in caught]
    assert not told if message is None else any(message in text for text in told)


def test_an_open_file_is_answered_with_what_to_give() -> None:
    with pytest.raises(ConfigError, match=re.escape("give what it holds, .read(), or leave it out")):
        stoker.open([{"image": io.BytesIO(b"")}])


def test_arrays_that_are_no_images_are_answered_with_what_to_give() -> None:
    message = "give array.transpose(1, 2, 0); of values from 0 to 1, give (array * 255).round().astype('uint8')"
    with pytest.raises(ImageError, match=re.escape(message)):
        stoker.open([{"image": np.zeros((3, 8, 8), np.float32)}])[0].decode()


def test_a_function_of_datasets_that_takes_pixels_has_them(records: list[Record]) -> None:
    import datasets  # noqa: PLC0415 - slow

    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    paths = [record["image"] for record in records]
    hub = datasets.Dataset.from_dict({"image": paths, "label": [number % 2 for number in range(COUNT)]}, features)

    def smaller(rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
        return {**rows, "image": [image.convert("RGB").resize((8, 6)) for image in rows["image"]]}

    opened = stoker.open(hub.with_transform(smaller))
    wanted = [np.asarray(Image.open(path).convert("RGB").resize((8, 6))) for path in paths]
    assert all(np.array_equal(sample.decode(), pixels) for sample, pixels in zip(opened, wanted, strict=True))
    assert opened.labels.tolist() == [number % 2 for number in range(COUNT)]


@pytest.mark.parametrize("transform", [stoker.Resize(20), stoker.ObjectCrops(20)], ids=str)
def test_damaged_boxes_are_bad_samples_of_loaders_that_want_boxes(transform: Any) -> None:
    good, pixels = [0.1, 0.1, 0.5, 0.6], [10, 10, 50, 60]
    every: list[list[list[float]]] = [[], [pixels, good], [good]]
    opened = stoker.open(
        [{"image": np.full((100, 100, 3), number, np.uint8), "boxes": boxes} for number, boxes in enumerate(every)]
    )
    settings: Any = {"transform": transform, "boxes": stoker.BoxOutput()}
    message = "the source/1: field 'boxes': the box 10, 10, 50, 60 is not xmin < xmax"
    with stoker.Loader(opened, 3, **settings) as loader, pytest.raises(ExampleError, match=message):
        list(loader)
    loader = stoker.Loader(opened, 3, **settings, on_bad="substitute", seed=1)
    with loader, pytest.warns(BadSampleWarning, match="1 bad sample"):
        (batch,) = loader
    assert (batch.images[1] != 1).all()
    assert [sample.index for sample in loader.bad_samples.samples] == [1]
    with stoker.Loader(opened, 3, transform=stoker.Resize(20)) as loader:
        assert next(iter(loader)).images[:, 0, 0, 0].tolist() == [0, 1, 2]
    with pytest.raises(SourceError, match="the source/1: field 'boxes'"):
        opened[1]
