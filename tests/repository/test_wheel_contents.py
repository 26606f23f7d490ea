"""What an installed Stoker says of itself is true: its bill of materials, licences and types; and it is hardened."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

from stoker import _native

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads ELF")
# Of every Linux on which a manylinux wheel may be installed, or of every musl.
SYSTEM = re.compile(r"(libstdc\+\+|libgcc_s|libm|libc|libpthread|ld-linux-[\w-]+|libc\.musl-\w+)\.so(\.\d+)?")
CARRIED = {"libjpeg-turbo", "zlib-ng", "libpng", "libwebp"}
OF_THE_SYSTEM = {"libjpeg", "libpng16", "libwebp", "libwebpdemux", "libz"}


def installed(pattern: str) -> dict[str, Path]:
    """Files of the distribution whose names match, by what the first group matches."""
    files = {}
    for file in distribution("stoker").files or []:
        match = re.search(pattern, file.as_posix())
        if match:
            files[match[1]] = Path(str(file.locate()))
    return files


def bill() -> dict[str, Any]:
    (path,) = installed(r"\.dist-info/sboms/(stoker)\.cdx\.json$").values()
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def components() -> dict[str, dict[str, Any]]:
    return {component["name"]: component for component in bill()["components"]}


def test_the_bill_of_materials_is_valid() -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(bill())) is None
    assert bill()["metadata"]["component"]["version"] == distribution("stoker").version


def test_the_bill_names_what_is_compiled_in() -> None:
    binary = Path(_native.__file__).read_bytes()
    versions = {name: component.get("version") for name, component in components().items()}
    inside = dict(match.groups() for match in re.finditer(rb"(libjpeg-turbo|libpng) version ([\d.]+\d)", binary))
    assert {name.decode(): version.decode() for name, version in inside.items()}.items() <= versions.items()
    assert set(versions) == {"nanobind", "robin-map"} | (CARRIED if inside else set())
    assert set(_native.image_formats()) == {"jpeg", "png", "webp"} or not inside


@linux
def test_what_is_linked_is_of_the_system_or_in_the_bill() -> None:
    with Path(_native.__file__).open("rb") as file:
        dynamic = ELFFile(file).get_section_by_name(".dynamic")
        assert isinstance(dynamic, DynamicSection)
        linked = {tag.needed for tag in dynamic.iter_tags("DT_NEEDED")}
    others = {name for name in linked if not SYSTEM.fullmatch(name)}
    assert {name.split(".")[0] for name in others} <= (set() if "libjpeg-turbo" in components() else OF_THE_SYSTEM)


def test_every_component_has_its_licence() -> None:
    assert set(installed(r"\.dist-info/licenses/([\w-]+)/[\w.-]+$")) == set(components())
    for path in installed(r"\.dist-info/licenses/(.+)$").values():
        assert path.stat().st_size > 0
    if "libjpeg-turbo" in components():
        texts = installed(r"\.dist-info/licenses/libjpeg-turbo/(.+)$")
        assert "Independent JPEG Group" in texts["NOTICE"].read_text(encoding="utf-8")
        assert {"LICENSE.md", "README.ijg"} <= set(texts)


def test_the_extension_is_made_for_this_python() -> None:
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    stable = sys.version_info >= (3, 12) and not free_threaded
    assert Path(_native.__file__).name == "_native" + (".abi3.so" if stable else sysconfig.get_config_var("EXT_SUFFIX"))
    program = "import sys, stoker.cli.build, stoker.loader; print(getattr(sys, '_is_gil_enabled', lambda: True)())"
    ran = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == str(not free_threaded), "importing an extension must not bring the GIL back"


def test_types_are_installed() -> None:
    assert set(installed(r"^stoker/(py\.typed|_native\.pyi)$")) == {"py.typed", "_native.pyi"}


@linux
def test_the_extension_is_hardened() -> None:
    with Path(_native.__file__).open("rb") as file:
        elf = ELFFile(file)
        segments = {segment["p_type"]: segment["p_flags"] for segment in elf.iter_segments()}
        flags = {tag.entry.d_val for tag in elf.get_section_by_name(".dynamic").iter_tags("DT_FLAGS")}
        names = {symbol.name for symbol in elf.get_section_by_name(".dynsym").iter_symbols()}
    assert "PT_GNU_RELRO" in segments
    assert not segments["PT_GNU_STACK"] & 1, "the stack must not be executable"
    assert flags
    assert all(flag & 8 for flag in flags), "addresses are resolved, and made read-only, when it is loaded"
    assert "__stack_chk_fail" in names
    assert (
        not {name for name in names if name.startswith(("jpeg_", "png_", "WebP", "inflate"))}
        or "libjpeg-turbo" not in components()
    )
