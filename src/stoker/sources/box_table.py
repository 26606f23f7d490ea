"""The boxes of a whole data set in arrays: what is read once from a tar or a list, and looked up by name."""

from __future__ import annotations

import io
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stoker.errors import SourceError
from stoker.sources.boxes import image_stem
from stoker.types import Box

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from stoker.sources.boxes import NamedBox

_MAX_KEY_BYTES = 255
"""Longest name a file can have; the keys are stored at the length of the longest."""

_MAX_BOXES = 2**24
_MAX_NAMES = 2**16
_MAX_DAMAGED = 2**18


@dataclass(frozen=True, slots=True, eq=False)
class BoxTable:
    """Boxes by the names of images. Read-only; safe in any thread.

    Attributes:
        where: File they come from.
        keys: Bytes (M,), ascending: for each box, the name of its image without its ending, after the class and a slash
            if ``per_class``.
        corners: float64 (M, 4): xmin, ymin, xmax, ymax as fractions.
        sources: int32 (M,): number of the annotation it was read from. Of two of the same name the later one counts.
        names: int32 (M,): index into ``vocabulary`` of what the annotation calls the object; -1 if it does not say.
        vocabulary: Names of objects.
        damaged: What is wrong with an annotation, by key.
        per_class: Whether ``keys`` hold the class.
        class_names: The whole label set.
    """

    where: str
    keys: NDArray[np.bytes_]
    corners: NDArray[np.float64]
    sources: NDArray[np.int32]
    names: NDArray[np.int32]
    vocabulary: tuple[bytes, ...]
    damaged: dict[bytes, str]
    per_class: bool
    class_names: frozenset[bytes]

    def read(self, item_path: bytes, class_name: bytes) -> list[Box]:
        """Return the boxes of an image, chosen as `stoker.sources.boxes.read_boxes` chooses them.

        Raises:
            SourceError: Its annotation is damaged.
        """
        stem = image_stem(item_path)
        key = class_name + b"/" + stem if self.per_class else stem
        if key in self.damaged:
            raise SourceError(f"damaged annotation: {self.damaged[key]}", path=self.where)
        if len(key) > self.keys.itemsize:
            return []
        wanted = np.asarray(key, self.keys.dtype)  # of another length, NumPy would convert all keys to compare them
        first, last = (int(np.searchsorted(self.keys, wanted, side)) for side in ("left", "right"))
        if first == last:
            return []
        newest = self.sources[first:last].max()
        return [
            Box(*self.corners[row].tolist())
            for row in range(first, last)
            if self.sources[row] == newest and self._is_of(row, class_name)
        ]

    def _is_of(self, row: int, class_name: bytes) -> bool:
        if self.names[row] < 0:
            return True
        name = self.vocabulary[self.names[row]]
        return name == class_name or name not in self.class_names


class BoxTableBuilder:
    """Collects boxes annotation by annotation.

    Args:
        where: File they come from.
        replacing: Whether an annotation replaces an earlier one of the same name, as a member of a tar does when it is
            unpacked; otherwise its boxes are added to those.
    """

    def __init__(self, where: str, *, replacing: bool) -> None:
        self.damaged: dict[bytes, str] = {}
        self._where = where
        self._keys = io.BytesIO()
        self._ends = array("q", [0])
        self._corners = array("d")
        self._sources = array("i")
        self._names = array("i")
        self._vocabulary: dict[bytes, int] = {}
        self._folders: set[bytes] = set()
        self._replacing = replacing
        self._source = 0

    def add(self, folder: bytes, stem: bytes, boxes: Iterable[NamedBox]) -> None:
        """Add the boxes of one image.

        Args:
            folder: Name of the folder of the annotation; it may be the class.
            stem: Name of the annotation without its ending.
            boxes: Its boxes; an empty name is no name.

        Raises:
            SourceError: There are too many, or the name is too long for one.
        """
        key = self._key(folder, stem)
        self._source += self._replacing
        for named in boxes:
            if len(self._names) == _MAX_BOXES:
                raise SourceError(f"{self._where} holds more than {_MAX_BOXES} boxes", path=self._where)
            self._keys.write(key)
            self._ends.append(self._keys.tell())
            self._corners.extend((named.box.xmin, named.box.ymin, named.box.xmax, named.box.ymax))
            self._sources.append(self._source)
            self._names.append(self._name(named.name))

    def add_damaged(self, folder: bytes, stem: bytes, problem: str) -> None:
        """Note that the annotation of an image is damaged.

        Raises:
            SourceError: There are too many, or the name is too long for one.
        """
        if len(self.damaged) == _MAX_DAMAGED:
            message = f"{self._where} holds more than {_MAX_DAMAGED} damaged annotations; is it the right file?"
            raise SourceError(message, path=self._where)
        self.damaged[self._key(folder, stem)] = problem

    def finish(self, class_names: frozenset[bytes]) -> BoxTable:
        """Return the table; annotations that lie in folders named after classes are told apart by them.

        Args:
            class_names: The whole label set.
        """
        per_class = not self._folders.isdisjoint(class_names)
        keys = self._key_array(with_folder=per_class)
        order = np.argsort(keys, kind="stable")
        return BoxTable(
            where=self._where,
            keys=keys[order],
            corners=np.frombuffer(self._corners, np.float64).reshape(-1, 4)[order],
            sources=np.frombuffer(self._sources, np.int32)[order],
            names=np.frombuffer(self._names, np.int32)[order],
            vocabulary=tuple(self._vocabulary),
            damaged={_lookup_key(key, with_folder=per_class): what for key, what in self.damaged.items()},
            per_class=per_class,
            class_names=class_names,
        )

    def _key(self, folder: bytes, stem: bytes) -> bytes:
        if len(stem) > _MAX_KEY_BYTES or len(folder) > _MAX_KEY_BYTES:
            name = (folder + b"/" + stem)[:64].decode("utf-8", "replace")
            message = f"{self._where} names an image {name}..., longer than any file name; is it the right file?"
            raise SourceError(message, path=self._where)
        self._folders.add(folder)
        return folder + b"/" + stem

    def _name(self, name: bytes) -> int:
        if not name or (name not in self._vocabulary and len(self._vocabulary) == _MAX_NAMES):
            return -1
        return self._vocabulary.setdefault(name, len(self._vocabulary))

    def _key_array(self, *, with_folder: bool) -> NDArray[np.bytes_]:
        names = self._keys.getbuffer()
        longest = int(np.diff(np.frombuffer(self._ends, np.int64)).max(initial=1))
        keys = np.empty(len(self._names), f"S{longest}")
        for row in range(len(keys)):
            keys[row] = _lookup_key(bytes(names[self._ends[row] : self._ends[row + 1]]), with_folder=with_folder)
        return keys


def _lookup_key(key: bytes, *, with_folder: bool) -> bytes:
    return key if with_folder else key[key.rfind(b"/") + 1 :]
