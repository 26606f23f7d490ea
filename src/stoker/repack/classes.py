"""What the classes of existing records are called."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from stoker.sources.text import has_control_character, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stoker.feed import Dataset, Sample

_SYNSET, _TEXT = "image/class/synset", "image/class/text"


class ClassNames:
    """Names and texts by class index: from ``labels.txt`` where there is one, otherwise from the records themselves.

    A class that nothing names is called by its label, as ``12``.

    Args:
        datasets: The splits of one dataset.
    """

    def __init__(self, datasets: Sequence[Dataset]) -> None:
        self._base = datasets[0].schema.label_base if datasets else 0
        known = max((dataset.classes for dataset in datasets), key=len, default=())[self._base :]
        self._names = {label: os.fsencode(one.name) for label, one in enumerate(known)}
        self._texts = {label: one.text.encode("utf-8", "surrogateescape") for label, one in enumerate(known)}
        self._listed = bool(known)
        self._most = len(known) - 1

    def see(self, label: int, sample: Sample) -> None:
        """Take note of a record's class."""
        self._most = max(self._most, label)
        if label < 0 or self._listed or label in self._names:
            return
        synset, text = _first(sample, _SYNSET), _first(sample, _TEXT)
        if sample.schema.preset == "imagenet-nvidia":
            synset, text = text, b""
        text = one_line(text)
        if synset and not has_control_character(synset):  # anybody may have written the record
            self._names[label] = synset
            self._texts[label] = text
        elif text:
            self._texts.setdefault(label, text)

    @property
    def classes(self) -> tuple[bytes, ...]:
        """Names, by index."""
        return tuple(self._names.get(label, b"%d" % (label + self._base)) for label in range(self._most + 1))

    @property
    def texts(self) -> tuple[bytes, ...]:
        """Texts, by index; empty where unknown."""
        return tuple(self._texts.get(label, b"") for label in range(self._most + 1))


def _first(sample: Sample, key: str) -> bytes:
    kind, values = sample.features.get(key, ("", []))
    return cast("bytes", values[0]) if kind == "bytes" and values else b""
