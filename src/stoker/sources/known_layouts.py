"""Folders that look like class folders and are none: beside a table that names the images, or of a known layout.

Known are images beside their masks or annotations (YOLO without ``data.yaml``). Few names and bytes
decide, however many images there are. A label map insists on the folders.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
from collections import Counter
from itertools import islice
from operator import methodcaller
from typing import TYPE_CHECKING

from stoker import _native
from stoker.errors import ImageError, SourceError
from stoker.sources.class_folders import SPLIT_FOLDERS
from stoker.sources.imagenet.annotations import ANNOTATION_FOLDERS
from stoker.sources.imagenet.labels import LABEL_LISTS, label_option
from stoker.sources.reading import in_order
from stoker.sources.walking import is_sidecar, seen_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stoker.sources.source_builder import SourceBuilder
    from stoker.storage import Location


_NEUTRAL = re.compile(
    "(?<![a-z])(all|batch|data|dataset|dcim|dev|files?|folder|frames|full|images?|imgs?|inputs?|jpegs?|jpegimages|jpg"
    "|leftimg8bit|original|part|photos|pics|pictures|png|raw|resized|rgb|set|test(ing)?|train(ing)?|val(id(ation)?)?)"
    "[0-9]*(?![a-z0-9])",
    re.IGNORECASE,
)
"""Words that do not say what is in images."""
_MASKS = re.compile(
    "((annot(ation)?s?|ground.?truth|gt(coarse|fine)?|labels?|masks?|seg(mentations?)?)[-_ ]?)+",
    re.IGNORECASE,
)
_YEAR = re.compile("(19|20)[0-9]{2}")
_OTHER_TABLES = {*LABEL_LISTS, "LOC_train_solution.csv", "imagenet_2012_bounding_boxes.csv"}
_LABELS = ("label", "class", "category", "target")
_FEW, _SOME, _MANY, _HEAD_BYTES = 4, 16, 1000, 2**16


def check_class_folders(builder: SourceBuilder, base: Location, classes: Mapping[bytes, Sequence[bytes]]) -> None:
    """Refuse folders that are no classes, as it seems; warn of a single class whose name tells nothing.

    Args:
        builder: The source, of which nothing is listed yet.
        base: Folder of the splits or the classes.
        classes: The class folders in the folder of each split; no list gives labels beside them.

    Raises:
        SourceError: A table has the classes, or the folders are those of a known layout.
        OSError: A file cannot be read, or the store cannot be reached.
    """
    root, options = builder.root, builder.options
    if options.labels is not None:
        return
    levels = {base / os.fsdecode(split): sorted(map(os.fsdecode, names)) for split, names in classes.items()}
    folders = [top / name for top, names in levels.items() for name in names]
    names = sorted({folder.name for folder in folders})
    class_words = {_told(name) for name in names}
    seen = next(filter(None, (_known_layout(top, names) for top, names in levels.items() if names)), None)
    if len(class_words - {""}) <= 1:
        near = [base / os.fsdecode(child.name) for child in base.children() if child.is_file]
        near += [top / name for top in folders[:_FEW] for name in _look_into(top)[1]]
        tables = [file for file in near if not (options.boxes or "").endswith(file.name)]
        seen = table_of_images(base, tables, folders[:_FEW]) or seen
    if seen is not None:
        raise SourceError(f"{root} holds {seen}{f'; {insisting(names)}' if names else ''}", path=root)
    if len(names) == 1 and (class_words == {""} or _YEAR.fullmatch(names[0])):
        builder.label_warnings.append(f"all images of {root} are of one class, {names[0]!r}, the name of their folder")


def insisting(names: Sequence[str]) -> str:
    """Return what to type where folders are classes all the same."""
    typed = f"printf '%s\\n' {shlex.join(names)} > classes.txt; and give {label_option('classes.txt')}"
    return f"if its folders are classes, type: {typed}"


def _look_into(folder: Location) -> tuple[list[str], list[str], str]:
    """Return some folders and some files in a folder, sorted names without hidden ones, and how most images end."""
    some = {(os.fsdecode(name), is_folder) for name, is_folder in islice(seen_in(folder.to_uri()), _MANY)}
    folders, files = ([name for name, of in sorted(some) if of is kind and name[0] != "."] for kind in (True, False))
    ends = Counter((folder / name).suffix for name in files if not is_sidecar(os.fsencode(name)))
    return folders, files, max(ends, key=lambda end: ends[end], default="")


def _told(name: str) -> str:
    """Return what of the name of a folder may be a class: nothing of neutral words and of numbers beside them."""
    rest = _NEUTRAL.sub("", name)
    return name if rest == name else re.sub(r"[\W\d_]+", " ", rest).strip()


def _known_layout(top: Location, names: Sequence[str]) -> str | None:
    """Return what was seen of a known layout whose folders lie in a folder; None for other folders."""
    inner = {name: _look_into(top / name)[0] for name in names if len(names) == 1}
    seen = [_beside_masks(top, names), *(_beside_masks(top / name, children) for name, children in inner.items())]
    if len(names) == 2:
        seen += [_paired(top / names[0], top / names[1]), _paired(top / names[1], top / names[0])]
    return next(filter(None, seen), None)


def _beside_masks(top: Location, names: Sequence[str]) -> str | None:
    """Return what was seen if folders are called after images, others after masks or annotations, and few otherwise."""
    images = [name for name in names if not _told(name)]
    masks = [name for name in names if _MASKS.fullmatch(_told(name))]
    if not masks and any(os.fsencode(name.lower().rstrip("0123456789")) not in SPLIT_FOLDERS for name in images):
        masks = [name for name in map(os.fsdecode, sorted(ANNOTATION_FOLDERS)) if (top / name).is_dir()]
    if images and masks and len(names) <= 2 * len([*images, *masks]):
        hint = "; of YOLO's labels, data.yaml beside them has to name the classes" if masks[0] == "labels" else ""
        return f"{images[0]}/ beside {masks[0]}/, images and what belongs to them{hint}"
    return None


def _paired(images: Location, masks: Location) -> str | None:
    """Return what was seen if one folder holds the masks or annotations of the images in another."""
    files, end = _look_into(masks)[1][:_SOME], _look_into(images)[2]
    places = [images / (name.rpartition(".")[0] + end) for name in files]
    if _FEW * sum(in_order(methodcaller("is_file"), places, images.requests_at_once)) < max(1, 3 * len(places)):
        return None
    called = _MASKS.fullmatch(_told(masks.name)) and masks.name.lower().rstrip("s") not in images.name.lower()
    if called or (all(_grey(masks)) and not any(_grey(images))):
        return f"files in {masks.name}/ with the names of those in {images.name}/, to which they belong"
    return None


def _grey(folder: Location) -> Iterator[bool]:
    """Yield whether each of some images has a palette or a single channel."""
    files = [folder / name for name in _look_into(folder)[1][:_SOME]]
    for head in in_order(methodcaller("read_head", _HEAD_BYTES), files, folder.requests_at_once):
        try:
            yield _native.probe_jpeg(head).components == 1
        except ImageError:
            yield head.startswith(b"GIF8") or (head.startswith(b"\x89PNG") and head[25:26] in (b"\0", b"\3", b"\4"))


def table_of_images(base: Location, files: Iterable[Location], folders: Sequence[Location] = ()) -> str | None:
    """Return what was seen of a table whose rows name images, and what to type; None without one.

    Args:
        base: Folder that the images lie in.
        files: What may be such a table.
        folders: Some in it that they may lie in. Default: the first ones.
    """
    tables = [file for file in files if file.suffix.lower() in (".csv", ".tsv") and file.name not in _OTHER_TABLES]
    tops = [*folders] or [base / name for name in (_look_into(base)[0][:_FEW] if tables else ())]
    tops += [top / name for top in tops for name in (_look_into(top)[0][:_FEW] if tables else ())]
    ends = sorted({(top, end) for top in (base, *tops) for end in ("", _look_into(top)[2])}) if tables else []
    return max(filter(None, (_read_table(table, base, ends) for table in tables[:_SOME])), default=(0, None))[1]


def _read_table(table: Location, base: Location, ends: Sequence[tuple[Location, str]]) -> tuple[int, str] | None:
    """Return the number of labels in a table and what was seen; None if it names no image, with or without an end."""
    lines = table.read_head(_HEAD_BYTES).decode("utf-8-sig", "replace").splitlines(keepends=True)
    delimiter = max(",;\t", key=lines[0].count) if lines else ","
    try:
        header, *rows = (row for row in csv.reader(lines[:_MANY], delimiter=delimiter) if row)
    except (csv.Error, ValueError):
        return None
    rows = [row for row in rows if len(row) == len(header) > 1 and "".join(row).isprintable()]

    def hits(key: tuple[int, Location, str]) -> int:
        return sum((key[1] / (row[key[0]].lstrip("/") + key[2])).is_file() for row in rows[:_FEW])

    keys = [(column, top, end) for column in range(min(len(header), _SOME)) for top, end in ends]
    counts = dict(zip(keys, in_order(hits, keys, base.requests_at_once), strict=True))
    column, top, end = max(keys, key=lambda key: (counts[key], key[1].name == table.name.removesuffix(table.suffix)))
    if 2 * counts[column, top, end] < max(1, len(rows[:_FEW])):
        return None
    labels = {other: len({row[other] for row in rows}) for other in range(len(header)) if other != column}
    label = min(labels, key=lambda at: (header[at].lower() not in _LABELS, labels[at] == 1, labels[at]))
    seen = f"the table {table}, whose rows name the images (columns {', '.join(header)})"
    if base.is_local and counts[column, top, end] == len(rows[:_FEW]):
        inside, file = (os.path.relpath(str(place), str(base)) for place in (top, table))
        texts = [json.dumps(text, ensure_ascii=False) for text in (f"{inside}/", end, file, "utf-8-sig", delimiter)]
        code = 'import csv; [print({} + r[%d] + {}, r[%d], sep="\\t") for r in list(csv.reader(open({}, encoding={}),'
        code = (code % (column, label) + " delimiter={}))[1:]]").format(*texts).replace(' + ""', "")
        seen += f"; to take {header[label]!r} for the class, type: cd {shlex.quote(str(base))} && python3 -c"
        seen += f" {shlex.quote(code)} > {table.name}.txt; and give {base / table.name}.txt"
    return labels[label], seen
