"""Tables beside images, of any name: which column names the images, where these lie, and what says the classes.

The table may leave out how the names of the files end, and name images that lie in a folder below. Of Kaggle's it is
``train.csv`` or ``labels.csv``; a ``test.csv`` beside it has the images of that split. A table that the classes of the
images cannot be told from is refused, with the settings that say them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shlex
from itertools import islice
from typing import TYPE_CHECKING, Any

from stoker.config import format_some, option, option_with
from stoker.errors import ConfigError, SourceError
from stoker.sources.boxes import KAGGLE_BOXES, TINY_BOXES, TINY_LIST
from stoker.sources.class_folders import MASK_WORDS, SPLIT_FOLDERS, SPLIT_WORDS, splits_among
from stoker.sources.kind import TABLE_OPTIONS, FolderContents, Look
from stoker.sources.labels import CLASS_LISTS, LABEL_LISTS, TEXT_LISTS
from stoker.sources.moved_files import own_names, path_ends, without_own
from stoker.sources.options import SEPARATORS
from stoker.sources.parquet_files import PARQUET_SUFFIX, holds_bytes
from stoker.sources.reading import in_order
from stoker.sources.table_columns import CAPTION, LABEL, LABEL_NAME, Classes, check_columns, find_classes
from stoker.sources.tables import LOOKED_AT, TEXTS, first_rows, is_text, table_rows
from stoker.sources.url_lists import claim_urls
from stoker.sources.walking import is_image_name, shown_names
from stoker.storage import Location, is_web, location

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stoker.sources.options import SourceOptions


FILE_NAME = "file_name"
"""The column of the images of metadata files."""

_TABLES = (".csv", ".tsv", ".jsonl", PARQUET_SUFFIX)
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
_SPLIT_FLAG = re.compile(rf"(is|in)[_ ]?({'|'.join(SPLIT_WORDS)})([_ ].*)?", re.IGNORECASE)
"""What columns of 0 and 1 are called that say splits."""
_NO_CLASSES = "or a pattern such as '*.jpg' to read no classes"
_MASKS = re.compile(MASK_WORDS, re.IGNORECASE)
_FEW, _SOME, _LONGEST_CELL = 4, 16, 40


@dataclasses.dataclass(frozen=True, slots=True)
class ImageTable:
    """A table of images."""

    path: Location  # where it lies
    folder: bytes  # where its images lie below the source: empty, or ending in a slash
    split: str | None  # the split of its images; None where their paths or a column tell
    image: str = FILE_NAME  # the column of their names
    ending: str = ""  # what the names of the files have behind those in the table
    classes: Classes | None = None  # what says their classes; None: as in metadata files
    split_column: str | None = None  # the column of the splits
    is_found: bool = False  # whether images may lie in any folder, and rows may lack values; metadata files are exact
    notes: tuple[str, ...] = ()  # what was taken for what, for the user
    named: str = "train"  # the split that its name says, where nothing else tells one


@dataclasses.dataclass(frozen=True, slots=True)
class _Seen:
    """What the first rows of a table say of images."""

    path: Location  # the table
    rows: Sequence[dict[str, Any]]  # its first rows
    hits: int  # how many of very few of them name a file
    image: str  # the column that does
    top: Location  # folder in which they lie
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
        """Whether it has nothing but the names of images, and perhaps their numbers before these."""
        first, *others = self.rows[0]
        numbers = [str(row.get(first)) for row in self.rows]
        return not others or (
            others == [self.image] and numbers in [[*map(str, range(at, at + len(numbers)))] for at in (0, 1)]
        )

    @property
    def rank(self) -> tuple[bool, bool, int, int]:
        """How well it says the classes: by a column `LABEL`, then the more columns and different values, the better."""
        values = {name: len({str(row.get(name)) for row in self.rows}) for name in self.rows[0] if name != self.image}
        return self.hits > 0, LABEL in values, len(values), max(values.values(), default=0)

    @property
    def images(self) -> set[str]:
        return {str(row.get(self.image)) for row in self.rows}

    @property
    def are_boxes(self) -> bool:
        """Whether rows seem to be boxes, by their columns; without a header, by four numbers of repeated images."""
        names = [name for name in self.rows[0] if name != self.image]
        texts = {name: [str(row.get(name)).strip() for row in self.rows] for name in names if _HEADLESS.fullmatch(name)}
        numbers = [name for name, cells in texts.items() if all(map(_NUMBER.fullmatch, cells)) and any(cells)]
        repeats = len(self.images) < len(self.rows)
        lower = {*map(str.lower, names)}
        return any(lower >= corners for corners in _CORNERS) or (repeats and (len(numbers) == 4 or _BOX in lower))


def _words_of(path: Location) -> list[bytes]:
    return [*map(str.encode, path.name.removesuffix(path.suffix).lower().replace("-", "_").split("_"))]


def split_in_name(path: Location) -> str | None:
    """Return the split that the name of a table or a list says; None without one."""
    return next((SPLIT_FOLDERS[word] for word in _words_of(path) if word in SPLIT_FOLDERS), None)


def split_alone(path: Location, warnings: list[str]) -> str:
    """Return the split of a table or a list that no other is beside: train, unless it is called after another.

    That is ``val`` or ``test`` as any word of its name, or ``valid`` or ``dev`` alone: ``valid_images`` may be the
    sound ones.
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
    """Return whether a table is called as a sample of what a competition wants, such as ``sample_submission.csv``."""
    return "submission" in name.lower()


