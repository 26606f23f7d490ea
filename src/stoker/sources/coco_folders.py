"""Where COCO files and their images lie in a folder, as docs/reference/images.md has it; which split each file is."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stoker.config import option
from stoker.errors import SourceError
from stoker.sources.class_folders import SPLIT_FOLDERS, SPLIT_WORDS, without_year
from stoker.sources.moved_files import path_ends
from stoker.sources.reading import in_order
from stoker.sources.walking import is_dataset
from stoker.storage import Location, from_uri, join

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stoker.sources.kind import Look


_LIST = re.compile(rb'\s*(\xef\xbb\xbf)?\{.*"(images|annotations)"\s*:\s*\[', re.DOTALL)
_HEAD_BYTES = 2**16
_ANNOTATIONS, _IMAGES, _DATA = "annotations", "images", "data"
_ROBOFLOW = "_annotations.coco.json"
_IN_SPLITS = (_ROBOFLOW, "labels.json", "annotations.json", f"{_ANNOTATIONS}/instances.json")
_STARTS = {"train": "train", "val": "validation", "test": "test"}
_IMAGE_FOLDER = re.compile("train|val|test|unlabeled", re.IGNORECASE)
_INSTANCES, _UNANNOTATED = "instances", "image_info"
_TRIED, _TRIED_IMAGES = 32, 8


@dataclass(frozen=True, slots=True)
class CocoFile:
    """A COCO file."""

    path: Location  # where it lies
    split: str  # the split of its images
    subject: str  # what it says of them, as its name has it without the split: ``instances``, ``captions``
    images: Location | None = None  # the folder that may have its images; None if it was not looked for
    is_of_folders: bool = False  # whether folders that may be classes lie in it

    @classmethod
    def called(cls, path: Location, images: Location | None = None) -> CocoFile:
        """Return a file whose name tells the split, as that of ``instances_val2017.json``.

        The last word decides if it is one, otherwise any. Of a file of Roboflow's it is its folder.
        """
        words = [path.parent.name] if path.name == _ROBOFLOW else _stem(path).split("_")
        last = words[-1].lower()
        told = {len(words) - 1: split for start, split in _STARTS.items() if last.startswith(start)} or {
            at: SPLIT_WORDS[name]
            for at, word in enumerate(words)
            if (name := without_year(word.lower())) in SPLIT_WORDS
        }
        at, split = next(iter(told.items()), (len(words), "train"))
        return cls(path, split, "_".join(words[:at] + words[at + 1 :]), images)


def find_coco(look: Look) -> list[CocoFile]:
    """Return the COCO files of a folder whose images lie beside them in folders that are no classes."""
    return [file for file in look.once(_find_all) if not file.is_of_folders]


def coco_of_classes(look: Look) -> list[bytes]:
    """Return the paths of the COCO files of a folder whose images lie in folders that may be classes."""
    return [path_below(file.path, look.path.resolve()) for file in look.once(_find_all) if file.is_of_folders]


def _find_all(look: Look) -> list[CocoFile]:
    if look.layout is None:
        return []
    root = look.path.resolve()
    names = look.look_into(root)[0]
    alone = [inner for name in names if len(names) == 1 and look.look_into(inner := root / name)[0]]
    places = dict.fromkeys((look.layout.base, root, *alone))
    return next(filter(None, (_coco_at(look, place) for place in places)), [])


def _coco_at(look: Look, base: Location) -> list[CocoFile]:
    names = [os.fsdecode(name) for name in look.folders_in(base.to_uri())]
    splits = {base / name: split for name in names if (split := SPLIT_FOLDERS.get(os.fsencode(name))) is not None}
    files = [CocoFile(top / name, split, "", top) for top, split in splits.items() for name in _IN_SPLITS]
    folders = _image_folders(look, base, names)
    if folders:
        paths = _json_in(base)[:_TRIED] + (_json_in(base / _ANNOTATIONS) if _ANNOTATIONS in names else [])
        places = ((path, folders.get(_last_word(path), folders.get(""))) for path in paths)
        files += [CocoFile.called(path, images) for path, images in places if images is not None]
    return list(filter(None, in_order(_checked, files, base.requests_at_once)))


def _image_folders(look: Look, base: Location, names: Sequence[str]) -> dict[str, Location]:
    """Return the folders that may have the images of files beside them, by the word that these end with."""
    inner = look.look_into(base / _IMAGES)[0] if _IMAGES in names else []
    folders = {name: base / _IMAGES / name for name in inner}
    folders |= {name: base / name for name in names if _IMAGE_FOLDER.match(name)}
    folders |= {without_year(name): folder for name, folder in folders.items() if without_year(name) not in folders}
    others = [base / name for name in (_IMAGES, _DATA) if name in names]
    return {**folders, "": others[0]} if others else folders


def _json_in(folder: Location) -> list[Location]:
    names = (os.fsdecode(child.name) for child in folder.children() if not child.is_folder)
    return [folder / name for name in names if name.endswith(".json")]


def is_coco(path: Location) -> bool:
    """Return whether a file begins as COCO's do."""
    return path.suffix == ".json" and path.is_file() and _LIST.match(path.read_head(_HEAD_BYTES)) is not None


