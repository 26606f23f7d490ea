"""``stoker build``, in the forms ``exact``, ``fast`` and ``standard`` (Huffman tables, with fast decoding)."""

from __future__ import annotations

from pathlib import Path

from benchmarks.rivals.serving import serve_builds
from benchmarks.rivals.work import SMALL_QUALITY, SMALL_SIDE, Work
from stoker.cli.main import main


def build(work: Work, out: Path) -> None:
    """Build the tree of the long list, with fsync, index and manifest, as every user's build does."""
    words = ["build", str(Path(work.sources, "build")), str(out), "--threads", str(work.threads), "--shards", "8"]
    if work.line == "small":
        words += ["--resize", f"short:{SMALL_SIDE}", "--encode", f"jpeg:{SMALL_QUALITY}:420"]
    if work.form == "standard":
        words[-1] += ":standard"
    if work.form in ("fast", "standard"):
        words += ["--decode", "fast"]
    if main(words) != 0:
        raise SystemExit("stoker build failed")


if __name__ == "__main__":
    serve_builds(build)
