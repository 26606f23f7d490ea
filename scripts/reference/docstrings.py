"""Docstrings in Google's style as plain Markdown."""

from __future__ import annotations

import ast
import os
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import griffe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

_CODE = re.compile(r"``(?P<literal>.+?)``|`(?P<name>[^`\n]+)`", re.DOTALL)
_PAGE = re.compile(r"docs/[\w/-]+\.md")
_LITERAL = re.compile(r"(?P<before>^.*)::\n(?P<block>(?:\n|    .*\n?)+)", re.MULTILINE)
TABLE = re.compile(r"^=+ [= ]+\n(?:.*\n)*?=+ [= ]+\n(?:.*\n)*?=+ [= ]+(?:\n|\Z)", re.MULTILINE)
_LIST = re.compile(r"^((?!- |  ).+)\n- ", re.MULTILINE)
_TITLES = {
    griffe.DocstringSectionKind.parameters: "Arguments",
    griffe.DocstringSectionKind.other_parameters: "Other arguments",
    griffe.DocstringSectionKind.attributes: "Attributes",
    griffe.DocstringSectionKind.raises: "Raises",
    griffe.DocstringSectionKind.warns: "Warns",
    griffe.DocstringSectionKind.returns: "Returns",
    griffe.DocstringSectionKind.yields: "Yields",
}


@dataclass(frozen=True)
class Links:
    """Where names and pages are.

    Attributes:
        addresses: Page and heading of each public name.
        root: The checkout.
        page: The page that the links are on, by its path in the checkout.
    """

    addresses: Mapping[str, str]
    root: Path
    page: str

    def code(self, text: str, module: str = "") -> str:
        """Return text as code, with a link where it is a public name or a page."""
        for name in (text, f"stoker.{text}", f"{module}.{text}"):
            if address := self.addresses.get(name):
                return f"[`{text}`]({self._from_here(address)})"
        return self.to_page(text) if _PAGE.fullmatch(text) else f"`{text}`"

    def to_page(self, path: str) -> str:
        """Return a link to a page of the documentation.

        Raises:
            FileNotFoundError: There is no such page.
        """
        if not (self.root / path).exists():
            raise FileNotFoundError(f"a docstring speaks of {path}, which is not there")
        return f"[{PurePosixPath(path).stem}]({self._from_here(path)})"

    def _from_here(self, address: str) -> str:
        return os.path.relpath(address, PurePosixPath(self.page).parent)


def sections(
    docstring: griffe.Docstring, links: Links, more_attributes: Iterable[str], without: AbstractSet[str]
) -> list[str]:
    """Return the parts of a docstring; what else is an attribute is listed with those it has, `without` some."""
    parts, more = [], list(more_attributes)
    for section in docstring.parse("google", warnings=False):
        if section.kind is griffe.DocstringSectionKind.text:
            parts.append(markdown(section.value, links))
        elif section.kind is griffe.DocstringSectionKind.admonition:
            parts += _admonition(section, links)
        elif section.kind is griffe.DocstringSectionKind.examples:
            parts += ["**Example**", *(_example(text) for _, text in section.value)]
        else:
            elements = [element for element in section.value if str(element.annotation) != "Never"]  # only refuses
            items = [_element(element, links) for element in elements if getattr(element, "name", "") not in without]
            if section.kind is griffe.DocstringSectionKind.attributes:
                items, more = items + more, []
            parts += [f"**{_TITLES[section.kind]}**", "\n".join(items)]
    return [*parts, "**Attributes**", "\n".join(more)] if more else parts


def _admonition(section: griffe.DocstringSection, links: Links) -> list[str]:
    text = section.value.description
    shown = _example(text) if text.lstrip().startswith(">>>") else markdown(text, links)
    return [f"**{section.title}**", shown]


def _example(text: str) -> str:
    return f"```python\n{re.sub(r' *# doctest: .*', '', textwrap.dedent(text)).rstrip()}\n```"


def _element(element: griffe.DocstringElement, links: Links) -> str:
    if isinstance(element, griffe.DocstringRaise | griffe.DocstringWarn):
        return _listed(links.code(f"errors.{element.annotation}").replace("`errors.", "`"), element.description, links)
    if isinstance(element, griffe.DocstringNamedElement) and element.name:
        return item(element.name, element.description, links)
    return _listed("", element.description, links)


def item(name: str, text: str, links: Links, annotation: str = "") -> str:
    """Return a name and what it is as an item of a list, which holds no paragraphs."""
    text = text.replace("\n\n", "\n")
    return _listed(f"`{name}`" + (f" (`{annotation}`)" if annotation else ""), text, links)


def _listed(name: str, text: str, links: Links) -> str:
    body = markdown(text, links) if text else ""
    return textwrap.indent(f"{name}: {body}" if name else body, "  ").replace("  ", "- ", 1)


def markdown(text: str, links: Links) -> str:
    """Return text of a docstring as Markdown."""
    parts, end = [], 0
    for block in _LITERAL.finditer(text + "\n"):
        before = block["before"].rstrip()
        parts.append(_inline(text[end : block.start()] + (f"{before}:" if before else ""), links).rstrip())
        shown = textwrap.dedent(block["block"]).strip()
        parts.append(f"```{'python' if _is_python(shown) else 'text'}\n{shown}\n```")
        end = block.end()
    parts.append(_inline(text[end:], links).strip())
    return "\n\n".join(part for part in parts if part.strip())


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _table(text: str) -> str:
    """Return a simple table of reStructuredText as one of Markdown; lines without a first cell continue the row."""
    lines = text.splitlines()
    starts = [match.start() for match in re.finditer(r"=+", lines[0])]
    ends = [*starts[1:], None]
    rows: list[list[str]] = []
    for line in lines[1:]:
        cells = [line[start:end].strip() for start, end in zip(starts, ends, strict=True)]
        if line.startswith("="):
            continue
        if cells[0]:
            rows.append(cells)
        else:
            rows[-1] = [f"{old} {new}".strip() for old, new in zip(rows[-1], cells, strict=True)]
    rows.insert(1, ["---"] * len(starts))
    escaped = (" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows)
    return "\n".join(f"| {row} |" for row in escaped)


def _inline(text: str, links: Links) -> str:
    """Turn code and tables into those of Markdown, and escape what would be markup."""
    text = TABLE.sub(lambda table: _table(table[0]) + "\n", text)
    text = _LIST.sub(r"\1\n\n- ", text)  # some kinds of Markdown want an empty line before a list
    parts, end = [], 0
    for code in _CODE.finditer(text):
        parts.append(_prose(text[end : code.start()], links))
        parts.append(f"`{code['literal']}`" if code["literal"] else links.code(code["name"]))
        end = code.end()
    return "".join([*parts, _prose(text[end:], links)])


def _prose(text: str, links: Links) -> str:
    escaped = text.replace("**", "\\*\\*").replace("<", "&lt;")
    return _PAGE.sub(lambda page: links.to_page(page[0]), escaped)
