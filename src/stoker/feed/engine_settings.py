"""How the engine of a loader makes batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import NoneType
from typing import TYPE_CHECKING, get_args

from stoker.errors import ConfigError
from stoker.feed.bad_samples import BadSamplePolicy
from stoker.feed.boxes import BoxOutput
from stoker.feed.caches import MemoryCache, NodeCache
from stoker.feed.read_ahead import ReadAhead
from stoker.order import BlockShuffle
from stoker.types import DecodeMode
from stoker.views import Output

if TYPE_CHECKING:
    from stoker import _native

_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "shuffle": ((bool, BlockShuffle), "True, False or a stoker.BlockShuffle"),
    "output": ((Output,), "a stoker.Output"),
    "boxes": ((BoxOutput, NoneType), "a stoker.BoxOutput or None"),
    "cache": ((MemoryCache, NodeCache, NoneType), "a stoker.MemoryCache, a stoker.NodeCache or None"),
    "read_ahead": ((ReadAhead,), "a stoker.ReadAhead"),
}


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How batches are made.

    Attributes:
        seed: Of the order and of the random choices of views.
        shuffle: Whether the samples of an epoch are shuffled, and whether as blocks.
        decode: How closely images are decoded and resized; see `stoker.Loader`.
        check: Whether the checksum of every record is verified.
        max_pixels: Images that declare more are refused.
        batch_size: The most samples of a batch.
        threads: Decoding threads.
        spare_buffers: Buffers of a batch's pixels that are kept for reuse, of each view.
        output: Type and layout of the pixels.
        boxes: In which form batches have boxes; None for none.
        cache: Where samples are kept, so that they need not be read again; None for nowhere.
        bad: What becomes of samples that cannot be loaded.
        read_ahead: How remote samples are read.

    Raises:
        ConfigError: A setting is of another kind, the way of decoding is unknown, or it does not go with the cache.
    """

    seed: int
    check: bool
    max_pixels: int
    batch_size: int
    threads: int
    spare_buffers: int
    shuffle: bool | BlockShuffle = False
    decode: DecodeMode = "exact"
    output: Output = field(default_factory=Output)
    boxes: BoxOutput | None = None
    cache: MemoryCache | NodeCache | None = None
    bad: BadSamplePolicy = field(default_factory=BadSamplePolicy)
    read_ahead: ReadAhead = field(default_factory=ReadAhead)

    def __post_init__(self) -> None:
        for name, (kinds, known) in _KINDS.items():
            if not isinstance(getattr(self, name), kinds):
                raise ConfigError(f"{name} is {getattr(self, name)!r}; it must be {known}")
        if self.decode not in get_args(DecodeMode):
            raise ConfigError(f"decode is {self.decode!r}; it must be 'exact' or 'fast'")
        if self.decode == "fast" and decoded_cache(self.cache) is not None:
            message = "decode='fast' shrinks images while it decodes them, and this cache keeps them whole"
            raise ConfigError(f"{message}; use MemoryCache(..., keep='encoded'), or decode='exact'")


def decoded_cache(cache: MemoryCache | NodeCache | None) -> _native.MemoryCache | None:
    """Return what keeps whole images as pixels, if anything does."""
    return cache.native if isinstance(cache, MemoryCache) and cache.keep == "decoded" else None
