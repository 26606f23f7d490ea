"""Folders of images beside folders of masks, in which a file has the class id of each pixel of an image.

docs/reference/images.md says how folders and masks are called. Names of folders tell their role and the split of their
images, in any order: ``train/masks``, ``annotations/training``, ``gtFine/train/ulm``, ``Train/Urban/masks_png``. If
these have subfolders of the same names, a mask lies in the one with the name of its image's.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Literal

import numpy as np

from stoker.config import format_count, option_with
from stoker.errors import ImageError, SourceError
from stoker.fields import Mask
from stoker.recipe import Recipe, mask_ids
from stoker.sources.coco import find_coco
from stoker.sources.drawn_masks import EXAMPLES, Colours, are_coloured, read_colours
from stoker.sources.files import images_among
from stoker.sources.items import GrowingBlobs
from stoker.sources.names import IMAGE_WORDS, MASK_WORDS, divide_suffix, is_image_name, path_below
from stoker.sources.reader import Cells, json_bytes
from stoker.sources.source import Kind, Source, SourceBuilder
from stoker.sources.split_lists import divide_by_lists
from stoker.splits import ANY_SPLIT, SPLIT_WORDS, without_year
from stoker.storage import Location, from_uri, join

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stoker.sources.look import Look


_FOLDER = re.compile(
    rf"(?:(?P<split>{ANY_SPLIT})[-_ ]?|default)?"
    rf"(?:(?P<images>{IMAGE_WORDS})"
    rf"|(?P<masks>(?:[-_0-9a-z]+[-_ ])?(?:{MASK_WORDS})(?:[-_ ]?(?:masks?|labels?|images?|imgs?))?))?"
    rf"(?:[-_ ](?P<after>{ANY_SPLIT}|png|jpe?g|tiff?))?",
    re.IGNORECASE,
)
_IMAGE_AFFIX = re.compile(rb"^im(g|age)?s?[-_ ]?(?=[0-9])|[-_. ](leftImg8bit|image|img|rgb|sat)$", re.IGNORECASE)
_MASK_AFFIX = re.compile(
    rf"^({MASK_WORDS})[-_ ]?(?=[0-9])|\.(jpe?g|png)$|([-_. ]({MASK_WORDS}|(label|train)_?ids?|[LP]))+$".encode(),
    re.IGNORECASE,
)
"""Affixes of the names of masks, as in ``x_gtFine_labelIds``, CamVid's ``x_L`` and fastai's ``x_P``."""
_FURTHER = re.compile(rb"[-_. ][0-9]+$")
"""The end of the name of a further mask of an image, in place of one of another kind, such as its colours."""
_LOOKED_AT, _MAX_BYTES, _OTHER, _COLOURS = 3, 2**28, "other", "class_dict.csv"
_TABLES = (".csv", ".tsv", ".json", ".jsonl")
_MOST_IDS = 64  # more different values show that a file is not a mask
_Role = Literal["images", "masks"]


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder, with its path below the source, which ends in a slash; with ``is_guess`` no name says its role."""

    path: bytes
    role: _Role
    split: str | None
    is_guess: bool = False


@dataclass(slots=True)
class _Pairs:
    """Images of a folder and their masks, all by path below the source."""

    images: _Folder  # the folder of the images
    masks: bytes  # the folder of the masks; empty without one
    # path and size of each image with a mask, and path and size of the mask
    masks_of: dict[tuple[bytes, int], tuple[bytes, int]] = field(default_factory=dict)
    alone: list[bytes] = field(default_factory=list)  # images without a mask
    unused: list[bytes] = field(default_factory=list)  # masks without an image
    others: list[bytes] = field(default_factory=list)  # files beside masks of the same images, such as colours
    twice: tuple[bytes, bytes] | None = None  # two images of one mask, or two masks of one image

    @property
    def is_likely(self) -> bool:
        """Whether masks seem to belong to the images: half of the images, or of the masks, are in pairs."""
        images, masks = (len(self.masks_of) + len(alone) for alone in (self.alone, self.unused))
        return 2 * len(self.masks_of) >= max(1, min(images, masks))


