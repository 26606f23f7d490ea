"""Tables of images: metadata files, as the library ``datasets`` reads them, and tables of any name beside images.

docs/reference/images.md says what is in metadata files. For other tables Stoker finds out which column names the
images, where these lie, and which columns have the classes. Such a table may omit the suffixes of the files, and name
images in a folder below. Kaggle's is called ``train.csv`` or ``labels.csv``; a ``test.csv`` beside it has the images of
that split. If the classes cannot be told, the table is refused, with the settings that name them.

A row whose image is missing is still an item, which a build reports as a reject. `stoker.sources.tables` finds out what
the columns are.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shlex
import unicodedata
from array import array
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker.config import format_count, format_some, option, option_with
from stoker.errors import ConfigError, SourceError
from stoker.sources.boxes import KAGGLE_BOXES, TINY_BOXES, TINY_LIST
from stoker.sources.files import in_order, sizes_of
from stoker.sources.labels import CLASS_LISTS, LABEL_LISTS, TEXT_LISTS, read_label_map
from stoker.sources.names import (
    MASK_WORDS,
    divide_suffix,
    find_moved,
    is_image_name,
    own_names,
    path_ends,
    path_parts,
    shown_names,
    split_of_folder,
    without_own,
)
from stoker.sources.options import SEPARATORS, SourceOptions
from stoker.sources.parquet_files import PARQUET_SUFFIX, holds_bytes
from stoker.sources.source import LABEL_OPTIONS, TABLE_OPTIONS, Kind, Source, SourceBuilder
from stoker.sources.split_lists import divide_by_lists
from stoker.sources.tables import (
    CAPTION,
    IMAGE_NAME,
    LABEL,
    LABEL_NAME,
    LOOKED_AT,
    TABLES,
    TEXTS,
    Classes,
    TableRows,
    check_columns,
    damaged,
    find_classes,
    find_classes_of,
    first_rows,
    is_text,
    table_rows,
    with_captions,
)
from stoker.sources.url_lists import claim_urls
from stoker.splits import ANY_SPLIT, SPLIT_FOLDERS, SPLIT_WORDS, are_splits, splits_among
from stoker.storage import Location, is_absolute, is_web, join, location

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stoker.sources.look import FolderContents, Look


FILE_NAME = "file_name"
"""The column of the images of metadata files."""

_SHEETS = (".xls", ".xlsx", ".ods")
_PACKED = tuple(table + packed for table in (".csv", ".tsv", ".jsonl") for packed in (".gz", ".bz2", ".xz", ".zip"))
_OTHER_TABLES = {*LABEL_LISTS, *TEXT_LISTS, *CLASS_LISTS, TINY_LIST}
_OTHER_TABLES |= {KAGGLE_BOXES, "imagenet_2012_bounding_boxes.csv"}
_SPLIT_COLUMNS = ("split", "subset", "set", "partition", "phase", "data_set", "dataset")
_CORNERS = (
    {"xmin", "ymin", "xmax", "ymax"},
    {"x", "y", "width", "height"},
    {"x_1", "y_1", "width", "height"},
    {"region_shape_attributes"},
)
_BOX = "bbox"
_RUN_LENGTHS = re.compile(r"(.+[_ ])?(encoded[_ ]?pixels|rle)([_ ].+)?", re.IGNORECASE)
_HEADLESS, _NUMBER = re.compile("column_[0-9]+"), re.compile(r"([0-9]+\.?[0-9]*)?")
_SPLIT_FLAG = re.compile(rf"(is|in)[_ ]?({ANY_SPLIT})([_ ].*)?", re.IGNORECASE)
"""Names of columns of 0 and 1 that say the split."""
_NO_CLASSES = "or a pattern such as '*.jpg' to read no classes"
_MASKS = re.compile(MASK_WORDS, re.IGNORECASE)
_FEW, _SOME, _LONGEST_CELL = 4, 16, 40

_NAMES = ("metadata.csv", "metadata.tsv", "metadata.jsonl", "metadata.parquet")
_REPORT_EVERY, _HEAD_BYTES = 1024, 2**16


@dataclasses.dataclass(frozen=True, slots=True)
class ImageTable:
    """A table of images."""

    path: Location  # where it lies
    folder: bytes  # folder of its images below the source: empty, or ending in a slash
    split: str | None  # the split of its images; None if their paths or a column say it
    image: str = FILE_NAME  # the column with the names of the images
    ending: str = ""  # suffix of the files that their names in the table lack
    classes: Classes | None = None  # the columns of the classes; None: as in metadata files
    split_column: str | None = None  # the column of the splits
    is_found: bool = False  # whether images may lie in any folder, and rows may lack values; not in metadata files
    notes: tuple[str, ...] = ()  # warnings that say which columns were chosen
    named: str = "train"  # the split in its name, if nothing else says one


@dataclasses.dataclass(frozen=True, slots=True)
class _Seen:
    """What was found out about images from the first rows of a table."""

    path: Location  # the table
    rows: Sequence[dict[str, Any]]  # its first rows
    hits: int  # how many of the first few of them name a file
    image: str  # the column with the names of files
    top: Location  # folder of the images
    ending: str  # see `ImageTable`

    @property
    def is_text(self) -> bool:
        return is_text(self.path)

    @property
    def words(self) -> tuple[bytes, ...]:
        return tuple(word for word in _words_of(self.path) if word not in SPLIT_FOLDERS)

    @property
    def split(self) -> str | None:
        return split_in_name(self.path)

    @property
    def says_nothing(self) -> bool:
        """Whether it has only names of images, perhaps with their numbers."""
        first, *others = self.rows[0]
        numbers = [str(row.get(first)) for row in self.rows]
        return not others or (
            others == [self.image] and numbers in [[*map(str, range(at, at + len(numbers)))] for at in (0, 1)]
        )

    @property
    def rank(self) -> tuple[bool, bool, int, int]:
        """Sort key of tables: the best has a column `LABEL`, then more columns, then more distinct values."""
        values = {name: len({str(row.get(name)) for row in self.rows}) for name in self.rows[0] if name != self.image}
        return self.hits > 0, LABEL in values, len(values), max(values.values(), default=0)

    @property
    def images(self) -> set[str]:
        return {str(row.get(self.image)) for row in self.rows}

    @property
    def are_boxes(self) -> bool:
        """Whether rows seem to be boxes: by names of columns, or without these by four numbers and repeated images."""
        names = [name for name in self.rows[0] if name != self.image]
        texts = {name: [str(row.get(name)).strip() for row in self.rows] for name in names if _HEADLESS.fullmatch(name)}
        numbers = [name for name, cells in texts.items() if all(map(_NUMBER.fullmatch, cells)) and any(cells)]
        repeats = len(self.images) < len(self.rows)
        lower = {*map(str.lower, names)}
        return any(lower >= corners for corners in _CORNERS) or (repeats and (len(numbers) == 4 or _BOX in lower))


def _words_of(path: Location) -> list[bytes]:
    return [*map(str.encode, path.name.removesuffix(path.suffix).lower().replace("-", "_").split("_"))]


def split_in_name(path: Location) -> str | None:
    """Return the split in the name of a table or a list; None without one."""
    return next((SPLIT_FOLDERS[word] for word in _words_of(path) if word in SPLIT_FOLDERS), None)


def split_alone(path: Location, warnings: list[str]) -> str:
    """Return the split of a table or a list that is the only one: train, unless it is named after another split.

    ``val`` and ``test`` count as any word of its name, ``valid`` and ``dev`` only as the whole name: ``valid_images``
    may be the images that are not damaged.
    """
    words, split = _words_of(path), split_in_name(path)
    if split in (None, "train") or (len(words) > 1 and {b"valid", b"dev"}.issuperset(SPLIT_FOLDERS.keys() & words)):
        return "train"
    warnings.append(f"{path} is the split {split}, by its name")
    return split


def image_base(look: Look) -> Location:
    """Return the folder that names of images are relative to."""
    given = look.options.image_root
    if given is None:
        return look.path.parent if look.layout is None else look.layout.base
    root = location(given)
    if not root.is_dir():
        inside = look.path / given
        hint = f"; give {inside}" if look.layout is not None and inside.is_dir() else ""
        raise SourceError(f"{option('image_root')} {given} is not a folder{hint}", path=given)
    return root.resolve()


def is_submission(name: str) -> bool:
    """Return whether a table is a sample of what competitors submit, by a name such as ``sample_submission.csv``."""
    return "submission" in name.lower()


def find_tables(
    look: Look, base: Location, files: Iterable[Location], folders: Sequence[Location] = ()
) -> list[ImageTable]:
    """Return the tables among some files whose rows name images below a folder: one, or one for each split.

    The images may lie in ``folders``. Default: the first ones.
    """
    options = look.options
    others = filter(None, (options.labels, options.class_names, options.validation_labels, options.boxes))
    read_apart = {location(name).absolute() for name in others}
    files = [file for file in files if file.absolute() not in read_apart]
    best, seen = _tables_that_name(look, base, files, folders)
    if best is None:
        return []
    warnings: list[str] = []
    split_column, classes = _columns_of(look, base, best, warnings)
    by_split: dict[str, list[_Seen]] = {}
    for table in seen if best.split else ():
        if table.split not in (None, best.split):
            by_split.setdefault(table.split, []).append(table)
    # If a split has several tables, such as folds, the one whose name is like the best table's counts.
    of_splits = [[table for table in own if table.words == best.words] or own for own in by_split.values()]
    chosen = [best, *(own[0] for own in of_splits if len(own) == 1 and own[0].image == best.image)]
    if split_column is not None:
        chosen = [best]
    if unread := [table.path.name for table in seen if not (table in chosen or table.says_nothing)]:
        warnings.append(f"not read, though they name the images: {shown_names(unread)}")
    named = split_alone(best.path, warnings) if len(chosen) == 1 and split_column is None else "train"
    return [
        ImageTable(
            table.path,
            os.fsencode("".join(part + "/" for part in table.top.parts[len(base.parts) :])),
            table.split if len(chosen) > 1 else None,
            table.image,
            table.ending,
            classes,
            split_column,
            is_found=True,
            notes=tuple(warnings),
            named=named,
        )
        for table in chosen
    ]


def _tables_that_name(
    look: Look, base: Location, files: Iterable[Location], folders: Sequence[Location]
) -> tuple[_Seen | None, list[_Seen]]:
    """Return the table that says most about the images, if any, and all tables that name images; see `find_tables`."""
    options = look.options
    tables = [file for file in files if file.suffix.lower() in (*TABLES, *TEXTS) and file.name not in _OTHER_TABLES]
    samples = [file for file in tables if is_submission(file.name) or TINY_BOXES in file.name.lower()]
    tables = sorted((file for file in tables if look.is_file or file not in samples), key=is_text)
    if not tables:
        return None, []
    tops = [*folders] or [base / name for name in look.look_into(base).folders[:_FEW]]
    tops += [top / name for top in tops for name in look.look_into(top).folders[:_FEW]]
    tops = [top for top in tops if not _MASKS.fullmatch(top.name)]
    known = {top: look.look_into(top) for top in dict.fromkeys((base, *tops))}
    tables = _without_texts_of_images(tables, known)
    rows = {path: first for path in tables if (first := _rows_of(path, options))}
    seen = [table for path in rows if (table := _look_at(look, base, path, rows[path], known)) is not None]
    tabled = {path: first for path, first in rows.items() if not is_text(path)}
    is_told = not TABLE_OPTIONS.isdisjoint(options.given())
    is_told = is_told or (bool(tabled) and _names_lost_images(tabled) and (look.is_file or not tops))
    if tabled and not seen and is_told and not look.once(claim_urls):
        if (wanted := options.image_column) is not None and not any(wanted in first[0] for first in tabled.values()):
            path, first = next(iter(tabled.items()))
            check_columns(path, [wanted], [*first[0]])
        headers = "; ".join(
            f"{path} has the columns {format_some([*first[0]], _FEW)}; its first row is"
            f" {format_some([str(value)[:_LONGEST_CELL] for value in first[0].values()], _FEW)}"
            for path, first in islice(tabled.items(), 2)
        )
        message = f"no column of a table names images below {base}: {headers}; give {option('image_column')} and"
        message += f" {option('image_root')}" + ("" if look.is_file else f", {_NO_CLASSES}")
        raise SourceError(message, path=look.root)
    unread = next((path for path in rows if _mentions(path, rows[path], known)), None)
    if unread is not None and not seen and not look.is_file and options.image_column is None:
        message = f"{unread} names the images, and is no table that can be read; write the name of an image, a tab and"
        raise SourceError(f"{message} its class on each line, {_NO_CLASSES}", path=look.root)
    texts = [table for table in seen if table.is_text and len(table.rows[0]) > 1]
    seen = [table for table in seen if not table.is_text] or texts
    if len({table.words for table in seen if table.is_text}) > 1:
        names = shown_names([table.path.name for table in seen])
        few = min(seen, key=lambda table: (len(table.rows[0]), table.split not in (None, "train")))
        message = f"several texts in {base} name the images ({names}); give the one that has the classes, such as"
        raise SourceError(f"{message} {few.path}, {_NO_CLASSES}", path=look.root)
    best = max(seen, key=lambda table: table.rank, default=None)
    if best is not None and best.are_boxes:
        others = [table for table in seen if not table.are_boxes and len(table.images) >= len(best.images)]
        best = max(others, key=lambda table: table.rank, default=best)
    return None if best is None or best.says_nothing else best, seen


def _rows_of(path: Location, options: SourceOptions) -> list[dict[str, Any]]:
    """Return the first rows of a possible table; none of Parquet with images, which would all be read."""
    with contextlib.suppress(SourceError, ConfigError):
        if path.suffix == PARQUET_SUFFIX and holds_bytes(path):
            return []
    return first_rows(path, options)


def is_table(path: Location) -> bool:
    """Return whether a file is a table by its name, and has no other use."""
    is_called = path.name.lower().endswith((*TABLES, *_SHEETS, *_PACKED))
    return is_called and path.name not in _OTHER_TABLES and not is_submission(path.name)


def why_no_images(look: Look, path: Location, folder: Location) -> str:
    """Return why a table names no image in a folder, and what to do; empty if it does, or is not a table."""
    is_sheet, is_packed = (path.name.lower().endswith(ends) for ends in (_SHEETS, _PACKED))
    if is_sheet or is_packed or not is_table(path):
        how = "save it as CSV in UTF-8" if is_sheet else "unpack it"
        return f"{path} is not read; {how}" if is_sheet or is_packed else ""
    files = look.look_into(folder).files
    image = next((name for name in files if is_image_name(os.fsencode(name))), ".jpg")
    otherwise = f"or give {str(folder / ('*' + image[image.rindex('.') :]))!r} to read no classes"
    try:
        rows = [row for _, row in islice(table_rows(path, look.options.separator), LOOKED_AT)]
    except SourceError as error:
        data = path.read_head(_HEAD_BYTES)
        if any(os.fsencode(name) in data for name in files):
            raise SourceError(f"{error}; mend the table, {otherwise}", path=look.root) from error
        return f"{path} is not read: {error}"
    if not rows:
        return f"{path} has no rows"
    stems = {name.rpartition(".")[0] for name in files}
    name = next(filter(None, rows[0]), "")
    cells = [str(row.get(name)) for row in rows]
    if not {*files, *stems}.isdisjoint(map(str, rows[0].values())):
        return ""
    for cell in filter(str.isprintable, map(str, rows[0].values())):
        named = cell.rpartition("/")[2]
        stem = named.rpartition(".")[0]
        if stem in stems and named not in files and is_image_name(os.fsencode(cell)):
            file = next(file for file in files if file.rpartition(".")[0] == stem)
            message = f"{path} names {cell}, and the file is {file}; write the names of the files into it, {otherwise}"
            raise SourceError(message, path=look.root)
    message = f"the first row of {path} names no image there: its {name!r} is {cells[0][:_LONGEST_CELL]!r}"
    message += f", and the first file is {files[0]}" if files else ""
    width, head = len(max(stems, key=len, default="")), path.read_head(_LONGEST_CELL).decode("utf-8", "replace")
    between = head[len(name) : len(name) + 1]
    if all(cell.isdecimal() and cell.zfill(width) in stems for cell in cells[:_FEW]):
        message += f"; {name!r} may have the numbers of their names without the zeros in front"
        if path.is_local and head.startswith(name) and between in SEPARATORS:
            where, by = shlex.quote(str(path)), shlex.quote(between)
            row = f"'NR > 1 {{$1 = sprintf(\"%0{width}d\", $1)}} 1'"
            return f"{message}, so type: awk -F{by} -v OFS={by} {row} {where} > {where}.new && mv {where}.new {where}"
    return f"{message}; write the names of the files into it"


def _names_lost_images(tabled: Mapping[Location, Sequence[dict[str, Any]]]) -> bool:
    """Return whether the first table has names of images and a header, so that it is not a list of labels."""
    rows = next(iter(tabled.values()))
    cells = [os.fsencode(cell) for cell in map(str, rows[0].values()) if cell.isprintable()]
    return (
        any(is_image_name(cell) and not is_web(cell) for cell in cells)
        and len(rows[0]) > 1
        and not any(map(_HEADLESS.fullmatch, rows[0]))
    )


def _without_texts_of_images(tables: Iterable[Location], known: Mapping[Location, FolderContents]) -> list[Location]:
    """Return the tables without texts named like an image, which have its boxes or its caption."""
    images = {name.rpartition(".")[0] for own in known.values() for name in own.files if not name.endswith(TEXTS)}

    def is_of_image(path: Location) -> bool:
        stem, end = path.name.removesuffix(path.suffix), known[path.parent].ending if path.parent in known else ""
        has_image = end != path.suffix and (path.parent / (stem + end)).is_file()
        return is_text(path) and (stem in images or has_image)

    return [*islice((path for path in tables if not is_of_image(path)), _SOME)]


def _mentions(path: Location, rows: Sequence[dict[str, Any]], known: Mapping[Location, FolderContents]) -> bool:
    """Return whether most of the first rows of a text contain the name of an image among other words."""
    images = {name for own in known.values() for name in own.files if is_image_name(os.fsencode(name))}
    words = [{*re.split(r"[^\w.-]+", " ".join(map(str, row.values())))} for row in rows[:_FEW]]
    count = sum(not images.isdisjoint(each) for each in words)
    return is_text(path) and len(rows[0]) > 1 and 2 * count > len(words)


def check_against_folders(
    look: Look, base: Location, files: Iterable[Location], folders: Sequence[Location], words: Mapping[str, str]
) -> list[str]:
    """Warn of a table beside folders that seem to be the classes; refuse a table with other classes.

    See `find_tables`; ``words`` has, for each of the folders, the part of its name that may be the class.
    """
    tops = [*dict.fromkeys(folder.parent for folder in folders), *folders]
    best, _ = _tables_that_name(look, base, [file for file in files if not is_text(file)], tops)
    held = {(folder.name, name) for folder in folders for name in look.look_into(folder).files}
    names = {name for _, name in held}
    is_spread = best is None
    for path in filter(is_table, files if is_spread else ()):  # bare names may be spread over all classes
        first = _rows_of(path, look.options)
        for name in first[0] if first else ():
            hits = sum(str(row.get(name)) in names for row in first)
            best = _Seen(path, first, hits, name, base, "") if _SOME * hits >= len(first) else best
    if best is None:
        return []
    cells = [str(row.get(best.image)) + best.ending for row in best.rows]
    known = [words.keys() & cell.split("/") or {own for own in words if (own, cell) in held} or words for cell in cells]
    of_rows = [{*names, *map(words.__getitem__, names)} for names in known]
    rows = list(zip(cells, best.rows, of_rows, strict=True))
    agree = {name for name in best.rows[0] if all(str(row.get(name)) in of for _, row, of in rows)}
    unread = f"not read: {best.path}, which names the images; the classes are their folders"
    try:
        split_column, classes = _columns_of(look, base, best, [])
    except SourceError:
        if not agree:
            raise
        return [unread]
    is_near = look.layout is not None and best.path.parent in look.layout.tops
    typed = "write the paths of the images below the folder into it, and " if is_spread else ""
    typed += f"give {look.root if is_near else best.path} with {option_with('label_column', ','.join(classes.columns))}"
    typed += "" if is_near else f" {option_with('image_root', str(best.top))}"
    if not agree.issuperset(classes.columns):
        other = next((cell for cell, row, of in rows if str(row.get(classes.columns[0])) not in of), cells[0])
        message = f"{best.path} names the images, and the classes may be its"
        message += f" {format_some(classes.columns, _FEW, repr)}, or the folders, such as that of {other}"
        raise SourceError(f"{message}; {typed}", path=look.root)
    others = [name for name in best.rows[0] if name not in (best.image, "", *agree)]
    if classes.columns:
        unread += f"; to have {format_some(others, _FEW, repr)}, too, {typed}"
    elif split_column is not None:
        unread += f"; to have the splits of {split_column!r}, write train.txt, val.txt and test.txt, a path a line"
    return [unread] if others else []


def find_tables_of_splits(look: Look) -> list[ImageTable]:
    """Return the tables in folders of splits that hold images and no folders, at most one for each split."""
    if look.layout is None:
        return []
    base, tables = look.layout.base, list[ImageTable]()
    names = {name for name in map(os.fsencode, look.look_into(base).folders) if name in SPLIT_FOLDERS}
    for name, split in splits_among(names).items():
        top = base / os.fsdecode(name)
        if look.look_into(top).folders:
            return []
        files = [top / os.fsdecode(child.name) for child in top.some_children() if child.is_file]
        tables += [dataclasses.replace(table, split=split) for table in find_tables(look, base, files, [top])[:1]]
    return tables


def _look_at(
    look: Look,
    base: Location,
    path: Location,
    rows: Sequence[dict[str, Any]],
    known: Mapping[Location, FolderContents],
) -> _Seen | None:
    """Return what the first rows of a table say about images; None if they name no images."""
    wanted = look.options.image_column
    if wanted is not None and wanted not in rows[0]:
        return None
    others = {*(look.options.label_column or ()), look.options.split_column, ""}
    usable = [name for name in rows[0] if name not in others and not LABEL_NAME.fullmatch(name)][:_SOME]
    names = usable if wanted is None else [wanted]
    if not names:
        return None
    own = own_names(base)
    # Classes may have the names of some images without their suffixes.
    repeated = {name for name in names if wanted is None and 2 * len({str(row.get(name)) for row in rows}) <= len(rows)}
    alike = {top: {*map(_folded, own.files)} for top, own in known.items()}

    def hits(key: tuple[str, Location, str]) -> int:
        column, top, end = key
        cells = [str(row.get(column)) + end for row in rows[:_FEW]]
        if end and column in repeated and all(cell.removesuffix(end).isdecimal() for cell in cells):
            return 0
        encoded = [without_own(os.fsencode(cell), own) for cell in cells if cell.isprintable()]
        ends = [[*map(os.fsdecode, path_ends(cell)), *[os.fsdecode(cell)] * is_absolute(cell)] for cell in encoded]
        return sum(any(_folded(name) in alike[top] or (top / name).is_file() for name in names) for names in ends)

    ends = sorted({pair for top, own in known.items() for pair in ((top, ""), (top, own.ending), (base, own.ending))})
    keys = [(name, top, end) for name in names for top, end in ends]
    counts = dict(zip(keys, in_order(hits, keys, look.path.requests_at_once), strict=True))
    stem = path.name.removesuffix(path.suffix).lower()

    def fits(key: tuple[str, Location, str]) -> tuple[int, int, bool, int, bool, bool]:
        column, top, end = key
        inside = top.name.lower()
        is_of_split = inside.startswith("train") != stem.startswith("test")
        likely = 0 if end and column in repeated else counts[key]
        return likely, counts[key], not end, -names.index(column), inside == stem, is_of_split

    image, top, end = max(keys, key=fits)
    count = counts[image, top, end]
    table = _Seen(path, rows, count, image, top, end)
    least = len(rows[:_FEW]) * (2 if table.is_text else 1)
    return None if 2 * count < least and (wanted is None or count == 0) else table


def _columns_of(look: Look, base: Location, table: _Seen, warnings: list[str]) -> tuple[str | None, Classes]:
    """Return the column of the splits in a table of images, if any, and the columns of the classes."""
    options, names = look.options, [name for name in table.rows[0] if name != table.image]
    split_column = options.split_column
    if split_column is not None:
        check_columns(table.path, [split_column], names)
    else:
        split_column = next(
            (name for name in names if name.lower() in _SPLIT_COLUMNS and _are_splits(table.rows, name)), None
        )
    if options.label_column is None and table.are_boxes:
        message = f"the rows of {table.path} are boxes, several of which may belong to one image; write them as COCO"
        message += f", YOLO or Pascal VOC, or give {option_with('label_column', 'none')} to read each row as an image"
        raise SourceError(message, path=str(table.path))
    if split_column is None and options.columns is None:
        warn_of_splits(
            table.path, table.rows, [name for name in names if name not in (options.label_column or ())], warnings
        )
    runs = [name for name in names if _RUN_LENGTHS.fullmatch(name) and name not in (options.label_column or ())]
    if runs and options.columns is None:
        message = f"{table.path}: {runs[0]!r} seems to have masks as run lengths, and is a field of text; to read them,"
        warnings.append(f"{message} write each as PNG into a folder masks/ beside the folder of the images")
    others = (split_column, *runs)
    rows = [{name: row[name] for name in names if name in row and name not in others} for row in table.rows]
    classes = _captions(table, names, warnings) if options.label_column is None else None
    classes = classes or find_classes(table.path, rows, options, warnings, alone=True)
    if classes is None:
        guesses = [name for name in rows[0] if LABEL_NAME.fullmatch(name)]
        guesses += [name for name in rows[0] if 1 < len({str(row.get(name)) for row in rows}) < len(rows) // 2]
        typed = f"{option_with('image_column', table.image)} {option_with('label_column', (guesses or names)[0])}"
        message = f"the rows of {table.path} name the images, and several columns may have the classes"
        message += f" ({format_some([*filter(None, rows[0])], _FEW)}); for example, give {typed}, or"
        raise SourceError(f"{message} {option_with('label_column', 'none')} to read no classes", path=str(table.path))
    inside = f"in {table.top.name}/" if table.top != base else "beside it"
    are_several = table.top.parent != base and len(look.look_into(table.top.parent).folders) > 1
    if table.top != base and (are_several or table.hits < len(table.rows[:_FEW])):
        inside = f"some {inside}"
    note = f"{table.path}: the images are {table.image!r}, {inside}" + f", with {table.ending} added" * bool(
        table.ending
    )
    note += f"; the splits are {split_column!r}" if split_column is not None else ""
    if classes.form == "one":
        note += f"; the classes are {classes.columns[0]!r}" if classes.columns else "; there are no classes"
    if options.image_column is None or options.label_column is None:
        warnings.insert(0, note)
    return split_column, classes


def _captions(table: _Seen, names: Sequence[str], warnings: list[str]) -> Classes | None:
    """Return the column of captions, if images have several captions and all other columns only number them."""
    captions = [name for name in names if CAPTION.fullmatch(name)]
    images = {str(row.get(table.image)) for row in table.rows}
    numbers = [name for name in names if all(str(row.get(name)).strip().isdecimal() for row in table.rows)]
    if len(captions) != 1 or len(images) == len(table.rows) or {*names} != {*captions, *numbers}:
        return None
    warnings.append(f"{table.path}: {captions[0]!r} has several captions of an image, as the field 'captions'")
    return Classes((captions[0],), "captions")


def split_of_cell(cell: Any, column: str) -> str | None:
    """Return the split in a cell; None without one. A row with a 0 in ``is_test`` or the like is train."""
    text, flag = str(cell).strip().lower(), _SPLIT_FLAG.fullmatch(column)
    split = "train" if flag is None else SPLIT_WORDS[flag[2].lower()]
    if split != "train" and text in ("0", "1", "false", "true"):
        return split if text in ("1", "true") else "train"
    return SPLIT_WORDS.get(text)


def warn_of_splits(
    path: Location, rows: Sequence[Mapping[str, Any]], names: Iterable[str], warnings: list[str]
) -> None:
    """Warn of the first column that may say the splits, if no column was found to do so."""
    flag = next((name for name in names if _may_be_splits(rows, name)), None)
    if flag is not None:
        message, typed = f"{path}: {flag!r} may say the splits, and is a field; to have these,", flag
        if not _are_splits(rows, flag):
            others = sorted({str(row.get(flag)) for row in rows if split_of_cell(row.get(flag), flag) is None})
            message += f" write train, val or test into a column, in place of {format_some(others, _FEW, repr)}, and"
            typed = "COLUMN"
        warnings.append(f"{message} give {option_with('split_column', typed)}")


def _may_be_splits(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    values = {str(row.get(name)).strip().lower() for row in rows}
    is_called = _SPLIT_FLAG.fullmatch(name) is not None or name.lower() in (*_SPLIT_COLUMNS, "usage")
    others = values - SPLIT_WORDS.keys()
    has_several = len({*map(SPLIT_WORDS.get, values - others)}) > 1
    return has_several or (is_called and bool(others) and (others < values or others <= {*"012", "true", "false"}))


def _are_splits(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    return all(split_of_cell(row.get(name), name) is not None for row in rows)


def find_metadata(look: Look) -> list[ImageTable]:
    """Return the metadata files of a folder, or of its folders of splits; none for any other path."""
    if look.layout is None:
        return []
    base = look.layout.base
    splits = splits_among(look.folders_in(base.to_uri()))
    folders: dict[bytes, str | None] = {b"": None, **{name + b"/": split for name, split in splits.items()}}
    tables = [
        ImageTable(base / (os.fsdecode(folder) + name), folder, split)
        for folder, split in folders.items()
        for name in _NAMES
    ]
    are_there = in_order(lambda table: table.path.is_file(), tables, base.requests_at_once)
    return [table for table, is_there in zip(tables, are_there, strict=True) if is_there]


def why_unused(table: ImageTable) -> str:
    """Return why a metadata file cannot be used, by its first row; empty if it can."""
    with contextlib.closing(table_rows(table.path)) as rows:
        try:
            _, row = next(rows, (0, {}))
        except SourceError as error:
            return str(error)
    return "" if FILE_NAME in row else "its first row has no file_name"


def _claim(look: Look) -> list[ImageTable]:
    """Return the metadata files of a folder; none if one names no files and there are class folders.

    If the user says what the columns of a table are, a table of any name counts.
    """
    tables = look.once(find_metadata)
    given = TABLE_OPTIONS.intersection(look.options.given())
    if given and (look.is_file or {"image_column", "split_column"} & given or not tables):
        files = [look.path] if look.is_file else []
        if look.layout is not None:
            files = look.files_near(look.layout.base)
        return find_tables(look, image_base(look), files) or look.once(find_tables_of_splits)
    if not tables:
        return look.once(find_tables_of_splits)
    return tables if not any(map(why_unused, tables)) or not look.holds_folders else []


def list_tables(look: Look, tables: Sequence[ImageTable]) -> Source:
    """List the images that tables name."""
    base = image_base(look)
    if not tables[0].is_found:
        _check_tables(look, base, tables)
    builder = SourceBuilder(look, base, (base,))
    builder.takes_root = True
    images = _Images(builder, tables)
    images.read()
    images.collect()
    cells = images.rows.finish(builder)
    if tables[0].is_found:
        divide_by_lists(builder, look, [table.path for table in tables])
    return builder.finish_in(cells=cells)


def _check_tables(look: Look, base: Location, tables: Sequence[ImageTable]) -> None:
    """Refuse two tables of one split, tables of different suffixes, and splits without a table."""
    by_split = {table.split: table for table in tables}
    differ = len({table.path.suffix for table in tables}) > 1
    if differ or len(by_split) < len(tables) or (None in by_split and len(by_split) > 1):
        shown = " and ".join(str(table.path) for table in tables)
        message = f"{look.root} has metadata files that do not go together: {shown}; keep one"
        raise SourceError(f"{message}, or one like it in each split", path=look.root)
    if None in by_split:
        return
    splits = splits_among(look.folders_in(base.to_uri()))
    lacking = [name for name, split in splits.items() if split not in by_split]
    if lacking:
        folder = base / os.fsdecode(lacking[0])
        message = f"{tables[0].path} has the images of its split, but {folder} holds none of {', '.join(_NAMES)}"
        raise SourceError(f"{message}; write one there, or move the folder out of {look.root}", path=str(folder))


class _Images:
    """The rows of all tables."""

    def __init__(self, builder: SourceBuilder, tables: Sequence[ImageTable]) -> None:
        self._builder = builder
        self._tables = tables
        first, options = tables[0], builder.options
        builder.warnings += first.notes
        paths = [table.path for table in tables]
        self._classes = first.classes or find_classes_of(paths, FILE_NAME, options, builder.warnings)
        self._is_found = first.is_found
        if not first.is_found and first.split is None and options.columns is None:
            known = first_rows(first.path, options)
            warn_of_splits(first.path, known, [*known[0]] if known else (), builder.warnings)
        self.rows = TableRows(
            first.path,
            self._classes,
            without={first.image, first.split_column or first.image},
            only=options.columns,
            has_files=True,
        )
        self._paths: list[bytes] = []
        self._table_of = array("i")
        self._splits: list[str] = []  # of each row, if a column says it
        self._label_of = array("i")
        self._class_of: Sequence[bytes | None] = ()
        self._own = own_names(builder.folder)
        self._used = array("q")  # hashes of the paths of all images and masks

    def read(self) -> None:
        for number, table in enumerate(self._tables):
            known, columns = set(self.rows.columns), set[str]()
            before = len(self._paths)
            rows: Iterable[tuple[int, dict[str, Any]]] = table_rows(table.path, self._builder.options.separator)
            if self._classes.form == "captions":
                rows = with_captions(rows, table.image, self._classes.columns[0])
            for line, row in rows:
                self._add(table, line, row)
                self._table_of.append(number)
                columns.update(row)
                if self._builder.progress is not None and len(self._paths) % _REPORT_EVERY == 0:
                    self._builder.progress(done=len(self._paths), total=0, size_bytes=0, rejects=0)
            if len(self._paths) == before:
                raise SourceError(f"{table.path} has no rows; write one for each image", path=str(table.path))
            differing = sorted((known ^ columns) - {FILE_NAME, *self._classes.columns}) if number else []
            if differing and not table.is_found:
                lacking = table if differing[0] in known else self._tables[0]
                message = f"{lacking.path} has no column {differing[0]!r}, which the table of another split has"
                raise SourceError(f"{message}; give every split the same columns", path=str(lacking.path))

    def _add(self, table: ImageTable, line: int, row: dict[str, Any]) -> None:
        if table.image not in row:
            columns = format_some(list(row), 10, repr) or "none"
            raise damaged(table.path, line, f"there is no column {table.image!r}, but {columns}")
        name = row[table.image]
        if table.is_found and isinstance(name, int):
            name = str(name)
        if not isinstance(name, str) or not name:
            raise damaged(table.path, line, f"{table.image} is empty; give the path of an image")
        path = _below(table, line, name)
        path = without_own(path, self._own) if table.is_found else path
        self._paths.append(path)
        self._used.append(hash(path))
        if table.split_column is not None:
            split = split_of_cell(cell := row.get(table.split_column), table.split_column)
            if split is None:
                raise damaged(table.path, line, f"{table.split_column} is {cell!r}; it must be train, val or test")
            self._splits.append(split)
        self._label_of.append(self.rows.take_label(table.path, line, row))
        for name, value in row.items():
            if name == table.image:
                continue
            if name.endswith(IMAGE_NAME) and isinstance(value, str) and value:
                row[name] = os.fsdecode(_below(table, line, value))
                self._used.append(hash(os.fsencode(row[name])))
        self.rows.add(row)

    def collect(self) -> None:
        """Add the images to the builder, with their splits, classes and sizes; warn of files that are not used."""
        folders = [b""] if self._is_found else [table.folder for table in self._tables]
        sizes = self._builder.sizes_in(folders)
        ignored = self._builder.skipped.ignored
        ignored -= Counter(table.path.suffix for table in self._tables)  # drops counts below 1
        base = self._builder.base + b"/"
        uris = (join(table.path.parent.to_uri(), os.fsencode(table.path.name)) for table in self._tables)
        tables = {uri.removeprefix(base) for uri in uris}
        self._find_moved(sizes)
        if self._is_found:
            self._find_files(sizes)
        named = set(self._paths)
        unlisted = [path for path in named if path not in sizes or path in tables]
        others = sorted(sizes.keys() - tables)
        hashes = np.fromiter(map(hash, others), np.int64, len(others))
        unused = np.flatnonzero(~np.isin(hashes, np.frombuffer(self._used, np.int64)))
        sizes |= sizes_of(self._builder.base, unlisted)
        self._add_items(sizes)
        rest = [others[at] for at in unused.tolist()]
        self._warn(self._add_tests(rest, sizes) if self._is_found else rest, repeated=len(self._paths) - len(named))

    def _add_items(self, sizes: Mapping[bytes, int]) -> None:
        table = self._tables[0].path
        names = self._class_of = self.rows.class_names(self._builder.warnings)
        folders = {_first_folder(path, prefix) for _, path, prefix in self._placed()}
        are_classes = b"" not in folders and len(folders) > 1
        by_folder = are_classes and not self.rows.have_labels and not self._is_found and self._classes.field is None
        collector = self._builder.collector
        differ = False
        is_guessed = are_classes and not self._is_found and self._builder.options.label_column is None
        for label, (split, path, prefix) in zip(self._label_of, self._placed(), strict=True):
            folder = _first_folder(path, prefix)
            name = folder if by_folder else names[label] if label >= 0 else None
            differ |= name != folder
            if differ and is_guessed and self._classes.columns[:1] not in ((), (LABEL,)):
                column = self._classes.columns[0]
                message = f"{table}: the classes may be column {column!r} or the folders, such as that of"
                message += f" {os.fsdecode(path)}; give {option_with('label_column', column)}"
                message += f", or {option_with('label_column', 'none')} for the folders"
                raise SourceError(message, path=str(table))
            collector.add(collector.group(split, name, len(prefix)), path, sizes[path])
        self._builder.numbered = self.rows.are_ids
        if self._builder.numbered and self._is_found and self._builder.labels is None:
            self._name_label_map(table, max((int(name) for name in names if name is not None), default=0))
        message = f"the classes are the labels in {table}, not the folders in which the images lie"
        if by_folder:
            message = f"{table} has no column 'label': the classes are the folders of the images, as without it"
        if by_folder or (is_guessed and differ):
            self._builder.warnings.append(f"{message}: {shown_names(sorted(folders))}")

    def _name_label_map(self, table: Location, most: int) -> None:
        """Warn that a JSON file beside the table names all class ids up to ``most``, if it is the only one there."""
        names = {os.fsdecode(child.name) for child in table.parent.some_children() if child.name.endswith(b".json")}
        label_map = table.parent / min(names, default="")
        with contextlib.suppress(SourceError, ConfigError, PermissionError):
            is_map = len(names) == 1 and label_map.read_head(1) == b"{"
            if is_map and most < len(read_label_map(str(label_map)).names):
                message = f"{table}: {label_map.name} beside it names the class ids; to have these names give"
                self._builder.label_warnings.append(f"{message} {option_with('labels', str(label_map))}")

    def _placed(self) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield the split and the path of each image, and the folder of the split in that path, with a slash."""
        folders = {_first_folder(path) for path in self._paths}
        of_table = self._tables[0].split is not None or bool(self._splits)
        in_splits = not of_table and are_splits(folders, str(self._tables[0].path))
        for row, (number, path) in enumerate(zip(self._table_of, self._paths, strict=True)):
            table = self._tables[number]
            prefix = path[: path.index(b"/") + 1] if in_splits else b"" if self._is_found else table.folder
            split = table.split or (SPLIT_FOLDERS[prefix[:-1]] if prefix else table.named)
            yield self._splits[row] if self._splits else split, path, prefix

    def _find_moved(self, sizes: Mapping[bytes, int]) -> None:
        """Find the files for paths of another computer; a table in a folder names files below it."""
        missing = {path: table for path, table in zip(self._paths, self._table_of, strict=True) if path not in sizes}
        if not missing:
            return
        free = sizes.keys() - {*self._paths}
        folders = {path: self._tables[table].folder for path, table in missing.items()}
        names = {path.removeprefix(folder): path for path, folder in folders.items()}
        moved = find_moved(self._tables[0].path, names, free, self._builder.base, self._builder.warnings)
        files = {names[name]: file for name, file in moved.items()}
        self._paths = [files.get(path, path) for path in self._paths]
        self._used.extend(map(hash, moved.values()))

    def _find_files(self, sizes: Mapping[bytes, int]) -> None:
        """Find the file of each row: below the folder of its table, or else the only file of that name anywhere."""
        by_name: dict[str, list[bytes]] = {}
        if not all(map(sizes.__contains__, self._paths)):
            for path in sizes:
                name = _folded(path.rpartition(b"/")[2])
                for key in {name, divide_suffix(name)[0]}:
                    by_name.setdefault(key, []).append(path)
        other_case = []
        for row, (path, number) in enumerate(zip(self._paths, self._table_of, strict=True)):
            table = self._tables[number]
            if path in sizes:
                continue
            name = _folded(path.removeprefix(table.folder))
            alike = [each for each in by_name.get(name.rpartition("/")[2], ()) if _ends_with(_folded(each), name)]
            near = [each for each in alike if each.startswith(table.folder)] or alike
            if len(near) > 1:
                shown = " and ".join(map(os.fsdecode, near[:2]))
                message = f"{table.path}: {name!r} may be {shown}; name one of them, or give"
                raise SourceError(f"{message} {option('image_root')}", path=str(table.path))
            if near:
                exact = path.rpartition(b"/")[2] in near[0]
                other_case += [] if exact else near
                self._paths[row] = near[0]
                self._used.append(hash(near[0]))
            else:
                self._paths[row] = path + os.fsencode(table.ending)
        message = f"files whose names differ in case or Unicode form from the table's: {len(other_case):,}, {{names}}"
        self._builder.skipped.warn(other_case, message)

    def _add_tests(self, unused: Sequence[bytes], sizes: Mapping[bytes, int]) -> list[bytes]:
        """Add images that no row names if they lie in a folder of test images, as Kaggle's do; return the others."""
        folders = {_first_folder(path) for path in self._paths}
        tests = {
            folder
            for folder in map(_first_folder, unused)
            if split_of_folder(folder) == "test" and folder not in folders
        }
        collector = self._builder.collector
        if not tests or any(group.split == "test" for group in collector.groups):
            return list(unused)
        added = [path for path in unused if _first_folder(path) in tests]
        group = collector.group("test")
        for path in added:
            collector.add(group, path, sizes[path])
            self.rows.add_missing()
        message = "images of {names} that no row names are the split test, without labels: " + f"{len(added):,}"
        self._builder.skipped.warn(sorted(tests), message)
        return [path for path in unused if _first_folder(path) not in tests]

    def _warn(self, unused: Sequence[bytes], *, repeated: int) -> None:
        """Warn of files without a row, images with several rows, and rows without a label."""
        skipped = self._builder.skipped
        tables = " and ".join(str(table.path) for table in self._tables)
        skipped.warn(unused, f"no row of {tables} names these files: {{names}}", "not in the metadata")
        if repeated:
            message = f"images that a row names again: {repeated:,}; each row is an item of its own"
            images = len({*self._paths})
            leaks = len({(path, split) for split, path, _ in self._placed()}) - images
            several = len({*zip(self._paths, self._label_of, strict=True)}) - images
            message += f"; again in another split: {leaks:,}" if leaks else ""
            skipped.warnings.append(message + (f"; again with another label: {several:,}" if several else ""))
        is_test = [table.split == "test" for table in self._tables]
        unlabelled = sum(
            (label < 0 or self._class_of[label] is None) and not is_test[table]
            for label, table in zip(self._label_of, self._table_of, strict=True)
        )
        if self.rows.have_labels and unlabelled:
            skipped.warnings.append(f"{tables}: {format_count(unlabelled, 'row')} without a label")


