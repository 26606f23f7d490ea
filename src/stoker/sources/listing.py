"""One function that lists any source of images, by asking each kind of source in turn.

To add a kind: write a module with a function that claims a place and one that lists it, which fills a
`stoker.sources.source_builder.SourceBuilder` and returns its `Source`; end it with a `Kind`, and add that to
`KINDS`, which help, messages and checks follow. docs/explanation/architecture.md says what else it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.config import option
from stoker.errors import ConfigError, SourceError
from stoker.sources.coco import COCO
from stoker.sources.file_lists import FILE_LISTS
from stoker.sources.file_patterns import PATTERN
from stoker.sources.flat_folders import FLAT_FOLDER
from stoker.sources.folders import FOLDER
from stoker.sources.kind import Kind, Look
from stoker.sources.mask_folders import MASK_FOLDERS
from stoker.sources.metadata import METADATA
from stoker.sources.parquet import PARQUET
from stoker.sources.tars import TARS
from stoker.sources.url_lists import URLS
from stoker.sources.voc import VOC
from stoker.sources.webdataset import WEBDATASET
from stoker.sources.yolo import YOLO

if TYPE_CHECKING:
    from stoker.sources.options import SourceOptions
    from stoker.sources.source import Source
    from stoker.storage import Location
    from stoker.types import Progress


KINDS = (
    YOLO,
    VOC,
    METADATA,
    MASK_FOLDERS,
    COCO,
    WEBDATASET,
    URLS,
    PARQUET,
    TARS,
    FILE_LISTS,
    PATTERN,
    FLAT_FOLDER,
    FOLDER,
)
"""All kinds of sources, in the order in which they are asked: the first that claims a place lists it."""

SOURCE_KINDS = ", ".join(kind.name for kind in reversed(KINDS))
"""What `list_source` takes, in the words of help and messages."""


def list_source(
    root: str,
    options: SourceOptions | None = None,
    progress: Progress | None = None,
    without: Location | None = None,
) -> Source:
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
    look = Look(root, options, progress, without)
    for kind in KINDS:
        claim = kind.claim(look)
        if claim:
            _check_options(kind, look)
            return kind.list(look, claim)
    problem = "is neither a folder nor a file" if look.path.exists() else "does not exist"
    raise SourceError(f"{root} {problem}; give a {SOURCE_KINDS}, or the URL of one", path=root)


def _check_options(kind: Kind, look: Look) -> None:
    for name, value in look.options.given().items():
        if value is not False and name not in kind.options:
            message = f"{option(name)} has no effect on {look.root}, which is read as {kind.name}; omit it"
            raise ConfigError(message)
