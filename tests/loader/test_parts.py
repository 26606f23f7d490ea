"""Parts of a dataset: which samples they have, and that everything takes them as it takes the whole."""

from __future__ import annotations

import multiprocessing
import pickle
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import stoker
from loader.resuming import check_resume
from loader.shards import boxes, image, write_annotated, write_shards
from reference import parts as twin
from reference import pictures, transform
from stoker.cli.main import main
from stoker.errors import ConfigError
from written_files import flip_bit, write_files

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = 30
VALIDATION = [12, 15, 18]
FOLDS = [
    [0, 3, 5, 9, 11, 15, 19, 20, 21, 22],
    [1, 7, 12, 13, 17, 27, 29],
    [2, 4, 6, 8, 10, 14, 16, 18, 23, 24, 25, 26, 28],
]
TRANSFORM = stoker.RandomResizedCrop(12, hflip=0.5)


def write_classes(root: Path, classes: dict[str, int]) -> stoker.Dataset:
    """Write so many images of each class; those of a number are the same in all."""
    images = {f"{name}/{at}.jpg": pictures.jpeg(30, 20 + at % 9, at) for name in classes for at in range(classes[name])}
    return stoker.open(write_files(root, images))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> stoker.Dataset:
    return write_classes(tmp_path_factory.mktemp("files"), dict.fromkeys(("ant", "bee", "cat"), 4))


@pytest.mark.parametrize(
    "index",
    [
        slice(None, 7), slice(3, -2), slice(None, None, 2), slice(None, None, -1), slice(20, 2, -3), slice(5, 5),
        [5, 3, 7], [-1, 0], np.array([4, 9, 2], np.uint8), np.arange(RECORDS) % 7 == 3, [],
    ],
    ids=str,
)  # fmt: skip
def test_indexing_chooses_what_numpy_chooses(train: stoker.Dataset, index: Any) -> None:
    expected = np.arange(RECORDS)[np.asarray(index, np.int64) if isinstance(index, list) else index]
    part = train[index]
    assert list(part.numbers) == expected.tolist()
    assert len(part) == len(expected)
    assert part.labels.tolist() == train.labels[expected].tolist()
    assert part.sample_bytes.tolist() == train.sample_bytes[expected].tolist()
    assert [part[at].index for at in range(len(part))] == expected.tolist()
    if len(part):
        assert (part[-1].index, part[0].source) == (expected[-1], f"picture-{expected[0]}.JPEG")
    with pytest.raises(IndexError, match=f"there is no sample {len(part)}; this part of split train of .* has"):
        part[len(part)]


