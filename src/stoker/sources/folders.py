"""Folders of images as a source: with a folder for each class, or without classes; with or without splits.

Without folders of splits all images are the split "train". Images of validation and test may lie directly in the folder
of their split: a list of `stoker.sources.labels` has the classes of validation. Tiny ImageNet's lie in ``val/images``.

`stoker.sources.names` has all names of splits. The class of a file is the first folder below its split; how deep the
file lies below that does not matter. Every regular file is an item, whatever it is called, except hidden files and the
sidecars of `stoker.sources.names.SIDECARS`: content decides later what an item is.

Without classes, images lie in one folder, in one for each split, or in folders of dates. Items are then files with the
suffix of an image, or without one, as videos and documents may lie beside images.
"""

from __future__ import annotations

import dataclasses
import mimetypes
import os
import re
import shlex
from collections import Counter
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

from stoker.config import format_count, format_some, option
from stoker.errors import SourceError
from stoker.format import is_dataset
from stoker.sources.boxes import TINY_LIST, read_tiny_boxes
from stoker.sources.coco import coco_of_classes, find_coco
from stoker.sources.files import Listing, Walk, folders_in, images_among, some_entries
from stoker.sources.image_tables import (
    find_metadata,
    find_tables,
    is_submission,
    list_tables,
    split_in_name,
    why_unused,
)
from stoker.sources.known_layouts import (
    CONVERT,
    VIEW,
    YEAR,
    begin_with_numbers,
    belonging_beside,
    check_class_folders,
    classes_advice,
    inner_folders,
    masks_among,
    refuse_arrays,
    typed_table,
)
from stoker.sources.labels import (
    CLASS_LISTS,
    LABEL_LISTS,
    TEXT_LISTS,
    find_validation_labels,
    missing_labels_advice,
    read_validation_labels,
)
from stoker.sources.names import ANNOTATION_FOLDERS, IMAGES_FOLDER, is_image_name, is_sidecar, shown_names
from stoker.sources.parquet_files import ARROW_SUFFIX, PARQUET_SUFFIX
from stoker.sources.source import Kind, Source, SourceBuilder
from stoker.sources.split_lists import divide_by_lists
from stoker.splits import ANY_SPLIT, SPLIT_FOLDERS, SPLIT_WORDS, SPLITS, are_splits, splits_among, splits_called_like
from stoker.storage import Child, Location, from_uri, location

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stoker.sources.labels import ValidationLabels
    from stoker.sources.look import Layout, Look


_METADATA = frozenset(name.encode() for name in (*TEXT_LISTS, *LABEL_LISTS, *CLASS_LISTS, TINY_LIST, "sizes.txt"))

HOLDS_ARROW = (
    "holds Arrow files, as 'datasets' saves them; give stoker.build what datasets.load_from_disk returns of it"
)

_ARROW = ARROW_SUFFIX.encode()
_FILES = (b".tar", b".tar.gz", b".tgz", _ARROW)

_DATE = re.compile(rf"{YEAR.pattern}[-_./]({YEAR.pattern}[-_.])?(0?[1-9]|1[0-2])([-_. ].*)?")
_CAMERA = re.compile(rf"DCIM|[1-9][0-9]{{2}}(?=.*[A-Z_])[A-Z0-9_]{{5}}|Photos from {YEAR.pattern}")
"""Names of folders of cameras (DCF), and of Google Photos."""

_WORD_AND_NUMBER = re.compile(r"(?P<word>[^/]*[A-Za-z][^/]*)[-_. ](?P<number>[0-9]+)\.[A-Za-z]+")
_NUMBER_AND_WORD = re.compile(r"(?P<number>[0-9]+)[-_. ](?P<word>[^/0-9]*[A-Za-z][^/0-9]*)\.[A-Za-z]+")
_SPLIT_AND_MORE = re.compile(rf"({ANY_SPLIT})[-_. ].*", re.IGNORECASE)
_TO_ROWS = r"s/^(.*)[-_. ][0-9]+\.[A-Za-z]+$/&,\1/p"
_TO_ROWS_OF_WORDS = r"s/^[0-9]+[-_. ](.*)\.[A-Za-z]+$/&,\1/p"
_TO_ROWS_OF_NUMBERS = r"s/^([0-9]+)_.*$/&,\1/p"
_OF_A_CAMERA = re.compile(r"[A-Z]{1,4}|.*[0-9].*")
_ANNOTATIONS = (".txt", ".json", ".xml", ".csv", ".tsv", ".jsonl")
_FEW, _LOOKED_AT = 4, 1000


