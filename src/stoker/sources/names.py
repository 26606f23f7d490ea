r"""Classes, images and sidecars by names of files and folders; and files by paths of another computer.

A table or a COCO file may name files by paths of another computer: absolute ones (``/data/photos/1.jpg``), those of
Windows (``photos\cats\1.jpg``), or ones that lead out of the folder (``../photos/1.jpg``). All files of such a folder
are looked for in one folder here: the one that matches the longest end of the other's path.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, AnyStr

from stoker.config import IMAGE_SUFFIXES, format_some, option
from stoker.errors import SourceError
from stoker.splits import ANY_SPLIT, SPLIT_WORDS
from stoker.storage import Location, from_uri, join

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence


IMAGE_WORDS = "images?|imgs?|jpegimages|leftimg8bit|rgb|frames|photos?|pictures|inputs?"
"""Words in names of folders of images that do not name a class."""

_SPLIT_FOLDER = re.compile(
    rf"(?:stage_?[0-9]_)?({ANY_SPLIT})[0-9]?([-_ ]?({IMAGE_WORDS}|jpe?gs?|pngs?|tiffs?|set))?",
    re.IGNORECASE,
)

MASK_WORDS = (
    "ann(?:ot(?:ation)?s?)?|ground[-_ .]?truths?|gt(?:fine|coarse)?|labels?(?:txt)?|masks?"
    "|seg(?:mentation(?:class(?:png)?)?)?s?|trimaps?|targets?"
)
"""Words in names of masks or annotations, and of their folders."""

IMAGES_FOLDER = b"images"
"""Name of the folder of images in a class or a split, as in Tiny ImageNet."""

ANNOTATION_FOLDERS = frozenset({b"bounding_boxes", b"Annotations", b"annotations", b"Annotation"})
"""Names that are never a class or a split."""

DEVKIT_FOLDER = "ILSVRC2012_devkit_t12"
"""Folder that the development kit of ILSVRC 2012 unpacks to."""

NOT_CLASSES = ANNOTATION_FOLDERS | {b"lists", DEVKIT_FOLDER.encode()}
"""Folders that are neither splits nor classes."""

SIDECARS = frozenset({b".xml", b".txt", b".csv", b".json", b".md", b".html", b".db", b".ini", b".journal"})
"""Suffixes of files that lie beside images and are never images."""

JUNK = frozenset(
    b"__MACOSX .ipynb_checkpoints __pycache__ @eaDir @Recycle @Recently-Snapshot @tmp #recycle #snapshot lost+found"
    b" $RECYCLE.BIN $Recycle.Bin RECYCLER".split()
) | {b"System Volume Information"}
"""Folders that archivers, notebooks, network storage and operating systems create: never classes."""

_IMAGE_SUFFIXES = frozenset(f".{suffix}".encode() for suffix in IMAGE_SUFFIXES)

_SHOWN = 5

_DRIVE, _LONGEST = re.compile(rb"[A-Za-z]:"), 4096


def split_of_folder(name: bytes) -> str | None:
    """Return the split in the name of a folder of images, such as Kaggle's ``test1`` or ``test-jpg``; None without."""
    words = _SPLIT_FOLDER.fullmatch(os.fsdecode(name))
    return SPLIT_WORDS[words[1].lower()] if words else None


def path_parts(path: bytes) -> list[bytes]:
    """Return the parts of a path without those that are empty or ``.``, as in a key of a store."""
    return [part for part in path.split(b"/") if part not in (b"", b".")]


def path_ends(path: bytes) -> list[bytes]:
    """Return the ends of a path of another computer, the longest first; other paths are returned unchanged."""
    is_foreign = b"\\" in path or path[:1] == b"/" or _DRIVE.match(path) or b".." in path.split(b"/")
    if not is_foreign or len(path) > _LONGEST:
        return [path]
    parts = path_parts(path.replace(b"\\", b"/"))
    first = len(parts) - parts[::-1].index(b"..") if b".." in parts else 0
    return [b"/".join(parts[at:]) for at in range(first, len(parts))]


def own_names(base: Location) -> frozenset[bytes]:
    """Return the first parts of paths that may stand for the folder itself: its name, or ``data`` (darknet, CVAT)."""
    return frozenset(os.fsencode(name) for name in {"data", base.name} if not (base / name).is_dir())


def without_own(name: bytes, own: Collection[bytes]) -> bytes:
    """Return a path without its first part, if that is one of `own_names`."""
    first, _, rest = name.partition(b"/")
    return rest if first in own and rest else name