def test_a_part_of_a_part_is_a_part_of_the_whole(train: stoker.Dataset) -> None:
    part = train[20::-3][[4, 0, 2]]
    assert list(part.numbers) == [8, 20, 14]
    assert part.whole is train
    assert list(part[::2].numbers) == [8, 14]
    assert train[[8, 11, 14]].numbers == range(8, 15, 3)  # in no memory, and the same as the slice
    assert train[[8, 11, 14]].identity == train[8:15:3].identity != train[8:16:4].identity
    assert train[:].identity == train.identity
    assert repr(part).endswith("3 of 30 samples in 2 shards>")


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        ([0, 30], IndexError, "there is no sample 30; split train of .* has 30"),
        ([-31], IndexError, "there is no sample -31"),
        (np.array([2**64 - 1], np.uint64), IndexError, "there is no sample 18446744073709551615"),
        ([True, False], IndexError, "2 booleans for the 30 samples of split train of"),
        ([1.5], TypeError, "a list of integers or of booleans, not by float64 of shape"),
        ([[1, 2]], TypeError, "not by int64 of shape"),
        ([3, 5, -27], ConfigError, "sample 3 of split train of .* is chosen twice.*sampling=stoker.Weighted"),
    ],
)
def test_wrong_indexes_are_refused(train: stoker.Dataset, index: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        train[index]


def test_shards_are_the_dataset(train: stoker.Dataset) -> None:
    parts = [train.shard(number, 4) for number in range(4)]
    assert [len(part) for part in parts] == [7, 8, 7, 8]
    assert [number for part in parts for number in part.numbers] == list(range(RECORDS))
    with pytest.raises(ConfigError, match="index is 4; it must be"):
        train.shard(4, 4)


def test_filters(train: stoker.Dataset, files: stoker.Dataset) -> None:
    assert list(train.filter(lambda sample: sample.source.endswith("7.JPEG")).numbers) == [7, 17, 27]
    assert list(train.filter(labels=[3, 30, 99]).numbers) == [2, 29]
    bees = files.filter(labels=["bee"])
    assert (bees.labels.tolist(), len(bees.classes)) == ([1] * 4, 3)
    assert list(files.filter(lambda sample: sample.source.endswith("0.jpg"), labels=["cat", 0]).numbers) == [0, 8]
    with pytest.raises(ConfigError, match="no class named 'dog'"):
        files.filter(labels=["dog"])
    unlabelled = files[files.labels == 0].filter(labels=[0])
    unlabelled._labels = np.full(len(unlabelled), -1)
    for choose in (lambda: unlabelled.filter(labels=[0]), lambda: unlabelled.per_class(2)):
        with pytest.raises(ConfigError, match=r"no sample of .* has a label; of boxes use filter\(lambda"):
            choose()
    with pytest.raises(ConfigError, match=r"give a list .* labels=\['bee'\]"):
        files.filter(labels="bee")
    with pytest.raises(ConfigError, match="needs a condition"):
        files.filter()


@pytest.mark.parametrize("shuffle", [True, False, stoker.BlockShuffle(2, 2)], ids=str)
def test_a_loader_reads_the_part_with_the_pixels_of_the_whole(train: stoker.Dataset, shuffle: Any) -> None:
    part = train[25:3:-2]
    with stoker.Loader(part, 4, shuffle, transform=TRANSFORM, seed=5) as loader:
        assert len(loader) == 3
        seen: list[int] = []
        for batch in loader:
            for pixels, label, index in zip(batch.images, batch.labels.tolist(), batch.indices.tolist(), strict=True):
                assert label == index + 1
                draws = transform.Draws(5, 0, index)
                assert (pixels == transform.show(pictures.rgb(image(index)), TRANSFORM, draws)).all()
                seen.append(index)
    assert sorted(seen) == sorted(part.numbers)
    assert (seen == list(part.numbers)) == (shuffle is False)


def test_objects_of_a_part_have_the_numbers_of_the_whole(tmp_path: Path) -> None:
    whole = stoker.open(write_annotated(tmp_path / "train-00000-of-00001", 9))
    part = whole[[7, 2, 4, 3]]
    counts = [max(1, len(boxes(i))) for i in range(9)]
    expected = [sum(counts[:i]) + n for i in (7, 2, 4, 3) for n in range(counts[i])]
    settings: Any = {"batch_size": 4, "transform": stoker.ObjectCrops(12)}
    assert part.object_counts.tolist() == [len(boxes(i)) for i in (7, 2, 4, 3)]
    with stoker.Loader(whole, **settings) as loader:
        pixels = {int(i): image.tobytes() for b in loader for i, image in zip(b.indices, b.images, strict=True)}
    with stoker.Loader(part, **settings) as loader:
        objects = [(int(i), image.tobytes()) for b in loader for i, image in zip(b.indices, b.images, strict=True)]
    assert [index for index, _ in objects] == expected
    assert all(pixels[index] == crop for index, crop in objects)
    assert check_resume(part, [(1, 2), (2, 1)], transform=stoker.ObjectCrops(12)).size == len(expected)


def test_states_are_those_of_one_part(train: stoker.Dataset) -> None:
    settings: Any = {"batch_size": 4, "transform": TRANSFORM, "shuffle": True}
    with (
        stoker.Loader(train, **settings) as all_,
        stoker.Loader(train[:20], **settings) as first,
        stoker.Loader(train[[*range(19), 20]], **settings) as second,
        stoker.Loader(train[list(range(20))], **settings) as equal,
    ):
        equal.load_state_dict(first.state_dict())
        for other in (all_, second):
            with pytest.raises(ConfigError, match="the state is for dataset"):
                other.load_state_dict(first.state_dict())
    assert check_resume(train[::2], [(1, 3), (2, 2)]).size == 15


def numbers_of(part: stoker.Dataset, results: Any) -> None:
    with stoker.Loader(part, 4, transform=TRANSFORM) as loader:
        results.put([index for batch in loader for index in batch.indices.tolist()])


@pytest.mark.timeout(180)
@pytest.mark.slow
def test_a_part_is_opened_again_in_another_process(train: stoker.Dataset, tmp_path: Path) -> None:
    part = train[[7, 2, 20]]
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    child = context.Process(target=numbers_of, args=(part, results))
    child.start()
    assert results.get(timeout=120) == [7, 2, 20]
    child.join(60)
    again = pickle.loads(pickle.dumps(train[3:9]))
    assert (again.numbers, again.identity) == (range(3, 9), train[3:9].identity)
    with stoker.Loader(part, 2, transform=TRANSFORM) as loader, pickle.loads(pickle.dumps(loader)) as other:
        assert [b.indices.tolist() for b in other] == [[7, 2], [20]]


def test_caches_are_shared_with_the_whole(train: stoker.Dataset, tmp_path: Path) -> None:
    for cache in (stoker.MemoryCache("4MB"), stoker.NodeCache(tmp_path / "cache", "16MB")):
        for dataset in (train[:10], train[5:20], train):
            with stoker.Loader(dataset, 5, transform=TRANSFORM, cache=cache) as loader:
                list(loader)
        stats = cache.stats()
        assert (stats.hits, stats.misses) == (5 + 20, 30)


def test_parts_are_mixed_and_numbered_in_their_wholes(train: stoker.Dataset, files: stoker.Dataset) -> None:
    mixed = stoker.mix([train[[5, 3]], train[10:12], files[::4]], label_offsets=[0, 0, 0])
    with stoker.Loader(mixed, 7, transform=TRANSFORM) as loader:
        batch = next(iter(loader))
    assert sorted(batch.indices.tolist()) == [3, 5, 40, 41, 60, 64, 68]
    by_index = dict(zip(batch.indices.tolist(), batch.labels.tolist(), strict=True))
    assert [by_index[index] for index in (3, 5, 40, 41, 60, 64, 68)] == [4, 6, 11, 12, 0, 1, 2]


def test_samples_of_a_part_by_number_in_pytorch(train: stoker.Dataset) -> None:
    mapped = stoker.torch.MapDataset(train[20:10:-3], TRANSFORM)
    assert [mapped[i][1] for i in range(len(mapped))] == [21, 18, 15, 12]


def test_substitutes_are_of_the_part(tmp_path: Path) -> None:
    write_shards(tmp_path, 12, 1, bad={3: b"no image"})
    part = stoker.open(tmp_path)[2:5]
    with stoker.Loader(part, 3, transform=TRANSFORM, on_bad="substitute", seed=0) as loader:
        with pytest.warns(stoker.errors.BadSampleWarning):
            (batch,) = loader
        assert loader.bad_samples.samples[0].index == 3
    assert set(batch.indices.tolist()) <= {2, 4}


def test_the_doctor_takes_a_part(files: stoker.Dataset) -> None:
    with stoker.Loader(files[[1, 5, 9, 10]], 2, transform=TRANSFORM) as loader:
        with stoker.doctor(loader, quiet=True) as doctor:
            list(loader)
            list(loader)
        assert "4 of 12" in repr(loader)
    assert doctor.report.evidence.files.loose


def test_an_empty_part_is_refused_by_a_loader(train: stoker.Dataset) -> None:
    with pytest.raises(ConfigError, match=r"this part of split train of .* has no samples"):
        stoker.Loader(train[5:5], 2, transform=TRANSFORM)


def by_name(dataset: stoker.Dataset, seed: int, depth: int = 0) -> dict[str, int]:
    """What the twin draws for each sample, by its name."""
    classes = [known.name.encode() for known in dataset.classes]
    drawn = {}
    for number in dataset.numbers:
        sample = dataset.whole[int(number)]
        label = sample.label
        class_name = classes[label] if classes else b"%d" % label
        name = sample.source.rpartition("/")[2].encode()
        drawn[sample.source] = twin.draw(name, class_name, seed, depth)
    return drawn


def names(dataset: stoker.Dataset) -> list[str]:
    return [dataset[index].source for index in range(len(dataset))]


@pytest.mark.parametrize("seed", [0, 2**63 + 5])
def test_random_parts_equal_their_twin(train: stoker.Dataset, files: stoker.Dataset, seed: int) -> None:
    shares = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]
    for dataset in (train, train[25:3:-1], files):
        draws = by_name(dataset, seed)
        for number, part in enumerate(dataset.random_split([0.5, 0.25, 0.25], seed=seed)):
            assert names(part) == [name for name in names(dataset) if twin.part_of(draws[name], shares) == number]
        fifths = [Fraction(1, 3)] * 3
        for number, (rest, validation) in enumerate(dataset.folds(3, seed=seed)):
            assert names(validation) == [name for name in draws if twin.part_of(draws[name], fifths) == number]
            assert sorted([*rest.numbers, *validation.numbers]) == sorted(dataset.numbers)
    draws = by_name(files, seed)
    two = [name for label in range(3) for name in sorted(names(files)[4 * label : 4 * label + 4], key=draws.get)[:2]]
    assert names(files.per_class(2, seed=seed)) == [name for name in names(files) if name in two]


