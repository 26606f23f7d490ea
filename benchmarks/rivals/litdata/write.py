"""LitData's optimize, with as many workers as others have threads, forked: its default starts Python anew for each."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import litdata

from benchmarks.rivals.pictures import payload
from benchmarks.rivals.serving import serve_builds

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.rivals.work import Work


def sample(line: str, item: tuple[int, str]) -> dict[str, Any]:
    """What is stored of one photograph."""
    return {"image": payload(line, item[1]), "number": item[0]}


def build(work: Work, out: Path) -> None:
    """Write everything."""
    litdata.optimize(
        fn=partial(sample, work.line),
        inputs=list(enumerate(work.build_photos())),
        output_dir=str(out),
        chunk_bytes="32MB",
        num_workers=work.threads,
        mode="overwrite",
        start_method="fork",
    )


if __name__ == "__main__":
    serve_builds(build)
