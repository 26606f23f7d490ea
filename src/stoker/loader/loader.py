"""The loader: epochs of batches in a known order, decoded on native threads.

Failure protocol. A bad sample raises its error when the batch that holds it is due; the error names shard, record, byte
and source. The batches before it are delivered, the iteration then is over, and the state stays before the failed
batch. A consumer may leave an iteration early: the state says exactly where, and the next iteration yields the next
epoch. `Loader.close`, the end of a ``with`` block and the end of the program stop the threads.
"""

from __future__ import annotations

import warnings
import weakref
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never

from stoker import _native
from stoker.config import check_range
from stoker.errors import ClosedError, ConfigError, SourceWarning, StokerError
from stoker.forks import PerProcess
from stoker.habits import ITERATING, needs_transform, no_attribute
from stoker.loader.engine import SampleEngine
from stoker.loader.feed import Feed
from stoker.loader.mixes import dataset_of, parts_of
from stoker.loader.pictures import escaped, notebook_block
from stoker.loader.ranks import Agreement, check_group
from stoker.loader.settings import LoaderSettings, settings_given
from stoker.loader.tracing import Trace
from stoker.order import Position, steps_from
from stoker.recipe import is_turned
from stoker.sources import read_config
from stoker.storage import location
from stoker.transforms import ObjectCrops

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Self

    from stoker.loader.batch import Batch, BoxOutput
    from stoker.loader.caches import MemoryCache, NodeCache
    from stoker.loader.dataset import Dataset
    from stoker.loader.engine import BadSampleReport
    from stoker.loader.feed import RunIdentity
    from stoker.loader.mixes import Mix
    from stoker.loader.read_ahead import ReadAhead
    from stoker.loader.sampling import Balanced, Weighted
    from stoker.loader.settings import OnBad
    from stoker.loader.stats import LoaderStats
    from stoker.loader.tracing import EventLog
    from stoker.order import BlockShuffle, Tail
    from stoker.transforms import Output, Transform
    from stoker.types import DecodeMode, Field

_MAX_WRAPPED = 4
_SAMPLED_IMAGES, _MAX_SAMPLED_BYTES = 32, 16 << 20
_sampled: set[tuple[str, str]] = set()
"""Paths and splits whose images were checked for an EXIF orientation."""

_first_epochs: PerProcess[set[tuple[RunIdentity, int]]] = PerProcess(set)
"""Runs and ranks of loaders without a seed that have read the first epoch and no other."""


