"""The schema of manifests that is in the package, and what it says of one."""

from __future__ import annotations

import functools
import json
import sys
from importlib.resources import files
from typing import Any

import pytest


@functools.cache
def validator() -> Any:
    """What checks a manifest against the schema, which is checked here."""
    # Grammars of URIs, which no manifest needs, would take a second to read.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "rfc3987_syntax", None)
        import jsonschema  # noqa: PLC0415 - an extra
    schema = json.loads((files("stoker.format") / "manifest.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)
