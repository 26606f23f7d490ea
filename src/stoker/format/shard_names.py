"""The names of shards: written in the project's own way or those of other systems, and read in any of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stoker.config import SPLIT_NAMES, full_split_name, option
from stoker.errors import ConfigError
from stoker.storage import TEMPORARY_MARK

INDEX_SUFFIX = ".idx"
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
_IMAGE = re.compile(r".*\.(?:jpe?g|png|gif|bmp|webp|tiff?|ppm|jp2|avif|hei[cf])", re.ASCII | re.IGNORECASE | re.DOTALL)
_OTHER = re.compile(
    r".*\.(?:txt|jsonl?|[ct]sv|xml|html|md|ya?ml|toml|log|py|ipynb|sh|tar|tgz|zip|parquet|arrow|np[yz]|mat|pdf|svg|idx"
    r"|index)",
    re.ASCII | re.IGNORECASE | re.DOTALL,
)
"""Texts, archives and indexes. They and images are never looked into to see whether they hold records."""
_SPLIT_WORD = re.compile(rf"(?:^|[^a-z])({'|'.join(SPLIT_NAMES)})(?:$|[^a-z])", re.ASCII)


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
        ConfigError: It is none of them.
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
        """Return the file name of a shard, relative to the dataset; of ``per-class`` ones ``shard`` is the label."""
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
    """What the name of a shard says."""

    split: str  # split it belongs to; ``train`` when the name does not say
    shard: int | None  # its number, from 0; None when the name has none
    shards: int | None  # how many shards the split has; None when the name does not say


def parse_shard_name(name: str) -> ShardName | None:
    """Return what the name of a file says, or None if it is not that of a shard.

    Known are ``train-00000-of-01024`` (Google's scripts), the same with ``.tfrecord``,
    ``NAME-train.tfrecord-00000-of-00008`` (TFDS), and any other name that ends in ``.tfrecord`` or ``.tfrecords``. The
    split is the word ``train``, ``validation``, ``val`` or ``test`` in the name, else ``train``.
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
    """Return what the name of a file says that holds records, whatever its extension."""
    if match := _NUMBERED_ANYHOW.fullmatch(name):
        shard, shards = int(match["shard"]), int(match["shards"])
        if shard < shards:
            return ShardName(_split_in(match["stem"]), shard, shards)
    return ShardName(_split_in(name), None, None)


def may_hold_records(name: str) -> bool:
    """Return whether a file that is not called as shards are is worth a look at its first bytes."""
    if TEMPORARY_MARK in name or name.startswith("."):
        return False
    return not is_image_name(name) and not _OTHER.fullmatch(name)


def is_image_name(name: str) -> bool:
    """Return whether the extension of a file is that of an image."""
    return _IMAGE.fullmatch(name) is not None


def _split_in(stem: str) -> str:
    match = _SPLIT_WORD.search(stem.lower())
    if match is None:
        return "train"
    return full_split_name(match[1])
