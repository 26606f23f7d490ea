"""All kinds of sources, and `list_source`, which asks each of them in turn.

To add a kind: write a module with a function that claims a path, and one that lists it: it fills a
`stoker.sources.source.SourceBuilder` and returns its `Source`. End the module with a `Kind`, and add that to `KINDS`,
which help, messages and checks use. docs/explanation/architecture.md says what else it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.config import refuse_ineffective
from stoker.errors import SourceError
from stoker.sources.coco import COCO
from stoker.sources.file_lists import FILE_LISTS
from stoker.sources.folders import FLAT_FOLDER, FOLDER
from stoker.sources.image_tables import TABLES_OF_IMAGES
from stoker.sources.look import Look
from stoker.sources.mask_folders import MASK_FOLDERS
from stoker.sources.parquet import PARQUET
from stoker.sources.patterns import PATTERN
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
    TABLES_OF_IMAGES,
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
"""All kinds of sources, in the order in which they are asked: the first that claims a path lists it.

So a kind with files of its own comes before those that take any table, tar or folder.
"""

SOURCE_KINDS = ", ".join(kind.name for kind in reversed(KINDS))
"""Names of the kinds that `list_source` takes, for help and messages."""


def list_source(
    root: str,
    options: SourceOptions | None = None,
    progress: Progress | None = None,
    without: Location | None = None,
) -> Source:
    """List the images of a source of any kind.

    The path of any file may be the URL of an object instead. The same images have the same items, the same order and
    the same fingerprint wherever they lie.

    Args:
        root: Path or URL of the source.
        options: Options of the source.
        progress: Called after every few images or annotations.
        without: A folder to ignore, though it may lie in the source: where a dataset is to be built.

    Raises:
        SourceError: It does not exist, cannot be listed, or is damaged.
        ConfigError: An option does not fit.
        OSError: It cannot be read; a ``StorageError``, if its store cannot be reached.
    """
    look = Look(root, options, progress, without)
    for kind in KINDS:
        claim = kind.claim(look)
        if claim:
            others = {name: value for name, value in look.options.given().items() if name not in kind.options}
            refuse_ineffective(others, f"on {look.root}, which is read as {kind.name}")
            return kind.list(look, claim)
    problem = "is neither a folder nor a file" if look.path.exists() else "does not exist"
    raise SourceError(f"{root} {problem}; give a {SOURCE_KINDS}, or the URL of one", path=root)
