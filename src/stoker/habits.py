"""What people type first, from the habits of other libraries, and what to write here: one table of answers.

An argument, an attribute or a name that Stoker lacks is looked up here, and otherwise among what there is.
"""

from __future__ import annotations

import difflib
import functools
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Never, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Answers = Mapping[str, str]

_T = TypeVar("_T")
_Function = TypeVar("_Function", bound="Callable[..., Any]")


def _answers(answers: dict[str, str]) -> Answers:
    """Return answers by each word; several words that have the same one stand together."""
    return MappingProxyType({word: answer for words, answer in answers.items() for word in words.split()})


_DEVICE = "batches are on the CPU; use batch.to(device)"
_IN_TRANSFORMS = "pixels are changed as batches are made: Loader(train, 256, transform=stoker.RandomResizedCrop(224))"

LOADERS = _answers(
    {
        # torch.utils.data.DataLoader and its DistributedSampler
        "sampler batch_sampler": "use shuffle=, sampling=stoker.Balanced() or stoker.Weighted(weights), "
        "or give a stoker.torch.MapDataset and your sampler to torch.utils.data.DataLoader",
        "num_workers worker_count": "decoding runs on threads and not in worker processes; use threads=",
        "collate_fn": "batches are put together natively; use transform= for images, "
        "and change whole batches in your loop",
        "timeout worker_init_fn multiprocessing_context persistent_workers": "decoding runs on threads and not in "
        "worker processes; omit it, and give threads= to say how many",
        "prefetch_factor": "use prefetch=, the number of batches that are decoded ahead",
        "generator": "use seed=",
        "in_order deterministic": "batches always come in the same order; omit it",
        "pin_memory": "only stoker.torch.DataLoader pins memory",
        "pin_memory_device": "use pin_memory=",
        "num_replicas num_ranks num_shards shard_count": "use world_size=",
        "shard_index": "use rank=",
        "device": _DEVICE,
        "dtype layout mean std normalize": 'use output=stoker.Output("float32", layout="NCHW", mean=..., std=...)',
        "split": "a split is chosen when it opens: stoker.open(path, split)",
        "exif mode": "what pixels are is chosen when it opens: stoker.open(path, exif='apply', mode='L')",
        # tf.data
        "drop_remainder": "use drop_last=",
        "buffer_size": "use shuffle=True, which shuffles the whole epoch, or shuffle=stoker.BlockShuffle(...)",
        "num_parallel_calls": "use threads=",
        "image_size target_size": "use transform=stoker.Resize((height, width))",
    }
)
"""Arguments of loaders."""

OPENING = _answers(
    {
        "transform target_transform transforms": _IN_TRANSFORMS,
        "train": 'use split="train" or split="test"',
        "root data_dir data_files directory name": "the path is the first argument: stoker.open(path)",
        "streaming download": "nothing is copied: files are read when they are used; omit it",
        "shuffle batch_size shuffle_files num_workers": "a loader has these: stoker.Loader(train, 256, transform=...)",
        # tables of fastai, Keras and torchvision
        "fn_col x_col image_col filename_col": "use image_column=",
        "label_col y_col target_col": "use label_column=",
        "label_delim": "use label_separator=",
        "valid_col": "use split_column=",
        "sep delimiter delim": "use separator=",
        "suff suffix extension extensions": "endings of files are found; omit it",
        "folder image_folder image_dir img_dir": "use image_root=",
        "annFile ann_file annotation_file csv_file": "the file is the path: stoker.open(file, image_root=folder)",
        "seed validation_split split_fraction valid_pct val_split test_size": "divide what is open: "
        "train, validation = dataset.random_split([0.9, 0.1], seed=0)",
        "features": "use fields=, of stoker.fields",
        "label_mode class_mode": "labels are class ids; omit it",
        "color_mode": 'use mode="RGB", "L", "RGBA" or "I;16"',
        "cache_dir keep_in_memory": "a loader caches: cache=stoker.MemoryCache(...) or stoker.NodeCache(...)",
    }
)
"""Arguments of `stoker.open`."""

BUILDING = _answers(
    {
        "num_workers num_proc workers": "use threads=",
        "quality": 'use encode="jpeg:90"',
        "size image_size": 'use resize="short:256"',
        "format": 'use encode="jpeg:90", "png" or "webp:90"',
        "num_shards": "use shards=",
        "max_shard_size": 'use shard_size="1GiB"',
        "shuffle": "records are always stored in a seeded order; use seed=",
        "transform": "a build stores images, with resize= and encode=; a loader has transform=",
        "exist_ok force": "use overwrite=True",
        "features": "use fields=, of stoker.fields",
    }
)
"""Arguments of `stoker.build`."""

