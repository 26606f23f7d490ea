r"""Files that a table or a COCO file names by the paths of another computer.

Such paths are absolute (``/data/photos/cats/1.jpg``), of Windows (``photos\cats\1.jpg``), or lead out of the folder
(``../photos/1.jpg``). The files of one folder there are those of the folder here that has the longest end of its path.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from stoker.config import option
from stoker.errors import SourceError
from stoker.storage import Location, from_uri, join

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from stoker.sources.walking import Skipped


_DRIVE, _LONGEST = re.compile(rb"[A-Za-z]:"), 4096


def path_parts(path: bytes) -> list[bytes]:
    """Return the parts of a path as a key of a store has them: none is empty or ``.``."""
    return [part for part in path.split(b"/") if part not in (b"", b".")]


def path_ends(path: bytes) -> list[bytes]:
    """Return what a path may be below another folder, the longest first: of most paths that is the path alone."""
    is_foreign = b"\\" in path or path[:1] == b"/" or _DRIVE.match(path) or b".." in path.split(b"/")
    if not is_foreign or len(path) > _LONGEST:
        return [path]
    parts = path_parts(path.replace(b"\\", b"/"))
    first = len(parts) - parts[::-1].index(b"..") if b".." in parts else 0
    return [b"/".join(parts[at:]) for at in range(first, len(parts))]


def own_names(base: Location) -> frozenset[bytes]:
    """Return what paths may begin with for the folder itself: its name, or ``data``, as darknet and CVAT call it."""
    return frozenset(os.fsencode(name) for name in {"data", base.name} if not (base / name).is_dir())


def without_own(name: bytes, own: Collection[bytes]) -> bytes:
    """Return a path without the name of the folder itself, if it begins with one."""
    first, _, rest = name.partition(b"/")
    return rest if first in own and rest else name


def find_moved(
    list_file: Location, paths: Iterable[bytes], files: Iterable[bytes], base: bytes, skipped: Skipped
) -> dict[bytes, bytes]:
    """Return the files that paths of another computer are certain to mean; others are left out.

    A path whose own folder is there means what lies in it. Folders side by side stay so: ``/u/val/1.jpg`` is not
    ``1.jpg`` where ``/u/train/2.jpg`` is ``train/2.jpg``.

    Args:
        list_file: What names them.
        paths: The paths of files that are not listed, without repeats.
        files: Paths of the listed files that nothing else names, below the folder of the source.
        base: That folder.
        skipped: Receives a warning that says what was taken.
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
        skipped.warnings.append(f"{list_file}: {len(moved):,} paths of another computer, read as files here: {shown}")
    return moved


def _longest_end(
    paths: Sequence[bytes], listed: Mapping[bytes, Collection[bytes]]
) -> tuple[bytes, dict[bytes, list[bytes]]]:
    """Return the longest end of the path of a folder that one has with files of these names, and the files of each."""
    names = {path_ends(path)[-1]: path for path in paths}
    for end in (each[: each.rfind(b"/") + 1] for each in path_ends(paths[0])):
        folders = [end] if end in listed and end else [each for each in listed if (b"/" + each).endswith(b"/" + end)]
        alike = {path: [each + name for each in folders if name in listed[each]] for name, path in names.items()}
        if any(alike.values()):
            return end, {path: files for path, files in alike.items() if files}
    return b"", {}
