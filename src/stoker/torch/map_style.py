"""Samples by number, for the stock ``torch.utils.data.DataLoader``."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import get_worker_info

from stoker import _native
from stoker.config import available_cpus, check_range
from stoker.errors import ConfigError
from stoker.feed import Dataset
from stoker.feed.engine import SampleEngine
from stoker.feed.engine_settings import EngineSettings
from stoker.torch.batch import tensors
from stoker.views import MultiView, ObjectCrops, Output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stoker.views import View


class MapDataset(TorchDataset[tuple[Any, int]]):
    """A dataset for ``torch.utils.data.DataLoader`` and for samplers of your own: pairs of image and label.

    An image is a tensor, or with `stoker.MultiView` a tuple of them, one for each view. Pixels are those of
    `stoker.torch.DataLoader` with the same seed, in the same epoch. A whole batch of numbers, as the stock loader asks
    for it, is decoded at once, by native threads; so ``num_workers=0`` is already parallel. In worker processes, forked
    or spawned, it opens its files anew and decodes with one thread, unless ``threads`` says otherwise. Not safe from
    several threads of one process.

    Args:
        dataset: What to read; see `stoker.open`.
        view: What becomes of each image. With `stoker.ObjectCrops` samples are annotated objects, not images.
        seed: Of the view's random choices, 0 to 2**64 - 1.
        output: Type, layout and scale of the pixels; left out: uint8, NHWC.
        threads: Decoding threads; left out: one for each CPU that this process may use, in a worker process one.
        check: Whether the checksum of every record is verified.
        max_pixels: Images that declare more are refused before anything is allocated for them.

    Raises:
        ConfigError: A setting is out of range, or ``dataset`` is a mix; or, in a spawned worker, another dataset lies
            where this one was opened.
        ShardError: On use: a record is damaged.
        ExampleError: On use: a record lacks the image or the label.
        ImageError: On use: an image cannot be decoded without losing pixels.
    """

    def __init__(
        self,
        dataset: Dataset,
        view: View,
        *,
        seed: int = 0,
        output: Output | None = None,
        threads: int | None = None,
        check: bool = True,
        max_pixels: int = _native.DEFAULT_MAX_PIXELS,
    ) -> None:
        if not isinstance(dataset, Dataset):
            message = f"MapDataset takes one dataset, and not {dataset!r}"
            raise ConfigError(f"{message}; a mix has positions in an epoch: give it to stoker.torch.DataLoader")
        self.dataset = dataset
        self.view = view
        self._output = output or Output()
        self._seed = check_range("seed", seed, 0, 2**64 - 1)
        self._threads = threads if threads is None else check_range("threads", threads, 1, 4096)
        self._check = check
        self._max_pixels = check_range("max_pixels", max_pixels, 1, 2**32)
        objects = isinstance(view, ObjectCrops)
        self._size = int(np.maximum(dataset.object_counts, 1).sum()) if objects else len(dataset)
        # In shared memory, so that workers that outlive an epoch hear of the next one.
        self._epoch = cast("Any", torch.zeros((), dtype=torch.int64)).share_memory_()
        self._engine: _ProcessEngine | None = None

    def __len__(self) -> int:
        """Return the number of samples."""
        return self._size

    def __getitem__(self, index: int) -> tuple[Any, int]:
        """Return one image, as the view shows it in this epoch, and its label.

        Raises:
            IndexError: There is no such sample.
        """
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Any, int]]:
        """Return several at once; the stock loader calls this. The images share one block of memory.

        Raises:
            IndexError: There is no such sample.
        """
        if not indices:
            return []
        engine = self._engine_for(len(indices))
        engine.submit(np.array([self._number(index) for index in indices], np.uint64), int(self._epoch))
        try:
            loaded = engine.next()
        except BaseException:  # Ctrl-C, too: the next call must not get what this one asked for
            engine.drop_pending()
            raise
        shown = tensors(loaded.images)
        each = zip(*shown, strict=True) if isinstance(self.view, MultiView) else shown[0]
        return list(zip(each, loaded.labels.tolist(), strict=True))

    def set_epoch(self, epoch: int) -> None:
        """Go to an epoch: random views show something else in each. Worker processes that run already follow."""
        self._epoch.fill_(check_range("epoch", epoch, 0, 2**63 - 1))

    def close(self) -> None:
        """Stop the threads of this process; using it again starts new ones."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_engine": None}

    def _number(self, index: int) -> int:
        if not -self._size <= index < self._size:
            raise IndexError(f"there is no sample {index}; split {self.dataset.split} has {self._size}")
        return index % self._size

    def _engine_for(self, count: int) -> SampleEngine:
        """Return an engine of this process that takes so many samples at once."""
        if self._engine is not None and not self._engine.usable:
            self._engine = None
            self.dataset = self.dataset.with_own_files()
        if self._engine is None or self._engine.batch_size < count:
            self.close()
            self._engine = _ProcessEngine(self, count)
        return self._engine.engine

    def _new_engine(self, batch_size: int) -> SampleEngine:
        threads = self._threads or (1 if get_worker_info() is not None else available_cpus())
        settings = EngineSettings(
            seed=self._seed,
            check=self._check,
            max_pixels=self._max_pixels,
            batch_size=check_range("the number of samples asked for at once", batch_size, 1, 2**20),
            threads=threads,
            spare_buffers=2,
            output=self._output,
        )
        return SampleEngine(self.dataset, self.view, settings)


class _ProcessEngine:
    """The engine of one process, closed with its dataset or at the latest when the interpreter exits."""

    def __init__(self, owner: MapDataset, batch_size: int) -> None:
        self.engine = owner._new_engine(batch_size)
        self.batch_size = batch_size
        self._process = os.getpid()
        self.close = weakref.finalize(owner, self.engine.closing())  # in a forked process it does nothing

    @property
    def usable(self) -> bool:
        """Whether this is still the process that its threads belong to."""
        return os.getpid() == self._process
