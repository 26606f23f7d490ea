"""One function that lists any source of images. Here, and only here, the kinds of sources are distinguished.

===========================  ==========================================================  ==============================
kind                         recognised as                                               listed by
===========================  ==========================================================  ==============================
folder of classes or splits  a folder                                                    `stoker.sources.folders`
folder of ImageNet's tars    a folder with tars of known names and without such folders  `stoker.sources.tars`
tar                          a file with the header of a tar, or called ``*.tar``        `stoker.sources.tars`
``ilsvrc.json``              a file called ``*.json``                                    `stoker.sources.file_lists`
file list                    any other file                                              `stoker.sources.file_lists`
===========================  ==========================================================  ==============================

To add a kind: write a module with a function that fills a `stoker.sources.source_builder.SourceBuilder` and returns its
`SourceTree`, then add a row and a branch here, and its name to `SOURCE_KINDS`, which help and messages show. It also
needs a row in docs/reference/images.md#sources, an entry in tests/sources/layouts.py, which tries it in every store,
and a seed or a target for the fuzzer in scripts/fuzz_python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.errors import SourceError
from stoker.sources.file_lists import list_file_lists
from stoker.sources.folders import find_layout, list_folder
from stoker.sources.source import SourceOptions
from stoker.sources.tar_format import is_compressed, is_tar
from stoker.sources.tars import find_tars, list_tars, split_of
from stoker.storage import location

if TYPE_CHECKING:
    from stoker.sources.source import SourceTree
    from stoker.storage import Location
    from stoker.types import Progress


SOURCE_KINDS = "folder of class folders or of train/ and validation/, folder of tars, tar, file list, ilsvrc.json"
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
    if path.is_dir():
        if without is not None and path.lies_in(without):
            without = None  # all of the source lies in it
        layout = find_layout(path.resolve(), without)
        tars = find_tars(layout.base)
        if tars and not layout.holds_folders(without):
            return list_tars(str(path), tars, layout.base, options, progress)
        return list_folder(path, layout, options, progress, without)
    if not path.is_file():
        problem = "is neither a folder nor a file" if path.exists() else "does not exist"
        raise SourceError(f"{root} {problem}; give a {SOURCE_KINDS}, or the URL of one", path=root)
    if is_tar(path) or is_compressed(path):
        return list_tars(root, {path: split_of(path.name)}, path.parent, options, progress)
    return list_file_lists(path, options, progress)
