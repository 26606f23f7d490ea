"""The folders inside a tar, and what they mean once all of them are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.errors import SourceError
from stoker.sources.gather import Group
from stoker.sources.splits import SPLIT_FOLDERS

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable

    from stoker.sources.gather import Gathering
    from stoker.sources.validation_labels import ValidationLabels


class TarFolders:
    """Gathers the images of one tar folder by folder.

    Attributes:
        split: Split of the images, unless the tar itself has folders called after splits.
        archive: Number of the tar.

    Args:
        gathering: Receives the images.
        split: See above.
        archive: See above.
        labels: Classes of the images by their names; the folders then mean nothing.
    """

    def __init__(self, gathering: Gathering, split: str, archive: int, labels: ValidationLabels | None) -> None:
        self.split = split
        self.archive = archive
        self._gathering = gathering
        self._labels = labels
        self._groups: dict[tuple[bytes, bytes | None], int] = {}
        self._counts: dict[bytes, int] = {}

    def folder(self, path: bytes) -> None:
        """Note a folder, which may be an empty class."""
        if path:
            self._group(path, None)

    def add(self, path: bytes, size_bytes: int, offset: int) -> None:
        """Add an image.

        Raises:
            SourceError: The list of labels does not name it.
        """
        folder, _, name = path.rpartition(b"/")
        group = self._group(folder, self._labels.class_of(name) if self._labels else None)
        self._counts[folder] = self._counts.get(folder, 0) + 1
        self._gathering.add(group, path, size_bytes, offset)

    def settle(self, where: str, ignored: Counter[str]) -> list[str]:
        """Decide what the folders are, and return what a person should know.

        A folder that all others lie in means nothing. Below it are the folders of splits, if they are called so, and
        the classes. Images of the test split that all lie in one folder have no label.

        Args:
            where: The tar.
            ignored: Gets how many images lie outside any class.

        Raises:
            SourceError: There are images but no class.
        """
        folders = {folder: folder.split(b"/") if folder else [] for folder, _ in self._groups}
        filled = [folder for folder in folders if folder in self._counts]
        if self._labels is not None or not folders:
            return []
        top = _common_parts(folders.values())
        if len(filled) == 1 and folders[filled[0]] == top:
            self._settle_one(filled[0], where)
            return []
        with_splits = self._are_splits([parts[len(top) :] for parts in folders.values()])
        loose = sum(
            self._settle_folder(folder, parts, len(top), with_splits=with_splits) for folder, parts in folders.items()
        )
        if not loose:
            return []
        ignored["outside a class folder"] += loose
        return [f"{loose} images in {where} lie outside any class folder and are not used"]

    def _group(self, folder: bytes, class_name: bytes | None) -> int:
        key = (folder, class_name)
        if key not in self._groups:
            below = len(folder) + 1 if folder else 0
            self._groups[key] = self._gathering.group(Group(self.split, class_name, below, self.archive))
        return self._groups[key]

    def _settle_one(self, folder: bytes, where: str) -> None:
        """Settle a tar whose images all lie in one folder: one class, or the test images."""
        for (other, _), number in self._groups.items():
            self._gathering.groups[number].split = self.split if other == folder else None
        name = folder[folder.rfind(b"/") + 1 :]
        if self.split == "test":
            return
        if self.split == "validation" or not name:
            message = f"the images in {where} do not lie in class folders"
            hint = (
                "give their classes with --validation-labels"
                if self.split == "validation"
                else "give a tar that has them"
            )
            raise SourceError(f"{message}; {hint}", path=where)
        self._gathering.groups[self._groups[folder, None]].class_name = name

    def _settle_folder(self, folder: bytes, parts: list[bytes], skip: int, *, with_splits: bool) -> int:
        """Give one folder its class; return how many images in it have none."""
        group = self._gathering.groups[self._groups[folder, None]]
        if with_splits and len(parts) > skip:
            group.split = SPLIT_FOLDERS[parts[skip]]
            skip += 1
        if len(parts) <= skip:
            group.split = None
            return self._counts.get(folder, 0)
        group.class_name = parts[skip]
        group.below = len(b"/".join(parts[: skip + 1])) + 1
        return 0

    def _are_splits(self, folders: list[list[bytes]]) -> bool:
        """Return whether the first parts are the names of splits, below which lie classes."""
        first = {parts[0] for parts in folders if parts}
        deep = {parts[0] for parts in folders if len(parts) > 1}
        return bool(first) and first <= set(SPLIT_FOLDERS) and deep == first


def _common_parts(folders: Iterable[list[bytes]]) -> list[bytes]:
    """Return the folders that all of some folders lie in, or are."""
    common = []
    for parts in zip(*folders, strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    return common
