"""A folder of images: splits, classes, and images that lie in one folder without any class.

Three layouts of a split are understood::

    root/train/<class>/...           root/<class>/...
    root/validation/<class>/...      (all of it is the split "train")
    root/test/<class>/...

    root/validation/*.JPEG           with a list of `stoker.sources.validation_labels`
    root/test/*.JPEG                 without labels

    root/train/<wnid>/images/*.JPEG  Tiny ImageNet: val/images with val/val_annotations.txt, test/images without labels

``val`` is another name for ``validation``. The class of a file is the first folder below its split; how deep the file
lies below that does not matter. Every regular file is an item, whatever it is called, except hidden files and the
sidecars of `stoker.sources.walk.SIDECARS`: content decides later what an item is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.errors import SourceError
from stoker.sources.folders import list_folders
from stoker.sources.gather import Group
from stoker.sources.splits import SplitFinder

if TYPE_CHECKING:
    from stoker.sources.draft import Draft
    from stoker.sources.splits import SplitFolder
    from stoker.storage import Location


def fill_from_folder(draft: Draft, label_places: tuple[Location, ...]) -> dict[str, SplitFolder]:
    """Gather the images below ``draft.base``.

    Args:
        draft: Receives them.
        label_places: Folders in which a list of the validation labels is looked for.

    Returns:
        The folder of each split.

    Raises:
        ConfigError: The list of the validation labels needs a label map.
        SourceError: There is no class folder, a folder cannot be read, or validation images have no labels.
    """
    folders = SplitFinder(draft, label_places).find()
    if all(found.classes == () for found in folders.values()):
        message = (
            f"{draft.root} holds no class folder; put the images of each class into a folder named after the class"
        )
        raise SourceError(message, path=draft.root)
    for split, found in folders.items():
        if found.classes is None:
            _gather_flat(draft, split, found)
        else:
            _gather_classes(draft, split, found)
    labels = folders["validation"].labels if "validation" in folders else None
    if labels is None and draft.options.validation_labels is not None:
        draft.skipped.warnings.append("--validation-labels is not used: no validation images lie outside class folders")
    if labels is not None and "train" not in folders:
        draft.classes |= labels.class_names()  # a part of the images must have the labels of the whole
    return folders


def _gather_classes(draft: Draft, split: str, found: SplitFolder) -> None:
    classes = found.classes or ()
    folders = [found.path + name + b"/" for name in classes]
    before = len(draft.gathering)
    for done, listing in enumerate(draft.lister(draft.base, folders), 1):
        folder = folders[done - 1]
        group = draft.gathering.group(Group(split, classes[done - 1], len(folder)))
        draft.skipped.add(listing.skipped)
        for path, size in listing.files:
            draft.gathering.add(group, folder + path, size)
        if draft.progress is not None and done < len(folders):  # a listing that is over at once shows nothing
            images = len(draft.gathering) - before
            total = before + max(images * len(folders) // done, images + 1)
            draft.progress(done=before + images, total=total, size_bytes=0, rejects=0)


def _gather_flat(draft: Draft, split: str, found: SplitFolder) -> None:
    labels = found.labels
    known = draft.gathering.class_names().union(draft.labels.names if draft.labels else ())
    groups: dict[bytes | None, int] = {}
    unlabelled = 0
    (listing,) = list_folders(draft.base, [found.path])
    draft.skipped.add(listing.skipped)
    for path, size in listing.files:
        name = labels.class_of(path) if labels is not None else None
        if labels is not None and labels.tolerant and known and name not in known:
            name = None
        unlabelled += name is None
        if name not in groups:
            groups[name] = draft.gathering.group(Group(split, name, len(found.path)))
        draft.gathering.add(groups[name], found.path + path, size)
    if labels is None:
        return
    if labels.bad_lines:
        draft.skipped.ignored["bad line of labels"] += labels.bad_lines
        draft.skipped.warnings.append(f"{labels.where}: {labels.bad_lines} lines name no image or no class")
    if unlabelled:
        draft.skipped.warnings.append(f"{labels.where} gives no known class to {unlabelled} images: they have no label")