def _list(look: Look, layout: Layout) -> Source:
    if coco := look.once(find_coco):  # several files of one split
        message = f"{look.path} has the images of several COCO files, which are in no folders of classes; give one file"
        raise SourceError(f"{message}: {' or '.join(str(file.path) for file in coco)}", path=str(look.path))
    refuse_arrays(look, layout.base)
    builder = SourceBuilder(look, layout.base, layout.tops, is_ordered=False)
    builder.skipped.warn(coco_of_classes(look), "COCO files that are not used: {names}; give one to read its boxes")
    splits = _SplitFinder(builder, (*layout.tops, look.path.resolve().parent)).find()
    if not any(folder.labels for folder in splits.values()):
        classes = {folder.path: folder.classes or () for folder in splits.values()}
        if tables := check_class_folders(look, builder, layout.base, classes):
            return list_tables(look, tables)
        builder.label_warnings += [] if builder.labels else inner_folders(look, layout.base, classes)
    _collect(builder, splits)
    if os.fsencode(layout.base.name) in SPLIT_FOLDERS:
        names = splits_called_like(os.fsencode(layout.base.name))
        builder.class_parents = [layout.base.with_name(os.fsdecode(name)) for name in names]
    divide_by_lists(builder, look)
    builder.settle()
    _warn_of_annotations(look, builder, splits)
    warnings = builder.warnings
    listed = builder.skipped.ignored[".txt"] > 0  # lists of boxes lie beside the images and were counted
    tiny = None
    if builder.options.boxes is None:
        tiny = read_tiny_boxes(layout.base, builder.collector.class_names() if listed else (), warnings)
    if tiny is None:
        paths = {split: folder.path for split, folder in splits.items()}
        source = builder.finish(builder.find_boxes(layout.tops, layout.base, paths))
    else:
        source = builder.finish(dict.fromkeys(splits, tiny))
    _refuse_tables(look.path, source)
    unused = tuple(f"{table.path} is not used: {why_unused(table)}" for table in look.once(find_metadata))
    return dataclasses.replace(source, listing_warnings=(*source.listing_warnings, *unused))


@dataclass(frozen=True, slots=True)
class _SplitFolder:
    """The folder of the images of a split."""

    path: bytes  # the folder, relative to the root: empty, or ending in a slash
    classes: tuple[bytes, ...] | None  # the class folders in it; None if the images lie in it directly
    labels: ValidationLabels | None = None  # the classes of such images; None if they have none
    lost: tuple[bytes, ...] = ()  # the classes that are broken links


