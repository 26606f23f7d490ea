"""``meta.mat`` of the ILSVRC 2012 development kit: its own numbers of the classes."""

from __future__ import annotations

import importlib
import io
from typing import TYPE_CHECKING, Any

from stoker.errors import ConfigError, SourceError
from stoker.sources.tar_bytes import ForwardBytes, open_stream
from stoker.sources.tar_walk import read_member, walk

if TYPE_CHECKING:
    from stoker.storage import Location

MAX_META_BYTES = 2**26
"""Longest ``meta.mat`` that is read."""


def meta_of_devkit(path: Location) -> bytes:
    """Return the ``meta.mat`` that lies in a devkit, which is a tar and may be compressed.

    Raises:
        SourceError: There is none in it, or the tar is damaged.
        OSError: It cannot be read.
    """
    with open_stream(path) as stream:
        source = ForwardBytes(stream, str(path))
        for member in walk(source):
            if member.isreg() and member.name.rpartition("/")[2] == "meta.mat":
                return read_member(source, member, MAX_META_BYTES)
    raise SourceError(f"{path} holds no meta.mat, so it is no devkit of ILSVRC 2012", path=str(path))


def read_meta(data: bytes, where: str) -> list[tuple[bytes, int, bytes]]:
    """Return the name, the number (from 1) and the text of each class.

    Inner nodes of the hierarchy, which have children, are no classes.

    Args:
        data: A ``meta.mat``.
        where: File it comes from.

    Raises:
        ConfigError: SciPy is not installed.
        SourceError: It is not such a file.
    """
    try:
        loadmat = importlib.import_module("scipy.io").loadmat  # optional, and slow to import
    except ImportError as error:
        message = f"reading {where} needs SciPy: install stoker[devkit], or give map_clsloc.txt"
        raise ConfigError(message) from error
    if len(data) > MAX_META_BYTES:
        raise SourceError(f"{where} is larger than {MAX_META_BYTES} bytes, too large for a meta.mat", path=where)
    try:
        synsets = loadmat(io.BytesIO(data), squeeze_me=True, struct_as_record=False)["synsets"]
        return [_class(synset) for synset in synsets if int(synset.num_children) == 0]
    except (ValueError, TypeError, KeyError, AttributeError, NotImplementedError, OSError) as error:
        raise SourceError(f"{where} is not the meta.mat of ILSVRC 2012: {error}", path=where) from error


def _class(synset: Any) -> tuple[bytes, int, bytes]:
    return str(synset.WNID).encode(), int(synset.ILSVRC2012_ID), str(synset.words).encode()
