"""Print the pairs of images that imagededup takes for duplicates: python find_imagededup.py FOLDER."""

from __future__ import annotations

import json
import sys

import torch

# torchvision, which it imports, loads its compiled operators beside PyTorch with CUDA only; PHash needs none of them.
operators = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
for name in ("nms", "qnms"):
    operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")  # type: ignore[no-untyped-call]

from imagededup.methods import PHash  # noqa: E402

if __name__ == "__main__":  # it starts processes
    method = PHash(verbose=False)
    duplicates = method.find_duplicates(image_dir=sys.argv[1], max_distance_threshold=10)
    print(json.dumps([[name, other] for name, others in duplicates.items() for other in others]))
