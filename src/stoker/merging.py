"""`stoker.merge`: joins several datasets. Shards are copied byte for byte, unless ids of classes have to change.

A merge is written like a build, by `stoker.builder.write`: the same call resumes an interrupted merge.
"""

from __future__ import annotations

import errno
import hashlib
import os
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Literal

from stoker import _native
from stoker.builder import Report, Task, check_destination, manifest_settings, write, write_companions
from stoker.config import available_cpus, format_count, format_seconds, stoker_version
from stoker.errors import ConfigError, DatasetNotFoundError, ExampleError, ShardError, format_where
from stoker.format import (
    LABELS_NAME,
    MANIFEST_NAME,
    MAX_SHARDS,
    REJECTS_NAME,
    VERSION,
    ClassLabel,
    ShardNaming,
    ShardResult,
    ShardWriter,
    SourceInfo,
    Split,
    format_index,
    inflate,
    is_unfinished,
    new_index_name,
    no_records,
    read_classes,
    read_index,
    read_manifest,
    read_rejects,
    sum_of_formats,
    write_labels,
    write_rejects,
)
from stoker.progress import progress_of_call
from stoker.storage import Location, location, stoppable_pool, sync_directory, temporary_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from stoker.builder import Run
    from stoker.format import Manifest, Shard
    from stoker.storage import LocationLike
    from stoker.types import Features, Progress

__all__ = ["MergeReport", "merge"]


_CHUNK_BYTES = 8 << 20
_COPIED_AT_ONCE = 4
_COPIED_AT_ONCE_REMOTE = 16
_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP)
_TEXT = "image/class/text"
_WITH_TEXTS = ("imagenet", "dlbs")
_KEPT_BY_REPACK = ("the fields", "whether boxes have classes of their own")
_NUMBERED_LABELS = ("imagenet", "imagenet-nvidia", "dlbs", "tfds")
"""Layouts whose records hold only the id of a class, under the label and under the labels of the boxes."""


@dataclass(frozen=True, slots=True, repr=False)
class MergeReport(Report):
    """The report of a merge.

    Attributes:
        outcome: ``merged``; ``complete``: it was finished before, nothing was touched.
        manifest: Manifest of the merged dataset.
        seconds: Duration of this run.
        copied_shards: Shards that this run copied or linked as they are.
        rewritten_shards: Shards in which this run changed ids of classes.
        resumed_shards: Shards that an earlier run had finished.
    """

    outcome: Literal["merged", "complete"]
    manifest: Manifest
    seconds: float
    copied_shards: int
    rewritten_shards: int
    resumed_shards: int

    def _facts(self) -> list[str]:
        manifest = self.manifest
        shards = f"{self.copied_shards:,} copied, {self.rewritten_shards:,} with new class ids"
        return [
            f"{self.outcome}: dataset {manifest.dataset_id}",
            f"{format_count(manifest.records, 'record')} of {format_count(manifest.classes, 'class')}",
            f"shards: {shards}, {self.resumed_shards:,} from an earlier run",
            format_seconds(self.seconds),
        ]


