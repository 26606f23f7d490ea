"""The settings of a loader, each declared once; signatures and docstrings are written from here by `make settings`.

That adds a new setting to `stoker.Loader` and to the adapters for PyTorch, TensorFlow and JAX. `Feed` applies it if it
says which samples come when or how long an epoch is, `SampleEngine` if it says how batches are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal, Self

from stoker import _native
from stoker.declare import Instance, OfOrder, Range, Settings, declared
from stoker.errors import ConfigError
from stoker.habits import LOADERS, refuse_no_transform, refuse_unknown
from stoker.loader.batch import BoxOutput
from stoker.loader.caches import MemoryCache, NodeCache
from stoker.loader.read_ahead import ReadAhead
from stoker.loader.sampling import Balanced, Weighted
from stoker.order import BlockShuffle, Tail
from stoker.transforms import Output, Transform
from stoker.types import DecodeMode, Field

OnBad = Literal["raise", "substitute"]
"""``raise``: the batch of a bad sample raises its error. ``substitute``: another sample takes its place."""


@dataclass(frozen=True)
class LoaderSettings(Settings):
    """How batches are made of a dataset: the settings of `stoker.Loader` and of the adapters."""

    batch_size: Annotated[int, "Number of images of a batch on this rank."] = 1
    shuffle: Annotated[
        bool | BlockShuffle,
        Instance(),
        OfOrder(),
        "Whether each epoch has its own random order.",
        "`stoker.BlockShuffle` gives a random order that reads block by block.",
    ] = False
    _: KW_ONLY
    transform: Annotated[
        Transform,
        Instance(
            "one of Stoker's, such as stoker.CenterCrop(224), or stoker.MultiCrop(...) of several; functions of your "
            "own work on batches, or in stoker.torch.MapDataset"
        ),
        OfOrder(),
        "How each image is cropped, resized and changed.",
        "With `stoker.ObjectCrops` samples are annotated objects, not images.",
    ]
    drop_last: Annotated[
        bool,
        "Whether samples that do not fill a batch on every rank are left out of an epoch.",
        'The same as ``tail="drop"``.',
    ] = False
    tail: Annotated[
        Tail | None,
        "What happens to samples that do not fill a last batch.",
        'See docs/how-to/several-ranks.md. Default: ``"short"`` on one rank, so its last batch may be smaller; '
        '``"pad"`` on several, so samples repeat until each rank has as many full batches as the others, and '
        "``Batch.valid`` is false for the repeats.",
    ] = None
    sampling: Annotated[
        Balanced | Weighted | None,
        Instance(),
        OfOrder(),
        "How often each class or sample comes in an epoch.",
        "`stoker.Balanced` or `stoker.Weighted`, for one dataset, in random order. Default: each sample once. "
        "``Batch.valid`` marks only the repeats that fill a last batch.",
    ] = None
    max_samples: Annotated[
        int | None,
        Range(1, 2**62),
        OfOrder(),
        "Number of samples of an epoch, over all ranks. Default: all.",
        "They are the first ones of the epoch's order, so with ``shuffle`` they differ in each epoch. For the same "
        "samples in every epoch, load a part of the dataset, such as ``train[:1000]``.",
    ] = None
    seed: Annotated[
        int | None,
        Range(0, 2**64 - 1),
        "Seed of the order and of the random choices. Default: a new one; 0 on several ranks.",
        "0 to 2**64 - 1; part of the state. On one rank, ``torch.manual_seed`` decides the default if PyTorch was "
        "imported before. A loader without a seed takes that of a loaded state.",
    ] = None
    output: Annotated[
        Output | None,
        Instance(),
        "Type, layout and scale of the pixels.",
        "Default: uint8, or uint16 for a dataset in mode ``I;16``; NHWC.",
    ] = None
    boxes: Annotated[
        BoxOutput | None,
        Instance(),
        "How batches hold the boxes of the annotated objects of their samples.",
        "Default: they hold none.",
    ] = None
    fields: Annotated[
        Sequence[str] | Mapping[str, Field],
        "Names of the fields of the dataset that batches have, or a mapping from names to `stoker.fields`.",
        'A mapping gives fields another form, such as ``{"tags": stoker.fields.Labels(pad_to=8)}``. Masks and extra '
        "images are cropped, mirrored and resized as the first image is; see docs/how-to/fields.md.",
    ] = ()
    decode: Annotated[
        DecodeMode,
        '``"exact"`` or ``"fast"``.',
        "Exact pixels are those of libjpeg's accurate decode, resized as Pillow does it, with no difference. Fast "
        "decodes a JPEG at a half, a quarter or an eighth of its size if the crop is resized to no more than that, "
        "with coarser weights (docs/explanation/performance.md says how close). Both give the same pixels in any run.",
    ] = "exact"
    threads: Annotated[
        int | None,
        Range(1, 4096),
        "Number of decoding threads. Default: one per CPU of this rank.",
        "The CPUs that this process may use are divided by the ranks on its node, unless the launcher has bound each "
        "rank to CPUs of its own; see docs/reference/settings.md.",
    ] = None
    prefetch: Annotated[
        int,
        Range(0, 1024),
        "Number of batches decoded ahead of the consumer.",
        "Takes ``prefetch`` times the bytes of a batch. With 0, a batch is decoded when it is requested.",
    ] = 3
    rank: Annotated[
        int | None,
        "Rank of this process, from 0. Default: as the framework or the launcher says.",
        "The ranks share each epoch; see docs/reference/settings.md.",
    ] = None
    world_size: Annotated[int | None, "Number of ranks. Default: as ``rank``."] = None
    check_ranks: Annotated[
        bool,
        "Whether to raise an error if another rank has other settings or another state.",
        "Works only if the framework lets ranks talk; see docs/how-to/several-ranks.md. Give False if each rank has "
        "data of its own.",
    ] = True
    check: Annotated[bool, "Whether the checksum of every record is verified."] = True
    max_pixels: Annotated[
        int,
        Range(1, 2**32),
        "Images that declare more pixels are refused before anything is allocated for them.",
    ] = _native.DEFAULT_MAX_PIXELS
    cache: Annotated[
        MemoryCache | NodeCache | None,
        Instance(),
        "Where samples are cached after they are read.",
        "`MemoryCache` or `NodeCache`.",
    ] = None
    read_ahead: Annotated[
        ReadAhead | None,
        Instance(),
        "How much of a dataset in a bucket or in HDFS is fetched ahead.",
        "Default: ``ReadAhead()``.",
    ] = None
    on_bad: Annotated[
        OnBad,
        "What happens when a sample cannot be loaded.",
        'With ``"substitute"`` another sample takes its place, the same in every run. ``Batch.indices`` says which, '
        "`bad_samples` lists bad samples, and the epoch ends with a `stoker.errors.BadSampleWarning`. A damaged value "
        "of `stoker.fields.Json`, or bool in an array, always raises, since it is noticed in the finished batch.",
    ] = "raise"
    max_bad: Annotated[
        int,
        Range(0, 2**62),
        "Number of bad samples that an epoch may replace on this rank.",
    ] = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sampling is not None and isinstance(self.shuffle, BlockShuffle):
            message = f"sampling decides the order of an epoch, and shuffle={self.shuffle!r} asks for another"
            raise ConfigError(f"{message}; omit one of them")
        if self.decode == "fast" and self.decoded_cache is not None:
            message = "decode='fast' shrinks images while it decodes them, and this cache keeps them whole"
            raise ConfigError(f"{message}; use MemoryCache(..., keep='encoded'), or decode='exact'")

    @classmethod
    def of_order(cls, arguments: Mapping[str, Any], seed: int | None) -> Self:
        """Return, with a seed, those settings among a function's arguments that decide which samples come when."""
        deciding = {
            setting.name: arguments[setting.name] for setting in declared(LoaderSettings) if OfOrder() in setting.notes
        }
        return cls(**deciding, seed=seed, threads=1, rank=0, world_size=1)

    @property
    def decoded_cache(self) -> _native.MemoryCache | None:
        """The cache that keeps whole images as pixels, if there is one."""
        return self.cache.native if isinstance(self.cache, MemoryCache) and self.cache.keep == "decoded" else None


def settings_given(function: str, arguments: dict[str, Any]) -> LoaderSettings:
    """Return the settings among the arguments of a function, given as ``locals()`` in its first line.

    The argument ``unknown`` holds the keywords that the function does not have.
    """
    refuse_unknown(function, arguments["unknown"], arguments, LOADERS)
    refuse_no_transform(function, arguments["transform"])
    return LoaderSettings.among(arguments)
