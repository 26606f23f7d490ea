"""Mosaic Streaming's names, importable beside a PyTorch without CUDA.

It imports torchvision, whose usual package looks for operators of its compiled part, and that part loads beside PyTorch
with CUDA only. None of it is used here, so declaring the operators is enough.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch

_OPERATORS: Any = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
for _name in ("nms", "qnms"):
    with contextlib.suppress(RuntimeError):  # it is there
        _OPERATORS.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

from streaming import MDSWriter, Stream, StreamingDataset  # noqa: E402 - after what it needs
from streaming.base.util import clean_stale_shared_memory, merge_index  # noqa: E402

__all__ = ["MDSWriter", "Stream", "StreamingDataset", "clean_stale_shared_memory", "merge_index"]
