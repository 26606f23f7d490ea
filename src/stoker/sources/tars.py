"""Images that are read out of tars in place: nothing is unpacked, an image is one positioned read.

Understood are ImageNet's own tars (the train tar holds one tar for each class; those of validation and test hold the
images directly) and tars of class folders, such as Stanford Dogs' ``images.tar``. In paths a tar inside a tar is a
folder.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stoker.errors import SourceError
from stoker.sources.gather import Group
from stoker.sources.tar_bytes import FileWindow, is_compressed
from stoker.sources.tar_folders import TarFolders
from stoker.sources.tar_walk import walk
from stoker.sources.walk import is_sidecar
from stoker.sources.where import spelled

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Iterator

    from stoker.sources.draft import Draft
    from stoker.sources.validation_labels import ValidationLabels
    from stoker.storage import Location

_ROLES = (
    (re.compile(r"ILSVRC2012_img_train\.tar"), "train"),
    (re.compile(r"ILSVRC2012_img_val\.tar"), "validation"),
    (re.compile(r"ILSVRC2012_img_test.*\.tar"), "test"),
    (re.compile(r"images\.tar"), "train"),
)
_OTHER_ROLES = (
    (re.compile(r"(.*[^a-z])?val(idation)?([^a-z].*)?\.tar", re.IGNORECASE), "validation"),
    (re.compile(r"(.*[^a-z])?test([^a-z].*)?\.tar", re.IGNORECASE), "test"),
)
_PROGRESS_IMAGES = 1024
_MAX_NOTED = 2**16


def find_tars(folder: Location) -> dict[Location, str]:
    """Return the tars in a folder that are known by their names, and the split of each.

    Raises:
        SourceError: Two of them are the same split.
    """
    found: dict[str, Location] = {}
    places: Iterator[Location] = iter(folder.iterdir())
    for path in sorted(places, key=lambda path: path.name):
        split = next((split for pattern, split in _ROLES if pattern.fullmatch(path.name)), None)
        if split is None or not path.is_file():
            continue
        if split in found:
            message = f"{folder} holds {found[split].name} and {path.name}, both of them the split {split}; keep one"
            raise SourceError(message, path=str(folder))
        found[split] = path
    return {path: split for split, path in found.items()}


def split_of(name: str) -> str:
    """Return the split of a tar that the user names: ``train`` unless its name says something else."""
    return next((split for pattern, split in (*_ROLES, *_OTHER_ROLES) if pattern.fullmatch(name)), "train")


class TarGatherer:
    """Gathers the images of tars.

    Args:
        draft: Receives them.
        labels: The classes of validation images without a class folder.
    """

    def __init__(self, draft: Draft, labels: ValidationLabels | None) -> None:
        self._draft = draft
        self._labels = labels
        self._unsafe: list[bytes] = []
        self._links: list[bytes] = []
        self._seen = 0
        self._seen_before = 0
        self._size = 0  # of the tar

    def add(self, path: Location, split: str) -> None:
        """Gather the images of one tar.

        Raises:
            SourceError: It is compressed, damaged, cut short, or its images have no classes.
            OSError: It cannot be read.
        """
        if is_compressed(path):
            message = f"{path} is compressed, so its images cannot be read in place; unpack it with gunzip first"
            raise SourceError(message, path=str(path))
        archive = len(self._draft.archives)
        self._draft.archives.append(spelled(path))
        by_number = self._labels if split == "validation" else None
        folders = TarFolders(self._draft.gathering, split, archive, by_number)
        self._seen_before = self._seen
        self._size = path.stat().st_size
        with path.open("rb") as file:
            window = FileWindow(file, 0, self._size, str(path))
            for member in walk(window):
                self._add_member(window, member, folders)
                self._advance(member.offset_data + member.size)
        self._draft.skipped.warnings += folders.settle(str(path), self._draft.skipped.ignored)

    def finish(self) -> None:
        """Report what was found and not used."""
        warn = self._draft.skipped.warn
        warn(self._unsafe, "members of tars whose names lead out of it are not used: {names}")
        warn(self._links, "links in tars are not followed: {names}")

    def _add_member(self, window: FileWindow, member: tarfile.TarInfo, folders: TarFolders) -> None:
        path = self._safe_path(member)
        if path is None:
            return
        if member.isdir():
            folders.folder(path)
        elif not self._is_file(member, path):
            return
        elif path[-4:].lower() == b".tar":
            self._add_inner(window.inner(member), path, folders)
        elif self._is_image(path):
            folders.add(path, member.size, window.start + member.offset_data)

    def _add_inner(self, window: FileWindow, outer: bytes, folders: TarFolders) -> None:
        """Gather the images of a tar inside a tar: those of one class."""
        name = outer[outer.rfind(b"/") + 1 : -4]
        gathering = self._draft.gathering
        group = gathering.group(Group(folders.split, name, len(outer) + 1, folders.archive))
        for member in walk(window):
            path = self._safe_path(member)
            if path and self._is_file(member, path) and self._is_image(path):
                self._advance(window.start + member.offset_data + member.size)
                gathering.add(group, outer + b"/" + path, member.size, window.start + member.offset_data)

    def _safe_path(self, member: tarfile.TarInfo) -> bytes | None:
        """Return the path of a member without ``.`` parts; None if it leads out of the tar."""
        name = member.name.encode("utf-8", "surrogateescape")
        parts = [part for part in name.split(b"/") if part not in (b"", b".")]
        if name.startswith(b"/") or b".." in parts or b"\0" in name:
            self._draft.skipped.ignored["unsafe name"] += 1
            _note(self._unsafe, name)
            return None
        return b"/".join(parts)

    def _is_file(self, member: tarfile.TarInfo, path: bytes) -> bool:
        if member.isreg() and not member.issparse() and path:
            return True
        if member.issym() or member.islnk():
            self._draft.skipped.ignored["link"] += 1
            _note(self._links, path)
        elif not member.isdir():
            self._draft.skipped.ignored["special file"] += 1
        return False

    def _is_image(self, path: bytes) -> bool:
        name = path[path.rfind(b"/") + 1 :]
        if name.startswith(b"."):
            self._draft.skipped.ignored["hidden"] += 1
        elif is_sidecar(name):
            self._draft.skipped.count_sidecar(name)
        else:
            return True
        return False

    def _advance(self, end: int) -> None:
        """Count one image that ends at a byte of the tar; how many there will be is a guess from that."""
        self._seen += 1
        progress = self._draft.progress
        if progress is not None and self._seen % _PROGRESS_IMAGES == 0:
            done = self._seen - self._seen_before
            total = self._seen_before + done * self._size // max(1, end)
            progress(done=self._seen, total=total, size_bytes=end, rejects=0)


def _note(names: list[bytes], name: bytes) -> None:
    if len(names) < _MAX_NOTED:
        names.append(name)
