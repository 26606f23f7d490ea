"""What a diagnosis found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stoker.diagnosis.wording import NO_CONSUMER, times

if TYPE_CHECKING:
    from stoker.diagnosis.decision import Verdict
    from stoker.diagnosis.evidence import Evidence

_SHOWN_SPOTS = 3
_LEAST_SHOWN = 0.05


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """One verdict, one remedy, and what led there.

    Attributes:
        verdict: What holds the speed down: ``storage-bound``, ``cold-cache``, ``thread-bound``, ``decode-bound``,
            ``consumer-bound``, ``transform-bound``, ``gil-bound``, ``balanced``, or ``unknown`` after too few batches.
        sentence: The same for a person, with its figures.
        remedy: The first thing to do.
        evidence: All figures.
    """

    verdict: Verdict
    sentence: str
    remedy: str
    evidence: Evidence

    @property
    def images_per_second(self) -> float:
        """Samples that the consumer took a second."""
        return self.evidence.speed

    @property
    def loader_images_per_second(self) -> float:
        """Samples a second that the loader could make beside this consumer."""
        return self.evidence.loader_speed

    @property
    def consumer_images_per_second(self) -> float | None:
        """Samples a second that the consumer takes when batches are there at once; None where that was not tried."""
        return self.evidence.consumer.top_speed

    def lines(self) -> list[str]:
        """Return it for a person, in a few lines."""
        e = self.evidence
        lines = [f"{self.verdict}: {self.sentence}", f"remedy: {self.remedy}"]
        if e.batches:
            lines.append(self._speeds())
        if e.consumer_share >= _LEAST_SHOWN:
            for spot in e.consumer.spots[:_SHOWN_SPOTS]:
                if spot.share * e.consumer_share >= _LEAST_SHOWN:
                    where = f"{Path(spot.file).name}:{spot.line} {spot.function}()"
                    lines.append(f"  {spot.share * e.consumer_share:4.0%} {spot.work:<9} {where}  {spot.code}".rstrip())
        return lines

    def document(self) -> dict[str, Any]:
        """Return it as what JSON can hold."""
        return {
            "verdict": self.verdict,
            "sentence": self.sentence,
            "remedy": self.remedy,
            "images_per_second": round(self.images_per_second, 1),
            "loader_images_per_second": round(self.loader_images_per_second, 1),
            "consumer_images_per_second": self.consumer_images_per_second and round(self.consumer_images_per_second, 1),
            "evidence": asdict(self.evidence),
        }

    def _speeds(self) -> str:
        e = self.evidence
        shares = (
            f"waits for batches {e.wait_share:.0%}, for the interpreter {e.gil_share:.0%}, works {e.consumer_share:.0%}"
        )
        top, room = "", ""
        if e.consumer.top_speed and e.consumer_share >= NO_CONSUMER:
            top = f"; it takes {e.consumer.top_speed:.0f}/s of ready batches"
            room = f" ({times(e.head_room)} as many)"
        loader = f"the loader makes {e.loader_speed:.0f}/s{room}"
        return f"{e.speed:.0f} images/s over {e.batches} batches; the consumer {shares}{top}; {loader}"