def test_samples_that_share_a_name_are_told_apart_by_their_images(tmp_path: Path) -> None:
    images = {f"room/s{number}/rgb.jpg": pictures.jpeg(16, 12, number) for number in range(24)}
    images |= {f"room/{copy}/rgb.jpg": images["room/s5/rgb.jpg"] for copy in ("t0", "t1")}  # these stay with that one
    write_files(tmp_path / "photos", images | {"room/own.jpg": pictures.jpeg(16, 12, 99)})
    assert main(["build", str(tmp_path / "photos"), str(tmp_path / "built"), "--quiet"]) == 0
    both = stoker.open(tmp_path / "photos"), stoker.open(tmp_path / "built")
    first_parts = []
    for dataset in both:
        samples = [dataset[number] for number in range(len(dataset))]
        images = [sample.encoded if sample.source.endswith("rgb.jpg") else None for sample in samples]
        names = [sample.source.rpartition("/")[2].encode() for sample in samples]
        draws = [twin.draw(name, b"room", 3, image=image) for name, image in zip(names, images, strict=True)]
        shares = [Fraction(1, 2)] * 2
        parts = dataset.random_split([0.5, 0.5], seed=3)
        for number, part in enumerate(parts):
            assert list(part.numbers) == [n for n, draw in enumerate(draws) if twin.part_of(draw, shares) == number]
        assert min(map(len, parts)) >= 6  # of 27
        first_parts.append({dataset[int(number)].encoded for number in parts[0].numbers})
        # What shares its name with none in a part is drawn by the name alone.
        pair = dataset[[names.index(b"own.jpg"), names.index(b"rgb.jpg")]]
        assert pair._draws(3).tolist() == [twin.draw(name, b"room", 3) for name in (b"own.jpg", b"rgb.jpg")]
    assert first_parts[0] == first_parts[1]


