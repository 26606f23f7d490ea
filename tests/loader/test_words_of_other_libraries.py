"""What people type from the habits of PyTorch, torchvision and `datasets` works where it is exact, or is answered."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from PIL import Image

import stoker
from stoker import habits
from stoker.errors import StokerError

if TYPE_CHECKING:
    from pathlib import Path

data = torch.utils.data
CROP = stoker.CenterCrop(8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of two splits of two classes."""
    folder = tmp_path_factory.mktemp("photos")
    for split, count in (("train", 6), ("val", 2)):
        for number, name in enumerate(("cat", "dog")):
            (folder / split / name).mkdir(parents=True)
            for image in range(count):
                pixels = np.full((9, 10, 3), 20 * image + number, np.uint8)
                Image.fromarray(pixels).save(folder / split / name / f"{image}.png")
    return folder


@pytest.fixture(scope="module")
def train(folder: Path) -> stoker.Dataset:
    return stoker.open(folder, "train")


def test_what_torchvision_has_is_here_where_it_is_exact(folder: Path, train: stoker.Dataset) -> None:
    names = [f"{folder}/train/{name}/{image}.png" for name in ("cat", "dog") for image in range(6)]
    assert train.targets == [0] * 6 + [1] * 6
    assert train.class_to_idx == {"cat": 0, "dog": 1}
    assert train.samples == [*zip(names, train.targets, strict=True)]
    assert train[[7, 2]].samples == [(names[7], 1), (names[2], 0)]
    with pytest.raises(AttributeError, match=r"train\[i\]\.source is a name"):
        _ = stoker.open([{"image": np.zeros((2, 2), np.uint8)}]).samples


def test_subsets_of_pytorch_are_parts(train: stoker.Dataset) -> None:
    subset = data.Subset(data.Subset(train, [9, 5, 3, 1]), [2, 0])
    assert [sample.index for sample in subset] == [3, 9]
    for loader in (stoker.Loader(subset, 2, transform=CROP), stoker.torch.DataLoader(subset, 2, transform=CROP)):
        assert next(iter(loader)).indices.tolist() == [3, 9]
    assert stoker.torch.MapDataset(subset, CROP)[1][1] == 1
    halves = data.random_split(train, [0.5, 0.5])
    assert sorted(len(stoker.Loader(half, 1, transform=CROP)) for half in halves) == [6, 6]
    assert len(stoker.mix([subset, train])) == 14
    assert data.ConcatDataset([train, subset])[13].index == 9


def test_a_collation_of_ones_own_gets_samples(train: stoker.Dataset) -> None:
    assert next(iter(data.DataLoader(train, 2, collate_fn=lambda samples: [each.label for each in samples]))) == [0, 0]


def loader(train: Any, **settings: Any) -> Any:
    return stoker.torch.DataLoader(train, 4, **{"transform": CROP} | settings)


