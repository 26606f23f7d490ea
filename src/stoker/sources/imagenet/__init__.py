"""The 1,000 classes of ILSVRC 2012, which come with Stoker; formats of labels of ImageNet and the like.

- ``labels``: label maps, texts of classes, and classes of validation images without class folders

A line of ``classes.tsv`` is a WordNet id, the number that the development kit of the challenge gives to that class, and
its text. The lines are in the order of the WordNet ids, so line 1 is label 0, or 1 where labels start at 1: as Google's
scripts, torchvision and most pretrained models have it. The development kit's own numbers are in another order; they
are needed for nothing but its list of the classes of the validation images.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

BUNDLED_LIST = "imagenet"
"""What stands for the list where the name of a list is expected."""


@dataclass(frozen=True, slots=True)
class ImagenetClasses:
    """The classes."""

    texts: dict[bytes, bytes]  # WordNet id and text of each class, in the order of the ids
    devkit: tuple[bytes, ...]  # the WordNet id of number i of the development kit at index i - 1


@cache
def imagenet_classes() -> ImagenetClasses:
    """Return the 1,000 classes of ILSVRC 2012."""
    lines = resources.files(__package__).joinpath("classes.tsv").read_bytes().splitlines()
    entries = [line.split(b"\t") for line in lines]
    by_number = sorted((int(number), name) for name, number, _ in entries)
    return ImagenetClasses({name: text for name, _, text in entries}, tuple(name for _, name in by_number))
