"""`stoker.build`: a dataset from a program or a notebook; what ``stoker build`` does, without a command."""

from __future__ import annotations

import os
import warnings
from contextlib import AbstractContextManager, nullcontext
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Literal, cast

from stoker.builder.destination import check_destination
from stoker.builder.local import LocalEngine
from stoker.builder.parts import NO_PART, chosen_part, list_once
from stoker.builder.plan import open_source
from stoker.builder.report import BuildReport, nothing_stored
from stoker.builder.settings import BuildOptions
from stoker.builder.tasks import build_part, build_source, build_stream, check_part_destination
from stoker.config import format_count, option, refuse_ineffective
from stoker.errors import ConfigError, SourceWarning, TooManyRejectsError
from stoker.habits import BUILDING, refuse_unknown
from stoker.progress import progress_of_call
from stoker.recipe import MAX_PIXELS
from stoker.sources import (
    RecordStream,
    SourceOptions,
    given_splits,
    is_sequence,
    list_records,
    open_datasets,
)
from stoker.storage import Location, location

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Never

    from stoker.builder.estimate import ExpectedSize
    from stoker.builder.local import EngineFactory
    from stoker.builder.parts import Part
    from stoker.builder.report import PartReport
    from stoker.builder.settings import BuildSettings, DropDuplicates, Keeping, PresetName
    from stoker.recipe import Check, Filter
    from stoker.sources import Given, RecordSequence, Source
    from stoker.storage import LocationLike
    from stoker.types import Compression, DecodeMode, Exif, Field, Progress

    ShowProgress = Callable[[str], AbstractContextManager[Progress | None]]


