"""What every page must be: well-formed, alone, and without anything that runs."""

from __future__ import annotations

from html.parser import HTMLParser

_VOID = {"meta", "img", "br", "link", "input", "hr"}


class Page(HTMLParser):
    """A page that was read strictly: every element is closed by its own end."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data + " "


def checked(text: str) -> Page:
    """Return a page after checking that it needs nothing else and runs nothing."""
    page = Page(text)
    assert not {tag for tag, _ in page.tags} & {"script", "iframe", "object", "embed", "link", "form"}
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href", "xlink:href"):
            value = attributes.get(name) or "#"
            assert value.startswith(("data:image/", "#")), value
    assert "@import" not in text
    assert "url(http" not in text
    return page
