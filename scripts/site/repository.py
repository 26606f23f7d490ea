"""Files of the repository as pages of the site, so that links from the documentation into it lead somewhere offline.

On a code host ``../examples/file_list.py`` opens the file. On the site it becomes a link to a page that shows it. Which
files have such a page follows from the links: all that the documentation links to, and all that those link to.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
START = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "examples")

_FENCE = re.compile(r"^(?P<mark>```+)[^\n]*\n.*?^(?P=mark)[ \t]*$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)(?=\))")
_LANGUAGES = {".py": "python", ".toml": "toml", ".sh": "sh", ".txt": "text", ".json": "json", ".yml": "yaml"}


def pages() -> dict[str, str]:
    """Return the Markdown of each page by its path in the site."""
    waiting = [*START, *(path for page in DOCS.rglob("*.md") for path in _linked(page.read_text("utf-8"), page.parent))]
    by_address: dict[str, str] = {}
    while waiting:
        path = waiting.pop()
        address = address_of(path)
        if address not in by_address and not path.is_relative_to(DOCS):
            text = _shown(path)
            by_address[address] = relinked(text, path)
            waiting += _linked(text, _folder_of(path))
    return by_address


def address_of(path: Path) -> str:
    """Return where in the site a file or folder of the repository is shown.

    Raises:
        FileNotFoundError: There is no such file.
    """
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    name = path.relative_to(ROOT).as_posix()
    if path.is_dir():
        return f"source/{name}/{'README' if (path / 'README.md').exists() else 'index'}.md"
    if not path.exists():
        raise FileNotFoundError(f"the documentation links to {name}, which is not there")
    return f"source/{name}" if path.suffix == ".md" else f"source/{name}.md"


def relinked(markdown: str, path: Path) -> str:
    """Return Markdown of `path` with its relative links leading to pages of the site."""
    here = PurePosixPath(address_of(path)).parent.as_posix()
    folder = _folder_of(path)

    def replace(link: re.Match[str]) -> str:
        target, hash_sign, heading = link["target"].partition("#")
        if not target or re.match(r"[a-z]+:", target):
            return link[0]
        linked = Path(os.path.normpath(folder / target))
        address = os.path.relpath(address_of(linked), here)
        return f"[{_titled(link['text'], linked)}]({address}{hash_sign}{heading}"

    return _outside_fences(markdown, replace)


def _titled(text: str, linked: Path) -> str:
    """Say the title of a page in the place of the name of its file."""
    if not text.endswith(f"{linked.stem}.md"):
        return text
    return linked.read_text("utf-8").partition("\n")[0].lstrip("# ").partition(":")[0]


def _outside_fences(markdown: str, replace: Callable[[re.Match[str]], str]) -> str:
    parts, end = [], 0
    for fence in _FENCE.finditer(markdown):
        parts += [_LINK.sub(replace, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, _LINK.sub(replace, markdown[end:])])


def _folder_of(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _linked(markdown: str, folder: Path) -> list[Path]:
    """Return the files and folders that Markdown in `folder` links to."""
    targets = [link["target"].partition("#")[0] for link in _LINK.finditer(_FENCE.sub("", markdown))]
    return [Path(os.path.normpath(folder / target)) for target in targets if target and ":" not in target]


def _shown(path: Path) -> str:
    if path.is_dir():
        page = path / "README.md"
        return page.read_text("utf-8") if page.exists() else _folder(path)
    if path.suffix == ".md":
        return path.read_text("utf-8")
    title = f"# {path.name}\n\n`{path.relative_to(ROOT).as_posix()}` of the repository.\n\n"
    if path.suffix == ".ipynb":
        return title + _notebook(path)
    return f"{title}````{_LANGUAGES.get(path.suffix, 'text')}\n{path.read_text('utf-8')}````\n"


def _folder(path: Path) -> str:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", str(path)]
    listed = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True).stdout.split("\0")
    names = sorted(Path(name).name for name in listed if name) or sorted(entry.name for entry in path.iterdir())
    files = [path / name for name in names if (path / name).is_file()]
    lines = [f"- [{file.name}]({file.name}): {_first_line(file)}" for file in files]
    return f"# {path.relative_to(ROOT).as_posix()}\n\n" + "\n".join(lines) + "\n"


def _first_line(path: Path) -> str:
    """Return what a program or notebook says of itself."""
    if path.suffix == ".ipynb":
        text = "".join(json.loads(path.read_text("utf-8"))["cells"][0]["source"])
        return text.splitlines()[0].lstrip("# ")
    return path.read_text("utf-8").splitlines()[0].strip('"').rstrip(".").partition(": python ")[0]


def _notebook(path: Path) -> str:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    texts = [("".join(cell["source"]), cell["cell_type"]) for cell in cells]
    return "\n\n".join(f"```python\n{text}\n```" if kind == "code" else _lowered(text) for text, kind in texts) + "\n"


def _lowered(text: str) -> str:
    """Make headings one level lower: the page has a title already."""
    return re.sub(r"^#", "##", text, flags=re.MULTILINE)
