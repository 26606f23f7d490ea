"""Taking the pages of the documentation apart."""

from __future__ import annotations

import ast
import itertools
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

from repository.checkout import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FENCE = re.compile(
    r"^(?P<mark>```+)(?P<language>[\w-]*)[^\n]*\n(?P<body>.*?)^(?P=mark)[ \t]*$", re.DOTALL | re.MULTILINE
)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ (?P<title>.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line of the page on which that begins."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in _FENCE.finditer(text):
        yield Block(match["language"], match["body"], text.count("\n", 0, match.start("body")) + 1)


def code_seen_by_readers(page: Path) -> list[tuple[str, str]]:
    """Language and text of all code as CommonMark has it: fenced in any way, indented, inside lists and quotes."""
    tokens = MarkdownIt().parse(page.read_text(encoding="utf-8"))
    return [(token.info.strip(), token.content) for token in tokens if token.type in ("fence", "code_block")]


def is_python(text: str) -> bool:
    """Whether text is a program, whatever its block says it is: it parses, and imports, assigns or calls something."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return any(isinstance(node, ast.Import | ast.ImportFrom | ast.Assign | ast.Call) for node in ast.walk(tree))


def program(page: Path) -> str:
    """All Python of a page as one program, on the line numbers it has there."""
    lines: list[str] = []
    for block in blocks(page):
        if block.language == "python":
            lines += [""] * (block.line - 1 - len(lines))
            lines += block.text.splitlines()
    return "\n".join(lines) + "\n"


def commands(page: Path) -> Iterator[list[str]]:
    """The words of every ``stoker`` command in a console or sh block; without answers, comments and redirections."""
    for block in blocks(page):
        if block.language in ("console", "sh"):
            for line in block.text.replace("\\\n", " ").splitlines():
                words = shlex.split(line.removeprefix("$ "), comments=True) if "stoker " in line else []
                if words[:1] == ["stoker"]:
                    yield list(itertools.takewhile(lambda word: word not in (">", "|"), words[1:]))


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Every link to another file of the repository: the file, and the heading or an empty string."""
    for match in _LINK.finditer(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        target, _, heading = match["target"].partition("#")
        if not re.match(r"[a-z]+:", target):
            yield (page.parent / target if target else page), heading


def headings(page: Path) -> set[str]:
    """The headings of a page as links spell them."""
    titles = _HEADING.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()
