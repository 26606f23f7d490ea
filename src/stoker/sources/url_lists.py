"""Lists of images on web servers, in the formats of img2dataset: a URL a line, or a table with a column ``url``.

A table is CSV or TSV with a header, JSON lines or Parquet; its other columns are read as in metadata files. Several
lists of one suffix in a folder are one list.

Nothing of an image is known before it is downloaded. A row without a URL, or with one that is not of a web server, is
still an item, which a build reports as a reject. Nothing in such a list leads to a file of this machine.
"""

from __future__ import annotations

import contextlib
import os
from codecs import BOM_UTF8
from itertools import chain, islice
from typing import TYPE_CHECKING

from stoker.config import format_count
from stoker.errors import SourceError
from stoker.sources.files import numbered_lines
from stoker.sources.items import Group, GrowingColumn, Item, repeats_in
from stoker.sources.parquet import has_images
from stoker.sources.parquet_files import PARQUET_SUFFIX
from stoker.sources.reader import FileReader
from stoker.sources.source import LABEL_OPTIONS, Kind, Source, SourceBuilder
from stoker.sources.tables import IMAGE_COLUMN, TABLES, TableRows, damaged, find_classes_of, table_rows
from stoker.sources.tar_format import may_be_tar
from stoker.storage import Location, is_web, read_url, without_signature

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stoker.sources.look import Look

_TEXT = ".txt"
_URL = "url"
_LOOKED_AT = 100
_HEAD_BYTES = 2**12
_PROGRESS_ROWS = 2**16


def _has_urls(path: Location, image_column: str | None = None) -> bool:
    """Return whether a file is a list of URLs of web servers, by its first lines; never one that has images."""
    if path.suffix == PARQUET_SUFFIX and (image_column is not None or has_images(path)):
        return False
    head = path.read_head(_HEAD_BYTES).lower()
    if b"http" not in head and path.suffix != PARQUET_SUFFIX:
        return False
    if path.suffix not in TABLES:
        return is_web(head.removeprefix(BOM_UTF8).lstrip())
    with contextlib.closing(table_rows(path)) as rows:
        try:
            first = [row for _, row in islice(rows, _LOOKED_AT)]
            names = filter(IMAGE_COLUMN.fullmatch, {*chain(*first[:1])} - {_URL})
            if any((path.parent / str(first[0][name]).lstrip("/")).is_file() for name in names):
                return False
            urls = (row[name] for row in first for name in row if name.lower() == _URL)
            return any(isinstance(url, str) and is_web(url.encode("utf-8", "replace")) for url in urls)
        except SourceError:  # listing it reports the error
            return path.suffix == PARQUET_SUFFIX or _URL.encode() in head


def claim_urls(look: Look) -> list[Location]:
    """Return the lists of URLs in a folder without class folders, in the order of their names, or the list at the path.

    All must have the same suffix: otherwise they do not count as parts of one list.
    """
    if look.layout is None:
        is_list = look.is_file and not may_be_tar(look.path) and _has_urls(look.path, look.options.image_column)
        return [look.path] if is_list else []
    if look.holds_folders:
        return []
    names = [os.fsdecode(child.name) for child in look.beside_images(look.layout.base) if child.is_file]
    paths = [look.layout.base / name for name in names if not name.startswith((".", "_"))]
    paths = [path for path in paths if path.suffix in (_TEXT, *TABLES)]
    is_one = len({path.suffix for path in paths}) == 1
    return paths if is_one and _has_urls(paths[0]) else []


def _list(look: Look, paths: Sequence[Location]) -> Source:
    folder = paths[0].parent
    builder = SourceBuilder(look, folder, (folder,))
    collector, warnings = builder.collector, builder.warnings
    rows, urls = None, _urls_of_texts(paths, builder)
    if paths[0].suffix in TABLES:
        column = _url_column(paths)
        classes = find_classes_of(paths, column, look.options, warnings)
        rows = TableRows(paths[0], classes, without=(column,), only=look.options.columns, has_files=False)
        urls = _urls_of_tables(paths, column, rows)
    groups: dict[int, int] = {}
    hashes, unlabelled = GrowingColumn("q"), 0
    for row, (url, label) in enumerate(urls):
        if label not in groups:
            groups[label] = collector.add_group(Group("train", None if label < 0 else b"%d" % label))
        # The table of items allows no NUL byte. Neither does a URL: its download reports the error.
        collector.add(groups[label], url.replace(b"\0", b"\\0"), 0)
        hashes.append(hash(without_signature(url)))
        unlabelled += label < 0
        if look.progress is not None and row and row % _PROGRESS_ROWS == 0:
            look.progress(done=row, total=0, size_bytes=0, rejects=0)
    if not groups:
        raise SourceError(f"{look.root} has no URLs; write one for each image", path=look.root)
    names = [] if rows is None else rows.class_names(warnings)
    for label, group in groups.items():
        collector.groups[group].class_name = names[label] if label >= 0 else None
    if repeated := repeats_in(hashes.finish()):
        warnings.append(f"repeated URLs: {repeated:,}; each is an item of its own")
    if rows is not None:
        builder.numbered = rows.are_ids
        if rows.have_labels and unlabelled:
            warnings.append(f"{look.root}: {format_count(unlabelled, 'row')} without a label")
    cells = None if rows is None else rows.finish(builder)
    return builder.finish(reader=_UrlReader(builder.base, "web", cells))


def _urls_of_texts(paths: Sequence[Location], builder: SourceBuilder) -> Iterator[tuple[bytes, int]]:
    """Yield each URL, and -1, as it has no class."""
    for path in paths:
        for _, line in numbered_lines(path):
            if url := line.strip():
                yield url, -1
            else:
                builder.skipped.ignored["blank line"] += 1


def _urls_of_tables(paths: Sequence[Location], column: str, rows: TableRows) -> Iterator[tuple[bytes, int]]:
    """Yield the URL of each row, or a text that says it is missing, and the number of its class, or -1."""
    for number, (path, (line, row)) in enumerate((table, row) for table in paths for row in table_rows(table)):
        cell = row.get(column)
        if not isinstance(cell, str | None):
            raise damaged(path, line, "its url is not text")
        label = rows.take_label(path, line, row)
        rows.add(row)
        url = (cell or "").strip().encode("utf-8", "backslashreplace")
        yield url or b"row %d, which has no URL" % number, label


class _UrlReader(FileReader):
    """Reads images whose paths are their URLs on web servers, once."""

    name = "urls"
    is_named_by_path = True

    @property
    def uris(self) -> tuple[bytes, ...]:
        return ()

    def image(self, item: Item) -> bytes:
        return read_url(item.path)


def _url_column(paths: Sequence[Location]) -> str:
    """Return the name of the column of URLs, which is the same in all tables."""
    names = set()
    for path in paths:
        with contextlib.closing(table_rows(path)) as rows:
            columns = {name for _, row in islice(rows, _LOOKED_AT) for name in row if name.lower() == _URL}
        if len(columns) > 1:
            shown = " and ".join(sorted(columns))
            raise SourceError(f"{path} has the columns {shown}; keep one of them", path=str(path))
        names |= columns or {""}
        if len(names) > 1:
            raise SourceError(f"{path} does not call the column of its URLs as {paths[0]} does", path=str(path))
    return names.pop()


URLS = Kind(
    name="list of http:// and https:// URLs",
    claim=claim_urls,
    list=_list,
    options=LABEL_OPTIONS | {"label_column", "label_separator", "columns"},
    reader=_UrlReader,
)
