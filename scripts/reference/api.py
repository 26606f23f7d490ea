"""The pages of the Python API, from the docstrings and signatures of the package. Nothing of it is imported."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING

import griffe

from scripts.reference import docstrings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "docs/reference/api"
# What modules of Stoker use of each other's classes, and users do not.
_OF_FIELDS = {
    *("arrow", "boxes", "class_names", "column", "decode", "encode", "features", "form", "from_cell", "show", "spec"),
    *("summary", "to_arrow", "to_json", "to_plain"),
}
_FIELDS = ("Text", "Bytes", "Json", "Int", "Float", "Label", "Labels", "Array", "Mask", "Image", "Boxes")
_INTERNAL = dict.fromkeys(_FIELDS, _OF_FIELDS) | {
    "Dataset": {"load_boxes", "opener", "records", "remote", "source_of", "stamps"},
    "MemoryCache": {"native", "warn_of_problems"},
    "NodeCache": {"warn_of_problems"},
    "ReadAhead": {"limits"},
}
_MADE_BY_FUNCTIONS = {"Dataset", "Mix"}
_PROTOCOL = {"__call__", "__getitem__", "__iter__", "__len__"}
_WIDTH = 100
_SHORT = 40  # types of that length are written in the place of their names

# Every public name of `stoker` is on one page, in this order; `pages` fails where one is missing.
PAGES = {
    "build": ("Building", ["build", "BuildReport", "PartReport"]),
    "merging": ("Merging and exporting", ["merge", "MergeReport", "export", "ExportReport", "ExportedSplit"]),
    "opening": ("Opening data", ["open", "location", "RecordKeys"]),
    "loader": ("Loader", ["Loader", "loader_settings", "LoaderStats", "StageStats", "trace"]),
    "transforms": (
        "Transforms",
        [
            "RandomResizedCrop",
            "CenterCrop",
            "Resize",
            "TopLeft",
            "RawTensor",
            "MultiCrop",
            "ObjectCrops",
            "ColorJitter",
            "Output",
        ],
    ),
    "batch": (
        "Batches",
        ["Batch", "Position", "BoxOutput", "Boxes", "PaddedBoxes", "BadSample", "BadSampleReport"],
    ),
    "dataset": ("Datasets", ["Dataset", "Sample", "mix", "Mix"]),
    "image": ("stoker.image", ["image.*"]),
    "caches": ("Caches and read-ahead", ["MemoryCache", "NodeCache", "CacheStats", "ReadAhead"]),
    "fields": (
        "stoker.fields",
        [*(f"fields.{name}" for name in _FIELDS), "fields.Ragged", "fields.Padded", "fields.infer"],
    ),
    "order": (
        "Order",
        ["BlockShuffle", "Balanced", "Weighted", "order.EpochOrder", "order.shuffle_quality", "order.ShuffleQuality"],
    ),
    "torch": ("stoker.torch", ["torch.*"]),
    "tensorflow": ("stoker.tensorflow", ["tensorflow.*"]),
    "jax": ("stoker.jax", ["jax.*"]),
    "spark": ("stoker.spark", ["spark.*"]),
    "audit": ("Audits", ["audit", "AuditReport", "AuditedSplit", "AuditedImage", "DuplicateGroup"]),
    "inspect": (
        "Diagnosis",
        ["doctor", "DoctorReport"],
    ),
    "errors": ("stoker.errors", ["errors.*"]),
}


class Reference:
    """What the pages of the API say, and where each name is."""

    def __init__(self) -> None:
        self._package = _package()
        self._listed = {page: _names(self._package, names) for page, (_, names) in PAGES.items()}
        _check_complete(self._package, self._listed)
        self.addresses = {
            name: address
            for page, names in self._listed.items()
            for name, address in _addresses(self._package, page, names)
        }
        """Page and heading of each name, by the name with ``stoker.`` before it."""

    def pages(self) -> dict[str, str]:
        """Return the text of each page by its path in the repository."""
        links = docstrings.Links(self.addresses, ROOT, f"{FOLDER}/index.md")
        pages = {links.page: _index(self._listed, links)}
        for page, (title, _) in PAGES.items():
            entries = [_entry(self._package, name, links) for name in self._listed[page]]
            parts = [f"# {title}", *_introduction(self._package, page, links), *entries]
            pages[f"{FOLDER}/{page}.md"] = "\n\n".join(parts) + "\n"
        return pages


@functools.cache
def _package() -> griffe.Module:
    """What the files of Stoker define, which takes seconds to read."""
    loader = griffe.GriffeLoader(search_paths=[ROOT / "src"], docstring_parser="google", allow_inspection=False)
    loader.load("stoker")
    package: griffe.Module = loader.modules_collection["stoker"]
    return package


def _names(package: griffe.Module, names: list[str]) -> list[str]:
    expanded = []
    for name in names:
        module, _, star = name.rpartition(".")
        expanded += [f"{module}.{member}" for member in _public(package[module])] if star == "*" else [name]
    return expanded


def _addresses(package: griffe.Module, page: str, names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield where each name of a page is, and each method of its classes."""
    for name in names:
        yield f"stoker.{name}", f"{FOLDER}/{page}.md#{_slug(f'stoker.{name}')}"
        thing = _target(package, name)
        for member in thing.members.values() if isinstance(thing, griffe.Class) else ():
            is_internal = member.name in _INTERNAL.get(thing.name, ())
            if isinstance(member, griffe.Function) and not is_internal and _is_shown(member):
                yield f"stoker.{name}.{member.name}", f"{FOLDER}/{page}.md#{_slug(f'{thing.name}.{member.name}')}"


