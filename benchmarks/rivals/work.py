"""What a reader or a writer is to do; it goes to its process as JSON. Standard library only: every rival imports it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

SIDE, RESIZE = 224, 256
SCALE, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
RAW_SIDE = 64
VIEWS = ((SIDE, (0.4, 1.0)),) * 2 + ((96, (0.05, 0.4)),) * 6
"""Of the line ``multi-crop``: side and scale of each crop of an image, those of DINO."""

BATCH, RAW_BATCH, LARGE_BATCH = 64, 256, 8
THUMBNAIL_SIDE = 32
FORMATS = ("png", "webp", "progressive", "camera", "dense", "camera-progressive", "dense-progressive", "thumbnails")
"""Lines that read folders of images in one format, with the transform of ``train``; thumbnails as they are."""

WINDOW, RAW_WINDOW = 1000, 10_000
"""Samples in the buffer of readers that shuffle with one."""

SMALL_SIDE, SMALL_QUALITY = 256, 90
"""Of the build that makes images smaller: its shorter side, and the JPEG quality."""


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of work for one process.

    Attributes:
        line: ``train``: random order, random crop resized to 224 with mirror images. ``multi-crop``: random order,
            `VIEWS` with mirror images. ``eval``: shorter side 256, centre 224. ``raw``: 64 x 64 tensors in random
            order. ``keep`` and ``small``: builds. ``scan``: checks of shards. Or one of `FORMATS`.
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
        if self.line.startswith(("camera", "dense")):
            return LARGE_BATCH
        return RAW_BATCH if self.line in ("raw", "thumbnails") else BATCH

    @property
    def window(self) -> int:
        """Samples in the buffer of a reader that shuffles with one."""
        return RAW_WINDOW if self.line == "raw" else WINDOW

    def path_of(self, name: str) -> str:
        """Path of something that ``prepare.py`` has made."""
        return str(Path(self.data, name))

    @property
    def transform(self) -> str:
        """``train``, ``eval`` or ``multi-crop``: what is done to the photographs of a line."""
        return self.line if self.line in ("eval", "multi-crop") else "train"

    @property
    def tree(self) -> str:
        """Folder of the images of a line."""
        return str(Path(self.sources, self.line if self.line in FORMATS else "photos"))

    def photos(self) -> list[str]:
        """Paths of the images of a line; the position in this list is the identity of a sample."""
        return _listed(Path(f"{self.tree}.txt"))

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
