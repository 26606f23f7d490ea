"""Tars as a source: images are read in place, each by one positioned read, and nothing is unpacked.

They are ImageNet's own tars (the train tar holds one tar for each class; those of validation and test hold the images
directly), or tars of class folders, such as Stanford Dogs' ``images.tar``. In paths a tar inside a tar is a folder.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections import Counter
from contextlib import contextmanager
from itertools import takewhile
from typing import TYPE_CHECKING

from stoker.config import format_count
from stoker.errors import SourceError
from stoker.sources.files import in_order
from stoker.sources.items import Group, GrowingColumn
from stoker.sources.labels import find_validation_labels, missing_labels_advice, read_validation_labels
from stoker.sources.names import JUNK, is_sidecar, path_parts
from stoker.sources.patterns import expand_braces, image_patterns
from stoker.sources.source import Kind, Source, SourceBuilder
from stoker.sources.tar_format import FileWindow, MemberReader, is_compressed, may_be_tar, tar_members
from stoker.splits import SPLIT_FOLDERS, are_splits, splits_in
from stoker.storage import Location, location

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Iterator, Mapping, Sequence

    from stoker.sources.labels import ValidationLabels
    from stoker.sources.look import Look


_KNOWN_NAMES = re.compile(r"(ILSVRC2012_img_(train|val|test.*)|images)\.tar")
_PROGRESS_IMAGES = 1024


def find_tars(look: Look, folder: Location) -> dict[Location, str]:
    """Return the tars with known names in a folder, and the split of each."""
    tars: dict[str, Location] = {}
    for child in look.beside_images(folder):
        path = folder / os.fsdecode(child.name)
        name = path.name.removesuffix(".part")
        if not (child.is_file and _KNOWN_NAMES.fullmatch(name)):
            continue
        split = split_of(name)
        if name != path.name:
            message = f"{path} is an unfinished download, without which the split {split} would be missing"
            raise SourceError(f"{message}; run 'stoker download' again, or delete it", path=str(path))
        if split in tars:
            message = f"{folder} holds {tars[split].name} and {path.name}, both of them the split {split}; keep one"
            raise SourceError(message, path=str(folder))
        tars[split] = path
    return {path: split for split, path in tars.items()}


def split_of(name: str) -> str:
    """Return the split of a tar: ``train`` unless its name says another; ``train-val`` is held out from ``train``."""
    splits = splits_in(name) if name.lower().endswith(".tar") else ()
    return next((split for split in ("validation", "test") if split in splits), "train")


def _tars_of_pattern(pattern: str) -> dict[Location, str]:
    """Return the tars that a brace pattern stands for, and their splits, by their folders or else by their names.

    Folders say the splits if there are several and all are named after splits.
    """
    paths = list(dict.fromkeys(map(location, expand_braces(pattern))))
    at_once = max(path.requests_at_once for path in paths)
    for path, what in zip(paths, in_order(_what_is_wrong, paths, at_once), strict=True):
        if what is not None:
            raise SourceError(f"{path}, for which {pattern} stands, {what}", path=str(path))
    folders = {os.fsencode(path.parent.name) for path in paths}
    in_splits = len({path.parent for path in paths}) > 1 and are_splits(folders, pattern)
    return {path: SPLIT_FOLDERS[os.fsencode(path.parent.name)] if in_splits else split_of(path.name) for path in paths}


def _what_is_wrong(path: Location) -> str | None:
    if not path.is_file():
        return "is not a file" if path.exists() else "does not exist"
    return None if may_be_tar(path) else "is no tar"


def named_tars(look: Look) -> dict[Location, str]:
    """Return the tar at the path, or the tars that the path is a pattern of, and their splits; else nothing."""
    path = look.path
    if look.is_file:
        return {path: split_of(path.name)} if may_be_tar(path) else {}
    is_pattern = "{" in look.root and not path.exists() and not image_patterns(look.root)
    return _tars_of_pattern(look.root) if is_pattern else {}


def folder_of(look: Look, tars: Mapping[Location, str]) -> Location:
    """Return the folder of tars: the folder that the user gives, or that of the first tar."""
    return next(iter(tars)).parent if look.layout is None else look.layout.base


def _claim(look: Look) -> dict[Location, str]:
    if look.layout is None:
        return look.once(named_tars)
    tars = find_tars(look, look.layout.base)
    return tars if tars and not look.holds_folders else {}


def _list(look: Look, tars: Mapping[Location, str]) -> Source:
    folder = folder_of(look, tars)
    builder = SourceBuilder(look, folder, (folder,))
    labels = None
    folders = (folder, folder.resolve().parent)
    listed = find_validation_labels(folders, look.options.validation_labels)
    if listed is not None and "validation" in tars.values():
        labels = read_validation_labels(listed)
        if "train" not in tars.values():
            builder.classes |= labels.class_names()  # some of the images must have the same labels as all
    images = TarImages(builder)
    for path, split in tars.items():
        _Tar(builder, images, split, labels if split == "validation" else None, folders).read(path)
    images.finish()
    if not builder.collector.class_names() and not len(builder.collector):
        raise SourceError(f"{look.root} holds no images", path=look.root)
    return builder.finish_in(MemberReader(builder.base, tuple(builder.archives), {}))


@dataclasses.dataclass(slots=True)
class _Tar:
    """Adds the images of one tar, folder by folder."""

    builder: SourceBuilder
    images: TarImages
    split: str  # the split of the images, unless the tar has folders named after splits
    labels: ValidationLabels | None  # classes of the images by their names; folders are then ignored
    label_folders: Sequence[Location]  # folders in which such a list was looked for
    last_name: bytes = b""
    groups: dict[tuple[bytes, bytes | None], int] = dataclasses.field(default_factory=dict)
    counts: Counter[bytes] = dataclasses.field(default_factory=Counter)  # images in each folder

    def read(self, tar: Location) -> None:
        with self.images.open(tar) as window:
            for member, path in self.images.named(window):
                if member.isdir():
                    if path:  # which may be an empty class
                        self._group(path, None)
                elif path[-4:].lower() == b".tar":
                    self._add_inner(window.inner(member), path)
                elif self._is_image(path):
                    self._add(path, member.size, window.start + member.offset_data)
        self._settle(str(tar))

    def _add(self, path: bytes, size_bytes: int, offset: int) -> None:
        folder, _, self.last_name = path.rpartition(b"/")
        group = self._group(folder, self.labels.class_of(self.last_name) if self.labels else None)
        self.counts[folder] += 1
        self.images.add(group, path, size_bytes, offset)

    def _add_inner(self, window: FileWindow, outer: bytes) -> None:
        name = outer[outer.rfind(b"/") + 1 : -4]
        group = self._add_group(name, outer)
        for member, path in self.images.named(window):
            if not member.isdir() and self._is_image(path):
                self.images.add(group, outer + b"/" + path, member.size, window.start + member.offset_data)

    def _is_image(self, path: bytes) -> bool:
        name = path[path.rfind(b"/") + 1 :]
        if name.startswith(b"."):
            self.builder.skipped.ignored["hidden"] += 1
        elif is_sidecar(name):
            self.builder.skipped.count_sidecar(name)
        else:
            return True
        return False

    def _group(self, folder: bytes, class_name: bytes | None) -> int:
        key = (folder, class_name)
        if key not in self.groups:
            self.groups[key] = self._add_group(class_name, folder)
        return self.groups[key]

    def _add_group(self, class_name: bytes | None, folder: bytes) -> int:
        prefix_bytes = len(folder) + 1 if folder else 0
        group = Group(self.split, class_name, prefix_bytes, len(self.builder.archives) - 1)
        return self.builder.collector.add_group(group)

    def _settle(self, where: str) -> None:
        """Decide which folders are splits and classes; count and warn of images outside any class.

        A folder that contains all others is ignored. Below it are the folders of splits, if they have such names, and
        the classes. Images of the test split that all lie in one folder have no label.
        """
        folders = {folder: folder.split(b"/") if folder else [] for folder, _ in self.groups}
        filled = [folder for folder in folders if folder in self.counts]
        if self.labels is not None or not folders:
            return
        levels = zip(*folders.values(), strict=False)
        top = len([*takewhile(lambda names: len({*names}) == 1, levels)])
        if len(filled) == 1 and len(folders[filled[0]]) == top:
            self._settle_one(filled[0], where)
            return
        first = {parts[top] for parts in folders.values() if len(parts) > top}
        deep = {parts[top] for parts in folders.values() if len(parts) > top + 1}
        with_splits = deep == first and are_splits(first, where)
        loose = 0
        for folder, parts in folders.items():
            group = self.builder.collector.groups[self.groups[folder, None]]
            depth = top + (with_splits and len(parts) > top)
            if depth > top:
                group.split = SPLIT_FOLDERS[parts[top]]
            if len(parts) > depth:
                group.class_name = parts[depth]
                group.prefix_bytes = len(b"/".join(parts[: depth + 1])) + 1
            else:
                group.split = None
                loose += self.counts[folder]
        if loose:
            self.builder.skipped.ignored["outside a class folder"] += loose
            message = f"{format_count(loose, 'image')} in {where} outside any class folder: not used"
            self.builder.warnings.append(message)

    def _settle_one(self, folder: bytes, where: str) -> None:
        """Decide what the only folder of images in a tar is: one class, or the test images."""
        groups = self.builder.collector.groups
        for (other, _), number in self.groups.items():
            groups[number].split = self.split if other == folder else None
        name = folder[folder.rfind(b"/") + 1 :]
        if self.split == "test":
            return
        if self.split == "validation" or not name:
            advice = "give a tar that has them"
            if self.split == "validation":
                advice = missing_labels_advice(self.label_folders, self.last_name)
            raise SourceError(f"the images in {where} do not lie in class folders; {advice}", path=where)
        groups[self.groups[folder, None]].class_name = name


class TarImages:
    """Collects images that are members of tars; selects members that can be used, and warns of the others."""

    def __init__(self, builder: SourceBuilder) -> None:
        self._builder = builder
        self._skipped = builder.skipped
        self._archives, self._offsets = GrowingColumn("i"), GrowingColumn("q")
        self._size = self._before = 0  # of the tar, and the number of images before it

    def __len__(self) -> int:
        return len(self._archives)

    @contextmanager
    def open(self, path: Location) -> Iterator[FileWindow]:
        """Open another tar, which must not be compressed."""
        if is_compressed(path):
            message = f"{path} is compressed, so its images cannot be read in place; unpack it with gunzip first"
            raise SourceError(message, path=str(path))
        self._builder.archives.append(path.to_uri())
        self._size, self._before = path.size(), len(self)
        with path.reader() as file:
            yield FileWindow(file, 0, self._size, str(path))

    def named(self, window: FileWindow) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
        """Yield the files and the folders of a tar that can be used, and their paths without ``.`` parts.

        Other members are counted: those that lead out of the tar or lie in `JUNK`, links, and special files.
        """
        for member in tar_members(window):
            name = member.name.encode("utf-8", "surrogateescape")
            parts = path_parts(name)
            if name.startswith(b"/") or b".." in parts or b"\0" in name:
                self._skipped.note("unsafe name", name)
            elif not JUNK.isdisjoint(parts if member.isdir() else parts[:-1]):
                self._skipped.ignored["junk"] += 1
            elif (member.isreg() and not member.issparse() and parts) or member.isdir():
                yield member, b"/".join(parts)
            elif member.issym() or member.islnk():
                self._skipped.note("link", b"/".join(parts))
            else:
                self._skipped.ignored["special file"] += 1

    def add(self, group: int, path: bytes, size_bytes: int, offset: int) -> None:
        """Add an image at an offset in the tar, from which progress estimates the total number of images."""
        self._builder.collector.add(group, path, size_bytes)
        self._archives.append(len(self._builder.archives) - 1)
        self._offsets.append(offset)
        progress, end = self._builder.progress, offset + size_bytes
        if progress is not None and len(self) % _PROGRESS_IMAGES == 0:
            total = self._before + (len(self) - self._before) * self._size // max(1, end)
            progress(done=len(self), total=total, size_bytes=end, rejects=0)

    def finish(self) -> None:
        """Set the columns of `MemberReader`, and warn of unused members; nothing can be added afterwards."""
        self._builder.collector.columns = {"archive": self._archives.finish(), "offset": self._offsets.finish()}
        noted = self._skipped.noted
        self._skipped.warn(noted["unsafe name"], "members of tars whose names lead out of it are not used: {names}")
        self._skipped.warn(noted["link"], "links in tars are not followed: {names}")


TARS = Kind(
    name="folder of tars, tar",
    claim=_claim,
    list=_list,
    reader=MemberReader,
)
