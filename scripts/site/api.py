"""The pages of the API reference: which names there are is read from the package, what they say from their docstrings.

Nothing is imported, so a framework that is not installed keeps its page.
"""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "stoker"
ADAPTERS = ("torch", "tensorflow", "jax", "spark")
_OPTIONS = "    options:\n      show_root_heading: true\n      heading_level: {level}\n"


def pages() -> dict[str, str]:
    """Return the Markdown of each page by its place in the site."""
    made = {"api/index.md": _front_page(), "api/errors.md": _errors()}
    for adapter in ADAPTERS:
        made[f"api/{adapter}.md"] = _adapter(adapter)
    return made


def places() -> dict[str, str]:
    """Return where in the site each public name is described."""
    found = {f"stoker.{name}": "api/index.html" for name in public_names(PACKAGE / "__init__.py")}
    for module in (*ADAPTERS, "errors"):
        found[f"stoker.{module}"] = f"api/{module}.html"
        found |= {f"stoker.{module}.{name}": f"api/{module}.html" for name in public_names(module_of(module))}
    return found


def public_names(module: Path) -> list[str]:
    """Return ``__all__`` of a module; where there is none, its classes and functions without an underscore."""
    tree = ast.parse(module.read_text(encoding="utf-8"), str(module))
    for node in tree.body:
        if isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == ["__all__"]:
            return [str(name) for name in ast.literal_eval(node.value)]
    defined = [node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    return sorted(name for name in defined if not name.startswith("_"))


def module_of(name: str) -> Path:
    """Return the file of ``stoker.NAME``, a package or a module."""
    package = PACKAGE / name / "__init__.py"
    return package if package.exists() else PACKAGE / f"{name}.py"


def _front_page() -> str:
    """All of ``stoker``, under the package that each name comes from."""
    packages: dict[str, list[str]] = {}
    came_from = _origins()
    for name in public_names(PACKAGE / "__init__.py"):
        packages.setdefault(came_from.get(name, ""), []).append(name)
    others = "\n".join(f"- [`stoker.{page}`]({page}.md): {_summary(page)}" for page in (*ADAPTERS, "errors"))
    parts = ["# stoker", f"What `import stoker` gives. Each of these is a page of its own:\n\n{others}"]
    for package, names in packages.items():
        entries = [_entry(f"stoker.{name}", 3) for name in names if not module_of(name).exists()]  # errors has a page
        if entries:
            parts += [f"## {_summary(package) if package else 'The package'}", *entries]
    return "\n\n".join(parts) + "\n"


def _origins() -> dict[str, str]:
    """Return the package that each name of ``stoker`` is imported from."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module]
    return {
        alias.asname or alias.name: (node.module or "").removeprefix("stoker").strip(".").partition(".")[0]
        for node in imports
        for alias in node.names
    }


def _adapter(name: str) -> str:
    entries = [_entry(f"stoker.{name}.{member}", 2) for member in public_names(module_of(name))]
    return "\n\n".join([f"# stoker.{name}", _sentence(_summary(name)), *entries]) + "\n"


def _errors() -> str:
    names = public_names(module_of("errors"))
    tree = ast.parse(module_of("errors").read_text(encoding="utf-8"))
    drawing = (ast.get_docstring(tree) or "").split("::\n", 1)[1]
    lines = drawing.splitlines()
    last = max(number for number, line in enumerate(lines) if line.startswith("    "))
    drawn = "\n".join(line.removeprefix("    ") for line in lines[: last + 1]).strip("\n")
    text = "\n".join(lines[last + 1 :]).strip().replace("``", "`")
    intro = [_sentence(_summary("errors")), f"```text\n{drawn}\n```", text]
    return "\n\n".join(["# stoker.errors", *intro, *(_entry(f"stoker.errors.{name}", 2) for name in names)]) + "\n"


def _summary(name: str) -> str:
    text = ast.get_docstring(ast.parse(module_of(name).read_text(encoding="utf-8"))) or name
    return text.split("\n\n")[0].replace("\n", " ").rstrip(".")


def _sentence(text: str) -> str:
    return f"{text}."


def _entry(path: str, level: int) -> str:
    return f"::: {path}\n{_OPTIONS.format(level=level)}"
