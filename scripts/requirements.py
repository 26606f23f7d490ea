"""Print the requirements of one extra of pyproject.toml, one a line; with a second word, only the one of that name.

Installing them apart from the package keeps a changed source file from asking the package index again.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path


def main(extra: str, name: str | None = None) -> None:
    """Print them."""
    pyproject = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    for line in pyproject["project"]["optional-dependencies"][extra]:
        requirement, _, marker = line.partition(";")
        if name is None or re.split(r"[^A-Za-z0-9_-]", requirement)[0] == name:
            sys.stdout.write(f"{requirement.strip()}{' ; ' + marker.strip() if marker else ''}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