def merge(
    datasets: Sequence[LocationLike],
    destination: LocationLike,
    *,
    link: bool = False,
    progress: Progress | Literal[False] | None = None,
) -> MergeReport:
    """Join finished datasets: the shards of each split, one dataset after the other, with new names.

    This is what ``stoker merge`` does; see docs/how-to/subsets.md. The same call resumes an interrupted merge.

    Classes with the same name are the same, also those of boxes that have classes of their own. A dataset whose ids are
    those of the merged dataset is copied byte for byte. Records of other datasets are written again with new ids and
    texts of classes, and the bytes of their images stay. Every byte is verified. The sources are not changed.

    Args:
        datasets: At least two, on this machine or in stores. The first decides the ids of its classes; classes that
            only others have come after these.
        destination: A new or empty directory, or that of the same merge, which is resumed.
        link: Whether shards that need not be written again become hard links, which take no space.
        progress: Default: a bar on a terminal or in a notebook, once the call has taken a second. False: nothing. A
            function is called with ``done``, ``total``, ``size_bytes`` and ``rejects`` (0) after every shard, from the
            calling thread.

    Returns:
        The report of the merge.

    Raises:
        ConfigError: There are fewer than two datasets, one is given twice, or they differ in layout, first class,
            fields, compression or recipe, which all records of a dataset share. Or ``link`` is set, and they lie on
            different file systems.
        DatasetNotFoundError: One of them is not a finished dataset.
        DestinationError: The destination holds something else.
        ManifestError: A manifest, a list of classes or of rejects is damaged.
        ShardError: A shard is not as its manifest says.
        OSError: Something cannot be read or written. Call again to resume.
        KeyboardInterrupt: Call again to resume.

    Example:
        >>> report = stoker.merge(["spring", "autumn"], "year")  # doctest: +SKIP
        >>> report.manifest.records                              # doctest: +SKIP
    """
    started = time.monotonic()
    if isinstance(datasets, (str, os.PathLike, Location)):
        raise ConfigError(f"datasets is {str(datasets)!r}; give a list of at least two")
    target = location(destination)
    with progress_of_call("merging", progress, "records") as shown:
        parts = [_Part.read(location(dataset)) for dataset in datasets]
        _refuse_unlike(parts)
        for linked in (*(part.folder for part in parts), target) if link else ():
            if not linked.is_local:
                message = f"{linked} is in a store, which has no hard links"
                raise ConfigError(f"{message}; merge without links, and shards are copied")
        check_destination(target, *(str(part.folder) for part in parts))
        task = _Merging(parts, target, link=link)
        written = write(task, progress=shown)
    assert written.manifest is not None, "shards are missing"
    new = [job for job in task.jobs if job.name not in written.resumed]
    rewritten = sum(job.part.changes is not None for job in new)
    return MergeReport(
        outcome="complete" if written.outcome == "complete" else "merged",
        manifest=written.manifest,
        seconds=time.monotonic() - started,
        copied_shards=len(new) - rewritten,
        rewritten_shards=rewritten,
        resumed_shards=len(written.resumed),
    )


# Users call it `stoker.merge`.
merge.__module__ = "stoker"


@dataclass(frozen=True, slots=True)
class _Changes:
    ids: Mapping[int, int]  # new ids of classes, by the old ones
    texts: Mapping[int, str]  # new texts of some classes, by the old ids
    box_ids: Mapping[int, int]  # new ids of classes of boxes, by the old ones


@dataclass(frozen=True, slots=True)
class _Part:
    folder: Location
    manifest: Manifest
    classes: tuple[ClassLabel, ...]
    changes: _Changes | None = None  # what changes in its records, if anything does

    @classmethod
    def read(cls, folder: Location) -> _Part:
        if is_unfinished(folder):
            raise no_records(folder)
        if not folder.exists():
            raise DatasetNotFoundError(f"{folder} is not a dataset: there is no such directory", path=str(folder))
        if not (folder / MANIFEST_NAME).lexists():
            makes = "'stoker build' makes a dataset of images, 'stoker repack' of TFRecords"
            message = f"{folder} has no {MANIFEST_NAME}, so it cannot be merged; {makes}"
            raise DatasetNotFoundError(message, path=str(folder))
        manifest = read_manifest(folder)
        return cls(folder, manifest, read_classes(folder, manifest))


@dataclass(frozen=True, slots=True)
class _Job:
    """One shard to make: its source, its split and its new name."""

    part: _Part
    shard: Shard
    split: str
    name: str

    @property
    def path(self) -> Location:
        return self.part.folder / self.shard.name


