"""Object files of kernels define no function that the linker could take for another file's.

A file that is compiled for newer processors must not leave an inline function or an instance of a template under a
name that other objects have, too: the linker keeps one of them, and the program would then fail on older processors.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from elftools.elf.elffile import ELFFile

from repository.checkout import NATIVE, ROOT

if TYPE_CHECKING:
    from pathlib import Path

CORE = NATIVE / "core"
X86_64, ARM64 = "x86_64", "aarch64"
COMPILERS = {
    X86_64: ["g++", "clang++-14"],
    ARM64: ["aarch64-linux-gnu-g++", "clang++-14 --target=aarch64-linux-gnu"],
}
NAMED_AFTER_A_SET = re.compile(r"_(sse42|avx2|avx512|bmi2|vpclmul|neon|arm64)$")


def kernels(processor: str) -> dict[Path, str]:
    """The files of kernels for a processor, and what cmake/Kernels.cmake compiles each with."""
    text = (ROOT / "cmake" / "Kernels.cmake").read_text(encoding="utf-8")
    flags = {CORE / file: flag for file, flag in re.findall(r"^\s*stoker_kernel\((\S+) (.+)\)$", text, re.MULTILINE)}
    files = {path: NAMED_AFTER_A_SET.search(path.stem) for path in sorted(CORE.rglob("*.cpp"))}
    assert flags.keys() <= {path for path, match in files.items() if match}
    arm = ("neon", "arm64")
    return {p: flags.get(p, "") for p, match in files.items() if match and (match[1] in arm) == (processor == ARM64)}


def shared_functions(path: Path, flags: str, words: str, scratch: Path) -> list[str]:
    """Functions that the object of a file defines under names that other objects may have.

    Without optimisation each function that is used and need not be inlined is defined; with it, some of them are not.
    """
    compiled = scratch / f"{path.stem}.o"
    options = ["-std=c++20", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-I", str(NATIVE)]
    command = [*words.split(), "-O0", *flags.split(), *options, "-c", str(path), "-o", str(compiled)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    symbols = ELFFile(io.BytesIO(compiled.read_bytes())).get_section_by_name(".symtab").iter_symbols()
    return [
        symbol.name
        for symbol in symbols
        if symbol["st_info"]["type"] == "STT_FUNC"
        and symbol["st_info"]["bind"] != "STB_LOCAL"
        and symbol["st_shndx"] != "SHN_UNDEF"
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("processor", "words"), [(p, words) for p, compilers in COMPILERS.items() for words in compilers]
)
def test_no_function_of_a_kernel_has_a_shared_name(processor: str, words: str, tmp_path: Path) -> None:
    compiler, _, target = words.partition(" --target=")
    for needed in (compiler, f"{target}-g++") if target else (compiler,):  # of which clang takes the headers
        if shutil.which(needed) is None and "STOKER_CI" not in os.environ:
            pytest.skip(f"needs {needed}")
    shared = {path.name: shared_functions(path, flags, words, tmp_path) for path, flags in kernels(processor).items()}
    assert len(shared) >= 2
    assert {name: functions for name, functions in shared.items() if functions} == {}


def test_a_shared_name_is_found(tmp_path: Path) -> None:
    path = tmp_path / "wrong_avx2.cpp"
    path.write_text("#include <algorithm>\nint clipped(int x) { return std::clamp(x, 0, 255); }\n", encoding="utf-8")
    assert len(shared_functions(path, "-mavx2", "g++", tmp_path)) > 1
