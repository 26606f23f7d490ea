"""Write what a wheel must say of other people's code in it: licences, and a CycloneDX bill of materials (PEP 770).

CMake runs it while it configures a wheel, with the interpreter that builds it; the result goes into the wheel's
metadata. Versions and texts are read from what is compiled in, so they cannot differ from it. There are no dates or
random numbers: the same build gives the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import sys
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

Component = dict[str, Any]
_IJG = "This software is based in part on the work of the Independent JPEG Group.\n"


@dataclass(frozen=True)
class Library:
    """A library that scripts/image_libraries.sh builds.

    Attributes:
        license: Its licence, as an SPDX expression.
        place: Where it comes from, as a package URL without a version.
        cpe: Vendor and product in the list of platforms of NIST, by which vulnerabilities are reported.
        version: The file, below its prefix, and the pattern that say its version.
    """

    license: str
    place: str
    cpe: str
    version: tuple[str, str]


LIBRARIES = {
    "libjpeg-turbo": Library(
        "IJG AND BSD-3-Clause AND Zlib",
        "github/libjpeg-turbo/libjpeg-turbo",
        "libjpeg-turbo:libjpeg-turbo",
        ("include/jconfig.h", r"#define\s+LIBJPEG_TURBO_VERSION\s+([\d.]+)"),
    ),
    "zlib-ng": Library(
        "Zlib", "github/zlib-ng/zlib-ng", "zlib-ng:zlib-ng", ("include/zlib.h", r'#define ZLIBNG_VERSION "([\d.]+)"')
    ),
    "libpng": Library(
        "libpng-2.0",
        "github/pnggroup/libpng",
        "libpng:libpng",
        ("include/png.h", r'#define PNG_LIBPNG_VER_STRING "([\d.]+)"'),
    ),
    "libwebp": Library(
        "BSD-3-Clause",
        "github/webmproject/libwebp",
        "webmproject:libwebp",
        ("lib/pkgconfig/libwebp.pc", r"Version: ([\d.]+)"),
    ),
}


def static_library(name: str, file: Path, licenses: Path) -> Component | None:
    """Return a library as a component and copy its licences; None if the extension only asks for the system's.

    Raises:
        ValueError: Its files do not say which version they are of.
        FileNotFoundError: Its licences are not installed beside it.
    """
    if file.suffix != ".a":
        return None
    library, prefix = LIBRARIES[name], file.parent.parent
    text = (prefix / library.version[0]).read_text(encoding="utf-8")
    match = re.search(library.version[1], text)
    if match is None:
        raise ValueError(f"{prefix / library.version[0]} does not say the version of {name}")
    shutil.copytree(prefix / "share" / "licenses" / name, licenses)
    if name == "libjpeg-turbo":
        (licenses / "NOTICE").write_text(_IJG, encoding="utf-8")
    component = _component(name, match[1], library.license, library.place)
    return component | {"cpe": f"cpe:2.3:a:{library.cpe}:{match[1]}:*:*:*:*:*:*:*"}


def nanobind(licenses: Path) -> Component:
    """Return nanobind as a component and copy its licence.

    Raises:
        FileNotFoundError: The installed nanobind has no licence.
    """
    installed = distribution("nanobind")
    texts = [file for file in installed.files or [] if file.name == "LICENSE"]
    if not texts:
        raise FileNotFoundError(f"nanobind {installed.version} is installed without its licence")
    licenses.mkdir(parents=True)
    shutil.copyfile(texts[0].locate(), licenses / "LICENSE")
    return _component("nanobind", installed.version, "BSD-3-Clause", "pypi/nanobind")


def robin_map(nanobind_folder: Path, licenses: Path) -> Component:
    """Return robin-map, of which nanobind carries a copy without a version, as a component; a header has its licence.

    Raises:
        ValueError: It does not.
    """
    header = nanobind_folder / "ext" / "robin_map" / "include" / "tsl" / "robin_hash.h"
    text = header.read_bytes()
    comment = re.match(rb"/\*\*\n( \* MIT License\n.*?)\n? \*/", text, re.DOTALL)
    if comment is None:
        raise ValueError(f"{header} does not begin with its licence")
    licenses.mkdir(parents=True)
    lines = [re.sub(r"^ \* ?", "", line) for line in comment[1].decode("utf-8").splitlines()]
    (licenses / "LICENSE").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    component = _component("robin-map", None, "MIT", "github/Tessil/robin-map")
    component["description"] = "the copy in nanobind; the hash is that of tsl/robin_hash.h"
    component["hashes"] = [{"alg": "SHA-256", "content": hashlib.sha256(text).hexdigest()}]
    return component


def bill(version: str, components: list[Component]) -> dict[str, Any]:
    """Return the bill of materials of a wheel of this version with these components."""
    main = _component("stoker", version, "Apache-2.0", "pypi/stoker")
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": main},
        "components": components,
        "dependencies": [
            {"ref": main["bom-ref"], "dependsOn": [component["bom-ref"] for component in components]},
            *({"ref": component["bom-ref"]} for component in components),
        ],
    }


def _component(name: str, version: str | None, license_expression: str, place: str) -> Component:
    purl = f"pkg:{place.lower()}" + (f"@{version}" if version else "")
    component: Component = {"type": "library", "bom-ref": purl, "name": name}
    if version:
        component["version"] = version
    return component | {"licenses": [{"expression": license_expression}], "purl": purl}


def main(arguments: list[str]) -> None:
    """Write the folders ``licenses`` and ``sboms``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--nanobind", type=Path, required=True)
    parser.add_argument("--libraries", nargs="+", metavar="NAME=FILE", required=True)
    args = parser.parse_args(arguments)
    if args.folder.exists():
        shutil.rmtree(args.folder)
    licenses, sboms = args.folder / "licenses", args.folder / "sboms"
    libraries = (library.partition("=") for library in args.libraries)
    carried = [static_library(name, Path(file), licenses / name) for name, _, file in libraries]
    components = [
        *filter(None, carried),
        nanobind(licenses / "nanobind"),
        robin_map(args.nanobind, licenses / "robin-map"),
    ]
    sboms.mkdir(parents=True)
    text = json.dumps(bill(args.version, components), indent=2) + "\n"
    (sboms / "stoker.cdx.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