@dataclass(frozen=True, slots=True)
class _Contents:
    builder: SourceBuilder
    pairs: Sequence[_Pairs]
    mask: Mask
    colours: Colours | None
    others: Sequence[bytes]


def _claim(look: Look) -> _Contents | None:
    """Return the pairs in a folder; None without pairs, or if a label map says that folders are classes."""
    if look.layout is None or look.options.labels is not None:
        return None
    root = look.path.resolve()
    known = list(_find(look, root))
    folders = [folder for folder in known if folder.split != _OTHER]
    if len({folder.role for folder in folders}) < 2:
        return None
    builder = SourceBuilder(look, root, is_ordered=False)
    files = _files_of(folders, builder)
    if not files:
        return None
    pairs: list[_Pairs] = []
    for images in (folder for folder in folders if folder.role == "images"):
        near = [folder for folder in folders if folder.role == "masks" and folder.split in (images.split, None)]
        likely = [own for masks in near if (own := _pair(images, masks, files)).is_likely]
        likely = [own for own in likely if b"gtFine" in own.masks] or likely
        above = _folder_of(images.path[:-1])
        likely = [own for own in likely if _folder_of(own.masks[:-1]) == above] or likely
        if len(likely) > 1:
            shown = " and ".join(os.fsdecode(own.masks) for own in likely)
            raise SourceError(f"{look.root} has masks of the same images in {shown}; keep one of them", path=look.root)
        pairs += likely or [_Pairs(images, b"", alone=[images.path + name for name, _ in files[images]])]
    if not any(own.masks_of for own in pairs):
        return None
    twice = next((own.twice for own in pairs if own.twice is not None), None) or _used_twice(pairs)
    if twice is not None:
        first, second = map(os.fsdecode, twice)
        message = f"{look.root} has both {first} and {second}, and only one of what they belong to"
        raise SourceError(f"{message}; keep one of them", path=look.root)
    mask, colours, problem = _look_into_masks(root, pairs)
    if problem and (any(own.images.is_guess for own in pairs) or look.once(find_coco)):
        return None
    if problem:
        message = f"{look.root} holds images beside what is called after masks, but {problem}"
        advice = f"if its folders are classes, name them in a file and give {option_with('labels', 'FILE')}"
        raise SourceError(f"{message}; {advice}", path=look.root)
    others = [folder.path for folder in known if folder.split == _OTHER]
    tables = [name for name in look.look_into(root).files if name.lower().endswith(_TABLES) and name not in EXAMPLES]
    message = "beside images and masks, not used: {names}; lists of splits are called train.txt, val.txt and test.txt"
    builder.skipped.warn(tables, message)
    return _Contents(builder, pairs, mask, colours, others)


def _files_of(folders: Sequence[_Folder], builder: SourceBuilder) -> dict[_Folder, Sequence[tuple[bytes, int]]]:
    """Return the images in folders; nothing if folders of masks have no images, but other annotations."""
    files: dict[_Folder, Sequence[tuple[bytes, int]]] = {}
    for role in ("masks", "images"):
        own = [folder for folder in folders if folder.role == role]
        for folder, listing in zip(own, builder.walk.list_folders([folder.path for folder in own]), strict=True):
            builder.skipped.add(listing.skipped)
            named = [file for file in listing.files if is_image_name(file[0])]
            files[folder] = images_among(listing.files, builder.skipped) if role == "images" else named
        if not any(files.values()):
            return {}
    return files


