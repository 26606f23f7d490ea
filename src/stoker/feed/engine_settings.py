"""How the engine of a loader makes batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, get_args

from stoker.errors import ConfigError
from stoker.feed.bad_samples import BadSamplePolicy
from stoker.feed.caches import MemoryCache
from stoker.feed.read_ahead import ReadAhead
from stoker.types import DecodeMode
from stoker.views import Output

if TYPE_CHECKING:
    from stoker import _native
    from stoker.feed.boxes import BoxOutput
    from stoker.feed.caches import NodeCache
    from stoker.order import BlockShuffle


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


def check_decode(settings: EngineSettings) -> None:
    """Refuse a way of decoding that is unknown, or does not go with the cache.

    Raises:
        ConfigError: It is one of these.
    """
    if settings.decode not in get_args(DecodeMode):
        raise ConfigError(f"decode is {settings.decode!r}; it must be 'exact' or 'fast'")
    if settings.decode == "fast" and decoded_cache(settings.cache) is not None:
        message = "decode='fast' shrinks images while it decodes them, and this cache keeps them whole"
        raise ConfigError(f"{message}; use MemoryCache(..., keep='encoded'), or decode='exact'")


def decoded_cache(cache: MemoryCache | NodeCache | None) -> _native.MemoryCache | None:
    """Return what keeps whole images as pixels, if anything does."""
    return cache.native if isinstance(cache, MemoryCache) and cache.keep == "decoded" else None
