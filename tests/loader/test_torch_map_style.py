"""Samples by number in the stock loader of PyTorch, and datasets that go to another process."""

from __future__ import annotations

import io
import os
import pickle
import shutil
import signal
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

import stoker
from loader.shards import image, write_annotated, write_shards
from other_threads import meanwhile
from programs import output_of
from stoker.errors import ConfigError, ImageError
from stoker.loader.ranks import CpuShare

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TRANSFORM = stoker.RandomResizedCrop(24, hflip=0.5)
RECORDS = 18


def in_threaded_process(test: Callable[..., None]) -> Callable[..., None]:
    """Python, and JAX where an earlier test has loaded it, warn of forks next to threads; here they are the point."""
    for message in ("ignore:.*multi-threaded, use of fork:DeprecationWarning", "ignore:os.fork:RuntimeWarning"):
        test = pytest.mark.filterwarnings(message)(test)
    return test


def expected(dataset: stoker.Dataset, epoch: int, transform: object = TRANSFORM) -> dict[int, tuple[torch.Tensor, int]]:
    """What the loader shows of each sample."""
    with stoker.Loader(dataset, batch_size=5, transform=transform, seed=3) as loader:
        loader.set_epoch(epoch)
        return {
            int(key): (torch.from_numpy(pixels), int(label))
            for batch in loader
            for key, pixels, label in zip(batch.indices, batch.images, batch.labels, strict=True)
        }


def check_epoch(loader: DataLoader, dataset: stoker.Dataset, epoch: int) -> None:
    loader.dataset.set_epoch(epoch)
    images, labels = (torch.cat(parts) for parts in zip(*loader, strict=True))
    wanted = expected(dataset, epoch)
    assert labels.dtype == torch.int64
    assert labels.tolist() == [wanted[key][1] for key in range(RECORDS)]
    assert all(torch.equal(images[key], wanted[key][0]) for key in range(RECORDS))


def test_the_pixels_are_those_of_the_loader(train: stoker.Dataset) -> None:
    samples = stoker.torch.MapDataset(train, TRANSFORM, seed=3)
    assert len(samples) == RECORDS
    for epoch in (0, 2):
        samples.set_epoch(epoch)
        wanted = expected(train, epoch)
        for asked in ([4], [7, 0, 7, 17, 3], list(range(RECORDS)), [], [1, 2]):
            got = samples.__getitems__(asked)
            assert [label for _, label in got] == [wanted[key][1] for key in asked]
            assert all(torch.equal(pixels, wanted[key][0]) for key, (pixels, _) in zip(asked, got, strict=True))
        pixels, label = samples[-1]
        assert torch.equal(pixels, wanted[RECORDS - 1][0])
        assert label == RECORDS


@pytest.mark.parametrize("index", [RECORDS, -RECORDS - 1])
def test_an_invalid_index_is_an_index_error(train: stoker.Dataset, index: int) -> None:
    with pytest.raises(IndexError, match=str(index)):
        stoker.torch.MapDataset(train, TRANSFORM)[index]


def test_the_stock_loader_without_workers(train: stoker.Dataset) -> None:
    loader = DataLoader(stoker.torch.MapDataset(train, TRANSFORM, seed=3), batch_size=4)
    for epoch in range(2):
        check_epoch(loader, train, epoch)


# The others start slowly, and pass as well.
@pytest.mark.parametrize(("method", "kept"), [("fork", False), ("fork", True), ("spawn", True), ("forkserver", False)])
@in_threaded_process
def test_the_stock_loader_with_workers(train: stoker.Dataset, method: str, *, kept: bool) -> None:
    samples = stoker.torch.MapDataset(train, TRANSFORM, seed=3)
    if not kept:
        samples.__getitems__([0, 1, 2])  # threads and files that a fork must not use
    settings = {"num_workers": 2, "multiprocessing_context": method, "persistent_workers": kept}
    loader = DataLoader(samples, batch_size=4, timeout=100, **settings)
    with meanwhile(lambda: read_twice(train)):
        for epoch in range(2):  # workers that are kept hear of the new epoch
            check_epoch(loader, train, epoch)
        del loader
        assert torch.equal(samples[0][0], expected(train, 1)[0][0])  # the parent goes on


def read_twice(dataset: stoker.Dataset) -> None:
    """Read two epochs through a loader with a cache."""
    cache = stoker.MemoryCache("1MB")
    with stoker.Loader(dataset, batch_size=5, transform=TRANSFORM, threads=2, cache=cache) as loader:
        for _ in range(2):
            list(loader)