def _find(
    look: Look, top: Location, path: bytes = b"", role: _Role | None = None, split: str | None = None
) -> Iterator[_Folder]:
    """Yield the folders of images and of masks below a folder, whose role and split are given if names say them."""
    names = [name for name in look.folders_in(join(top.to_uri(), path[:-1])) if not name.startswith(b".")]
    roles = {name: own for name in names if any(own := _parse(name))}
    if role is not None:
        stems = {os.fsencode(without_year(os.fsdecode(name))): name for name in names}
        roles |= {name: own for stem, name in stems.items() if len(stems) == len(names) and any(own := _parse(stem))}
        splits = {name: own for name, (has_role, own) in roles.items() if has_role is None and split is None}
        yield from (_Folder(path + name + b"/", role, splits.get(name, _OTHER)) for name in names if splits)
        if not splits:
            yield _Folder(path, role, split)
        return
    roles = {name: own for name, own in roles.items() if own[0] or split is None}
    if not path and len(names) == 1 and not roles:
        yield from _find(look, top, names[0] + b"/")
    elif split is not None and not roles:
        inside = look.look_into(top / os.fsdecode(path + names[0])).folders if names else ()
        if any(_parse(os.fsencode(name))[0] == "masks" for name in inside):
            for name in names:
                yield from _find(look, top, path + name + b"/", None, split)
        else:
            yield _Folder(path, "images", split)  # train/ may lie beside train_masks/
    for name, (its_role, of) in roles.items():
        yield from _find(look, top, path + name + b"/", its_role, split or of)
        other = next((other for other in names if other != name), b"")
        is_called_apart = other not in roles and name.lower().rstrip(b"s") not in other.lower()
        if len(names) == 2 and its_role == "masks" and is_called_apart:
            yield _Folder(path + other + b"/", "images", split or of, is_guess=True)
            return
    yield from (_Folder(path + name + b"/", "images", _OTHER) for name in names if roles and name not in roles)


def _parse(name: bytes) -> tuple[_Role | None, str | None]:
    words = _FOLDER.fullmatch(os.fsdecode(name))
    if words is None:
        return None, None
    role: _Role | None = "images" if words["images"] else "masks" if words["masks"] else None
    return role, SPLIT_WORDS.get((words["split"] or words["after"] or "").lower())


def _pair(images: _Folder, masks: _Folder, files: Mapping[_Folder, Sequence[tuple[bytes, int]]]) -> _Pairs:
    """Return which masks belong to which images, by the names of the files below both folders."""
    pairs = _Pairs(images, masks.path)
    left, masks_left, keys = dict(files[images]), dict(files[masks]), set[tuple[bytes, bytes]]()
    by_folder = not set(map(_folder_of, left)).isdisjoint(map(_folder_of, masks_left))
    for is_exact in (True, False):
        keys_of = [
            {
                name: (_folder_of(name) if by_folder else b"", _key(name, is_exact=is_exact, is_mask=is_mask))
                for name in of
            }
            for is_mask, of in enumerate((left, masks_left))
        ]
        image_of, mask_of = ({key: name for name, key in own.items()} for own in keys_of)
        both = image_of.keys() & mask_of.keys()
        for path, own, of in ((images.path, keys_of[0], image_of), (masks.path, keys_of[1], mask_of)):
            again = next((name for name, key in own.items() if key in both and of[key] != name), None)
            if again is not None:
                pairs.twice = path + again, path + of[own[again]]
        for name, key in keys_of[0].items():
            if key in both and image_of[key] == name:
                mask = mask_of[key]
                pairs.masks_of[images.path + name, left.pop(name)] = masks.path + mask, masks_left.pop(mask)
        keys |= {(key[0], _key(image_of[key], is_exact=False)) for key in both}
    pairs.alone = [images.path + name for name in left]
    for name in masks_left:
        starts = (name[: at.start()].rpartition(b"/")[2] for at in re.finditer(rb"[-_. ]", name))
        if any((_folder_of(name) if by_folder else b"", start) in keys for start in starts):
            pairs.others.append(masks.path + name)
        else:
            pairs.unused.append(masks.path + name)
    return pairs


