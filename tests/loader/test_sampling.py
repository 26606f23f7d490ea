"""Weighted and balanced epochs: as defined, in the proportions asked for, exact on any topology."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker
from loader.resuming import check_resume
from loader.shards import boxes, image, write_annotated
from reference import example, pictures, tfrecord, transform
from reference import sampling as twin
from stoker.errors import BadSampleWarning, ConfigError
from stoker.loader.epochs import Images
from stoker.loader.sampling import Sampled, whole_numbers
from written_files import write_files

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.loader.sampling import Sampling

CLASSES = {"ant": 2, "bee": 11, "cat": 5}
LABELS = [label for label, count in enumerate(CLASSES.values()) for _ in range(count)]
COUNT = len(LABELS)
GOLDEN = {
    "balanced": [6, 1, 1, 14, 0, 0, 4, 15, 14, 16, 12, 1, 5, 15, 17, 0, 11, 5],
    "balanced, drawn": [4, 0, 13, 15, 6, 10, 13, 1, 14, 15, 15, 1, 14, 9, 1, 0, 15, 1],
    "classes": [1, 10, 6, 0, 0, 1, 0, 1, 0, 6, 0, 1],
    "samples": [6, 3, 4, 1, 14, 4, 15, 5, 17, 13, 3, 2, 7, 11, 8, 14, 12, 9],
    "samples, drawn": [12, 4, 13, 17, 11, 8, 14, 4, 17, 14, 14, 1],
}
TRANSFORM = stoker.RandomResizedCrop(8, hflip=0.5)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> stoker.Dataset:
    names = [[*CLASSES][label] for label in LABELS]
    images = {f"{name}/{number:02d}.jpg": image(6 * number) for number, name in enumerate(names)}
    return stoker.open(write_files(tmp_path_factory.mktemp("files"), images))


def sampled(dataset: stoker.Dataset, sampling: Sampling, seed: int) -> Sampled:
    return Sampled(Images(dataset, shuffle=False, seed=seed), dataset, sampling, seed)


def epoch_of(samples: Sampled, epoch: int) -> list[int]:
    slots = samples.order(epoch).take(0, samples.size)
    return [int(index) for index in samples.locate(slots, epoch).indices]


weight_lists = st.lists(st.floats(0, 1e6) | st.just(0.0), min_size=COUNT, max_size=COUNT).filter(any)
seeds = st.integers(0, 2**64 - 1)
sizes = st.integers(1, 60)


@settings(max_examples=30)
@given(weight_lists, sizes, seeds, seeds)
def test_weighted_samples_equal_their_twin(files: stoker.Dataset, weights: Any, size: int, seed: int, epoch: int):
    whole = twin.whole(weights)
    assert whole_numbers(weights).tolist() == whole
    order = epoch_of(sampled(files, stoker.Weighted(weights, size), seed), epoch)
    slots = twin.spread(whole, size, seed, epoch)
    assert order == twin.shuffled(slots, seed, epoch)
    for sample, weight in enumerate(whole):
        share = size * weight // sum(whole)
        assert share <= slots.count(sample) <= share + (size * weight % sum(whole) > 0)
    order = epoch_of(sampled(files, stoker.Weighted(weights, size, replacement=True), seed), epoch)
    assert order == [sample for sample, _ in twin.drawn(whole, [1] * COUNT, size, seed, epoch)]


@settings(max_examples=30)
@given(st.tuples(*[st.floats(0.5, 2)] * 3), st.integers(40, 90), seeds, seeds)
def test_weighted_classes_equal_their_twin(files: stoker.Dataset, weights: Any, size: int, seed: int, epoch: int):
    by_name = dict(zip(("ant", 1, "cat"), weights, strict=True))
    whole = twin.whole(weights)
    order = epoch_of(sampled(files, stoker.Weighted(by_name, size), seed), epoch)
    assert order == twin.shuffled(twin.in_turn(LABELS, whole, size, seed, epoch), seed, epoch)
    assert Counter(LABELS[sample] for sample in order) == dict(enumerate(twin.shares(whole, size)))
    order = epoch_of(sampled(files, stoker.Weighted(by_name, size, replacement=True), seed), epoch)
    starts = [0, 2, 13]
    counts = list(CLASSES.values())
    assert order == [starts[c] + member for c, member in twin.drawn(whole, counts, size, seed, epoch)]


def test_orders_never_change(files: stoker.Dataset) -> None:
    # Resuming a run from an older version depends on these.
    weights = [1 + number % 5 for number in range(COUNT)]
    orders = {
        "balanced": epoch_of(sampled(files, stoker.Balanced(), 17), 3),
        "balanced, drawn": epoch_of(sampled(files, stoker.Balanced(replacement=True), 17), 3),
        "classes": epoch_of(sampled(files, stoker.Weighted({"ant": 3, "bee": 1, "cat": 0}, 12), 17), 3),
        "samples": epoch_of(sampled(files, stoker.Weighted(weights), 17), 3),
        "samples, drawn": epoch_of(sampled(files, stoker.Weighted(weights, 12, replacement=True), 17), 3),
    }
    assert orders == GOLDEN


def test_every_class_has_its_share_and_every_sample_its_turn(files: stoker.Dataset) -> None:
    samples = sampled(files, stoker.Balanced(20), 5)
    seen: Counter[int] = Counter()
    for epoch in range(33):
        numbers = epoch_of(samples, epoch)
        assert sorted(Counter(LABELS[number] for number in numbers).values()) == [6, 7, 7]
        seen += Counter(numbers)
        for label in range(3):  # no sample comes twice more often than another of its class
            own = [seen[number] for number in range(COUNT) if LABELS[number] == label]
            assert max(own) - min(own) <= 1
    first, second = (epoch_of(samples, epoch) for epoch in (0, 1))
    assert [LABELS[number] for number in first] != [LABELS[number] for number in second]


def chi_square(counts: Counter[int], expected: dict[int, float]) -> float:
    return sum((counts[key] - mean) ** 2 / mean for key, mean in expected.items())


def test_drawn_proportions_are_as_asked_for(files: stoker.Dataset) -> None:
    size = 200_000
    weights = np.arange(COUNT) % 4 + 0.5
    counts = Counter(epoch_of(sampled(files, stoker.Weighted(weights, size, replacement=True), 1), 0))
    assert chi_square(counts, dict(enumerate(size * weights / weights.sum()))) < 41  # 17 degrees: 1 in 1000 is above
    counts = Counter(epoch_of(sampled(files, stoker.Balanced(size, replacement=True), 1), 0))
    balanced = {number: size / 3 / list(CLASSES.values())[LABELS[number]] for number in range(COUNT)}
    assert chi_square(counts, balanced) < 41
    # What a share leaves open, the offset of each epoch decides: over many epochs every sample has its weight.
    samples = sampled(files, stoker.Weighted(weights, 7), 1)
    counts = Counter(number for epoch in range(20_000) for number in epoch_of(samples, epoch))
    assert chi_square(counts, dict(enumerate(140_000 * weights / weights.sum()))) < 41


def test_samples_with_shares_up_to_one_come_at_most_once(files: stoker.Dataset) -> None:
    samples = sampled(files, stoker.Weighted([2.0] * 9 + [1.0] * 9, 13), 3)
    for epoch in range(50):
        assert max(Counter(epoch_of(samples, epoch)).values()) == 1


def test_any_two_samples_come_together(files: stoker.Dataset) -> None:
    """With room for half of the samples, any two are together in 8/34 of the epochs, whichever their numbers are."""
    samples = sampled(files, stoker.Weighted([1.0] * COUNT, COUNT // 2), 3)
    together = np.zeros((COUNT, COUNT))
    for epoch in range(400):
        chosen = np.bincount(epoch_of(samples, epoch), minlength=COUNT)
        assert chosen.max() == 1
        together += np.outer(chosen, chosen)
    pairs = together[~np.eye(COUNT, dtype=bool)]
    assert pairs.min() > 50  # 94 on average, with a deviation of 8.5
    assert pairs.max() < 140


SAMPLINGS: list[Sampling] = [
    stoker.Balanced(26),
    stoker.Balanced(26, replacement=True),
    stoker.Weighted({"ant": 2, "bee": 1, "cat": 1}, 26),
    stoker.Weighted(np.arange(COUNT), 26),
    stoker.Weighted(np.arange(COUNT), 26, replacement=True),
]


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=repr)
def test_a_run_goes_on_with_another_topology(files: stoker.Dataset, sampling: Sampling) -> None:
    assert check_resume(files, [(1, 5), (3, 3)], sampling=sampling).size == 26


def test_pixels_of_repeated_samples_differ(files: stoker.Dataset) -> None:
    with stoker.Loader(files, 12, transform=TRANSFORM, sampling=stoker.Weighted([1] + [0] * 17, 12), seed=4) as loader:
        (batch,) = loader
    assert batch.indices.tolist() == [0] * 12
    assert len({pixels.tobytes() for pixels in batch.images}) > 6
    for pixels, slot in zip(batch.images, twin.shuffled(list(range(12)), 4, 0), strict=True):
        assert (pixels == transform.show(pictures.rgb(image(0)), TRANSFORM, transform.Draws(4, 0, slot))).all()


def test_parts_objects_and_substitutes(files: stoker.Dataset, tmp_path: Path) -> None:
    part = files[[0, 5, 6, 17]]
    with stoker.Loader(part, 6, transform=TRANSFORM, sampling=stoker.Balanced(6)) as loader:
        (batch,) = loader
    assert Counter(batch.labels.tolist()) == {0: 2, 1: 2, 2: 2}
    assert set(batch.indices.tolist()) == {0, 5, 6, 17}
    annotated = stoker.open(write_annotated(tmp_path / "train-00000-of-00001", 8))
    counts = [max(1, len(boxes(i))) for i in range(8)]
    settings: Any = {"transform": stoker.ObjectCrops(8), "sampling": stoker.Balanced(16, replacement=False)}
    with stoker.Loader(annotated, 16, **settings) as loader:
        (batch,) = loader
    assert Counter(batch.labels.tolist()) == {i + 1: 2 for i in range(8)}  # however many objects an image has
    owners = np.repeat(np.arange(8), counts)
    assert (owners[batch.indices.astype(int)] + 1 == batch.labels).all()
    bad = write_files(tmp_path / "bad", {"ant/0.jpg": image(0), "bee/0.jpg": b"no image"})
    sampling = stoker.Weighted({"ant": 3, "bee": 1}, 4)
    with (
        stoker.Loader(
            stoker.open(bad), 4, transform=TRANSFORM, sampling=sampling, on_bad="substitute", seed=0
        ) as loader,
        pytest.warns(BadSampleWarning),
    ):
        (batch,) = loader
    assert batch.indices.tolist() == [0] * 4


def test_every_loader_takes_a_sampling(files: stoker.Dataset) -> None:
    settings: Any = {"transform": TRANSFORM, "sampling": stoker.Balanced(9), "seed": 2}
    with stoker.Loader(files, 9, **settings) as loader:
        (batch,) = loader
        expected = batch.indices.tolist()
        state = loader.state_dict(batch.position)
        assert "sampling=Balanced(samples=9" in repr(loader)
        with pickle.loads(pickle.dumps(loader)) as other:
            other.set_epoch(0)
            assert next(iter(other)).indices.tolist() == expected
    with stoker.torch.DataLoader(files, 9, **settings) as torch_loader:
        assert next(iter(torch_loader)).indices.tolist() == expected
        assert type(torch_loader.sampler).__name__ == "_Epochs"  # not one that trainers take for sequential
    with stoker.jax.batches(files, 9, **settings) as batches:
        assert next(batches)["indices"].tolist() == expected
    elements = stoker.tensorflow.dataset(files, 9, elements=["indices", "position"], **settings)
    ((indices, position),) = elements
    assert indices.numpy().tolist() == expected
    assert stoker.tensorflow.state_at(position, files, **settings) == state


def test_states_belong_to_one_sampling(files: stoker.Dataset) -> None:
    each = [None, *SAMPLINGS, stoker.Balanced(25), stoker.Weighted(np.arange(COUNT) + 1, 26)]
    loaders = [stoker.Loader(files, 2, transform=TRANSFORM, shuffle=True, sampling=sampling) for sampling in each]
    for loader in loaders:
        for other in loaders:
            if loader is not other:
                with pytest.raises(ConfigError, match="the state is for shuffle"):
                    other.load_state_dict(loader.state_dict())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: stoker.Weighted([1, 2, -1]), "weight 2 is -1.0; weights are numbers of at least 0"),
        (lambda: stoker.Weighted([float("nan"), 1]), "weight 0 is nan"),
        (lambda: stoker.Weighted([0, 0]), "all weights are 0"),
        (lambda: stoker.Weighted([]), "weights is an array of float64, shape"),
        (lambda: stoker.Weighted("cat"), "give one number for each sample"),
        (lambda: stoker.Weighted({"cat": 1, "dog": -1}), "weight 1 is -1.0"),
        (lambda: stoker.Balanced(0), "samples is 0"),
        (lambda: stoker.Weighted([1, 2]), "2 weights for 18 samples"),
        (lambda: stoker.Weighted({"ant": 1, "bee": 1}), r"class 2 \('cat'\) has samples and no weight"),
        (lambda: stoker.Weighted({"ant": 1, 0: 1, "bee": 1, "cat": 1}), "class 0 has two weights"),
        (lambda: stoker.Weighted({0: 1, 1: 1, 2: 1, 7: 1}), "class 7 has a weight and no sample"),
        (lambda: stoker.Weighted({"ant": 1, "bee": 1, "cat": 1, "owl": 1}), "no class named 'owl'"),
        (lambda: stoker.Balanced(2), "class 2 would have no sample in an epoch of 2 samples"),
        (lambda: "balanced", "sampling is 'balanced'; it must be a stoker.Balanced"),
    ],
)
def test_wrong_samplings_are_refused(files: stoker.Dataset, make: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        stoker.Loader(files, 2, transform=TRANSFORM, sampling=make())


def test_what_has_no_classes_or_other_orders_is_refused(files: stoker.Dataset, tmp_path: Path) -> None:
    settings: Any = {"transform": TRANSFORM, "sampling": stoker.Balanced()}
    with pytest.raises(ConfigError, match="a mix has weights of its own"):
        stoker.Loader(stoker.mix([files]), 2, **settings)
    with pytest.raises(ConfigError, match="sampling decides the order"):
        stoker.Loader(files, 2, stoker.BlockShuffle(), **settings)
    frames = [
        tfrecord.frame(example.write({"image/encoded": ("bytes", [image(i)]), "image/class/label": ("int64", [label])}))
        for i, label in enumerate([0, -1, 3])
    ]
    (tmp_path / "train-00000-of-00001").write_bytes(b"".join(frames))
    some = stoker.open(tmp_path)
    problem = r"1 sample of .* have no label; leave them out: dataset\[dataset.labels >= 0\]"
    with pytest.raises(ConfigError, match=problem):
        stoker.Loader(some, 2, **settings)
    with stoker.Loader(some[some.labels >= 0], 2, **settings) as loader:
        assert len(loader) == 1