class _Merging(Task):
    """The merged dataset of parts that may be joined; with ``link``, shards that stay as they are become hard links."""

    def __init__(self, parts: Sequence[_Part], destination: Location, *, link: bool) -> None:
        self.destination = destination
        self._link = link
        self._is_remote = not all(folder.is_local for folder in (destination, *(part.folder for part in parts)))
        self._classes = _joined_classes(parts)
        box_names = tuple(dict.fromkeys(name for part in parts for name in part.manifest.schema.box_names))
        parts = [replace(part, changes=_changes(part, self._classes, box_names)) for part in parts]
        first = parts[0].manifest
        naming = _naming(parts)
        self.jobs: list[_Job] = []
        splits: dict[str, Split] = {}
        for name in dict.fromkeys(split for part in parts for split in part.manifest.splits):
            having = [part for part in parts if name in part.manifest.splits]
            shards = [(part, shard) for part in having for shard in part.manifest.splits[name].shards]
            count = len(shards)
            if count > MAX_SHARDS:
                raise ConfigError(f"split {name} would have {count:,} shards, and names hold up to {MAX_SHARDS:,}")
            jobs = [
                _Job(part, shard, name, naming.name(name, number, count)) for number, (part, shard) in enumerate(shards)
            ]
            self.jobs += jobs
            splits[name] = _joined_split(name, having, self._classes, jobs)
        manifests = [part.manifest for part in parts]
        self._rejects = tuple(
            reject for part in parts for reject in read_rejects(part.folder, part.manifest.files.get(REJECTS_NAME))
        )
        # Until `describe`, its shards that are written again are described as the old ones.
        self._manifest = replace(
            first,
            stoker_version=stoker_version(),
            version=VERSION,
            schema=replace(first.schema, box_names=box_names),
            source=_joined_source(manifests),
            converted=_sums(manifest.converted for manifest in manifests),
            annotation_errors=sum(manifest.annotation_errors for manifest in manifests),
            formats=sum_of_formats(each.formats for each in manifests)
            if all(each.formats for each in manifests)
            else {},
            encoders=_joined_encoders(manifests),
            shard_names=naming.text,
            limit=None,
            splits=splits,
            files={},
        )
        self.settings = manifest_settings(self._manifest)
        self.shard_names = [job.name for job in self.jobs]

    def count_items(self, shards: Collection[str]) -> int:
        return sum(job.shard.records for job in self.jobs if job.name in shards)

    def make(self, shards: Collection[str], run: Run) -> None:
        for result in run.finished.values():
            run.resumed(result)
        jobs = [job for job in self.jobs if job.name in shards]
        at_once = _COPIED_AT_ONCE_REMOTE if self._is_remote else min(_COPIED_AT_ONCE, available_cpus())
        with stoppable_pool(at_once, "stoker-merge") as pool:
            copied = pool.map(partial(_make, self.destination, link=self._link), jobs)
            for job, shard in zip(jobs, copied, strict=True):
                run.committed(ShardResult(shard, job.split, (), {}, ()))
                run.advanced(shard.records, shard.size_bytes, 0)

    def describe(self, results: Sequence[ShardResult]) -> Manifest:
        """Write the files beside the shards, and return the manifest."""
        manifest, shards = self._manifest, iter(results)
        base = manifest.schema.label_base
        names = [os.fsencode(class_label.name) for class_label in self._classes[base:]]
        texts = [class_label.text.encode("utf-8", "surrogateescape") for class_label in self._classes[base:]]
        files = {
            LABELS_NAME: write_labels(self.destination, names, texts, base),
            REJECTS_NAME: write_rejects(self.destination, self._rejects),
        }
        splits = {}
        for name, split in manifest.splits.items():
            files_of_split = tuple(result.file for result in islice(shards, len(split.shards)))
            size_bytes = sum(shard.size_bytes for shard in files_of_split)
            splits[name] = replace(split, shards=files_of_split, size_bytes=size_bytes)
        manifest = replace(manifest, splits=splits)
        return replace(manifest, files=files | write_companions(self.destination, manifest, names))


