"""Print what a release says of its making: an in-toto statement with SLSA provenance, to be signed.

    python scripts/statement.py VERSION COMMIT FILE...

It names the files by their SHA-256, the commit that they were made of, and the sources of the libraries in the wheels.
There are no dates or names of machines: the same release gives the same statement.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


_REPOSITORIES = {
    "libjpeg-turbo": "github/libjpeg-turbo/libjpeg-turbo",
    "zlib-ng": "pypi/zlib-ng",  # the package of Python, in whose source it is
    "libpng": "github/pnggroup/libpng",
    "libwebp": "github/webmproject/libwebp",
}


def libraries() -> list[dict[str, Any]]:
    """Return the sources that scripts/image_libraries.sh names.

    Raises:
        ValueError: It names others.
    """
    script = (ROOT / "scripts" / "image_libraries.sh").read_text(encoding="utf-8")
    pattern = r'^version=([\d.]+)\nbuild ([\w-]+) \$version ([0-9a-f]{64}) \\\n  "\$\{\w+:-(\S+)\}"'
    builds = re.findall(pattern, script, re.MULTILINE)
    if {name for _, name, _, _ in builds} != set(_REPOSITORIES):
        raise ValueError(
            f"scripts/image_libraries.sh does not name a version and SHA-256 of each of {list(_REPOSITORIES)}"
        )
    return [
        {"uri": f"pkg:{_REPOSITORIES[name]}@{source.partition('==')[2] or version}", "digest": {"sha256": sha}}
        for version, name, sha, source in builds
    ]


def statement(version: str, commit: str, files: list[Path]) -> dict[str, Any]:
    """Return the statement of a release whose files these are."""
    source = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Source"]
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": file.name, "digest": {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()}}
            for file in sorted(files)
        ],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{source}/scripts/release.sh",
                "externalParameters": {"version": version},
                "resolvedDependencies": [
                    {"uri": f"git+{source}@v{version}", "digest": {"gitCommit": commit}},
                    *libraries(),
                ],
            },
            "runDetails": {"builder": {"id": f"{source}/scripts/release.sh"}},
        },
    }


def main(version: str, commit: str, *files: str) -> None:
    """Print it."""
    sys.stdout.write(json.dumps(statement(version, commit, [Path(file) for file in files]), indent=2) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
