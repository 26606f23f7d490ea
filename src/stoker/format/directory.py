"""The directory of a dataset: the names of its files, its text files within bounds, and its shards.

Shards are found by their names, and those with other names by their first bytes: a directory of well-named shards is
listed and nothing of it is read. Of other files that may be shards, twelve bytes are read: of all of one extension, or
of the first hundred if none of those is a shard.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from stoker import _native
from stoker.config import SPLIT_NAMES
from stoker.errors import DatasetNotFoundError, ManifestError
from stoker.format.frames import holds_records
from stoker.format.shard_names import (
    INDEX_SUFFIX,
    MAX_SHARDS,
    is_image_name,
    may_hold_records,
    name_of_records,
    parse_shard_name,
)
from stoker.storage import location, stoppable_pool
from stoker.strict_json import parse_json
from stoker.types import Reject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from stoker.format.shard_names import ShardName
    from stoker.storage import Child, Location, LocationLike


MANIFEST_NAME = "manifest.json"
LABELS_NAME = "labels.txt"
REJECTS_NAME = "rejects.jsonl"
JOURNAL_NAME = "build.journal"
"""In an unfinished build on this machine."""
BUILD_FOLDER = ".stoker-build"
"""In an unfinished build in a store, which cannot append to a file, or in parts, which write at the same time."""
SIZES_NAME = "sizes.txt"
"""Of the preset ``tiny-imagenet``."""

_HOPS_FOLDER = "tfrecords_raw"
"""What the Hops notebook calls its output, which lies below the images; its ``sizes.txt`` lies beside it."""
_NUMBER = re.compile(r"[0-9]{1,9}")
_MANY_WITHOUT = 100
"""Where so many files of one extension were looked into and none holds records, the others are not looked into."""
_FOLDERS_TRIED = 8
_NAMES_TRIED = 64
_DEEPEST = 3
_PROBED = 2
_HEAD_BYTES = 512
_MAX_LISTED_BYTES = 2**30
_MAX_REJECTS_BYTES = 2**30
_NO_TEXT = (errno.EFBIG, errno.EINVAL, errno.EISDIR, errno.ELOOP)


@dataclass(frozen=True, slots=True)
class ListedFile:
    """What a manifest says about a file that is not a shard, such as ``labels.txt``."""

    size_bytes: int
    crc32c: int  # of all its bytes

    @classmethod
    def of(cls, content: bytes) -> Self:
        """Return what a manifest says about a file with this content."""
        return cls(len(content), _native.crc32c(content))

    def check(self, content: bytes, path: Location) -> None:
        """See that a file has the content that the manifest lists."""
        actual = ListedFile.of(content)
        if actual != self:
            what = f"{actual.size_bytes} bytes with the CRC-32C {actual.crc32c:08x}"
            listed = f"{self.size_bytes} bytes with {self.crc32c:08x}"
            message = f"{path} was changed or damaged after the build: it has {what}, but {MANIFEST_NAME} says {listed}"
            raise ManifestError(f"{message}; restore it, or build again", path=str(path))


@dataclass(frozen=True, slots=True)
class FoundSplit:
    """The shards of one split, found by their names."""

    # their paths, in the order of their numbers, those without one in the order of their names
    paths: tuple[Location, ...]
    missing: tuple[int, ...]  # numbers that the other names promise and that are not there


def sizes_path(directory: Location) -> Location:
    """Return where ``sizes.txt`` of a dataset lies: in its directory, or beside it where Hops looks for it there."""
    absolute = directory.absolute()
    return (absolute.parent if absolute.name == _HOPS_FOLDER else directory) / SIZES_NAME


def is_unfinished(directory: Location) -> bool:
    """Return whether a build has begun in a directory and not ended.

    One that was killed after it had written the manifest, and before it could clean up, counts too.
    """
    try:
        return (directory.has_locks and (directory / JOURNAL_NAME).exists()) or (directory / BUILD_FOLDER).exists()
    except PermissionError as error:
        if directory.is_local:
            error.filename = str(directory)  # the journal need not be there: the directory cannot be looked into
        raise


def has_journal_folder(directory: Location) -> bool:
    """Return whether the journal of a dataset is a folder: in a store always, on a disk of a build in parts."""
    return not directory.has_locks or ((directory / BUILD_FOLDER).is_dir() and not (directory / JOURNAL_NAME).lexists())


def find_shards(named: LocationLike) -> dict[str, FoundSplit]:
    """Return the shards that a directory without a manifest, a file or a pattern names, by split; empty without any.

    Shards in folders ``train``, ``val``, ``validation`` and ``test`` of a directory belong to the split of that name;
    they count when none lies in the directory itself. Of a file or a pattern nothing is missing: who names some of the
    shards wants those.

    Raises:
        OSError: The directory cannot be listed, or a file that may be a shard cannot be read.
    """
    place = location(named)
    if not place.is_dir():
        groups: dict[str, list[Location]] = {}
        alone = place.is_file()
        # A pipe that a pattern matches is not waited for; a link that leads nowhere is a shard that is missing.
        matching = (path for path in place.matching() if parse_shard_name(path.name) is not None or path.is_file())
        for shard_name, path in _shards_among([place] if alone else matching, alone=alone):
            groups.setdefault(shard_name.split, []).append(path)
        return {split: FoundSplit(tuple(paths), ()) for split, paths in sorted(groups.items())}
    children = place.children()
    folders = (os.fsdecode(child.name) for child in children if child.is_folder)
    return group_shards(
        _files(place, children), {name: _below(place / name) for name in folders if name in SPLIT_NAMES}
    )


def _below(folder: Location) -> Iterator[Location]:
    yield from _files(folder, folder.children())


def _files(folder: Location, children: Iterable[Child]) -> Iterator[Location]:
    return (folder / os.fsdecode(child.name) for child in children if child.is_file)


def refuse_incomplete(place: Location, splits: Mapping[str, FoundSplit]) -> None:
    """See that all shards are there that the names of the others promise."""
    for split in splits.values():
        if split.missing:
            message = f"{place} lacks shards {list(split.missing[:5])} that the names of the others promise"
            raise DatasetNotFoundError(f"{message}; complete it before reading", path=str(place))


def group_shards(files: Iterable[Location], folders: Mapping[str, Iterable[Location]]) -> dict[str, FoundSplit]:
    """Return the shards among the sorted files of a directory, and if there are none, of its `SPLIT_NAMES` folders.

    See `find_shards`.
    """
    groups: dict[str, list[tuple[ShardName, Location]]] = {}
    for shard_name, path in _shards_among(files):
        groups.setdefault(shard_name.split, []).append((shard_name, path))
    if not groups:
        for folder, below in folders.items():
            shards = [
                (replace(shard_name, split=SPLIT_NAMES[folder]), path) for shard_name, path in _shards_among(below)
            ]
            groups.setdefault(SPLIT_NAMES[folder], []).extend(shards)
    return {split: _found_split(shards) for split, shards in sorted(groups.items()) if shards}


def _shards_among(paths: Iterable[Location], *, alone: bool = False) -> list[tuple[ShardName, Location]]:
    """Return which of some files are shards, in their order; with ``alone``, as a person names one, by any name."""
    named = [(path, parse_shard_name(path.name)) for path in paths]
    others = [path for path, shard_name in named if shard_name is None and (alone or may_hold_records(path.name))]
    holding = set(_holding_records(others, alone=alone))
    candidates = (
        (shard_name or (name_of_records(path.name) if path in holding else None), path) for path, shard_name in named
    )
    return [(shard_name, path) for shard_name, path in candidates if shard_name is not None]


def _holding_records(paths: Sequence[Location], *, alone: bool) -> Iterator[Location]:
    """Yield the files that begin as a TFRecord does; after many without records, an extension is given up.

    One that may not be read is an error only if others of its extension are shards, or a person has named it.
    """
    if not paths:
        return
    groups: dict[str, list[Location]] = {}
    for path in paths:
        groups.setdefault(_NUMBER.sub("", path.suffix), []).append(path)
    with stoppable_pool(paths[0].requests_at_once, "stoker-find") as pool:
        for alike in groups.values():
            has_records, refused = False, None
            for first in range(0, len(alike), _MANY_WITHOUT):
                some = alike[first : first + _MANY_WITHOUT]
                for path, holds in zip(some, pool.map(_holds_records, some), strict=True):
                    if isinstance(holds, PermissionError):
                        refused = refused or holds
                    elif holds:
                        has_records = True
                        yield path
                if refused is not None and (has_records or alone):
                    raise refused
                if not has_records:
                    break


def _holds_records(path: Location) -> bool | PermissionError:
    try:
        return holds_records(path)
    except PermissionError as error:
        return error


def find_shard_folder(place: Location, without: Callable[[Location], bool] | None = None) -> Location | None:
    """Return a folder below a directory that holds shards, as the folder of a version of TFDS does; None without one.

    For directories that hold none themselves. Some folders of each level are tried, and some names in each: a tree of
    images costs a few listings. A folder with an image in it is one of images, and one that cannot be listed counts as
    empty. ``without`` says which folders do not count.
    """
    level = [place]
    for _ in range(_DEEPEST):
        below: list[Location] = []
        for folder in level:
            children = _some_children(folder)
            names = sorted({os.fsdecode(child.name) for child in children if child.is_folder})
            inner = [folder / name for name in names if not name.startswith(".")][:_FOLDERS_TRIED]
            below += [candidate for candidate in inner if without is None or not without(candidate)]
        for folder in below[:_FOLDERS_TRIED]:
            files = [os.fsdecode(child.name) for child in _some_children(folder) if child.is_file]
            if any(map(is_image_name, files)):
                continue
            if any(parse_shard_name(name) is not None for name in files):
                return folder
            unknown = [folder / name for name in sorted(set(files)) if may_hold_records(name)]
            if _shards_among(unknown[:_PROBED]):
                return folder
        level = below[:_FOLDERS_TRIED]
    return None


def _some_children(folder: Location) -> list[Child]:
    try:
        return list(itertools.islice(folder.some_children(), _NAMES_TRIED))
    except PermissionError:  # listing it as a folder of images gives a better error
        return []


def no_records(place: Location) -> DatasetNotFoundError:
    """Return the error about a place that names no shard: it says what there is instead, and what to give."""
    return DatasetNotFoundError(_what_instead(place), path=str(place))


def _what_instead(place: Location) -> str:
    is_folder = place.is_dir()
    if not is_folder and place.exists():
        return _what_file(place)
    not_one = f"{place} is not a dataset: "
    if not is_folder:
        matches = len(place.matching())
        if not matches:
            return not_one + "there is no such file or directory, and no file matches it"
        files = "1 file matches" if matches == 1 else f"{matches} files match"
        return not_one + f"{files} it, but none begins as a TFRecord does"
    if next(iter(place.some_children()), None) is None:
        return not_one + "the directory is empty"
    below = find_shard_folder(place)
    if below is not None:
        return not_one + f"no manifest.json and no TFRecord lies in it; the TFRecords are in {below}, give that"
    return not_one + "no manifest.json and no TFRecord lies in it; 'stoker build' makes a dataset of images"


def _what_file(path: Location) -> str:
    if path.name in (MANIFEST_NAME, LABELS_NAME, REJECTS_NAME, JOURNAL_NAME):
        return f"{path} is not a TFRecord, but the {path.name} of a dataset; give the directory, {path.parent}"
    if path.suffix == INDEX_SUFFIX:
        return f"{path} is not a TFRecord, but the index of one; give the TFRecord itself"
    head = path.read_head(_HEAD_BYTES) if path.is_file() else b""
    if not path.is_file():
        what = "is a pipe or a device"
    elif not head:
        what = "is empty"
    elif all(byte in b"\t\n\f\r" or 32 <= byte != 127 for byte in head):
        what = "is a text file"
    else:
        what = f"begins with the bytes {head[:4].hex(' ')}"
    return f"{path} is not a TFRecord: it {what}; give a TFRecord, a directory of them, or a dataset"


def _found_split(shards: list[tuple[ShardName, Location]]) -> FoundSplit:
    ordered = sorted(shards, key=lambda pair: (pair[0].shard is None, pair[0].shard or 0, _natural(pair[1].name)))
    promised = max((shard_name.shards or 0 for shard_name, _ in shards), default=0)
    there = {shard_name.shard for shard_name, _ in shards}
    # A hostile name may promise a billion shards; what is missing is named only where shards can exist.
    missing = tuple(number for number in range(min(promised, MAX_SHARDS)) if number not in there)
    return FoundSplit(tuple(path for _, path in ordered), missing)


def _natural(name: str) -> tuple[int, str]:
    """Return a key that puts ``10.tfrecords`` behind ``9.tfrecords``."""
    leading = _NUMBER.match(name)
    return (int(leading[0]) if leading else -1, name)


def read_text(path: Location, limit: int, kind: str, listed: ListedFile | None = None) -> bytes:
    """Return the content of one of the text files of a dataset, which is a ``kind`` such as ``manifest``.

    Raises:
        FileNotFoundError: There is none.
        ManifestError: It is larger than ``limit``, or not as ``listed``, or no regular file, or leads nowhere.
    """
    try:
        content = path.read_at_most(limit)
    except FileNotFoundError:
        if not path.lexists():
            raise
        problem = "is a broken link"
    except OSError as error:
        if error.errno not in _NO_TEXT:
            raise
        problem = str(error.strerror)
    else:
        if listed is not None:
            listed.check(content, path)
        return content
    message = f"{path} {problem[0].lower()}{problem[1:]}, so it is not a {kind}; restore it, or build again"
    raise ManifestError(message, path=str(path))


def write_listed(path: Location, content: bytes) -> ListedFile:
    """Write a file atomically, and return what the manifest says about it."""
    path.write_atomically(content)
    return ListedFile.of(content)


def check_listed(directory: Location, name: str, listed: ListedFile) -> None:
    """See that a file beside the shards is there, as the manifest lists it.

    ``sizes.txt`` of a dataset called ``tfrecords_raw`` lies outside its directory, so it may be missing.

    Raises:
        ManifestError: It is missing, or another.
    """
    path = sizes_path(directory) if name == SIZES_NAME else directory / name
    try:
        read_text(path, _MAX_LISTED_BYTES, f"{name} of a dataset", listed)
    except FileNotFoundError as error:
        if path.parent == directory:
            raise ManifestError(f"{path} is missing; restore it, or build again", path=str(path)) from error


# ``rejects.jsonl``: one JSON object a line for each source item that is not in the dataset.


def write_rejects(directory: LocationLike, rejects: Iterable[Reject]) -> ListedFile:
    """Write the rejects of a dataset atomically, and return what the manifest says about the file.

    The file is there, and empty, when there are none.
    """
    lines = [json.dumps({"key": r.key, "split": r.split, "reason": r.reason}) + "\n" for r in rejects]
    return write_listed(location(directory) / REJECTS_NAME, "".join(lines).encode())


def read_rejects(directory: LocationLike, listed: ListedFile | None = None) -> tuple[Reject, ...]:
    """Return the rejects of a dataset in the order of the build; none when there is no file.

    Raises:
        ManifestError: It is not as ``listed``; or a line is not what it should be, and the message names the line.
    """
    path = location(directory) / REJECTS_NAME
    if not path.lexists():
        return ()
    content = read_text(path, _MAX_REJECTS_BYTES, "list of rejects", listed)
    rejects = []
    for number, line in enumerate(content.removesuffix(b"\n").split(b"\n")):
        if not line and not number:
            continue  # nothing was rejected
        try:
            rejects.append(_reject(parse_json(line)))
        except (ValueError, TypeError, KeyError) as error:
            message = f"{path} line {number + 1} is not a reject: {error}; the dataset itself is not affected"
            raise ManifestError(message, path=str(path), record=number) from error
    return tuple(rejects)


def _reject(entry: dict[str, object]) -> Reject:
    key, split, reason = (entry[name] for name in ("key", "split", "reason"))
    if not (isinstance(key, str) and isinstance(split, str) and isinstance(reason, str)):
        raise TypeError("key, split and reason must be texts")
    return Reject(key, split, reason)
