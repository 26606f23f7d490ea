"""Sampling by weight: how often each class or sample comes in an epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker import _native
from stoker.config import check_range, format_count
from stoker.errors import ConfigError
from stoker.loader.epochs import Images, Request, Samples
from stoker.loader.selection import label_named, refuse_unlabelled
from stoker.order import random_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from stoker.format import ClassLabel
    from stoker.loader.dataset import Dataset


_PURPOSE = 0x73616D70  # "samp": keeps these draws apart from others of the same seed

_HEAVIEST = 2**32
"""The heaviest weight as a whole number; lighter weights are rounded to fractions of it."""


@dataclass(frozen=True, slots=True)
class Balanced:
    """Every class comes equally often: ``Loader(..., sampling=stoker.Balanced())``.

    Each class has an equal share of an epoch, to within one sample. The samples of a class come in a random order, each
    once before any comes again, even across epochs. The order of an epoch is random, whatever ``shuffle`` says.

    Attributes:
        samples: Length of an epoch, at most 2**31; None: as many as the dataset has samples.
        replacement: Whether each position is drawn independently instead: first a class, then one of its samples.
            Shares are then only nearly equal, and a sample may come again before others have come.

    Raises:
        ConfigError: ``samples`` is out of range.
    """

    samples: int | None = None
    replacement: bool = False

    def __post_init__(self) -> None:
        _check_samples(self.samples)

    @property
    def name(self) -> str:
        """Its name in saved states."""
        return f"balanced{':replacement' * self.replacement}"


@dataclass(frozen=True, slots=True, eq=False)
class Weighted:
    """Classes or samples come as often as their weights say: ``Loader(..., sampling=stoker.Weighted(weights))``.

    Weights are shares of an epoch, and may have any sum. Each is rounded to a multiple of the heaviest over 2**32. The
    order of an epoch is random, whatever ``shuffle`` says.

    Attributes:
        weights: A mapping gives the weight of each class, by label or by name: ``{"cat": 3, "dog": 1}``; samples of a
            class are equally likely. Anything else gives the weight of each sample of the dataset, in its order. 0
            leaves a class or a sample out.
        samples: Length of an epoch, at most 2**31; None: as many as the dataset has samples.
        replacement: If false, a sample comes in each epoch as often as its share says, rounded down or up, so none
            comes twice if no share is above one. Weighted classes have their shares, and the samples of a class come in
            turn, as with `Balanced`. If true, each position is drawn independently.

    Raises:
        ConfigError: ``samples`` is out of range, or a weight is not a number of at least 0, or all are 0.
    """

    weights: Mapping[int | str, float] | ArrayLike
    samples: int | None = None
    replacement: bool = False

    def __post_init__(self) -> None:
        _check_samples(self.samples)
        whole_numbers(self.by_class().values() if self.is_by_class else self.weights)

    @property
    def is_by_class(self) -> bool:
        """Whether the weights are those of classes."""
        return isinstance(self.weights, Mapping)

    def by_class(self) -> dict[int | str, float]:
        """Return the weights of classes."""
        return dict(self.weights) if isinstance(self.weights, Mapping) else {}

    @property
    def name(self) -> str:
        """Its name in saved states."""
        if isinstance(self.weights, Mapping):
            given = repr(sorted((str(key), float(weight)) for key, weight in self.weights.items())).encode()
        else:
            given = np.ascontiguousarray(whole_numbers(self.weights), "<u8").tobytes()
        return f"weighted:{_native.crc32c(given):08x}{':replacement' * self.replacement}"

    def __repr__(self) -> str:
        weights = repr(self.weights) if self.is_by_class else f"<{np.size(np.asarray(self.weights))} weights>"
        return f"Weighted({weights}, samples={self.samples}, replacement={self.replacement})"


Sampling = Balanced | Weighted


def whole_numbers(weights: Any) -> NDArray[np.uint64]:
    """Return weights as whole numbers, uint64 (N,): the heaviest is 2**32, and what was above 0 is at least 1."""
    values = np.asarray(
        list(weights) if not hasattr(weights, "__array__") and hasattr(weights, "__iter__") else weights
    )
    if values.ndim != 1 or len(values) == 0 or values.dtype.kind not in "iufb":
        actual = f"an array of {values.dtype}, shape {values.shape}"
        raise ConfigError(f"weights is {actual}; give one number for each sample, or a mapping from class to weight")
    values = values.astype(np.float64)
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        raise ConfigError(f"weight {wrong[0]} is {values[wrong[0]]}; weights are numbers of at least 0")
    heaviest = values.max()
    if heaviest == 0:
        raise ConfigError("all weights are 0, so there is nothing to load")
    scaled: NDArray[np.uint64] = np.rint(values / heaviest * _HEAVIEST).astype(np.uint64)
    scaled[(scaled == 0) & (values > 0)] = 1
    return scaled


class Sampled(Samples):
    """The samples of a dataset, each as often as a sampling says. A slot is a position in an epoch."""

    def __init__(self, samples: Images, dataset: Dataset, sampling: Sampling, seed: int) -> None:
        size = samples.size if sampling.samples is None else sampling.samples
        # Independent draws are random already.
        super().__init__(size, samples.identity, shuffle=not sampling.replacement, seed=seed)
        self.classes, self.has_box_classes = samples.classes, samples.has_box_classes
        self._samples = samples
        self._independent = sampling.replacement
        self._choice: _Classes | _Samples
        if isinstance(sampling, Weighted) and not sampling.is_by_class:
            self._choice = _Samples(sampling, samples.size, self.size, seed)
        else:
            self._choice = _Classes(sampling, samples, dataset.path, self.size, seed)

    def locate(self, slots: NDArray[np.uint64], epoch: int) -> Request:
        """Return the samples at slots of an epoch; random choices depend on the slot, since a sample may come twice."""
        chosen = self._choice.draw(slots, epoch) if self._independent else self._choice.take(slots, epoch)
        request = self._samples.locate(chosen, epoch)
        return request._replace(streams=slots)

    def source(self, *, check: bool) -> _native.SampleSource:
        """Return the source that the core reads. See `Samples.source`."""
        return self._samples.source(check=check)


class _Samples:
    def __init__(self, sampling: Weighted, count: int, size: int, seed: int) -> None:
        weights = whole_numbers(sampling.weights)
        if len(weights) != count:
            message = f"{format_count(len(weights), 'weight')} for {format_count(count, 'sample')}"
            raise ConfigError(f"{message}; give one for each, or a mapping from class to weight")
        self._weights, self._ends = weights, _running_sums(weights)
        self._size, self._seed = size, seed
        self._latest: tuple[tuple[int, NDArray[np.uint64], NDArray[np.uint64]], ...] = ()

    def draw(self, slots: NDArray[np.uint64], epoch: int) -> NDArray[np.uint64]:
        return _native.draw_weighted(slots, self._ends, _epoch_words(self._seed, epoch)[0])

    def take(self, slots: NDArray[np.uint64], epoch: int) -> NDArray[np.uint64]:
        offset = _epoch_words(self._seed, epoch)[1] * int(self._ends[-1]) >> 64
        order, ends = self._arranged(epoch)
        chosen: NDArray[np.uint64] = order[_native.spread_weighted(slots, ends, self._size, offset)]
        return chosen

    def _arranged(self, epoch: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the samples in a random order of the epoch, and the running sums of their weights in that order."""
        for known, order, ends in self._latest:
            if known == epoch:
                return order, ends
        count = len(self._weights)
        order = _native.permute(0, count, count, _epoch_words(self._seed, epoch)[0], 0)
        ends = _running_sums(self._weights[order])
        # The first batches of the next epoch begin before the last ones of this epoch are done.
        self._latest = ((epoch, order, ends), *self._latest[:1])
        return order, ends


