"""Samples that cannot be loaded: replaced by rule, counted, reported, and too many of them refused."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest

import stoker
from loader.shards import image, write_shards
from reference import pictures, transform
from reference.philox import sample_draw
from repository.checkout import ROOT
from stoker.errors import BadSampleWarning, ImageError, TooManyBadSamplesError
from stoker.loader.engine import _ATTEMPTS
from written_files import write_files

if TYPE_CHECKING:
    from pathlib import Path

RECORDS, SEED = 30, 7
BAD = (4, 11, 12)
TRANSFORM = stoker.RandomResizedCrop(16, hflip=0.5)
SETTINGS = {"transform": TRANSFORM, "shuffle": True, "seed": SEED, "on_bad": "substitute"}


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> stoker.Dataset:
    folder = tmp_path_factory.mktemp("bad")
    write_shards(folder, RECORDS, 2, {number: image(number)[: len(image(number)) // 2] for number in BAD})
    return stoker.open(folder, keys=stoker.RecordKeys("image/encoded", "image/class/label", 0))


def substitute(index: int, epoch: int) -> int:
    """The first good sample that the draws of a bad one name."""
    for attempt in range(16):
        words = sample_draw(SEED, epoch, index, 5, attempt)
        other = ((words[0] << 32 | words[1]) * RECORDS) >> 64
        if other not in BAD:
            return other
    raise AssertionError("no good one")


def epoch_of(train: stoker.Dataset, number: int = 0, **settings: object) -> tuple[list, stoker.BadSampleReport]:
    with stoker.Loader(train, **{"batch_size": 7, **SETTINGS, **settings}) as loader, warnings.catch_warnings():
        warnings.simplefilter("ignore", BadSampleWarning)
        loader.set_epoch(number)
        seen = [
            (index, label, pixels.tobytes())
            for batch in loader
            for index, label, pixels in zip(batch.indices.tolist(), batch.labels.tolist(), batch.images, strict=True)
        ]
        return seen, loader.bad_samples


def test_a_bad_sample_is_replaced_by_rule(train: stoker.Dataset) -> None:
    with stoker.Loader(train, batch_size=RECORDS, **SETTINGS | {"on_bad": "raise"}) as loader:
        order = loader.feed.samples.order(2).take(0, RECORDS).tolist()
    seen, report = epoch_of(train, 2)
    for asked, (index, label, pixels) in zip(order, seen, strict=True):
        assert index == (substitute(asked, 2) if asked in BAD else asked)
        assert label == index + 1
        shown = transform.show(pictures.rgb(image(index)), TRANSFORM, transform.Draws(SEED, 2, asked))
        assert pixels == shown.tobytes()
    assert report.count == len(BAD)
    expected = [(index, substitute(index, 2), 2) for index in order if index in BAD]
    assert [(bad.index, bad.substitute, bad.epoch) for bad in report.samples] == expected
    assert all(isinstance(bad.error, ImageError) for bad in report.samples)
    first = report.samples[0]
    assert f"picture-{first.index}.JPEG" in str(first.error) or first.error.record >= 0


def test_no_thread_batch_size_or_rank_changes_what_replaces_it(train: stoker.Dataset) -> None:
    expected, _ = epoch_of(train)
    assert epoch_of(train, threads=1, prefetch=1)[0] == expected
    assert epoch_of(train, threads=5, batch_size=4)[0] == expected
    ranks = [epoch_of(train, rank=rank, world_size=3, batch_size=2) for rank in range(3)]
    assert sorted(sample for seen, _ in ranks for sample in seen) == sorted(expected)
    assert sum(report.count for _, report in ranks) == len(BAD)


def test_the_end_of_an_epoch_says_how_many_there_were(train: stoker.Dataset) -> None:
    with stoker.Loader(train, batch_size=7, **SETTINGS) as loader:
        with pytest.warns(BadSampleWarning, match=r"epoch 0: 3 bad samples were replaced; the first is \d+: train-"):
            list(loader)
        with pytest.warns(BadSampleWarning, match="epoch 1: 3 bad samples"):
            list(loader)
        assert loader.bad_samples.epoch == 1
    good = stoker.mix([train])
    assert len(good) == RECORDS


def test_too_many_are_an_error(train: stoker.Dataset) -> None:
    with stoker.Loader(train, batch_size=7, max_bad=2, **SETTINGS) as loader:
        problem = r"more than max_bad=2 samples.* 'stoker audit' on what is not"
        with pytest.raises(TooManyBadSamplesError, match=problem) as caught:
            list(loader)
        assert isinstance(caught.value.__cause__, ImageError)
        state = loader.state_dict()
    assert state["consumed"] % 7 == 0
    with stoker.Loader(train, batch_size=7, max_bad=3, **SETTINGS) as loader, pytest.warns(BadSampleWarning):
        list(loader)


def test_by_default_a_bad_sample_is_an_error(train: stoker.Dataset) -> None:
    with (
        stoker.Loader(train, batch_size=7, transform=TRANSFORM) as loader,
        pytest.raises(ImageError, match="record 4 at byte"),
    ):
        list(loader)


def test_files_that_are_gone_are_bad_samples(tmp_path: Path) -> None:
    images = {f"class-{number % 2}/{number}.jpg": image(number) for number in range(12)}
    tree = stoker.open(write_files(tmp_path, images))
    gone = [index for index in range(12) if tree[index].source.endswith("/7.jpg")]
    (tmp_path / "class-1" / "7.jpg").unlink()
    with stoker.Loader(tree, batch_size=5, **SETTINGS) as loader, pytest.warns(BadSampleWarning, match="7.jpg"):
        indices = [index for batch in loader for index in batch.indices.tolist()]
    assert len(indices) == 12
    assert set(range(12)) - set(indices) == set(gone)


def test_a_dataset_of_nothing_but_bad_samples_ends(tmp_path: Path) -> None:
    write_shards(tmp_path, 5, 1, dict.fromkeys(range(5), b"\xff\xd8no image"))
    broken = stoker.open(tmp_path, keys=stoker.RecordKeys("image/encoded", "image/class/label", 0))
    with stoker.Loader(broken, batch_size=5, **SETTINGS) as loader, pytest.raises(ImageError):
        list(loader)


def test_bad_samples_are_told_before_the_last_batch(train: stoker.Dataset) -> None:
    with stoker.Loader(train, batch_size=7, **SETTINGS) as loader:
        with pytest.warns(BadSampleWarning, match="3 bad samples"):
            steps = [step for step, _ in zip(range(len(loader)), loader, strict=False)]
        assert steps == [0, 1, 2, 3, 4]
        assert loader.state_dict()["epoch"] == 1


def test_an_error_of_a_sample_names_it(tmp_path: Path) -> None:
    files = {f"cat/{number}.jpg": image(number)[: 400 if number == 3 else None] for number in range(4)}
    opened = stoker.open(write_files(tmp_path, files))
    for read in (opened[3].decode, lambda: stoker.torch.MapDataset(opened, len)[3]):
        with pytest.raises(ImageError, match=r"^sample 3 \(cat/3\.jpg\): "):
            read()


def test_the_page_says_how_many_substitutes_are_tried() -> None:
    page = (ROOT / "docs/how-to/transforms.md").read_text(encoding="utf-8")
    assert f"; up to {_ATTEMPTS} are tried." in page
