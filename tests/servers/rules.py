"""What goes wrong at a `servers.faults.FaultProxy`, and with which requests."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Answer:
    """Answer so, without asking the server."""

    status: int = 503


@dataclass(frozen=True)
class Reset:
    """Close the connection without an answer, with a TCP reset.

    With ``served`` the server has done what was asked, and only its answer is lost.
    """

    served: bool = False


@dataclass(frozen=True)
class CutUpload:
    """Pass so many bytes of the request's body on, then break both connections; where its head announces more."""

    at: int = 0


@dataclass(frozen=True)
class FlipUpload:
    """Change the lowest bit of byte ``at`` of the request's body: by itself behind the names of a multipart upload."""

    at: int = 1500


@dataclass(frozen=True)
class Truncate:
    """Send only ``at`` bytes of the answer's body.

    With ``honest`` the Content-Length says so, and the connection lives on; without it, it is that of the whole body,
    and the connection is closed.
    """

    at: int = 0
    honest: bool = False


@dataclass(frozen=True)
class Flip:
    """Change the lowest bit of one byte of the answer's body: byte ``at``, or the one in its middle."""

    at: int | None = None


@dataclass(frozen=True)
class Stall:
    """Send ``at`` bytes of the answer's body, then nothing for so many seconds, then the rest."""

    seconds: float
    at: int = 0


InUpload = CutUpload | FlipUpload
BeforeAnswer = Answer | Reset | InUpload
InAnswer = Truncate | Flip | Stall


@dataclass(frozen=True)
class Request:
    """What a fault may look at.

    Attributes:
        method: In capitals.
        path: With its query, as it stood in the request.
        first: The first byte that a GET wants.
        last: The last one, if its Range names it.
        sent: Bytes of the request's body that its head announces.
    """

    method: str
    path: str
    first: int = 0
    last: int | None = None
    sent: int = 0

    @classmethod
    def of(cls, method: str, path: str, wanted: str, sent: str) -> Request:
        """From the parts of its head; ``wanted`` and ``sent`` are Range and Content-Length, or empty."""
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted)
        length = int(sent) if sent.isdigit() else 0
        if match is None:
            return cls(method, path, sent=length)
        return cls(method, path, int(match[1]), int(match[2]) if match[2] else None, length)


@dataclass
class Fault:
    """One thing that goes wrong, and when. Without any condition it goes wrong at every request.

    Attributes:
        action: What happens.
        method: Only at requests of this method.
        path: Only where this is part of the path or the query.
        holds: Only at requests that want this byte of an object.
        at_least: Only where so many bytes are asked for by a Range, or sent in a body.
        nth: Only at the nth of the requests that agree with the above, from 1.
        probability: Of those, only so many, drawn from ``seed`` in the order of requests.
        count: So many times at most.
        met: Requests so far that agree with method, path, range and size.
        served: Times that it went wrong.
    """

    action: BeforeAnswer | InAnswer
    method: str = ""
    path: str = ""
    holds: int | None = None
    at_least: int = 0
    nth: int | None = None
    probability: float = 1.0
    seed: int = 0
    count: int | None = None
    met: int = 0
    served: int = 0
    _random: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def strikes(self, request: Request) -> bool:
        """Whether it goes wrong now; counts. For the thread of the proxy only."""
        if not self._agrees(request):
            return False
        self.met += 1
        drawn = self.probability >= 1 or self._random.random() < self.probability
        if not drawn or (self.nth is not None and self.met != self.nth) or self.served == self.count:
            return False
        self.served += 1
        return True

    def _agrees(self, request: Request) -> bool:
        if self.method not in ("", request.method) or self.path not in request.path:
            return False
        if self.holds is not None and not request.first <= self.holds <= (request.last or self.holds):
            return False
        if isinstance(self.action, InUpload) and request.sent <= self.action.at:
            return False
        asked = request.last - request.first + 1 if request.last is not None else 0
        return max(asked, request.sent) >= self.at_least
