"""Reading what mkdocs has built."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
COUNTED = ("h1", "h2", "h3", "h4", "li", "pre", "table", "tr", "td")


class Seen(HTMLParser):
    """What is in one page.

    Attributes:
        ids: Anchors that links can lead to.
        loads: Addresses of what a browser loads by itself.
        menu: Addresses in the navigation.
        counts: How many elements of each kind the text of the page has.
    """

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.loads: list[str] = []
        self.menu: set[str] = set()
        self.counts: Counter[str] = Counter()
        self._inside: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.ids |= {attributes["id"]} if "id" in attributes else set()
        if tag in ("nav", "article"):
            self._inside.append(tag)
        if (
            tag in _LOADING
            and attributes.get(_LOADING[tag])
            and attributes.get("rel") not in ("canonical", "next", "prev")
        ):
            self.loads.append(attributes[_LOADING[tag]])
        if tag == "a" and "nav" in self._inside:
            self.menu.add(attributes.get("href", ""))
        if "article" in self._inside:
            self.counts[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        if tag in ("nav", "article"):
            self._inside.pop()
