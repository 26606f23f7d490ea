"""Folders that look like class folders but are not: those beside a table of the images, or of a known layout.

Known layouts are images beside their masks or annotations (YOLO without ``data.yaml``). Few names and bytes decide,
however many images there are. With a label map the folders are always classes.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import shlex
from collections import Counter
from operator import methodcaller
from typing import TYPE_CHECKING

from stoker import _native
from stoker.config import format_some, option_with
from stoker.errors import ImageError, SourceError
from stoker.sources.coco import coco_of_classes, is_coco
from stoker.sources.files import in_order
from stoker.sources.image_tables import ImageTable, check_against_folders, find_tables, is_table, why_no_images
from stoker.sources.names import ANNOTATION_FOLDERS, IMAGE_WORDS, MASK_WORDS, is_image_name, may_be_image, shown_names
from stoker.sources.parquet_files import ARROW_SUFFIX, PARQUET_SUFFIX
from stoker.sources.split_lists import find_lists
from stoker.splits import ANY_SPLIT, SPLIT_FOLDERS, SPLITS, splits_among, splits_in, without_year

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stoker.sources.look import Look
    from stoker.sources.source import SourceBuilder
    from stoker.storage import Location


_NEUTRAL = re.compile(
    f"(?<![a-z])({ANY_SPLIT}|all|batch|clips?|data|dataset|dcim|files?|folder|frames|full|images?|imgs?|inputs?|jpegs?|jpg"
    "|jpegimages|leftimg8bit|original|part|patch|patients?|photos|pics|pictures|png|raw|resized|rgb|seq(uence)?s?|set"
    "|stud(y|ies)|(un)?labell?ed|v(?=[0-9])|videos?)[0-9]*(?![a-z0-9])",
    re.IGNORECASE,
)
"""Words in names of folders that do not say what is in images."""
_MASKS = re.compile(f"((?:{MASK_WORDS}|instances?|panoptic|semantic|stuffthingmaps)[-_ ]?)+", re.IGNORECASE)
_MASK_ENDING = re.compile(f"[-_. ]({MASK_WORDS}|(1st|2nd)ho|manual)(_?[0-9]+)?$", re.IGNORECASE)
_IMAGE_ENDINGS = ("", "_sat", "_image", "_img", "_rgb")
_OF_A_CITY = re.compile(r"_[0-9]{6}_[0-9]{6}_leftImg8bit\.")
YEAR = re.compile("(19|20)[0-9]{2}")
_YOLO = "data.yaml"
_ARRAYS = {
    "data_batch_1": "CIFAR10",
    "train-images-idx3-ubyte": "MNIST",
    "train_32x32.mat": "SVHN",
    "train_X.bin": "STL10",
}
"""Files of pixels and labels, and the class of torchvision that reads them; CIFAR-100 is `_CIFAR_100`."""
_TRAIN, _OF_SPLIT = (  # without ``dev``, ``training`` and ``testing``, which begin names of classes
    re.compile(rf"({words})([-_. 0-9].*|[AB])?", re.IGNORECASE).fullmatch
    for words in ("train", "train|val|valid|validation|test")
)
_LETTER = re.compile("[A-Za-z]")
_VALUES = re.compile(r"(?!(19|20)[0-9]{2}_)[0-9]{1,4}(_[^_]+){2,}\.[A-Za-z]+")
_CIFAR_100 = {"meta", "test", "train"}
VIEW = re.compile(
    rf"(({IMAGE_WORDS}|frame|left|right|[lr]|front|back|rear|side|top|bottom|cam(era)?|view|before|after|(?-i:[AB])"
    "|colou?r|depth|disp(arity)?|flow|gr[ae]y|n?ir|thermal|source|target|clea[nr]|noisy|hazy|blur(red|ry)?|sharp|low"
    "|high|[lh][rq])[-_.]?)+",
    re.IGNORECASE,
)
"""Names of folders with different views, or pairs of images, of one scene."""
CONVERT = "write boxes as COCO, YOLO or Pascal VOC, and labels or captions into metadata.csv, beside file_name"
"""What to do with annotations that are not read."""
_DEEPEST, _FEW, _SOME, _LEAST_STEP, _HEAD_BYTES, _LONGEST_LINE = 3, 4, 16, 100, 2**16, 140


def check_class_folders(
    look: Look, builder: SourceBuilder, base: Location, classes: Mapping[bytes, Sequence[bytes]]
) -> list[ImageTable]:
    """Refuse folders that do not seem to be classes; warn of a single class whose name says nothing.

    ``classes`` has the class folders in the folder of each split below ``base``. If tables have the classes instead,
    these tables are returned.
    """
    root, options = builder.root, builder.options
    levels = {base / os.fsdecode(split): sorted(map(os.fsdecode, names)) for split, names in classes.items()}
    folders = [top / name for top, names in levels.items() for name in names]
    names = sorted({folder.name for folder in folders})
    if names and builder.labels is not None and {*map(os.fsencode, names)} <= {*builder.labels.names}:
        return []
    words = {name: _class_words(name) for name in names}
    seen = next(filter(None, (_known_layout(look, top, names) for top, names in levels.items() if names)), None)
    anyway = f"; {classes_advice(names)}" if names else ""
    tell_nothing = len({*words.values()} - {""}) <= 1
    near = look.files_near(base)
    of_tables = [folder for folder in folders[:_FEW] if tell_nothing or not _may_hold_images(look, folder)]
    near += [top / name for top in (*of_tables, *(levels.keys() - {base})) for name in look.look_into(top).files]
    files = [file for file in near if not (options.boxes or "").endswith(file.name)]
    try:
        if tell_nothing and (tables := find_tables(look, base, files, folders[:_FEW])):
            return tables
        if not tell_nothing and builder.labels is None:
            builder.label_warnings += check_against_folders(look, base, files, folders[:_FEW], words)
    except SourceError as error:
        raise SourceError(f"{error}{anyway}", path=root) from error
    if seen is not None and builder.labels is None:
        raise SourceError(f"{root} holds {seen}{anyway}", path=root)
    numbers = [int(name) for name in names if re.fullmatch("[0-9]{4,9}", name)]
    are_steps = len(numbers) == len(names) > 1 and min(numbers) == 0 and math.gcd(*numbers) >= _LEAST_STEP
    are_neutral, repeated = are_steps or not any(words.values()), Counter(words.values())
    parts = [name for name in names if "train" in name.lower() and words[name] and repeated[words[name]] > 1]
    parts += names if any(map(_TRAIN, names)) and all(map(_OF_SPLIT, names)) else []
    if len(names) > 1 and (are_neutral or parts) and builder.labels is None:
        if any(look.look_into(folder).ending in (PARQUET_SUFFIX, ARROW_SUFFIX) for folder in folders[:_FEW]):
            return []  # `folders` refuses them with a better message
        message = f"{root} has folders whose names are no classes ({format_some(names, _FEW)})"
        message += "; splits are called train, validation, test"
        annotations: list[bytes | str] = [*coco_of_classes(look), *(file.name for file in near if is_coco(file))]
        message += f"; for boxes give a COCO file: {shown_names(annotations)}" if annotations else ""
        links = _links(look, base, names) if base.is_local and [*levels] == [base] else ""
        message += f"; to read them as splits, type: {links}" if links else ""
        message += f"; {_without_classes(look, base, folders[0])}" if base.is_local and not parts and not links else ""
        raise SourceError(f"{message}{anyway}", path=root)
    if len(names) == 1 and (
        any(map(is_table, files))
        or are_neutral
        or YEAR.fullmatch(names[0])
        or begin_with_numbers(look.look_into(folders[0]).files)
    ):
        message = f"all images of {root} are of one class, {names[0]!r}, the name of their folder"
        message += f"; to read them without classes give {folders[0]}" if b"" in classes else ""
        lists = find_lists(file.name for file in near)[0].values()
        wrong = {file.name: problem for file in files if (problem := why_no_images(look, file, folders[0]))}
        beside = [os.fsencode(file.name) for file in near if file.name not in (*lists, *wrong)]
        if others := [name for name in beside if not is_image_name(name)]:
            advice = f"Pascal VOC's are read with {folders[0]}" if others[0].endswith(b".xml") else CONVERT
            message += f"; not read are the files beside them: {shown_names(others)}; {advice}"
        builder.label_warnings.append("; ".join((message, *[*wrong.values()][:_FEW])))
    builder.label_warnings += [] if builder.labels else _pairs(look, levels)
    return []


def _pairs(look: Look, levels: Mapping[Location, Sequence[str]]) -> list[str]:
    """Return a warning of class folders that are named after views of scenes and hold images of the same names."""
    for top, names in levels.items():
        files = look.look_into(top / names[0]).files[:_SOME] if names and all(map(VIEW.fullmatch, names)) else []
        paths = [top / folder / name for folder in names[1:] for name in files]
        if paths and all(in_order(methodcaller("is_file"), paths, top.requests_at_once)):
            message = f"the classes are {format_some(names, _FEW)}, with images of the same names, such as {files[0]}"
            rows = f"ls {names[0]} | sed 's|.*|{names[0]}/&,{names[1]}/&|'"
            typed = typed_table(top, rows, "file_name,second_file_name")
            return [f"{message}; if they belong together, type: {typed}"]
    return []


def _without_classes(look: Look, base: Location, folder: Location) -> str:
    for _ in range(_FEW):
        folder = folder / inner[0] if (inner := look.look_into(folder).folders) else folder
    rows = f"find * -type f -name '*{look.look_into(folder).ending}' | sed 's/$/,/'"
    return f"to read all without classes, type: {typed_table(base, rows)}"


def _links(look: Look, base: Location, names: Sequence[str]) -> str:
    """Return what to type to read folders as the splits in their names; empty if the names have none."""
    folders: dict[str, list[Location]] = {}
    for name in names:
        folders.setdefault(" ".join({*splits_in(name)}), []).append(_alone_in(look, base / name)[-1])
    folders.pop("", None)
    if not folders.keys() > {"train"} or any(len(same) > 1 or split not in SPLITS for split, same in folders.items()):
        return ""
    links = "".join(
        f" && ln -s {shlex.quote('/'.join(('..', *folder.parts[len(base.parts) :])))} splits/{split}"
        for split, (folder,) in folders.items()
    )
    return f"(cd {shlex.quote(str(base))} && mkdir splits{links}); and give {base / 'splits'}"


def _alone_in(look: Look, folder: Location) -> list[Location]:
    """Return a folder, the only folder in it if no images lie beside that, the only folder in that, and so on."""
    nested = [folder]
    while len((held := look.look_into(nested[-1])).folders) == 1 and not _has_images(held.files):
        nested.append(nested[-1] / held.folders[0])
    return nested


def _has_images(files: Sequence[str]) -> bool:
    return any(map(is_image_name, map(os.fsencode, files)))


def typed_table(folder: Location, rows: str, columns: str = "file_name,label") -> str:
    """Return what to type to write a table of the images in a folder, given a command that prints its rows there."""
    return f"(cd {shlex.quote(str(folder))} && (echo {columns}; {rows}) > metadata.csv)"


def classes_advice(names: Sequence[str]) -> str:
    """Return what to type if the folders are classes nevertheless."""
    typed = f"type: printf '%s\\n' {shlex.join(names)} > folders.txt; and give {option_with('labels', 'folders.txt')}"
    if len(typed) > _LONGEST_LINE:
        typed = f"write their names into a file, one a line, and give {option_with('labels', 'FILE')}"
    return f"if its folders are classes, {typed}"


def belonging_beside(look: Look) -> str:
    """Return what lies beside a folder of images, or of their splits, and may belong to them; empty if nothing does.

    Names decide, such as ``labels`` beside ``images`` and ``annotations`` beside ``train2017``, or a COCO file.
    """
    folder = look.path.resolve()
    for level in (folder, folder.parent):
        if _class_words(level.name):
            break
        with contextlib.suppress(SourceError, OSError):  # of a folder above, which need not be readable
            folders, files, _ = look.look_into(level.parent)
            beside = [f"{name}/" for name in folders if _MASKS.fullmatch(_class_words(name))]
            beside += [name for name in files[:_SOME] if is_coco(level.parent / name)]
            if beside:
                names = " and ".join(beside[:_FEW])
                return f"{names} beside {level.name}/, which may belong to its images: give {level.parent} to read them"
    return ""


def _class_words(name: str) -> str:
    """Return the part of a folder's name that may be a class, without neutral words and numbers beside them."""
    rest = _NEUTRAL.sub("", name)
    return name if rest == name else re.sub(r"[\W\d_]+", " ", rest).strip()