def test_random_parts_never_change(train: stoker.Dataset) -> None:
    # A model that was trained on one part is validated on the other, years later.
    assert list(train.random_split([0.8, 0.2], seed=17)[1].numbers) == VALIDATION
    assert [list(part.numbers) for _, part in train.folds(3)] == FOLDS


def test_samples_stay_in_their_part(tmp_path: Path) -> None:
    few = write_classes(tmp_path / "few", {"bee": 30, "cat": 20})
    more = write_classes(tmp_path / "more", {"ant": 10, "bee": 40, "cat": 25, "dog": 3})
    assert main(["build", str(tmp_path / "more"), str(tmp_path / "built"), "--quiet"]) == 0
    built = stoker.open(tmp_path / "built", "train")

    def validation(dataset: stoker.Dataset) -> set[tuple[str, str]]:
        part = dataset.random_split([0.7, 0.3], seed=4)[1]
        samples = [part[index] for index in range(len(part))]
        return {(part.classes[sample.label].name, sample.source.rpartition("/")[2]) for sample in samples}

    old = {(name, f"{n}.jpg") for name, count in (("bee", 30), ("cat", 20)) for n in range(count)}
    assert validation(more) == validation(built)
    assert validation(more) & old == validation(few)
    assert 8 <= len(validation(few)) <= 22  # of 50; 15 are expected
    bees, cats = ({name for owner, name in validation(few) if owner == class_name} for class_name in ("bee", "cat"))
    assert bees & {f"{n}.jpg" for n in range(20)} != cats  # the same names in other classes are drawn for themselves


