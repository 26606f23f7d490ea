"""What mkdocs asks while it builds the site: pages that are made from the code, and links into the repository."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File

from scripts.reference import api
from scripts.site import repository

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

_NAME = re.compile(r"<code>(?P<name>stoker(\.\w+)+)</code>(?!</a>)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that no file in ``docs`` has, and put folders into the navigation."""
    generated = {"decisions/index.md": _decisions(), **repository.pages()}
    for path, text in generated.items():
        files.append(File.generated(config, path, content=text))
    config.nav = _filled(config.nav, files)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links into the repository into links to pages."""
    del config, files
    source = page.file.abs_src_path
    return repository.relinked(markdown, Path(source)) if page.file.generated_by is None and source else markdown


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn public names that the text mentions into links to what the reference says of them."""
    del config, files
    addresses = _addresses()
    here = PurePosixPath(page.file.dest_uri)

    def linked(code: re.Match[str]) -> str:
        target = addresses.get(code["name"])
        if target is None:
            return code[0]
        address, _, heading = target.partition("#")
        if address == str(here):
            return code[0]
        return f'<a href="{os.path.relpath(address, here.parent)}#{heading}">{code[0]}</a>'

    return _NAME.sub(linked, html)


@functools.cache
def _addresses() -> dict[str, str]:
    """Return where on the site each public name is described."""
    addresses = api.Reference().addresses.items()
    return {name: address.removeprefix("docs/").replace(".md#", ".html#") for name, address in addresses}


def _decisions() -> str:
    lines = []
    for path in sorted((repository.DOCS / "decisions").glob("*.md")):
        title, _, text = path.read_text("utf-8").partition("\n")
        first = re.sub(r"^\*\*\w+\.\*\*\s*", "", text.strip().split("\n\n")[0].replace("\n", " "))
        sentence = re.match(r".*?\.(?=\s|$)", first)
        lines.append(f"| [{title.lstrip('# ')}]({path.name}) | {sentence[0] if sentence else first} |")
    table = ["| decision | in a sentence |", "|---|---|", *lines]
    return "# Decisions\n\nWhat somebody might question, and why it is as it is.\n\n" + "\n".join(table) + "\n"


def _filled(nav: Any, files: Files) -> Any:
    """Replace ``folder/`` in the navigation by all pages of that folder, its index first."""
    if isinstance(nav, list):
        return [_filled(entry, files) for entry in nav]
    if isinstance(nav, dict):
        return {title: _filled(entry, files) for title, entry in nav.items()}
    if not isinstance(nav, str) or not nav.endswith("/"):
        return nav
    paths = [file.src_uri for file in files.documentation_pages() if file.src_uri.startswith(nav)]
    return sorted(paths, key=lambda path: (not path.endswith("/index.md"), path))