def find_tables(
    look: Look, base: Location, files: Iterable[Location], folders: Sequence[Location] = ()
) -> list[ImageTable]:
    """Return the tables whose rows name the images: one, or one of each split; none where no table does.

    Args:
        look: What the user named, and what they say of the columns.
        base: Folder that the images lie below.
        files: What may be such a table.
        folders: Some folders that the images may lie in. Default: the first ones.
    """
    best, seen = _tables_that_name(look, base, files, folders)
    if best is None:
        return []
    warnings: list[str] = []
    split_column, classes = _columns_of(look, base, best, warnings)
    by_split: dict[str, list[_Seen]] = {}
    for table in seen if best.split else ():
        if table.split not in (None, best.split):
            by_split.setdefault(table.split, []).append(table)
    # Of several tables of a split, such as those of folds, the one counts that is called like the best.
    of_splits = [[table for table in own if table.words == best.words] or own for own in by_split.values()]
    chosen = [best, *(own[0] for own in of_splits if len(own) == 1 and own[0].image == best.image)]
    if split_column is not None:
        chosen = [best]
    if unread := [os.fsencode(table.path.name) for table in seen if not (table in chosen or table.says_nothing)]:
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
    """Return which table says the most of the images, if one does, and all whose rows name them; see `find_tables`."""
    options = look.options
    tables = [file for file in files if file.suffix.lower() in (*_TABLES, *TEXTS) and file.name not in _OTHER_TABLES]
    tables = [
        file for file in tables if look.is_file or not (is_submission(file.name) or TINY_BOXES in file.name.lower())
    ]
    tables = sorted(tables, key=is_text)
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
    is_given = not TABLE_OPTIONS.isdisjoint(options.given())
    if (
        tabled
        and not seen
        and (is_given or (_names_lost_images(tabled) and (look.is_file or not tops)))
        and not look.once(claim_urls)
    ):
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
        names = shown_names([os.fsencode(table.path.name) for table in seen])
        few = min(seen, key=lambda table: (len(table.rows[0]), table.split not in (None, "train")))
        message = f"several texts in {base} name the images ({names}); give the one that has the classes, such as"
        raise SourceError(f"{message} {few.path}, {_NO_CLASSES}", path=look.root)
    best = max(seen, key=lambda table: table.rank, default=None)
    if best is not None and best.are_boxes:
        others = [table for table in seen if not table.are_boxes and len(table.images) >= len(best.images)]
        best = max(others, key=lambda table: table.rank, default=best)
    return None if best is None or best.says_nothing else best, seen


