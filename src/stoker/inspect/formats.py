"""Which formats images have, and which of them the core decodes without Pillow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.recipe import NATIVE_FORMATS

if TYPE_CHECKING:
    from collections.abc import Mapping


def ranked(counts: Mapping[str, int]) -> dict[str, int]:
    """Return counts of formats with the most frequent first, then by name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def by_decoder(formats: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the formats that the core decodes, and those that Pillow decodes for it, with their counts."""
    return (
        {name: count for name, count in formats.items() if name in NATIVE_FORMATS},
        {name: count for name, count in formats.items() if name not in NATIVE_FORMATS},
    )
