"""LitData's chunks of bytes; photographs several times, so that the end of an epoch weighs less."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import litdata
import numpy as np

from benchmarks.rivals.work import Work

COPIES = 5


def photo(paths: list[str], number: int) -> dict[str, Any]:
    """One photograph."""
    return {"image": Path(paths[number]).read_bytes(), "number": number}


def tensor(path: str, number: int) -> dict[str, Any]:
    """One tensor."""
    return {"image": np.load(path, mmap_mode="r")[number].tobytes(), "number": number}


def prepare(work: Work) -> None:
    """Write photographs and tensors."""
    photos, chance = work.photos(), np.random.default_rng(0)
    order = [int(number) for _ in range(COPIES) for number in chance.permutation(len(photos))]
    raw = list(range(len(np.load(work.raw_file, mmap_mode="r"))))
    for name, make, inputs in (
        ("photos", partial(photo, photos), order),
        ("raw", partial(tensor, work.raw_file), raw),
    ):
        litdata.optimize(
            fn=make,
            inputs=inputs,
            output_dir=work.path_of(name),
            chunk_bytes="32MB",
            num_workers=work.threads,
            start_method="fork",
        )


if __name__ == "__main__":
    prepare(Work.from_json(sys.argv[1]))
