"""What a reader or a writer is to do; it goes to its process as JSON. Standard library only: every rival imports it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

SIDE, RESIZE = 224, 256
SCALE, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
RAW_SIDE = 64
BATCH, RAW_BATCH = 64, 256
WINDOW, RAW_WINDOW = 1000, 10_000
"""Samples in the buffer of readers that shuffle with one."""

SMALL_SIDE, SMALL_QUALITY = 256, 90
"""Of the build that makes images smaller: its shorter side, and the JPEG quality."""


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of work for one process.

    Attributes:
        line: ``train``: random order, random crop resized to 224 with mirror images. ``eval``: shorter side 256, centre
            224. ``raw``: 64 x 64 tensors in random order. ``keep`` and ``small``: builds. ``scan``: checks of shards.
        form: Which form of the rival, as its program names them.
        data: Directory in which this rival's ``prepare.py`` has put its data.
        sources: Directory of what all make their data of; see `sources.py`.
        threads: Threads or worker processes.
        samples: How many samples there are, which is what a warm-up reads at least.
    """

    line: str
    form: str
    data: str
    sources: str
    threads: int
    samples: int

    @property
    def batch(self) -> int:
        """Samples in a batch."""
        return RAW_BATCH if self.line == "raw" else BATCH

    @property
    def window(self) -> int:
        """Samples in the buffer of a reader that shuffles with one."""
        return RAW_WINDOW if self.line == "raw" else WINDOW

    def place(self, name: str) -> str:
        """Path of something that ``prepare.py`` has made."""
        return str(Path(self.data, name))

    def photos(self) -> list[str]:
        """Paths of the photographs; the position in this list is the identity of a sample."""
        return _listed(Path(self.sources, "photos.txt"))

    def build_photos(self) -> list[str]:
        """Paths of the photographs that builds read."""
        return _listed(Path(self.sources, "build.txt"))

    @property
    def raw_file(self) -> str:
        """A NumPy file of uint8 (N, 64, 64, 3); the position is the identity of a sample."""
        return str(Path(self.sources, "raw.npy"))

    def to_json(self) -> str:
        """Return what `from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the work that a process was given."""
        return cls(**json.loads(text))


def _listed(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()