def _below(table: ImageTable, line: int, name: str) -> bytes:
    try:
        path = os.fsencode(name)
    except UnicodeEncodeError as error:
        raise damaged(table.path, line, f"{name[:200]!r} cannot be the name of a file") from error
    if b"\0" in path:
        raise damaged(table.path, line, f"{name[:200]!r} has a NUL byte, so it is not a path")
    if is_web(path):
        message = f"{name[:200]!r} is the URL of a web server"
        raise damaged(table.path, line, f"{message}; give such images a list of their own, with a column 'url'")
    if is_absolute(path):
        return path
    return table.folder + b"/".join(path_parts(path))


def _first_folder(path: bytes, prefix: bytes = b"") -> bytes:
    if is_absolute(path) or not path.startswith(prefix):
        return b""
    first, slash, _ = path[len(prefix) :].partition(b"/")
    return first if slash else b""


def _folded(path: str | bytes) -> str:
    """Return a path in lower case and one Unicode form, as Macs, which store another, match names."""
    return unicodedata.normalize("NFC", os.fsdecode(path)).lower()


def _ends_with(path: str, name: str) -> bool:
    """Return whether a path ends in a name, with or without a suffix."""
    return any(f"/{each}".endswith(f"/{name}") for each in (path, divide_suffix(path)[0]))


TABLES_OF_IMAGES = Kind(
    name="table of images",
    claim=_claim,
    list=list_tables,
    options=LABEL_OPTIONS | TABLE_OPTIONS | {"boxes"},
)
