"""Which rungs apply to what the user named, and why others do not: nothing is left out in silence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from stoker.measure.figures import LeftOut
from stoker.storage import is_remote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stoker.feed import Dataset
    from stoker.measure.figures import BenchSpec
    from stoker.measure.rungs import Rung

OwnForm = Literal["files", "plain", "compressed", "raw"]


@dataclass(frozen=True, slots=True)
class Situation:
    """What decides whether a rung applies.

    Attributes:
        own: In which form the user's data are.
        is_remote: Whether they are in a store.
        has_boxes: Whether they can have annotated objects.
        view: The view.
        cold: Whether files are dropped from the page cache.
    """

    own: OwnForm
    is_remote: bool
    has_boxes: bool
    view: str
    cold: bool

    @classmethod
    def of(cls, dataset: Dataset, spec: BenchSpec) -> Situation:
        """Look at a dataset."""
        own: OwnForm = "files" if not dataset.shards else "plain"
        if any(shard.inflated is not None for shard in dataset.shards):
            own = "compressed"
        elif dataset.schema.image_encoding == "raw":
            own = "raw"
        return cls(own, is_remote(spec.dataset), dataset.has_boxes, spec.view, spec.cold)

    def objection(self, rung: Rung) -> str:
        """Return why a rung does not apply; empty if it does."""
        return rung.missing or self._misfit(rung) or (self._never_cold(rung) if self.cold else "")

    def _misfit(self, rung: Rung) -> str:
        if rung.bucket and not self.is_remote:
            return "for data in a bucket, and yours are on this machine"
        if rung.key == "stoker-files" and self.own == "files" and not self.is_remote:
            return "the same as stoker-own, which reads your files where they lie"
        if self.view == "objects" and (not rung.boxes or rung.needs == "raw"):
            return "makes no images of annotated objects"
        if self.view == "objects" and rung.needs == "own" and not self.has_boxes:
            return "your data have no annotated objects"
        return ""

    def _never_cold(self, rung: Rung) -> str:
        if rung.holds:
            return "keeps decoded images in memory, so nothing is read that could be cold"
        if rung.key == "stoker-node-cache":
            return "cold means without a cache of what was fetched"
        if rung.key == "stoker-gzip" or (rung.needs == "own" and self.own == "compressed"):
            return "inflates compressed shards when it opens them, so nothing is read from the disk that could be cold"
        return ""


def sorted_out(rungs: Iterable[Rung], objection: Callable[[Rung], str]) -> tuple[list[Rung], list[LeftOut]]:
    """Return the rungs without an objection, and the others with theirs."""
    fit: list[Rung] = []
    left: list[LeftOut] = []
    for rung in rungs:
        reason = objection(rung)
        if reason:
            left.append(LeftOut(rung.key, rung.name, rung.group, reason))
        else:
            fit.append(rung)
    return fit, left