class _SplitFinder:
    """Finds the splits below ``builder.base``; counts in ``builder``, with warnings, files that belong to no class."""

    def __init__(self, builder: SourceBuilder, label_folders: tuple[Location, ...]) -> None:
        self._builder = builder
        self._skipped = builder.skipped
        self._label_folders = label_folders
        self._labels = find_validation_labels(label_folders, builder.options.validation_labels)

    def find(self) -> dict[str, _SplitFolder]:
        entries = self._builder.walk.scan(b"", self._skipped)
        candidates = splits_among({entry.name for entry in entries if entry.is_folder})
        # A class may be called "train". Only a folder that holds folders is a split, or one with a list of labels.
        held = {name: folders_in(self._builder.base + b"/" + name) for name in candidates}
        others = [entry for entry in entries if entry.name not in held and _is_relevant(entry.name)]
        built: set[Child] = set()
        if candidates:
            base = self._builder.folder
            built = {entry for entry in others if entry.is_folder and is_dataset(base / os.fsdecode(entry.name))}
            others = [entry for entry in others if entry not in built]
        trains = [held[name] for name, split in candidates.items() if split == "train"]
        lone = not any(trains) and any(entry.is_folder for entry in others)
        listed = self._labels is not None and "validation" in candidates.values()
        if lone or not (any(held.values()) or listed):
            if self._builder.options.validation_labels is not None and not any(entry.is_folder for entry in entries):
                return {"validation": self._flat("validation", b"")}
            return {"train": self._class_folders(b"", entries)}
        are_splits(held, os.fsdecode(self._builder.base))
        if built:
            self._skipped.ignored["dataset"] += len(built)
        self._count_others([entry.name for entry in others])
        names = sorted(held, key=lambda name: SPLITS.index(SPLIT_FOLDERS[name]))
        return {SPLIT_FOLDERS[name]: self._split(name) for name in names}

    def _split(self, name: bytes) -> _SplitFolder:
        entries = self._builder.walk.scan(name + b"/", self._skipped)
        split = SPLIT_FOLDERS[name]
        folders = [entry.name for entry in entries if entry.is_folder and _is_relevant(entry.name)]
        if split == "train":
            return self._class_folders(name + b"/", entries)
        base = self._builder.folder
        if folders == [IMAGES_FOLDER] and ((base / "val" / TINY_LIST).is_file() or (base / "wnids.txt").is_file()):
            return self._flat(split, name + b"/" + IMAGES_FOLDER + b"/")
        if not folders and any(_is_relevant(entry.name) and not is_sidecar(entry.name) for entry in entries):
            return self._flat(split, name + b"/")
        return self._class_folders(name + b"/", entries)

    def _flat(self, split: str, folder: bytes) -> _SplitFolder:
        return _SplitFolder(folder, None, self._read_labels(folder) if split == "validation" else None)

    def _read_labels(self, folder: bytes) -> ValidationLabels:
        tiny = self._builder.folder / "val" / TINY_LIST
        path = self._labels or (tiny if tiny.is_file() else None)
        if path is None:
            where = self._builder.root
            entries = self._builder.walk.scan(folder, self._skipped)
            names = [entry.name for entry in entries if _is_relevant(entry.name)]
            advice = missing_labels_advice(self._label_folders, min(names, default=b""))
            raise SourceError(f"{where} holds validation images without class folders; {advice}", path=where)
        return read_validation_labels(path)

    def _count_others(self, names: list[bytes]) -> None:
        for name in filter(is_sidecar, names):
            self._skipped.count_sidecar(name)
        unused = [name for name in names if not is_sidecar(name)]
        self._skipped.warn(unused, "beside the splits and not used: {names}", "outside the splits")

    def _class_folders(self, folder: bytes, entries: Sequence[Child]) -> _SplitFolder:
        """Return the class folders among ``entries``; count the files that lie outside any class."""
        classes = []
        lost = []
        loose = 0
        for entry in entries:
            if entry.name in ANNOTATION_FOLDERS or entry.name in _METADATA:
                continue
            if entry.name.startswith(b"."):
                self._skipped.ignored["hidden"] += 1
            elif is_sidecar(entry.name) and not entry.is_folder:
                self._skipped.count_sidecar(entry.name)
            elif entry.is_folder:
                classes.append(entry.name)
            elif entry.is_link and not entry.is_file and self._leads_nowhere(folder + entry.name):
                lost.append(entry.name)
            else:
                loose += 1
        if loose:
            self._skipped.ignored["outside a class folder"] += loose
            message = f"{format_count(loose, 'file')} in {os.fsdecode(folder) or 'the root'} outside any class folder"
            self._builder.warnings.append(f"{message}: not used")
        return _SplitFolder(folder, tuple(classes), lost=tuple(lost))

    def _leads_nowhere(self, link: bytes) -> bool:
        """Return whether a link is broken and may have been a class folder, as its name is not that of an image."""
        is_image = (mimetypes.guess_type(os.fsdecode(link))[0] or "").startswith("image/")
        return not is_image and not from_uri(self._builder.base + b"/" + link).exists()


def _is_relevant(name: bytes) -> bool:
    return name not in ANNOTATION_FOLDERS and name not in _METADATA and not name.startswith(b".")