def _rows_of(path: Location, options: SourceOptions) -> list[dict[str, Any]]:
    """Return the first rows of what may be a table; none of Parquet with images, which would all be read."""
    with contextlib.suppress(SourceError, ConfigError):
        if path.suffix == PARQUET_SUFFIX and holds_bytes(path):
            return []
    return first_rows(path, options)


def is_table(path: Location) -> bool:
    """Return whether a file is a table by its name, and none that has a use of its own."""
    is_called = path.name.lower().endswith((*_TABLES, *_SHEETS, *_PACKED))
    return is_called and path.name not in _OTHER_TABLES and not is_submission(path.name)


def without_images(look: Look, path: Location, folder: Location) -> str:
    """Return why a table names no image in a folder, and what to do; nothing if its first row does, or of no table."""
    is_sheet, is_packed = (path.name.lower().endswith(ends) for ends in (_SHEETS, _PACKED))
    if is_sheet or is_packed or not is_table(path):
        how = "save it as CSV in UTF-8" if is_sheet else "unpack it"
        return f"{path} is not read; {how}" if is_sheet or is_packed else ""
    try:
        rows = [row for _, row in islice(table_rows(path, look.options.separator), LOOKED_AT)]
    except SourceError as error:
        return f"{path} is not read: {error}"
    if not rows:
        return f"{path} has no rows"
    files = look.look_into(folder).files
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
            message = (
                f"{path} names {cell}, and the file is {file}; write the names of the files into it, {_NO_CLASSES}"
            )
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
    """Return whether the first table has names of images and a header, so that it is no list of labels."""
    rows = next(iter(tabled.values()))
    cells = [os.fsencode(cell) for cell in map(str, rows[0].values()) if cell.isprintable()]
    return (
        any(is_image_name(cell) and not is_web(cell) for cell in cells)
        and len(rows[0]) > 1
        and not any(map(_HEADLESS.fullmatch, rows[0]))
    )


def _without_texts_of_images(tables: Iterable[Location], known: Mapping[Location, FolderContents]) -> list[Location]:
    """Return the tables without the texts that are called as an image, which have its boxes or its caption."""
    images = {name.rpartition(".")[0] for own in known.values() for name in own.files if not name.endswith(TEXTS)}

    def is_of_image(path: Location) -> bool:
        stem, end = path.name.removesuffix(path.suffix), known[path.parent].ending if path.parent in known else ""
        has_image = end != path.suffix and (path.parent / (stem + end)).is_file()
        return is_text(path) and (stem in images or has_image)

    return [*islice((path for path in tables if not is_of_image(path)), _SOME)]


def _mentions(path: Location, rows: Sequence[dict[str, Any]], known: Mapping[Location, FolderContents]) -> bool:
    """Return whether most of the first rows of a text have the name of an image among other words."""
    images = {name for own in known.values() for name in own.files if is_image_name(os.fsencode(name))}
    words = [{*re.split(r"[^\w.-]+", " ".join(map(str, row.values())))} for row in rows[:_FEW]]
    count = sum(not images.isdisjoint(each) for each in words)
    return is_text(path) and len(rows[0]) > 1 and 2 * count > len(words)


