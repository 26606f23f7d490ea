"""One function that lists any source of images. Here, and only here, the kinds of sources are distinguished.

===========================  ==========================================================  ==============================
kind                         recognised as                                               listed by
===========================  ==========================================================  ==============================
folder with metadata files   a folder with ``metadata.csv``, ``.tsv``, ``.jsonl`` or     `stoker.sources.metadata`
                             ``.parquet``
folder of classes or splits  a folder                                                    `stoker.sources.folders`
folder of ImageNet's tars    a folder with tars of known names and without such folders  `stoker.sources.tars`
tar                          a file with the header of a tar, or called ``*.tar``        `stoker.sources.tars`
WebDataset                   such a tar, or a folder of them, with images beside which   `stoker.sources.webdataset`
                             lies a ``.cls``, ``.txt`` or ``.json`` of the same key
several tars                 a name that is not there and has braces                     `stoker.sources.tars`
COCO file                    a file called ``*.json`` with a list ``images``              `stoker.sources.coco`
Parquet                      a file called ``*.parquet``, or with its first bytes; a     `stoker.sources.parquet`
                             folder of them
``ilsvrc.json``              any other file called ``*.json``                            `stoker.sources.file_lists`
list of URLs                 a file that begins with ``http(s)://``, or a table of       `stoker.sources.url_lists`
                             that, with a column ``url``, or a folder of such
file list                    any other file                                              `stoker.sources.file_lists`
===========================  ==========================================================  ==============================

To add a kind: write a module with a function that fills a `stoker.sources.source_builder.SourceBuilder` and returns
its `SourceTree`, then add a row and a branch here, and its name to `SOURCE_KINDS`, which help and messages show. It
also needs rows in docs/reference/images.md#sources and docs/reference/sources.md, an entry in
tests/sources/layouts.py, which tries it in every store, and a seed or a target for the fuzzer in scripts/fuzz_python.
"""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from stoker.config import option
from stoker.errors import ConfigError, SourceError
from stoker.sources.class_folders import SPLIT_FOLDERS
from stoker.sources.coco import find_coco, list_coco, read_coco
from stoker.sources.file_lists import list_file_lists
from stoker.sources.folders import ARROW, HOLDS_ARROW, find_layout, list_folder
from stoker.sources.metadata import find_metadata, list_metadata, names_files
from stoker.sources.parquet import find_parquet, list_parquet, split_of_file
from stoker.sources.parquet_files import SUFFIX as PARQUET
from stoker.sources.parquet_files import is_parquet
from stoker.sources.source import SourceOptions
from stoker.sources.tar_format import is_compressed, is_tar
from stoker.sources.tars import find_tars, list_tars, split_of, tars_of_pattern
from stoker.sources.url_lists import find_url_lists, has_urls, list_urls
from stoker.sources.webdataset import find_shards, hold_samples, list_webdataset
from stoker.storage import location

if TYPE_CHECKING:
    from stoker.sources.source import SourceTree
    from stoker.storage import Location
    from stoker.types import Progress


SOURCE_KINDS = (
    "folder of class folders or of train/ and validation/, folder with metadata.csv, folder of tars, tar, WebDataset,"
    " Parquet, file list, list of http:// and https:// URLs, COCO file, ilsvrc.json"
)
"""What `list_source` takes, in the words of help and messages."""


def list_source(
    root: str,
    options: SourceOptions | None = None,
    progress: Progress | None = None,
    without: Location | None = None,
) -> SourceTree:
    """List the images of a source of any kind.

    Every file that is named may be the URL of an object instead. The same images have the same items, the same order
    and the same fingerprint wherever they lie.

    Args:
        root: Path or URL of the source.
        options: What the user says about it.
        progress: Called after every few images or annotations.
        without: A folder that is not part of the source though it may lie in it: where a dataset is to be built.

    Raises:
        SourceError: It does not exist, cannot be listed, or is damaged.
        ConfigError: What the user says does not fit.
        OSError: It cannot be read; a ``StorageError``, if its store cannot be reached.
    """
    path = location(root)
    options = options or SourceOptions()
    coco = read_coco(path)
    if coco is not None:
        return list_coco(path, coco, options, progress)
    if options.masks:
        message = f"{option('masks')} has no effect where the source is not a COCO file, and {root} is none; omit it"
        raise ConfigError(message)
    if path.is_dir():
        return _list_folder(path, options, progress, without)
    tars = _tars_named(path, root)
    if tars:
        list_them = list_webdataset if hold_samples(tars) else list_tars
        return list_them(root, tars, next(iter(tars)).parent, options, progress)
    if has_urls(path):
        return list_urls(root, [path], options, progress)
    if is_parquet(path):
        return list_parquet(root, {path: split_of_file(path.name) or "train"}, path.parent, options, progress)
    return list_file_lists(path, options, progress)


