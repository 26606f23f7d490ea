"""What a loader reads, in which order and form: its settings, checked against its dataset. It starts no thread."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stoker.config import check_range, without_address
from stoker.errors import ConfigError
from stoker.loader.dataset import Dataset
from stoker.loader.epochs import Images, Objects, Samples
from stoker.loader.mixes import Mix, MixedSamples, parts_of
from stoker.loader.ranks import DATASET_OF_STATE, CpuShare, cpu_share, resolve
from stoker.loader.read_ahead import ReadAhead
from stoker.loader.sampling import Sampled
from stoker.order import EpochOrder, Position, Topology, chosen_tail, steps_left
from stoker.transforms import ObjectCrops, Output, check_operations
from stoker.types import Field

if TYPE_CHECKING:
    from stoker.loader.settings import LoaderSettings

_VERSION = 1
_MAX_IDENTITY = 40


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """Identity of a run: loaders with the same one give the same samples at the same position."""

    dataset: str  # identifies the data, and what counts as a sample
    seed: int  # of the order
    shuffle: bool | str  # how the order is shuffled
    max_consumed: int  # the most samples of an epoch that a state can have consumed, for any ranks and batch size

    def state_at(self, position: Position) -> dict[str, Any]:
        """Return the state of a loader at a position: less than 200 bytes of JSON."""
        dataset = self.dataset  # a long one as a hash, so that a state stays short whatever the names of splits are
        if len(dataset) > _MAX_IDENTITY:
            dataset = hashlib.sha256(dataset.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return {
            "version": _VERSION,
            "dataset": dataset,
            "seed": self.seed,
            "shuffle": self.shuffle,
            "epoch": position.epoch,
            "consumed": position.consumed,
        }

    def position_in(self, state: Mapping[str, Any]) -> Position:
        """Return the position in a state, which must be of this run."""
        own = self.state_at(Position(0, 0))
        if not isinstance(state, Mapping):
            raise ConfigError(f"this is not a state of a loader: {state!r}; give what state_dict() returned")
        if set(state) != set(own):
            message = f"this is not a state of a loader: it has the keys {sorted(map(str, state))}, not {sorted(own)}"
            raise ConfigError(f"{message}; give what state_dict() returned")
        for key in ("version", "dataset", "seed", "shuffle"):
            if type(state[key]) is not type(own[key]) or state[key] != own[key]:
                message = f"the state is for {key} {state[key]!r}, but this loader has {own[key]!r}"
                raise ConfigError(message + (DATASET_OF_STATE if key == "dataset" else ""))
        epoch = check_range("epoch of the state", state["epoch"], 0, 2**63 - 1)
        return Position(epoch, check_range("consumed of the state", state["consumed"], 0, self.max_consumed))


class Feed:
    """The samples of a dataset under the settings of a loader, whose defaults are decided here."""

    def __init__(self, dataset: Dataset | Mix, settings: LoaderSettings, *, seed: int | None = None) -> None:
        self.dataset, self.settings = dataset, settings
        ranks = resolve(settings.rank, settings.world_size)
        tail = chosen_tail(settings.tail, drop_last=settings.drop_last, world_size=ranks.world_size)
        self.topology = Topology(settings.batch_size, ranks.rank, ranks.world_size, tail)
        seed = seed if settings.seed is None else settings.seed
        self.seed = _default_seed(ranks.world_size) if seed is None else seed
        self.cpus = cpu_share() if settings.threads is None else settings.threads
        self.read_ahead = settings.read_ahead or ReadAhead()
        samples = self._samples()
        check_operations(settings.transform, dataset.mode)
        self.output = (settings.output or Output()).for_mode(dataset.mode)
        if settings.boxes is not None:
            _check_boxes(dataset)
        if isinstance(dataset, Mix) and (settings.boxes or isinstance(settings.transform, ObjectCrops)):
            _check_box_classes(dataset)
        self.fields: Mapping[str, Field] = chosen_fields(dataset, settings.fields)
        order = EpochOrder(samples.size, settings.shuffle, self.seed, 0).name
        name = order if settings.sampling is None else f"{settings.sampling.name}:{samples.size}"
        identity, length, most = samples.identity, samples.size, settings.max_samples
        if most is not None and most < length:
            identity, length = f"{identity}/first-{most}", most
        self.run = RunIdentity(identity, self.seed, name, length)  # what a state must agree with
        # The length of an epoch is decided only here: loaders, adapters and reading ahead count the steps that fit into
        # it. A limit in steps belongs here, after `run`: states must not depend on ranks and batch size.
        self.samples = samples.until(length)

    @property
    def threads(self) -> int:
        """Number of decoding threads."""
        return self.cpus.threads if isinstance(self.cpus, CpuShare) else self.cpus

    def steps_after(self, consumed: int) -> int:
        """Return the number of batches that an epoch still has."""
        return steps_left(self.samples.length, consumed, self.topology)

    @property
    def shared(self) -> dict[str, Any]:
        """Facts that must be the same on all ranks, beside the position and the seed."""
        state, topology = self.run.state_at(Position(0, 0)), self.topology
        of_order = {"dataset": state["dataset"], "shuffle": state["shuffle"]}
        return of_order | {"batch_size": topology.batch_size, "tail": topology.tail}

    def resumed(self, state: Mapping[str, Any]) -> tuple[Feed, Position]:
        """Return the feed and the position that resume a state, with its seed if the settings have none."""
        run = self.run
        if self.settings.seed is None and isinstance(state, Mapping) and "seed" in state:
            run = replace(run, seed=check_range("seed of the state", state["seed"], 0, 2**64 - 1))
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


def chosen_fields(dataset: Dataset | Mix, wanted: Sequence[str] | Mapping[str, Field]) -> dict[str, Field]:
    """Return the fields that batches are to have, by name, of a dataset or of all parts of a mix.

    A mapping gives fields another form of the same stored values. Records that Stoker did not write do not declare
    fields; for them the mapping declares them.
    """
    if isinstance(wanted, str) or not isinstance(wanted, Mapping | Sequence):
        raise ConfigError(f"fields is {wanted!r}; it must be a list of names, such as fields=['caption'], or a mapping")
    given = wanted if isinstance(wanted, Mapping) else {}
    chosen: dict[str, Field] = {}
    for part in parts_of(dataset):
        known = part.schema.fields if _declares_fields(part) else {**given, **part.schema.fields}
        for name in wanted:
            if name not in known:
                raise ConfigError(_missing(part, name))
            field = given.get(name, chosen.get(name, known[name]))
            if not isinstance(field, Field):
                raise ConfigError(f"{without_address(field)} is not a field, such as stoker.fields.Text()")
            if name not in given and _meaning(field) != _meaning(known[name]):
                message = (
                    f"field {name!r} is {field!r} in {parts_of(dataset)[0].path}, and {known[name]!r} in {part.path}"
                )
                raise ConfigError(f"{message}; a mix can have it where all of its datasets have the same")
            if name not in given and field.class_names != known[name].class_names:
                message = f"field {name!r} has other names in {part.path} than in {parts_of(dataset)[0].path}"
                decided = f"fields={{{name!r}: stoker.fields.{type(field).__name__}([...])}}"
                raise ConfigError(f"{message}; build both with the same, or say which hold for all: {decided}")
            if _stored(field) != _stored(known[name]):
                message = f"field {name!r} of {part.path} is {known[name]!r}"
                raise ConfigError(f"{message}, which is not stored as {field!r} is")
            chosen[name] = field
    return chosen


def _declares_fields(part: Dataset) -> bool:
    """Return whether it is known which fields samples have, and which they do not have."""
    return part.manifest is not None or not part.shards


def _missing(part: Dataset, name: str) -> str:
    if not _declares_fields(part):
        message = f"the records of {part.path} do not say which fields they have"
        return f"{message}; say what {name!r} is: fields={{{name!r}: stoker.fields.Text()}}"
    elsewhere = {"boxes": "; give boxes=stoker.BoxOutput()", "label": "; batch.labels has it"}.get(name, "")
    known = ", ".join(map(repr, part.schema.fields)) or "none"
    return f"{part.path} has no field {name!r}; it has {known}{elsewhere}"


def _meaning(field: Field) -> tuple[object, ...]:
    """Return the type and shape of values, without the padding of batches."""
    form = field.form()
    return type(field), form.dtype, form.shape


def _stored(field: Field) -> tuple[object, ...]:
    """Return what decides how records hold a field."""
    form = field.form()
    return (form.kind, form.dtype) if form.is_plane else (form.stored, form.fixed, form.group)


def _check_boxes(dataset: Dataset | Mix) -> None:
    for part in parts_of(dataset):
        if not part.has_boxes:
            message = f"{part.path} has no boxes: its records follow the layout {part.schema.preset!r}"
            raise ConfigError(f"{message}; omit boxes=, or build with --preset imagenet")
        part.load_boxes()


def _check_box_classes(mixed: Mix) -> None:
    first, *others = mixed.datasets
    for other in others:
        if other.schema.box_names != first.schema.box_names:
            message = f"{first.path} and {other.path} do not have the same classes of boxes, so equal labels differ"
            raise ConfigError(f"{message} in meaning; join them with 'stoker merge', or omit boxes= and ObjectCrops")
    if first.schema.box_names and any(mixed.label_offsets):
        message = f"label_offsets would move the labels of boxes, too, which have classes of their own in {first.path}"
        raise ConfigError(f"{message}; omit label_offsets=, or boxes= and ObjectCrops")


def _default_seed(world_size: int) -> int:
    """Return the seed of a loader that was given none, below 2**63: a new one, or 0 on several ranks."""
    torch: Any = sys.modules.get("torch")
    if world_size > 1:
        return 0
    if torch is None:
        return int.from_bytes(os.urandom(8), "little") >> 1
    # As PyTorch's own loader does, so that ``torch.manual_seed`` repeats a program.
    return int(torch.empty((), dtype=torch.int64, device="cpu").random_())