def _refuse_unlike(parts: Sequence[_Part]) -> None:
    if len(parts) < 2:
        raise ConfigError(
            f"{format_count(len(parts), 'dataset')} to merge; give at least two, and the destination last"
        )
    seen: dict[str, _Part] = {}
    for part in parts:
        other = seen.setdefault(part.manifest.dataset_id, part)
        if other is not part:
            message = f"{other.folder} and {part.folder} are the same dataset, {part.manifest.dataset_id}"
            raise ConfigError(f"{message}; its records would come twice, so give it once")
    common = _common(parts[0].manifest)
    for part in parts[1:]:
        for what, theirs in _common(part.manifest).items():
            if common[what] != theirs:
                message = f"{parts[0].folder} and {part.folder} differ in {what}: {common[what]!r} and {theirs!r}"
                alike = "make one like the other with 'stoker repack', then merge"
                kept = "a repack keeps them, so train on both as they are, with stoker.mix([first, second])"
                raise ConfigError(f"{message}; {kept if what in _KEPT_BY_REPACK else alike}")


def _common(manifest: Manifest) -> dict[str, object]:
    """Return what the records of merged datasets must have in common, by names for messages."""
    schema = manifest.schema
    return {
        "the layout": schema.preset,
        "the first class": schema.label_base,
        "the fields": {name: field.to_json() for name, field in schema.fields.items()},
        "whether boxes have classes of their own": bool(schema.box_names),
        "the keys of their records": replace(schema, features={}, fields={}, box_names=(), preset="", label_base=0),
        "compression": manifest.compression,
        "the recipe": dict(manifest.recipe),
    }


def _joined_classes(parts: Sequence[_Part]) -> tuple[ClassLabel, ...]:
    """Return the classes of all datasets, those of the first one first; the first one with a class describes it."""
    if all(part.classes == parts[0].classes for part in parts):
        return parts[0].classes
    joined: dict[str, ClassLabel] = {}
    for part in parts:
        names = [class_label.name for class_label in part.classes]
        if len(set(names)) < len(names):
            twice = next(name for name, count in Counter(names).items() if count > 1)
            raise ConfigError(
                f"{part.folder} has two classes named {twice!r}, so classes cannot be told by their names"
            )
        for class_label in part.classes:
            joined.setdefault(class_label.name, class_label)
    preset = parts[0].manifest.schema.preset
    if preset not in _NUMBERED_LABELS and any(len(part.classes) < len(joined) for part in parts):
        message = (
            f"the records of layout {preset} hold a number for each class, and the datasets differ in their classes"
        )
        raise ConfigError(f"{message}; 'stoker repack --preset imagenet' makes datasets that can be merged")
    return tuple(joined.values())


def _changes(part: _Part, classes: Sequence[ClassLabel], box_names: Sequence[str]) -> _Changes | None:
    """Return the new ids of a dataset's classes, and the texts that change; None if nothing changes."""
    class_ids = {class_label.name: number for number, class_label in enumerate(classes)}
    schema = part.manifest.schema
    same_classes = part.classes == tuple(classes[: len(part.classes)])
    if same_classes and schema.box_names == tuple(box_names[: len(schema.box_names)]):
        return None
    preset = schema.preset
    if not same_classes and preset not in _NUMBERED_LABELS:
        message = (
            f"the classes of {part.folder} have other ids, and the records of layout {preset} hold more than these"
        )
        raise ConfigError(f"{message}; 'stoker repack --preset imagenet' makes datasets that can be merged")
    masks = [name for name, field in schema.fields.items() if field.form().kind == "mask"]
    if not same_classes and masks and any(split.box_counts for split in part.manifest.splits.values()):
        message = f"the classes of the boxes in {part.folder} would have other ids, but not those in its masks"
        raise ConfigError(f"{message}, the field {masks[0]!r}; build it again from a file with the categories of all")
    ids = {
        number: number if same_classes else class_ids[class_label.name]
        for number, class_label in enumerate(part.classes)
    }
    box_numbers = {name: number for number, name in enumerate(box_names, schema.label_base)}
    box_ids = {old: box_numbers[name] for old, name in enumerate(schema.box_names, schema.label_base)}
    texts = {number: classes[ids[number]].text for number, class_label in enumerate(part.classes)}
    texts = {number: text for number, text in texts.items() if text != part.classes[number].text}
    return _Changes(ids, texts, box_ids if schema.box_names else ids)