def test_a_part_is_divided_independently(tmp_path: Path) -> None:
    whole = stoker.open(write_files(tmp_path, {f"ant/{number}.jpg": pictures.jpeg(8, 8, 0) for number in range(200)}))
    train, _ = whole.random_split([0.5, 0.5])
    again = [len(part) for part in train.random_split([0.5, 0.5])]
    assert min(again) > 30  # with the same numbers one would be empty
    assert min(len(part) for _, part in train.folds(2)) > 30
    few = whole.per_class(50)
    assert min(len(part) for part in few.random_split([0.5, 0.5])) > 10
    pickled = pickle.loads(pickle.dumps(train))
    first, same = (part.random_split([0.5, 0.5], seed=1)[0] for part in (train, pickled))
    assert list(same.numbers) == list(first.numbers)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: d.random_split([0.5, 0.4]), r"fractions is \[0.5, 0.4\]; give numbers above 0 whose sum is 1"),
        (lambda d: d.random_split([1.5, -0.5]), "give numbers above 0"),
        (lambda d: d.random_split([]), "give numbers above 0"),
        (lambda d: d.folds(1), "count is 1; it must be"),
        (
            lambda d: d.folds(40),
            "of 40 parts of split train of .* would have no sample: it has 30 samples, 30 of them different",
        ),
        (lambda d: d.folds(3, seed=-1), "seed is -1"),
        (lambda d: d.per_class(0), "count is 0"),
    ],
)
def test_wrong_divisions_are_refused(train: stoker.Dataset, call: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        call(train)


def test_labels_of_a_part_are_read_alone(tmp_path: Path) -> None:
    (damaged,) = write_shards(tmp_path, 8, 1)
    flip_bit(damaged, -5)
    dataset = stoker.open(tmp_path)
    assert dataset[6::-2].labels.tolist() == [7, 5, 3, 1]
    assert [len(part) for part in dataset[:7].folds(2)[0]] == [4, 3]
    with pytest.raises(stoker.errors.ShardError, match="record 7"):
        _ = dataset.labels


def test_fields_are_those_of_the_samples(tmp_path: Path) -> None:
    records = [
        {
            "image": pictures.jpeg(16, 12, number),
            "label": number % 3,
            "caption": f"caption {number}",
            "weight": number / 2,
        }
        for number in range(20)
    ]
    stoker.build(records, tmp_path / "built", progress=False)
    whole = stoker.open(tmp_path / "built")
    settings: Any = {"transform": stoker.CenterCrop(8, 8), "fields": ["caption", "weight"]}
    part = whole[15:2:-3]
    for sampling in (None, stoker.Balanced(12)):
        with stoker.Loader(part, 4, sampling=sampling, **settings) as loader:
            for batch in loader:
                samples = [whole[index] for index in batch.indices.tolist()]
                assert batch.fields["caption"] == [sample.fields["caption"] for sample in samples]
                assert batch.fields["weight"].tolist() == [sample.fields["weight"] for sample in samples]