def find_moved(
    list_file: Location, paths: Iterable[bytes], files: Iterable[bytes], base: bytes, warnings: list[str]
) -> dict[bytes, bytes]:
    """Return the files that paths of another computer certainly mean; other paths are omitted.

    A path whose folder exists here means the file in it. Sibling folders stay siblings: ``/u/val/1.jpg`` is not
    ``1.jpg`` if ``/u/train/2.jpg`` is ``train/2.jpg``. ``paths``, of ``list_file``, are unique and not among the listed
    files. ``files``, below ``base``, are listed and have no other path. A warning says what was found.
    """
    named: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for path in paths:
        if path_ends(path) != [path]:
            named[path.replace(b"\\", b"/").rpartition(b"/")[0] + b"/"].append(path)
    listed: defaultdict[bytes, set[bytes]] = defaultdict(set)
    for file in files if named else ():
        folder, slash, name = file.rpartition(b"/")
        listed[folder + slash].add(name)
    roots: dict[bytes, bytes] = {}
    matches: dict[bytes, dict[bytes, list[bytes]]] = {}
    for folder, some in named.items():
        inner = from_uri(join(base, folder))
        is_back = b".." in some[0].split(b"/") and inner.resolve().lies_in(from_uri(base))
        if b"\\" in some[0] or is_back or not inner.is_dir():
            end, matches[folder] = _longest_end(some, listed)
            roots[folder] = folder.removesuffix(end)
    known = {root for folder, root in roots.items() if matches[folder]}
    moved: dict[bytes, bytes] = {}
    for folder, root in roots.items():
        above = {root[:at] for at in range(root[:1] == b"/", len(root))}
        for path, alike in matches[folder].items() if above.isdisjoint(known) else ():
            if len(alike) > 1:
                shown = " or ".join(map(os.fsdecode, sorted(alike)[:2]))
                message = f"{list_file}: {os.fsdecode(path)!r} may be {shown}; give the folder of the images as"
                raise SourceError(f"{message} {option('image_root')}", path=str(list_file))
            moved[path] = alike[0]
    counts = Counter(moved.values())
    moved = {path: file for path, file in moved.items() if counts[file] == 1}
    for path, file in list(moved.items())[:1]:
        shown = f"{os.fsdecode(path)} is {os.fsdecode(file)}"
        warnings.append(f"{list_file}: {len(moved):,} paths of another computer, read as files here: {shown}")
    return moved


def _longest_end(
    paths: Sequence[bytes], listed: Mapping[bytes, Collection[bytes]]
) -> tuple[bytes, dict[bytes, list[bytes]]]:
    """Return the longest end of the folder of ``paths`` that a listed folder with such files has, and those files."""
    names = {path_ends(path)[-1]: path for path in paths}
    for end in (each[: each.rfind(b"/") + 1] for each in path_ends(paths[0])):
        folders = [end] if end in listed and end else [each for each in listed if (b"/" + each).endswith(b"/" + end)]
        alike = {path: [each + name for each in folders if name in listed[each]] for name, path in names.items()}
        if any(alike.values()):
            return end, {path: files for path, files in alike.items() if files}
    return b"", {}


def shown_names(names: Sequence[bytes | str]) -> str:
    """Return a few names for a message."""
    return format_some(names, _SHOWN, os.fsdecode)


def is_sidecar(name: bytes) -> bool:
    """Return whether a file of that name lies beside images without being one."""
    return suffix_of(name) in SIDECARS


def is_image_name(name: bytes) -> bool:
    """Return whether the suffix of a file is that of an image."""
    return suffix_of(name) in _IMAGE_SUFFIXES


def may_be_image(name: bytes) -> bool:
    """Return whether a file among others may be an image: it has the suffix of one, or none."""
    return is_image_name(name) or not suffix_of(name)


def suffix_of(name: bytes) -> bytes:
    """Return the suffix of the name of a file, in lower case and with its dot; empty without one."""
    return name[name.rfind(b".") :].lower() if b"." in name else b""


def divide_suffix(path: AnyStr) -> tuple[AnyStr, AnyStr]:
    """Return a path without its suffix, and the suffix; names such as ``.hidden`` have none."""
    return os.path.splitext(path)  # noqa: PTH122 - pathlib has no bytes paths


def image_stem(path: bytes) -> bytes:
    """Return the name of a file without folders and suffix, which is the name of its annotation, too."""
    return divide_suffix(path.rpartition(b"/")[2])[0]


def replace_last(parts: list[bytes], name: bytes, new: bytes) -> bool:
    """Rename the last part of a path that is called ``name``; return whether there is one."""
    if name not in parts:
        return False
    parts[len(parts) - 1 - parts[::-1].index(name)] = new
    return True


def path_below(path: Location, base: Location) -> bytes:
    """Return a path relative to a folder that it is or lies in."""
    return os.fsencode("/".join(path.parts[len(base.parts) :]))
