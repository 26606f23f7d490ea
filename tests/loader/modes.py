"""The modes that datasets are opened in, and outputs of each."""

from __future__ import annotations

from typing import Any

import stoker

MODES: dict[Any, int] = {"RGB": 3, "L": 1, "RGBA": 4, "I;16": 1}
"""How many channels images of each have."""
INTEGERS = {mode: "uint16" if mode == "I;16" else "uint8" for mode in MODES}


def outputs(count: int) -> list[stoker.Output]:
    """Outputs of images with so many channels."""
    mean, std = (0.485, 0.456, 0.406, 0.9)[:count], (0.229, 0.224, 0.225, 0.5)[:count]
    return [
        stoker.Output(),
        stoker.Output(layout="NCHW"),
        stoker.Output("float16", "NCHW", mean, std),
        stoker.Output("float32", std=std),
    ]


OUTPUTS = [(mode, output) for mode, count in MODES.items() for output in outputs(count)]
