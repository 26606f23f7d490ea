"""One file: asked for piece by piece, at one place after another, until it is whole and right."""

from __future__ import annotations

import errno
import os
import re
import shutil
import time
from typing import TYPE_CHECKING, NoReturn

from stoker.config import format_seconds, format_size
from stoker.download.account import shown
from stoker.download.failure import DownloadError, Interruption, PlaceError
from stoker.download.part import PartFile
from stoker.download.patience import Patience, StallWatch, parse_retry_after

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stoker.download.catalogue import RemoteFile
    from stoker.download.transport import Answer, Transport
    from stoker.download.watcher import Timing, Watcher

_CONTENT_RANGE = re.compile(r"bytes (?:(\d{1,18})-(\d{1,18})|\*)/(\d{1,18}|\*)", re.ASCII)
_BUSY = {408, 425, 429, 500, 502, 503, 504}
_REMEDIES = {
    401: "the server wants an account: give the right user name and access key, and agree to its terms of use",
    403: "the server refuses it: look at its page whether your account may have it, or name a mirror with --url",
    404: "it is not there (any more): name another place with --url",
    410: "it is not there any more: name another place with --url",
}


class Fetcher:
    """Fetches one file.

    Args:
        file: Which.
        target: Where it goes; its directory must exist.
        places: URLs with a slash at the end, in the order in which to ask.
        transport: Asks.
        timing: How patiently.
        watcher: Told how far it is.
    """

    def __init__(
        self,
        file: RemoteFile,
        target: Path,
        places: Sequence[str],
        transport: Transport,
        timing: Timing,
        watcher: Watcher,
    ) -> None:
        self._file = file
        self._target = target
        self._places = places
        self._transport = transport
        self._timing = timing
        self._watcher = watcher
        self._furthest = 0
        self._space_checked = file.size_bytes is not None
        self.fetched_bytes = 0
        self.kept_bytes = 0

    def run(self) -> None:
        """Fetch it. Afterwards ``fetched_bytes`` came over the network, ``kept_bytes`` were there before.

        Raises:
            DownloadError: No place has it, or its bytes are wrong even after fetching it twice.
            DestinationError: Another process fetches it.
            OSError: It cannot be written; what came stays.
        """
        checksum = self._file.checksum
        wrong = []
        with PartFile(self._target, checksum, self._hashed) as part:
            self.kept_bytes = self._furthest = part.size
            for _ in range(2):
                self._complete(part)
                if part.digest() == checksum.digest:
                    part.publish()
                    return
                wrong.append(part.digest())
                part.clear()
                self._furthest = 0
                if len(wrong) == 1:
                    self._watcher.told(f"{self._file.name}: {self._sums(wrong)}; it is fetched again from the start")
        message = f"{self._file.name}: {self._sums(wrong)}, twice; ask who runs the server, or name a mirror with --url"
        raise DownloadError(message, path=str(self._target))

    def _sums(self, wrong: Sequence[str]) -> str:
        algorithm = self._file.checksum.algorithm.upper()
        return f"its {algorithm} is {' and then '.join(wrong)}, and should be {self._file.checksum.digest}"

    def _complete(self, part: PartFile) -> None:
        """Get all bytes, from wherever they can be had."""
        reasons: list[str] = []
        for place in self._places:
            url = place + self._file.name
            try:
                self._from(url, part)
            except PlaceError as error:
                reasons.append(f"{shown(url)}: {error}")
                if place != self._places[-1]:
                    self._watcher.told(f"{reasons[-1]}; asking at the next place")
            else:
                return
        kept = f"; {format_size(part.size)} of it are kept in {part.path}" if part.size else ""
        raise DownloadError("; ".join(reasons) + kept, path=str(self._target))

    def _from(self, url: str, part: PartFile) -> None:
        """Get all bytes that are missing from one place."""
        patience = Patience(self._timing)
        while part.size != self._file.size_bytes:
            try:
                self._transfer(url, part, patience)
            except Interruption as stop:
                wait = patience.after(stop)
                if wait is None:
                    raise PlaceError(f"{stop}; given up after several tries, run the same command to go on") from None
                self._watcher.told(f"{self._file.name}: {stop}; next try in {format_seconds(wait)}")
                time.sleep(wait)
            else:
                return

    def _transfer(self, url: str, part: PartFile, patience: Patience) -> None:
        """Ask once. Returns when the file is whole, as far as the server says."""
        if self._file.size_bytes is not None and part.size > self._file.size_bytes:
            part.clear()
        headers = {}
        if part.size:
            headers["Range"] = f"bytes={part.size}-"
            validator = part.validator(shown(url))
            if validator is not None:
                headers["If-Range"] = validator
        with self._transport.get(url, headers) as answer:
            total = self._accepted(url, answer, part)
            if total != part.size:
                self._receive(answer, part, total, patience)

    def _accepted(self, url: str, answer: Answer, part: PartFile) -> int | None:
        """Look at the head of an answer; return how long the whole file is, None if the server does not say."""
        if answer.status == 206:
            total = self._continued(url, answer, part)
        elif answer.status == 416:
            return self._beyond(answer, part)
        elif answer.status == 200:
            total = self._from_start(answer, part)
        else:
            _refused(answer)
        if part.validator(shown(url)) is None:
            part.mark(shown(url), answer.headers.get("ETag"), answer.headers.get("Last-Modified"))
        if total is not None and not self._space_checked:
            check_space(self._target.parent, total - part.size)
            self._space_checked = True
        return total

    def _from_start(self, answer: Answer, part: PartFile) -> int | None:
        length = answer.headers.get("Content-Length", "")
        total = int(length) if length.isdecimal() and length.isascii() and len(length) <= 18 else None
        kind = answer.headers.get_content_type()
        is_page = kind == "text/html" and not self._file.name.endswith(".html")
        if is_page or (total is not None and self._file.size_bytes not in (None, total)):
            size = "" if total is None else f" of {total} bytes"
            wanted = "" if self._file.size_bytes is None else f" of {self._file.size_bytes} bytes"
            hint = "; perhaps a page to log in" if is_page else ""
            raise PlaceError(f"the server sends {kind}{size} instead of the file{wanted}{hint}")
        if part.size:
            self._watcher.told(f"{self._file.name}: the server starts from the beginning, not where we were")
            part.clear()
        return total

    def _continued(self, url: str, answer: Answer, part: PartFile) -> int | None:
        text = answer.headers.get("Content-Range", "")
        found = _CONTENT_RANGE.fullmatch(text.strip())
        is_right = found is not None and found[1] == str(part.size) and part.size > 0
        total = int(found[3]) if found is not None and found[3] != "*" else None
        if not is_right or (total is not None and self._file.size_bytes not in (None, total)):
            self._start_over(part, f"the server sends another piece ({text[:80]!r}) than byte {part.size} and on")
        known = part.etag(shown(url))
        if known is not None and known != answer.headers.get("ETag", known):
            self._start_over(part, "the file has changed at the server")
        return total

    def _beyond(self, answer: Answer, part: PartFile) -> int:
        """The server says that it has nothing after what we have."""
        found = _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", "").strip())
        if not part.size or self._file.size_bytes is not None or found is None or found[3] != str(part.size):
            self._start_over(part, f"the server has no byte {part.size}")
        return part.size

    def _start_over(self, part: PartFile, why: str) -> NoReturn:
        part.clear()
        raise Interruption(f"{why}; starting again from its beginning", is_answered=True)

    def _receive(self, answer: Answer, part: PartFile, total: int | None, patience: Patience) -> None:
        limit = self._file.size_bytes if self._file.size_bytes is not None else total
        stall = StallWatch(self._timing.stall_seconds)
        self._advanced(part, limit)
        while part.size != limit and (data := answer.read()):
            if limit is not None:
                data = data[: limit - part.size]  # what goes beyond the end is not ours; the checksum decides
            part.write(data)
            self.fetched_bytes += len(data)
            if part.size > self._furthest:  # bytes that came before, and were lost again, are no progress
                self._furthest = part.size
                patience.renew()
            self._advanced(part, limit)
            if stall.is_stalled(len(data)):
                raise Interruption("the server sends next to nothing", is_answered=True)
        if limit is not None and part.size < limit:
            raise Interruption(f"the connection ended at byte {part.size} of {limit}", is_answered=True)

    def _advanced(self, part: PartFile, total: int | None) -> None:
        self._watcher.advanced(name=self._file.name, stage="downloading", done=part.size, total=total)

    def _hashed(self, done: int, total: int) -> None:
        self._watcher.advanced(name=self._file.name, stage="checking", done=done, total=total)


def _refused(answer: Answer) -> NoReturn:
    if answer.status in _BUSY:
        wait = parse_retry_after(answer.headers.get("Retry-After"))
        raise Interruption(f"the server is busy (HTTP {answer.status})", is_answered=True, wait_seconds=wait)
    remedy = _REMEDIES.get(answer.status, "this is not how a file is sent: name another place with --url")
    raise PlaceError(f"HTTP {answer.status}: {remedy}")


def check_space(directory: Path, needed: int) -> None:
    """Refuse to begin what the disk cannot hold.

    Raises:
        OSError: ``ENOSPC``: there is less free space than ``needed`` bytes.
    """
    free = shutil.disk_usage(directory).free
    if needed > free:
        what = f"{os.strerror(errno.ENOSPC)}: {format_size(needed)} are needed, {format_size(free)} are free"
        raise OSError(errno.ENOSPC, what, str(directory))