def _tars_named(path: Location, root: str) -> dict[Location, str]:
    """Return the tar that is named, or those that a pattern names, and the split of each; none for another file.

    Raises:
        SourceError: There is no such file.
        OSError: It cannot be read.
    """
    if path.is_file():
        return {path: split_of(path.name)} if is_tar(path) or is_compressed(path) else {}
    if "{" in root and not path.exists():
        return tars_of_pattern(root)
    problem = "is neither a folder nor a file" if path.exists() else "does not exist"
    raise SourceError(f"{root} {problem}; give a {SOURCE_KINDS}, or the URL of one", path=root)


def _list_folder(
    path: Location, options: SourceOptions, progress: Progress | None, without: Location | None
) -> SourceTree:
    if without is not None and path.lies_in(without):
        without = None  # all of the source lies in it
    layout = find_layout(path.resolve(), without)
    tables = find_metadata(layout.base)
    if tables and (all(map(names_files, tables)) or not layout.holds_folders(without)):
        return list_metadata(path, layout.base, tables, options, progress, without)
    shards = find_shards(layout, without)  # before the tables beside them, in which img2dataset writes what is in them
    if shards:
        tree = list_webdataset(str(path), shards, layout.base, options, progress)
        beside = sum(child.name.endswith(PARQUET.encode()) for child in layout.base.children())
        return dataclasses.replace(tree, ignored={**tree.ignored, PARQUET: beside}) if beside else tree
    lists = find_url_lists(layout, without)
    if lists:
        return list_urls(str(path), lists, options, progress)
    parquet = find_parquet(layout, without)
    if parquet:
        return list_parquet(str(path), parquet, layout.base, options, progress)
    tars = find_tars(layout.base)
    if tars and not layout.holds_folders(without):
        return list_tars(str(path), tars, layout.base, options, progress)
    _refuse_coco(path, layout.base)
    tree = list_folder(path, layout, options, progress, without)
    _refuse_tables(path, tree)
    ignored = tuple(f"{table.place} is not used: its first row has no file_name" for table in tables)
    return dataclasses.replace(tree, warnings=(*tree.warnings, *ignored)) if ignored else tree


def _refuse_coco(path: Location, base: Location) -> None:
    """Refuse a folder of COCO, whose folders of images are no classes.

    Raises:
        SourceError: It is one.
    """
    files = find_coco(base)
    if files:
        message = f"{path} has the images of a COCO file, which are in no folders of classes; give the file"
        raise SourceError(f"{message}, such as {files[0]}", path=str(path))


def _refuse_tables(path: Location, tree: SourceTree) -> None:
    """Refuse folders that hold tables, which only have the images of a folder of classes in them.

    Raises:
        SourceError: All that was found are such files.
    """
    first = tree.table.paths[0] if len(tree.table) else b""
    suffix = next((suffix for suffix in (PARQUET.encode(), ARROW) if first.endswith(suffix)), None)
    if suffix is None or not all(tree.table.paths[row].endswith(suffix) for row in range(len(tree.table))):
        return
    if suffix == ARROW:
        raise SourceError(f"{path} {HOLDS_ARROW}", path=str(path))
    parent = first.rpartition(b"/")[0]
    folder, _, split = parent.rpartition(b"/")
    inner = path / os.fsdecode(folder if folder and split in SPLIT_FOLDERS else parent)
    message = f"{path} holds Parquet files in folders that are no splits, such as {inner}"
    raise SourceError(f"{message}; give one of these folders", path=str(path))