def _naming(parts: Sequence[_Part]) -> ShardNaming:
    """Return how shards are named: as in all datasets, if they agree and any number of shards can have such names."""
    texts = {part.manifest.shard_names for part in parts}
    naming = ShardNaming(texts.pop()) if len(texts) == 1 else ShardNaming()
    splits = {split for part in parts for split in part.manifest.splits}
    return ShardNaming() if naming.per_class or (len(splits) > 1 and not naming.names_splits) else naming


def _joined_split(name: str, parts: Sequence[_Part], classes: Sequence[ClassLabel], jobs: Sequence[_Job]) -> Split:
    counts = [0] * len(classes)
    boxes: Counter[int] = Counter()
    splits = [part.manifest.splits[name] for part in parts]
    for part, split in zip(parts, splits, strict=True):
        changes = part.changes
        for label, count in enumerate(split.class_counts):
            counts[label if changes is None else changes.ids[label]] += count
        for label, count in split.box_counts.items():
            boxes[label if changes is None else changes.box_ids.get(label, label)] += count
    are_counted = all(split.box_counts or not split.records for split in splits)
    return Split(
        records=sum(split.records for split in splits),
        size_bytes=sum(split.size_bytes for split in splits),
        rejects=sum(split.rejects for split in splits),
        class_counts=tuple(counts),
        shards=tuple(replace(job.shard, name=job.name) for job in jobs),
        unlabelled=sum(split.unlabelled for split in splits),
        box_counts=dict(sorted(boxes.items())) if are_counted else {},
    )


def _joined_source(manifests: Sequence[Manifest]) -> SourceInfo:
    text = "merge\n" + "".join(f"{manifest.dataset_id}\n" for manifest in manifests)
    return SourceInfo(
        items=sum(manifest.source.items for manifest in manifests),
        size_bytes=sum(manifest.source.size_bytes for manifest in manifests),
        fingerprint=hashlib.sha256(text.encode()).hexdigest()[:32],
        ignored=_sums(manifest.source.ignored for manifest in manifests),
    )


