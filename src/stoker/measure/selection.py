"""Which of the user's images are measured, and how the same are found again by another process."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stoker import _native
from stoker.feed.dataset import Dataset
from stoker.feed.files import FILE_SCHEMA, ImageFiles
from stoker.feed.opening import open_dataset
from stoker.measure.task import SEED
from stoker.sources import list_source
from stoker.sources.where import place_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.measure.rungs import Rung
    from stoker.measure.task import Task
    from stoker.sources import SourceTree

_NAME = "own.json"


@dataclass(frozen=True, slots=True)
class Selection:
    """A part of a split that is read like a dataset.

    Attributes:
        path: Path or URL of the whole.
        split: The split.
        shards: Numbers of the shards; none where the samples are image files.
        rows: Numbers of the image files.
    """

    path: str
    split: str
    shards: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()

    def open(self) -> Dataset:
        """Open the part alone."""
        if self.shards:
            whole = open_dataset(self.path, self.split)
            chosen = tuple(whole.shards[number] for number in self.shards)
            return Dataset(path=whole.path, split=self.split, schema=whole.schema, shards=chosen, classes=whole.classes)
        files = ImageFiles(self._tree(), self.split)
        return Dataset(path=self.path, split=self.split, schema=FILE_SCHEMA, files=files)

    def _tree(self) -> SourceTree:
        tree = list_source(self.path)
        return replace(tree, splits={self.split: tree.splits[self.split][np.asarray(self.rows, np.int64)]})

    def local_files(self) -> list[Path]:
        """Return the files of this machine that hold it."""
        if self.shards:
            return [shard.path for shard in self.open().shards if isinstance(shard.path, Path)]
        tree = self._tree()
        places = {place_at(tree.locate(item)) for item in tree.table.take(tree.splits[self.split])}
        return sorted(place for place in places if isinstance(place, Path))

    def write(self, data: Path) -> None:
        """Leave it for `read`."""
        text = json.dumps({"path": self.path, "split": self.split, "shards": self.shards, "rows": self.rows})
        (data / _NAME).write_text(text, encoding="utf-8")

    @classmethod
    def read(cls, data: Path) -> Selection:
        """Return what `write` has left."""
        found = json.loads((data / _NAME).read_text(encoding="utf-8"))
        return cls(found["path"], found["split"], tuple(found["shards"]), tuple(found["rows"]))


def choose_shards(dataset: Dataset, images: int) -> tuple[int, ...]:
    """Return the numbers of as few shards as hold so many images, spread evenly over the dataset."""
    total = len(dataset.shards)
    for count in range(1, total + 1):
        chosen = [number * total // count for number in range(count)]
        if sum(dataset.shards[number].records for number in chosen) >= images:
            return tuple(chosen)
    return tuple(range(total))


def some_of(size: int, count: int) -> list[int]:
    """Return numbers below ``size``, without any twice, in random order: ``count`` of them, or all."""
    return [int(number) for number in _native.permute(0, min(size, count), size, SEED, 0)]


def files_read_by(rung: Rung, task: Task) -> Iterator[Path]:
    """Yield the files of this machine that a contender reads."""
    if rung.needs == "own":
        yield from Selection.read(Path(task.data)).local_files()
        return
    for folder in (task.place(rung.needs), made_by(rung.key, task)):
        yield from (path for path in sorted(folder.rglob("*")) if path.is_file())


def samples_read_by(rung: Rung, task: Task) -> int:
    """Return how many samples a contender reads in one pass.

    They are more than were prepared where whole shards of the user's are opened.
    """
    counts_objects = task.view == "objects"
    if rung.needs != "own":
        return task.files().samples if counts_objects else len(task.files().paths)
    opened = Selection.read(Path(task.data)).open()
    return int(np.maximum(opened.object_counts, 1).sum()) if counts_objects else len(opened)


def made_by(key: str, task: Task) -> Path:
    """Folder of what a contender makes for itself."""
    return task.place(f"made-by-{key}")
