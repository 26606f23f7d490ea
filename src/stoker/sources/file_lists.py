"""File lists: text files with the path of one image a line. `find_files` makes one.

Blank lines are only counted. Every other line is a path, or a path and a label in a list with labels: there are no
comments. Blanks around a path belong to it unless only the path without them exists. A missing file is still an item,
so that a build reports it as a reject.

In a list with labels the last tab, comma or blank of a line separates path and label. A list has labels if a file
exists for the part of a line before such a separator, and not for the whole line; then all lines must have a label,
otherwise none. If some labels are numbers but not ids, the list is a table with a field.

``ilsvrc.json``, the configuration of ALCF's example pipeline, names two lists in its section ``data``, and says how
they are read. Other sections (model, optimizer, ...) are for training programs.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shlex
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker import _native
from stoker.config import option
from stoker.errors import ConfigError, SourceError, StorageError
from stoker.sources.boxes import Annotations, BoxTable, MappedBoxes, annotations_beside
from stoker.sources.files import in_order, numbered_lines, size_or_zero, text_of
from stoker.sources.image_tables import find_tables, image_base, list_tables, split_alone
from stoker.sources.items import Group, GrowingColumn, repeats_in
from stoker.sources.labels import find_validation_labels, read_validation_labels
from stoker.sources.names import IMAGES_FOLDER
from stoker.sources.source import LABEL_OPTIONS, Kind, Source, SourceBuilder
from stoker.sources.tables import IMAGE_COLUMNS, LABEL, LABEL_NAME, are_classes, are_no_ids, classes_of, separator_of
from stoker.splits import SPLIT_FOLDERS, SPLIT_WORDS, splits_called_like
from stoker.storage import Location, from_uri, is_absolute, is_path_error, is_web, join, location, split_bucket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from stoker.sources.look import Look
    from stoker.storage import FileInfo


_NO_CLASS = SPLIT_FOLDERS.keys() | {IMAGES_FOLDER}
"""Folders that hold images of many classes."""

_SEPARATORS = {b"\t": "tab", b",": "comma", b" ": "blank"}
"""Separators of a path and its label, and their names."""
_COLUMN_ENDS = (*_SEPARATORS, b";")
_HEADER = re.compile(rf'"?({IMAGE_COLUMNS})"?\s*([\t,;].*| {LABEL_NAME.pattern})'.encode(), re.IGNORECASE)
"""The first line of tables with paths and labels."""
_NO_PATH = re.compile(rb"#.*|[^./]*")
"""The beginning of the first line of a table that is a comment or names columns, unless it is a file."""

_QUOTED = re.compile(rb'"([^"]+)"(?=[\t,;]|$)')
"""The first cell of a line of CSV, in quotes."""

_MAX_PARENTS = 100
"""How many folders of class folders are searched for missing classes."""
_UNDECIDED_LINES = 256
_UNDECIDED_IN_STORES = 8
"""A list has no labels if no file exists for this many lines with a separator."""
_LISTED_FROM = 8
"""From this many objects in a folder on, one listing of it replaces a request for each object."""
_MAX_CONFIG_BYTES = 2**20
_SPELLINGS = {"prefectch_buffer_size": "prefetch_buffer_size"}
"""Keys that the example pipeline misspells."""


def _list(look: Look, path: Location) -> Source:
    config = read_config(path) if is_config(path) else None
    if config and look.options.image_root is not None:
        raise ConfigError(f"{path} says where its images are: leave {option('image_root')} out")
    base = path.parent if config else image_base(look)
    builder = SourceBuilder(look, base, (path.parent,))
    builder.takes_root = config is None
    lists = _FileLists(builder, config.lists() if config else {path: split_alone(path, builder.warnings)})
    if config is None and not lists.has_classes(path) and (tables := find_tables(look, path.parent, [path])):
        return list_tables(look, tables)
    lists.fill()
    count = builder.settle()
    if config is not None and config.num_classes not in (None, count):
        message = f"{path} says num_classes {config.num_classes}, but its lists have {count} classes"
        builder.label_warnings.append(message)
    return builder.finish(lists.find_boxes())


_A_FILE = "an image, not a list of images; give its folder, or a pattern in quotes, as in 'photos/*.jpg'"
_NO_LISTS = {
    b"PK\x03\x04": "a zip archive, which is not read; unpack it and give the folder",
    b"\xff\xd8\xff": _A_FILE,
    b"\x89PNG": _A_FILE,
}
"""Files that users give in place of a list, by their first bytes."""


class _FileLists:
    """One or more lists, each of which is a split."""

    def __init__(self, builder: SourceBuilder, lists: Mapping[Location, str]) -> None:
        self._builder = builder
        self._lists = lists
        self._folders: dict[tuple[str, bytes, bytes | None], int] = {}
        self._hashes = GrowingColumn("q")
        self._before = b""  # prefix of relative paths in the list
        self._look_ups: dict[bytes, Callable[[str], FileInfo | None]] = {}
        self._stores_looked_at = False
        explicit = find_validation_labels((), builder.options.validation_labels)
        self._labels = read_validation_labels(explicit) if explicit else None
        self._uses_labels = False
        self._separator: bytes | None = None
        self._unlabelled = 0
        self._label_of: dict[int, str] = {}  # of groups with a label

    def has_classes(self, path: Location) -> bool:
        """Return whether the lines of a list have labels, and the first of these are classes."""
        separator = self._find_separator(path)
        if separator is None:
            return False
        lines = [(at, line.strip()) for at, line in islice(numbered_lines(path), _UNDECIDED_LINES) if line.strip()]
        number, first = lines[0]
        texts = [os.fsdecode(line.rpartition(separator)[2].strip()) for _, line in lines]
        image = first.rpartition(separator)[0].strip()
        if number == 1 and self._is_header(first):
            if texts.pop(0) != LABEL and (not are_classes(texts) or SPLIT_WORDS.keys() >= {*texts}):
                return False
        elif _NO_PATH.fullmatch(image) and self._size(image) is None:
            return False
        return all(texts) and not are_no_ids(texts) and not separator_of(texts)

    def fill(self) -> None:
        for path, split in self._lists.items():
            if not path.is_file():
                raise SourceError(f"the list {path} does not exist or is not a file", path=str(path))
            head = path.read_head(8)
            for beginning, what in _NO_LISTS.items():
                if head.startswith(beginning):
                    raise SourceError(f"{path} is {what}", path=str(path))
            folder = path.parent.to_uri()
            self._before = b"" if self._builder.takes_root or folder == self._builder.base else folder + b"/"
            self._separator = self._find_separator(path)
            self._unlabelled += self._separator is None
            for number, line in numbered_lines(path):
                self._add(path, number, line, split)
        collector = self._builder.collector
        labels = dict.fromkeys(self._label_of.values())
        class_of, are_ids = classes_of(self._builder.root, labels, self._builder.warnings)
        self._builder.numbered = are_ids and not self._unlabelled
        for group, label in self._label_of.items():
            collector.groups[group].class_name = class_of[label]
        if self._labels is not None and self._uses_labels:
            # A list of a part of the images must have the same labels as a list of all.
            self._builder.classes |= self._labels.class_names()
        self._fill_sizes()
        names = collector.class_names()
        if names and names <= _NO_CLASS and not self._labels and self._unlabelled:
            shown = " and ".join(sorted(map(os.fsdecode, names)))
            message = f"all images of {self._builder.root} lie in a folder called {shown}, not in class folders; give"
            raise SourceError(f"{message} their classes with {option('validation_labels')}", path=self._builder.root)
        self._builder.class_parents = self._class_parents()
        if repeated := repeats_in(self._hashes.finish()):
            self._builder.warnings.append(f"repeated lines: {repeated:,}; each is an item of its own")

    def _class_parents(self) -> list[Location]:
        """Return the folders that hold the class folders of listed images, those of other splits included."""
        parents = set()
        for _, folder, class_name in self._folders:
            path = join(self._builder.base, folder).removesuffix(b"/" + IMAGES_FOLDER)
            parent, _, name = path.rpartition(b"/")
            if name != class_name:  # its class comes from a list
                continue
            parents.add(parent or b"/")
            above, _, split = parent.rpartition(b"/")
            if split in SPLIT_FOLDERS:
                parents.update(above + b"/" + other for other in splits_called_like(split))
        return [from_uri(folder) for folder in sorted(parents)[:_MAX_PARENTS]]

    def find_boxes(self) -> dict[str, Annotations | BoxTable]:
        splits = dict.fromkeys(self._lists.values(), b"")
        if self._builder.options.boxes is not None:
            return self._builder.find_boxes((), self._builder.folder, splits)
        base = self._builder.base
        beside = (annotations_beside(join(base, folder)) for _, folder, _ in self._folders)
        mapped = {folder for folder in beside if folder is not None}
        at_once = max((from_uri(folder).requests_at_once for folder in mapped), default=1)
        if not any(in_order(lambda folder: from_uri(folder).is_dir(), mapped, at_once)):
            return {}
        return dict.fromkeys(splits, MappedBoxes(base))

    def _add(self, list_file: Location, number: int, line: bytes, split: str) -> None:
        where = f"line {number} of {list_file}"
        if not line.strip():
            self._builder.skipped.ignored["blank line"] += 1
            return
        if b"\0" in line:
            raise SourceError(f"{where} has a NUL byte, so this is not a list of files", path=self._builder.root)
        whole, label = line, None
        if self._separator is not None:
            if number == 1 and self._is_header(line):
                return
            line, _, label = (part.strip() for part in line.strip().rpartition(self._separator))
            if not line or not label:
                raise self._unlabelled_error(where, whole)
            text_of(list_file, number, whole, whole.rindex(label))
        if is_web(line.strip()):
            message = f"{where} is the URL of a web server, but the list does not begin with one"
            raise SourceError(f"{message}; give such images a list of their own", path=self._builder.root)
        path, stripped = self._path(line), self._path(line.strip())
        if path != stripped and self._size(path) is None and self._size(stripped) is not None:
            path = stripped
        folder, _, name = path.rpartition(b"/")
        self._hashes.append(hash((split, path)))
        if folder not in self._look_ups:
            parent = from_uri(join(self._builder.base, folder))
            # What lies in a store gets its size later, from a listing of its folder.
            self._look_ups[folder] = parent.snapshot() if parent.is_local else lambda _name: None
        info = self._look_ups[folder](os.fsdecode(name))
        if info is None:
            self._refuse_mixed(number, whole, labelled=label is not None, where=where)
        group = self._group(split, folder, name, label, where)
        collector = self._builder.collector
        collector.add(group, path, 0 if info is None else info.size_bytes)

    def _refuse_mixed(self, number: int, line: bytes, *, labelled: bool, where: str) -> None:
        """Refuse a line whose file does not exist, if it has a label and others have none, or the reverse."""
        if not labelled:
            if number == 1 and self._is_header(line):
                raise self._columns_error(where, line)
            self._refuse_columns(line, where)
        elif self._at(line.strip()).is_local and self._size(line.strip()) is not None:
            raise self._unlabelled_error(where, line)

    def _find_separator(self, path: Location) -> bytes | None:
        """Return the separator of the paths and the labels of a list; None if it has no labels."""
        undecided = 0
        for number, line in numbered_lines(path):
            text = line.strip()
            if not text or b"\0" in text or (number == 1 and self._is_header(line)):
                continue
            if is_web(text):  # which `_add` refuses without a request
                return None
            if not any(separator in text for separator in _SEPARATORS) or self._size(text) is not None:
                return None
            for separator in _SEPARATORS:
                image, _, label = text.rpartition(separator)
                if image.strip() and label and self._size(image.strip()) is not None:
                    return separator
            undecided += 1
            if undecided == (_UNDECIDED_LINES if self._at(text).is_local else _UNDECIDED_IN_STORES):
                break
        return None

    def _is_header(self, line: bytes) -> bool:
        return _HEADER.fullmatch(line.strip()) is not None and self._size(line.strip()) is None

    def _refuse_columns(self, line: bytes, where: str) -> None:
        """Refuse a line if its part up to a tab, a comma, a semicolon or the last blank is the path of a file.

        In stores only the first line with such a character is checked, which is the first line of a table.
        """
        text = line.strip()
        quoted = _QUOTED.match(text)
        if quoted is not None and self._size(quoted[1]) is not None:
            raise self._columns_error(where, line)
        if not any(end in text for end in _COLUMN_ENDS):
            return
        if not self._at(text).is_local:
            if self._stores_looked_at:
                return
            self._stores_looked_at = True
            if self._size(text) is not None:
                return
        for end in _COLUMN_ENDS:
            path = (text.rpartition(end) if end == b" " else text.partition(end))[0].strip()
            if path and self._size(path) is not None:
                raise self._columns_error(where, line)

    def _columns_error(self, where: str, line: bytes) -> SourceError:
        shown = os.fsdecode(line.strip())[:200]
        message = f"{where} is {shown!r}: this list has one path a line, as none with a label is there in its first"
        message += " lines; give every line one label after a tab, a comma or a blank, or list the paths alone. A table"
        message += " with more columns is called metadata.csv (or .tsv), and names the images below its folder in"
        return SourceError(f"{message} 'file_name'", path=self._builder.root)

    def _unlabelled_error(self, where: str, line: bytes) -> SourceError:
        assert self._separator is not None, "the list has no labels"
        shown = os.fsdecode(line.strip())[:200]
        message = f"{where} is {shown!r}, without a label, but the list has labels after a"
        message += f" {_SEPARATORS[self._separator]}; give every line its label (-1 for none), or no line one"
        return SourceError(message, path=self._builder.root)

    def _fill_sizes(self) -> None:
        """Set the size of each image in a store; 0 if it does not exist.

        Folders with many images are listed, to save a request for each object.
        """
        collector, progress = self._builder.collector, self._builder.progress
        numbers: dict[bytes, int] = {}
        folder_of = np.full(len(collector.groups), -1, np.int64)
        for (_, folder, _), group in self._folders.items():
            url = join(self._builder.base, folder)
            if not from_uri(url).is_local:
                folder_of[group] = numbers.setdefault(url, len(numbers))
        if not numbers:
            return
        urls, paths = list(numbers), collector.paths()
        tasks = (
            (urls[number], rows, [paths[row].rpartition(b"/")[2] for row in rows])
            for number, rows in collector.rows_by(folder_of)
        )
        done = 0
        for rows, sizes in in_order(_sizes, tasks):
            collector.set_sizes(rows, sizes)
            done += len(rows)
            if progress is not None and done < len(collector):
                progress(done=done, total=len(collector), size_bytes=0, rejects=0)

    def _path(self, text: bytes) -> bytes:
        return text if is_absolute(text) else self._before + text

    def _at(self, text: bytes) -> Location:
        return from_uri(join(self._builder.base, self._path(text)))

    def _size(self, text: bytes) -> int | None:
        file = self._at(text)
        try:
            size = file.size()
            return size if file.is_file() else 0
        except StorageError:
            raise
        except OSError as error:
            if file.is_local and not is_path_error(error):
                raise
            return None

    def _group(self, split: str, folder: bytes, name: bytes, label: bytes | None, where: str) -> int:
        parts = split_bucket(folder)[1].split(b"/")
        class_name: bytes | None = parts[-2] if len(parts) > 1 and parts[-1] == IMAGES_FOLDER else parts[-1]
        if label is not None:
            class_name = label
        elif class_name in _NO_CLASS and self._labels is not None:
            class_name = self._labels.class_of(name)
            self._uses_labels = True
        if label is None and class_name in (b"", b".", b".."):
            message = f"{where}: {os.fsdecode(name)} lies in no class folder"
            if self._builder.options.image_root is None:
                message += f"; if it is a row of a table, give the folder of its images with {option('image_root')}"
            raise SourceError(message, path=self._builder.root)
        key = (split, folder, class_name)
        if key not in self._folders:
            self._folders[key] = self._builder.collector.add_group(
                Group(split, class_name, len(folder) + 1 if folder else 0)
            )
            if label is not None:
                self._label_of[self._folders[key]] = os.fsdecode(label)
        return self._folders[key]


def _sizes(task: tuple[bytes, list[int], list[bytes]]) -> tuple[list[int], list[int]]:
    """Return the rows of files in a folder and their sizes; 0 for files that do not exist."""
    url, rows, names = task
    if len(names) >= _LISTED_FROM:
        sizes = dict.fromkeys(names, 0)
        try:
            sizes.update((path, size or 0) for path, size in from_uri(url).files_below() if path in sizes)
        except StorageError:
            raise
        except OSError:  # it cannot be listed
            pass
        else:
            return rows, [sizes[name] for name in names]
    return rows, [size_or_zero(url, name) for name in names]


def find_files(patterns: Iterable[str]) -> list[bytes]:
    """Return the absolute paths or the URLs of the files that match any of some patterns, in the order of their bytes.

    Each file is returned once. A pattern that is a URL is matched against the names in its store.

    ``*`` and ``?`` match inside a name, ``**`` any number of folders. Names that begin with a dot match only a pattern
    with that dot. Links are not resolved.

    Raises:
        SourceError: No file matches, or the name of a file cannot stand in a list.
    """
    paths: set[bytes] = set()
    shown = []
    for pattern in patterns:
        shown.append(pattern)
        paths.update(os.fsencode(str(file)) for file in location(pattern).normalized().matching(regular=True))
    if not paths:
        message = f"no file matches {' '.join(shown)}"
        folder = next((pattern for pattern in shown if location(pattern).is_dir()), None)
        if folder is None:
            message = f"{message}; give a pattern in quotes, for example 'photos/**/*.JPEG'"
            raise SourceError(message, path=shown[0] if shown else None)
        inside = shlex.quote(str(location(folder) / "**"))
        advice = f"{folder} is a folder: {inside} matches its files; images in tars are in no list, but 'stoker plan'"
        raise SourceError(f"{message}; {advice}, 'stoker build' and stoker.open take the folder itself", path=folder)
    for path in paths:
        if b"\n" in path or b"\r" in path:
            message = f"{os.fsdecode(path)!r} has a line break in its name, so it cannot stand in a list; rename it"
            raise SourceError(message, path=os.fsdecode(path))
    return sorted(paths)


def shuffled(paths: list[bytes], seed: int) -> list[bytes]:
    """Return the paths in the order that belongs to a seed (0 to 2**63 - 1), the same on every machine."""
    order = _native.permute(0, len(paths), len(paths), seed, 0)
    return [paths[at] for at in order.tolist()]


@dataclasses.dataclass(frozen=True, slots=True)
class PipelineConfig:
    """The section ``data`` of ``ilsvrc.json``; None for keys that are absent."""

    where: Location  # the file
    handler: str | None = None  # name of the module that reads the data
    train_filelist: Location | None = None
    test_filelist: Location | None = None
    batch_size: int | None = None
    shuffle_buffer: int | None = None  # images from which the next one is chosen at random; 0 to keep the order
    reshuffle_each_iteration: bool | None = None
    num_parallel_readers: int | None = None
    prefetch_buffer_size: int | None = None  # batches to prepare ahead
    crop_image_size: tuple[int, int] | None = None  # height and width of the images that leave the pipeline
    num_classes: int | None = None
    num_channels: int | None = None

    def lists(self) -> dict[Location, str]:
        """Return the split of each list."""
        named = ((self.train_filelist, "train"), (self.test_filelist, "test"))
        lists = {path: split for path, split in named if path is not None}
        if not lists:
            raise ConfigError(f"{self.where} names neither train_filelist nor test_filelist in its section data")
        if self.train_filelist == self.test_filelist:
            raise ConfigError(f"{self.where} names {self.train_filelist} as train_filelist and as test_filelist")
        return lists


def _is_path(value: Any) -> bool:
    try:
        return bool(value) and b"\0" not in os.fsencode(value)
    except (TypeError, UnicodeEncodeError):  # JSON may have half of a surrogate pair, which no path has
        return False


def _are_sides(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(type(side) is int and side >= 1 for side in value)


_LIST = (_is_path, "the path or URL of a list of files")
_COUNT = (lambda value: type(value) is int and value >= 1, "a whole number of at least 1")
_COUNT_OR_0 = (lambda value: type(value) is int and value >= 0, "a whole number of at least 0")
_KEYS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "handler": (lambda value: isinstance(value, str), "a string"),
    "train_filelist": _LIST,
    "test_filelist": _LIST,
    "batch_size": _COUNT,
    "shuffle_buffer": _COUNT_OR_0,
    "reshuffle_each_iteration": (lambda value: isinstance(value, bool), "true or false"),
    "num_parallel_readers": _COUNT_OR_0,
    "prefetch_buffer_size": _COUNT_OR_0,
    "crop_image_size": (_are_sides, "two whole numbers, height and width"),
    "num_classes": _COUNT,
    "num_channels": (lambda value: value == 3, "3: images are RGB"),
}
"""For each key, a check of its value, and what the value must be, in words."""
_OTHERS = 'a COCO file has a list "images", and a table with a JSON object on each line is called *.jsonl'
"""Other kinds of files called ``*.json`` that the user may have meant."""


def is_config(path: Location) -> bool:
    """Return whether a file is taken for a configuration, by its name."""
    return path.suffix.lower() == ".json"


def read_config(path: Location) -> PipelineConfig:
    """Read a configuration. Paths in it are relative to its folder.

    Raises:
        ConfigError: A value has the wrong type or is out of range, or a key of the section has no effect.
        SourceError: It is not JSON, or has no section ``data``.
        OSError: It cannot be read.
    """
    if path.size() > _MAX_CONFIG_BYTES:
        message = f"{path} is larger than {_MAX_CONFIG_BYTES} bytes, so it is not a configuration"
        raise SourceError(f"{message}; {_OTHERS}", path=str(path))
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path} is not JSON: {error}", path=str(path)) from error
    section = document.get("data") if isinstance(document, dict) else None
    if not isinstance(section, dict):
        message = f'{path} has no section "data" with train_filelist and test_filelist'
        raise SourceError(f"{message}; {_OTHERS}", path=str(path))
    values: dict[str, Any] = {}
    for spelled, value in section.items():
        if (key := _SPELLINGS.get(spelled, spelled)) in _KEYS:
            holds, must = _KEYS[key]
            if not holds(value):
                raise ConfigError(f"{path}: data.{spelled} is {value!r}; it must be {must}")
            values[key] = tuple(value) if isinstance(value, list) else value
            if holds is _is_path:
                values[key] = path.beside(value)
    unknown = sorted(f"data.{key}" for key in section if _SPELLINGS.get(key, key) not in _KEYS)
    if unknown:
        message = f"{path}: {' and '.join(unknown)} {'has' if len(unknown) == 1 else 'have'} no effect; correct the"
        message += f" spelling or remove it; the keys of data that are read: {', '.join(sorted(_KEYS))}"
        raise ConfigError(message)
    return PipelineConfig(path, **values)


FILE_LISTS = Kind(
    name="file list, ilsvrc.json",
    claim=lambda look: look.path if look.is_file else None,
    list=_list,
    options=LABEL_OPTIONS | {"boxes", "validation_labels", "image_root"},
)