def _collect(builder: SourceBuilder, folders: dict[str, _SplitFolder]) -> None:
    if all(folder.classes == () and not folder.lost for folder in folders.values()):
        message = f"{builder.root} holds no class folder; put the images of each class, or links to them, into a folder"
        message += f" named after it, such as {builder.root}/cat/1.jpg, or name them in {builder.root}/metadata.csv"
        files = sorted(child.name for child in location(builder.root).some_children() if child.is_file)
        tars = [name for name in files if name.endswith(_FILES)]
        if tars and tars[0].endswith(_ARROW):
            message = f"{builder.root} {HOLDS_ARROW}"
        elif tars and not tars[0].endswith(b".tar"):
            message = f"{location(builder.root) / os.fsdecode(tars[0])} is compressed, so its images cannot be read in"
            message += " place; unpack it with gunzip first"
        elif tars:
            message = f"{builder.root} holds no class folder, and no tar with a name of ImageNet's, such as"
            message += " ILSVRC2012_img_train.tar; give one tar that holds class folders, unpack the tars, or give the"
            message += " images of a WebDataset members called .cls, .txt or .json"
        elif files and not any(map(is_image_name, files)):
            message += f"; its files are no images: {shown_names(files)}"
        raise SourceError(message, path=builder.root)
    for split, folder in folders.items():
        if folder.classes is None:
            _collect_flat(builder, split, folder)
        else:
            _collect_classes(builder, split, folder)
    labels = folders["validation"].labels if "validation" in folders else None
    if labels is None and builder.options.validation_labels is not None:
        builder.warnings.append(
            f"{option('validation_labels')} is not used: no validation images lie outside class folders"
        )
    if labels is not None and "train" not in folders:
        builder.classes |= labels.class_names()  # some of the images must have the same labels as all


