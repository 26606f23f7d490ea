"""What a model sees of samples: the pixels that a loader would hand out, and where in the image they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stoker import _native
from stoker.config import available_cpus
from stoker.feed.boxes import Boxes, BoxOutput
from stoker.feed.engine import SampleEngine
from stoker.feed.engine_settings import EngineSettings
from stoker.feed.samples import Objects
from stoker.views import CenterCrop, ObjectCrops, RandomResizedCrop

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from numpy.typing import NDArray

    from stoker.feed import Dataset, Sample
    from stoker.inspection.view_text import SheetView


@dataclass(frozen=True, slots=True)
class Seen:
    """What a view makes of one sample in one epoch.

    Attributes:
        pixels: uint8 (H, W, 3): those of a batch of `stoker.Loader`.
        boxes: float32 (T, 4): the annotated objects in it: xmin, ymin, xmax, ymax in pixels of it.
        region: Left, top, right and bottom of what it shows of the stored image, in pixels of that.
        mirrored: Whether left and right are exchanged.
        colors: What the colours are changed by, in that order: what is changed, and the factor.
    """

    pixels: NDArray[np.uint8]
    boxes: NDArray[np.float32]
    region: tuple[float, float, float, float]
    mirrored: bool
    colors: tuple[tuple[str, float], ...]


class ViewOfDataset:
    """A dataset through a view: the very engine of a loader, asked for one sample at a time. Use it as a context.

    Args:
        dataset: Whose samples.
        view: What becomes of them. With `stoker.ObjectCrops` the first use of a dataset reads all of its annotations.
        seed: Of the loader.

    Raises:
        ConfigError: The dataset has no objects, and the view wants some.
    """

    def __init__(self, dataset: Dataset, view: SheetView, seed: int) -> None:
        self.view = view
        self._seed = seed
        settings = EngineSettings(
            seed=seed,
            check=True,
            max_pixels=_native.DEFAULT_MAX_PIXELS,
            batch_size=1,
            threads=min(2, available_cpus()),
            spare_buffers=2,
            boxes=BoxOutput() if dataset.has_boxes else None,
        )
        self._engine = SampleEngine(dataset, view, settings)

    def see(self, sample: Sample, extent: tuple[int, int], epoch: int, object_: int = 0) -> Seen:
        """Return what the view makes of a sample.

        Args:
            sample: A sample of the dataset.
            extent: Width and height of its image.
            epoch: Which epoch.
            object_: With `stoker.ObjectCrops`: which of its objects.

        Raises:
            StokerError: It cannot be loaded.
        """
        samples = self._engine.samples
        slot = samples.of_image(sample.key)[object_] if isinstance(samples, Objects) else sample.key
        self._engine.submit(np.array([slot], np.uint64), epoch)
        loaded = self._engine.next()
        boxes = loaded.boxes[0].corners if loaded.boxes and isinstance(loaded.boxes[0], Boxes) else None
        part = None
        if isinstance(self.view, ObjectCrops) and sample.boxes:
            box = sample.boxes[object_]
            part = (box.xmin, box.ymin, box.xmax, box.ymax)
        crop, resized, window, mirrored = _native.plan_view(self.view.native(), *extent, self._seed, epoch, slot, part)
        return Seen(
            pixels=loaded.images[0][0],
            boxes=np.empty((0, 4), np.float32) if boxes is None else boxes,
            region=_region(crop, resized, window),
            mirrored=mirrored,
            colors=self._colors(epoch, slot),
        )

    def _colors(self, epoch: int, slot: int) -> tuple[tuple[str, float], ...]:
        jitter = None if isinstance(self.view, CenterCrop) else self.view.color_jitter
        return () if jitter is None else tuple(_native.plan_jitter(jitter.native(), self._seed, epoch, slot).steps)

    def objects(self, key: int) -> int:
        """Return how many samples the view makes of one image."""
        samples = self._engine.samples
        return len(samples.of_image(key)) if isinstance(samples, Objects) else 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine.close()


def _region(
    crop: tuple[int, int, int, int], resized: tuple[int, int], window: tuple[int, int, int, int]
) -> tuple[float, float, float, float]:
    """Return what a window of a resized crop is in the stored image."""
    across, down = (crop[2] - crop[0]) / resized[0], (crop[3] - crop[1]) / resized[1]
    left, top, right, bottom = window
    return crop[0] + left * across, crop[1] + top * down, crop[0] + right * across, crop[1] + bottom * down


def is_random(view: SheetView) -> bool:
    """Return whether a view differs from epoch to epoch."""
    if isinstance(view, RandomResizedCrop):
        return True
    return not isinstance(view, CenterCrop) and (0.0 < view.hflip < 1.0 or view.color_jitter is not None)