def build(
    source: LocationLike | Given | Mapping[str, Given],
    destination: LocationLike,
    *,
    split: str | None = None,
    fields: Mapping[str, Field] | None = None,
    # settings: builder.settings.BuildOptions explained
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
    shards: int | None = None,
    shard_size: str | int | None = None,
    validation_shards: int | None = None,
    shard_names: str | None = None,
    compression: Compression | None = None,
    resize: str | None = None,
    encode: str | None = None,
    filter: Filter | None = None,
    decode: DecodeMode = "exact",
    recipe: Keeping | None = None,
    check: Check | None = None,
    exif: Exif = "keep",
    max_pixels: int = MAX_PIXELS,
    preset: PresetName | None = None,
    label_base: int | None = None,
    num_images: int | None = None,
    split_fraction: str | None = None,
    crop_objects: bool = False,
    drop_duplicates: DropDuplicates | None = None,
    seed: int = 0,
    threads: int | None = None,
    max_rejects: int = 0,
    allow_huge: bool = False,
    # end of settings
    overwrite: bool = False,
    progress: Progress | Literal[False] | None = None,
    engine: EngineFactory = LocalEngine,
    part: str | None = None,
    finish: bool = False,
    **unknown: Never,
) -> BuildReport | Any:  # as `PartReport`, programs that build no parts would have to check for it
    """Build a dataset from images, or resume a build that was interrupted: what ``stoker build`` does.

    The settings are the options of the command, by their names; docs/reference/cli.md has them, too. The same source
    and settings give the same bytes as the command, for any number of threads, in any destination and after any number
    of interruptions. It works on threads, in any process and in notebooks. Only one build at a time can write to a
    directory of this machine; in a store two may, with the same settings.

    Args:
        source: Images in any form that ``stoker build`` takes (see `docs/reference/images.md`), by path or URL; or
            records, see docs/how-to/build.md: a sequence of dicts or of pairs of image and label, a
            ``datasets.Dataset``, a `stoker.Dataset` or a part of one; or a mapping from splits to any of these. A
            sequence is read by position, one record at a time unless ``threads`` is given; any other iterable is read
            once, in its order.
        destination: Directory of the dataset, or its URL; created if missing. An unfinished build with the same
            settings is resumed, a finished one is not touched.
        split: For records: name of their split. Default: train, or that of a `stoker.Dataset`.
        fields: For records: the field of each value, by name (see `stoker.fields`); other values are not stored.
            Default: as the library of the records declares them, otherwise inferred from the first record. Text labels
            without declared names are all read first; in an iterable they are refused.
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
        shards: Number of shards of train. Default: as many as ``shard_size`` makes.
        shard_size: Length of a shard, such as ``1GiB``. Default: 128MB.
        validation_shards: Number of shards of validation. Default: its share by bytes.
        shard_names: ``"default"``, ``"google"``, ``"tfds:NAME"``, ``"part"``, ``"per-class"`` or a template.
        compression: Compression of whole shards: ``"none"``, ``"gzip"`` or ``"zlib"``. Default: none.
        resize: ``"short:256"``, ``"long:512"``, ``"max:512"``, ``"exact:300x200"`` (width x height), ``"square:300"``
            or ``"off"``. Default: off.
        encode: How every image is stored: ``"jpeg:90"``, ``"jpeg:90:420"``, ``"jpeg:90:444"``, ``"jpeg:90:standard"``,
            ``"png"``, ``"webp:90"``, ``"webp:lossless"``, ``"raw"`` or ``"raw:CHW"``. Default: as it is, or as PNG;
            with ``resize``, JPEG and lossy WebP as jpeg:90, others as PNG. The standard Huffman tables are encoded in a
            fifth less time, with 3 % more bytes.
        filter: With ``resize``, the resampling filter. Default: bicubic.
        decode: With ``resize``: ``"exact"`` decodes like libjpeg's accurate decoder, ``"fast"`` faster and close to it.
            Default: exact.
        recipe: ``"keep"``: every JPEG, PNG and WebP is stored as it is, as without ``resize``. ``"restart"``: the same
            with restart markers in JPEGs, without loss.
        check: How images that are kept are checked: ``"header"``, ``"entropy"`` (all data, without making pixels) or
            ``"decode"``. Default: header.
        exif: EXIF orientation: ``"keep"`` it as stored, or ``"apply"`` it: JPEGs that it turns are encoded anew, with
            loss. Default: keep.
        max_pixels: Largest number of pixels of an image; larger ones are rejected. Default: 2**27.
        preset: Layout that readers of another system expect: ``"imagenet"``, ``"imagenet-nvidia"``, ``"dlbs"``,
            ``"tiny-imagenet"``, ``"dogs-onehot"`` or ``"tfds"``.
        label_base: Number of the first class, 0 or 1. Default: as the preset has it, otherwise 0.
        num_images: Number of images of train to use, chosen by the seed. Default: all.
        split_fraction: Moves a seeded part of every class of train to another split: ``"val=0.1"`` or ``"test=0.1"``.
            For a sequence, all labels are read first.
        crop_objects: Whether every annotated object becomes a record instead of every image.
        drop_duplicates: Leaves out all but the first of equal files: ``"within"`` each split; with ``"across-splits"``,
            also those of train that are in another split. They are listed as rejects. Default: none. Every image is
            read once more, before the build.
        seed: Seed of the order of the records. Default: 0.
        threads: Number of images converted at a time. Default: one per CPU. If given, this many threads may read
            records of a sequence at the same time, also of one that `stoker.open` has opened. By default only one does,
            because many objects allow no more.
        max_rejects: Number of images that may be missing in the dataset because they cannot be stored. Default: 0.
        allow_huge: Whether to build a dataset that is huge, or may not fit on the disk.
        overwrite: Whether a finished dataset at the destination, or an unfinished build with other settings, is removed
            first. Only files that Stoker wrote are removed, without asking.
        progress: Default: a bar on a terminal or in a notebook, once the build has taken a second. False: nothing. A
            function is called with ``done``, ``total`` (0 for an iterable), ``size_bytes`` and ``rejects`` after every
            few images, from the calling thread; an exception that it raises ends the build.
        engine: What makes the shards: threads of this process, or `stoker.spark.engine` of a session.
        part: For files: ``"3/64"`` builds number 3 of 64 parts (0 to 63) while other processes build the others;
            ``"auto"`` the one that Slurm or Kubernetes says. See docs/how-to/parts.md.
        finish: Builds no shard, but publishes the dataset once all parts have ended.
        unknown: Not an argument: those of other libraries are refused with what to use instead.

    Returns:
        The report of the build. With ``part``, a `stoker.PartReport` as long as shards of other parts are missing; the
            part that ends last finishes the dataset and returns a `stoker.BuildReport`.

    Warns:
        SourceWarning: Something about the images may need attention.
        LabelWarning: The classes may be a part of a larger list.

    Raises:
        ConfigError: A setting is out of range, contradicts another or does not fit the source; or the dataset is huge,
            or larger than the free space, and ``allow_huge`` is not set.
        SourceError: The source cannot be listed, or holds no images.
        DestinationError: The destination holds something else, or another build is writing to it; or shards are missing
            where ``finish`` is set.
        TooManyRejectsError: More images than ``max_rejects`` cannot be stored; all others are, but the manifest is not
            written. Its ``report`` lists them. The same call with a higher ``max_rejects`` finishes the dataset.
        OSError: The destination cannot be written, or the store of the source or of the destination has gone. Call
            again to resume.
        KeyboardInterrupt: Call again to resume.

    Example:
        >>> report = stoker.build("photos/", "dataset/", shards=8, resize="short:256")  # doctest: +SKIP
        >>> report.manifest.dataset_id                                                  # doctest: +SKIP
    """
    arguments = locals().copy()  # before there are other variables
    refuse_unknown("stoker.build", unknown, arguments, BUILDING)
    options = BuildOptions.among(arguments)
    if not callable(engine):
        raise ConfigError(f"engine is {engine!r}; give stoker.spark.engine(session), or omit it")
    chosen = chosen_part(part, finish=finish, engine=engine is not LocalEngine, overwrite=overwrite)
    target, remove = location(destination), (lambda _: None) if overwrite else None
    report: BuildReport | PartReport
    warn = methodcaller("warn", 3)  # where this function was called
    if isinstance(source, (str, os.PathLike, Location)):
        refuse_ineffective({"split": split, "fields": fields}, "where the source is a path or a URL")
        settings = options.settings(str(location(source)))

        def show_progress(
            step: str,
        ) -> AbstractContextManager[Progress | None]:  # a function gets the progress of the build only
            return progress_of_call(step, None if step == "listing" and callable(progress) else progress)

        if chosen is None:
            report = build_files(
                settings, target, show_progress, engine=nullcontext(engine), warn=warn, overwrite=remove
            )
        else:
            finished = build_part_of_files(settings, target, chosen, show_progress, warn=warn)
            report = finished.dataset or finished
    else:
        settings = options.settings(None, str(target))
        given = given_splits(source, split)
        opened = open_datasets(given)
        useless = SourceOptions.among(arguments).given()
        useless |= {"part": part, "finish": finish, "engine": engine is not LocalEngine}
        what = "a stoker.Dataset"
        if not opened:
            what, useless = "records", useless | {"crop_objects": crop_objects}
        else:
            refuse_ineffective({"fields": fields}, f"where the source is {what}")
        refuse_ineffective(useless, f"where the source is {what}", "omit it, or give a path or a URL")
        check_destination(target, *{folder for dataset in opened.values() for folder in dataset.folders})
        if opened:
            for dataset in opened.values() if threads else ():
                dataset.reader.allow(threads)
            report = _run_datasets(opened, settings, target, progress, overwrite=remove)
        else:
            report = _run_records(given, fields, settings, target, progress, readers=threads or 1, overwrite=remove)
    if isinstance(report, BuildReport) and report.outcome == "withheld":
        raise _too_many(report, destination, max_rejects)
    if isinstance(report, BuildReport) and (empty := nothing_stored(report.manifest, report.rejects)):
        warnings.warn(f"{destination} is empty: {empty}", SourceWarning, stacklevel=2)
    return report


