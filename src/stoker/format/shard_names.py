"""The names of shards: written as Stoker or other systems write them, and read in any of these ways.

Shards are found by their names, or else by their first bytes: a directory of well-named shards is listed and nothing of
it is read. Of other files that may be shards, twelve bytes are read; if none of the first hundred files with an
extension is a shard, no more files with it are read.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stoker.config import IMAGE_SUFFIXES, option
from stoker.errors import ConfigError, DatasetNotFoundError
from stoker.format.frames import holds_records
from stoker.format.index import INDEX_SUFFIX
from stoker.splits import SPLIT_WORDS, splits_in
from stoker.storage import TEMPORARY_MARK, location, stoppable_pool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stoker.storage import Child, Location, LocationLike

MAX_SHARDS = 99_999
"""Most shards of a split: the names hold five digits."""

_FIELD = re.compile(r"\{([a-z]*)(?::0?([1-9]))?\}")
_FIELDS = frozenset({"split", "shard", "shards"})
_NAMED = {
    "default": "{split}-{shard:05}-of-{shards:05}.tfrecord",
    "google": "{split}-{shard:05}-of-{shards:05}",
    "part": "output_file-part-{shard}.tfrecord",
}
_PER_CLASS = "per-class"
_HOPS_SPLITS = {"validation": "val"}
_MAX_NAME = 200
_NUMBERED = re.compile(
    r"(?P<stem>.*?)-(?P<shard>[0-9]{5,9})-of-(?P<shards>[0-9]{5,9})(?P<suffix>(?:\.tfrecords?)?)", re.ASCII
)
_NUMBERED_ANYHOW = re.compile(_NUMBERED.pattern.replace(r"(?:\.tfrecords?)?", r"(?:\.[a-zA-Z0-9_.]+)?"), re.ASCII)
_PLAIN = re.compile(r"(?P<stem>.+)\.tfrecords?(?:\.gz)?", re.ASCII)
_OTHER = re.compile(
    r".*\.(?:txt|jsonl?|[ct]sv|xml|html|md|ya?ml|toml|log|py|ipynb|sh|tar|tgz|zip|parquet|arrow|np[yz]|mat|pdf|svg|idx"
    r"|index)",
    re.ASCII | re.IGNORECASE | re.DOTALL,
)
"""Texts, archives and indexes: like images, they are never opened to look for records."""
_NUMBER = re.compile(r"[0-9]{1,9}")
_FILES_TRIED = 100
"""If the first hundred files of an extension hold no records, the others are not read."""


@dataclass(frozen=True, slots=True)
class ShardNaming:
    """How shard files are named.

    ===============  ======================================================================================
    text             files
    ===============  ======================================================================================
    ``default``      ``train-00000-of-01024.tfrecord``
    ``google``       ``train-00000-of-01024``
    ``tfds:NAME``    ``NAME-train.tfrecord-00000-of-00008``
    ``part``         ``output_file-part-0.tfrecord``; for one split
    ``per-class``    ``train/<label>.tfrecords``, a shard for each class; ``val/val.tfrecords``, ``test/test.tfrecords``
    a template       any other text with ``{shard}``, and ``{split}`` where there are several; ``{shards}`` is their
                     number; ``{shard:05}`` writes five digits
    ===============  ======================================================================================

    Raises:
        ConfigError: ``text`` is none of these.
    """

    text: str = "default"

    def __post_init__(self) -> None:
        if self.per_class:
            return
        template = self._template
        fields = {match[1] for match in _FIELD.finditer(template)}
        rest = _FIELD.sub("", template)
        if "shard" not in fields or not fields <= _FIELDS or not re.fullmatch(r"[A-Za-z0-9._-]*", rest):
            raise self._refused("use {shard}, {split} and {shards} between letters, digits, dots, - and _")
        name = self.name("validation", 0, 1)
        if len(name) > _MAX_NAME or name.startswith(".") or name.endswith((".idx", ".json", ".jsonl", ".txt")):
            raise self._refused("that is not the name of a shard")

    @property
    def per_class(self) -> bool:
        """Whether every class of train is a shard of its own."""
        return self.text == _PER_CLASS

    @property
    def names_splits(self) -> bool:
        """Whether the names of different splits differ."""
        return self.per_class or "{split}" in self._template

    @property
    def tells_number(self) -> bool:
        """Whether a name says how many shards there are."""
        return "{shards" in self._template

    @property
    def dataset_name(self) -> str | None:
        """NAME of ``tfds:NAME``."""
        return self.text[len("tfds:") :] if self.text.startswith("tfds:") else None

    def name(self, split: str, shard: int, shards: int) -> str:
        """Return the path of a shard, relative to the dataset; with ``per-class``, ``shard`` is the label."""
        if self.per_class:
            folder = _HOPS_SPLITS.get(split, split)
            return f"{folder}/{shard if split == 'train' else folder}.tfrecords"
        values = {"split": split, "shard": shard, "shards": shards}
        return _FIELD.sub(lambda match: f"{values[match[1]]:0>{match[2] or 1}}", self._template)

    @property
    def _template(self) -> str:
        if self.dataset_name is not None:
            return f"{self.dataset_name}-{{split}}.tfrecord-{{shard:05}}-of-{{shards:05}}"
        return _NAMED.get(self.text, self.text)

    def _refused(self, advice: str) -> ConfigError:
        known = ", ".join([*_NAMED, _PER_CLASS])
        return ConfigError(
            f"{option('shard_names')} {self.text!r} is not understood: write {known}, tfds:NAME or a template; {advice}"
        )


@dataclass(frozen=True, slots=True)
class ShardName:
    """What the name of a file says about a shard."""

    split: str  # split it belongs to; ``train`` when the name does not say
    shard: int | None  # its number, from 0; None when the name has none
    shards: int | None  # how many shards the split has; None when the name does not say


def parse_shard_name(name: str) -> ShardName | None:
    """Return what the name of a file says, or None if it is not the name of a shard.

    Known names are ``train-00000-of-01024`` (Google's scripts), the same with ``.tfrecord``,
    ``NAME-train.tfrecord-00000-of-00008`` (TFDS), and any other name that ends in ``.tfrecord`` or ``.tfrecords``. The
    split is that of the first of `SPLIT_WORDS` in the name, else ``train``.
    """
    if name.endswith(INDEX_SUFFIX) or TEMPORARY_MARK in name or name.startswith("."):
        return None
    if match := _NUMBERED.fullmatch(name):
        shard, shards = int(match["shard"]), int(match["shards"])
        return ShardName(_split_in(match["stem"]), shard, shards) if shard < shards else None
    if match := _PLAIN.fullmatch(name):
        return ShardName(_split_in(match["stem"]), None, None)
    return None


def name_of_records(name: str) -> ShardName:
    """Return what the name of a file with records says, whatever its extension."""
    if match := _NUMBERED_ANYHOW.fullmatch(name):
        shard, shards = int(match["shard"]), int(match["shards"])
        if shard < shards:
            return ShardName(_split_in(match["stem"]), shard, shards)
    return ShardName(_split_in(name), None, None)


def may_hold_records(name: str) -> bool:
    """Return whether to read the first bytes of a file to look for records, though it is not named as a shard."""
    if TEMPORARY_MARK in name or name.startswith("."):
        return False
    return not has_image_suffix(name) and not _OTHER.fullmatch(name)


def has_image_suffix(name: str) -> bool:
    """Return whether the extension of a file is that of an image."""
    _, dot, suffix = name.rpartition(".")
    return bool(dot) and suffix.lower() in IMAGE_SUFFIXES


def _split_in(stem: str) -> str:
    return next(iter(splits_in(stem)), "train")


# Which files are shards.


@dataclass(frozen=True, slots=True)
class SplitShards:
    """The shards of one split, found by their names."""

    paths: tuple[Location, ...]  # in the order of their numbers, or else of their names
    missing: tuple[int, ...]  # numbers of shards that the other names promise, but that do not exist


def find_shards(named: LocationLike) -> dict[str, SplitShards]:
    """Return by split the shards in a directory without a manifest, or those that a file or a pattern names.

    Shards in folders of a directory that are called by `SPLIT_WORDS` belong to the split of that name;
    they count only if none lies in the directory itself. A file or a pattern has no missing shards: whoever names some
    of the shards wants these. Without any shard the result is empty.

    Raises:
        OSError: The directory cannot be listed, or a file that may be a shard cannot be read.
    """
    path = location(named)
    if not path.is_dir():
        groups: dict[str, list[Location]] = {}
        alone = path.is_file()
        # A pipe that a pattern matches is not read, which would wait; a broken link is a missing shard.
        matching = (shard for shard in path.matching() if parse_shard_name(shard.name) is not None or shard.is_file())
        for shard_name, shard in shards_among([path] if alone else matching, alone=alone):
            groups.setdefault(shard_name.split, []).append(shard)
        return {split: SplitShards(tuple(paths), ()) for split, paths in sorted(groups.items())}
    children = path.children()
    folders = (os.fsdecode(child.name) for child in children if child.is_folder)
    below = {name: _below(path / name) for name in folders if name.lower() in SPLIT_WORDS}
    return group_shards(_files(path, children), below)


def _below(folder: Location) -> Iterator[Location]:
    yield from _files(folder, folder.children())


def _files(folder: Location, children: Iterable[Child]) -> Iterator[Location]:
    """Return the files of a folder, except those with names of images, of which there may be millions."""
    names = (os.fsdecode(child.name) for child in children if child.is_file)
    return (folder / name for name in names if not has_image_suffix(name))


def refuse_incomplete(path: Location, splits: Mapping[str, SplitShards]) -> None:
    """Raise an error if shards are missing that the names of the others promise."""
    for split in splits.values():
        if split.missing:
            message = f"{path} lacks shards {list(split.missing[:5])} that the names of the others promise"
            raise DatasetNotFoundError(f"{message}; complete it before reading", path=str(path))


def group_shards(files: Iterable[Location], folders: Mapping[str, Iterable[Location]]) -> dict[str, SplitShards]:
    """Return the shards among the sorted files of a directory or, without any, of its folders named as splits.

    See `find_shards`.
    """
    groups: dict[str, list[tuple[ShardName, Location]]] = {}
    for shard_name, path in shards_among(files):
        groups.setdefault(shard_name.split, []).append((shard_name, path))
    if not groups:
        for folder, below in folders.items():
            split = SPLIT_WORDS[folder.lower()]
            shards = [(replace(shard_name, split=split), path) for shard_name, path in shards_among(below)]
            groups.setdefault(split, []).extend(shards)
    return {split: _found_split(shards) for split, shards in sorted(groups.items()) if shards}


def shards_among(paths: Iterable[Location], *, alone: bool = False) -> list[tuple[ShardName, Location]]:
    """Return the shards among some files, in their order; with ``alone``, the file that the user names, by any name."""
    named = [(path, parse_shard_name(path.name)) for path in paths]
    others = [path for path, shard_name in named if shard_name is None and (alone or may_hold_records(path.name))]
    holding = set(_holding_records(others, alone=alone))
    candidates = (
        (shard_name or (name_of_records(path.name) if path in holding else None), path) for path, shard_name in named
    )
    return [(shard_name, path) for shard_name, path in candidates if shard_name is not None]


def _holding_records(paths: Sequence[Location], *, alone: bool) -> Iterator[Location]:
    """Yield the files that begin as a TFRecord does.

    A file without permission to read is an error only if others of its extension are shards, or the user has named it.
    """
    if not paths:
        return
    groups: dict[str, list[Location]] = {}
    for path in paths:
        groups.setdefault(_NUMBER.sub("", path.suffix), []).append(path)
    with stoppable_pool(paths[0].requests_at_once, "stoker-find") as pool:
        for alike in groups.values():
            has_records, refused = False, None
            for first in range(0, len(alike), _FILES_TRIED):
                some = alike[first : first + _FILES_TRIED]
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


def _found_split(shards: list[tuple[ShardName, Location]]) -> SplitShards:
    ordered = sorted(shards, key=lambda pair: (pair[0].shard is None, pair[0].shard or 0, _natural(pair[1].name)))
    promised = max((shard_name.shards or 0 for shard_name, _ in shards), default=0)
    present = {shard_name.shard for shard_name, _ in shards}
    # A hostile name may promise a billion shards; missing ones are listed only up to the most that can exist.
    missing = tuple(number for number in range(min(promised, MAX_SHARDS)) if number not in present)
    return SplitShards(tuple(path for _, path in ordered), missing)


def _natural(name: str) -> tuple[int, str]:
    """Return a sort key that puts ``10.tfrecords`` behind ``9.tfrecords``."""
    leading = _NUMBER.match(name)
    return (int(leading[0]) if leading else -1, name)
