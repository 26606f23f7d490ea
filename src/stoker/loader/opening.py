"""Opening built datasets, TFRecords of other origin, image files and records of programs as a `stoker.Dataset`."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast, get_args

from stoker.config import check_choice, refuse_ineffective
from stoker.errors import ConfigError, DatasetNotFoundError, ManifestError, SourceError
from stoker.format import (
    BACKGROUND,
    MANIFEST_NAME,
    ClassLabel,
    ImagenetSchema,
    contents_of,
    find_layout,
    is_companion,
    no_records,
    read_class_names,
    read_classes,
    read_manifest,
    refuse_incomplete,
)
from stoker.habits import OPENING, did_you_mean, refuse_unknown
from stoker.loader.dataset import Dataset
from stoker.loader.readers import ImageFiles, ShardRecords
from stoker.loader.shards import listed_shards, open_found, open_listed
from stoker.progress import progress_of_call
from stoker.sources import SourceOptions, given_splits, index_records, is_sequence, list_source
from stoker.splits import SPLITS, full_split_name
from stoker.storage import Location, location
from stoker.types import Exif, Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Never

    from stoker.format import Manifest, RecordKeys, SplitShards
    from stoker.sources import Given, ItemTable, RecordSequence, Source
    from stoker.storage import LocationLike
    from stoker.types import Features, Field, Progress, SchemaInfo

    _Splits = tuple[Mapping[str, object], Callable[[str], Dataset]]


def open_dataset(
    path: LocationLike | Given | Mapping[str, Given],
    split: str | None = None,
    *,
    keys: RecordKeys | None = None,
    fields: Mapping[str, Field] | None = None,
    mode: Mode = "RGB",
    exif: Exif | None = None,
    # settings: sources.options.SourceOptions
    labels: LocationLike | None = None,
    validation_labels: LocationLike | None = None,
    imagenet_labels: bool | None = None,
    class_names: LocationLike | None = None,
    boxes: LocationLike | None = None,
    masks: bool = False,
    image_column: str | None = None,
    label_column: str | Sequence[str] | None = None,
    label_separator: str | None = None,
    split_column: str | None = None,
    columns: str | Sequence[str] | None = None,
    separator: str | None = None,
    image_root: LocationLike | None = None,
    # end of settings
    **unknown: Never,
) -> Dataset:
    """Open one split of a dataset for reading.

    Samples are numbered in the order in which they are stored. Images that are not built are numbered in the order of
    their list, table or tar; those in folders, class by class (see `docs/reference/images.md`).

    Args:
        path: A directory that ``stoker build`` made; TFRecord shards of other origin, as a directory, one file or a
            pattern such as ``old/train-*``, with any extension; or images that are not built, in any source that
            ``stoker build`` takes (see `docs/reference/images.md`). Shards without an index are scanned once. The index
            is saved beside the shards of a dataset; for other TFRecords it is saved in the user's cache, because their
            directory belongs to others (``stoker index`` writes it beside them). Compressed shards are inflated into
            nameless temporary files. All of these may be in a bucket or in HDFS: ``s3://BUCKET/PATH``,
            ``gs://BUCKET/PATH``, ``hdfs://HOST:PORT/PATH``; `docs/how-to/buckets.md` says how they are read. Or the
            records of a program, as `stoker.build` takes them: a sequence of dicts or of pairs of image and label, a
            ``datasets.Dataset``, or a mapping from splits to any of these; see docs/how-to/build.md. Opening reads all
            of their classes. Images are read when they are used, one record at a time; ``threads`` of a loader decode.
        split: The split, by any name that its folder may have (``val``); may be omitted if there is only one.
        keys: For TFRecords of other origin: the features that hold image, label and so on, and whether classes count
            from 0 or 1. Omitted keys are found from the first record; labels are as stored. Names of classes are
            read from ``labels.txt`` or TFDS's ``label.labels.txt`` beside the shards; without it, ``classes`` is empty.
        fields: For records of a program: the field of each value, by name (see `stoker.fields`); other values are left
            out. Default: as the library of the records declares them, otherwise inferred from the first record.
        mode: Channels and depth of the pixels, as Pillow calls them: ``"RGB"``; ``"L"``, grey; ``"RGBA"``, with alpha;
            ``"I;16"``, grey of 16 bits. `docs/reference/images.md` says what each kind of file becomes.
        exif: ``"keep"`` leaves images as stored, as Pillow and `ImageFolder` do; ``"apply"`` turns them upright before
            anything else, by their EXIF orientation or else their XMP, and boxes and masks with them. Default: keep,
            and a loader warns if images would be turned.
        labels: List of the classes in the order of their labels, or ``"imagenet"``: its 1,000. Default: folders,
            sorted.
        validation_labels: Classes of flat validation images: a list, or ImageNet's devkit. Default: searched for.
        imagenet_labels: Whether classes that are all among ImageNet's 1,000 have its labels, also where some are
            missing. Default: as the preset has it, otherwise not, with a warning.
        class_names: List with a text for each class: class, tab and text on each line. Default: imagenet_metadata.txt.
        boxes: Annotations: folder or tar of XML files, or CSV. Default: searched for.
        masks: Whether records have the field ``mask``: objects of a COCO file or YOLO's polygons, drawn with
            ``stoker[coco]``, or VOC's masks.
        image_column: Column of a table that names the images, or has them. Default: found.
        label_column: Column of the classes or of numbers to predict; several, with commas, of 0 and 1; ``"none"``.
            Default: found.
        label_separator: What stands between several classes in a cell of ``label_column``; ``"none"``: each is one.
            Default: found.
        split_column: Column that says which rows are train, validation and test. Default: found.
        columns: Which other columns of a table become fields, with commas between them; ``"none"``. Default: all.
        separator: What stands between the columns of a table: comma, semicolon, tab or bar. Default: found.
        image_root: Folder that the names of images in a table, a list or a COCO file are relative to. Default: found.
        unknown: Not an argument: those of other libraries are refused with what to use instead.

    Listing images may warn with a `stoker.errors.SourceWarning`, or with a `stoker.errors.LabelWarning` if the classes
    may be a part of a larger list.

    Raises:
        DatasetNotFoundError: There is nothing to read at ``path``, or a shard is missing.
        ConfigError: There is no such split, ``mode`` or ``exif``; ``split`` is omitted and there are several; the
            layout of the records is unknown; ``keys`` are given for anything but TFRecords of other origin, or settings
            of images for anything but images; or stored pixels have no form in ``mode``.
        SourceError: A list that the settings name is not there, or does not fit the images.
        ManifestError: ``manifest.json`` is damaged or of a newer version.
        TruncatedShardError: A shard is shorter or longer than the manifest says, or its compression is damaged.
        IndexMismatchError: An index does not belong to its shard.
        CorruptRecordError: A shard without index is damaged.
    """
    refuse_unknown("stoker.open", unknown, locals(), OPENING)
    options = SourceOptions.among(locals())
    check_choice("mode", mode, get_args(Mode))
    if exif is not None:
        check_choice("exif", exif, get_args(Exif))
    if not isinstance(path, (str, os.PathLike, Location)):
        refuse_ineffective({"keys": keys} | options.given(), "where the source is records")
        return _open_records(path, split, fields, mode, exif)
    opening = _Opening(location(path), keys, options, mode, exif)
    refuse_ineffective({"fields": fields}, f"where the source is the path {opening.root}")
    return opening.open(split)


# Users call it `stoker.open`; so Python's messages about its arguments use that name, too.
open_dataset.__module__, open_dataset.__name__, open_dataset.__qualname__ = "stoker", "open", "open"


def open_main_split(
    path: LocationLike,
    split: str | None,
    keys: RecordKeys | None = None,
    source: SourceOptions | None = None,
    mode: Mode = "RGB",
    exif: Exif | None = None,
) -> Dataset:
    """Open the named split; if none is named, the only one, or else train. Otherwise as `open_dataset`."""
    check_choice("mode", mode, get_args(Mode))
    return _Opening(location(path), keys, source or SourceOptions(), mode, exif).open(split, default="train")


def open_splits(
    path: LocationLike, keys: RecordKeys | None = None, source: SourceOptions | None = None
) -> dict[str, Dataset]:
    """Open every split at a path, which is listed once. Otherwise as `open_dataset`."""
    return _Opening(location(path), keys, source or SourceOptions()).open_all()


_PART_OF_SPLIT = re.compile(r"(\w+)\[(-?\d*:-?\d*)\]")
"""How `datasets` and TFDS write a part of a split, such as ``train[:1000]``."""


def choose_split(wanted: str | None, splits: Mapping[str, object], path: LocationLike) -> str:
    """Return the split that is wanted, or the only one there is."""
    names = ", ".join(sorted(splits))
    if wanted is None:
        if len(splits) == 1:
            return next(iter(splits))
        raise ConfigError(f"{path} has the splits {names}; say which one with split=")
    full = full_split_name(wanted.lower()) if isinstance(wanted, str) else ""
    if full not in splits and wanted not in [*splits]:
        message = f"{path} has no split {wanted!r}; it has {names}"
        part = _PART_OF_SPLIT.fullmatch(str(wanted))
        if not isinstance(wanted, str):
            raise ConfigError(f"{message}; give one name")
        if part is not None and full_split_name(part[1]) in splits:
            raise ConfigError(f"{message}; a part is stoker.open(path, {part[1]!r})[{part[2]}]")
        hint = "; did you mean validation?" if full == "eval" and "validation" in splits else ""
        raise ConfigError(f"{message}{hint or did_you_mean(wanted, splits)}")
    return wanted if wanted in splits else full


@dataclass(frozen=True, slots=True)
class _Opening:
    """A path, and how to open it. It can be pickled, so that another process opens the same dataset."""

    root: Location
    keys: RecordKeys | None
    source: SourceOptions
    mode: Mode = "RGB"
    exif: Exif | None = None
    label_base: int = 0  # from which classes of other TFRecords count that do not say it

    def open(self, wanted: str | None, *, default: str | None = None, again: bool = False) -> Dataset:
        """Open one split; ``default``, if none is wanted and there are several. ``again`` repeats no warnings."""
        splits, open_split = self._look(again=again)
        name = default if wanted is None and len(splits) > 1 else wanted
        return self._opened(open_split(choose_split(name, splits, self.root)))

    def open_all(self) -> dict[str, Dataset]:
        """Open every split."""
        splits, open_split = self._look(again=False)
        return {name: self._opened(open_split(name)) for name in splits}

    def _opened(self, dataset: Dataset) -> Dataset:
        if self.mode == "I;16" and dataset.schema.image_encoding == "raw":
            message = f"{dataset.path} holds RGB pixels of 8 bits, which have no form in mode {self.mode!r}"
            raise ConfigError(f"{message}; open it with mode='RGB', 'L' or 'RGBA'")
        dataset.mode, dataset.exif = self.mode, self.exif
        # The process that opens it again may have another working directory.
        root = location(dataset.path).absolute()
        dataset.folders = frozenset(map(str, (root, *(shard.path.parent.absolute() for shard in dataset.shards))))
        elsewhere = replace(self, root=root, source=self.source.absolute())
        dataset.opener = partial(elsewhere.open, dataset.split, again=True)
        return dataset

    def _look(self, *, again: bool) -> _Splits:
        """Return the splits that there are, and a function that opens one of them."""
        root, keys, source = self.root, self.keys, self.source
        contents = contents_of(root)
        if contents.kind == "unfinished":
            raise no_records(root)
        refuse_incomplete(root, contents.splits)
        refuse_options(root, contents.kind, keys, source)
        if contents.kind == "images":
            return _look_at_images(root, source, again=again)
        if contents.kind == "TFRecords":
            return contents.splits, partial(_open_foreign, self, contents.splits)
        manifest = read_manifest(root)
        return manifest.splits, partial(_open_built, root, manifest)


def refuse_options(root: Location, kind: str, keys: RecordKeys | None, source: SourceOptions | None = None) -> None:
    """Refuse options that have no effect on what lies at a path, given its kind."""
    why = {"dataset": f"its {MANIFEST_NAME} says where its records hold what", "images": "it holds no TFRecords"}
    if kind in why and keys is not None:
        refuse_ineffective({f"keys.{name}": value for name, value in asdict(keys).items()}, f"on {root}: {why[kind]}")
    if kind in ("dataset", "TFRecords") and source is not None:
        refuse_ineffective(source.given(), f"on {root}, which holds TFRecords, not images")


def _open_built(directory: Location, manifest: Manifest, split: str) -> Dataset:
    listed, plain = manifest.splits[split].shards, manifest.compression == "none"
    records = ShardRecords(listed_shards(directory, listed, plain=plain), manifest.schema)
    classes = read_classes(directory, manifest)
    if plain:
        records.shards = open_listed(records.native, records.shards, listed)
    return Dataset(path=str(directory), split=split, reader=records, classes=classes, manifest=manifest)


def _open_foreign(opening: _Opening, splits: Mapping[str, SplitShards], split: str) -> Dataset:
    """Open shards of other origin; ``keys``, or else the first record, say what each feature holds."""
    root, shards = opening.root, open_found(opening.root, splits[split].paths)
    records = ShardRecords(shards, ImagenetSchema(opening.label_base).info(0))  # any layout will do without a record
    first = next((shard for shard in shards if shard.records), None)
    if first is None:
        return Dataset(path=str(root), split=split, reader=records)
    features = records.features(0)[0]
    records.schema, classes = layout_of(root, first.path.parent, features, opening.keys, opening.label_base)
    return Dataset(path=str(root), split=split, reader=records, classes=classes)


def layout_of(
    root: Location, folder: Location, first: Features, keys: RecordKeys | None, label_base: int = 0
) -> tuple[SchemaInfo, tuple[ClassLabel, ...]]:
    """Return the layout of records of other origin, by the first of them, and the classes in a list beside them."""
    schema = find_layout(first, keys, str(root))
    classes = _class_names(list(dict.fromkeys((folder, root if root.is_dir() else folder))), schema.label_key)
    if keys is None or keys.label_base is None:
        has_background = schema.label_encoding == "id" and bool(classes) and classes[0].name == BACKGROUND
        schema = replace(schema, label_base=1 if has_background else label_base)
    return schema, classes


def _class_names(folders: Sequence[Location], label_key: str) -> tuple[ClassLabel, ...]:
    for folder in folders:
        try:
            classes = read_class_names(folder, label_key)
        except (ManifestError, PermissionError) as error:
            warnings.warn(f"{error}; the classes have no names", stacklevel=2)
            continue
        if classes:
            return classes
    return ()


def list_images(root: Location, options: SourceOptions) -> Source:
    """List the images at a path that may hold none."""
    try:
        source = list_source(str(root), options)
    except SourceError as error:
        if options.refer_to(error.path):
            raise  # the path is right; what was given with it is not
        raise _not_images(root, f"{root} is not a dataset, and cannot be read as images: {error}") from error
    if not any(map(len, source.splits.values())):
        source.warn(6)  # where `open_dataset` was called
        raise _not_images(root, f"{root} is not a dataset: it {source.without_images}")
    return source


def _not_images(root: Location, message: str) -> DatasetNotFoundError:
    is_empty = root.is_dir() and next(iter(root.some_children()), None) is None
    is_beside = is_companion(root) and root.is_file()
    return no_records(root) if is_empty or is_beside else DatasetNotFoundError(message, path=str(root))


def _look_at_images(root: Location, options: SourceOptions, *, again: bool) -> _Splits:
    source = list_images(root, options)
    if source.latency == "web":
        message = f"{root} is a list of URLs, whose images a build downloads, once"
        raise SourceError(f"{message}; run stoker build {root} DATASET and open that", path=str(root))
    if not again:
        source.warn(5)  # where `open_dataset` was called
    present = {name: rows for name, rows in source.splits.items() if len(rows)}
    return present, partial(_of_images, source, str(root))


def _of_images(source: Source, path: str, split: str) -> Dataset:
    return Dataset(path=path, split=split, reader=ImageFiles(source, split), classes=source.class_labels)


def _open_records(
    source: Given | Mapping[str, Given],
    split: str | None,
    record_fields: Mapping[str, Field] | None,
    mode: Mode,
    exif: Exif | None,
    *,
    again: bool = False,
) -> Dataset:
    if isinstance(source, Dataset):
        raise ConfigError(f"{source!r} is open already; give it to a loader as it is")
    has_splits = isinstance(source, Mapping)
    given = given_splits(source, None if has_splits else split)
    if not all(map(is_sequence, given.values())):
        message = "the records can be gone through once, and a dataset has any of them at any time"
        raise ConfigError(f"{message}; open a list of them, or build them first: stoker.build(records, 'dataset/')")
    splits = {name: cast("RecordSequence", records) for name, records in given.items()}
    chosen = choose_split(split if has_splits else None, splits, "the source")
    with progress_of_call("reading labels", False if again else None, "records") as progress:
        listed = index_records(splits, chosen, record_fields, progress)
    if not again:
        listed.warn(3)  # where `open_dataset` was called
    opened = _of_images(listed, listed.root, chosen)
    opened.mode, opened.exif = mode, exif
    opened.opener = partial(_open_records, source, chosen, record_fields, mode, exif, again=True)
    return opened


def open_records(
    root: str,
    keys: RecordKeys | None,
    *,
    label_base: int = 0,
    keeps_boxes: bool = True,
    crop_objects: bool = False,
    progress: Progress | None = None,
) -> Source:
    """List the records of a dataset for ``stoker repack``, as `Dataset.source_of` does.

    Records of other origin do not say whether their classes count from 0 or from 1. Unless ``keys`` say so, or a list
    of classes that begins with the background, labels do not change: classes count from ``label_base``, as they will in
    the new dataset.

    Raises:
        DatasetNotFoundError: There is nothing to read.
        ConfigError: The layout of the records is unknown, or as `Dataset.source_of`.
    """
    target = location(root)
    if contents_of(target).kind == "images":
        raise no_records(target)
    opened = _Opening(target, keys, SourceOptions(), label_base=label_base).open_all()
    order = [*filter(opened.__contains__, SPLITS), *sorted(opened.keys() - {*SPLITS})]
    datasets = {split: opened[split] for split in order}
    says_base = keys is not None and keys.label_base is not None
    _refuse_different_bases(root, [*datasets.values()])
    source = Dataset.source_of(datasets, progress, keeps_boxes=keeps_boxes, crop_objects=crop_objects)
    notes = () if says_base else _notes_of_base(root, [*datasets.values()], source.table)
    return replace(source, root=root, listing_warnings=(*notes, *source.listing_warnings))


def _refuse_different_bases(root: str, datasets: Sequence[Dataset]) -> None:
    """Refuse splits whose classes count from different numbers, by the lists beside them."""
    bases = {dataset.split: dataset.schema.label_base for dataset in datasets if len(dataset)}
    if len(set(bases.values())) > 1:
        numbers = ", ".join(f"{split} from {base}" for split, base in bases.items())
        message = f"the classes of {root} count from different numbers: {numbers}, as the lists beside them say"
        raise ConfigError(f"{message}; give --from-label-base 0 or 1 for all")


def _notes_of_base(root: str, datasets: Sequence[Dataset], table: ItemTable) -> tuple[str, ...]:
    """Return a warning if the labels probably count from 1, and were taken to count from 0."""
    labelled = table.labels[table.labels >= 0]
    if any(dataset.manifest or dataset.classes or dataset.schema.label_base for dataset in datasets):
        return ()
    if not len(labelled) or labelled.min() != 1:
        return ()
    message = f"no record of {root} has the label 0, so class 0 is empty: labels are kept as they are stored"
    return (f"{message}; if its classes count from 1, give --from-label-base 1",)