def _public(module: griffe.Object | griffe.Alias) -> list[str]:
    """Return ``__all__`` of a module; where there is none, its own classes and functions without an underscore."""
    if module.exports is not None:
        return [str(name) for name in module.exports]
    defined = [member for member in module.members.values() if not member.is_alias and not member.name.startswith("_")]
    functions = module.name != "errors"  # that has one, for other modules
    return [member.name for member in defined if member.is_class or (functions and member.is_function)]


def _check_complete(package: griffe.Module, listed: dict[str, list[str]]) -> None:
    names = [name for names in listed.values() for name in names]
    public = [name for name in _public(package) if not package[name].is_module]
    if missing := [name for name in public if name not in names]:
        raise ValueError(f"no page of the reference has {', '.join(missing)}; add them to PAGES in {__file__}")
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"two pages of the reference have {', '.join(twice)}; see PAGES in {__file__}")


def _index(listed: dict[str, list[str]], links: docstrings.Links) -> str:
    parts = [
        "# Python API",
        "Made from the docstrings by `make reference`; a test compares these pages with the code.",
    ]
    rows = [
        f"| [{title}]({page}.md) | {', '.join(links.code(f'stoker.{name}') for name in listed[page])} |"
        for page, (title, _) in PAGES.items()
    ]
    return "\n\n".join([*parts, "\n".join(["| page | names |", "|---|---|", *rows])]) + "\n"


def _introduction(package: griffe.Module, page: str, links: docstrings.Links) -> list[str]:
    """Return what the docstring of a module says that has a page of its own."""
    if (
        page in package.members
        and package[page].is_module
        and all(name.startswith(f"{page}.") for name in PAGES[page][1])
    ):
        docstring = package[page].docstring
        return [docstrings.markdown(docstring.value, links)] if docstring else []
    return []


def _target(package: griffe.Module, name: str) -> griffe.Object:
    member = package[name]
    target = member.final_target if isinstance(member, griffe.Alias) else member
    # A function may have the name of its module.
    if isinstance(target, griffe.Module) and target.name in target.members:
        return target.members[target.name]  # type: ignore[return-value]
    return target


def _entry(package: griffe.Module, name: str, links: docstrings.Links) -> str:
    thing = _target(package, name)
    parts = [f"## `stoker.{name}`"]
    if isinstance(thing, griffe.Class):
        parts += _class(thing, links)
    elif isinstance(thing, griffe.Function):
        parts += [_code(f"{name.rpartition('.')[2]}{_signature(thing)}"), *_sections(thing, links, [])]
    return "\n\n".join(parts)


def _class(cls: griffe.Class, links: docstrings.Links) -> list[str]:
    parts = []
    bases = [str(base) for base in cls.bases if not str(base).startswith("Generic[")]
    is_error = cls.module.name == "errors"
    if not is_error and cls.name not in _MADE_BY_FUNCTIONS:
        parts.append(_code(f"{cls.name}{_arguments(cls.parameters, '')}"))
    if bases and (is_error or not cls.module.canonical_path.startswith(("stoker.order", "stoker.transforms"))):
        linked = ", ".join(links.code(base, cls.module.canonical_path) for base in bases)
        parts.append(f"Base{'s' if len(bases) > 1 else ''}: {linked}")
    internal = _INTERNAL.get(cls.name, set())
    members = [member for member in cls.members.values() if member.name not in internal and _is_shown(member)]
    properties = [member for member in members if isinstance(member, griffe.Attribute)]
    parts += _sections(cls, links, properties, internal)
    for method in members:
        if isinstance(method, griffe.Function):
            signature = _code(f"{method.name}{_signature(method)}")
            parts += [f"### `{cls.name}.{method.name}`", signature, *_sections(method, links, [])]
    return parts


def _is_shown(member: griffe.Object | griffe.Alias) -> bool:
    """Whether a member of a class is for users: public, documented, and no object of the native core."""
    public = not member.name.startswith("_") or member.name in _PROTOCOL
    if not public or member.is_alias or member.docstring is None:
        return False
    if isinstance(member, griffe.Function):
        types = [member.returns, *(parameter.annotation for parameter in member.parameters)]
        return not any("stoker._native" in path for expression in types for path in _paths(expression))
    return isinstance(member, griffe.Attribute) and "property" in member.labels