class Loader:
    """Epochs of fixed-shape image batches.

    Every iteration yields one whole epoch: the first one epoch 0, each later one the next epoch, even if the one before
    was left early. After `load_state_dict`, the next iteration yields the rest of the state's epoch. The order is a
    pure function of (dataset, seed, epoch), and pixels of (seed, epoch, sample): threads, prefetch, batch size and
    number of ranks never change them. One instance serves one consumer thread; any number of loaders may run at once.

    A loader pickles as its settings and its state. Unpickled, it starts new threads, finds out the rank of its process
    unless ``rank`` was given, and continues where the pickled loader was.

    Args:
        dataset: What to read; see `stoker.open` and `stoker.mix`.
        batch_size: Number of images of a batch on this rank.
        shuffle: Whether each epoch has its own random order. `stoker.BlockShuffle` gives a random order that reads
            block by block.
        transform: How each image is cropped, resized and changed. With `stoker.ObjectCrops` samples are annotated
            objects, not images.
        drop_last: Whether samples that do not fill a batch on every rank are left out of an epoch. The same as
            ``tail="drop"``.
        tail: What happens to samples that do not fill a last batch. See docs/how-to/several-ranks.md. Default:
            ``"short"`` on one rank, so its last batch may be smaller; ``"pad"`` on several, so samples repeat until
            each rank has as many full batches as the others, and ``Batch.valid`` is false for the repeats.
        sampling: How often each class or sample comes in an epoch. `stoker.Balanced` or `stoker.Weighted`, for one
            dataset, in random order. Default: each sample once. ``Batch.valid`` marks only the repeats that fill a last
            batch.
        max_samples: Number of samples of an epoch, over all ranks. Default: all. They are the first ones of the epoch's
            order, so with ``shuffle`` they differ in each epoch. For the same samples in every epoch, load a part of
            the dataset, such as ``train[:1000]``.
        seed: Seed of the order and of the random choices. Default: a new one; 0 on several ranks. 0 to 2**64 - 1; part
            of the state. On one rank, ``torch.manual_seed`` decides the default if PyTorch was imported before. A
            loader without a seed takes that of a loaded state.
        output: Type, layout and scale of the pixels. Default: uint8, or uint16 for a dataset in mode ``I;16``; NHWC.
        boxes: How batches hold the boxes of the annotated objects of their samples. Default: they hold none.
        fields: Names of the fields of the dataset that batches have, or a mapping from names to `stoker.fields`. A
            mapping gives fields another form, such as ``{"tags": stoker.fields.Labels(pad_to=8)}``. Masks and extra
            images are cropped, mirrored and resized as the first image is; see docs/how-to/fields.md.
        decode: ``"exact"`` or ``"fast"``. Exact pixels are those of libjpeg's accurate decode, resized as Pillow does
            it, with no difference. Fast decodes a JPEG at a half, a quarter or an eighth of its size if the crop is
            resized to no more than that, with coarser weights (docs/explanation/performance.md says how close). Both
            give the same pixels in any run.
        threads: Number of decoding threads. Default: one per CPU of this rank. The CPUs that this process may use are
            divided by the ranks on its node, unless the launcher has bound each rank to CPUs of its own; see
            docs/reference/settings.md.
        prefetch: Number of batches decoded ahead of the consumer. Takes ``prefetch`` times the bytes of a batch. With
            0, a batch is decoded when it is requested.
        rank: Rank of this process, from 0. Default: as the framework or the launcher says. The ranks share each epoch;
            see docs/reference/settings.md.
        world_size: Number of ranks. Default: as ``rank``.
        check_ranks: Whether to raise an error if another rank has other settings or another state. Works only if the
            framework lets ranks talk; see docs/how-to/several-ranks.md. Give False if each rank has data of its own.
        check: Whether the checksum of every record is verified.
        max_pixels: Images that declare more pixels are refused before anything is allocated for them.
        cache: Where samples are cached after they are read. `MemoryCache` or `NodeCache`.
        read_ahead: How much of a dataset in a bucket or in HDFS is fetched ahead. Default: ``ReadAhead()``.
        on_bad: What happens when a sample cannot be loaded. With ``"substitute"`` another sample takes its place, the
            same in every run. ``Batch.indices`` says which, `bad_samples` lists bad samples, and the epoch ends with a
            `stoker.errors.BadSampleWarning`. A damaged value of `stoker.fields.Json`, or bool in an array, always
            raises, since it is noticed in the finished batch.
        max_bad: Number of bad samples that an epoch may replace on this rank.
        unknown: Not a setting: keywords of other libraries' loaders are refused with the setting to use instead.

    Warns:
        RankWarning: Two sources disagree about the ranks, or other processes may read the same samples.
        SourceWarning: At the start of the first epoch of a dataset: images have an EXIF orientation.

    Raises:
        ConfigError: A setting is out of range, ``drop_last`` contradicts ``tail``, or the dataset is empty, has no
            boxes although the transform or ``boxes`` needs them, lacks one of ``fields``, or is in a mode that the
            transform or ``output`` does not support. Raised here, before any record is read. While iterating: the ranks
            disagree.
        TypeError: A setting does not exist.
        ShardError: While iterating: a record is damaged. With `stoker.ObjectCrops` also here, where the first loader
            of a dataset counts the objects of all records.
        ExampleError: While iterating: a record lacks the image, the label or a field, or a mask or an extra image is
            not as large as its image.
        ImageError: While iterating: an image cannot be decoded without losing pixels.
        TooManyBadSamplesError: While iterating: more samples were bad than may be replaced.

    Example:
        >>> with stoker.Loader(train, 64, transform=stoker.CenterCrop(224)) as loader:  # doctest: +SKIP
        ...     images, labels = next(iter(loader))
    """

    @needs_transform
    def __init__(
        self,
        dataset: Dataset | Mix,
        # settings: loader.settings.LoaderSettings explained
        batch_size: int = 1,
        shuffle: bool | BlockShuffle = False,
        *,
        transform: Transform,
        drop_last: bool = False,
        tail: Tail | None = None,
        sampling: Balanced | Weighted | None = None,
        max_samples: int | None = None,
        seed: int | None = None,
        output: Output | None = None,
        boxes: BoxOutput | None = None,
        fields: Sequence[str] | Mapping[str, Field] = (),
        decode: DecodeMode = "exact",
        threads: int | None = None,
        prefetch: int = 3,
        rank: int | None = None,
        world_size: int | None = None,
        check_ranks: bool = True,
        check: bool = True,
        max_pixels: int = _native.DEFAULT_MAX_PIXELS,
        cache: MemoryCache | NodeCache | None = None,
        read_ahead: ReadAhead | None = None,
        on_bad: OnBad = "raise",
        max_bad: int = 100,
        # end of settings
        **unknown: Never,
    ) -> None:
        self._open(dataset, settings_given("stoker.Loader", locals()))

    def _open(self, dataset: Dataset | Mix, settings: LoaderSettings, *, seed: int | None = None) -> None:
        dataset = dataset_of(dataset)
        self.dataset, self.settings = dataset, settings
        self.transform = settings.transform
        self._position = Position(0, 0)
        self._begun = False  # whether an iteration has yielded batches of the current epoch, but not its last one
        self._iterations = 0
        self._start(Feed(dataset, settings, seed=seed))
        self.topology = self.feed.topology
        self._agreement = Agreement(self.topology, check_ranks=settings.check_ranks)
        self._may_repeat = settings.seed is None and self.topology.world_size > 1  # until told where to begin

    def _start(self, feed: Feed) -> None:
        self.feed = feed
        self._engine = SampleEngine(feed)
        self._close = weakref.finalize(self, self._engine.close)

    def __len__(self) -> int:
        """Return the number of batches of a whole epoch."""
        return self.feed.steps_after(0)

    def __getitem__(self, key: object) -> Never:
        raise TypeError(f"stoker.Loader is iterated, and has no items: {ITERATING['[]']}")

    __getattr__ = no_attribute("stoker.Loader", ITERATING)

    def __iter__(self) -> Iterator[Batch]:
        """Yield the next epoch, or the rest of the one that a loaded state is in."""
        self._check_usable()
        self._check_group()
        self._iterations += 1
        self._engine.drop_pending()  # of an iteration that was left early
        if self._begun:
            self._go_to(Position(self._position.epoch + 1, 0))
        self._engine.look_ahead(self._position)
        return self._rest_of_epoch(self._iterations)

    def _rest_of_epoch(self, iteration: int) -> Iterator[Batch]:
        self._check_current(iteration)  # this runs when the first batch is asked for
        epoch, consumed = self._position.epoch, self._position.consumed
        steps = steps_from(self.feed.samples.order(epoch), consumed, self.topology)
        self._engine.begin_report(epoch)
        if self._may_repeat and self.feed.run.shuffle:
            _warn_of_repeated_epoch(self.feed.run, self.topology.rank, epoch)
        for step in islice(steps, self.settings.prefetch):
            self._engine.submit(step, epoch)
        _warn_of_orientation(self.dataset)  # while the first batches are decoded
        self._agreement.compare(**self.feed.shared)
        for batches_left in reversed(range(self.feed.steps_after(consumed))):
            for step in islice(steps, 1):
                self._engine.submit(step, epoch)
            batch = self._engine.next()
            self._position, self._begun = batch.position, batches_left > 0
            if batches_left == 0:  # now, since many loops never ask for more than the last batch
                self._engine.end_report()
            yield batch
            if batches_left > 0:
                self._check_current(iteration)
            self._agreement.compare(seed=self.feed.seed, epoch=epoch, consumed=consumed)
        if iteration == self._iterations:
            self._go_to(Position(epoch + 1, 0))
            if self._may_repeat and epoch == 0:
                _first_epochs.get().add((self.feed.run, self.topology.rank))

    def _go_to(self, position: Position) -> None:
        self._position = position
        self._begun = False

    def _check_usable(self) -> None:
        if not self._close.alive:
            raise ClosedError("this loader is closed; make a new one")
        self._engine.check_process()

    def _check_current(self, iteration: int) -> None:
        if iteration != self._iterations:
            message = "another iteration of this loader has begun, or it went to another epoch or state"
            raise ClosedError(f"{message}; one loader serves one iteration at a time")
        self._check_group()  # a group may have come up since

    def _check_group(self) -> None:
        if self.settings.rank is None:
            check_group(self.topology.rank, self.topology.world_size)

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch, which the next iteration yields; an iteration under way is over."""
        self._iterations += 1
        self._may_repeat = False
        self._go_to(Position(check_range("epoch", epoch, 0, 2**63), 0))

    @property
    def bad_samples(self) -> BadSampleReport:
        """The samples that were replaced in this epoch, or in the last one until the next begins."""
        return self._engine.report

    def stats(self) -> LoaderStats:
        """Return what this loader has done since it was made, and where the time went. Safe from any thread."""
        return self._engine.stats()

    def events(self) -> EventLog:
        """Return the log of what the threads do, and when; `stoker.trace` writes it to a file."""
        return self._engine.events()

    def state_dict(self, position: Position | None = None) -> dict[str, Any]:
        """Return the state: small enough for any checkpoint, valid for any topology, the same on every rank.

        Args:
            position: Position of the last batch that was used, if batches wait in a queue after they left this loader.
                Default: after the batches that were handed out; those decoded ahead do not count.
        """
        return self.feed.run.state_at(position or self._position)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to where another loader of the same dataset, seed and shuffle was; the next iteration continues there.

        That iteration yields the rest of the epoch, which has no batch if ``tail="drop"`` leaves none for these ranks
        and this batch size. A loader without a seed takes that of the state.

        Raises:
            ConfigError: The state is of another dataset, seed or order, or is not a state.
            ClosedError: The state has another seed, and this loader is closed.
        """
        feed, position = self.feed.resumed(state)
        if feed is not self.feed:
            self._check_usable()
            close = self._close
            self._start(feed)
            close()
        self._iterations += 1  # an iteration under way is over
        self._may_repeat = False
        self._go_to(position)

    def __getstate__(self) -> dict[str, Any]:
        call_site, state = self._agreement.call_site, self.state_dict()
        return {"dataset": self.dataset, "settings": self.settings, "state": state, "call_site": call_site}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        Loader._open(self, saved["dataset"], saved["settings"], seed=saved["state"]["seed"])
        self._agreement.call_site = saved["call_site"]
        self.load_state_dict(saved["state"])

    def close(self) -> None:
        """Stop the threads; the samples being decoded are finished first. Batches already handed out stay valid."""
        self._close()

    def __repr__(self) -> str:
        return "\n  ".join([f"<stoker.Loader of {self.dataset!r}", *self._facts()]) + ">"

    def _repr_html_(self) -> str:
        return notebook_block(f"<b>stoker.Loader</b> of {escaped(self.dataset)}", self._facts())

    def _facts(self) -> list[str]:
        settings, topology, state = self.settings, self.topology, self.state_dict()
        output = self.feed.output
        cache = "" if settings.cache is None else f", {settings.cache!r}"
        steps = f"{len(self):,} batches of {topology.batch_size:,} an epoch, tail {topology.tail!r}"
        sampling = "" if settings.sampling is None else f", sampling={settings.sampling!r}"
        ranks = "" if topology.world_size == 1 else f", rank {topology.rank} of {topology.world_size}"
        fields = [f"fields {', '.join(settings.fields)}"] if settings.fields else []
        return [
            f"transform {self.transform!r}",
            *fields,
            f"{output.dtype} {output.layout}, decode {settings.decode!r}, threads={self.feed.cpus}{cache}",
            f"{steps}{ranks}, shuffle={settings.shuffle}{sampling}, seed={self.feed.seed}",
            f"at epoch {state['epoch']}, {state['consumed']:,} samples consumed",
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _warn_of_orientation(dataset: Dataset | Mix) -> None:
    """Check a few images of each local split, once per process, and warn if some have an EXIF orientation."""
    for part in parts_of(dataset):
        is_decided = part.exif is not None or part.schema.image_encoding == "raw"
        if is_decided or part.remote is not None or (part.path, part.split) in _sampled:
            continue
        _sampled.add((part.path, part.split))
        indices, turned = [*range(0, len(part), -(-len(part) // _SAMPLED_IMAGES))], 0
        if not part.shards:
            sizes = part.sample_bytes
            indices = [index for index in indices if sizes[index] <= _MAX_SAMPLED_BYTES]
        for index in indices:
            with suppress(StokerError, OSError):  # reported where the sample is used
                encoded = part[index].encoded if part.shards else part.records.read(int(part.numbers[index]))
                turned += is_turned(encoded)
        if turned:
            message = f"{turned} of {len(indices)} images looked at in {part.path} have an EXIF orientation"
            message = f"{message}, which is not applied (docs/explanation/pixels.md)"
            advice = "stoker.open(..., exif='apply') turns them upright, and exif='keep' leaves them as they are"
            warnings.warn(f"{message}; {advice}", SourceWarning, stacklevel=3)


def _warn_of_repeated_epoch(run: RunIdentity, rank: int, epoch: int) -> None:
    """Warn if a loader begins with epoch 0 after another loader of the same run has read epoch 0 and no other."""
    if epoch > 0:
        _first_epochs.get().discard((run, rank))  # one loader serves all epochs, as it should
    elif (run, rank) in _first_epochs.get():
        message = "this loader repeats epoch 0 of another one: on several ranks the default seed is 0"
        advice = "make one loader for all epochs, or give the loader of each epoch its own seed="
        warnings.warn(f"{message}; {advice}", stacklevel=3)


def loader_of(dataset: Dataset | Mix, settings: LoaderSettings, *, seed: int | None = None) -> Loader:
    """Return a loader with settings that are already checked; ``seed``, of a loaded state, counts if they have none."""
    loader = Loader.__new__(Loader)
    loader._open(dataset, settings, seed=seed)
    return loader


def trace(loader: Any, path: str | Path, *, most: int = 2_000_000) -> Trace:
    """Write what every thread of a loader does while a ``with`` block runs.

    Costs a few percent of the decoding threads' time. An event takes about 120 bytes of the file, and a JPEG makes five
    events; a name that ends in ``.gz`` compresses the file to a tenth.

    Args:
        loader: A `stoker.Loader`, or an adapter that has one as its ``loader``, such as `stoker.torch.DataLoader`.
        path: The file to write; open it in https://ui.perfetto.dev or chrome://tracing.
        most: The most events in the file; further ones are only counted, in `Trace.lost` and in the file.

    Raises:
        ConfigError: ``loader`` is not a loader and has none, or is being traced already.
        OSError: The file cannot be written; raised when the block begins, or when it ends.

    Example:
        >>> with stoker.trace(loader, "input.trace.json.gz"):  # doctest: +SKIP
        ...     train(loader)
    """
    return Trace(loader_in(loader).events(), Path(path), most)


def loader_in(value: object) -> Loader:
    """Return the loader that a value is, or has as its attribute ``loader``, also nested, as adapters have it."""
    candidate = value
    for _ in range(_MAX_WRAPPED):
        if isinstance(candidate, Loader):
            return candidate
        candidate = getattr(candidate, "loader", None)
    message = f"{type(value).__name__} is not a stoker.Loader, and has none as its attribute 'loader'"
    raise ConfigError(f"{message}; give the loader that the training loop iterates")


def loader_settings(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return settings for `stoker.Loader`, or for an adapter, that do what ALCF's ``ilsvrc.json`` asks for.

    ``batch_size`` stays, ``crop_image_size`` becomes ``transform=ObjectCrops(...)``, any ``shuffle_buffer`` becomes
    ``shuffle=True`` (a full shuffle, different in each epoch), ``num_parallel_readers`` becomes ``threads``, and
    ``prefetch_buffer_size`` becomes ``prefetch``. For keys that the file omits, and 0 readers, the loader has defaults.

    Raises:
        ConfigError: The file lacks ``batch_size`` or ``crop_image_size``, a value is not valid, or a key has no effect:
            it is unknown, or it is ``reshuffle_each_iteration`` and false.
        SourceError: The file is not such a configuration.
    """
    config = read_config(location(path))
    if config.batch_size is None or config.crop_image_size is None:
        message = f"{path} lacks {'batch_size' if config.batch_size is None else 'crop_image_size'} in its section data"
        raise ConfigError(f"{message}, without which no batch has a shape")
    settings: dict[str, Any] = {
        "batch_size": config.batch_size,
        "transform": ObjectCrops(config.crop_image_size),
        "shuffle": bool(config.shuffle_buffer),
        "threads": config.num_parallel_readers or None,
    }
    if config.shuffle_buffer and config.reshuffle_each_iteration is False:
        message = f"{path}: data.reshuffle_each_iteration is false, but a loader shuffles anew in every epoch"
        advice = "for one order in all epochs write the list with 'stoker list --shuffle' and set shuffle_buffer to 0"
        raise ConfigError(f"{message}; set it to true, or {advice}")
    return settings | ({} if config.prefetch_buffer_size is None else {"prefetch": config.prefetch_buffer_size})
