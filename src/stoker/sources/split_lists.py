"""Lists of splits beside images: texts named after splits, each line of which begins with the name of an image.

docs/reference/images.md says where they lie. A name is the path of an image below the folder, or one of another
computer (``/data/camvid/images/1.png``), or the end of such a path, with or without suffix (``Abyssinian_100 1 1 1``).
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stoker.config import format_count
from stoker.errors import SourceError
from stoker.sources.files import nonblank_lines
from stoker.sources.names import IMAGE_WORDS, divide_suffix, is_image_name, path_parts
from stoker.splits import SPLIT_WORDS, SPLITS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from stoker.sources.look import Look
    from stoker.sources.source import SourceBuilder
    from stoker.storage import Location


_WORDS = SPLIT_WORDS | {"trainval": "train", "default": "train"}
"""Words in names of lists, also of VOC's list of two splits and CVAT's of all; the first for a split counts."""
BOTH = "trainval.txt"
"""Name of the list of train and validation together."""
_SUFFIXES, _OTHER_SUFFIXES = (".txt", ".lst"), (".json", ".mat", ".npy", ".npz", ".pkl")
_BETWEEN = re.compile(r"[-_. ]+|(?<=[a-z])(?=[0-9])")
_OF_ALL = {"split", "splits"}
"""Words in the names of files of all splits."""
_NEUTRAL = {"data", "file", "files", "ids", "image", "images", "imgs", "list", "lists", "names", "set", "split"}
_FOLDERS = {"annotation", "annotations", "imagesets", "labels", "lists", "main", "meta", "segmentation", "splits"}
_SHOWN_BYTES = 40
_IMAGES = re.compile(IMAGE_WORDS, re.IGNORECASE)


def find_lists(names: Iterable[str]) -> tuple[dict[str, str], list[str], list[str]]:
    """Return the list of each split among some files, other lists of splits, and files named after several splits.

    Files that are not texts are among the last.
    """
    words = {name: own for name in sorted(names) if (own := _split_words(name))}
    texts = {name: own for name, own in words.items() if name.lower().endswith(_SUFFIXES)}
    by_word = {own[0]: name for name, own in reversed(texts.items()) if len(own) == 1}
    are_divided = "train" in by_word and "validation" in map(_WORDS.get, by_word)
    both = by_word.pop("trainval", None) if are_divided else None
    first = {split: by_word[word] for word, split in reversed(_WORDS.items()) if word in by_word}
    lists = {split: first[split] for split in SPLITS if split in first}
    others = [name for name in texts if name not in (*lists.values(), both)]
    clear = {*lists.values(), both, *(name for name in others if all(map(str.isdecimal, words[name][1:])))}
    return lists, [name for name in others if name in clear], [name for name in words if name not in clear]


def _split_words(name: str) -> list[str]:
    """Return the words of splits in the name of a list, and numbers beside them; empty for any other file."""
    stem, end = os.path.splitext(name.lower())  # noqa: PTH122 - as of paths in stores
    words = [word.removesuffix("list") or word for word in _BETWEEN.split(stem)]
    if end in _OTHER_SUFFIXES and not _OF_ALL.isdisjoint(words):
        return ["splits"]
    words = [word for word in words if word not in _NEUTRAL and end in (*_SUFFIXES, *_OTHER_SUFFIXES)]
    splits = [word for word in words if word in _WORDS]
    others = [word for word in words if word not in splits]
    if len(splits) == 2 and splits[0] == "train" and _WORDS[splits[1]] == "validation":
        splits = ["trainval"]
    return splits + others if splits and all(map(str.isdecimal, others)) else []


def name_and_rest(line: bytes) -> tuple[bytes, bytes]:
    """Return the name at the beginning of a line, which may be in quotes as in CVAT's lists, and the rest."""
    text = line.strip()
    if text.startswith(b'"') and text.count(b'"') > 1:
        _, name, rest = text.split(b'"', 2)
        return name, rest.strip()
    name, *rests = re.split(rb"[\s,;]+", text, maxsplit=1)
    return name, rests[0] if rests else b""


@dataclass(slots=True)
class _List:
    split: str | None  # its split; None if it is not used
    path: Location  # where it lies
    # the line of each name, with its suffix and without, and of each line as a whole
    lines: dict[bytes, int] = field(default_factory=dict)
    # the line of each end of a path; None if several lines have that end
    ends: dict[bytes, int | None] = field(default_factory=dict)
    images: dict[int, bytes] = field(default_factory=dict)  # the image of each line
    twice: tuple[int, bytes] | None = None  # a line that names two images, and the second image
    rest: tuple[int, bytes] | None = None  # a line with more than a name, and the rest of it

    def read(self, folders: Collection[bytes]) -> bool:
        """Read all lines, and return whether they are lines of a list.

        A name that begins with one of ``folders``, in which paths of images begin, is only matched as a whole.
        """
        try:
            for number, line in nonblank_lines(self.path):
                name, rest = name_and_rest(line)
                if not name.startswith(b"#"):
                    self.rest = self.rest or ((number, rest) if rest else None)
                    self._add(number, line.strip(), name, folders)
        except SourceError:
            return False
        return True

    def _add(self, number: int, line: bytes, name: bytes, folders: Collection[bytes]) -> None:
        parts = [part for part in path_parts(name.replace(b"\\", b"/")) if part != b".."]
        for form in (line, *_forms(b"/".join(parts))):
            self.lines.setdefault(form, number)
        inner = range(1, len(parts)) if parts and parts[0] not in folders else ()
        for form in (form for at in inner for form in _forms(b"/".join(parts[at:]))):
            self.ends[form] = None if self.ends.get(form, number) != number else number

    def find(self, path: bytes) -> None:
        whole = (path, divide_suffix(path)[0])
        lines = [*map(self.lines.get, whole), *map(self.ends.get, whole)]
        end = path
        while not any(lines) and b"/" in end:
            end = end.partition(b"/")[2]
            lines = [self.lines.get(end), self.lines.get(divide_suffix(end)[0])]
        if (line := next(filter(None, lines), None)) is not None and self.images.setdefault(line, path) != path:
            self.twice = self.twice or (line, path)

    def missing(self) -> list[bytes]:
        first = {line: name for name, line in reversed(self.lines.items()) if line not in self.images}
        return sorted(first.values())


