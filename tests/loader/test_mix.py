"""Mixes of datasets: what is read, what their classes mean, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import stoker
from loader.shards import image, write_annotated, write_shards
from reference import pictures, transform
from stoker.cli.main import main
from stoker.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

TRANSFORM = stoker.RandomResizedCrop(16, hflip=0.5)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[stoker.Dataset]:
    annotated = write_annotated(tmp_path_factory.mktemp("a") / "train-00000-of-00001", 6)
    plain = tmp_path_factory.mktemp("b")
    write_shards(plain, 10, 2)
    return [stoker.open(annotated), stoker.open(plain)]


def test_pixels_labels_and_indices_are_those_of_the_datasets(parts: list[stoker.Dataset]) -> None:
    mixed = stoker.mix(parts, [1, 3], samples_per_epoch=40, label_offsets=[0, 1000])
    assert len(mixed) == 40
    assert "2 datasets" in repr(mixed)
    shares = [0, 0]
    with stoker.Loader(mixed, batch_size=8, transform=TRANSFORM, shuffle=True, seed=5, threads=3) as loader:
        position = 0
        for batch in loader:
            assert sum(index >= 6 for index in batch.indices.tolist()) == 6  # 3 of 4 in every batch
            for pixels, label, index in zip(batch.images, batch.labels.tolist(), batch.indices.tolist(), strict=True):
                part, number = int(index >= 6), index - 6 * (index >= 6)
                shares[part] += 1
                assert label == number + 1 + 1000 * part
                draws = transform.Draws(5, 0, position)  # of the position: a sample may come twice in an epoch
                assert (pixels == transform.show(pictures.rgb(image(number)), TRANSFORM, draws)).all()
                position += 1
    assert shares == [10, 30]


def test_objects_are_mixed_like_images(parts: list[stoker.Dataset]) -> None:
    mixed = stoker.mix([parts[0], parts[0]])
    with stoker.Loader(mixed, batch_size=4, transform=stoker.ObjectCrops(12)) as loader:
        together = {
            int(index): pixels.tobytes()
            for batch in loader
            for index, pixels in zip(batch.indices, batch.images, strict=True)
        }
    with stoker.Loader(parts[0], batch_size=4, transform=stoker.ObjectCrops(12)) as loader:
        alone = {
            int(index): pixels.tobytes()
            for batch in loader
            for index, pixels in zip(batch.indices, batch.images, strict=True)
        }
    objects = len(alone)
    assert sorted(together) == list(range(2 * objects))
    assert all(together[index] == alone[index % objects] for index in together)


def test_boxes_of_mixed_datasets_keep_their_classes_apart(parts: list[stoker.Dataset]) -> None:
    mixed = stoker.mix([parts[0], parts[0]], label_offsets=[0, 100])
    with stoker.Loader(mixed, batch_size=12, transform=stoker.Resize(8), boxes=stoker.BoxOutput(pad_to=3)) as loader:
        (batch,) = loader
    for index, labels in zip(batch.indices.tolist(), batch.boxes.labels, strict=True):
        assert set(labels.tolist()) <= {-1, index % 6 + 1 + 100 * (index >= 6)}


def test_a_mix_is_another_dataset_than_its_parts(parts: list[stoker.Dataset]) -> None:
    def state(dataset: stoker.Dataset | stoker.Mix) -> dict:
        with stoker.Loader(dataset, batch_size=2, transform=TRANSFORM) as loader:
            return loader.state_dict()

    states = [
        state(dataset)
        for dataset in (
            parts[0],
            stoker.mix(parts),
            stoker.mix(parts, [1, 2]),
            stoker.mix(parts[::-1]),
            stoker.mix([parts[0]]),
        )
    ]
    assert len({state["dataset"] for state in states}) == len(states)
    with (
        stoker.Loader(stoker.mix(parts), batch_size=2, transform=TRANSFORM) as loader,
        pytest.raises(ConfigError, match="mix-"),
    ):
        loader.load_state_dict(states[2])


@pytest.mark.parametrize(
    ("weights", "more", "message"),
    [
        ([1], {}, "weights has 1 of 2 numbers"),
        ([1, 0], {}, "each must be a number above 0"),
        ([1, float("nan")], {}, "each must be a number above 0"),
        ([1, "2"], {}, "each must be a number above 0"),
        (0.5, {}, "weights is 0.5; give a number for each dataset"),
        ([1, 1], {"samples_per_epoch": 0}, "samples_per_epoch is 0"),
        ([1, 1], {"label_offsets": [1]}, "label_offsets has 1 of 2 numbers"),
        ([1, 1], {"label_offsets": [0, -1]}, "label_offsets is -1"),
        ([1, 1], {"label_offsets": 10}, "label_offsets is 10; give a number for each dataset"),
        ([1, 1e-6], {}, "dataset 1 of the mix would have no sample in an epoch of 16"),
    ],
)
def test_senseless_mixes_are_refused(parts: list[stoker.Dataset], weights: list, more: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        stoker.Loader(stoker.mix(parts, weights, **more), batch_size=2, transform=TRANSFORM)


def test_nothing_to_mix_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least one dataset"):
        stoker.mix([])


def test_a_folder_and_what_was_built_of_it_have_the_same_classes(dataset: Path, photos: Path) -> None:
    assert len(stoker.mix([stoker.open(dataset, "train"), stoker.open(photos, "train")]).classes) == 5


def test_classes_that_differ_need_offsets(tmp_path: Path, photos: Path) -> None:
    assert main(["build", str(photos), str(tmp_path / "built"), "--label-base", "1"]) == 0
    built = stoker.open(tmp_path / "built", "train")  # counts labels from 1
    tree = stoker.open(photos, "train")  # counts labels from 0, and names the same classes
    names = [known.name for known in built.classes]
    assert names != [known.name for known in tree.classes]
    with pytest.raises(ConfigError, match="do not have the same classes"):
        stoker.mix([built, tree])
    mixed = stoker.mix([built, tree], label_offsets=[0, 1])
    with stoker.Loader(mixed, batch_size=len(mixed), transform=stoker.CenterCrop(8, 16)) as loader:
        (batch,) = loader
    labels = dict(zip(batch.indices.tolist(), batch.labels.tolist(), strict=True))
    assert [labels[index] for index in range(len(built))] == built.labels.tolist()
    assert [labels[index] for index in range(len(built), len(mixed))] == (tree.labels + 1).tolist()
    assert np.unique(batch.labels).tolist() == np.unique(built.labels).tolist()