def _sums(counts: Iterator[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part_counts in counts:
        total.update(part_counts)
    return dict(sorted(total.items()))


def _joined_encoders(manifests: Sequence[Manifest]) -> dict[str, str]:
    encoders: dict[str, dict[str, None]] = {}
    for manifest in manifests:
        for name, version in manifest.encoders.items():
            encoders.setdefault(name, {})[version] = None
    return {name: ", ".join(versions) for name, versions in sorted(encoders.items())}


def _make(destination: Location, job: _Job, *, link: bool) -> Shard:
    if job.part.changes is not None:
        return _rewrite(destination, job, job.part.changes)
    index = None
    if job.part.manifest.compression == "none":
        index = new_index_name(job.name), format_index(_rows(job)[:, 1])
    if link:
        _check_content(job)
        _link(destination, job, index)
    else:
        staged = destination.stage(job.name)
        try:
            _check_content(job, staged.write)
            staged.publish(index)
        finally:
            staged.discard()
    return replace(job.shard, name=job.name)


def _rows(job: _Job) -> NDArray[np.uint64]:
    """Return where the records of a shard lie, as its index says."""
    path = job.path
    try:
        rows = read_index(path, job.shard.size_bytes)
    except FileNotFoundError:
        raise ShardError(f"{path} has no index; write it with 'stoker index'", path=str(path)) from None
    if len(rows) != job.shard.records:
        message = f"the index of {path} lists {len(rows)} records, but {MANIFEST_NAME} says {job.shard.records}"
        raise ShardError(f"{message}; write it again with 'stoker index'", path=str(path))
    return rows


def _check_content(job: _Job, write: Callable[[Sequence[bytes]], None] | None = None) -> None:
    """Read all of a shard, and check it against the manifest; ``write`` gets its bytes, piece by piece."""
    path = job.path
    size_bytes = crc = 0
    with path.reader() as file:
        while data := file.read(_CHUNK_BYTES):
            size_bytes += len(data)
            crc = _native.crc32c(data, crc)
            if write is not None:
                write([data])
    if (size_bytes, crc) != (job.shard.size_bytes, job.shard.crc32c):
        raise _changed(job, f"it has {size_bytes} bytes with the CRC-32C {crc:08x}")


def _changed(job: _Job, actual: str) -> ShardError:
    path = job.path
    listed = f"{job.shard.size_bytes} bytes with {job.shard.crc32c:08x}"
    message = f"{path} was changed or damaged after the build: {actual}, but {MANIFEST_NAME} says {listed}"
    return ShardError(f"{message}; restore it, or build again", path=str(path))


def _link(destination: Location, job: _Job, index: tuple[str, bytes] | None) -> None:
    old, new = job.path, destination / job.name
    new.parent.make_directory(within=destination)
    if index is not None:
        (destination / index[0]).parent.make_directory(within=destination)
        (destination / index[0]).write_atomically(index[1])
    temporary = destination.local_path() / temporary_name(job.name)
    try:
        os.link(old.local_path().resolve(), temporary)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        message = f"{old} cannot be linked from {destination}: {(error.strerror or str(error)).lower()}"
        raise ConfigError(f"{message}; merge without links, and shards are copied") from error
    temporary.replace(new.local_path())
    temporary.unlink(missing_ok=True)  # if both were names of one file, `replace` has kept this one
    sync_directory(new.parent.local_path())


def _rewrite(destination: Location, job: _Job, changes: _Changes) -> Shard:
    """Write the records of a shard again, with other ids or texts of classes."""
    path = job.path
    with ExitStack() as stack:
        copy = stack.enter_context(path.local_copy())
        copy.fetch()
        if job.part.manifest.compression == "none":
            rows, crc = _native.scan_and_sum(str(copy.path))
            if crc != job.shard.crc32c:
                raise _changed(job, f"it has the CRC-32C {crc:08x}")
            records = str(copy.path)
        else:
            _check_content(job)
            records = str(stack.enter_context(inflate(path)).path)
            rows = _native.scan_shard(records)
        if len(rows) != job.shard.records:
            raise _changed(job, f"it has {len(rows)} records, not {job.shard.records}")
        with ShardWriter(destination, job.name, job.part.manifest.compression) as writer:
            for number, (offset, size) in enumerate(rows.tolist()):
                features = _native.parse_example(_native.read_record(records, offset, size))
                where = format_where(str(path), number, offset)
                writer.append(_native.write_example(renumbered(features, job.part.manifest, changes, where)))
            return writer.commit()


def renumbered(features: Features, manifest: Manifest, changes: _Changes, where: str) -> Features:
    """Return the features of a record with other ids of classes, and the texts that go with them."""
    schema = manifest.schema
    keys = [(schema.label_key, changes.ids)]
    if schema.box_prefix:
        keys.append((f"{schema.box_prefix}label", changes.box_ids))
    changed = dict(features)
    _, labels = features.get(schema.label_key, ("int64", []))
    if labels and labels[0] in changes.texts and schema.preset in _WITH_TEXTS and _TEXT in features:
        changed[_TEXT] = ("bytes", [changes.texts[int(labels[0])].encode("utf-8", "surrogateescape")])
    for key, ids in keys:
        known = {-1: -1, **ids}
        kind, values = features.get(key, ("int64", []))
        strange = next((value for value in values if kind != "int64" or value not in known), None)
        if strange is not None:
            raise ExampleError(f"{where}: {key!r} holds {strange!r}, which is not the id of a class")
        if key in features:
            changed[key] = ("int64", [known[int(value)] for value in values])
    return changed