def _used_twice(pairs: Sequence[_Pairs]) -> tuple[bytes, bytes] | None:
    image_of: dict[bytes, bytes] = {}
    all_pairs = chain.from_iterable(own.masks_of.items() for own in pairs)
    again = ((image_of.setdefault(mask, image), image) for (image, _), (mask, _) in all_pairs)
    return next((images for images in again if images[0] != images[1]), None)


def _folder_of(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]


def _key(path: bytes, *, is_exact: bool, is_mask: int = 0) -> bytes:
    """Return the key by which an image and its mask are matched: the whole stem, or the part that both share."""
    stem = divide_suffix(path.rpartition(b"/")[2])[0]
    if is_exact:
        return stem
    return _IMAGE_AFFIX.sub(b"", _MASK_AFFIX.sub(b"", stem) if is_mask else stem)


def _look_into_masks(root: Location, pairs: Sequence[_Pairs]) -> tuple[Mask, Colours | None, str]:
    """Return the field of masks, their colours, and what is wrong if none of a few files is a mask."""
    are_guessed = any(own.images.is_guess for own in pairs)
    files = [from_uri(join(root.to_uri(), mask)) for own in pairs for mask, _ in own.masks_of.values()]
    some = files[:: max(1, len(files) // _LOOKED_AT)][:_LOOKED_AT]
    has_colours = are_coloured(some)
    if has_colours and (colours := read_colours([root, *(file.parent for file in some)])):
        return colours.mask, colours, ""
    bits, problems = 8, []
    for file in some:
        try:
            ids = mask_ids(file.read_at_most(_MAX_BYTES), Recipe().check_pixels)
        except ImageError as error:
            problems.append(f"{file} is none: {error}")
        else:
            bits = bits if ids.dtype.itemsize == 1 else 16
            if are_guessed and len(np.unique(ids)) > _MOST_IDS:
                problems.append(f"{file} has more values than ids of classes have")
    hint = f"list these in {root / _COLOURS}, in lines such as {EXAMPLES[_COLOURS]!r}, or " if has_colours else ""
    problem = f"{problems[0]}; {hint}write a PNG of the ids for each image" if len(problems) == len(some) else ""
    return Mask(bits), None, problem


def _list(look: Look, contents: _Contents) -> Source:
    builder, skipped, cells = contents.builder, contents.builder.skipped, GrowingBlobs()
    for pairs in contents.pairs:
        split = pairs.images.split or "train"
        group = builder.collector.group(split, None, len(pairs.images.path))
        for (image, size), (mask, mask_bytes) in pairs.masks_of.items():
            builder.collector.add(group, image, size)
            cells.append(json_bytes([os.fsdecode(mask), mask_bytes]))
        further = sorted(name for name in pairs.others if _FURTHER.search(divide_suffix(name)[0]))
        message = f"{format_count(len(further), 'mask')} besides that of the image, not used: {{names}}"
        skipped.warn(further, message)
        skipped.ignored["beside the masks"] += len(pairs.others)
        for names, what in ((pairs.alone, "image without a mask"), (pairs.unused, "mask without an image")):
            count = format_count(len(names), what.partition(" ")[0])
            skipped.warn(sorted(names), f"{count} {what.partition(' ')[2]}, not used: {{names}}", what)
    above = {(own.images.split, _folder_of(own.images.path[:-1])) for own in contents.pairs if own.masks_of}
    if len(above) > len({split for split, _ in above}):
        skipped.warn(sorted({path for _, path in above}), "folders of images and masks, not classes: {names}")
    builder.collector.columns["cells"] = cells.finish()
    lists = [path_below(path, builder.folder) for path in divide_by_lists(builder, look)]
    others = [name for name in contents.others if not any(path.startswith(name) for path in lists)]
    skipped.warn(others, "beside images and masks, not used: {names}")
    drawn = None if contents.colours is None else contents.colours.drawn
    return builder.finish(cells=Cells((("mask", contents.mask), None), drawn=drawn))


MASK_FOLDERS = Kind(
    name="folders of images and of masks",
    claim=_claim,
    list=_list,
    options=frozenset({"labels", "imagenet_labels"}),
)