def refuse_arrays(look: Look, top: Location) -> None:
    """Refuse a folder without splits that holds, directly or one level down, arrays that torchvision downloads."""
    names = look.look_into(top).folders
    if look.options.labels is not None or any(os.fsencode(name) in SPLIT_FOLDERS for name in names):
        return
    below = [top, *(top / name for name in names[:_FEW])]
    below += [folder / "raw" for folder in below if "raw" in look.look_into(folder).folders]
    for folder in below:
        files = {name.removesuffix(".gz") for name in look.look_into(folder).files}
        kind = next((_ARRAYS[name] for name in _ARRAYS if name in files), "CIFAR100" if files >= _CIFAR_100 else None)
        if kind is not None:
            root = {"MNIST": folder.parent.parent, "SVHN": folder}.get(kind, folder.parent)
            kind = folder.parent.name if kind == "MNIST" and folder.parent.name.endswith(kind) else kind
            typed = f"stoker.open(torchvision.datasets.{kind}({str(root)!r}))"
            message = f"{look.root} holds arrays of {kind}, in {folder}, and no image files; in Python give {typed}"
            raise SourceError(message, path=look.root)


def inner_folders(look: Look, base: Location, classes: Mapping[bytes, Sequence[bytes]]) -> list[str]:
    """Warn of class folders that may hold the classes instead of being them.

    They all hold the same folders; or each holds different ones, with names that may be classes and differ from its
    own; or their names are single letters.
    """
    for split, folders in classes.items():
        top, names = base / os.fsdecode(split), sorted(map(os.fsdecode, folders))
        reached = [top / name for name in names[:_FEW]]
        for depth in range(2, 2 + _DEEPEST):
            below = [look.look_into(folder) for folder in reached]
            inner = [{*own} for own, files, _ in below if not _has_images(files)]
            if len(names) < 2 or len(inner) < len(below) or not all(inner):
                break
            same = sorted(name for name in set.intersection(*inner) if _LETTER.search(_class_words(name)))
            first = reached[0] / (same or sorted(inner[0]))[0]
            end = look.look_into(first).ending
            if end and (len(same) > 1 or _differ(names, inner) or all(map(_LETTER.fullmatch, names))):
                message = f"the classes are {format_some(names, _FEW)}, not the folders in them, such as {first}; to"
                typed = f"stoker list {shlex.quote(str(top / ('*/' * depth + f'*{end}')))} --out inner.txt"
                return [f"{message} have these as classes, type: {typed}; and give inner.txt"]
            reached = [folder / min(own) for folder, own in zip(reached, inner, strict=True)]
    return []


