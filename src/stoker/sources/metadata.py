"""Metadata files: tables beside images, with a row for each image, as the library ``datasets`` reads folders of images.

docs/reference/images.md says what is in them. A row that lacks what it needs is an item all the same, which a build
names among the rejects, and so is one whose image is not there. `stoker.sources.table_columns` says what the columns
are.
"""

from __future__ import annotations

import contextlib
import os
from array import array
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker.config import format_count, format_some, option, option_with
from stoker.errors import ConfigError, SourceError
from stoker.sources.class_folders import SPLIT_FOLDERS, are_splits, split_of_folder, splits_among
from stoker.sources.image_tables import (
    FILE_NAME,
    ImageTable,
    find_tables,
    find_tables_of_splits,
    image_base,
    split_of_cell,
    warn_of_splits,
)
from stoker.sources.kind import LABEL_OPTIONS, TABLE_OPTIONS, Kind, Look
from stoker.sources.labels import read_label_map
from stoker.sources.moved_files import find_moved, own_names, path_parts, without_own
from stoker.sources.reading import in_order, sizes_of
from stoker.sources.source_builder import SourceBuilder
from stoker.sources.split_lists import divide_by_lists
from stoker.sources.table_columns import IMAGE_NAME, LABEL, TableRows, find_classes_of
from stoker.sources.tables import damaged, first_rows, table_rows, with_captions
from stoker.sources.walking import divide_suffix, shown_names
from stoker.storage import Location, is_absolute, is_web, join

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stoker.sources.source import Source


_NAMES = ("metadata.csv", "metadata.tsv", "metadata.jsonl", "metadata.parquet")
_REPORT_EVERY = 1024


def find_metadata(look: Look) -> list[ImageTable]:
    """Return the metadata files of a folder, or of its folders of splits; none of another path."""
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
    """Return why a metadata file does not begin with a row that has a ``file_name``; nothing of a table of images."""
    with contextlib.closing(table_rows(table.path)) as rows:
        try:
            return "" if FILE_NAME in next(rows)[1] else "its first row has no file_name"
        except StopIteration:
            return "its first row has no file_name"
        except SourceError as error:
            return str(error)


def _claim(look: Look) -> list[ImageTable]:
    """Return the metadata files of a folder; none if one of them names no files, and there are folders of classes.

    Where the user says what the columns of a table are, it is that table, whatever it is called.
    """
    tables = look.once(find_metadata)
    given = TABLE_OPTIONS.intersection(look.options.given())
    if given and (look.is_file or {"image_column", "split_column"} & given or not tables):
        return find_tables(look, image_base(look), _named_tables(look)) or look.once(find_tables_of_splits)
    if not tables:
        return look.once(find_tables_of_splits)
    return tables if not any(map(why_unused, tables)) or not look.holds_folders else []


def _named_tables(look: Look) -> list[Location]:
    """Return the files that may be the table of which a user says something."""
    if look.layout is None:
        return [look.path] if look.is_file else []
    return look.files_near(look.layout.base)