class _Classes:
    def __init__(self, sampling: Sampling, samples: Images, path: str, size: int, seed: int) -> None:
        labels = samples.labels()
        known, class_of, counts = np.unique(labels, return_inverse=True, return_counts=True)
        if known[0] < 0:
            refuse_unlabelled(path, labels)
            message = f"{format_count(int(counts[0]), 'sample')} of {path} have no label"
            raise ConfigError(f"{message}; leave them out: dataset[dataset.labels >= 0]")
        weights = np.full(len(known), _HEAVIEST, np.uint64)
        if isinstance(sampling, Weighted):
            weights = _weights_of(sampling.by_class(), samples.classes, path, known.tolist())
        self._members: NDArray[np.uint64] = np.argsort(class_of, kind="stable").astype(np.uint64)
        self._sizes: NDArray[np.uint64] = counts.astype(np.uint64)
        self._starts: NDArray[np.uint64] = np.cumsum(self._sizes, dtype=np.uint64) - self._sizes
        self._ends = _running_sums(weights)
        self._seed = seed
        self._class_seeds = np.array(
            [random_numbers(seed, label % 2**32, label >> 32, 2, _PURPOSE)[0] for label in known.tolist()],
            np.uint64,
        )
        self._shares = np.zeros(0, np.uint64)
        if not sampling.replacement:
            shares = shares_of(size, weights.tolist())
            _refuse_no_share(shares, weights.tolist(), known.tolist(), size)
            self._shares = np.array(shares, np.uint64)
        self._slot_ends = np.cumsum(self._shares, dtype=np.uint64)

    def draw(self, slots: NDArray[np.uint64], epoch: int) -> NDArray[np.uint64]:
        classes, members = _native.draw_members(slots, self._ends, self._sizes, _epoch_words(self._seed, epoch)[0])
        return self._at(classes, members)

    def take(self, slots: NDArray[np.uint64], epoch: int) -> NDArray[np.uint64]:
        classes = np.searchsorted(self._slot_ends, slots, side="right")
        shares, sizes = self._shares[classes], self._sizes[classes]
        position = slots - (self._slot_ends[classes] - shares)
        before = np.uint64(epoch % 2**32) * shares  # positions of the class in earlier epochs; below 2**63
        passes, position = np.divmod(before + position, sizes)
        member = _native.permute_each(position, sizes, self._class_seeds[classes], passes)
        return self._at(classes, member)

    def _at(self, classes: NDArray[Any], members: NDArray[np.uint64]) -> NDArray[np.uint64]:
        chosen: NDArray[np.uint64] = self._members[self._starts[classes] + members]
        return chosen


