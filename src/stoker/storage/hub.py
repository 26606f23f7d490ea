"""Datasets of the Hugging Face Hub, ``hf://datasets/OWNER/NAME@COMMIT/PATH``, read file by file at one commit.

The files of a commit are listed once, page by page. The Hub redirects requests for large files to another server, by a
URL that is valid for an hour. See https://huggingface.co/docs/hub/api; the variables of huggingface_hub are understood.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from bisect import bisect_left
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, unquote, urljoin

from stoker.storage.backend import Entry, StoreError
from stoker.storage.web import RefusedError, Wanted, WebBackend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stoker.storage.backend import StoreSettings
    from stoker.storage.web import Answer

_T = TypeVar("_T")
_HUB = "https://huggingface.co"
_NEXT = re.compile(r'<([^<>]*)>\s*;[^<>]*\brel="?next\b')
_MOVED_FILES = 1024
_MOVED_SECONDS = 600.0  # a sixth of the time for which the Hub's URLs are valid


class HubBackend(WebBackend):
    """The files of a dataset of the Hub at one commit, read-only; see `stoker.storage.backend.Backend`.

    Args:
        name: ``hf://datasets/OWNER/NAME@REVISION``. For a revision that is not a commit, only `stat` of the repository
            itself works: its etag is the commit.
        settings: These override ``HF_ENDPOINT``, ``HF_TOKEN`` and the token of ``hf auth login``.
    """

    has_listings = True

    def __init__(self, name: str, settings: StoreSettings) -> None:
        super().__init__(name, settings)
        self._repository, _, self._revision = name.removeprefix("hf://").partition("@")
        self._hub = (settings.get("endpoint") or os.environ.get("HF_ENDPOINT") or _HUB).rstrip("/")
        token = None if settings.get("anonymous") else settings.get("token") or _token()
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._moved: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._keys: list[str] = []
        self._files: dict[str, Entry] | None = None
        self._lock = threading.Lock()

    def entries(self, prefix: str, after: str | None) -> Iterator[Entry]:
        files = self._listed()
        start = bisect_left(self._keys, f"{prefix}/" if prefix else "")
        for number in range(start, len(self._keys)):
            key = self._keys[number]
            if prefix and not key.startswith(f"{prefix}/"):
                return
            if after is None or key > after:
                yield files[key]

    def stat(self, key: str) -> Entry:
        if not key:
            answer = self._ask_hub(f"api/{self._repository}/revision/{quote(unquote(self._revision), safe='')}")
            return Entry("", 0, _understood(answer.data, lambda data: str(data["sha"])))
        files = self._listed()
        if key not in files:
            raise FileNotFoundError(key)
        return files[key]

    def _listed(self) -> dict[str, Entry]:
        """Return the files of the commit, which are requested only once."""
        with self._lock:
            if self._files is None:
                files: dict[str, Entry] = {}
                url = f"{self._hub}/api/{self._repository}/tree/{self._revision}?recursive=true&expand=false"
                while url:
                    answer = self._request(url)
                    page = _understood(answer.data, _files_of)
                    following = _NEXT.search(answer.link)
                    if following is not None and not page.keys() - files.keys():
                        raise StoreError("the pages of its list of files do not end", retry=False)
                    files |= page
                    url = urljoin(url, following[1]) if following else ""
                files = {key: entry for key, entry in files.items() if entry.size_bytes >= 0}
                self._keys, self._files = sorted(files), files
            return self._files

    def _ask(self, key: str, wanted: Wanted) -> Answer:
        """Request a file from the URL that the Hub last redirected to; if that refuses by now, ask the Hub again."""
        moved, until = self._moved.get(key, ("", 0.0))
        if time.monotonic() < until:
            try:
                return self._request(moved, wanted)
            except RefusedError:
                self._moved.pop(key, None)
        answer = self._ask_hub(f"{self._repository}/resolve/{self._revision}/{quote(key)}", wanted)
        self._moved[key] = (answer.url, time.monotonic() + _MOVED_SECONDS)
        while len(self._moved) > _MOVED_FILES:
            self._moved.popitem(last=False)
        return answer

    def _ask_hub(self, path: str, wanted: Wanted | None = None) -> Answer:
        try:
            return self._request(f"{self._hub}/{path}", wanted)
        except RefusedError as error:
            raise PermissionError(str(error)) from error

    def _request(self, url: str, wanted: Wanted | None = None) -> Answer:
        wanted = replace(wanted or Wanted(None, is_stored=True), headers=self._headers, trusted=self._hub)
        return self._exchange(url, wanted)


def _token() -> str:
    """Return the token that huggingface_hub would use."""
    token = os.environ.get("HF_TOKEN")
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    path = Path(os.environ.get("HF_TOKEN_PATH") or Path(home, "token")).expanduser()
    return (token or (path.read_text() if path.is_file() else "")).strip()


def _files_of(page: list[dict[str, Any]]) -> dict[str, Entry]:
    """Return the entries of a page of the list of files; folders have a negative size."""
    return {
        entry["path"]: Entry(entry["path"], entry["size"] if entry["type"] == "file" else -1, entry["oid"])
        for entry in page
    }


def _understood(data: bytes, read: Callable[[Any], _T]) -> _T:
    try:
        return read(json.loads(data))
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError("what answers is not the Hugging Face Hub; see HF_ENDPOINT", retry=False) from error