def _differ(names: Sequence[str], inner: Sequence[set[str]]) -> bool:
    """Return whether folders hold different folders, whose names are neither theirs, nor neutral words, nor dates."""
    known = set.union(*inner)
    are_disjoint = min(map(len, inner)) > 1 and sum(map(len, inner)) == len(known)
    of_their_names = any(name in each for name, own in zip(names, inner, strict=False) for each in own)
    return are_disjoint and not of_their_names and all(map(_class_words, known)) and not any(map(YEAR.match, known))


def begin_with_numbers(names: Sequence[str]) -> bool:
    """Return whether names may have values: short numbers, not years, and words, some of which repeat."""
    rows = [name.split("_")[:3] for name in names if _VALUES.fullmatch(name)]
    counts = [len({*column}) for column in zip(*rows, strict=True)]
    return len(rows) == len(names) and any(1 < count <= len(names) // 2 for count in counts)


def _known_layout(look: Look, top: Location, names: Sequence[str]) -> str | None:
    """Describe the known layout that folders in a folder have; None for others."""
    below = [top / name for name in dict.fromkeys((*names[:_FEW], *(name for name in names if name == top.name)))]
    inner = dict(zip(below, in_order(look.look_into, below, top.requests_at_once), strict=True))
    lone = [folder for folder in below if _may_hold_images(look, folder)]
    copies = [folder for folder, (folders, _, _) in inner.items() if len({*folders}.intersection(names)) > 1]
    seen: list[str | None] = [f"{folder} with the folders in it that lie beside it; move it away" for folder in copies]
    seen += [_data_set(look, lone[0], is_lone=True)] if len(lone) == 1 < len(names) == len(below) else []
    seen += [_beside_masks(top, names), *(_beside_masks(folder, folders) for folder, (folders, _, _) in inner.items())]
    seen += [masks_among(folder, files, is_lone=len(names) == 1) for folder, (_, files, _) in inner.items()]
    cities = [folder for folder, (_, files, _) in inner.items() if any(map(_OF_A_CITY.search, files))]
    if cities and len(cities) == len(inner):
        hint = belonging_beside(look) or "gtFine/, with their masks, belongs beside leftImg8bit/"
        seen.append(f"images of Cityscapes in folders of cities, such as {cities[0]}; {hint}")
    own = [str(folder / _YOLO) for folder, (_, files, _) in inner.items() if _YOLO in files]
    seen += [f"data sets of their own: {' and '.join(own)}; give the folder of one" if own else None]
    seen += [_data_set(look, folder, is_lone=len(names) == 1) for folder in inner]
    if len(names) == 2:
        seen += [_paired(look, *below), _paired(look, *reversed(below))]
    return next(filter(None, seen), None)


def _beside_masks(top: Location, names: Sequence[str]) -> str | None:
    """Describe folders named after images beside folders named after masks or annotations; None for others."""
    images = [name for name in names if not _class_words(name)]
    masks = [name for name in names if _MASKS.fullmatch(_class_words(name))]
    if not masks and any(os.fsencode(without_year(name.lower())) not in SPLIT_FOLDERS for name in images):
        masks = [name for name in map(os.fsdecode, sorted(ANNOTATION_FOLDERS)) if (top / name).is_dir()]
    if images and masks and len(names) <= 2 * len([*images, *masks]):
        hint = "; of YOLO's labels, classes.txt or data.yaml beside them has to name the classes"
        hint = hint if masks[0] == "labels" else ""
        hint += "; a mask is a PNG called as its image, 1.png or 1_mask.png" if "mask" in masks[0].lower() else ""
        files = (child.name for child in (top / masks[0]).some_children() if child.name.endswith(b".json"))
        coco = next(filter(is_coco, (top / masks[0] / os.fsdecode(name) for name in files)), None)
        hint += (
            f"; of COCO's {coco}, give {option_with('image_root', str(top / images[0]))}" if coco is not None else ""
        )
        hint += f"; to read the images alone, give {top / images[0]}"
        return f"{images[0]}/ beside {masks[0]}/, images and what belongs to them{hint}"
    return None


def _may_hold_images(look: Look, folder: Location) -> bool:
    folders, files, _ = look.look_into(folder)
    return bool(folders) or any(map(may_be_image, map(os.fsencode, files)))


def _data_set(look: Look, folder: Location, *, is_lone: bool) -> str | None:
    """Describe a folder that may be the data set, as it has splits, or is the only one and holds others; else None."""
    *above, folder = _alone_in(look, folder) if is_lone else [folder]
    folders, files, _ = look.look_into(folder)
    tabled = (outer for outer in above if any(is_table(outer / name) for name in look.look_into(outer).files))
    if is_lone and (masks := masks_among(folder, files, is_lone=True)):
        return masks
    splits = splits_among({*map(os.fsencode, folders)})
    if (
        len(folders) > 1
        and not _has_images(files)
        and (is_lone or ("train" in splits.values() and len(splits) == len(folders)))
    ):
        seen = f"{folder} with {folders[0]}/ and {folders[1]}/ in it, which may be the data set"
        return f"{seen}; give {next(tabled, folder)}"
    return None


def masks_among(folder: Location, files: Sequence[str], *, is_lone: bool) -> str | None:
    """Describe masks among the images in a folder, by their names, and say what to do; None without masks."""
    if not any(_MASK_ENDING.search(name.rpartition(".")[0]) for name in files):  # as for millions of photographs
        return None
    stems = {name.rpartition(".")[0]: name for name in files if may_be_image(os.fsencode(name))}
    images = {stem: _MASK_ENDING.sub("", stem) for stem in stems if _MASK_ENDING.search(stem)}
    masks = [(stem, own + end) for stem, own in images.items() for end in _IMAGE_ENDINGS if own + end in stems]
    if not masks or _FEW * len(masks) < len(stems):
        return None
    mask, image = masks[0]
    message = f"{stems[mask]} beside {stems[image]} in {folder}, an image and its mask; to read both,"
    if not (is_lone and folder.is_local):
        return f"{message} move the masks to a folder masks/ beside images/"
    all_masks, all_images = (
        "*" + shlex.quote(stems[each].removeprefix(stem)) for each, stem in ((mask, images[mask]), (image, image))
    )
    typed = f"cd {shlex.quote(str(folder))} && mkdir images masks && mv {all_masks} masks && mv {all_images} images"
    return f"{message} type: ({typed}); and give {folder}"


def _paired(look: Look, images: Location, masks: Location) -> str | None:
    """Describe a folder that holds the masks or annotations of the images in another; None for others."""
    files, end = look.look_into(masks).files[:_SOME], look.look_into(images).ending
    paths = [images / (name.rpartition(".")[0] + end) for name in files]
    if _FEW * sum(in_order(methodcaller("is_file"), paths, images.requests_at_once)) < max(1, 3 * len(paths)):
        return None
    called = _MASKS.fullmatch(_class_words(masks.name)) and masks.name.lower().rstrip("s") not in images.name.lower()
    if called or (all(_are_grey(look, masks)) and not any(_are_grey(look, images))):
        message = f"files in {masks.name}/ with the names of those in {images.name}/, to which they belong"
        typed = f"(cd {shlex.quote(str(images.parent))} && mv {shlex.quote(images.name)} images && mv"
        typed += f" {shlex.quote(masks.name)} masks)"
        return message + f"; if these are masks, type: {typed}" * (images.is_local and all(_are_grey(look, masks)))
    return None


def _are_grey(look: Look, folder: Location) -> Iterator[bool]:
    """Yield whether each of some images has a palette or a single channel."""
    files = [folder / name for name in look.look_into(folder).files[:_SOME]]
    for head in in_order(methodcaller("read_head", _HEAD_BYTES), files, folder.requests_at_once):
        try:
            yield _native.probe_jpeg(head).components == 1
        except ImageError:
            yield head.startswith(b"GIF8") or (head.startswith(b"\x89PNG") and head[25:26] in (b"\0", b"\3", b"\4"))