def shares_of(size: int, weights: Sequence[int]) -> list[int]:
    """Return how many of ``size`` slots each weight gets: rounded down, and one more for the largest remainders."""
    total = sum(weights)
    shares, remainders = zip(*(divmod(size * weight, total) for weight in weights), strict=True)
    given = list(shares)
    for number in sorted(range(len(weights)), key=lambda i: -remainders[i])[: size - sum(shares)]:
        given[number] += 1
    return given


def _weights_of(
    by_class: Mapping[int | str, float], classes: Sequence[ClassLabel], path: str, labels: list[int]
) -> NDArray[np.uint64]:
    weights: dict[int, float] = {}
    for key, weight in by_class.items():
        label = label_named(key, classes, path)
        if label in weights:
            raise ConfigError(f"class {key!r} has two weights, by its label and by its name; give one")
        weights[label] = weight
    for label in labels:
        if label not in weights:
            name = f" ({classes[label].name!r})" if label < len(classes) else ""
            raise ConfigError(f"class {label}{name} has samples and no weight; give it one, 0 to leave it out")
    present = set(labels)
    strange = next((label for label in weights if label not in present), None)
    if strange is not None and weights[strange] != 0:
        raise ConfigError(f"class {strange} has a weight and no sample in {path}; omit it, or give it 0")
    return whole_numbers([weights[label] for label in labels])


def _refuse_no_share(shares: list[int], weights: list[int], labels: list[int], size: int) -> None:
    for share, weight, label in zip(shares, weights, labels, strict=True):
        if share == 0 and weight > 0:
            message = f"class {label} would have no sample in an epoch of {format_count(size, 'sample')}"
            raise ConfigError(f"{message}; raise samples=, give it more weight, or draw with replacement=True")


def _running_sums(weights: NDArray[np.uint64]) -> NDArray[np.uint64]:
    check_range("the number of weights", len(weights), 1, 2**31)  # their sum fits 63 bits
    return np.cumsum(weights, dtype=np.uint64)


def _epoch_words(seed: int, epoch: int) -> tuple[int, int]:
    """Return two random numbers of an epoch: the seed of its draws, and one that its offset is computed from."""
    return random_numbers(seed, epoch % 2**32, epoch >> 32, 0, _PURPOSE)


def _check_samples(samples: int | None) -> None:
    if samples is not None:
        check_range("samples", samples, 1, 2**31)