def _forms(name: bytes) -> tuple[bytes, bytes]:
    return name, divide_suffix(name)[0] if is_image_name(name) else name


def divide_by_lists(builder: SourceBuilder, look: Look, tables: Sequence[Location] = ()) -> list[Location]:
    """Give images the splits in lists beside them, unless folders say the splits; return the lists that are read.

    Lists among ``tables`` are read in full, so no warning says that the rest of their lines is not read.
    """
    collector = builder.collector
    if {group.split for group in collector.groups} != {"train"}:
        return []
    for folder, is_beside in _folders_of_lists(look):
        is_top = folder.to_uri() == builder.base and any(map(builder.skipped.ignored.get, _SUFFIXES))
        children = folder.some_children() if is_top else ()  # `look_into` has only some of many names
        names = {*look.look_into(folder).files, *(os.fsdecode(child.name) for child in children if child.is_file)}
        of_splits, others, unclear = find_lists(names)
        lists = [_List(split, folder / name) for split, name in of_splits.items()]
        lists += [_List(None, folder / name) for name in others]
        paths = list(collector.paths().values(0, len(collector))) if lists else []
        folders = {path.partition(b"/")[0] for path in paths if b"/" in path}
        lists = [each for each in lists if each.read(folders)]
        for path in paths:
            for each in lists:
                each.find(path)
        known = [each for each in lists if 2 * len(each.images) >= min(len({*each.lines.values()}), len(collector)) > 0]
        unused = [each.path.name for each in known if each.split is None]
        message = f"{folder} has lists called after splits that are not used: {{names}}; name the one of each split"
        builder.skipped.warn(unused, f"{message} train.txt, val.txt or test.txt to read it")
        for each in known:
            each.rest = None if any(map(each.path.is_same, tables)) else each.rest
        if read := [each for each in known if each.split is not None]:
            _divide(builder, read, paths)
            return [each.path for each in read]
        message = f"may say splits, and are not read: {{names}} in {folder}; write train.txt, val.txt and test.txt"
        builder.skipped.warn(unclear, f"{message}, with the name of an image on each line")
        if not is_beside:
            unread = [name for name in (*of_splits.values(), *others) if name not in unused]
            message = f"not read, as their lines begin with no names of images: {{names}} in {folder}"
            builder.skipped.warn(unread, message)
    return []


def _folders_of_lists(look: Look) -> Iterator[tuple[Location, bool]]:
    """Yield the folders in which lists may lie, and whether that is beside the folder of the images."""
    tops = () if look.layout is None else look.layout.tops
    root = look.path.resolve() if tops else look.path.resolve().parent
    beside = (root.parent,) if _IMAGES.fullmatch(root.name) else ()
    for top in dict.fromkeys((*tops, root, *beside)):
        # A folder above need not be readable.
        with contextlib.suppress(SourceError, OSError) if top in beside else contextlib.nullcontext():
            folders = [top / name for name in look.look_into(top).folders if name.lower() in _FOLDERS]
            for folder in [*folders]:
                folders += [folder / name for name in look.look_into(folder).folders if name.lower() in _FOLDERS]
            yield from ((folder, top in beside) for folder in (top, *folders))


def _divide(builder: SourceBuilder, lists: Sequence[_List], paths: Sequence[bytes]) -> None:
    """Move the images into the splits; warn of what was read, and what was not."""
    split_of: dict[bytes, tuple[str | None, int, Location]] = {}
    skipped, collector = builder.skipped, builder.collector
    skipped.warnings.append(f"the splits are those of {' and '.join(str(each.path) for each in lists)}")
    for each in lists:
        if each.twice is not None:
            line, path = each.twice
            message = f"line {line} of {each.path} names both {os.fsdecode(each.images[line])} and {os.fsdecode(path)}"
            raise SourceError(f"{message}; write the path of one there", path=str(each.path))
        for line, path in each.images.items():
            _, other, earlier = split_of.setdefault(path, (each.split, line, each.path))
            if earlier != each.path and (earlier.name, each.split) != (BOTH, "validation"):
                message = f"{os.fsdecode(path)} is in the lists of two splits, in line {other} of {earlier} and in line"
                raise SourceError(f"{message} {line} of {each.path}; delete one of them", path=str(earlier))
            split_of[path] = each.split, line, each.path
        missing = each.missing()
        skipped.warn(missing, f"{each.path} names {format_count(len(missing), 'image')} not there: {{names}}")
        if each.rest is not None:
            line, rest = each.rest
            message = f"what follows the names in {each.path} is not read, as in line {line}"
            skipped.warnings.append(f"{message}: {os.fsdecode(rest[:_SHOWN_BYTES])}")
    rest_in = None if any(each.split == "train" for each in lists) else "train"
    unlisted = [path for path in paths if path not in split_of]
    message = f"{format_count(len(unlisted), 'image')} in none of these lists, {'in train' if rest_in else 'left out'}"
    skipped.warn(unlisted, f"{message}: {{names}}", None if rest_in else "in no list of a split")
    collector.divide(split_of[path][0] if path in split_of else rest_in for path in paths)
