"""Print what a release says of its making: an in-toto statement with SLSA provenance, to be signed.

    python scripts/statement.py VERSION COMMIT FILE...

It names the files by their SHA-256, the commit that they were made of, and the source of libjpeg-turbo in the wheels.
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


def libjpeg_turbo() -> dict[str, Any]:
    """Return the source that scripts/libjpeg_turbo.sh names.

    Raises:
        ValueError: It names none.
    """
    script = (ROOT / "scripts" / "libjpeg_turbo.sh").read_text(encoding="utf-8")
    found = re.search(r"^version=([\d.]+)\nsha256=([0-9a-f]{64})$", script, re.MULTILINE)
    if found is None:
        raise ValueError("scripts/libjpeg_turbo.sh names no version and SHA-256")
    return {"uri": f"pkg:github/libjpeg-turbo/libjpeg-turbo@{found[1]}", "digest": {"sha256": found[2]}}


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
                    libjpeg_turbo(),
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
