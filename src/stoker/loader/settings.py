"""The settings of a loader, each declared once; signatures and docstrings are written from here by `make settings`.

`stoker.Loader` and the adapters for PyTorch, TensorFlow and JAX have a new one with that. It acts in `Feed`, if it says
which samples come when or how long an epoch is, or in `SampleEngine`, if it says how they are made.
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
    """How batches are made of a dataset: what `stoker.Loader` and the adapters of frameworks take."""

    batch_size: Annotated[int, "Number of images of a batch on this rank."] = 1
    shuffle: Annotated[
        bool | BlockShuffle,
        Instance(),
        OfOrder(),
        "Whether each epoch has its own random order.",
        "With `stoker.BlockShuffle` one that reads block by block.",
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
        "How often classes or samples come in an epoch.",
        "`stoker.Balanced` or `stoker.Weighted`, for one dataset, in random order. Default: each sample once. "
        "``Batch.valid`` marks repeats of a last batch only.",
    ] = None
    max_samples: Annotated[
        int | None,
        Range(1, 2**62),
        OfOrder(),
        "Number of samples of an epoch, over all ranks. Default: all.",
        "They are the first of the epoch's order: others in each epoch where it is shuffled. For the same samples in "
        "every epoch open a part of the dataset, such as ``train[:1000]``.",
    ] = None
    seed: Annotated[
        int | None,
        Range(0, 2**64 - 1),
        "Seed of the order and of the random choices. Default: in one process a new one, on several ranks 0.",
        "0 to 2**64 - 1; in the state. In one process ``torch.manual_seed`` decides it if PyTorch was imported before. "
        "A loader without a seed takes that of a loaded state.",
    ] = None
    output: Annotated[
        Output | None,
        Instance(),
        "Type, layout and scale of the pixels.",
        "Default: uint8, of a dataset in mode ``I;16`` uint16; NHWC.",
    ] = None
    boxes: Annotated[
        BoxOutput | None,
        Instance(),
        "In which form batches have the annotated objects of their samples.",
        "Default: not at all.",
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
        "Exact are the pixels of libjpeg's accurate decode, resized as Pillow does, difference 0. Fast decodes JPEGs "
        "at a half, a quarter or an eighth of their size where the crop is resized to no more than that, with coarser "
        "weights (docs/explanation/performance.md has how close): the same pixels in every run, too.",
    ] = "exact"
    threads: Annotated[
        int | None,
        Range(1, 4096),
        "Number of decoding threads. Default: one per CPU of this rank.",
        "That is one for each CPU that this process may use, divided by the ranks on its node unless the launcher has "
        "bound each to CPUs of its own; see docs/reference/settings.md.",
    ] = None
    prefetch: Annotated[
        int,
        Range(0, 1024),
        "Number of batches decoded ahead of the consumer.",
        "Costs ``prefetch`` times the bytes of a batch. 0: a batch is decoded when it is asked for.",
    ] = 3
    rank: Annotated[
        int | None,
        "Number of this process among the ranks. Default: as the framework or the launcher says.",
        "The ranks consume an epoch together; see docs/reference/settings.md.",
    ] = None
    world_size: Annotated[int | None, "Number of ranks. Default: as ``rank``."] = None
    check_ranks: Annotated[
        bool,
        "Whether other settings or another state on another rank raise an error.",
        "Only where the framework lets ranks talk; see docs/how-to/several-ranks.md. False if each rank has data of "
        "its own.",
    ] = True
    check: Annotated[bool, "Whether the checksum of every record is verified."] = True
    max_pixels: Annotated[
        int,
        Range(1, 2**32),
        "Images that declare more are refused before anything is allocated for them.",
    ] = _native.DEFAULT_MAX_PIXELS
    cache: Annotated[
        MemoryCache | NodeCache | None,
        Instance(),
        "Where samples are cached once they were read.",
        "`MemoryCache` or `NodeCache`.",
    ] = None
    read_ahead: Annotated[
        ReadAhead | None,
        Instance(),
        "How much of a dataset in a bucket or in HDFS is fetched ahead.",
        "Default: `ReadAhead`'s.",
    ] = None
    on_bad: Annotated[
        OnBad,
        "What happens where a sample cannot be loaded.",
        'With ``"substitute"`` another one takes its place, the same in every run; ``Batch.indices`` says which, '
        "`bad_samples` lists them, and the end of the epoch brings a `stoker.errors.BadSampleWarning`. A damaged value "
        "of `stoker.fields.Json`, or bool in an array, always raises: it is seen when the batch is complete.",
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
        """Return the settings among the arguments of a function that decide which samples come when, with a seed."""
        deciding = {
            setting.name: arguments[setting.name] for setting in declared(LoaderSettings) if OfOrder() in setting.notes
        }
        return cls(**deciding, seed=seed, threads=1, rank=0, world_size=1)

    @property
    def decoded_cache(self) -> _native.MemoryCache | None:
        """The cache that keeps whole images as pixels, if there is one."""
        return self.cache.native if isinstance(self.cache, MemoryCache) and self.cache.keep == "decoded" else None


def settings_given(function: str, arguments: dict[str, Any]) -> LoaderSettings:
    """Return the settings among the arguments of a function, which are taken by ``locals()`` in its first line.

    The argument ``unknown`` holds the keywords that the function does not have.
    """
    refuse_unknown(function, arguments["unknown"], arguments, LOADERS)
    refuse_no_transform(function, arguments["transform"])
    return LoaderSettings.among(arguments)