def _paths(expression: str | griffe.Expr | None) -> Iterator[str]:
    """Yield the full names in a type."""
    if isinstance(expression, griffe.Expr):
        for part in expression.iterate(flat=True):
            if isinstance(part, griffe.ExprName):
                target = _resolved(part)
                yield target.canonical_path if target else part.canonical_path
                if isinstance(target, griffe.Attribute) and isinstance(target.value, griffe.Expr):
                    yield str(target.value)


def _sections(
    thing: griffe.Object,
    links: docstrings.Links,
    properties: list[griffe.Attribute],
    internal: AbstractSet[str] = frozenset(),
) -> list[str]:
    if thing.docstring is None:
        raise ValueError(f"{thing.canonical_path} has no docstring")
    more = []
    for member in properties:
        section = next(iter(member.docstring.parse("google"))) if member.docstring else None
        text = section.value if isinstance(section, griffe.DocstringSectionText) else ""
        annotation = str(member.annotation or "")
        more.append(docstrings.item(member.name, text, links, "" if annotation.startswith("_") else annotation))
    return docstrings.sections(thing.docstring, links, more, internal)


def _signature(function: griffe.Function) -> str:
    returns = "" if function.returns is None else f" -> {_expression(function.returns)}"
    return _arguments(function.parameters, returns)


def _arguments(parameters: griffe.Parameters, returns: str) -> str:
    shown = [
        parameter
        for parameter in parameters
        if parameter.name not in ("self", "cls") and str(parameter.annotation) != "Never"
    ]
    texts: list[str] = []
    starred = False
    for parameter in shown:
        kind = parameter.kind
        if kind is griffe.ParameterKind.keyword_only and not starred:
            texts.append("*")
            starred = True
        prefix = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}.get(kind, "")
        starred = starred or prefix == "*"
        text = prefix + parameter.name
        if parameter.annotation is not None:
            text += f": {_expression(parameter.annotation)}"
        if parameter.default is not None and not prefix:
            text += f" = {_value(parameter.default)}" if parameter.annotation else f"={_value(parameter.default)}"
        texts.append(text)
    line = f"({', '.join(texts)}){returns}"
    if len(line) <= _WIDTH - 20:
        return line
    return "(\n" + "".join(f"    {text},\n" for text in texts) + f"){returns}"


def _expression(expression: str | griffe.Expr) -> str:
    """Write a type, without what `Annotated` adds, and with short ones in the place of the names of the code."""
    if isinstance(expression, str):
        return expression
    if _is_annotated(expression):
        return _expression(expression.slice.elements[0])  # type: ignore[attr-defined]
    parts = [part if isinstance(part, str) else _named(part) for part in expression.iterate(flat=True)]
    return "".join(parts)


def _is_annotated(expression: str | griffe.Expr | None) -> bool:
    return isinstance(expression, griffe.ExprSubscript) and str(expression.left) == "Annotated"


def _named(part: griffe.Expr) -> str:
    target = _resolved(part)
    value = target.value if isinstance(target, griffe.Attribute) else ""
    text = str(value)
    if isinstance(value, griffe.ExprCall) and text.startswith("TypeVar("):
        named = [each for each in value.arguments if isinstance(each, griffe.ExprKeyword)]
        return _expression(next(each.value for each in named if each.name == "bound"))
    if isinstance(value, griffe.Expr) and _is_annotated(value):
        return _expression(value).replace("'", '"')
    if text.startswith("Literal[") or 0 < len(text) <= _SHORT:
        return text.replace("'", '"')
    return str(part)


def _value(expression: str | griffe.Expr) -> str:
    """Write a default; a constant by its value."""
    if isinstance(expression, griffe.Expr):
        target = _resolved(expression)
        if isinstance(target, griffe.Attribute) and target.value is not None:
            return str(target.value)
    return str(expression).replace("'", '"')


def _resolved(expression: griffe.Expr) -> griffe.Object | None:
    if not isinstance(expression, griffe.ExprName | griffe.ExprAttribute):
        return None
    path = expression.canonical_path
    name = expression if isinstance(expression, griffe.ExprName) else expression.first
    parent = name.parent if isinstance(name, griffe.ExprName) else None
    while isinstance(parent, griffe.ExprName):
        parent = parent.parent
    if not path.startswith("stoker.") or not isinstance(parent, griffe.Object):
        return None
    try:
        member = parent.modules_collection[path]
    except (KeyError, griffe.AliasResolutionError):
        return None
    return member.final_target if isinstance(member, griffe.Alias) else member


def _code(text: str) -> str:
    return f"```python\n{text}\n```"


def _slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