# Users call it `stoker.build`; so Python's messages about its arguments use that name, too.
build.__module__ = "stoker"


def build_files(
    settings: BuildSettings,
    destination: Location,
    show_progress: ShowProgress,
    *,
    engine: AbstractContextManager[EngineFactory],
    warn: Callable[[Source], None] = lambda _: None,
    announce: Callable[[ExpectedSize], None] | None = None,
    overwrite: Callable[[str], None] | None = None,
) -> BuildReport:
    """List a source and build a dataset of it: what `build` and ``stoker build`` do with a path.

    ``show_progress`` returns a context manager that shows the progress of a step such as ``listing``. ``engine`` is
    entered once the destination is known to be free. ``warn`` is called with the listed source, and ``announce`` with
    the expected size before anything is written; `build_source` explains ``overwrite``.
    """
    check_destination(destination, settings.root)
    with engine as factory:
        with show_progress("listing") as progress:
            source = open_source(settings, progress, destination)
        warn(source)
        with show_progress("building") as progress:
            return build_source(source, settings, destination, progress, announce, factory, overwrite)


def build_part_of_files(
    settings: BuildSettings,
    destination: Location,
    part: Part,
    show_progress: ShowProgress,
    *,
    warn: Callable[[Source], None] = lambda _: None,
    announce: Callable[[ExpectedSize], None] | None = None,
) -> PartReport:
    """List a source, once for all parts, and build one part. Otherwise as `build_files`."""
    assert settings.root is not None, "parts are built of files"
    check_part_destination(destination, settings.root, part)
    with show_progress("listing") as progress:
        listed = list_once(settings, destination, progress)
    warn(listed.source)
    with show_progress("finishing" if part == NO_PART else str(part)) as progress:
        return build_part(listed, settings, destination, part, progress, announce)