ANSWERS = {
    "train.imgs": "train.labels are the labels",
    "train.num_classes": "len(dataset.classes)",
    "train.random_spilt": "did you mean random_split?",
    "train.select([1])": "dataset[[5, 3, 7]]",
    "train.map(len)": "transform=stoker.RandomResizedCrop(224)",
    "train['image']": "dataset[i].decode()",
    "train[0]['image']": ".decode() for pixels",
    "tuple(train[0])": "stoker.torch.MapDataset(dataset, transform)",
    "train[0].image": "sample.decode()",
    "train[0].filename": "use sample.source",
    "next(iter(loader(train)))['image']": "use batch.images",
    "next(iter(loader(train))).pixel_values": "use batch.images",
    "next(iter(stoker.Loader(train, 4, transform=CROP))).cuda()": "stoker.torch.DataLoader",
    "next(iter(stoker.Loader(train, 4, transform=CROP)))[0]": "images, labels = batch",
    "next(iter(loader(train))).cuda()": "use batch.to(device)",
    "next(iter(data.DataLoader(loader(train))))": "for batch in loader",
    "stoker.Loader(train, 4, transform=CROP)[0]": "stoker.torch.MapDataset",
    "stoker.torch.MapDataset(train, CROP)['a']": "'a' is no number of a sample",
    "stoker.torch.MapDataset(train, CROP)[:3]": "give MapDataset dataset[:1000]",
    "stoker.torch.MapDataset(train, CROP)[1.7]": "1.7 is no number of a sample",
    "stoker.Loader(train, 4, transform=CROP).map(len)": "transform=stoker.RandomResizedCrop(224)",
    "stoker.open([folder, folder])": "[{'image': path} for path in paths]",
    "stoker.open([{'image': np.zeros((9, 9)), 'boxes': [(1, 2, 8, 9)]}])": "divide pixels by the width and height",
    "stoker.StokerError": "stoker.errors",
    "train.random_split(0.9)": "such as [0.9, 0.1]",
    "next(iter(data.DataLoader(train)))": "stoker.torch.MapDataset(dataset, transform)",
    "loader(data.ConcatDataset([train, train]))": "stoker.mix([first, second])",
    "stoker.Loader(train, 4)": "transform=stoker.CenterCrop(224)",
    "stoker.torch.DataLoader(train, 4)": "transform=stoker.CenterCrop(224)",
    "stoker.torch.MapDataset(train)": "transform=stoker.CenterCrop(224)",
    "stoker.tensorflow.dataset(train, 4)": "transform=stoker.CenterCrop(224)",
    "stoker.jax.batches(train, 4)": "transform=stoker.CenterCrop(224)",
    "loader(train, batchsize=256)": "did you mean batch_size=?",
    "loader(train, num_worker=4)": "use threads=",
    "loader(train, collate_fn=None)": "change whole batches in your loop",
    "stoker.torch.MapDataset(train, CROP, transfrom=1)": "did you mean transform=?",
    "stoker.torch.MapDataset(train, CROP, num_workers=1)": "use threads=",
    "stoker.RandomResizedCrop(224, hflp=1)": "did you mean hflip=?",
    "stoker.RandomResizedCrop(224, p=1)": "use hflip=",
    "stoker.Resize(9, interpolation=2)": "use filter=",
    "stoker.Output('bfloat16')": 'Output("float32")',
    "stoker.Output(torch.bfloat16)": "batch.images.to(torch.bfloat16)",
    "stoker.Output(float)": 'Output("float32")',
    "stoker.Output(np.float64)": 'Output("float32")',
    "stoker.Output('flaot32')": "did you mean float32?",
    "stoker.Output(layout=torch.channels_last)": "images.permute(0, 3, 1, 2)",
    "stoker.Output(means=1)": "did you mean mean=?",
    "stoker.open(folder, 'valdiation')": "did you mean validation?",
    "stoker.open(folder, 'eval')": "did you mean validation?",
    "stoker.open(folder, 'train[:3]')": "stoker.open(path, 'train')[:3]",
    "stoker.open(folder, ['train'])": "give one name",
    "stoker.open(folder, spilt='train')": "did you mean split=?",
    "stoker.open(folder, train=True)": 'split="train"',
    "stoker.open(folder, fn_col='x')": "use image_column=",
    "stoker.open(folder, label_col='x')": "use label_column=",
    "stoker.open(folder, label_delim=' ')": "use label_separator=",
    "stoker.open(folder, valid_col='x')": "use split_column=",
    "stoker.open(folder, delimiter=';')": "use separator=",
    "stoker.open(folder, suff='.jpg')": "endings of files are found; omit it",
    "stoker.open(folder, valid_pct=0.2)": "divide what is open",
    "stoker.open(folder, split_fraction='val=0.1')": "divide what is open",
    "stoker.open(folder, annFile='x.json')": "the file is the path",
    "stoker.audit(folder, num_workers=2)": "use threads=",
    "stoker.audit(folder, distanc=2)": "did you mean distance=?",
    "stoker.audit(folder, split='train')": "all splits are looked at",
    "stoker.open(folder, mode='rgb')": "did you mean RGB?",
    "stoker.build(folder, folder, num_workers=3)": "use threads=",
    "stoker.build(folder, folder, shard=3)": "did you mean shards=?",
    "loader(train, decode='exakt')": "did you mean exact?",
    "stoker.ImageFolder(folder)": "stoker.open(path",
    "train + train": "stoker.mix([first, second])",
    "sum([train, train])": "stoker.mix([first, second])",
    "stoker.torch.Loader(train, 4)": "did you mean DataLoader?",
    "stoker.CentreCrop(9)": "did you mean CenterCrop?",
    "stoker.verify(folder)": "it is a command of the shell",
    "stoker.open(train)": "is open already; give it to a loader as it is",
    "stoker.export(train[:2], folder, 'folder')": "not a value of type Dataset; of a part of a dataset, or of records, "
    "stoker.build",
    "stoker.audit([{'image': 'a.png'}])": "not a value of type list",
    "loader(train, fields=['boxes'])": "give boxes=stoker.BoxOutput()",
    "loader(train, fields=['label'])": "batch.labels has it",
}


