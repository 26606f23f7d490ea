"""The site of the documentation: it builds without a warning, holds everything, and needs nothing but itself."""

from __future__ import annotations

import functools
import json
import os
import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from markdown_it import MarkdownIt

from programs import run_python
from repository import markdown
from repository.checkout import ROOT, pages
from repository.site_pages import COUNTED, Seen
from scripts.reference import api
from scripts.site import repository

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.needs("mkdocs")]  # one makes the site for all
PAGES_OF_DOCS = [page for page in pages() if page.is_relative_to(ROOT / "docs")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    target = tmp_path_factory.mktemp("built") / "site"
    words = ("-m", "mkdocs", "build", "--strict", "--site-dir", target)
    result = run_python(*words, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, seconds=240)
    assert result.returncode == 0, result.stderr
    assert "WARNING" not in result.stderr
    return target


@functools.cache
def seen(page: Path) -> Seen:
    return Seen(page)


def test_a_browser_loads_nothing_from_a_network(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert [address for address in seen(page).loads if re.match(r"[a-z]+:|//", address)] == [], page
    for style in site.rglob("*.css"):
        assert re.search(r"(url\(|@import)[\s'\"]*(https?:)?//", style.read_text("utf-8")) is None, style


def test_what_a_browser_loads_is_there(site: Path) -> None:
    for page in site.rglob("*.html"):
        if page.name != "404.html":
            missing = [address for address in seen(page).loads if not (page.parent / address.split("?")[0]).exists()]
            assert missing == [], page


def test_a_build_that_is_quiet_is_not_strict() -> None:
    # mkdocs then does not count its warnings: a page that is in no menu, or a link to no heading, would pass.
    line = re.search(r"mkdocs build.*", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert line is not None
    assert "--strict" in line[0]
    assert "-q" not in line[0]


def test_every_page_is_in_the_navigation(site: Path) -> None:
    menu = seen(site / "index.html").menu
    addresses = {page.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for page in PAGES_OF_DOCS}
    generated = {"decisions/index.html", "source/examples/index.html"}
    assert addresses | generated <= {address.partition("#")[0] for address in menu} | {"index.html"}


@pytest.mark.parametrize("page", PAGES_OF_DOCS, ids=markdown.name)
def test_a_page_is_on_the_site_what_it_is_on_a_code_host(site: Path, page: Path) -> None:
    # Lists, tables and fences that one kind of Markdown takes for text would be lost on the site.
    tokens = MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8"))
    opened = Counter(token.tag for token in tokens if token.nesting == 1)
    opened["pre"] = sum(token.type in ("fence", "code_block") for token in tokens)
    there = seen(site / page.relative_to(ROOT / "docs").with_suffix(".html"))
    assert {tag: there.counts[tag] for tag in COUNTED} == {tag: opened[tag] for tag in COUNTED}
    assert markdown.headings(page) <= there.ids


def test_names_in_the_text_lead_to_the_reference(site: Path) -> None:
    page = (site / "how-to" / "pytorch.html").read_text("utf-8")
    assert 'href="../reference/api/torch.html#stokertorchdataloader"><code>' in page
    for page_and_heading in api.Reference().addresses.values():
        address, _, heading = page_and_heading.removeprefix("docs/").partition("#")
        assert heading in seen((site / address).with_suffix(".html")).ids, page_and_heading


def test_the_index_of_decisions_has_them_all(site: Path) -> None:
    text = (site / "decisions" / "index.html").read_text(encoding="utf-8")
    for page in (ROOT / "docs" / "decisions").glob("*.md"):
        assert f'href="{page.stem}.html"' in text


def test_search_knows_every_page_also_without_a_server(site: Path) -> None:
    entries = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    listed = {entry["location"].partition("#")[0] for entry in entries}
    assert {page.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for page in PAGES_OF_DOCS} <= listed
    assert any("shuffle_quality" in entry["text"] for entry in entries)
    assert (site / "search" / "search_index.js").exists()  # what a page that is a file reads


def test_links_into_the_repository_lead_to_pages_that_show_it(site: Path) -> None:
    assert repository.relinked("[a](../../../examples/file_list.py)", ROOT / "docs/how-to/migrate/dogs.md") == (
        "[a](../../source/examples/file_list.py.md)"
    )
    assert repository.relinked("[a](docs/explanation/determinism.md#block-shuffle)", ROOT / "README.md") == (
        "[a](../explanation/determinism.md#block-shuffle)"
    )
    assert repository.relinked("[a](../examples)", ROOT / "docs/index.md") == "[a](source/examples/index.md)"
    assert repository.relinked("[determinism.md](determinism.md#x)", ROOT / "docs/explanation/memory.md") == (
        "[Determinism](determinism.md#x)"
    )
    code = "```text\n[a](../nowhere.py)\n```\n"
    assert repository.relinked(code, ROOT / "docs/index.md") == code
    assert "Read an epoch in two sittings" in (site / "source" / "examples" / "train_transform.py.html").read_text(
        "utf-8"
    )
    with pytest.raises(FileNotFoundError, match=r"links to examples/nothing\.py"):
        repository.relinked("[a](../examples/nothing.py)", ROOT / "docs/index.md")