def test_workers_decode_with_one_thread_each(train: stoker.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stoker.loader.feed.cpu_share", lambda: CpuShare(3, 3, 1))
    thread_counts: list[int] = []
    monkeypatch.setattr("stoker.torch.SampleEngine", lambda *a: thread_counts.append(a[0].threads) or Stop())
    for in_worker, threads in ((False, None), (True, None), (True, 2)):
        monkeypatch.setattr("stoker.torch.get_worker_info", lambda w=in_worker: True if w else None)
        with pytest.raises(StopIteration):
            stoker.torch.MapDataset(train, TRANSFORM, threads=threads)[0]
    assert thread_counts == [3, 1, 2]


class Stop:
    def submit(self, *_: object) -> None:
        raise StopIteration

    def close(self) -> None: ...


@in_threaded_process
def test_a_fork_in_the_middle_of_a_read_does_not_hang(train: stoker.Dataset) -> None:
    samples = stoker.torch.MapDataset(train, TRANSFORM, seed=3, threads=2)
    wanted = expected(train, 0)
    with meanwhile(lambda: samples.__getitems__([1, 2, 3])):
        for _ in range(10):
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                os._exit(0 if torch.equal(samples[5][0], wanted[5][0]) else 3)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_forked_process_ends_as_any_other(train: stoker.Dataset) -> None:
    program = f"""
        import os, stoker
        samples = stoker.torch.MapDataset(stoker.open({train.path!r}), stoker.Resize(8))
        samples[0]
        child = os.fork()
        samples[1]
        assert child == 0 or os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    """
    output_of(program)


def test_a_call_that_was_interrupted_leaves_nothing_behind(train: stoker.Dataset) -> None:
    samples = stoker.torch.MapDataset(train, stoker.Resize(2000), threads=1)

    def interrupt(*_: object) -> None:
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(InterruptedError):
            samples.__getitems__([0, 1, 2, 3] * 50)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert [label for _, label in samples.__getitems__([5, 7])] == [6, 8]


def test_a_mix_has_no_samples_by_index(train: stoker.Dataset) -> None:
    with pytest.raises(ConfigError, match=r"not <stoker\.Mix of 1 datasets"):
        stoker.torch.MapDataset(stoker.mix([train]), TRANSFORM)


def test_a_bad_image_is_named(tmp_path: Path) -> None:
    write_shards(tmp_path, 4, 1, {2: image(2)[:100]})
    samples = stoker.torch.MapDataset(stoker.open(tmp_path), TRANSFORM)
    with pytest.raises(ImageError, match=r"picture-2\.JPEG"):
        samples.__getitems__([0, 1, 2])
    assert samples[1][1] == 2  # one bad sample does not end it
    with pytest.raises(ImageError, match=r"picture-2\.JPEG"):
        list(DataLoader(samples, batch_size=4, num_workers=1, multiprocessing_context="spawn", timeout=100))


def test_objects_are_samples_too(tmp_path: Path) -> None:
    dataset = stoker.open(write_annotated(tmp_path / "train.tfrecord", 6))
    transform = stoker.ObjectCrops(16)
    wanted = expected(dataset, 0, transform)
    samples = stoker.torch.MapDataset(dataset, transform, seed=3)
    assert len(samples) == len(wanted) > 6
    got = samples.__getitems__(range(len(samples)))
    assert all(torch.equal(got[key][0], pixels) and got[key][1] == label for key, (pixels, label) in wanted.items())


def test_several_transforms_in_the_form_of_the_loader(train: stoker.Dataset) -> None:
    transform = stoker.MultiCrop(TRANSFORM, stoker.CenterCrop(16))
    output = stoker.Output(dtype="float32", layout="NCHW", mean=(0.5, 0.4, 0.3))
    with stoker.Loader(train, batch_size=3, transform=transform, output=output, seed=3) as loader:
        wanted = next(iter(loader))
    samples = stoker.torch.MapDataset(train, transform, seed=3, output=output)
    for number, (images, _) in enumerate(samples.__getitems__([0, 1, 2])):
        assert [tuple(image.shape) for image in images] == [(3, 24, 24), (3, 16, 16)]
        for side in (0, 1):
            assert torch.equal(images[side], torch.from_numpy(wanted.images[side][number]))
    small, large = next(iter(DataLoader(samples, batch_size=3)))[0]
    assert (tuple(small.shape), tuple(large.shape)) == ((3, 3, 24, 24), (3, 3, 16, 16))


@pytest.mark.parametrize("settings", [{"threads": 0}, {"seed": -1}, {"max_pixels": 0}], ids=str)
def test_settings_out_of_range_are_refused_at_once(train: stoker.Dataset, settings: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        stoker.torch.MapDataset(train, TRANSFORM, **settings)
    with pytest.raises(ConfigError, match="epoch"):
        stoker.torch.MapDataset(train, TRANSFORM).set_epoch(-1)


def test_it_can_be_closed_and_used_again(train: stoker.Dataset) -> None:
    samples = stoker.torch.MapDataset(train, TRANSFORM)
    first = samples[3]
    samples.close()
    samples.close()
    assert torch.equal(samples[3][0], first[0])


def test_a_pickle_opens_again(dataset: Path, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(dataset, tmp_path / "built")
    shutil.copytree(photos, tmp_path / "photos")
    (tmp_path / "old").mkdir()
    write_shards(tmp_path / "old", 5, 1)
    monkeypatch.chdir(tmp_path)
    keys = stoker.RecordKeys("image/encoded", "image/class/label", label_base=1)
    classes = sorted(folder.name for folder in (tmp_path / "photos/train").iterdir())
    (tmp_path / "classes.txt").write_text("".join(f"{name}\ttext\n" for name in classes))
    opened = [
        stoker.open("built", "train"),
        stoker.open("photos", "validation", class_names="classes.txt"),
        stoker.open("old/train-*"),
        stoker.open("old", keys=keys),
    ]
    sent = pickle.dumps(opened)
    first = [before[0].features for before in opened]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for before, after, features in zip(opened, pickle.loads(sent), first, strict=True):
        assert (after.identity, after.split, after.schema, after.classes) == (
            before.identity, before.split, before.schema, before.classes,
        )  # fmt: skip
        assert after.records is not before.records
        assert len(after) == len(before)
        assert after[0].features == features


def test_a_pickled_dataset_that_was_replaced_is_refused(tmp_path: Path) -> None:
    sent = pickle.dumps(stoker.open(write_shards(tmp_path, 4, 2)[0].parent))
    write_shards(tmp_path, 5, 2)
    with pytest.raises(ConfigError, match="the one that was pickled is"):
        pickle.loads(sent)


def test_a_dataset_that_was_not_opened_cannot_be_pickled(train: stoker.Dataset) -> None:
    dataset = stoker.Dataset(path=train.path, split="train", reader=train.reader)
    with pytest.raises(TypeError, match=r"stoker\.open did not open it"):
        pickle.dumps(dataset)


def brightest(picture: Image.Image) -> int:
    """A function that a spawned worker can import."""
    return max(high for _, high in picture.getextrema())


def test_a_function_gets_what_the_transform_made(train: stoker.Dataset) -> None:
    pictures = stoker.torch.MapDataset(train, [TRANSFORM, lambda picture: picture], seed=3)
    wanted = expected(train, 0)
    for key, (picture, label) in enumerate(pictures.__getitems__(list(range(RECORDS)))):
        assert (picture.mode, label) == ("RGB", wanted[key][1])
        assert (np.asarray(picture) == wanted[key][0].numpy()).all()
    chained = stoker.torch.MapDataset(train, [TRANSFORM, np.asarray, np.max], seed=3)
    assert [chained[key][0] for key in range(RECORDS)] == [int(wanted[key][0].max()) for key in range(RECORDS)]


def test_a_function_alone_gets_the_whole_image(train: stoker.Dataset) -> None:
    pictures = stoker.torch.MapDataset(train, transform=np.asarray)
    for key, (pixels, label) in enumerate(pictures.__getitems__([0, 5, 17])):
        sample = train[[0, 5, 17][key]]
        whole = np.asarray(Image.open(io.BytesIO(sample.encoded)).convert("RGB"))
        assert (pixels == whole).all()
        assert label == sample.label


def test_a_function_gets_all_crops_of_a_multi_crop(train: stoker.Dataset) -> None:
    crops = stoker.MultiCrop(TRANSFORM, stoker.CenterCrop(12))
    sizes, _ = stoker.torch.MapDataset(train, [crops, lambda pictures: [each.size for each in pictures]])[0]
    assert sizes == [(24, 24), (12, 12)]


@pytest.mark.parametrize(
    ("method", "steps"), [("fork", brightest), ("fork", [TRANSFORM, brightest]), ("spawn", [TRANSFORM, brightest])]
)
@in_threaded_process
def test_functions_in_workers(train: stoker.Dataset, method: str, steps: object) -> None:
    samples = stoker.torch.MapDataset(train, steps, seed=3)
    here = [value for value, _ in samples.__getitems__(list(range(RECORDS)))]
    loader = DataLoader(samples, batch_size=4, num_workers=2, multiprocessing_context=method, timeout=100)
    assert torch.cat([values for values, _ in loader]).tolist() == here


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        ([], "empty list"),
        ("crop", "transform is 'crop'"),
        ([TRANSFORM, 3], "transform is 3"),
        ([brightest, TRANSFORM], "only the first"),
        ([TRANSFORM, TRANSFORM], "only the first"),
    ],
)
def test_what_is_not_a_transform_is_refused(train: stoker.Dataset, transform: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        stoker.torch.MapDataset(train, transform)


def test_functions_leave_no_choice_of_output(train: stoker.Dataset) -> None:
    with pytest.raises(ConfigError, match="omit it and convert in the last function"):
        stoker.torch.MapDataset(train, [TRANSFORM, brightest], output=stoker.Output("float32"))