@pytest.mark.parametrize("typed", ANSWERS)
def test_what_does_not_work_is_answered(folder: Path, train: stoker.Dataset, typed: str) -> None:
    names = globals() | {"train": train, "folder": folder}
    with pytest.raises((TypeError, AttributeError, StokerError)) as caught:
        eval(typed, names)
    assert ANSWERS[typed] in str(caught.value)


def test_what_may_be_boxes_and_is_a_field_is_warned_of() -> None:
    objects = {"bbox": [[1, 2, 3, 4]], "category": [0]}
    with pytest.warns(stoker.errors.SourceWarning, match="'objects' is a field, not the boxes of images"):
        stoker.open([{"image": np.zeros((9, 9), np.uint8), "objects": objects}])


@pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("float32"), torch.float32, "jax", "tensorflow"])
def test_types_of_every_library_are_taken(train: stoker.Dataset, dtype: Any) -> None:
    if dtype in ("jax", "tensorflow"):
        library = pytest.importorskip("jax.numpy" if dtype == "jax" else dtype)
        dtype = library.float32
    mean = torch.tensor([0.5, 0.25, 0.125])
    output = stoker.Output(dtype, layout="channels_first", mean=mean, std=np.ones(3))
    assert output == stoker.Output("float32", layout="NCHW", mean=(0.5, 0.25, 0.125), std=(1.0, 1.0, 1.0))
    batch = next(iter(stoker.Loader(train, 2, transform=CROP, output=output)))
    assert (batch.images.dtype, batch.images.shape) == (np.float32, (2, 3, 8, 8))


def test_other_names_of_layouts_and_splits(folder: Path) -> None:
    assert {stoker.Output(layout=name).layout for name in ("HWC", "nhwc", "channels_last")} == {"NHWC"}
    assert {stoker.Output(layout=name).layout for name in ("CHW", "nchw", "channels_first")} == {"NCHW"}
    assert {stoker.open(folder, name).split for name in ("val", "valid", "dev", "VAL", "validation")} == {"validation"}


def test_answers_name_what_there_is() -> None:
    tables = {name: table for name, table in vars(habits).items() if name.isalpha() and name.isupper()}
    takers = {
        "LOADERS": stoker.Loader,
        "OPENING": stoker.open,
        "BUILDING": stoker.build,
        "AUDITING": stoker.audit,
        "TRANSFORMS": stoker.RandomResizedCrop,
    }
    for name, table in tables.items():
        for word, answer in table.items():
            for path in re.findall(r"stoker((?:\.\w+)+)", answer):
                thing: Any = stoker
                for part in path[1:].split("."):
                    thing = getattr(thing, part)
            for setting in re.findall(r"^use (\w+)=", answer) if name in takers else ():
                known = inspect.signature(takers[name]).parameters
                assert setting in known or setting in inspect.signature(stoker.torch.DataLoader).parameters, (
                    word,
                    setting,
                )
            assert name not in takers or word not in inspect.signature(takers[name]).parameters, word
