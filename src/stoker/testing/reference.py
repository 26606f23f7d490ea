"""The uninterrupted epoch that every other run is held against."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from stoker import _native

if TYPE_CHECKING:
    from stoker.feed import Batch
    from stoker.order import Topology
    from stoker.testing.ranks import PlayedStep


@dataclass(frozen=True, slots=True)
class Content:
    """What a sample became.

    Attributes:
        pixels: CRC-32C of each image that was made of it.
        label: Its class.
        seed: Its random number, for transforms of the user's own.
    """

    pixels: tuple[int, ...]
    label: int
    seed: int


@dataclass(slots=True)
class Reference:
    """The samples of an uninterrupted epoch, from a position on.

    Attributes:
        start: The position.
        size: Samples of a whole epoch.
        sequence: Numbers of the samples from ``start`` on.
        contents: What each of them became.
    """

    start: int
    size: int
    sequence: list[int] = field(default_factory=list)
    contents: dict[int, Content] = field(default_factory=dict)

    def add(self, batch: Batch) -> None:
        """Take down the next batch of the uninterrupted epoch.

        Raises:
            AssertionError: A sample comes twice.
        """
        for key, content in zip(batch.keys.tolist(), contents_of(batch), strict=True):
            position = self.start + len(self.sequence)
            if key in self.contents:
                message = f"the uninterrupted epoch: sample {key} comes again at position {position}"
                raise AssertionError(f"{message}; it came at {self.start + self.sequence.index(key)}")
            self.sequence.append(key)
            self.contents[key] = content

    def finish(self) -> None:
        """Look at the whole.

        Raises:
            AssertionError: A sample is missing, or there is one too many.
        """
        expected = self.size - self.start
        if len(self.sequence) != expected:
            raise AssertionError(f"the uninterrupted epoch: {len(self.sequence)} samples came, and not {expected}")
        strange = next((key for key in self.sequence if not 0 <= key < self.size), None)
        if strange is not None:
            raise AssertionError(f"the uninterrupted epoch: there is no sample {strange}; there are {self.size}")

    def check(self, step: PlayedStep, before: int, topology: Topology, where: str) -> int:
        """Hold one step of a run against the uninterrupted epoch.

        Args:
            step: What the ranks were given.
            before: Position before the step.
            topology: Ranks, batch size and tail of the run; its rank is not looked at.
            where: What to say in a message.

        Returns:
            How many samples were compared.

        Raises:
            AssertionError: A sample is another one, or has other pixels, another label or another seed, or counts as
                valid where it should not, or the other way round; or the shares of the ranks are wrong.
        """
        where = f"{where}, step {step.number}"
        left = self.size - before
        self._check_shares([len(batch) for batch in step.batches], left, topology, where)
        position = before
        for rank, batch in enumerate(step.batches):
            for key, valid, content in zip(batch.keys.tolist(), batch.valid.tolist(), contents_of(batch), strict=True):
                self._check_sample(position, key, content, f"{where}, rank {rank}")
                if valid != (position < self.size or topology.tail != "pad"):
                    raise AssertionError(f"{where}, rank {rank}: sample {key} at position {position} has valid={valid}")
                position += 1
        return position - before

    def _check_shares(self, shares: list[int], left: int, topology: Topology, where: str) -> None:
        expected = topology.global_batch
        if left < expected and topology.tail == "short":
            if sum(shares) == left and max(shares) - min(shares) <= 1:
                return
            raise AssertionError(f"{where}: {left} samples are left, and the ranks take {shares} of them")
        if any(share != topology.batch_size for share in shares):
            raise AssertionError(f"{where}: the ranks take {shares} samples, and not {topology.batch_size} each")

    def _check_sample(self, position: int, key: int, content: Content, where: str) -> None:
        place = position % self.size - self.start
        if place < 0:  # a filling from a part of the epoch that was not read
            return
        expected = self.sequence[place]
        if key != expected:
            message = f"{where}: position {position} holds sample {key}, where the uninterrupted epoch has {expected}"
            raise AssertionError(f"{message}; so a sample comes twice and another never")
        known = self.contents[key]
        if content.pixels != known.pixels:
            message = f"{where}: sample {key} has other pixels than in the uninterrupted epoch"
            raise AssertionError(f"{message}: CRC-32C {_hex(content)}, not {_hex(known)}")
        if content.label != known.label:
            raise AssertionError(f"{where}: sample {key} has label {content.label}, not {known.label}")
        if content.seed != known.seed:
            raise AssertionError(f"{where}: sample {key} has the seed {content.seed}, not {known.seed}")


def contents_of(batch: Batch) -> list[Content]:
    """Return what each sample of a batch became."""
    views = batch.images if isinstance(batch.images, tuple) else (batch.images,)
    arrays = [np.asarray(view) for view in views]
    return [
        Content(tuple(_native.crc32c(array[row].tobytes()) for array in arrays), label, seed)
        for row, (label, seed) in enumerate(zip(batch.labels.tolist(), batch.seeds.tolist(), strict=True))
    ]


def _hex(content: Content) -> str:
    return " ".join(f"{crc:08x}" for crc in content.pixels)