def _collect_classes(builder: SourceBuilder, split: str, split_folder: _SplitFolder) -> None:
    classes = split_folder.classes or ()
    folders = [split_folder.path + name + b"/" for name in classes]
    before = len(builder.collector)
    for name in split_folder.lost:  # each is one item, which the build reports as a reject
        group = builder.collector.group(split, name, len(split_folder.path))
        builder.collector.add(group, split_folder.path + name, 0)
    for done, listing in enumerate(builder.walk.list_folders(folders), 1):
        folder = folders[done - 1]
        if listing.is_dataset:
            builder.skipped.ignored["dataset"] += 1
            continue
        group = builder.collector.group(split, classes[done - 1], len(folder))
        builder.skipped.add(listing.skipped)
        builder.collector.add_folder(group, folder, listing.files)
        if builder.progress is not None and done < len(folders):  # a listing that ends at once shows no progress
            images = len(builder.collector) - before
            total = before + max(images * len(folders) // done, images + 1)
            builder.progress(done=before + images, total=total, size_bytes=0, rejects=0)


def _collect_flat(builder: SourceBuilder, split: str, split_folder: _SplitFolder) -> None:
    labels = split_folder.labels
    known = builder.collector.class_names().union(builder.labels.names if builder.labels else ())
    unlabelled = 0
    (listing,) = builder.walk.list_folders([split_folder.path])
    builder.skipped.add(listing.skipped)
    for path, size in listing.files:
        name = labels.class_of(path) if labels is not None else None
        if labels is not None and labels.tolerant and known and name not in known:
            name = None
        unlabelled += name is None
        group = builder.collector.group(split, name, len(split_folder.path))
        builder.collector.add(group, split_folder.path + path, size)
    if labels is None:
        return
    if labels.bad_lines:
        builder.skipped.ignored["bad line of labels"] += labels.bad_lines
        builder.warnings.append(f"{labels.where}: {format_count(labels.bad_lines, 'line')} without an image or a class")
    if unlabelled:
        builder.warnings.append(
            f"{labels.where} gives no known class to {format_count(unlabelled, 'image')}, left without a label"
        )


def _warn_of_annotations(look: Look, builder: SourceBuilder, splits: dict[str, _SplitFolder]) -> None:
    """Warn of tables named after splits without classes, and of annotations beside the images of the classes."""
    base, warn = builder.folder, builder.skipped.warn
    bare = {split for split, folder in splits.items() if folder.classes is None and folder.labels is None}
    tables = (name for name in look.look_into(base).files if name.endswith(".csv"))
    names = [name for name in tables if split_in_name(base / name) in bare]
    warn(names, "not used is {names}, though images of test have no classes; give it to read it")
    classes = [folder.path + name for folder in splits.values() for name in (folder.classes or ())[:1]]
    files = look.look_into(base / os.fsdecode(classes[0])).files if classes else []
    stems = Counter(name.rpartition(".")[0] for name in files)
    beside = [name for name in files if name.lower().endswith((".txt", ".json")) and stems[name.rpartition(".")[0]] > 1]
    warn(beside, f"not read beside the images of the classes: {{names}}; {CONVERT}")


def _refuse_tables(path: Location, source: Source) -> None:
    """Refuse folders of Parquet or Arrow files that would be taken for classes."""
    first = source.table.paths[0] if len(source.table) else b""
    suffix = next((suffix for suffix in (PARQUET_SUFFIX.encode(), _ARROW) if first.endswith(suffix)), None)
    if suffix is None or not all(source.table.paths[row].endswith(suffix) for row in range(len(source.table))):
        return
    if suffix == _ARROW:
        raise SourceError(f"{path} {HOLDS_ARROW}", path=str(path))
    parent = first.rpartition(b"/")[0]
    folder, _, split = parent.rpartition(b"/")
    inner = path / os.fsdecode(folder if folder and split in SPLIT_FOLDERS else parent)
    message = f"{path} holds Parquet files in folders that are no splits, such as {inner}"
    raise SourceError(f"{message}; give one of these folders", path=str(path))


@dataclass(frozen=True, slots=True)
class _Contents:
    """The contents of the folder of each split, and what shows that their folders are not classes."""

    base: Location
    listings: dict[bytes, Listing]
    names: Sequence[str]
    seen: str


def _claim_flat(look: Look) -> _Contents | None:
    """Return the images of a folder; None if they have classes, or a list or table beside them may have the classes."""
    options = look.options
    if look.layout is None or options.labels is not None or options.validation_labels is not None:
        return None
    base, paths = look.layout.base, [""]
    names = _folders(base)
    seen = not_classes(base, names)
    if names and not seen:
        if not are_splits(set(map(os.fsencode, names)), look.root):
            return None
        paths = [name + "/" for name in names]
        inner = {path: folders for path in paths if (folders := _folders(base / path))}
        reasons = [not_classes(base / path, folders) for path, folders in inner.items()]
        if not all(reasons):
            return None
        names, seen = sorted(set(chain(*inner.values()))), next(iter(reasons), "")
    listed = map(os.fsencode, paths)
    listings = dict(zip(map(os.fsencode, paths), Walk(base.to_uri(), look.without).list_folders(listed), strict=True))
    files = [name for listing in listings.values() for name, _ in listing.files]
    if not any(map(is_image_name, files)) or (not seen and any(b"/" in name for name in files)):
        return None
    for path, listing in listings.items():
        masks = masks_among(
            base / os.fsdecode(path), [os.fsdecode(name) for name, _ in listing.files], is_lone=not path
        )
        if masks is not None:
            message = f"{look.root} holds {masks}, or name the images by a pattern such as '*.jpg'"
            raise SourceError(message, path=look.root)
    # A list of validation images, a COCO file or a table may describe the images.
    lists = find_validation_labels((*look.layout.tops, look.path.resolve().parent), None)
    is_told = lists or look.once(find_coco) or find_tables(look, base, look.files_near(base))
    return None if is_told else _Contents(base, listings, names, seen)


def _folders(folder: Location) -> list[str]:
    """Return the names of the folders in a folder; empty if its first entries are all files."""
    if not any(is_folder for _, is_folder in islice(some_entries(folder.to_uri()), _LOOKED_AT)):
        return []
    names = [os.fsdecode(name) for name in folders_in(folder.to_uri()) if not name.startswith(b".")]
    return names if len(names) > _FEW else [name for name in names if not is_dataset(folder / name)]


def not_classes(top: Location, names: Sequence[str]) -> str:
    """Return a description of what shows that folders are not classes; empty if they may be classes."""
    if not names:
        return ""
    if all(map(_CAMERA.fullmatch, names)) or "DCIM" in names:
        return f"the folders of a camera, such as {names[0]}/"
    if all(map(YEAR.fullmatch, names)):
        names = [f"{year}/{name}" for year in names for name in _folders(top / year)]
    return f"folders called after dates, such as {names[0]}/" if names and all(map(_DATE.fullmatch, names)) else ""


def _list_flat(look: Look, contents: _Contents) -> Source:
    builder = SourceBuilder(look, contents.base, is_ordered=False)
    beside, count = Counter[str](), 0
    for path, listing in contents.listings.items():
        builder.skipped.add(listing.skipped)
        images = images_among(listing.files, builder.skipped)
        beside += Counter({end: listing.skipped.ignored[end] for end in _ANNOTATIONS})
        count += len(images)
        split = SPLIT_FOLDERS[path[:-1]] if path else "train"
        builder.collector.add_folder(builder.collector.group(split, None, len(path)), path, images)
        names = [os.fsdecode(name) for name, _ in images]
        where, rows = _classes_in_names(names)
        if splits := _splits_in_names(names):
            message = f"the names of images begin with {format_some([*splits], _FEW)}, and all are {split}"
            lines = (f"ls | grep -v '[.]txt$' | grep '^{word}[-_. ]' > {own}.txt" for word, own in splits.items())
            typed = f"type: (cd {shlex.quote(str(contents.base))}; {'; '.join(lines)})"
            typed = "write train.txt, val.txt and test.txt" if path or not contents.base.is_local else typed
            builder.label_warnings.append(f"{message}; if these are splits, {typed}")
        elif where:
            message = f"the names of images {where}; if these are classes, "
            if [*contents.listings] == [b""] and contents.base.is_local:
                command = f"ls | sed -nE '{rows}'"
                message += f"type: {typed_table(contents.base, command)}"
            else:
                message += "write a table of all images with the columns file_name and label"
            builder.label_warnings.append(message)
    if beside.keys() - {".txt"} or 2 * beside.total() >= count:
        files = (name for path in contents.listings for name in look.look_into(contents.base / os.fsdecode(path)).files)
        first = next((f", such as {name}" for name in files if name.lower().endswith(_ANNOTATIONS)), "")
        hint = f"if they are boxes of YOLO's, name the classes in {look.path / 'classes.txt'}, one a line"
        hint = f"{hint}; write captions into metadata.csv" if 2 * beside[".txt"] >= count else CONVERT
        message = f"not read: {format_count(beside.total(), 'file')} beside the images ({', '.join(beside)}){first}"
        builder.warnings.append(f"{message}; {hint}")
    if contents.seen:
        message = f"{look.root} holds {contents.seen}, so its images have no classes"
        builder.label_warnings.append(f"{message}; {classes_advice(contents.names)}")
    if belonging := belonging_beside(look):
        builder.warnings.append(f"not read: {belonging}")
    if b"" not in contents.listings:
        names = [name for name in look.look_into(contents.base).files if not is_submission(name)]
        tables = [name for name in names if name.lower().endswith(_ANNOTATIONS[1:])]
        builder.skipped.warn(tables, "beside the splits and not used: {names}")
    divide_by_lists(builder, look)
    return builder.finish()


def _splits_in_names(names: Sequence[str]) -> dict[str, str]:
    """Return the words for splits with which all names begin, and their splits; empty unless there are several."""
    words = [match[1] for match in map(_SPLIT_AND_MORE.fullmatch, names) if match]
    splits = {word: SPLIT_WORDS[word.lower()] for word in sorted({*words})}
    return splits if len(words) == len(names) and len({*splits.values()}) == len(splits) > 1 else {}


def _classes_in_names(names: Sequence[str]) -> tuple[str, str]:
    """Return where the names of images have words that may be classes, and the ``sed`` script to read them; or nothing.

    Words for views of the same scenes are not classes: some numbers are common to all of them.
    """
    if begin_with_numbers(names):
        return f"begin with numbers, as {names[0]} does", _TO_ROWS_OF_NUMBERS
    numbers: dict[str, list[str]] = {}
    pattern, where, rows = _WORD_AND_NUMBER, "begin", _TO_ROWS
    if names and _NUMBER_AND_WORD.fullmatch(names[0]):
        pattern, where, rows = _NUMBER_AND_WORD, "end", _TO_ROWS_OF_WORDS
    for match in filter(None, map(pattern.fullmatch, names)):
        numbers.setdefault(match["word"], []).append(match["number"])
    counts = [len(own) for own in numbers.values()]
    if not 1 < len(counts) <= len(names) // 2 or sum(counts) < len(names) or min(counts) == 1:
        return "", ""
    are_views = all(map(VIEW.fullmatch, numbers)) and set.intersection(*map(set, numbers.values()))
    if are_views or all(map(_OF_A_CAMERA.fullmatch, numbers)):
        return "", ""
    return f"{where} with {format_some(sorted(numbers), _FEW)}", rows


FLAT_FOLDER = Kind(
    name="folder of images without classes",
    claim=_claim_flat,
    list=_list_flat,
    options=frozenset({"labels", "validation_labels", "imagenet_labels"}),
)

FOLDER = Kind(
    name="folder of class folders or of train/ and validation/",
    claim=lambda look: look.layout,
    list=_list,
)
