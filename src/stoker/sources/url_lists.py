"""Lists of images on web servers, as img2dataset takes them: a URL a line, or a table with a column ``url``.

A table is CSV or TSV with a header, JSON lines or Parquet; its other columns are as in metadata files. Lists of one
kind in a folder are one list.

Nothing of an image is known before it is downloaded. A row without a URL, or with one that is not of a web server, is
an item all the same, which a build names among the rejects. Nothing in such a list leads to a file of this machine.
"""

from __future__ import annotations

import contextlib
import os
from itertools import islice
from typing import TYPE_CHECKING

from stoker.config import format_count
from stoker.errors import SourceError
from stoker.sources.columns import GrowingColumn, repeats_in
from stoker.sources.items import Group, Item
from stoker.sources.kind import LABEL_OPTIONS, Kind, Look
from stoker.sources.parquet import has_images
from stoker.sources.parquet_files import SUFFIX as PARQUET
from stoker.sources.reader import Cells, FileReader
from stoker.sources.reading import numbered_lines, read_web
from stoker.sources.source_builder import SourceBuilder
from stoker.sources.table_columns import TableRows, find_classes_of
from stoker.sources.tables import damaged, table_rows
from stoker.sources.tars import named_tars
from stoker.storage import Location, is_web, without_signature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stoker.sources.source import Source

_TEXT = ".txt"
_TABLES = (".csv", ".tsv", ".jsonl", PARQUET)
_URL = "url"
_LOOKED_AT = 100
_HEAD_BYTES = 2**12
_PROGRESS_ROWS = 2**16


def _has_urls(path: Location, image_column: str | None = None) -> bool:
    """Return whether a file is a list of URLs of web servers, by its first lines, and not Parquet with such images."""
    if path.suffix == PARQUET and (image_column is not None or has_images(path)):
        return False
    head = path.read_head(_HEAD_BYTES).lower()
    if b"http" not in head and path.suffix != PARQUET:
        return False
    if path.suffix not in _TABLES:
        return is_web(head.removeprefix(b"\xef\xbb\xbf").lstrip())
    rows = table_rows(path)
    try:
        urls = (row[name] for _, row in islice(rows, _LOOKED_AT) for name in row if name.lower() == _URL)
        return any(isinstance(url, str) and is_web(url.encode("utf-8", "replace")) for url in urls)
    except SourceError:  # listing it says so
        return path.suffix == PARQUET or _URL.encode() in head
    finally:
        rows.close()


def claim_urls(look: Look) -> list[Location]:
    """Return the lists of URLs in a folder without folders of classes, in the order of their names, or the one named.

    All have the same suffix: where there are files of several, they are not taken for parts of one list.
    """
    if look.layout is None:
        is_list = look.is_file and not look.once(named_tars) and _has_urls(look.path, look.options.image_column)
        return [look.path] if is_list else []
    if look.holds_folders:
        return []
    names = [os.fsdecode(child.name) for child in look.layout.base.children() if child.is_file]
    paths = [look.layout.base / name for name in names if not name.startswith((".", "_"))]
    paths = [path for path in paths if path.suffix in (_TEXT, *_TABLES)]
    is_one = len({path.suffix for path in paths}) == 1
    return paths if is_one and _has_urls(paths[0]) else []


def _list(look: Look, paths: Sequence[Location]) -> Source:
    folder = paths[0].parent
    builder = SourceBuilder(look, folder.to_uri(), (folder,))
    cells = (_list_tables if paths[0].suffix in _TABLES else _list_texts)(paths, builder)
    builder.settle()
    return builder.finish({}, _UrlReader(builder.base, "web", cells))


class _UrlReader(FileReader):
    """Reads images whose paths are their URLs on web servers, once."""

    name = "urls"
    is_named_by_path = True

    @property
    def places(self) -> tuple[bytes, ...]:
        return ()

    def image(self, item: Item) -> bytes:
        return read_web(item.path)


class _Images:
    """The images of a list, on their way to a builder."""

    def __init__(self, builder: SourceBuilder) -> None:
        self._builder = builder
        self._groups: dict[int, int] = {}
        self._hashes = GrowingColumn("q")

    def __len__(self) -> int:
        return len(self._hashes)

    def add(self, url: bytes, label: int = -1) -> None:
        """Add the image of the next row; ``label`` is the number of its class, or -1."""
        collector, row = self._builder.collector, len(self)
        if label not in self._groups:
            provisional = None if label < 0 else b"%d" % label
            self._groups[label] = collector.add_group(Group("train", provisional))
        # The table of items holds no NUL byte, and neither does a URL: downloading it says so.
        collector.add(self._groups[label], url.replace(b"\0", b"\\0"), 0)
        self._hashes.append(hash(without_signature(url)))
        if self._builder.progress is not None and row and row % _PROGRESS_ROWS == 0:
            self._builder.progress(done=row, total=0, size_bytes=0, rejects=0)

    def finish(self, names: Sequence[bytes | None] = ()) -> None:
        """Name the classes, by their numbers, and warn of URLs that come again."""
        if not len(self):
            raise SourceError(f"{self._builder.root} has no URLs; write one for each image", path=self._builder.root)
        for label, group in self._groups.items():
            if label >= 0:
                self._builder.collector.groups[group].class_name = names[label]
        repeated = repeats_in(self._hashes.finish())
        if repeated:
            message = f"repeated URLs: {repeated:,}; each is an item of its own"
            self._builder.skipped.warnings.append(message)


def _list_texts(paths: Sequence[Location], builder: SourceBuilder) -> None:
    images = _Images(builder)
    for path in paths:
        for _, line in numbered_lines(path):
            url = line.strip()
            if url:
                images.add(url)
            else:
                builder.skipped.ignored["blank line"] += 1
    images.finish()


def _list_tables(paths: Sequence[Location], builder: SourceBuilder) -> Cells | None:
    column = _url_column(paths)
    images = _Images(builder)
    options = builder.options
    classes = find_classes_of(paths, column, options, builder.skipped.warnings)
    rows = TableRows(paths[0], classes, without=(column,), only=options.columns, has_files=False, fills=True)
    unlabelled = 0
    for path in paths:
        for line, row in table_rows(path):
            cell = row.get(column)
            if not isinstance(cell, str | None):
                raise damaged(path, line, "its url is not text")
            label = rows.take_label(path, line, row)
            unlabelled += label < 0
            rows.add(row)
            url = (cell or "").strip().encode("utf-8", "backslashreplace")
            images.add(url or b"row %d, which has no URL" % len(images), label)
    images.finish(rows.class_names(builder.skipped.warnings))
    builder.numbered = rows.are_ids
    if rows.have_labels and unlabelled:
        builder.skipped.warnings.append(f"{builder.root}: {format_count(unlabelled, 'row')} without a label")
    return rows.finish(builder)


def _url_column(paths: Sequence[Location]) -> str:
    """Return how the column of the URLs is called in all tables."""
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