def check_against_folders(
    look: Look, base: Location, files: Iterable[Location], folders: Sequence[Location], words: Mapping[str, str]
) -> list[str]:
    """Return warnings of a table beside images whose folders seem to be their classes; refuse one that says others.

    See `find_tables`; ``words`` has what of the name of each of the folders may be the class.
    """
    best, _ = _tables_that_name(look, base, [file for file in files if not is_text(file)], folders)
    if best is None:
        return []
    known = [words.keys() & str(row.get(best.image)).split("/") or words for row in best.rows]
    of_rows = [{*names, *map(words.__getitem__, names)} for names in known]
    columns = best.rows[0].keys() - {best.image}
    agree = {
        name for name in columns if all(str(row.get(name)) in of for row, of in zip(best.rows, of_rows, strict=True))
    }
    unread = f"not read: {best.path}, which names the images; the classes are their folders"
    try:
        split_column, classes = _columns_of(look, base, best, [])
    except SourceError:
        if not agree:
            raise
        return [unread]
    is_near = look.layout is not None and best.path.parent in look.layout.tops
    typed = f"give {look.root if is_near else best.path} with"
    typed += f" {option_with('label_column', ','.join(classes.columns))}"
    if not is_near:
        typed += f" {option_with('image_root', str(best.top))}"
    if not agree.issuperset(classes.columns):
        message = f"{best.path} names the images, and the classes may be its"
        message += f" {format_some(classes.columns, _FEW, repr)}, or the folders, such as that of"
        raise SourceError(f"{message} {best.rows[0][best.image]}; {typed}", path=look.root)
    others = [name for name in best.rows[0] if name not in (best.image, "", *agree)]
    if classes.columns:
        unread += f"; to have {format_some(others, _FEW, repr)}, too, {typed}"
    elif split_column is not None:
        unread += (
            f"; to have the splits of {split_column!r}, write train.txt, val.txt and test.txt, with a path on each"
        )
        unread += " line"
    return [unread] if others else []


def find_tables_of_splits(look: Look) -> list[ImageTable]:
    """Return the tables in folders of splits that hold images and no folders, at most one of each split."""
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
    """Return what the first rows of a table say of images; None if they name none."""
    wanted = look.options.image_column
    if wanted is not None and wanted not in rows[0]:
        return None
    others = {*(look.options.label_column or ()), look.options.split_column, ""}
    usable = [name for name in rows[0] if name not in others and not LABEL_NAME.fullmatch(name)][:_SOME]
    names = usable if wanted is None else [wanted]
    if not names:
        return None
    own = own_names(base)
    # Classes may be called as some images are, without their endings.
    repeated = {name for name in names if wanted is None and 2 * len({str(row.get(name)) for row in rows}) <= len(rows)}
    lower = {top: {name.lower() for name in own.files} for top, own in known.items()}

    def hits(key: tuple[str, Location, str]) -> int:
        column, top, end = key
        cells = [str(row.get(column)) + end for row in rows[:_FEW]]
        if end and column in repeated and all(cell.removesuffix(end).isdecimal() for cell in cells):
            return 0
        cells = [os.fsdecode(without_own(os.fsencode(cell), own)) if cell.isprintable() else cell for cell in cells]
        ends = [map(os.fsdecode, path_ends(os.fsencode(cell))) if cell.isprintable() else () for cell in cells]
        return sum(any(name.lower() in lower[top] or (top / name).is_file() for name in names) for names in ends)

    ends = sorted({(top, end) for top, own in known.items() for end in ("", own.ending)})
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
    """Return the column of the splits and what says the classes of a table that names the images."""
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
    """Return the column of captions, several of each image, where no other column says anything but their numbers."""
    captions = [name for name in names if CAPTION.fullmatch(name)]
    images = {str(row.get(table.image)) for row in table.rows}
    numbers = [name for name in names if all(str(row.get(name)).strip().isdecimal() for row in table.rows)]
    if len(captions) != 1 or len(images) == len(table.rows) or {*names} != {*captions, *numbers}:
        return None
    warnings.append(f"{table.path}: {captions[0]!r} has several captions of an image, as the field 'captions'")
    return Classes((captions[0],), "captions")


def split_of_cell(cell: Any, column: str) -> str | None:
    """Return the split that a cell says; None if it is none. What is not ``is_valid`` or ``is_test`` is of train."""
    text, flag = str(cell).strip().lower(), _SPLIT_FLAG.fullmatch(column)
    split = "train" if flag is None else SPLIT_WORDS[flag[2].lower()]
    if split != "train" and text in ("0", "1", "false", "true"):
        return split if text in ("1", "true") else "train"
    return SPLIT_WORDS.get(text)


def warn_of_splits(
    path: Location, rows: Sequence[Mapping[str, Any]], names: Iterable[str], warnings: list[str]
) -> None:
    """Warn of the first column that may say splits, where none does."""
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