AUDITING = _answers(
    {
        "num_workers num_proc workers": "use threads=",
        "max_distance max_distance_threshold threshold hash_size": "use distance=, of the 64 bits of a hash",
        "split": "all splits are looked at, and leaks between them told; omit it",
        "html json": "a command has it: stoker audit PATH --html audit.html, or --json",
    }
)
"""Arguments of `stoker.audit`."""

TRANSFORMS = _answers(
    {
        "p": "use hflip=, the probability of a mirror image",
        "interpolation": "use filter=",
        "antialias": "resizing always has it, as Pillow's; omit it",
        "vflip": "there are no upside-down images here; flip tensors of a batch in your loop",
        "mean std normalize dtype layout": 'the loader has it: output=stoker.Output("float32", mean=..., std=...)',
        "transform transforms": "give a function of your own in stoker.torch.MapDataset(train, [transform, function])",
    }
)
"""Settings of transforms and of `stoker.Output`."""

DATASETS = _answers(
    {
        "samples imgs": "train[i].source is a name, and train.labels are the labels; paths are those of image files",
        "num_classes class_names": "use len(dataset.classes), and [each.name for each in dataset.classes]",
        "features column_names": "use dataset.fields, which stand beside the image and the label",
        "select skip take head": "use dataset[:1000] or dataset[[5, 3, 7]]",
        "shuffle batch repeat prefetch to_iterable_dataset to_tf_dataset": "a loader does it: "
        "stoker.Loader(dataset, 256, transform=..., shuffle=True)",
        "train_test_split": "use train, test = dataset.random_split([0.9, 0.1])",
        "map set_transform with_transform set_format with_format transform": _IN_TRANSFORMS,
        "data images": "use dataset[i].decode(), or batches of a loader",
        "concatenate": "use stoker.mix([first, second])",
        "image": "use sample.decode() for its pixels, sample.encoded for its file",
        "name filename file_name path filepath": "use sample.source",
        "[]": 'use dataset[i].decode(), dataset.labels and dataset[i].field("caption")',
        "sample[]": "a sample has .decode() for pixels, .label, .fields and .boxes; pairs of image and label for "
        "torch.utils.data.DataLoader are stoker.torch.MapDataset(dataset, transform), or use stoker.torch.DataLoader",
    }
)
"""Attributes of `stoker.Dataset` and of samples."""

BATCHES = _answers(
    {
        "image x data pixels pixel_values inputs": "use batch.images",
        "label y target targets": "use batch.labels",
        "mask masks": 'use batch.fields["mask"], of a loader with fields=["mask"]',
        "bboxes": "use batch.boxes, of a loader with boxes=stoker.BoxOutput(...)",
        "to cuda": "arrays are of NumPy; batches of stoker.torch.DataLoader have .to(device)",
        "[]": "use batch.images, batch.labels, batch.boxes and batch.fields, or images, labels = batch",
    }
)
"""Attributes of batches."""

ITERATING = _answers(
    {
        "map with_transform": _IN_TRANSFORMS,
        "batch unbatch repeat prefetch": "it yields batches that are made ahead; give batch_size= and prefetch=",
        "next take": "use next(iter(loader))",
    }
)
"""Attributes of loaders."""

OPTIONS = _answers(
    {
        "--valid-pct --valid-percent --val-split --validation-split --val-size --test-size --valid-fraction": (
            "--split-fraction validation=0.2"
        ),
        "--workers --num-workers --num-proc --jobs --processes": "--threads",
        "--size --image-size --img-size --imgsz": "--resize short:256",
        "--force --exist-ok": "--overwrite",
        "--num-shards": "--shards",
        "--output --output-dir --out-dir --dest": "--out",
        "--classes --class-names --names": "--labels",
    }
)
"""Options of commands."""