def _run_datasets(
    opened: Mapping[str, Any],
    settings: BuildSettings,
    destination: Location,
    progress: Progress | Literal[False] | None,
    *,
    overwrite: Callable[[str], None] | None,
) -> BuildReport:
    keeps_boxes = settings.schema.info(0).box_prefix is not None
    with progress_of_call("reading labels", None if callable(progress) else progress, "records") as listed:
        source = next(iter(opened.values())).source_of(
            opened,
            listed,
            keeps_boxes=keeps_boxes,
            crop_objects=settings.options.crop_objects,
            imagenet_labels=bool(settings.source.imagenet_labels),
        )
    source.warn(3)  # where `build` was called
    with progress_of_call("building", progress) as built:
        return build_source(source, settings, destination, built, overwrite=overwrite)


def _run_records(
    given: Mapping[str, Given],
    fields: Mapping[str, Field] | None,
    settings: BuildSettings,
    destination: Location,
    progress: Progress | Literal[False] | None,
    *,
    readers: int,
    overwrite: Callable[[str], None] | None,
) -> BuildReport:
    if settings.naming.per_class:
        message = f"{option('shard_names')} per-class is for files in folders of classes"
        raise ConfigError(f"{message}; give {option('shards')}, or other names")
    stream = None if all(map(is_sequence, given.values())) else RecordStream(given, fields)
    if stream is not None:
        source = stream.source()
    else:
        with progress_of_call("reading labels", None if callable(progress) else progress, "records") as listed:
            source = list_records(
                cast("Mapping[str, RecordSequence]", given),
                fields,
                listed,
                readers=readers,
                with_labels=settings.held_out is not None,
            )
    if settings.schema.info(0).label_encoding == "one-hot" and not source.classes:
        message = "the preset stores as many numbers for a class as there are classes, and the records do not tell that"
        raise ConfigError(f"{message}; give fields={{'label': stoker.fields.Label([...]), ...}}")
    with progress_of_call("building", progress) as built:
        if stream is not None:
            report = build_stream(stream, source, settings, destination, built, overwrite)
        else:
            report = build_source(source, settings, destination, built, overwrite=overwrite)
    source.warn(3)  # where `build` was called
    return report


def _too_many(report: BuildReport, destination: LocationLike, allowed: int) -> TooManyRejectsError:
    count, first = len(report.rejects), report.rejects[0]
    message = f"{format_count(count, 'image')} could not be stored, and max_rejects is {allowed}: {destination} has no"
    message += f" manifest yet; the first is {first.key}: {first.reason}; call again with max_rejects={count} to accept"
    message += " them"
    if empty := nothing_stored(report.manifest, report.rejects):
        message = f"{destination} has no manifest, because {empty}"
    return TooManyRejectsError(
        f"{message}; the report of this error and {destination}/rejects.jsonl list them", report=report
    )
