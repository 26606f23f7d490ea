"""Audits a made-up source of very many images: python -m benchmarks.audit --scale 10000000.

What is measured is `stoker audit SOURCE --resume FILE --json` where every image has been measured: the file is read
into the table, duplicates are searched for, findings named, and the report is written. Nothing is opened or decoded,
and there are no images. Their hashes have independent bits; one in fifty is made a near copy of another, one in a
hundred is an equal file, one in a hundred turned. Bits of hashes of photographs are less even.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np

from benchmarks.many_items import collect, step
from stoker.cli import audit as command
from stoker.cli.main import main as stoker
from stoker.inspect import auditing
from stoker.inspect.auditing import FORMAT_NAMES, MEASURES, MODE_NAMES
from stoker.loader.opening import _of_images
from stoker.sources import Source
from stoker.sources.reader import FileReader

_CLASSES = 1000
_ROWS = 2**16
_CHANGED_BITS = 6


def main() -> None:
    """Print a line for each step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, default=1_000_000, metavar="N", help="how many images")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    names = tuple(b"n%08d" % number for number in range(_CLASSES))
    with step("listed", args.scale):
        table, splits = collect(args.scale, list(names)).finish({name: label for label, name in enumerate(names)})
        tree = Source("/photos", names, (b"",) * len(names), table, splits, FileReader(b"/photos", "disk"))
        opened = {name: _of_images(tree, "/photos", name) for name in splits if len(splits[name])}
    with mock.patch.object(command, "open_splits", return_value=opened), tempfile.TemporaryDirectory() as folder:
        measures, report = Path(folder) / "measures", Path(folder) / "audit.json"
        with step("made up", args.scale):
            write_measures(measures, args.scale, " ".join(dataset.identity for dataset in opened.values()))
        options = ["--threads", str(args.threads), "--resume", str(measures), "--json", "--quiet"]
        Path("/proc/self/clear_refs").write_text("5")  # the highest memory is that of the audit
        with step("audited", args.scale), report.open("w") as file, contextlib.redirect_stdout(file):
            code = stoker(["audit", "/photos", *options])
        print(f"exit code {code}; {report.stat().st_size:,} bytes of JSON")


def write_measures(path: Path, images: int, identity: str) -> None:
    """Write what an earlier run would have measured."""
    random = np.random.default_rng(1)
    hashes, strong = random.integers(0, 2**64, (2, images), np.uint64)
    sources, copies = random.permutation(images)[: images // 50 * 2].reshape(2, -1)
    hashes[copies], strong[copies] = hashes[sources], strong[sources]
    for _ in range(_CHANGED_BITS):
        hashes[copies] ^= np.uint64(1) << random.integers(0, 64, len(copies), np.uint64)
    with auditing._open_journal(path, identity, images) as file:
        for first in range(0, images, _ROWS):
            rows = np.zeros(min(_ROWS, images - first), MEASURES)
            rows["hash"], rows["strong"] = hashes[first : first + _ROWS], strong[first : first + _ROWS]
            numbers = np.arange(first, first + len(rows), dtype=np.uint64)
            rows["digest"] = (numbers - (numbers % 100 == 1)).repeat(2).view("V16")  # of each hundred two are equal
            rows["width"], rows["height"], rows["size"] = 500, 375, 100_000 + numbers % 1000
            rows["sums"] = (random.normal(120, 25, (len(rows), 3)).clip(5, 250) * 500 * 375).astype(np.uint64)
            rows["squares"] = ((rows["sums"] / (500 * 375)) ** 2 * 187_500 + 3000 * 187_500).astype(np.uint64)
            rows["format"], rows["mode"] = FORMAT_NAMES.index("jpeg"), MODE_NAMES.index("RGB")
            rows["bits"], rows["orientation"] = 8, 1 + 5 * (numbers % 100 == 7)
            for at in range(0, len(rows), auditing._BLOCK_ROWS):
                auditing._append(file, first + at, rows[at : at + auditing._BLOCK_ROWS])


if __name__ == "__main__":
    main()
