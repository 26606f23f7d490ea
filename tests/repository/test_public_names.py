"""What is public, name by name: adding to it is a decision, and so is taking away."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect

import pytest

import stoker
from repository import checkout
from stoker import errors

PUBLIC = {
    "BadSample",
    "BadSampleReport",
    "Batch",
    "BlockShuffle",
    "BoxOutput",
    "Boxes",
    "CacheStats",
    "CenterCrop",
    "ColorJitter",
    "Dataset",
    "DoctorReport",
    "Loader",
    "LoaderStats",
    "MemoryCache",
    "Mix",
    "MultiCrop",
    "NodeCache",
    "ObjectCrops",
    "Output",
    "PaddedBoxes",
    "Position",
    "RandomResizedCrop",
    "RawTensor",
    "ReadAhead",
    "RecordKeys",
    "Resize",
    "Sample",
    "SourceOptions",
    "StageStats",
    "TopLeft",
    "doctor",
    "errors",
    "loader_settings",
    "mix",
    "open",
    "trace",
}
ADAPTERS = {
    "jax": {"BatchIterator", "batches"},
    "spark": {"build"},
    "torch": {"DataLoader", "MapDataset", "TorchBatch"},
    "tensorflow": {"dataset", "state_at"},
}


def test_the_public_names_are_exactly_these() -> None:
    assert set(stoker.__all__) == PUBLIC
    assert stoker.__all__ == sorted(stoker.__all__)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_everything_public_is_there_and_documented(name: str) -> None:
    assert inspect.getdoc(getattr(stoker, name))


@pytest.mark.parametrize("adapter", sorted(ADAPTERS))
def test_the_adapters_define_exactly_these(adapter: str) -> None:
    package = checkout.PACKAGE / adapter
    if package.is_dir():
        assert set(importlib.import_module(f"stoker.{adapter}").__all__) == ADAPTERS[adapter]
        return
    tree = checkout.parse(package.with_suffix(".py"))
    defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    assert {name for name in defined if not name.startswith("_")} == ADAPTERS[adapter]


def test_every_module_is_installed() -> None:
    # Patterns of the build backend could leave one out, and no import of the checkout would show it.
    for path in checkout.modules():
        name = ".".join(path.relative_to(checkout.PACKAGE.parent).with_suffix("").parts)
        assert importlib.util.find_spec(name.removesuffix(".__init__")), name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Loder'"):
        _ = stoker.Loder


def test_the_drawn_tree_of_errors_is_the_tree() -> None:
    drawn = errors.__doc__ or ""
    depth = {}
    for line in drawn.splitlines():
        name = line.lstrip(" │├└─").split(" ")[0]
        if name.endswith(("Error", "Warning")) and name != "UserWarning":
            depth[name] = line.index(name) // 4
    defined = {name: cls for name, cls in vars(errors).items() if inspect.isclass(cls)}
    assert set(depth) == set(defined)
    base = depth["StokerError"]
    for name, cls in defined.items():
        if issubclass(cls, UserWarning):
            assert cls.__bases__ == (UserWarning,)
            continue
        assert len([c for c in cls.__mro__ if issubclass(c, errors.StokerError)]) - 1 == depth[name] - base, name