def _checked(file: CocoFile) -> CocoFile | None:
    """Return a file if it begins as COCO's do, and whether folders that may be classes are in that of its images."""
    if file.images is None or not is_coco(file.path):
        return None
    others = {*map(os.fsdecode, file.images.folders())} - {_ANNOTATIONS, _IMAGES, _DATA}
    return replace(file, is_of_folders=bool(others))


def of_each_split(files: Sequence[CocoFile]) -> list[CocoFile]:
    """Return the file of each split: ``instances`` if there are any; nothing where several may be meant.

    A split without may have an ``image_info``, which names images that have no annotations.
    """
    chosen = [file for file in files if file.subject.startswith(_INSTANCES)]
    chosen = chosen or [file for file in files if file.subject != _UNANNOTATED] or [*files]
    by_split = {file.split: file for file in chosen}
    if len(by_split) < len(chosen) or len({file.subject for file in chosen}) > 1:
        return []
    by_split = {file.split: file for file in files if file.subject == _UNANNOTATED} | by_split
    return [by_split[split] for split in _STARTS.values() if split in by_split]


def find_images(file: CocoFile, paths: Sequence[bytes], within: Location | None) -> Location:
    """Return the folder, ``within`` another, in which the images of a file lie, given what it calls them."""
    path, parent, above = file.path, file.path.parent, file.path.parent.absolute().parent
    name = _last_word(path)
    is_apart = parent.name == _ANNOTATIONS
    tops = [top for top in ((above,) if is_apart else (parent, above)) if name]
    folders: list[Location] = [top / name for top in tops] + [top / _IMAGES / name for top in tops]
    folders += [above / _IMAGES, parent, parent / _IMAGES, above if is_apart else parent / _DATA]
    if within is not None:
        folders = [folder for folder in folders if within in (folder, *folder.parents)]
    folders = ([] if file.images is None else [file.images]) + [folder for folder in folders if folder != file.images]
    tried, firsts = paths[:_TRIED_IMAGES], {image_path.partition(b"/")[0] for image_path in paths}
    for ends in (tried, [end for image_path in tried for end in path_ends(image_path)]):
        for folder in folders:
            if any(from_uri(join(folder.to_uri(), end)).is_file() for end in ends):
                return folder
    for folder in folders:  # where the first images are missing, others may be there
        if folder.is_dir() and any(child.name in firsts for child in folder.some_children()):
            return folder
    message = (
        f"the images that {path} names, such as {os.fsdecode(tried[0])}, are in none of {', '.join(map(str, folders))}"
    )
    raise SourceError(f"{message}; give the folder in which they lie as {option('image_root')}", path=str(path))


def unused_beside(look: Look, base: Location, folders: Sequence[Location]) -> Iterator[bytes]:
    """Yield the paths of folders below a folder that lie beside those of images, and have none of these in them."""
    places = {place for folder in folders for place in (folder, *folder.parents) if base in (place, *place.parents)}
    for place in sorted(places - {*folders}, key=str):
        children = [place / os.fsdecode(name) for name in look.folders_in(place.to_uri())]
        for child in children:
            is_left_out = child in places or child.name == _ANNOTATIONS or child.name.startswith(".")
            if not (is_left_out or is_dataset(child) or (look.without is not None and child.is_same(look.without))):
                yield path_below(child, base)


def path_below(place: Location, base: Location) -> bytes:
    """Return the path of a place relative to a folder that it is or lies in."""
    return os.fsencode("/".join(place.parts[len(base.parts) :]))


def _stem(path: Location) -> str:
    return path.name.removesuffix(path.suffix)


def _last_word(path: Location) -> str:
    return _stem(path).rpartition("_")[2]