def list_metadata(look: Look, tables: Sequence[ImageTable]) -> Source:
    """List the images that the tables of a folder, or of its folders of splits, name."""
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
        self._splits: list[str] = []  # of each row, where a column tells
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
        """Add the images to the builder, with their splits, classes and sizes; report what is not used."""
        folders = [b""] if self._is_found else [table.folder for table in self._tables]
        sizes = self._builder.sizes_in(folders)
        ignored = self._builder.skipped.ignored
        ignored -= Counter(table.path.suffix for table in self._tables)  # which leaves none below 1
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
        """Say which file beside the table has names for all class ids up to ``most``, if it is the only one."""
        names = {os.fsdecode(child.name) for child in table.parent.some_children() if child.name.endswith(b".json")}
        label_map = table.parent / min(names, default="")
        with contextlib.suppress(SourceError, ConfigError, PermissionError):
            is_map = len(names) == 1 and label_map.read_head(1) == b"{"
            if is_map and most < len(read_label_map(str(label_map)).names):
                message = f"{table}: {label_map.name} beside it names the class ids; to have these names give"
                self._builder.label_warnings.append(f"{message} {option_with('labels', str(label_map))}")

    def _placed(self) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield the split and the path of each image, and the folder of that split in it, with a slash."""
        folders = {_first_folder(path) for path in self._paths}
        of_table = self._tables[0].split is not None or bool(self._splits)
        in_splits = not of_table and are_splits(folders, str(self._tables[0].path))
        for row, (number, path) in enumerate(zip(self._table_of, self._paths, strict=True)):
            table = self._tables[number]
            prefix = path[: path.index(b"/") + 1] if in_splits else b"" if self._is_found else table.folder
            split = table.split or (SPLIT_FOLDERS[prefix[:-1]] if prefix else table.named)
            yield self._splits[row] if self._splits else split, path, prefix

    def _find_moved(self, sizes: Mapping[bytes, int]) -> None:
        """Find the files whose paths are those of another computer; those of a table in a folder are below that."""
        missing = {path: table for path, table in zip(self._paths, self._table_of, strict=True) if path not in sizes}
        if not missing:
            return
        free, skipped = sizes.keys() - {*self._paths}, self._builder.skipped
        folders = {path: self._tables[table].folder for path, table in missing.items()}
        names = {path.removeprefix(folder): path for path, folder in folders.items()}
        moved = find_moved(self._tables[0].path, names, free, self._builder.base, skipped)
        files = {names[name]: file for name, file in moved.items()}
        self._paths = [files.get(path, path) for path in self._paths]
        self._used.extend(map(hash, moved.values()))

    def _find_files(self, sizes: Mapping[bytes, int]) -> None:
        """Find the file of each row: below the folder of its table, or else the only one of that name anywhere."""
        by_name: dict[bytes, list[bytes]] = {}
        if not all(map(sizes.__contains__, self._paths)):
            for path in sizes:
                name = path.rpartition(b"/")[2].lower()
                for key in {name, divide_suffix(name)[0]}:
                    by_name.setdefault(key, []).append(path)
        other_case = []
        for row, (path, number) in enumerate(zip(self._paths, self._table_of, strict=True)):
            table = self._tables[number]
            if path in sizes:
                continue
            name = path.removeprefix(table.folder).lower()
            alike = [each for each in by_name.get(name.rpartition(b"/")[2], ()) if _ends_with(each.lower(), name)]
            near = [each for each in alike if each.startswith(table.folder)] or alike
            if len(near) > 1:
                shown = " and ".join(map(os.fsdecode, near[:2]))
                message = f"{table.path}: {os.fsdecode(name)!r} may be {shown}; name one of them, or give"
                raise SourceError(f"{message} {option('image_root')}", path=str(table.path))
            if near:
                exact = path.rpartition(b"/")[2] in near[0]
                other_case += [] if exact else near
                self._paths[row] = near[0]
                self._used.append(hash(near[0]))
            else:
                self._paths[row] = path + os.fsencode(table.ending)
        message = f"files whose names differ in case from those in the table: {len(other_case):,}, {{names}}"
        self._builder.skipped.warn(other_case, message)

    def _add_tests(self, unused: Sequence[bytes], sizes: Mapping[bytes, int]) -> list[bytes]:
        """Add images that no row names and that lie in a folder for tests, as those of Kaggle do; return the others."""
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
        skipped.ignored["not in the metadata"] += len(unused)
        skipped.warn(unused, f"no row of {tables} names these files: {{names}}")
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


def _ends_with(path: bytes, name: bytes) -> bool:
    """Return whether a path is a name, with or without a suffix, in any folder."""
    return any((b"/" + each).endswith(b"/" + name) for each in (path, divide_suffix(path)[0]))


METADATA = Kind(
    name="table of images",
    claim=_claim,
    list=list_metadata,
    options=LABEL_OPTIONS | TABLE_OPTIONS | {"boxes"},
)
