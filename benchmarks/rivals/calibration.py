"""How fast the machine is right now: full decodes on all cores, so that a drift shows and can be divided out."""

from __future__ import annotations

import io
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Sequence

SECONDS = 0.4
_MOST_IMAGES = 100


class Calibration:
    """Decodes the same few photographs again and again."""

    def __init__(self, photos: Sequence[str], threads: int) -> None:
        self._encoded = [Path(path).read_bytes() for path in photos[:_MOST_IMAGES]]
        self._threads = threads

    def measure(self) -> float:
        """Decodes per second of CPU time and per core: other processes hardly change it, the clock of the CPU does."""
        with ThreadPoolExecutor(self._threads) as pool:
            done = list(pool.map(self._decode, range(self._threads)))
        return sum(images for images, _ in done) / sum(seconds for _, seconds in done)

    def _decode(self, thread: int) -> tuple[int, float]:
        images, cpu, end = 0, time.thread_time(), time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            Image.open(io.BytesIO(self._encoded[(images + 37 * thread) % len(self._encoded)])).load()
            images += 1
        return images, time.thread_time() - cpu