NAMES = _answers(
    {
        "DataLoader MapDataset": "it is in stoker.torch",
        "ImageFolder DatasetFolder load_dataset image_dataset_from_directory": 'use stoker.open(path, "train")',
        "RandomHorizontalFlip": "transforms have it: stoker.RandomResizedCrop(224, hflip=0.5)",
        "Normalize ToTensor ToDtype": 'a loader has it: output=stoker.Output("float32", mean=..., std=...)',
        "Compose": "a loader takes one transform; functions of your own go into stoker.torch.MapDataset",
        "RandomCrop": "use stoker.RandomResizedCrop(224)",
        "ConcatDataset concatenate_datasets": "use stoker.mix([first, second])",
        "Subset": "use dataset[[5, 3, 7]]",
        "random_split": "use dataset.random_split([0.9, 0.1])",
        "StokerError SourceError ConfigError ImageError": "it is in stoker.errors",
        "verify plan repack index info show bench": "it is a command of the shell, see 'stoker --help'",
    }
)
"""Names in the module `stoker`."""

PIXELS = _answers(
    {
        "bfloat16": 'Output("float32"), and batch.images.to(torch.bfloat16) or .astype(jax.numpy.bfloat16) where the '
        "model is",
        "float float64 double fp32 f32": 'Output("float32")',
        "half fp16 f16": 'Output("float16")',
        "int8 int32 int64 byte int": 'Output("uint8")',
        "torch.channels_last": 'layout="NHWC", of which images.permute(0, 3, 1, 2) is a channels-last tensor',
        "torch.contiguous_format": 'layout="NCHW"',
    }
)
"""Types and layouts of pixels that batches do not have."""


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return ``; did you mean train?`` for a word that is nearly one of those known; otherwise nothing."""
    by_lower = {each.lower(): each for each in known}
    similar = difflib.get_close_matches(word.lower(), by_lower, n=1) if isinstance(word, str) else []
    return f"; did you mean {by_lower[similar[0]]}?" if similar else ""


def answer_to(word: str, known: Iterable[str], answers: Answers, of_all: str = "") -> str:
    """Return what to write instead of a word, after a colon; ``of_all`` where nothing is like it."""
    similar = difflib.get_close_matches(word, answers, n=1)
    likely = answers[similar[0]] if similar else of_all
    answer = answers.get(word) or did_you_mean(word, known)[2:] or likely
    return f": {answer}" if answer else ""


def refuse_unknown(function: str, unknown: Iterable[str], known: Iterable[str], answers: Answers) -> None:
    """Refuse keywords that a function does not have."""
    known = [name for name in known if name not in ("self", "unknown")]
    for keyword in unknown:
        hint = answer_to(keyword, [f"{name}=" for name in known], answers, f"its settings are {', '.join(known)}")
        raise TypeError(f"{function} has no setting {keyword!r}{hint}")


def no_attribute(title: str, answers: Answers) -> Callable[[Any, str], Never]:
    """Return the ``__getattr__`` of a class, which answers attributes that it lacks."""

    def getattr_(self: Any, name: str) -> Never:
        if name not in answers and hasattr(type(self), name):
            object.__getattribute__(self, name)  # a property that raised raises again, with its own message
        known = () if name.startswith("_") else dir(type(self))
        raise AttributeError(f"{title} has no attribute {name!r}{answer_to(name, known, answers)}")

    return getattr_


def answer_as_transform(cls: type[_T]) -> None:
    """Let a class of settings answer keywords that it does not have, with those of other libraries' transforms."""
    original: Any = cls.__init__
    code = original.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @functools.wraps(original)
    def init(self: _T, *args: Any, **settings: Any) -> None:
        if not settings.keys() <= set(known):
            unknown = [name for name in settings if name not in known]
            refuse_unknown(f"stoker.{cls.__name__}", unknown, known, TRANSFORMS)
        original(self, *args, **settings)

    setattr(cls, "__init__", init)  # noqa: B010 - what mypy lets nobody assign


def needs_transform(function: _Function) -> _Function:
    """Let a function run without the ``transform`` that it needs, as ``...``, so that it can say what to give.

    The transform is a keyword, or the last argument that goes by position.
    """
    if "transform" in function.__code__.co_varnames[: function.__code__.co_argcount]:
        function.__defaults__ = (...,)
    else:
        function.__kwdefaults__ = {**(function.__kwdefaults__ or {}), "transform": ...}
    return function


def refuse_no_transform(function: str, transform: object) -> None:
    """Refuse a transform that is not given."""
    if transform is ...:
        message = f"{function} needs transform=, so that all images of a batch have one size"
        raise TypeError(f"{message}, such as transform=stoker.CenterCrop(224) or stoker.RandomResizedCrop(224)")
