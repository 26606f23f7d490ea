"""Which work a library does, by its name: the tables behind `stoker.diagnosis.places`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stoker.diagnosis.evidence import Work

_OF_MODULES: dict[str, Work] = {
    **dict.fromkeys(sys.stdlib_module_names, "python"),
    **dict.fromkeys(
        (
            *("PIL", "cv2", "albumentations", "albucore", "imgaug", "skimage", "imageio", "pywt", "augly", "Augmentor"),
            *("torchvision.transforms", "torchvision.io", "kornia.augmentation", "keras.src.layers.preprocessing"),
            *("scipy.ndimage", "scipy.signal", "scipy.fft", "numpy", "numba", "simplejpeg", "turbojpeg", "pyvips"),
        ),
        "transform",
    ),
    **dict.fromkeys(
        (
            *("torch", "torchvision", "tensorflow", "keras", "jax", "jaxlib", "flax", "optax", "equinox", "haiku"),
            *("onnxruntime", "tensorrt", "cupy", "triton", "transformers", "timm", "lightning", "pytorch_lightning"),
            *("accelerate", "deepspeed", "kornia", "sklearn", "xgboost", "numpy.linalg", "scipy.linalg"),
            *("numpy._core.einsumfunc", "numpy.core.einsumfunc", "mxnet", "paddle", "mindspore", "apex", "tvm"),
        ),
        "model",
    ),
    **dict.fromkeys(
        (
            *("time", "threading", "_thread", "queue", "_queue", "select", "selectors", "socket", "_socket", "ssl"),
            *("subprocess", "asyncio", "concurrent", "signal", "multiprocessing", "fcntl", "mpi4py"),
        ),
        "waiting",
    ),
}

LARGE_PRODUCTS = frozenset(
    {"matmul", "dot", "vdot", "inner", "tensordot", "einsum", "solve", "svd", "inv", "eigh", "lstsq"}
)
"""Functions of NumPy that stand for a model's step rather than for changing an image."""

FOR_A_DEVICE = frozenset({"synchronize", "block_until_ready"})


def work_of_module(name: str) -> Work | None:
    """Return what a module is for, by the longest part of its dotted name that is known; None if none is."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        found = _OF_MODULES.get(".".join(parts[:count]))
        if found is not None:
            return found
    return None


def module_of(value: object) -> str:
    """Return the module that a value stands for: itself, the one it was defined in, or that of its type."""
    if isinstance(value, type(sys)):
        return value.__name__
    own = getattr(value, "__module__", None) if callable(value) else None
    return own if isinstance(own, str) and own else type(value).__module__


def is_image(value: object) -> bool:
    """Tell whether a value is pixels: an array of two or more dimensions, one element of an array, or a picture."""
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    if package == "PIL":
        return True
    if package not in ("numpy", "torch"):
        return False
    dimensions = getattr(value, "ndim", None)
    return isinstance(dimensions, int) and (dimensions >= 2 or kind.__name__ in ("uint8", "float32", "float16"))
