"""What a loader reads, in which order and in which form: settings checked against a dataset. It starts no thread."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from stoker.config import without_address
from stoker.errors import ConfigError
from stoker.loader.dataset import Dataset
from stoker.loader.mixes import Mix, MixedSamples, parts_of
from stoker.loader.position import RunIdentity
from stoker.loader.ranks import CpuShare, cpu_share, resolve
from stoker.loader.read_ahead import ReadAhead
from stoker.loader.record_fields import chosen_fields
from stoker.loader.samples import Images, Limited, Objects, Samples
from stoker.loader.sampling import Sampled
from stoker.order import EpochOrder, Topology, chosen_tail, steps_left
from stoker.transforms import ObjectCrops, Output, check_operations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stoker.loader.position import Position
    from stoker.loader.settings import LoaderSettings
    from stoker.types import Field


class Feed:
    """The samples of a dataset under the settings of a loader; what the settings leave open is decided here.

    Attributes:
        topology: Which rank of how many this is, with batches of which size.
        seed: Of the order and of the random choices.
        cpus: Whose number of decoding threads there are: this rank's CPUs, or the number that was given.
        output: Type, layout and scale of the pixels, as the dataset's mode has them where the settings do not say.
        read_ahead: How much is fetched ahead.
        fields: The fields that batches have.
        samples: Which samples there are.
        run: What a state must agree with: which samples, in which order.

    Raises:
        ConfigError: There is nothing to load, or no boxes or fields where the transform or the settings want some; the
            transform or the type of the pixels has no meaning in the dataset's mode; or ranks and ``tail`` are wrong.
        ShardError: A record that had to be read for its objects is damaged.
    """

    def __init__(self, dataset: Dataset | Mix, settings: LoaderSettings, *, seed: int | None = None) -> None:
        self.dataset, self.settings = dataset, settings
        ranks = resolve(settings.rank, settings.world_size)
        tail = chosen_tail(settings.tail, drop_last=settings.drop_last, world_size=ranks.world_size)
        self.topology = Topology(settings.batch_size, ranks.rank, ranks.world_size, tail)
        seed = seed if settings.seed is None else settings.seed
        self.seed = _default_seed(ranks.world_size) if seed is None else seed
        self.cpus = cpu_share() if settings.threads is None else settings.threads
        self.read_ahead = settings.read_ahead or ReadAhead()
        samples, most = self._samples(), settings.max_samples
        self.samples = samples if most is None or most >= samples.size else Limited(samples, most)
        check_operations(settings.transform, dataset.mode)
        self.output = (settings.output or Output()).for_mode(dataset.mode)
        if settings.boxes is not None:
            _check_boxes(dataset)
        self.fields: Mapping[str, Field] = chosen_fields(dataset, settings.fields)
        order = EpochOrder(self.samples.size, settings.shuffle, self.seed, 0)
        name = order.name if settings.sampling is None else f"{settings.sampling.name}:{order.n}"
        self.run = RunIdentity(self.samples.identity, order.seed, name, self.samples.order(0).length)

    @property
    def threads(self) -> int:
        """Number of decoding threads."""
        return self.cpus.threads if isinstance(self.cpus, CpuShare) else self.cpus

    @property
    def steps(self) -> int:
        """Number of batches of a whole epoch."""
        return steps_left(self.run.size, 0, self.topology)

    def resumed(self, state: Mapping[str, Any]) -> tuple[Feed, Position]:
        """Return where a state goes on, and the feed with its seed, where the settings have none.

        Raises:
            ConfigError: The state is of another dataset, seed or order, or is not a state.
        """
        run = self.run if self.settings.seed is not None else self.run.with_seed_of(state)
        position = run.position_in(state)
        return self if run == self.run else Feed(self.dataset, self.settings, seed=run.seed), position

    def _samples(self) -> Samples:
        dataset, settings = self.dataset, self.settings
        if not isinstance(dataset, Dataset | Mix):
            message = f"dataset is {without_address(dataset)}, which is not a dataset"
            joined = "stoker.mix([first, second])" if type(dataset).__name__ == "ConcatDataset" else "stoker.mix"
            raise ConfigError(f"{message}; give what stoker.open or {joined} returned")
        kind = Objects if isinstance(settings.transform, ObjectCrops) else Images
        if isinstance(dataset, Mix):
            if settings.sampling is not None:
                raise ConfigError("a mix has weights of its own; omit sampling=, or give weights to stoker.mix")
            return MixedSamples(dataset, kind, shuffle=settings.shuffle, seed=self.seed)
        samples = kind(dataset, shuffle=settings.shuffle, seed=self.seed)
        return samples if settings.sampling is None else Sampled(samples, dataset, settings.sampling, self.seed)


def _check_boxes(dataset: Dataset | Mix) -> None:
    for part in parts_of(dataset):
        if not part.has_boxes:
            message = f"{part.path} has no boxes: its records follow the layout {part.schema.preset!r}"
            raise ConfigError(f"{message}; omit boxes=, or build with --preset imagenet")
        part.load_boxes()
    if isinstance(dataset, Mix):
        _check_box_classes(dataset)


def _check_box_classes(mixed: Mix) -> None:
    """Refuse datasets in which equal labels of boxes would differ in meaning."""
    first, *others = mixed.datasets
    for other in others:
        if other.schema.box_names != first.schema.box_names:
            message = f"{first.path} and {other.path} do not have the same classes of boxes, so equal labels differ"
            raise ConfigError(f"{message} in meaning; join them with 'stoker merge', or omit boxes=")
    if first.schema.box_names and any(mixed.label_offsets):
        message = f"label_offsets would move the labels of boxes, too, which have classes of their own in {first.path}"
        raise ConfigError(f"{message}; omit label_offsets= or boxes=")


def _default_seed(world_size: int) -> int:
    """Return the seed of a loader that was given none, below 2**63.

    On several ranks it is 0, because they must agree. On one it is a new one for each loader: from PyTorch's generator
    if the program has imported PyTorch, as its own loader does, so that ``torch.manual_seed`` repeats a program;
    otherwise from the system.
    """
    torch: Any = sys.modules.get("torch")
    if world_size > 1:
        return 0
    if torch is None:
        return int.from_bytes(os.urandom(8), "little") >> 1
    return int(torch.empty((), dtype=torch.int64, device="cpu").random_())
